"""The agent's error tree. Messages say what, where, the value and the limit; the command line prints them as one line.

Raised by every room of agent/, turned into exit codes by tools/cli.py. Never raised for one bad frame:
those are events, counted and survived.
"""

import enum
from collections.abc import Iterable


class ExitCode(enum.IntEnum):
    """What a command ends with: the one table of them. README.md shows it, and a test holds both equal.

    A service manager restarts after SOURCE, FAULT and NOT_KEPT; after USAGE and CONFIG it would only fail again.
    """

    DONE = 0  # done, or stopped as asked
    NO = 1  # the question was answered with no: health, doctor
    USAGE = 2  # bad usage: options that do not fit, a path named on the command line that is not there
    SOURCE = 3  # the source ended early, or was lost for good
    FAULT = 4  # a fault of ours, or a file or a peer that cannot be understood
    UNEQUAL = 5  # a replay gave another state than the recording holds
    NOT_KEPT = 6  # all was watched, but the disk did not take all of it
    CONFIG = 78  # bad configuration, or a run folder that cannot be written


class AgentError(Exception):
    """Base of every error that a user can act on. `exit_code` is what the process ends with."""

    exit_code = ExitCode.FAULT


class ConfigError(AgentError):
    """The configuration is wrong; `problems` lists every fault found, not only the first."""

    exit_code = ExitCode.CONFIG

    def __init__(self, problems: Iterable[object]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class SourceError(AgentError):
    """A source cannot be opened, ended early or was lost. `partial` is true when some frames were delivered."""

    exit_code = ExitCode.SOURCE

    def __init__(self, message: str, *, partial: bool = False) -> None:
        super().__init__(message)
        self.partial = partial


class MissingSourceError(SourceError):
    """The source's file or folder is not there: nothing to wait for, unlike a camera that may come back."""

    exit_code = ExitCode.USAGE


class SnapshotError(AgentError):
    """Saved state (checkpoint, encoder file) is damaged, of another version, or belongs to other settings."""

    exit_code = ExitCode.FAULT


class UsageError(AgentError):
    """The command line asks for something that cannot be done."""

    exit_code = ExitCode.USAGE


class NotFittedError(AgentError):
    """A learner was asked for results before it has learnt anything."""

    exit_code = ExitCode.FAULT
