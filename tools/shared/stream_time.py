"""How far into its stream a message is: what every line says beside the frame and UTC.

Used by tools/shared/voice.py and tools/ground.py. It must not guess: who came late knows no beginning.
"""

from stillwatch.transport.wire import Message


class StreamTime:
    """Remembers when the first frame of the run that is heard was."""

    def __init__(self) -> None:
        self._run = ""
        self._started_t_ns: int | None = None

    def hear(self, message: Message) -> None:
        """Take note of a message: of a run that began anew, and of its frame 0."""
        if message.run != self._run:
            self._run, self._started_t_ns = message.run, None
        if message.frame == 0 and self._started_t_ns is None:
            self._started_t_ns = message.t_ns

    def of(self, message: Message) -> float | None:
        """Return the seconds from frame 0 to a message; None where that frame was not heard of."""
        return None if self._started_t_ns is None else (message.t_ns - self._started_t_ns) / 1e9
