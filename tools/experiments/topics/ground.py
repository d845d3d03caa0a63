"""Topics against the ground of made transects: do the labels of patches say which texture each shows?

Called by tools/experiments/topics/command.py. It plays the whole agent, and must not tell it the truth.
"""

from collections.abc import Iterator
from typing import Any

import cv2
import numpy as np

from stillwatch.base import Frame, RealClock
from stillwatch.pipeline import Nowhere, Pipeline
from stillwatch.settings import Config, SourceConfig
from stillwatch.worlds import ANIMAL, Transect, make_world

WIDTH, HEIGHT = 384, 288
LEAST_SHARE = 0.01  # of all words: topics with less are not counted
NOT_KNOWN = -1  # label of a word that was seen before the first model


def rows_of(seed: int, n_frames: int) -> Iterator[dict[str, Any]]:
    """Yield ARI of the words' labels against the painted ground, animals left out: as told, then by the last model.

    "as told" is by the model of the time, over all frames with a model and over the second half of the transect: a
    ground that comes for the first time is without a topic until an epoch has been learnt.
    """
    from sklearn.metrics import adjusted_rand_score

    world = make_world("transect", seed, n_frames=n_frames, width=WIDTH, height=HEIGHT)
    assert isinstance(world, Transect)
    pipeline = Pipeline(Config(source=SourceConfig(width=WIDTH, height=HEIGHT)), Nowhere(), RealClock())
    words, told, truth, half = [], [], [], 0
    cv2.setNumThreads(1)
    for i in range(n_frames):
        picture = world.render(i)
        grey, t_ns = cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY), round(1e9 * i / world.rate_hz)
        described = pipeline.describe(Frame(grey, picture, None, t_ns, mono_ns=0, wall_ns=0, sequence=i, epoch=0))
        rows = described.rows
        if rows is not None and rows.ready:
            found = pipeline.contents.look(rows, pipeline.learners.models)
            told.append(np.full(len(rows.words), NOT_KNOWN) if found is None else found.ids[found.labels.ravel()])
            words.append(rows.words.copy())
            truth.append(_ground_of(world.ground(i), [rows.word_centre(word) for word in range(len(rows.words))]))
            half += i < n_frames // 2
        pipeline.take(described)
    pipeline.finish()
    models = pipeline.learners.models
    pipeline.close()
    last = np.zeros((len(words), 0), np.int64)
    if models is not None and models.topics is not None:
        topics = models.topics
        last = np.array([topics.corpus.ids[topics.segment(frame)[1]] for frame in words])
    shown = np.array(truth)
    shares = np.unique(last, return_counts=True)[1] / max(last.size, 1)
    for method, first, labels in (
        ("as told", 0, np.array(told)),
        ("as told, second half", half, np.array(told)),
        ("last model", 0, last),
    ):
        asked = (shown[first:] != ANIMAL) & (labels[first:] != NOT_KNOWN)
        yield {
            "method": f"{method}, seed {seed}",
            "documents": len(words) - first,
            "topics": int((shares > LEAST_SHARE).sum()),
            "ari": float(adjusted_rand_score(shown[first:][asked], labels[first:][asked])),
        }


def _ground_of(ground: np.ndarray, centres: list[tuple[float, float]]) -> np.ndarray:
    """Return what the middle of each word shows."""
    x, y = np.array(centres).T
    return ground[(y * len(ground)).astype(np.int64), (x * ground.shape[1]).astype(np.int64)]
