"""The density that a Model message describes: what the vehicle's and the ground's must agree on."""

import numpy as np

from stillwatch.base import SnapshotError
from stillwatch.learn import COVARIANCES, StudentMixture
from stillwatch.transport.wire import messages as m


def mixture_of(message: m.Model) -> StudentMixture:
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
