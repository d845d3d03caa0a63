"""The objectives that StreamGreedy maximises, and which settings make which.

Called by agent/learn/exemplars/stream_greedy.py. It must not hold a state of its own.
"""

from typing import Any

from stillwatch.learn.exemplars.active_set import EntropyObjective, VarianceObjective
from stillwatch.learn.exemplars.clustering import ClusteringObjective
from stillwatch.learn.exemplars.racing import RacingObjective

Objective = ClusteringObjective | EntropyObjective


def make_objective(settings: dict[str, Any], n_features: int) -> Objective:
    """Return the objective that StreamGreedy's settings name; ValueError where they cannot work."""
    kind, racing, lengthscales = settings["objective"], settings["racing"], settings["lengthscales"]
    room = (n_features, settings["k"], settings["block"], settings["validation"])
    if kind == "clustering":
        given = {name: settings[name] for name in ("dissimilarity", "phantom")}
        if racing is None:
            return ClusteringObjective(*room, **given)
        return RacingObjective(*room, delta=racing, **given)
    if kind not in ("variance", "entropy"):
        raise ValueError(f"objective: {kind!r} is none of clustering, variance, entropy")
    if lengthscales is None or racing is not None:
        raise ValueError(f"objective {kind!r} needs lengthscales, and knows no racing")
    given = {name: settings[name] for name in ("lengthscales", "signal_variance", "noise_variance")}
    return VarianceObjective(*room, **given) if kind == "variance" else EntropyObjective(*room, **given)
