"""Two cores for a file: while one frame is scored, the next ones are described elsewhere, and learners taught there.

Called by agent/process/app.py. It must not change any result: frames are described in their order, only while that
depends on nothing that scoring changes, and again by ourselves where the process that did it is lost.
"""

import logging
import os
from collections import deque
from collections.abc import Callable

from stillwatch.base import Frame, State, prepare_parts
from stillwatch.describing import Apart, Lost
from stillwatch.pipeline import Pipeline, Step
from stillwatch.settings import Config

logger = logging.getLogger(__name__)

AHEAD = 12  # frames: as many as go by before a model is due, since it is taught before any of them is described
LONG = 300  # frames: below that a process of its own costs more than it gives


class Lookahead:
    """Hands frames to a pipeline, some behind where that is of use; what it holds back is taken by `drain`.

    Parameters
    ----------
    pipeline : Pipeline
    ahead : int
        Frames that may be described before they are taken. Where that is none, or there is one core, each frame is
        taken at once.
    expected : callable, optional
        Returns how many frames will come, as far as their source knows by now; else None.
    make : callable, optional
        Starts the other process.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        ahead: int = 0,
        expected: Callable[[], int | None] = lambda: None,
        make: Callable[[Config, int], Apart] = Apart,
    ):
        self._pipeline, self._ahead, self._expected, self._make = pipeline, ahead, expected, make
        self._may = ahead > 0 and len(os.sched_getaffinity(0)) > 1
        self._apart: Apart | None = None
        self._is_away = False  # the other process is further than our own describer
        self._waiting: deque[Frame] = deque()  # with the other process
        self._since: list[Frame] = []  # taken since the last state that we know
        self._known: State | None = None  # that state; None where it is our own describer's
        self._taken = 0

    def step(self, frame: Frame) -> list[Step]:
        """Hand over the next frame; return what the frames taken by now led to, in order."""
        if not self._can_go_ahead(frame):
            steps = self.drain()
            self._come_back()
            self._taken += 1
            return [*steps, self._pipeline.step(frame)]
        self._waiting.append(frame)
        try:
            assert self._apart is not None
            if not self._is_away:
                self._apart.begin(self._pipeline.describer)
                self._is_away = True
                self._pipeline.learners.side_by_side = False  # that core is taken
                self._pipeline.learners.tutor = self._apart.tutor
            self._apart.ask(frame)
        except Lost as error:
            return self._go_on_alone(error)
        return self._take(self._ahead)

    def drain(self) -> list[Step]:
        """Take what waits."""
        return self._take(0)

    def settle(self) -> list[Step]:
        """Take what waits: from here the pipeline's state is that of all frames handed over."""
        steps = self.drain()
        self._catch_up()
        return steps

    def close(self) -> None:
        """End the other process; what waits is left."""
        self._pipeline.learners.tutor = None
        if self._apart is not None:
            self._apart.close()
            self._apart = None
        self._may, self._pipeline.learners.side_by_side = False, True

    def _can_go_ahead(self, frame: Frame) -> bool:
        """Say whether the other process is there, and has what it needs for this frame."""
        if not self._may:
            return False
        try:
            if self._apart is None:
                if max(self._taken, self._expected() or 0) < LONG:
                    return False
                self._apart = self._make(self._pipeline.config, self._ahead)
            fits = self._pipeline.looks_ahead and frame.grey.shape == self._pipeline.describer.shape
            return fits and self._apart.is_ready()
        except (Lost, OSError) as error:
            self._give_up(error)
            return False

    def _take(self, left: int) -> list[Step]:
        steps: list[Step] = []
        while len(self._waiting) > left:
            assert self._apart is not None
            try:
                described, state = self._apart.take()
            except Lost as error:
                return [*steps, *self._go_on_alone(error)]
            self._since.append(self._waiting.popleft())
            if state is not None:
                self._known, self._since = state, []
            steps.append(self._pipeline.take(described))
        return steps

    def _catch_up(self) -> None:
        """Bring our own describer to where the frames taken are: the last state that we know, and the frames since."""
        describer = self._pipeline.describer
        if self._known is not None:
            prepare_parts(describer.running(), self._known, "described apart")()
        for frame in self._since:
            describer.describe(frame)
        self._known, self._since = None, []

    def _come_back(self) -> None:
        """Describe by ourselves from here; the other process is told where to begin again."""
        if self._is_away:
            self._catch_up()
            self._is_away = False

    def _go_on_alone(self, error: Exception) -> list[Step]:
        """The other process is lost: describe what waits there again, and all that comes."""
        self._give_up(error)
        self._come_back()
        steps = [self._pipeline.step(frame) for frame in self._waiting]
        self._waiting.clear()
        return steps

    def _give_up(self, error: Exception) -> None:
        logger.warning("the process that describes frames is lost (%s): going on without it, at less speed", error)
        self.close()
