"""How well clusters agree with labels: homogeneity, completeness, V-measure, adjusted Rand index, confusion.

Called by tools/survey/command.py and the survey experiments. It must not match clusters to classes: none of these
figures needs it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Agreement:
    """Figures of one clustering; `v_measure` is the thesis's NMI, with arithmetic mean.

    confusion : ndarray of shape (n_classes, n_clusters), int64
    """

    homogeneity: float
    completeness: float
    v_measure: float
    ari: float
    classes: list[str]
    confusion: np.ndarray

    def figures(self) -> dict[str, float]:
        return {
            "nmi": self.v_measure,
            "v_measure": self.v_measure,
            "homogeneity": self.homogeneity,
            "completeness": self.completeness,
            "ari": self.ari,
        }


def agreement(labels: Any, clusters: Any) -> Agreement:
    """Return how clusters agree with labels, two sequences of one length, at least 1."""
    classes, row = np.unique(np.asarray(labels).astype(str), return_inverse=True)
    names, column = np.unique(np.asarray(clusters), return_inverse=True)
    table = np.zeros((len(classes), len(names)), np.int64)
    np.add.at(table, (row, column), 1)
    of_class, of_cluster, of_both = (_entropy(part) for part in (table.sum(1), table.sum(0), table.ravel()))
    homogeneity = 1.0 if of_class == 0.0 else 1.0 - (of_both - of_cluster) / of_class
    completeness = 1.0 if of_cluster == 0.0 else 1.0 - (of_both - of_class) / of_cluster
    total = homogeneity + completeness
    v_measure = 2.0 * homogeneity * completeness / total if total > 0.0 else 0.0
    return Agreement(homogeneity, completeness, v_measure, _adjusted_rand(table), classes.tolist(), table)


def _entropy(counts: np.ndarray) -> float:
    part = counts[counts > 0] / counts.sum()
    return float(-(part * np.log(part)).sum())


def _adjusted_rand(table: np.ndarray) -> float:
    """Return the adjusted Rand index of a contingency table (Hubert and Arabie 1985)."""

    def pairs(counts: np.ndarray) -> float:
        return float((counts * (counts - 1.0)).sum() / 2.0)

    n = float(table.sum())
    together, rows, columns = pairs(table.astype(float)), pairs(table.sum(1)), pairs(table.sum(0))
    expected = rows * columns / max(n * (n - 1.0) / 2.0, 1.0)
    most = (rows + columns) / 2.0
    return 1.0 if most == expected else (together - expected) / (most - expected)
