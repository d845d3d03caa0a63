"""Two cores for a file: while one frame is scored and learnt from, the next ones are judged and described.

Called by agent/process/app.py. It must not change any result: frames are described in their order, and
only while that depends on nothing that scoring changes.
"""

import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

from stillwatch.base import Frame
from stillwatch.pipeline import Described, Pipeline, Step

AHEAD = 4  # frames: as long as scoring waits for a model, the other core has something to do


class Lookahead:
    """Hands frames to a pipeline, some behind where that is of use; what it holds back is taken by `drain`.

    Parameters
    ----------
    pipeline : Pipeline
        Made to describe `ahead` frames before they are taken; where that is none, or there is one core, each frame is
        taken at once.
    """

    def __init__(self, pipeline: Pipeline):
        self._pipeline = pipeline
        several = pipeline.ahead > 0 and len(os.sched_getaffinity(0)) > 1
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="describe") if several else None
        self._waiting: deque[Future[Described]] = deque()

    def step(self, frame: Frame) -> list[Step]:
        """Hand over the next frame; return what the frames taken by now led to, in order."""
        if self._thread is None or not self._pipeline.looks_ahead:
            return [*self.drain(), self._pipeline.step(frame)]
        self._waiting.append(self._thread.submit(self._pipeline.describe, frame))
        return self._take(self._pipeline.ahead)

    def drain(self) -> list[Step]:
        """Take what waits: from here the pipeline's state is that of all frames handed over."""
        return self._take(0)

    def close(self) -> None:
        """End the thread; what waits is left."""
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)

    def _take(self, left: int) -> list[Step]:
        steps = []
        while len(self._waiting) > left:
            steps.append(self._pipeline.take(self._waiting.popleft().result()))
        return steps
