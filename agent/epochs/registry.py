"""The table of learners: which ones run, what each learns from, and how what it learnt is shown.

Read by agent/epochs/schedule.py, which runs them, and agent/epochs/report.py, which tells what they learnt. A learner
is added by a row at the end: nothing else asks for learners by name, but those who score with PATCHES, SCENES, TOPICS.
"""

import enum
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

import numpy as np

from stillwatch.epochs.buffer import NOTE_BYTES, PAYLOAD_HEADER, unpack_payload
from stillwatch.learn import EXAMPLE_KINDS, ComponentExemplars, MemoryBoundedMixture, MemoryBoundedTopics, StreamGreedy
from stillwatch.settings import Config, MixtureConfig, TopicsConfig

PATCHES, SCENES = "patches", "scenes"  # the mixtures that score patches, and whole views
TOPICS = "topics"  # what is in view
CROP_BYTES = 3000  # of what a word shows
FRAME_EXEMPLARS = "exemplars"  # the frames that an alert may be compared with
EVERY_EPOCH = math.inf
SHORT_EPOCHS = 4  # learners of frames have one sample a frame: at first they learn early from the little there is


class Samples(enum.Enum):
    """What a learner learns from."""

    PATCH_ROWS = "patch rows"  # a sample of each frame's rows, as they are scored
    FRAMES = "frame descriptors"
    FRAMES_WITH_PICTURES = "frame descriptors with thumbnails"
    WORDS = "words, by frame"
    WORDS_WITH_CROPS = "words that were cut out, and what another learner's newest model says of them"
    EXAMPLES = "frame descriptors with thumbnails, and what another learner's newest model says of them"


@dataclass(frozen=True, slots=True)
class ShownModel:
    """Shown as a Model message of the learner's name; its snapshot is one of `Models`, and can score."""

    most_sent: int  # largest components that go into a message


@dataclass(frozen=True, slots=True)
class ShownExemplars:
    """Shown as Exemplar messages, each once; ids begin at `first_id`, so that no two learners share one."""

    role: str
    first_id: int = 0


@dataclass(frozen=True, slots=True)
class ShownExamples:
    """Shown as Exemplar messages that say which component of the mixture `of` they are examples of.

    Their role is the kind of example, behind `prefix`; only those of `kinds` are told.
    """

    of: str
    first_id: int
    patience: int  # epochs between two messages about one component's examples
    prefix: str = ""
    kinds: tuple[str, ...] = EXAMPLE_KINDS

    def id_of(self, component: int, kind: str) -> int:
        """Return the id of a component's example of one kind: none is ever used for another."""
        return self.first_id + component * len(EXAMPLE_KINDS) + EXAMPLE_KINDS.index(kind)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Widths of what learners are given, and the seed of one learner."""

    n_patch_dims: int
    n_word_dims: int
    n_frame_dims: int
    payload_bytes: int
    seed: int


@dataclass(frozen=True, slots=True)
class LearnerRow:
    """One learner. `title` names it where memory is listed; `section` is what of the config `make` is given."""

    name: str
    title: str
    learns_from: Samples
    section: str
    make: Callable[[Any, Sizes], Any]
    shown: ShownModel | ShownExemplars | ShownExamples
    flushed: float = EVERY_EPOCH  # epochs, from the first, after which it learns what waits in its own buffer
    is_required: bool = False  # no model becomes active before this one's first
    is_long: bool = False  # most of an epoch's time: taught in another process, where there is one
    snapshot: Callable[[Any], Any] = lambda learner: learner.predictive()  # what of a ShownModel's learner scores


@dataclass(frozen=True, slots=True)
class EpochSamples:
    """One epoch as the learners are given it.

    rows : (n, n_patch_dims), frames : (m, n_frame_dims), words : (w, n_word_dims), float32
    documents : (w,) int64, number of each word's frame
    cropped : (c,) int64, places among the words of those that were cut out, whose payloads are `crops`
    """

    rows: np.ndarray
    frames: np.ndarray
    payloads: list[bytes]
    words: np.ndarray
    documents: np.ndarray
    cropped: np.ndarray
    crops: list[bytes]


def teach(row: LearnerRow, learners: Mapping[str, Any], samples: EpochSamples, epoch: int) -> None:
    """Let one learner of `learners` learn an epoch; those before it in the table have learnt it already."""
    learner = learners[row.name]
    match row.learns_from:
        case Samples.PATCH_ROWS:
            learner.partial_fit(samples.rows)
        case Samples.FRAMES:
            learner.partial_fit(samples.frames)
        case Samples.FRAMES_WITH_PICTURES:
            learner.partial_fit(samples.frames, payload=samples.payloads)
        case Samples.WORDS:
            learner.partial_fit(samples.words, groups=samples.documents)
        case Samples.EXAMPLES | Samples.WORDS_WITH_CROPS:
            assert isinstance(row.shown, ShownExamples)
            is_words = row.learns_from is Samples.WORDS_WITH_CROPS
            rows, payloads = (
                (samples.words[samples.cropped], samples.crops) if is_words else (samples.frames, samples.payloads)
            )
            _offer_examples(learner, learners[row.shown.of], rows, payloads)
            return
    if epoch < row.flushed:
        learner.flush()


def side_by_side(table: tuple[LearnerRow, ...]) -> list[list[LearnerRow]]:
    """Return the rows in groups that know nothing of each other: a learner, and after it those that look at it."""
    groups: dict[str, list[LearnerRow]] = {}
    for row in table:
        groups.setdefault(row.shown.of if isinstance(row.shown, ShownExamples) else row.name, []).append(row)
    return list(groups.values())


def _offer_examples(
    examples: ComponentExemplars,
    learner: MemoryBoundedMixture | MemoryBoundedTopics,
    rows: np.ndarray,
    payloads: list[bytes],
) -> None:
    """Let the epoch's rows be examples of the components they belong to, as the newest model sees them."""
    model = learner.predictive()
    if model is None or model.n_components == 0:
        return
    examples.rescore(lambda rows: (model.predict(rows), model.score_samples(rows)))
    numbers = np.array([unpack_payload(payload)[0] for payload in payloads], np.int64)
    examples.offer(rows, model.predict(rows), model.score_samples(rows), numbers, payloads)


