"""Carries out commands from the control socket between two frames.

Called by process/app.py. A command that changes what the pipeline computes goes through pipeline/journal.py's `apply`,
is tied to the next frame and recorded; the others only read.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from stillwatch.base import Frame, UsageError
from stillwatch.outlet import CommandBox
from stillwatch.pipeline import JOURNALLED, Pipeline, apply, jpeg_thumbnail
from stillwatch.transport.live import Command

MOST_FOR_A_FRAME = 16


class Commander:
    """Takes commands out of the box, once each, on the pipeline thread.

    Parameters
    ----------
    pipeline, box
    journal : callable(command, arguments)
        Records a command before it takes effect.
    status : callable
        Returns the answer to `status`.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        box: CommandBox,
        *,
        journal: Callable[[str, dict[str, Any]], None],
        status: Callable[[], dict[str, Any]],
        now_ns: Callable[[], int],
    ):
        self._pipeline = pipeline
        self._box = box
        self._journal = journal
        self._status = status
        self._now_ns = now_ns
        self._for_a_frame: list[Command] = []  # that the next frame answers

    def run(self, frame: Frame | None) -> None:
        """Carry out what waits; `frame` is the one that was just taken from the source, None where none came."""
        commands, self._for_a_frame = [*self._for_a_frame, *self._box.take()], []
        for command in commands:
            if command.is_expired(self._now_ns()):
                continue  # who asked has stopped waiting, and may have asked somebody else
            if command.name == "request_picture":
                self._show(command, frame)
                continue
            try:
                result, attachment = self._carry_out(command)
            except UsageError as error:
                self._box.answer(command, error=str(error))
            else:
                self._box.answer(command, result, attachment=attachment)

    def change(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Record and apply one change of the pipeline, from a command or from the agent itself."""
        self._journal(name, arguments)
        return apply(self._pipeline, name, arguments)

    def _carry_out(self, command: Command) -> tuple[dict[str, Any], bytes]:
        if command.name in JOURNALLED:
            return self.change(command.name, msgspec.to_builtins(command.arguments)), b""
        if command.name == "status":
            return self._status(), b""
        if command.name == "snapshot":
            return {"messages": self._pipeline.publish_all()}, b""
        return {}, self._exemplar(command.arguments.id)

    def _show(self, command: Command, frame: Frame | None) -> None:
        """Answer with the frame as a JPEG; without one, wait for the next."""
        if frame is None:
            self._for_a_frame = [*self._for_a_frame, command][-MOST_FOR_A_FRAME:]
            return
        jpeg = jpeg_thumbnail(frame.colour, command.arguments.width_px, command.arguments.max_bytes)
        told = {"frame": frame.sequence, "t_ns": frame.t_ns, "wall_ns": frame.wall_ns}
        self._box.answer(command, told, attachment=jpeg)

    def _exemplar(self, exemplar_id: int) -> bytes:
        """Return the best picture we keep of an exemplar: as stored, before any link made it smaller."""
        held = self._pipeline.learners.exemplar_pictures()
        if exemplar_id not in held:
            raise UsageError(f"exemplar {exemplar_id} is not held; held are {list(held)}")
        if not held[exemplar_id]:
            raise UsageError(f"exemplar {exemplar_id} has no picture; take another of {list(held)}")
        return held[exemplar_id]
