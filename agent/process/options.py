"""What a caller of a run chooses beside the config, and what it hears: while it runs, and at its end.

Made by tools/run.py and agent/process/app.py. It must not decide anything.
"""

import pathlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from stillwatch.pipeline import RunCounts
from stillwatch.settings import Config
from stillwatch.transport.wire import Message


@dataclass(frozen=True, slots=True)
class Progress:
    """What a person watching a run wants to know now.

    `learning` is 0 to 1, 1 once frames are scored; `share` of the source that was read, 0 to 1, None where its end is
    not known; `unsure`: why its alerts are not to be relied on yet, empty where they are.
    """

    counts: RunCounts
    seconds: float
    learning: float
    state: str
    share: float | None = None
    unsure: str = ""


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended."""

    exit_code: int
    reason: str
    folder: pathlib.Path
    counts: RunCounts
    hash: str
    not_kept: tuple[str, ...] = ()  # what the disk refused, in words
    learning: float = 1.0  # 0 to 1 at the end: below 1 no frame was told from the usual yet
    unsure: str = ""  # why what was told is not to be relied on, in one line
    waiting_alerts: int = 0  # not yet acknowledged over the thin link; the next run sends them


@dataclass(slots=True)
class RunOptions:
    """What a caller chooses beside the config. The callbacks run on the pipeline thread."""

    out: pathlib.Path
    record: pathlib.Path | None = None
    fresh: bool = False
    stop: threading.Event = field(default_factory=threading.Event)
    strict: bool = False  # an endpoint that cannot be bound ends the run, instead of being tried again
    reload: threading.Event = field(default_factory=threading.Event)  # set: read the config again
    read_config: Callable[[], Config] | None = None  # what `reload` reads
    on_progress: Callable[[Progress], None] | None = None
    on_message: Callable[[Message], None] | None = None  # every message, as it is made
    on_note: Callable[[str], None] | None = None  # one line that a person at the start should see
