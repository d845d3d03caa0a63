"""Topic shares of frames, and how rare they are among the frames of this camera.

Called by agent/pipeline/pipeline.py with accepted frames: `look` before the learners see one, `settle` once it is known
whether an event is open. It must not decide what is told.
"""

import math
from dataclasses import dataclass

import numpy as np

from stillwatch.base import Composed, RecordPart, Stage, saved
from stillwatch.contents.topic_map import NO_TOPIC, TopicMap
from stillwatch.epochs import Models
from stillwatch.features import Rows
from stillwatch.learn import TopicPredictive
from stillwatch.novelty import SETTLING_FRAMES, RarityCalibration, RunningSpread
from stillwatch.settings import Config

NS = 1e9  # nanoseconds a second
MASKED = -1  # label of a word that shows nothing
INDEPENDENT = 30.0  # words that a frame's are worth: neighbours show the same thing
LEAST_SPREAD = 0.5  # of the model's own deviations: frames of a view that never changes differ by next to nothing
LEAST_LOOKS = 60  # looks until rarity is believed: what is usual as a whole takes a minute to see
LEAST_DEVIATION = 0.5  # nats: of a model that expects the same of all frames
LEAST_TOPICS = 2  # of a model, from which on a map says something
MAP_WORDS = 600  # of a frame, up to which a map has a cell for each
DRAWS = 64  # frames drawn from a model to know what it expects


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in view in one frame.

    Attributes
    ----------
    ids : ndarray of shape (K,), int64
        Of the topics, the largest of the model first.
    shares : ndarray of shape (K,), float64
        Of the frame; they sum to one.
    labels : ndarray of shape (rows, columns), int64
        Place in `ids` of what each word shows; MASKED where it shows nothing.
    statistic : float
        Surprise of the shares under the model's Dirichlet, in deviations above what the model expects of a frame.
    value : float
        Deviations of the statistic above what frames usually have; 0 while learning.
    rarity : float
        One frame in this many has such shares; 1 while learning.
    topic : int
        Id of the topic that is most above its usual share.
    """

    ids: np.ndarray
    shares: np.ndarray
    labels: np.ndarray
    statistic: float
    value: float
    rarity: float
    topic: int


@dataclass
class _Looked:
    """Stream time of the last frame looked at, -1 before the first, how many were, and the number of their view."""

    t_ns: int = saved(-1, low=-1)
    frames: int = saved(0, low=0)
    view: int = saved(0, low=0)


class ViewContents(Composed):
    """Looks at a frame every so often, and remembers how surprising its shares were.

    Parameters
    ----------
    config : Config
    """

    _where = "contents"

    def __init__(self, config: Config):
        self._every_s = config.topics.share_every_s
        self._halflife_s = config.novelty.halflife_s
        self._spread, self._calibration = self._unknown()
        self._looked = _Looked()
        self._seed = config.agent.seed
        self._expected: tuple[TopicPredictive | None, float, float] = (None, 0.0, 1.0)  # of a model: mean, deviation

    def _unknown(self) -> tuple[RunningSpread, RarityCalibration]:
        """Return what is believed of a view before it was looked at."""
        return RunningSpread(self._halflife_s, LEAST_SPREAD, LEAST_SPREAD), RarityCalibration(self._halflife_s)

    def is_due(self, t_ns: int) -> bool:
        """Whether the frame at stream time `t_ns` is to be told of and judged."""
        before = self._looked.t_ns
        return before < 0 or not 0 <= t_ns - before < self._every_s * NS

    def look(self, rows: Rows, models: Models | None) -> Contents | None:
        """Return what is in view, None where no topics are known or nothing is to be seen; it teaches nothing."""
        topics = None if models is None else models.topics
        if topics is None or not rows.ready or not len(topics.alpha) or not rows.word_valid.any():
            return None
        zeta, found = topics.segment(rows.words[rows.word_valid])
        labels = np.full(len(rows.words), MASKED, np.int64)
        labels[rows.word_valid] = found
        shares = zeta / zeta.sum()
        statistic = self._above_expected(surprise_of(shares, topics), topics)
        known = self._looked.frames >= LEAST_LOOKS and rows.view == self._looked.view
        value = self._spread.standardise(statistic) if known else 0.0
        usual = topics.alpha / topics.alpha.sum()
        return Contents(
            ids=topics.corpus.ids,
            shares=shares,
            labels=labels.reshape(rows.word_shape),
            statistic=statistic,
            value=value,
            rarity=self._calibration.rarity(value) if known else 1.0,
            topic=int(topics.corpus.ids[np.argmax(shares * np.log(shares / usual))]),
        )

    def map_of(self, rows: Rows, models: Models | None) -> TopicMap | None:
        """Return which topic each part of a frame most likely shows, None where fewer than two topics are known.

        Each word by itself, of any frame: a look, which weighs them together, costs twenty times as much. Of a frame of
        many words every second one across and down.
        """
        topics = None if models is None else models.topics
        if topics is None or not rows.ready or len(topics.alpha) < LEAST_TOPICS:
            return None
        step = 1 if len(rows.words) <= MAP_WORDS else 2
        grid = np.arange(len(rows.words)).reshape(rows.word_shape)[::step, ::step]
        asked = grid[rows.word_valid[grid]]
        labels = np.full(len(rows.words), NO_TOPIC, np.uint8)
        if len(asked):
            labels[asked] = topics.places(rows.words[asked])
        return TopicMap(labels[grid], topics.corpus.ids)

    def _above_expected(self, surprise: float, topics: TopicPredictive) -> float:
        """Return a surprise in deviations above what the model expects: each epoch has another alpha.

        What it expects is measured on frames drawn from it, always the same ones.
        """
        if self._expected[0] is not topics:
            rng = np.random.default_rng([self._seed, DRAWS])
            drawn = [surprise_of(shares, topics) for shares in rng.dirichlet(topics.alpha, DRAWS)]
            self._expected = topics, float(np.mean(drawn)), float(np.std(drawn))
        _, mean, deviation = self._expected
        return (surprise - mean) / max(deviation, LEAST_DEVIATION)

    def settle(self, contents: Contents | None, t_ns: int, *, view: int, in_event: bool) -> None:
        """Let a frame that was due teach what shares are usual; events teach nothing, and another view all anew."""
        looked = self._looked
        looked.t_ns = max(t_ns, 0)
        if view != looked.view:
            looked.view, looked.frames = view, 0
            self._spread, self._calibration = self._unknown()
        if contents is None:
            return
        if not in_event:
            if looked.frames > SETTLING_FRAMES:
                self._calibration.learn(self._spread.standardise(contents.statistic), t_ns)
            self._spread.learn(contents.statistic, t_ns)
        looked.frames += 1

    # -- state -----------------------------------------------------------------------------------------------

    def _parts(self) -> dict[str, Stage]:
        return {
            "spread": self._spread,
            "calibration": self._calibration,
            "looked": RecordPart(self._looked, "contents: looked at"),
        }

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of what is remembered."""
        return {"contents": self.parts_bytes()}


def surprise_of(shares: np.ndarray, topics: TopicPredictive) -> float:
    """Return minus the log probability of a frame's shares, as INDEPENDENT words, under the model's Dirichlet, nats.

    The Dirichlet compound multinomial of counts (thesis 3.12, pi integrated out), without the number of orders: a frame
    is not rare because many arrangements of its words would give the same shares.
    """
    alpha, counts = topics.alpha, INDEPENDENT * shares
    total = float(alpha.sum())
    found = math.lgamma(total) - math.lgamma(total + INDEPENDENT)
    found += sum(math.lgamma(a + n) - math.lgamma(a) for a, n in zip(alpha.tolist(), counts.tolist(), strict=True))
    return -found
