"""The posterior predictive of a finished epoch: an immutable mixture of Student t densities, safe in any thread.

Made by agent/learn/mixture/mixture.py after each epoch, and by the ground station from a summary. It must never learn.
"""

import math
from collections.abc import Iterator

import numpy as np

from stillwatch.base import SnapshotError
from stillwatch.kernels import mixture_common, mixture_full, mixture_score
from stillwatch.kernels.mixture_common import SCALE, SHAPE, STRENGTH

BLOCK = 128  # rows whose log joints are held at once; a product of matrices depends on how many it is of,
LONG_BLOCK = 512  # the diagonal family takes each row by itself
FARTHEST = 1e100  # distances are held below this, so that a score is finite for every finite row
COVARIANCES = ("diagonal", "full")


def pack_lower(square: np.ndarray) -> np.ndarray:
    """Pack symmetric matrices of shape (n, d, d) into lower triangles of shape (n, d (d + 1) / 2), row by row."""
    low = np.tril_indices(square.shape[-1])
    return np.ascontiguousarray(square[:, low[0], low[1]])


def unpack_lower(packed: np.ndarray, n_dims: int) -> np.ndarray:
    """Return the symmetric matrices (n, d, d) whose lower triangles `pack_lower` packed."""
    low = np.tril_indices(n_dims)
    square = np.zeros((len(packed), n_dims, n_dims))
    square[:, low[0], low[1]] = packed
    square[:, low[1], low[0]] = packed
    return square


def _shares(log_joint: np.ndarray) -> np.ndarray:
    """Normalise rows of log joints to probabilities."""
    if not log_joint.shape[1]:
        return log_joint
    shares = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


