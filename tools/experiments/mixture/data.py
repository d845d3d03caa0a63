"""The data of the mixture experiments: synth50, digits20, MNIST in 50 dimensions, patches of images.

Called by tools/experiments/mixture/command.py, benches and tests. It must not learn anything but the preprocessing.
"""

import pathlib
from dataclasses import dataclass

import numpy as np

from stillwatch.tools.shared import read_image


@dataclass(frozen=True)
class DataSet:
    """Rows to learn and rows held out, with labels where they exist.

    train, test : ndarray of shape (n, n_dims), float32 or float64
    train_labels, test_labels : ndarray of shape (n,), int64, or None
    """

    train: np.ndarray
    test: np.ndarray
    train_labels: np.ndarray | None = None
    test_labels: np.ndarray | None = None

    def ordered(self, order: str) -> "DataSet":
        """Return the data with training rows as they are ("shuffled") or stably sorted by label ("sorted")."""
        if order == "shuffled":
            return self
        if self.train_labels is None:
            raise ValueError("rows without labels cannot be sorted by label")
        return self._take(np.argsort(self.train_labels, kind="stable"))

    def shuffled(self, seed: int) -> "DataSet":
        """Return the training rows in another random order; seed 0 keeps theirs."""
        if seed == 0:
            return self
        return self._take(np.random.default_rng(seed).permutation(len(self.train)))

    def first(self, n_rows: int) -> "DataSet":
        """Return only the first training rows; all of them for 0."""
        return self._take(np.arange(n_rows)) if 0 < n_rows < len(self.train) else self

    def _take(self, rows: np.ndarray) -> "DataSet":
        labels = None if self.train_labels is None else self.train_labels[rows]
        return DataSet(self.train[rows], self.test, labels, self.test_labels)


def synth50(n_rows: int = 60_000) -> DataSet:
    """Return 20 rotated Gaussians in 50 dimensions; the last tenth is held out. 60,000 rows are the full set."""
    rng = np.random.default_rng(7)
    weights = rng.dirichlet(np.full(20, 3.0))
    means = rng.normal(scale=1.1, size=(20, 50))
    covariances = []
    for _ in range(20):
        rotation = np.linalg.qr(rng.normal(size=(50, 50)))[0]
        values = np.exp(rng.uniform(np.log(0.15), np.log(3.0), 50))
        covariances.append((rotation * values) @ rotation.T)
    labels = rng.choice(20, 60_000, p=weights)
    rows = np.empty((60_000, 50))
    for k in range(20):
        mine = labels == k
        rows[mine] = rng.multivariate_normal(means[k], covariances[k], mine.sum(), method="cholesky")
    n_train = n_rows * 9 // 10
    return DataSet(
        rows[:n_train],
        rows[54_000 : 54_000 + n_rows - n_train],
        labels[:n_train],
        labels[54_000 : 54_000 + n_rows - n_train],
    )


def digits20() -> DataSet:
    """Return scikit-learn's digits in 20 dimensions: 1,437 to train, 360 held out."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.data))
    rows, labels = digits.data[order], digits.target[order].astype(np.int64)
    train = rows[:1437]
    mean = train.mean(axis=0)
    basis = np.linalg.svd(train - mean, full_matrices=False)[2][:20].T
    rows = (rows - mean) @ basis
    return DataSet(rows[:1437], rows[1437:], labels[:1437], labels[1437:])


def mnist50(data: pathlib.Path, n_train: int = 60_000, *, unit_deviation: bool = True) -> DataSet:
    """Return MNIST less its training mean, unit norm, 50 principal components, unit overall deviation if wanted."""
    with np.load(data / "mnist" / "mnist.npz") as file:
        train = file["x_train"].reshape(60_000, 784).astype(np.float32)
        test = file["x_test"].reshape(10_000, 784).astype(np.float32)
        train_labels, test_labels = file["y_train"].astype(np.int64), file["y_test"].astype(np.int64)
    mean = train.mean(axis=0)
    for images in (train, test):
        images -= mean
        images /= np.linalg.norm(images, axis=1, keepdims=True)
    basis = np.linalg.eigh((train.T @ train).astype(np.float64))[1][:, :-51:-1].astype(np.float32)
    train, test = train @ basis, test @ basis
    deviation = np.sqrt(train.var(axis=0).mean()) if unit_deviation else np.float32(1.0)
    return DataSet(train[:n_train] / deviation, test / deviation, train_labels[:n_train], test_labels)


def patches49(data: pathlib.Path, n_rows: int = 330_000, seed: int = 0) -> DataSet:
    """Return 7 x 7 grey patches of the shared images and clips: zero mean, unit norm, low contrast ones left out.

    Photos give all their patches on a grid, clips a frame every two seconds; a tenth more is held out.
    """
    images = _photos(data) + _clip_frames(data)
    rng = np.random.default_rng(seed)
    n_all = n_rows + n_rows // 10
    share = n_all // len(images) + 1
    parts = []
    for image in images:
        windows = np.lib.stride_tricks.sliding_window_view(image, (7, 7))
        h, w = windows.shape[:2]
        picks = rng.integers(0, h * w, 3 * share)
        rows = windows[picks // w, picks % w].reshape(-1, 49).astype(np.float32)
        rows -= rows.mean(axis=1, keepdims=True)
        rows = rows[rows.std(axis=1) > 4.0][: 2 * share]
        parts.append(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    rows = np.concatenate(parts)
    rows = rows[rng.permutation(len(rows))]
    n_rows = min(n_rows, len(rows) * 10 // 11)
    return DataSet(rows[:n_rows], rows[n_rows : n_rows + n_rows // 10])


def _photos(data: pathlib.Path) -> list[np.ndarray]:
    paths = sorted((data / "underwater").glob("*/*.jpg"))
    images = [read_image(path, grey=True) for path in paths]
    return [image for image in images if image is not None]


def _clip_frames(data: pathlib.Path) -> list[np.ndarray]:
    import av

    frames = []
    for path in sorted([*(data / "surveillance").glob("*.mp4"), *(data / "underwater").glob("*.mp4")]):
        with av.open(str(path)) as clip:
            every = max(round(2 * float(clip.streams.video[0].average_rate or 10)), 1)
            for index, frame in enumerate(clip.decode(video=0)):
                if index % every == 0:
                    frames.append(frame.to_ndarray(format="gray"))
    return frames
