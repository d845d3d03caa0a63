"""How surprising a frame is under the active models, and how rare that is here.

In: rows, active models. Out: `Score`.
Imports: base, settings, features, learn, epochs.
"""

from stillwatch.novelty.score import Novelty, Score

__all__ = ["Novelty", "Score"]
