"""What a survey found: clusters, weights by dive with their doubt, typical and odd pictures, what each dive adds.

Called by tools/survey/command.py. It must not read pictures.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stillwatch.learn import SimultaneousMixture
from stillwatch.tools.survey.ground import Ground, ground_of
from stillwatch.tools.survey.reduce import whitened

GALLERY = 6
ODDEST = 10
# A cluster is a dive's own where all others together have less than this part of it.
OWN_SHARE = 0.05
# C_width of whitened segments: the thesis's of its sea floors (chapter 6).
SEGMENT_C_WIDTH = 6.0


@dataclass(frozen=True)
class SegmentsFound:
    """Clusters of the segments of all pictures.

    Attributes
    ----------
    clusters : ndarray of shape (n_segments,), int64, picture by picture
    starts : ndarray of shape (n_pictures + 1,), int64
        Picture i has the segments starts[i] to starts[i + 1].
    mixes : ndarray of shape (n_clusters, n_segment_clusters), float64
        What pictures of each cluster are made of.
    """

    clusters: np.ndarray
    starts: np.ndarray
    mixes: np.ndarray

    def of(self, picture: int) -> np.ndarray:
        """Return the cluster of each of a picture's segments."""
        return self.clusters[self.starts[picture] : self.starts[picture + 1]]


@dataclass(frozen=True)
class Found:
    """A clustered survey; items are pictures or clumps.

    Attributes
    ----------
    names : list of str
        Dives, in the order of the rows of `counts`.
    counts : ndarray of shape (J, K), float64
        Points of each dive in each cluster.
    free_energy : float
    clusters : ndarray of shape (n,), int64
    certainty : ndarray of shape (n,), float64
        Probability of each item's cluster.
    surprise : ndarray of shape (n,), float64
        Negative log density, nats, of whole pictures, or of a picture's segments on average: the largest are the
        oddest.
    segments : SegmentsFound or None
    """

    names: list[str]
    counts: np.ndarray
    free_energy: float
    clusters: np.ndarray
    certainty: np.ndarray
    surprise: np.ndarray
    segments: SegmentsFound | None = None

    @property
    def n_clusters(self) -> int:
        return self.counts.shape[1]

    def shares(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (share of each cluster in each dive, its standard deviation), (J, K).

        Of the Dirichlet posterior whose prior is worth one item in all: the fit's own, one a cluster, would tell shares
        of small dives far from what was counted.
        """
        a = 1.0 / self.n_clusters + self.counts
        total = a.sum(axis=1, keepdims=True)
        mean = a / total
        return mean, np.sqrt(mean * (1.0 - mean) / (total + 1.0))

    def ground(self, dives: np.ndarray, of_picture: tuple[np.ndarray, str]) -> Ground:
        """Return how much ground each cluster has in each dive; arguments as `ground_of` has them."""
        return ground_of(self.clusters, self.certainty, self.shares()[1], dives, of_picture)

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


def cluster_segments(
    segments: np.ndarray,
    n_segments: np.ndarray,
    dives: np.ndarray,
    names: list[str],
    *,
    rows: np.ndarray | None,
    c_width: float,
    n_jobs: int,
) -> Found:
    """Return the survey of pictures by their segments: SCM, or MCM where whole pictures are described too.

    segments : (n_all, width), picture by picture;  n_segments : (n,) int64, of each picture
    rows : (n, n_dims) float64 or None;  c_width : of whole pictures
    """
    white = whitened(segments)
    images = np.repeat(np.arange(len(n_segments)), n_segments)
    model = SimultaneousMixture(c_width=SEGMENT_C_WIDTH, image_width=c_width, n_init=2, n_jobs=n_jobs)
    model.fit(white, images=images, groups=dives, descriptors=rows)
    proba = model.predict_proba(white, images=images, groups=dives, descriptors=rows)
    counts = np.zeros((len(names), model.n_kinds_))
    np.add.at(counts, (dives, model.labels_), 1.0)
    odd = -np.bincount(images, _log_density(white, model, model.labels_[images]), len(n_segments))
    found = SegmentsFound(model.segment_labels_, np.r_[0, np.cumsum(n_segments)], model.mixes_)
    certainty = proba[np.arange(len(proba)), model.labels_]
    surprise = odd / np.maximum(n_segments, 1)
    return Found(names, counts, model.free_energy_, model.labels_, certainty, surprise, found)


def _log_density(rows: np.ndarray, model: SimultaneousMixture, kinds: np.ndarray) -> np.ndarray:
    """Return the log density of segments in pictures of these kinds, (n,)."""
    logs = np.log(np.maximum(model.mixes_, 1e-300))[kinds]
    factor = np.linalg.cholesky(model.covariances_)
    for k in range(model.n_clusters_):
        z = np.linalg.solve(factor[k], (rows - model.means_[k]).T)
        half_log_det = np.log(np.diagonal(factor[k])).sum()
        logs[:, k] -= 0.5 * (z * z).sum(axis=0) + half_log_det + 0.5 * rows.shape[1] * np.log(2.0 * np.pi)
    return np.logaddexp.reduce(logs, axis=1)


def summary_of(
    found: Found,
    exemplars: list[list[str]],
    labels: dict[str, Any] | None,
    seconds: float,
    ground: Ground | None = None,
) -> dict[str, Any]:
    """Return what survey.json holds.

    exemplars : of each cluster, names of its most typical items;  ground : where positions are known
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
                "ground": None if ground is None else ground.amounts[j],
                "ground_sd": None if ground is None else ground.deviations[j],
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
            for k in range(found.n_clusters)
        ],
        "ground_unit": None if ground is None else ground.unit,
        "labels": labels,
        "free_energy": found.free_energy,
        "seconds": seconds,
    }
