"""One self-contained page of a run, and how two runs differ.

In: run folders. Out: HTML.
Imports: agent, transport.
"""

from stillwatch.tools.report.command import write_report
from stillwatch.tools.report.compare import compare_folders, tell_comparison

__all__ = ["compare_folders", "tell_comparison", "write_report"]
