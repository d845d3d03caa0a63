"""Novelty as a stage: honest start-up, scores before learning, one width of rows, the same bits after a restart."""

import numpy as np
import pytest
from msgspec import structs

from stillwatch.base.errors import SnapshotError
from stillwatch.base.frame import Frame
from stillwatch.epochs.models import Models
from stillwatch.features.extractor import Features
from stillwatch.novelty.rules import CALIBRATION_FRAMES, CONTEXT_DIMS
from stillwatch.novelty.score import Novelty, neighbourhood_means
from stillwatch.settings.config import Config, NoveltyConfig

ROWS, COLUMNS, DIMS = 12, 16, 6
N = ROWS * COLUMNS


class Normal:
    """A model of one component: a normal around zero in the encoded dimensions; ids say which epoch made it."""

    ids = np.array([41])
    n_components = 1

    def score_and_label(self, x, score, label):
        score[:] = -0.5 * (x[:, :DIMS].astype(np.float64) ** 2).sum(axis=1)
        label[:] = 0


MODELS = Models({"patches": Normal()}, epoch=1, activated_frame=0)


class Stage:
    """Novelty with frames made of noise; `thing` is where something new stands."""

    def __init__(self, camera="fixed", seed=0):
        self.config = structs.replace(Config(), novelty=NoveltyConfig(camera=camera))
        self.novelty = Novelty(self.config, capacity_patches=N, n_patch_dims=DIMS, n_frame_dims=4)
        self.rng, self.i = np.random.default_rng(seed), 0

    def frame(self, thing=None, strength=6.0):
        colour = self.rng.integers(80, 120, (96, 128, 3)).astype(np.uint8)
        patches = self.rng.normal(size=(N, DIMS)).astype(np.float32)
        if thing is not None:
            patches.reshape(ROWS, COLUMNS, DIMS)[thing] += strength
        x, y = np.meshgrid((np.arange(COLUMNS) + 0.5) / COLUMNS, (np.arange(ROWS) + 0.5) / ROWS)
        features = Features(
            raw_patches=patches,
            patches=patches,
            valid=np.ones(N, bool),
            flat=np.zeros(N, bool),
            centres=np.stack([x.ravel(), y.ravel()], axis=1).astype(np.float32),
            grid_shape=(ROWS, COLUMNS),
            raw_frame=np.zeros(4, np.float32),
            frame=np.zeros(4, np.float32),
            ready=True,
        )
        self.i += 1
        return Frame(colour[..., 0].copy(), colour, None, self.i * 10**8, 0, 0, self.i), features

    def play(self, n, models=MODELS, thing=None, in_event=False, **kw):
        scores = []
        for _ in range(n):
            frame, features = self.frame(thing, **kw)
            self.novelty.observe(frame)
            scores.append(self.novelty.score(frame, features, models))
            self.novelty.settle(in_event=in_event)
        return scores


THING = np.s_[4:8, 5:9]


def test_nothing_is_scored_without_a_model_and_progress_rises_to_one():
    stage = Stage()
    start = stage.play(20, models=None)
    scored = stage.play(CALIBRATION_FRAMES + 1)
    progress = [score.progress for score in start + scored]
    assert all(score.learning and score.rarity == 1.0 for score in start + scored[:-1])
    assert progress == sorted(progress)
    assert not scored[-1].learning
    assert stage.novelty.progress == 1.0


@pytest.mark.parametrize("camera", ["fixed", "moving"])
def test_something_new_is_rare_outlined_and_near_a_known_component(camera):
    stage = Stage(camera)
    stage.play(12, models=None)
    usual = stage.play(120)
    (score,) = stage.play(1, thing=THING)
    assert max(u.rarity for u in usual[60:]) < 2000
    assert score.rarity > 1e6
    x0, y0, x1, y1 = score.boxes[0]
    assert (x0, y0, x1, y1) == pytest.approx((5 / 16, 4 / 12, 9 / 16, 8 / 12), abs=0.07)
    assert score.position == pytest.approx((7 / 16, 0.5), abs=0.05)
    assert score.component == 41
    assert score.patch_map.shape == (ROWS, COLUMNS)


def test_what_stands_still_stays_new_during_its_event():
    stage = Stage()
    stage.play(100)
    scores = stage.play(300, thing=THING, in_event=True)
    assert min(score.rarity for score in scores) > 1e5


def test_a_region_below_the_least_size_is_no_region():
    stage = Stage()
    stage.play(60)
    (score,) = stage.play(1, thing=np.s_[4, 5], strength=20.0)
    assert all(region.n_patches >= 2 for region in score.regions)


def test_rows_have_one_width_and_hold_the_place_or_the_colour():
    fixed, moving = Stage("fixed"), Stage("moving")
    for stage in (fixed, moving):
        frame, features = stage.frame()
        rows = stage.novelty.augment(frame, features)
        assert rows.shape == (N, DIMS + CONTEXT_DIMS)
        assert np.array_equal(rows[:, :DIMS], features.patches)
        if stage is fixed:
            assert np.array_equal(rows[:, DIMS:], features.centres)


def test_the_colour_of_the_ground_does_not_depend_on_exposure_and_tells_red_from_green():
    stage = Stage("moving")
    frame, features = stage.frame()
    chroma = {}
    for name, bgr in (("green", (40, 80, 40)), ("bright green", (80, 160, 80)), ("red", (40, 40, 120))):
        colour = np.full((96, 128, 3), bgr, np.uint8)
        painted = Frame(frame.grey, colour, None, 1, 0, 0, len(chroma) + 1000)
        chroma[name] = stage.novelty.augment(painted, features)[0, DIMS:].copy()
    assert np.abs(chroma["green"] - chroma["bright green"]).max() < 0.15
    assert np.abs(chroma["green"] - chroma["red"]).max() > 0.8


def test_scoring_twice_changes_nothing():
    stage = Stage()
    stage.play(60)
    frame, features = stage.frame()
    first = stage.novelty.score(frame, features, MODELS)
    value, rarity = first.value, first.rarity
    again = stage.novelty.score(frame, features, MODELS)
    assert (again.value, again.rarity) == (value, rarity)


@pytest.mark.parametrize("camera", ["fixed", "moving"])
def test_a_restart_goes_on_with_the_same_bits(camera):
    whole, half = Stage(camera), Stage(camera)
    whole.play(5, models=None)
    expected = [score.rarity for score in whole.play(80)]
    half.play(5, models=None)
    got = [score.rarity for score in half.play(40)]
    resumed = Stage(camera)
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
    for name in ("counts.accepted", "places.mean", "calibration.weights"):
        damaged = {**before, name: np.zeros(3)}
        with pytest.raises(SnapshotError):
            stage.novelty.restore(damaged)
    for name, array in stage.novelty.state().items():
        assert np.array_equal(array, before[name]), name


def test_memory_is_what_it_was():
    stage = Stage("moving")
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
