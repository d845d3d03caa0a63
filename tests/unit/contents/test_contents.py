"""What is in view: shares of topics in a frame, what each word shows, and how rare such a frame is here."""

import dataclasses
import math

import numpy as np
import pytest

from stillwatch.base.camera import MOVING
from stillwatch.contents import NO_TOPIC, TopicMap, ViewContents
from stillwatch.contents.contents import INDEPENDENT, LEAST_LOOKS, MASKED, surprise_of
from stillwatch.epochs import Models
from stillwatch.features import Rows
from stillwatch.learn import MemoryBoundedTopics
from stillwatch.settings import Config

NS = 10**9
GRID = (6, 8)
N = GRID[0] * GRID[1]
PLACES = {"sand": -4.0, "rock": 4.0}


def words(rng, n_rock):
    """The words of a frame: sand, and some of rock at the end."""
    centre = np.where(np.arange(N)[:, None] < N - n_rock, PLACES["sand"], PLACES["rock"])
    return rng.normal(centre, 0.5, (N, 3)).astype(np.float32)


def rows_of(found, valid=None):
    nothing = np.zeros((0, 3), np.float32)
    word_valid = np.ones(N, bool) if valid is None else valid
    flags = np.zeros(0, bool)
    return Rows(nothing, nothing, flags, nothing, (0, 0), nothing, nothing, MOVING, True, found, word_valid, GRID)


@pytest.fixture(scope="module")
def models():
    rng = np.random.default_rng(0)
    topics = MemoryBoundedTopics(covariance="full", memory=4000, epoch_size=2000)
    documents = [words(rng, 12 if i % 10 == 0 else 1) for i in range(40)]
    topics.fit(np.concatenate(documents), groups=np.repeat(np.arange(40), N))
    assert topics.n_components_ == 2
    model = topics.shares_model()
    return Models({"topics": model}, epoch=1, activated_frame=0)


def test_shares_are_those_of_the_words_and_each_word_has_its_topic(models):
    found = ViewContents(Config()).look(rows_of(words(np.random.default_rng(1), 12)), models)
    assert found.shares == pytest.approx([0.75, 0.25], abs=0.03)  # alpha counts too
    assert np.array_equal(found.labels.ravel(), np.repeat([0, 1], [N - 12, 12]))
    assert np.array_equal(found.ids, models["topics"].ids)


def test_masked_words_count_for_nothing_and_show_nothing(models):
    valid = np.arange(N) < N - 12
    found = ViewContents(Config()).look(rows_of(words(np.random.default_rng(1), 12), valid), models)
    assert found.shares[1] < 0.05
    assert (found.labels.ravel() == MASKED).sum() == 12


def test_a_map_says_of_each_part_of_a_frame_what_it_shows_and_survives_as_bytes(models):
    valid = np.arange(N) >= 8
    rows = rows_of(words(np.random.default_rng(1), 12), valid)
    shown = ViewContents(Config()).map_of(rows, models)
    assert np.array_equal(shown.labels.ravel(), np.repeat([NO_TOPIC, 0, 1], [8, N - 20, 12]))
    assert np.array_equal(shown.ids, models["topics"].ids)
    again = TopicMap.unpack(shown.pack())
    assert all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(shown, again, strict=True))
    assert len(shown.pack()) < 40


@pytest.mark.parametrize("shape", [(1, 1), (3, 700), (24, 30)])
def test_any_map_survives_as_bytes(shape):
    rng = np.random.default_rng(shape[1])
    shown = TopicMap(rng.integers(0, 4, shape).astype(np.uint8), np.array([5, 1 << 40, 0, 9]))
    again = TopicMap.unpack(shown.pack())
    assert np.array_equal(again.labels, shown.labels)
    assert np.array_equal(again.ids, shown.ids)


