"""When an epoch ends, when its model becomes active, what a restart keeps: all counted in frames, never in time."""

import threading
import time

import numpy as np
import pytest
from epoch_cases import FRAME_DIMS, N_PATCHES, PATCH_DIMS, small_learners, words_of

from stillwatch.base.clock import RealClock
from stillwatch.base.errors import SnapshotError


@pytest.fixture
def make():
    made = []

    def make(*settings, clock=None):
        learners = small_learners(*settings, clock=clock)
        made.append(learners)
        return learners

    yield make
    for learners in made:
        learners.close()


def sample(i):
    """One frame's patches around three centres, its descriptor, and which patches count."""
    rng = np.random.default_rng([5, i])
    centres = np.array([[0.0] * PATCH_DIMS, [4.0] * PATCH_DIMS, [-4.0] * PATCH_DIMS])
    rows = (centres[rng.integers(0, 3, N_PATCHES)] + rng.normal(size=(N_PATCHES, PATCH_DIMS))).astype(np.float32)
    return rows, np.arange(N_PATCHES) % 10 != 0, rng.normal(size=FRAME_DIMS).astype(np.float32)


def feed(learners, start, stop):
    """Offer frames; return [(frames offered before, epoch)] of the activations."""
    activations = []
    for i in range(start, stop):
        report = learners.activate()
        if report is not None:
            activations.append((i, report.models.epoch))
        rows, valid, frame = sample(i)
        learners.offer(i, i * 10**8, rows, valid, words_of(i), frame, b"jpeg%d" % i)
    return activations


def test_epochs_double_up_to_their_longest_and_become_active_a_fixed_number_of_frames_later(make):
    # Epochs of 4, 8, 16, 16 frames, 2, 2, 3, 3 later; each next one collects while the one before is being learnt.
    assert feed(make(), 0, 60) == [(6, 1), (14, 2), (31, 3), (47, 4)]


class SlowClock(RealClock):
    """Asked by the worker for what each learner cost; the answers take their time."""

    def thread_cpu_s(self):
        time.sleep(0.01)
        return super().thread_cpu_s()


def test_a_slow_worker_changes_no_activation_and_no_bit(make):
    fast, slow = make(), make(clock=SlowClock())
    expected = feed(fast, 0, 40)
    assert feed(slow, 0, 40) == expected
    slow.wait()
    fast.wait()
    assert slow.learner_hash() == fast.learner_hash()


@pytest.mark.parametrize("last_cores", [{0}, {0, 1}], ids=["one core", "two cores"])
def test_learners_that_learn_side_by_side_learn_the_same_bits(make, monkeypatch, last_cores):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0})
    alone = make()
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: last_cores)
    beside = make(clock=SlowClock())  # slow enough that both threads find something to do
    assert feed(alone, 0, 80) == feed(beside, 0, 80)
    assert alone.learner_hash() == beside.learner_hash()
    helpers = [thread for thread in threading.enumerate() if thread.name.startswith("learner-helper")]
    assert len(helpers) == len(last_cores) - 1


@pytest.mark.parametrize("cut", [1, 4, 5, 6, 7, 13, 22, 30])
def test_a_restart_at_any_frame_goes_on_with_the_same_bits(make, cut):
    whole, first, second = make(), make(), make()
    feed(whole, 0, 45)
    feed(first, 0, cut)
    second.restore(first.state())
    feed(second, cut, 45)
    assert second.learner_hash() == whole.learner_hash()
    rows = sample(99)[0]
    assert np.array_equal(second.models["patches"].score_samples(rows), whole.models["patches"].score_samples(rows))


def test_the_hash_taken_learner_by_learner_is_that_of_the_whole_state(make):
    learners = make()
    feed(learners, 0, 20)
    by_learner = learners.learner_hash()
    learners.restore(learners.state())  # what a restored state's hash is nobody has taken yet
    assert learners.learner_hash() == by_learner


def test_the_seed_decides_which_patches_are_learnt(make):
    one, same, other = make(), make(), make("agent.seed=1")
    for learners in (one, same, other):
        feed(learners, 0, 20)
        learners.wait()
    assert one.learner_hash() == same.learner_hash() != other.learner_hash()


def test_masked_patches_are_never_learnt(make):
    learners = make()
    rows, _, frame = sample(0)
    rows[::2] = 1e3
    valid = np.arange(N_PATCHES) % 2 == 1
    for i in range(10):
        learners.offer(i, i, rows, valid, words_of(i), frame, b"")
    learners.activate()
    assert np.abs(learners["patches"].clumps_["mean"]).max() < 100.0


def test_a_state_that_does_not_fit_changes_nothing(make):
    learners, other = make(), make("patches.memory=300")
    feed(learners, 0, 20)
    before = learners.learner_hash()
    with pytest.raises(SnapshotError):
        learners.restore(other.state())
    assert learners.learner_hash() == before


class BrokenClock(RealClock):
    def thread_cpu_s(self):
        raise FloatingPointError("planted")


def test_a_failure_of_the_worker_surfaces_in_the_pipeline(make):
    with pytest.raises(FloatingPointError, match="planted"):
        feed(make(clock=BrokenClock()), 0, 20)


def test_a_command_can_end_an_epoch_early(make):
    learners = make()
    feed(learners, 0, 2)
    assert learners.end_epoch() > 0
    assert learners.end_epoch() == 0, "one epoch at a time"
    assert feed(learners, 2, 7) == [(4, 1)]


def test_an_exemplar_is_announced_once_and_its_end_too(make):
    learners = make()
    known = set()
    for i in range(45):
        report = learners.activate()
        if report is not None:
            news = [exemplar for exemplar in report.exemplars if exemplar.removed is not None]  # and no examples
            ids = {exemplar.id for exemplar in news}
            removed = {gone for exemplar in news for gone in exemplar.removed}
            assert not known & ids
            assert removed <= known
            known = known - removed | ids
            assert {int(k) for k in learners["exemplars"].exemplar_ids_} <= known == set(learners.exemplar_pictures())
        rows, valid, frame = sample(i)
        learners.offer(i, i, rows, valid, words_of(i), frame, b"jpeg%d" % i)
    assert known


def test_memory_is_the_same_after_an_hour_of_frames(make):
    learners = make()
    before = learners.memory_bytes()
    feed(learners, 0, 120)
    assert learners.memory_bytes() == before


def test_closing_ends_the_thread(make):
    before = set(threading.enumerate())
    learners = make()
    started = set(threading.enumerate()) - before
    assert {thread.name for thread in started} == {"learner"}
    learners.close()
    assert not started & set(threading.enumerate())