class StudentMixture:
    """Predictive density p(x | data) = sum_k E[pi_k] St(x | k) + (mass left) St(x | prior); integrates to one.

    Attributes
    ----------
    ids : ndarray of shape (n_components,), int64, in stick order: largest first
    weights : ndarray of shape (n_components + 1,), float64
        E[pi_k]; the last is the mass left to components not seen yet, scored under the prior predictive.
    n_components, n_dims, epoch : int
    summary : dict of ndarray
        What `from_summary` rebuilds it from, bit for bit.

    Examples
    --------
    >>> from stillwatch.learn import MemoryBoundedMixture, StudentMixture
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> learner = MemoryBoundedMixture(memory=100).fit(X)
    >>> elsewhere = StudentMixture.from_summary(learner.summary())
    >>> bool((elsewhere.score_samples(X) == learner.score_samples(X)).all())
    True
    """

    def __init__(self, arrays: dict[str, np.ndarray]):
        """Build the density from a summary; `from_summary` says what it holds."""
        self.summary = {name: np.array(value) for name, value in arrays.items()}
        self.kind = COVARIANCES[int(arrays["kind"])]
        self.ids = np.array(arrays["id"], np.int64)
        self.epoch = int(arrays.get("epoch", 0))
        self.n_components = len(self.ids)
        self._shift = np.array(arrays["shift"], np.float64)
        self._scale = np.array(arrays["scale"], np.float64)
        self.n_dims = len(self._shift)
        count = np.append(np.array(arrays["count"], np.float64), 0.0)
        mean = (np.array(arrays["mean"], np.float64) - self._shift) / self._scale
        mean = np.vstack([mean, np.zeros((1, self.n_dims))])  # the prior predictive: a component without data
        self.weights = self._mean_weights(count[:-1], float(arrays["concentration"]))
        prior = np.array(arrays["prior"], np.float64)
        if self.kind == "diagonal":
            variance = np.array(arrays["variance"], np.float64) / self._scale**2
            self._build_diagonal(count, mean, variance, prior)
        else:
            packed = np.array(arrays["covariance"], np.float64) / pack_lower(np.outer(self._scale, self._scale)[None])
            self._build_full(count, mean, packed, prior)
        for array in self._arrays():
            array.setflags(write=False)

    @classmethod
    def from_summary(cls, arrays: dict[str, np.ndarray]) -> "StudentMixture":
        """Rebuild the density, as the ground station does, from what an epoch's summary carries.

        Parameters
        ----------
        arrays : dict of ndarray
            kind (0 diagonal, 1 full); id (K,) int64, count (K,), mean (K, D): largest component first; variance
            (K, D) or covariance (K, D (D + 1) / 2), the lower triangle row by row, both of the component's own data
            about its mean; prior (3,); shift, scale (D,); concentration. Float32 is accepted everywhere.

        Raises
        ------
        SnapshotError
            Where an array is missing, of the wrong shape, not finite, or has values that no density has.
        """
        kind = arrays.get("kind")
        if kind is None or np.shape(kind) != () or int(kind) not in (0, 1):
            raise SnapshotError(f"mixture summary: kind is {kind}, not 0 (diagonal) or 1 (full)")
        spread = ("variance", "covariance")[int(kind)]
        names = ("id", "count", "mean", spread, "prior", "shift", "scale", "concentration")
        missing = [name for name in names if name not in arrays]
        if missing:
            raise SnapshotError(f"mixture summary: {', '.join(missing)} missing")
        k, d = np.size(arrays["id"]), np.size(arrays["shift"])
        n_spread = d if int(kind) == 0 else d * (d + 1) // 2
        shapes = {"id": (k,), "count": (k,), "mean": (k, d), spread: (k, n_spread), "prior": (3,)}
        shapes |= {"shift": (d,), "scale": (d,), "concentration": ()}
        for name, shape in shapes.items():
            if np.shape(arrays[name]) != shape:
                raise SnapshotError(f"mixture summary: {name} has shape {np.shape(arrays[name])}, not {shape}")
        for name in names:
            if not np.isfinite(arrays[name]).all():
                raise SnapshotError(f"mixture summary: {name} is not finite")
        if np.asarray(arrays["id"]).dtype.kind not in "iu":
            raise SnapshotError(f"mixture summary: id is {np.asarray(arrays['id']).dtype}, must be of whole numbers")
        if np.less(arrays["count"], 0.0).any():
            raise SnapshotError("mixture summary: a count is below 0")
        for name in ("prior", "scale", "concentration"):
            if not np.greater(arrays[name], 0.0).all():
                raise SnapshotError(f"mixture summary: {name} is not above 0")
        return cls(arrays)

    @staticmethod
    def _mean_weights(count: np.ndarray, alpha: float) -> np.ndarray:
        order = np.argsort(-count, kind="stable")
        logs, weight = np.zeros(len(count)), np.zeros(len(count))
        mixture_common.sticks_expectation(count, order, alpha, logs, weight)
        return np.append(weight, max(1.0 - weight.sum(), 1e-300))

    def _build_diagonal(self, count: np.ndarray, mean: np.ndarray, variance: np.ndarray, prior: np.ndarray) -> None:
        kappa = prior[STRENGTH] + count
        a = prior[SHAPE] + 0.5 * count
        scatter = np.vstack([variance * count[:-1, None], np.zeros((1, self.n_dims))])
        pull = prior[STRENGTH] * count / kappa
        b = prior[SCALE] + 0.5 * (scatter + pull[:, None] * mean**2)
        dof = 2.0 * a
        square = b * ((kappa + 1.0) / (a * kappa))[:, None] * self._scale**2
        log_norm = np.array([math.lgamma(v) for v in a + 0.5]) - np.array([math.lgamma(v) for v in a])
        log_norm = self.n_dims * (log_norm - 0.5 * np.log(dof * math.pi)) - 0.5 * np.log(square).sum(axis=1)
        self._constants = np.log(self.weights) + log_norm
        self._powers = a + 0.5
        self._means = np.ascontiguousarray((mean * (count / kappa)[:, None] * self._scale).T)
        self._scales = np.ascontiguousarray(1.0 / (dof[:, None] * square).T)

    def _build_full(self, count: np.ndarray, mean: np.ndarray, packed: np.ndarray, prior: np.ndarray) -> None:
        n, d = len(count), self.n_dims
        kappa = prior[STRENGTH] + count
        dof = prior[SHAPE] + count - d + 1.0
        self._whiten = np.zeros((n, d, d))
        self._offsets = np.zeros((n, d))
        log_det, factor = np.zeros(1), np.zeros((d, d))
        log_volume = float(np.log(self._scale).sum())
        constants = np.zeros(n)
        for k in range(n):
            scatter = packed[k] * count[k] if k < n - 1 else np.zeros(d * (d + 1) // 2)
            pull = prior[STRENGTH] * count[k] / kappa[k]
            mixture_full.factor_scale(scatter, pull, mean[k], prior[SCALE], factor, log_det)
            mixture_full.invert_lower(factor, self._whiten[k])
            # Scale matrix of the t: S (kappa + 1) / (kappa dof); whitened differences carry 1 / sqrt of that factor.
            spread = (kappa[k] + 1.0) / (kappa[k] * dof[k])
            self._whiten[k] /= math.sqrt(spread) * self._scale
            self._offsets[k] = self._whiten[k] @ (mean[k] * (count[k] / kappa[k]) * self._scale)
            constants[k] = math.lgamma(0.5 * (dof[k] + d)) - math.lgamma(0.5 * dof[k])
            constants[k] -= 0.5 * (d * math.log(dof[k] * math.pi * spread) + log_det[0]) + log_volume
        self._constants = np.log(self.weights) + constants
        self._powers = 0.5 * (dof + d)
        self._dofs = dof
        # One tall matrix: all components are whitened by one product.
        self._stacked = np.ascontiguousarray(self._whiten.reshape(n * d, d).T)
        del self._whiten

    def _arrays(self) -> list[np.ndarray]:
        own = [value for value in vars(self).values() if isinstance(value, np.ndarray)]
        return own + list(self.summary.values())

    def _centred(self, x: np.ndarray, block: int) -> Iterator[tuple[int, int, np.ndarray]]:
        """Yield (first row, rows, rows less the shift): `x` in blocks, in a workspace of this call alone."""
        x = np.ascontiguousarray(x, None if x.dtype in (np.float32, np.float64) else np.float64)
        block = min(block, len(x))
        rows = np.empty((block, self.n_dims))
        for first in range(0, len(x), max(block, 1)):
            n = min(block, len(x) - first)
            mixture_score.centre_rows(x, first, n, self._shift, FARTHEST, rows)
            yield first, n, rows

    def _blocks(self, x: np.ndarray) -> Iterator[tuple[int, int, np.ndarray]]:
        """Yield (first row, rows, log joints): rows of `x` in blocks, in workspaces of this call alone."""
        n_columns, is_full = self.n_components + 1, self.kind == "full"
        block = BLOCK if is_full else LONG_BLOCK
        out = np.empty((min(block, len(x)), n_columns))
        product = np.empty(n_columns)
        whitened = np.empty((len(out), n_columns * self.n_dims)) if is_full else None
        for first, n, rows in self._centred(x, block):
            if whitened is None:
                mixture_score.log_joint_diagonal(
                    rows, n, self._means, self._scales, self._constants, self._powers, product, out
                )
            else:
                np.matmul(rows[:n], self._stacked, out=whitened[:n])
                mixture_score.log_joint_full(whitened, self._offsets, n, self._constants, self._powers, self._dofs, out)
            yield first, n, out

    def log_joint(self, x: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write log(weight times density) of each row under each component; the last column is the mass left.

        x : ndarray of shape (n, n_dims), float32 or float64, finite
        out : ndarray of shape (n, n_components + 1), float32 or float64, written
        """
        for first, n, block in self._blocks(x):
            out[first : first + n] = block[:n]
        return out

    def label_samples(self, x: np.ndarray, label: np.ndarray) -> None:
        """Write the place (0 = largest) of the likeliest component of each row.

        x : ndarray of shape (n, n_dims);  label : (n,), int64, written
        """
        if self.kind == "full" or self.n_dims > mixture_score.FACTORS:
            for first, n, block in self._blocks(x):
                mixture_score.likeliest(block, n, self._n_named, label[first : first + n])
            return
        product, model = np.empty(self._n_named), (self._means, self._scales, self._constants, self._powers)
        for first, n, rows in self._centred(x, LONG_BLOCK):
            mixture_score.likeliest_diagonal(rows, n, *model, self._n_named, product, label[first : first + n])

    @property
    def _n_named(self) -> int:
        return max(self.n_components, 1)

    def score_samples(self, x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return the log predictive density of each row, in nats, in the units of the data.

        x : ndarray of shape (n, n_dims);  out : ndarray of shape (n,), float32 or float64, written where given
        """
        score = np.empty(len(x))
        for first, n, block in self._blocks(x):
            mixture_score.log_total(block, n, score[first : first + n])
        if out is None:
            return score
        out[:] = score
        return out

    def predict(self, x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return the id of the likeliest component of each row; -1 where there is none.

        x : ndarray of shape (n, n_dims);  out : ndarray of shape (n,), int64, written where given
        """
        label = np.empty(len(x), np.int64)
        self.label_samples(x, label)
        found = self.ids[label] if self.n_components else np.full(len(x), -1, np.int64)
        if out is None:
            return found
        out[:] = found
        return out

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        """Return posterior probabilities of shape (n, n_components), given that a row is of one of the components.

        A row sums to one; that it is of none of them `new_proba` says.
        """
        return _shares(self.log_joint(x, np.empty((len(x), self.n_components + 1)))[:, :-1])

    def new_proba(self, x: np.ndarray) -> np.ndarray:
        """Return the posterior probability of shape (n,) that a row is of no component seen so far."""
        return _shares(self.log_joint(x, np.empty((len(x), self.n_components + 1))))[:, -1]

    @staticmethod
    def bytes_of(covariance: str, n_dims: int, n_components: int) -> int:
        """Return the bytes that a snapshot with so many components takes."""
        d, k = n_dims, n_components
        summary = 6 + 2 * d + k * (4 + d + (d if covariance == "diagonal" else d * (d + 1) // 2))
        density = k + 2 * d + (k + 1) * (3 + 2 * d if covariance == "diagonal" else 4 + d + d * d)
        return 8 * (summary + density)

    def memory_bytes(self) -> int:
        """Return the bytes of this snapshot's arrays."""
        return sum(array.nbytes for array in self._arrays())
