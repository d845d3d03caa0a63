"""What model building did in an epoch: counters that reports and benches show.

Filled by agent/learn/mixture/build.py. It must not decide anything.
"""

from dataclasses import dataclass


@dataclass
class BuildReport:
    """What one epoch's model building did."""

    free_energy: float = 0.0
    iterations: int = 0
    dense_passes: int = 0
    splits_tried: int = 0
    splits_kept: int = 0
    merges_tried: int = 0
    merges_kept: int = 0
    exchanges: int = 0
    trials: int = 0
    trials_kept: int = 0
