"""The process: puts the rooms together, runs them, obeys commands, saves and ends.

In: a config. Out: an exit code.
Imports: everything of the agent and of transport.
"""

from stillwatch.process.app import Progress, RunOptions, RunResult, run_agent
from stillwatch.process.assembly import make_publisher
from stillwatch.process.commander import Commander
from stillwatch.process.memory_plan import check_memory, planned_memory

__all__ = [
    "Progress",
    "RunOptions",
    "RunResult",
    "Commander",
    "check_memory",
    "make_publisher",
    "planned_memory",
    "run_agent",
]