def test_bytes_that_are_no_map_are_none():
    packed = TopicMap(np.zeros((2, 3), np.uint8), np.array([4])).pack()
    for torn in (b"", packed[:5], packed[:-1], packed + b"x", b"\xff" * len(packed)):
        assert TopicMap.unpack(torn) is None


def test_a_map_of_a_large_frame_has_every_second_word(models):
    rng = np.random.default_rng(2)
    found = np.concatenate([words(rng, 12) for _ in range(20)])
    grid = (24, 40)
    rows = dataclasses.replace(rows_of(found, np.ones(len(found), bool)), word_shape=grid)
    labels = models.topics.places(found).reshape(grid)
    assert np.array_equal(ViewContents(Config()).map_of(rows, models).labels, labels[::2, ::2])


def test_before_there_are_topics_nothing_is_said(models):
    view = ViewContents(Config())
    rows = rows_of(words(np.random.default_rng(1), 0))
    assert view.look(rows, None) is view.map_of(rows, None) is None
    assert view.look(rows, Models({}, epoch=0, activated_frame=0)) is None
    assert view.look(rows_of(rows.words, np.zeros(N, bool)), models) is None


def test_a_frame_is_due_every_so_often_of_stream_time():
    view = ViewContents(Config())
    assert view.is_due(0)
    view.settle(None, 5 * NS, view=0, in_event=False)
    assert not view.is_due(6 * NS - 1)
    assert view.is_due(6 * NS)
    assert view.is_due(4 * NS)  # the stream's time has begun anew


def play(view, models, n, seed=2):
    rng = np.random.default_rng(seed)
    for i in range(n):
        found = view.look(rows_of(words(rng, int(rng.integers(4)))), models)
        view.settle(found, i * NS, view=0, in_event=False)
    return found


def test_known_things_in_unknown_shares_are_rare(models):
    view = ViewContents(Config())
    usual = play(view, models, 200)
    assert usual.rarity < 100.0
    rare = view.look(rows_of(words(np.random.default_rng(3), N)), models)
    assert rare.rarity > 500.0
    assert rare.topic == rare.ids[1]


def test_while_learning_nothing_is_rare(models):
    view = ViewContents(Config())
    play(view, models, 50)
    assert view.look(rows_of(words(np.random.default_rng(3), N)), models).rarity == 1.0


def test_what_is_seen_in_events_does_not_become_usual(models):
    calm, taught = ViewContents(Config()), ViewContents(Config())
    for view in (calm, taught):
        play(view, models, 100)
    rows = rows_of(words(np.random.default_rng(3), N))
    for i in range(30):
        calm.settle(calm.look(rows, models), (100 + i) * NS, view=0, in_event=True)
        taught.settle(taught.look(rows, models), (100 + i) * NS, view=0, in_event=False)
    assert calm.look(rows, models).value > taught.look(rows, models).value


def test_surprise_is_that_of_the_compound_multinomial(models):
    topics = models.topics
    alpha = topics.alpha
    shares = np.array([2.0 / 3.0, 1.0 / 3.0])
    # By the chain rule, a word at a time (Polya's urn): 20 of the first topic, then 10 of the second.
    chances = [(alpha[0] + i) / (alpha.sum() + i) for i in range(20)]
    chances += [(alpha[1] + i) / (alpha.sum() + 20 + i) for i in range(10)]
    assert INDEPENDENT == 30.0
    assert surprise_of(shares, topics) == pytest.approx(-sum(math.log(p) for p in chances))


def test_under_another_view_shares_are_learnt_anew(models):
    view = ViewContents(Config())
    play(view, models, 200)
    elsewhere = dataclasses.replace(rows_of(words(np.random.default_rng(3), N)), view=1)
    for i in range(LEAST_LOOKS):
        found = view.look(elsewhere, models)
        assert (found.value, found.rarity) == (0.0, 1.0)
        view.settle(found, (200 + i) * NS, view=1, in_event=False)
    assert view.look(elsewhere, models).rarity < 100.0  # what is always here is usual here
