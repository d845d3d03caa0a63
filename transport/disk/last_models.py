"""The newest whole model and clumps of each mixture: what a new file of a log begins with.

Used by transport/disk/run_folder.py and agent/restart/recorder.py. Models travel as changes: where retention has
deleted a log's beginning, or only one file of it is at hand, the rest is readable all the same.
"""

from stillwatch.transport.wire import Clumps, DecodeError, Message, Model, Unfolder, decode, encode, kind_of

_KINDS = ("model", "clumps")


class LastModels:
    """What was last written of each mixture; used by one thread at a time."""

    def __init__(self) -> None:
        self._unfolder = Unfolder()
        self._whole: dict[tuple[str, str], Message] = {}

    def take(self, kind: str, payload: bytes) -> None:
        """Take one message that was written; only models and clumps are looked at."""
        if kind not in _KINDS:
            return
        try:
            for whole in self._unfolder.unfold(decode(payload)):
                if isinstance(whole, Model | Clumps):
                    self._whole[kind, whole.which] = whole
        except DecodeError:
            return  # of a later version: it cannot be repeated

    def payloads(self) -> list[tuple[str, bytes]]:
        """Return the kind and payload of each, models first."""
        held = sorted(self._whole.items(), key=lambda item: (_KINDS.index(item[0][0]), item[0][1]))
        return [(kind_of(message), encode(message)) for _, message in held]
