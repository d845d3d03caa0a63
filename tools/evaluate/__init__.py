"""Scores against ground truth, beside baselines.

In: clips and their truth. Out: rows.
Imports: agent.
"""

from stillwatch.tools.evaluate.run import frames_of

__all__ = ["frames_of"]
