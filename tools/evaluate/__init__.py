"""Scores against ground truth, beside baselines.

Owns: truth, metrics, baselines.
In: clips and their truth. Out: rows.
Imports: the agent, transport, tools.shared.
"""

from stillwatch.tools.evaluate.run import frames_of

__all__ = ["frames_of"]
