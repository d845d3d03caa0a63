"""What a survey found: clusters, weights by dive with their doubt, typical and odd pictures, what each dive adds.

Called by tools/survey/command.py. It must not read pictures.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stillwatch.learn import GroupedMixture

GALLERY = 6
ODDEST = 10
# A cluster is a dive's own where all others together have less than this part of it.
OWN_SHARE = 0.05


@dataclass(frozen=True)
class Found:
    """A clustered survey; items are pictures or clumps.

    Attributes
    ----------
    model : GroupedMixture
    names : list of str
        Dives, in the order of the columns of `counts`.
    clusters : ndarray of shape (n,), int64
    certainty : ndarray of shape (n,), float64
        Probability of each item's cluster.
    surprise : ndarray of shape (n,), float64
        Negative log density, nats: the largest are the oddest.
    """

    model: GroupedMixture
    names: list[str]
    clusters: np.ndarray
    certainty: np.ndarray
    surprise: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        """Points of each dive in each cluster, (J, K)."""
        return self.model.counts_

    def shares(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (share of each cluster in each dive, its standard deviation), (J, K): Dirichlet posterior."""
        a = 1.0 + self.counts
        total = a.sum(axis=1, keepdims=True)
        mean = a / total
        return mean, np.sqrt(mean * (1.0 - mean) / (total + 1.0))

    def typical(self, cluster: int) -> tuple[np.ndarray, np.ndarray]:
        """Return (the most typical items of a cluster, the least typical ones), by density, most extreme first."""
        own = np.flatnonzero(self.clusters == cluster)
        order = own[np.argsort(self.surprise[own], kind="stable")]
        n = min(GALLERY, (len(order) + 1) // 2)
        return order[:n], order[::-1][: min(n, len(order) - n)]

    def oddest(self) -> np.ndarray:
        """Return the items of least density, oddest first."""
        return np.argsort(-self.surprise, kind="stable")[:ODDEST]

    def own_clusters(self) -> list[list[int]]:
        """Return, for each dive, the clusters that none of the others has."""
        others = self.counts.sum(axis=0) - self.counts
        is_own = (self.counts >= 1.0) & (others < OWN_SHARE * self.counts.sum(axis=0)) & (len(self.names) > 1)
        return [np.flatnonzero(row).tolist() for row in is_own]


def cluster_items(rows: np.ndarray, dives: np.ndarray, names: list[str], **settings: Any) -> Found:
    """Return the survey of points: S-GMC, a group for each dive.

    rows : (n, n_dims) float64;  dives : (n,) int64, places in `names`
    """
    model = GroupedMixture(**settings).fit(rows, groups=dives)
    proba = model.predict_proba(rows, dives)
    # The density of a picture among all of them: what is usual in one dive is not odd in another.
    return Found(model, names, model.labels_, proba.max(axis=1), -model.score_samples(rows))


def summary_of(
    found: Found, exemplars: list[list[str]], labels: dict[str, Any] | None, seconds: float
) -> dict[str, Any]:
    """Return what survey.json holds.

    exemplars : of each cluster, names of its most typical items
    """
    mean, spread = found.shares()
    total = found.counts.sum()
    return {
        "items": int(round(float(total))),
        "groups": [
            {
                "name": name,
                "items": float(found.counts[j].sum()),
                "weights": mean[j],
                "weights_sd": spread[j],
                "own_clusters": found.own_clusters()[j],
            }
            for j, name in enumerate(found.names)
        ],
        "clusters": [
            {
                "id": k,
                "weight": float(found.counts[:, k].sum() / total),
                "count": float(found.counts[:, k].sum()),
                "exemplars": exemplars[k],
            }
            for k in range(found.model.n_clusters_)
        ],
        "labels": labels,
        "free_energy": found.model.free_energy_,
        "seconds": seconds,
    }
