"""The process: puts the wings together, runs them, obeys commands, saves and ends.

Owns: the loop, the exit code, what is given up on a slow board, the memory plan.
In: a config. Out: an exit code.
Imports: base, settings, sources, describing, pipeline, restart, clips, outlet, transport.disk, transport.live,
transport.thin, transport.wire.
"""

from stillwatch.process.app import run_agent
from stillwatch.process.assembly import make_publisher, make_thin_carrier
from stillwatch.process.commander import Commander
from stillwatch.process.memory_plan import LIBRARIES_BYTES, check_memory, planned_memory
from stillwatch.process.options import Progress, RunOptions, RunResult

__all__ = [
    "LIBRARIES_BYTES",
    "Progress",
    "RunOptions",
    "RunResult",
    "Commander",
    "check_memory",
    "make_publisher",
    "make_thin_carrier",
    "planned_memory",
    "run_agent",
]