# -- how each is made from its section of the config -----------------------------------------------------------


_BOTH = ("memory", "epoch_size", "prior_scale", "max_components", "max_iterations")
_OF_MIXTURE = (*_BOTH, "horizon", "concentration")
_OF_TOPICS = (*_BOTH, "document_groups", "least_gain")


def _given(settings: MixtureConfig | TopicsConfig, names: Sequence[str]) -> dict[str, Any]:
    """Return the settings that learner and config call by one name, and the half-life: 0 in the config is none."""
    return {name: getattr(settings, name) for name in names} | {"halflife": settings.halflife or None}


def _mixture(
    settings: MixtureConfig, n_dims: int, covariance: Literal["diagonal", "full"], seed: int
) -> MemoryBoundedMixture:
    return MemoryBoundedMixture(covariance=covariance, seed=seed, **_given(settings, _OF_MIXTURE)).allocate(n_dims)


def _topics(settings: TopicsConfig, n_dims: int, seed: int) -> MemoryBoundedTopics:
    return MemoryBoundedTopics(covariance="full", seed=seed, **_given(settings, _OF_TOPICS)).allocate(n_dims)


def _exemplars(settings: Any, sizes: Sizes) -> StreamGreedy:
    return StreamGreedy(
        k=settings.k,
        block=settings.block,
        validation=settings.validation,
        minimum_gain=settings.minimum_gain,
        payload_bytes=sizes.payload_bytes,
        seed=sizes.seed,
    ).allocate(sizes.n_frame_dims)


# Taught in this order. The place seeds a learner (agent.seed and the place): a row once here keeps its place.
LEARNERS = (
    LearnerRow(
        PATCHES,
        "patch mixture",
        Samples.PATCH_ROWS,
        "patches",
        lambda settings, sizes: _mixture(settings, sizes.n_patch_dims, "diagonal", sizes.seed),
        ShownModel(most_sent=200),
        is_required=True,
        is_long=True,
    ),
    LearnerRow(
        SCENES,
        "scene mixture",
        Samples.FRAMES,
        "scenes",
        lambda settings, sizes: _mixture(settings, sizes.n_frame_dims, "full", sizes.seed),
        ShownModel(most_sent=60),
        flushed=SHORT_EPOCHS,
    ),
    LearnerRow(
        FRAME_EXEMPLARS,
        "exemplars",
        Samples.FRAMES_WITH_PICTURES,
        "exemplars",
        _exemplars,
        ShownExemplars(role="frame"),
        flushed=SHORT_EPOCHS,
    ),
    LearnerRow(
        "scene_exemplars",
        "scene exemplars",
        Samples.EXAMPLES,
        "scenes",
        lambda settings, sizes: ComponentExemplars(
            sizes.n_frame_dims, max_components=settings.max_components, payload_bytes=sizes.payload_bytes
        ),
        ShownExamples(of=SCENES, first_id=1 << 32, patience=8, kinds=("most_typical",)),  # whole pictures, 5 kB each
    ),
    LearnerRow(
        TOPICS,
        "topic model",
        Samples.WORDS,
        "topics",
        lambda settings, sizes: _topics(settings, sizes.n_word_dims, sizes.seed),
        ShownModel(most_sent=60),
        is_long=True,
        snapshot=lambda learner: learner.shares_model(),
    ),
    LearnerRow(
        "topic_examples",
        "topic examples",
        Samples.WORDS_WITH_CROPS,
        "topics",
        lambda settings, sizes: ComponentExemplars(
            sizes.n_word_dims, max_components=settings.max_components, payload_bytes=CROP_BYTES + PAYLOAD_HEADER.size
        ),
        ShownExamples(of=TOPICS, first_id=1 << 33, patience=16, prefix="topic_"),
    ),
)


def payload_bytes(config: Config) -> int:
    """Return the room for one frame's payload: a thumbnail, where it came from, and a note."""
    return config.exemplars.thumbnail_bytes + PAYLOAD_HEADER.size + NOTE_BYTES


class Widths(TypedDict):
    """Columns of what learners are given."""

    n_patch_dims: int
    n_word_dims: int
    n_frame_dims: int


def make_learners(
    config: Config,
    *,
    n_patch_dims: int,
    n_word_dims: int,
    n_frame_dims: int,
    table: tuple[LearnerRow, ...] = LEARNERS,
    only: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return the table's learners by name, or those of some names, each made from its section of the config."""
    return {
        row.name: row.make(
            getattr(config, row.section),
            Sizes(n_patch_dims, n_word_dims, n_frame_dims, payload_bytes(config), config.agent.seed + place),
        )
        for place, row in enumerate(table)
        if only is None or row.name in only
    }
