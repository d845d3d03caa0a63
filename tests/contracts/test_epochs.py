"""The saved state of the epochs is whole or refused: every fault is named, and the learners are as they were before."""

import numpy as np
import pytest
from epoch_cases import PATCH_DIMS, SETTINGS, feed_noise, small_learners

from stillwatch.base.errors import SnapshotError
from stillwatch.base.state import state_hash
from stillwatch.epochs.registry import LEARNERS, ShownModel
from stillwatch.settings.reader import load_config


@pytest.fixture(scope="module")
def make():
    made = []

    def make(start=0, stop=0):
        learners = small_learners()
        made.append(learners)
        feed_noise(learners, start, stop)
        return learners

    yield make
    for learners in made:
        learners.close()


@pytest.fixture(scope="module")
def saved(make):
    """A state with everything in it: models in use, an epoch under way, samples waiting, exemplars told."""
    return make(0, 37).state()


@pytest.fixture(scope="module")
def other(make):
    """Learners with another life, for states to be refused by."""
    return make(100, 125)


def test_a_state_goes_round_to_the_same_bits(make, saved):
    learners = make()
    learners.restore(saved)
    assert state_hash(learners.state()) == state_hash(saved)


def test_a_state_before_the_first_model_goes_round_too(make, other):
    fresh = make(0, 2).state()
    learners = make(50, 75)
    learners.restore(fresh)
    assert learners.models is None
    assert state_hash(learners.state()) == state_hash(fresh)


def test_every_part_is_in_the_state(saved):
    parts = {name.split(".")[0] for name in saved}
    assert parts == {row.name for row in LEARNERS} | {"buffer", "schedule", "active", "nearest", "told"}
    models = {row.name for row in LEARNERS if isinstance(row.shown, ShownModel)}
    assert {name.split(".")[1] for name in saved if name.startswith("active.") and name.count(".") == 2} == models


def refused(learners, state, match=None):
    """Whether a state is refused as it must be: named, and every bit as before."""
    before = state_hash(learners.state())
    with pytest.raises(SnapshotError, match=match):
        learners.restore(state)
    assert state_hash(learners.state()) == before


def test_any_array_that_is_missing_is_refused(other, saved):
    for name in sorted(saved):
        refused(other, {key: array for key, array in saved.items() if key != name})


@pytest.mark.parametrize("name", [
    "patches.more", "scenes.more", "exemplars.more", "scene_exemplars.more", "buffer.more", "schedule.more",
    "active.more", "active.ghosts.mean", "nearest.more", "told.more", "more", "ghosts.mean",
])  # fmt: skip
def test_an_array_too_many_is_refused(other, saved, name):
    refused(other, saved | {name: np.zeros(3)}, "more|ghosts")


def test_any_array_of_another_shape_is_refused(other, saved):
    for name in sorted(saved):
        refused(other, saved | {name: np.zeros((*saved[name].shape, 2), saved[name].dtype)})


def test_nan_is_refused_wherever_numbers_are_needed(other, saved):
    floats = [name for name, array in saved.items() if array.dtype.kind == "f" and array.size]
    for name in floats:
        if name.endswith(".free_energy"):
            continue  # unknown before the first epoch
        bad = saved[name].copy()
        bad.flat[0] = np.nan
        refused(other, saved | {name: bad})


@pytest.mark.parametrize(("name", "value"), [
    ("schedule.n_offered", -1), ("schedule.epoch", -1), ("schedule.activation_frame", -2), ("schedule.share", 0.0),
    ("schedule.share", 1.5), ("active.epoch", -1), ("active.patches.kind", 2), ("active.patches.concentration", 0.0),
    ("active.scenes.concentration", -1.0),
])  # fmt: skip
def test_a_number_out_of_range_is_refused(other, saved, name, value):
    refused(other, saved | {name: np.array(value, saved[name].dtype)}, name.split(".")[-1])


@pytest.mark.parametrize("name", ["active.patches.scale", "active.scenes.prior", "active.patches.count"])
def test_a_density_that_cannot_be_is_refused(other, saved, name):
    refused(other, saved | {name: -saved[name]}, name.split(".")[-1])


def test_models_of_another_width_are_refused(other, saved):
    narrow = {"mean": (slice(None), slice(1, None)), "variance": (slice(None), slice(1, None))}
    narrow |= {"shift": slice(1, None), "scale": slice(1, None)}
    cut = {f"active.patches.{name}": saved[f"active.patches.{name}"][part] for name, part in narrow.items()}
    refused(other, saved | cut, "active models: patches")


def test_a_required_model_that_is_missing_is_refused(other, saved):
    refused(other, {n: a for n, a in saved.items() if not n.startswith("active.patches")}, "patches are missing")


def test_more_samples_than_there_is_room_for_are_refused(other, saved):
    n = load_config(None, SETTINGS).patches.epoch_size + 1
    refused(other, saved | {"buffer.patches": np.zeros((n, PATCH_DIMS), np.float32)}, "patches has 201 rows")


def test_payloads_that_do_not_fit_their_frames_are_refused(other, saved):
    refused(other, saved | {"buffer.payload_sizes": saved["buffer.payload_sizes"][1:]}, "payloads")
    too_long = np.full_like(saved["buffer.payload_sizes"], saved["buffer.payloads"].shape[1] + 1)
    refused(other, saved | {"buffer.payload_sizes": too_long}, "payload_sizes")


def test_what_goes_on_after_a_restart_says_the_same(make, saved):
    """Models, exemplars, stream times and all, but what examples of components were told: those are told again."""
    whole, second = make(0, 37), make()
    second.restore(saved)
    one, same = feed_noise(whole, 37, 60)[0], feed_noise(second, 37, 60)[0]
    assert (one.t_ns, one.learner_hash, one.models.epoch) == (same.t_ns, same.learner_hash, same.models.epoch)
    frames = [[e for e in report.exemplars if e.role == "frame"] for report in (one, same)]
    assert frames[0] == frames[1]
    assert set(e.id for e in one.exemplars) <= set(e.id for e in same.exemplars)
