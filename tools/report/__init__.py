"""One self-contained page of a run, and how two runs differ.

Owns: the page, its charts, how each learner is shown (learners.py).
In: run folders. Out: HTML; the palette and the lines of charts for other pages.
Imports: the agent, transport, tools.shared.
"""

from stillwatch.tools.report import charts
from stillwatch.tools.report.command import write_report
from stillwatch.tools.report.compare import compare_folders, tell_comparison
from stillwatch.tools.report.learners import PICTURED, TOPIC_PREFIX, model_view
from stillwatch.tools.report.style import PALETTE, page

__all__ = [
    "PALETTE",
    "PICTURED",
    "TOPIC_PREFIX",
    "charts",
    "compare_folders",
    "model_view",
    "page",
    "tell_comparison",
    "write_report",
]
