"""The corpora of the topic experiments: made ones with known topics, pixels of motorbikes, descriptors of Caltech.

Called by tools/experiments/topics/command.py. It must not know a model.
"""

import pathlib
import zipfile
from dataclasses import dataclass

import cv2
import numpy as np

HALF = 2  # of a held-out document, every second word tells its shares and the others are scored
N_DESCRIPTORS, DIMS = 500, 32  # of a picture, and what PCA leaves of 128 values
SIZES = (8.0, 40.0)  # pixels across: of the patches that descriptors are taken from, drawn evenly in the logarithm


@dataclass(frozen=True)
class Corpus:
    """Words, the document of each, and what is known of them.

    Attributes
    ----------
    words : ndarray of shape (n, n_dims), float64
    documents : ndarray of shape (n,), int64, rising
    topics : ndarray of shape (n,), int64, or None
        True topics of words.
    labels : ndarray of shape (n_documents,), int64, or None
        True classes of documents.
    """

    words: np.ndarray
    documents: np.ndarray
    topics: np.ndarray | None = None
    labels: np.ndarray | None = None

    @property
    def n_documents(self) -> int:
        return int(self.documents[-1]) + 1

    def part(self, chosen: np.ndarray) -> "Corpus":
        """Return some documents, in the order given, numbered anew."""
        rows = [np.flatnonzero(self.documents == j) for j in chosen]
        flat = np.concatenate(rows)
        return Corpus(
            self.words[flat],
            np.repeat(np.arange(len(chosen)), [len(row) for row in rows]),
            None if self.topics is None else self.topics[flat],
            None if self.labels is None else self.labels[chosen],
        )


def synthetic(seed: int, n_documents: int = 200, n_words: int = 100, n_topics: int = 10, n_dims: int = 5) -> Corpus:
    """Return a corpus of an HDP's kind: topics shared by all documents, few of them in each."""
    rng = np.random.default_rng(seed)
    means, deviations = rng.normal(0.0, 4.2, (n_topics, n_dims)), rng.uniform(0.5, 1.5, (n_topics, n_dims))
    weights = rng.dirichlet(np.full(n_topics, 3.0))
    topics = np.array([rng.choice(n_topics, n_words, p=rng.dirichlet(3.0 * weights)) for _ in range(n_documents)])
    topics = topics.ravel()
    words = means[topics] + deviations[topics] * rng.normal(size=(len(topics), n_dims))
    return Corpus(words, np.repeat(np.arange(n_documents), n_words), topics)


def sorted_by_topic(corpus: Corpus) -> Corpus:
    """Return the documents in the order of their main topic."""
    assert corpus.topics is not None
    main = [np.bincount(corpus.topics[corpus.documents == j]).argmax() for j in range(corpus.n_documents)]
    return corpus.part(np.argsort(main, kind="stable"))


def motorbike_pixels(data: pathlib.Path, n_pictures: int, n_pixels: int, seed: int = 0) -> Corpus:
    """Return pixels of motorbikes as x, y from the centre and L, a, b, each column over its deviation."""
    words = []
    with zipfile.ZipFile(data / "caltech" / "motorbikes.zip") as pictures:
        names = sorted(pictures.namelist())[:n_pictures]
        for place, name in enumerate(names):
            bgr = cv2.imdecode(np.frombuffer(pictures.read(name), np.uint8), cv2.IMREAD_COLOR)
            assert bgr is not None, name
            lab = cv2.cvtColor(bgr.astype(np.float32) / 255.0, cv2.COLOR_BGR2Lab)
            height, width = lab.shape[:2]
            chosen = np.random.default_rng([seed, place]).choice(height * width, n_pixels, replace=False)
            y, x = np.divmod(np.sort(chosen), width)
            words.append(np.column_stack([x - 0.5 * width, y - 0.5 * height, lab[y, x]]))
    flat = np.concatenate(words)
    return Corpus(flat / flat.std(axis=0), np.repeat(np.arange(len(words)), n_pixels))


def caltech(data: pathlib.Path, n_classes: int, seed: int = 0) -> tuple[Corpus, Corpus]:
    """Return training and test pictures as SIFT descriptors at random places and sizes, reduced by PCA of training.

    n_classes : the first so many of the class folders' names
    """
    found = [
        _pictures(data / "caltech" / name, n_classes, seed + place) for place, name in enumerate(("train", "test"))
    ]
    train = found[0][0]
    shift = train.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(train[:: max(len(train) // 100_000, 1)].T))
    basis = vectors[:, np.argsort(-values)[:DIMS]]
    first, second = (
        Corpus((words - shift) @ basis, np.repeat(np.arange(len(labels)), N_DESCRIPTORS), None, labels)
        for words, labels in found
    )
    return first, second


def _pictures(path: pathlib.Path, n_classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    words, labels = [], []
    sift = cv2.SIFT.create()
    with zipfile.ZipFile(path.with_suffix(".zip")) as pictures:
        names = sorted(name for name in pictures.namelist() if name.endswith(".jpg"))
        classes = sorted({name.partition("/")[0] for name in names})[:n_classes]
        for place, name in enumerate(names):
            label = name.partition("/")[0]
            if label not in classes:
                continue
            grey = cv2.imdecode(np.frombuffer(pictures.read(name), np.uint8), cv2.IMREAD_GRAYSCALE)
            assert grey is not None, name
            words.append(_descriptors(sift, grey, np.random.default_rng([seed, place])))
            labels.append(classes.index(label))
    return np.concatenate(words), np.array(labels)


def _descriptors(sift: cv2.SIFT, grey: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    height, width = grey.shape
    x, y = rng.uniform(0, width, N_DESCRIPTORS), rng.uniform(0, height, N_DESCRIPTORS)
    smallest, largest = (float(np.log(size)) for size in SIZES)
    sizes = np.exp(rng.uniform(smallest, largest, N_DESCRIPTORS))
    points = [cv2.KeyPoint(float(a), float(b), float(size), 0.0) for a, b, size in zip(x, y, sizes, strict=True)]
    _, rows = sift.compute(grey, points)
    assert rows is not None
    assert len(rows) == N_DESCRIPTORS
    return np.sqrt(rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-9)).astype(np.float64)  # RootSIFT
