"""The agent's error tree. Messages say what, where, the value and the limit; the command line prints them as one line.

Raised by every room of agent/, turned into exit codes by tools/cli.py. Never raised for one bad frame:
those are events, counted and survived.
"""

from collections.abc import Iterable


class AgentError(Exception):
    """Base of every error that a user can act on. `exit_code` is what the process ends with."""

    exit_code = 4


class ConfigError(AgentError):
    """The configuration is wrong; `problems` lists every fault found, not only the first."""

    exit_code = 78

    def __init__(self, problems: Iterable[object]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class SourceError(AgentError):
    """A source cannot be opened, ended early or was lost. `partial` is true when some frames were delivered."""

    exit_code = 3

    def __init__(self, message: str, *, partial: bool = False) -> None:
        super().__init__(message)
        self.partial = partial


class SnapshotError(AgentError):
    """Saved state (checkpoint, encoder file) is damaged, of another version, or belongs to other settings."""

    exit_code = 4


class UsageError(AgentError):
    """The command line asks for something that cannot be done."""

    exit_code = 2


class NotFittedError(AgentError):
    """A learner was asked for results before it has learnt anything."""

    exit_code = 4
