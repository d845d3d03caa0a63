"""Scores against ground truth, beside baselines.

Owns: truth, metrics, baselines.
In: clips and their truth. Out: rows.
Imports: the agent, transport, tools.shared.
"""

from stillwatch.tools.evaluate.baselines import Difference, Subtractor
from stillwatch.tools.evaluate.metrics import match, median_delay_s
from stillwatch.tools.evaluate.run import frames_of, run_pinned
from stillwatch.tools.evaluate.truth import Truth, read_truths, truth_for

__all__ = [
    "Difference",
    "Subtractor",
    "Truth",
    "frames_of",
    "match",
    "median_delay_s",
    "read_truths",
    "run_pinned",
    "truth_for",
]
