"""Novelty as a stage: honest start-up, scores before learning, what was scored teaches, same bits after a restart."""

import numpy as np
import pytest
from capture_sources import frame_of

from stillwatch.base.camera import FIXED, MOVING, UNDECIDED
from stillwatch.base.errors import SnapshotError
from stillwatch.epochs.models import Models
from stillwatch.features.rows import CONTEXT_DIMS, Rows
from stillwatch.novelty.registry import STRATEGIES
from stillwatch.novelty.rules import CALIBRATION_FRAMES, LABEL_FRAMES
from stillwatch.novelty.score import Novelty
from stillwatch.novelty.strangeness import neighbourhood_means
from stillwatch.novelty.strategy import Sizes
from stillwatch.settings.config import Config

ROWS, COLUMNS, DIMS = 12, 16, 6
N = ROWS * COLUMNS
PICTURE = np.zeros((16, 16, 3), np.uint8)
# With each rule, how much a thing must differ from rows of noise to be told at once, and how rare it is then.
RULES = [pytest.param(FIXED, 40.0, 500.0, id="fixed"), pytest.param(MOVING, 6.0, 1e6, id="moving")]


class Normal:
    """A model of one component: a normal around zero in the encoded dimensions; ids say which epoch made it."""

    ids = np.array([41])
    n_components = 1

    def label_samples(self, x, label):
        label[:] = 0


MODELS = Models({"patches": Normal()}, epoch=1, activated_frame=0)


class Stage:
    """Novelty with rows made of noise; `thing` is where something new stands."""

    def __init__(self, rule=FIXED, seed=0):
        self.rule = rule
        self.novelty = Novelty(Config(), Sizes(N, DIMS, DIMS + CONTEXT_DIMS))
        self.rng, self.i = np.random.default_rng(seed), 0

    def frame(self, thing=None, strength=6.0):
        plain = self.rng.normal(size=(N, DIMS)).astype(np.float32)
        if thing is not None:
            plain.reshape(ROWS, COLUMNS, DIMS)[thing] += strength
        x, y = np.meshgrid((np.arange(COLUMNS) + 0.5) / COLUMNS, (np.arange(ROWS) + 0.5) / ROWS)
        centres = np.stack([x.ravel(), y.ravel()], axis=1).astype(np.float32)
        rows = Rows(
            patches=np.concatenate([plain, centres], axis=1),
            plain=plain / np.float32(16.0),  # rows of a real encoder are small numbers
            valid=np.ones(N, bool),
            centres=centres,
            grid_shape=(ROWS, COLUMNS),
            colours=np.zeros((N, 3), np.float32),
            frame=np.zeros(4, np.float32),
            rule=self.rule,
            ready=self.rule.decided,
            words=np.zeros((0, 3), np.float32),
            word_valid=np.zeros(0, bool),
            word_shape=(0, 0),
        )
        self.i += 1
        return frame_of(PICTURE, self.i / 10, sequence=self.i), rows

    def play(self, n, models=MODELS, thing=None, in_event=False, **kw):
        scores = []
        for _ in range(n):
            frame, rows = self.frame(thing, **kw)
            scores.append(self.novelty.score(frame, rows, models))
            self.novelty.settle(scores[-1], in_event=in_event)
        return scores


THING = np.s_[4:9, 5:10]


def test_nothing_is_scored_without_a_model_and_progress_rises_to_one():
    stage = Stage()
    start = stage.play(20, models=None)
    scored = stage.play(CALIBRATION_FRAMES + 1)
    progress = [score.progress for score in start + scored]
    assert all(score.learning and score.rarity == 1.0 for score in start + scored[:-1])
    assert progress == sorted(progress)
    assert not scored[-1].learning
    assert stage.novelty.progress == 1.0


@pytest.mark.parametrize("rule", [FIXED, MOVING])
def test_patches_are_named_in_one_of_a_few_scored_frames(rule):
    stage = Stage(rule)
    assert [score.labels for score in stage.play(3, models=None)] == [None] * 3
    named = [score.labels for score in stage.play(4 * LABEL_FRAMES)]
    assert [i for i, labels in enumerate(named) if labels is not None] == [0, 4, 8, 12]
    assert (named[0] == 0).all()
    frame, rows = stage.frame()
    rows.valid[:COLUMNS] = False
    assert np.flatnonzero(stage.novelty.score(frame, rows, MODELS).labels == -1).tolist() == list(range(COLUMNS))


