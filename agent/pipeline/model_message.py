"""The wire's form of a mixture, both ways: what the vehicle sends is what a ground station can score with.

Called by agent/pipeline/summaries.py on the vehicle. It must not approximate beyond float32, where both ends give the
same assignments; the quantised forms for thin links are transport/mirror/vehicle.py's business.
"""

from typing import Any

import numpy as np

from stillwatch.base import SnapshotError
from stillwatch.learn import COVARIANCES, StudentMixture
from stillwatch.transport.wire import Model


def model_fields(mixture: StudentMixture, most: int) -> dict[str, Any]:
    """Return the fields of a Model message that hold the density: its `most` largest components.

    The prior is sent in the units of the data: its scale absorbs the learner's own normalisation.
    """
    summary, k = mixture.summary, min(mixture.n_components, most)
    spread = "variance" if mixture.kind == "diagonal" else "covariance"
    strength, shape, scale = (float(value) for value in summary["prior"])
    fields = {
        "covariance": mixture.kind,
        "n_dims": mixture.n_dims,
        "ids": mixture.ids[:k],
        "counts": summary["count"][:k],
        "weights": mixture.weights[:k].copy(),
        "means": summary["mean"][:k],
        "variances" if mixture.kind == "diagonal" else "covariances": summary[spread][:k],
        "prior_mean": summary["shift"],
        "prior_strength": strength,
        "prior_dof": shape,
        "prior_scale": _prior_scale(mixture.kind, scale, summary["scale"]),
        "concentration": float(summary["concentration"]),
    }
    return {name: _single(value) for name, value in fields.items()}


def _single(value: Any) -> Any:
    return value.astype(np.float32) if isinstance(value, np.ndarray) and value.dtype == np.float64 else value


def _prior_scale(kind: str, scale: float, units: np.ndarray) -> np.ndarray:
    variances = scale * np.asarray(units, np.float64) ** 2
    if kind == "diagonal":
        return variances
    d = len(variances)
    packed = np.zeros(d * (d + 1) // 2)
    packed[[i * (i + 3) // 2 for i in range(d)]] = variances
    return packed


def mixture_of(message: Model) -> StudentMixture:
    """Rebuild the density that a Model message describes; SnapshotError where its arrays do not fit."""
    diagonal = message.covariance == "diagonal"
    d = message.n_dims
    variances = np.asarray(message.prior_scale, np.float64)
    if not diagonal:
        variances = variances[[i * (i + 3) // 2 for i in range(d)]]  # the packed triangle's diagonal
    spread = message.variances if diagonal else message.covariances
    if spread is None:
        raise SnapshotError(f"model of {message.covariance} covariance came without its second moments")
    return StudentMixture.from_summary(
        {
            "kind": np.array(COVARIANCES.index(message.covariance)),
            "id": message.ids,
            "count": message.counts,
            "mean": message.means,
            "variance" if diagonal else "covariance": spread,
            "prior": np.array([message.prior_strength, message.prior_dof, 1.0]),
            "shift": message.prior_mean,
            "scale": np.sqrt(variances),
            "concentration": np.array(message.concentration),
            "epoch": np.array(message.model_epoch),
        }
    )
