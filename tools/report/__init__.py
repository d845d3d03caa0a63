"""One self-contained page of a run, and how two runs differ.

Owns: the page, its charts, how each learner is shown (learners.py).
In: run folders. Out: HTML.
Imports: the agent, transport, tools.shared.
"""

from stillwatch.tools.report.command import write_report
from stillwatch.tools.report.compare import compare_folders, tell_comparison

__all__ = ["compare_folders", "tell_comparison", "write_report"]