@pytest.mark.parametrize(("rule", "strength", "rarity"), RULES)
def test_something_new_is_rare_outlined_and_near_a_known_component(rule, strength, rarity):
    stage = Stage(rule)
    stage.play(12, models=None)
    usual = stage.play(300)
    *_, score = stage.play(2, thing=THING, strength=strength)  # who is there for one frame is nobody yet
    assert max(u.rarity for u in usual[60:]) < 2000
    assert score.rarity > rarity
    x0, y0, x1, y1 = score.boxes[0]
    assert (x0, y0, x1, y1) == pytest.approx(
        (5 / 16, 4 / 12, 10 / 16, 9 / 12), abs=1.5 / 12
    )  # a patch, or two where neighbours are averaged
    assert score.regions[0].centre == pytest.approx((7.5 / 16, 6.5 / 12), abs=0.05)
    assert score.component == 41
    assert score.patch_map.shape == (ROWS, COLUMNS)


def test_what_stands_still_before_a_fixed_camera_is_news_for_seconds_only():
    stage = Stage()
    stage.play(300)
    scores = stage.play(100, thing=THING, strength=40.0, in_event=True)  # ten seconds
    assert scores[1].rarity > 500.0
    assert max(score.rarity for score in scores[60:]) < 100.0


def test_a_region_below_the_least_size_is_no_region():
    stage = Stage()
    stage.play(60)
    (score,) = stage.play(1, thing=np.s_[4, 5], strength=20.0)
    assert all(region.n_patches >= 2 for region in score.regions)


@pytest.mark.parametrize("rule", [FIXED, MOVING, UNDECIDED], ids=["fixed", "moving", "undecided"])
def test_every_kind_of_camera_names_a_strategy_that_there_is(rule):
    assert rule.novelty in STRATEGIES


def test_a_camera_of_unknown_kind_is_neither_scored_nor_learnt_from():
    stage, before = Stage(UNDECIDED), Stage().novelty.state()
    scores = stage.play(20)
    assert all(score.learning and np.isnan(score.frame_surprise) for score in scores)
    after = stage.novelty.state()
    assert after.pop("counts.accepted") == 20
    for name, array in after.items():
        assert np.array_equal(array, before[name]), name


@pytest.mark.parametrize("rule", [FIXED, MOVING], ids=["fixed", "moving"])
def test_a_score_changes_nothing_before_it_is_settled(rule):
    stage = Stage(rule)
    stage.play(60)
    before = stage.novelty.state()
    frame, rows = stage.frame(THING)
    first = stage.novelty.score(frame, rows, MODELS)
    value, rarity = first.value, first.rarity
    for name, array in stage.novelty.state().items():
        assert np.array_equal(array, before[name]), name
    again = stage.novelty.score(frame, rows, MODELS)
    assert (again.value, again.rarity) == (value, rarity)


@pytest.mark.parametrize("rule", [FIXED, MOVING], ids=["fixed", "moving"])
def test_a_restart_goes_on_with_the_same_bits(rule):
    whole, half = Stage(rule), Stage(rule)
    whole.play(5, models=None)
    expected = [score.rarity for score in whole.play(80)]
    half.play(5, models=None)
    got = [score.rarity for score in half.play(40)]
    resumed = Stage(rule)
    resumed.novelty.restore(half.novelty.state())
    resumed.rng, resumed.i = half.rng, half.i
    got += [score.rarity for score in resumed.play(40)]
    assert got == expected
    for name, array in whole.novelty.state().items():
        assert np.array_equal(array, resumed.novelty.state()[name]), name


def test_a_state_of_other_settings_is_refused_and_changes_nothing():
    stage = Stage()
    stage.play(40)
    before = stage.novelty.state()
    for name in ("counts.accepted", "places.memory.past", "patches.calibration.weights"):
        damaged = {**before, name: np.zeros(3)}
        with pytest.raises(SnapshotError):
            stage.novelty.restore(damaged)
    for name, array in stage.novelty.state().items():
        assert np.array_equal(array, before[name]), name


def test_memory_is_what_it_was():
    stage = Stage(MOVING)
    before = stage.novelty.memory_bytes()
    stage.play(100)
    assert stage.novelty.memory_bytes() == before


def test_neighbours_that_deviate_together_count_more_than_as_many_apart():
    together, apart = np.zeros((9, 9), np.float32), np.zeros((9, 9), np.float32)
    together[3:6, 3:6] = 9.0
    apart[::3, ::3] = 9.0
    valid = np.ones((9, 9), bool)
    assert neighbourhood_means(together, valid).max() == pytest.approx(9.0)
    assert neighbourhood_means(apart, valid).max() < 5.0


def test_masked_neighbours_say_nothing():
    deviations, valid = np.full((5, 5), 4.0, np.float32), np.ones((5, 5), bool)
    deviations[:, 3:], valid[:, 3:] = 0.0, False
    assert neighbourhood_means(deviations, valid)[:, :3] == pytest.approx(4.0)
