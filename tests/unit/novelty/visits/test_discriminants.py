"""Axes along which visitors differ more than one does from himself, in units of the latter, whatever the sizes."""

import numpy as np
import pytest

from stillwatch.novelty.rules import AXES, LEAST_PAIRS, MARKS_MEMORY
from stillwatch.novelty.visits.discriminants import Discriminants

N_DIMS = 9
TELLING = 3.0  # deviation of the value that tells visitors apart; of all others it is WITHIN, and says nothing
WITHIN = 2.0


def learnt(scale: np.ndarray | None = None, seed: int = 1, telling: int = 4, n: int = 4000) -> Discriminants:
    """Discriminants of visitors that differ in one value alone; a step from a thing to itself has .1 of it there."""
    rng = np.random.default_rng(seed)
    scale = np.ones(N_DIMS) if scale is None else scale
    marks, steps = (rng.normal(0.0, WITHIN, (n, N_DIMS)) for _ in range(2))
    marks[:, telling] = rng.normal(0.0, TELLING, n)
    steps[:, telling] = rng.normal(0.0, 0.1, n)
    found = Discriminants(N_DIMS)
    for part in range(0, n, 100):
        found.learn_visitors(scale * marks[part : part + 100])
        found.learn_place(scale * marks[part : part + 100])
        found.learn_itself(scale * steps[part : part + 100])
    found.find()
    return found


def test_the_first_axis_is_the_value_that_tells_visitors_apart():
    first = learnt().along_axes(np.eye(N_DIMS))[:, 0]
    assert int(np.abs(first).argmax()) == 4
    assert np.abs(np.delete(first, 4)).max() < 0.02 * np.abs(first[4])


def test_a_thing_is_one_deviation_from_itself_along_each_axis():
    steps = np.random.default_rng(7).normal(0.0, WITHIN, (20000, N_DIMS))
    steps[:, 4] = np.random.default_rng(8).normal(0.0, 0.1, 20000)
    spread = learnt().along_axes(steps).std(axis=0)
    assert spread[1:] == pytest.approx(1.0, abs=0.05)
    assert 0.3 < spread[0] < 0.6  # steadier than a twentieth of its spread of sqrt(2) 3 is not believed: .1 / .235


def test_axes_are_those_of_scipy_s_generalised_eigenproblem():
    linalg = pytest.importorskip("scipy.linalg")
    rng = np.random.default_rng(3)
    mixing = rng.normal(size=(N_DIMS, N_DIMS))
    marks, place = (rng.normal(size=(3000, N_DIMS)) @ mixing * s for s in (1.0, 0.5))
    steps = rng.normal(size=(3000, N_DIMS)) @ rng.normal(size=(N_DIMS, N_DIMS)) * 0.2
    found = Discriminants(N_DIMS)
    found.learn_visitors(marks)
    found.learn_place(place)
    found.learn_itself(steps)
    found.find()
    in_all = np.cov(marks.T, bias=True) + np.cov(place.T, bias=True)
    within = np.cov(steps.T, bias=True) + 0.0025 * np.diag(np.diag(in_all))
    _, vectors = linalg.eigh(in_all, within)
    expected = vectors[:, ::-1][:, :AXES]
    ours = found.along_axes(np.eye(N_DIMS))
    assert np.abs(ours) == pytest.approx(np.abs(expected), rel=1e-4, abs=1e-5)


def test_distances_do_not_depend_on_the_size_of_the_values():
    scale = 10.0 ** np.arange(-3, 6)
    two = np.random.default_rng(5).normal(0.0, 2.0, (2, N_DIMS))
    plain, scaled = learnt().along_axes(two), learnt(scale).along_axes(scale * two)
    assert np.linalg.norm(scaled[0] - scaled[1]) == pytest.approx(np.linalg.norm(plain[0] - plain[1]), rel=1e-3)


def test_nothing_is_known_before_enough_things_were_compared_with_themselves():
    assert not learnt(n=int(LEAST_PAIRS) - 100).known
    assert learnt(n=int(LEAST_PAIRS)).known


def test_what_was_long_ago_counts_ever_less():
    found = learnt(telling=4)
    rng = np.random.default_rng(11)
    for _ in range(int(3 * MARKS_MEMORY / 500)):
        marks, steps = (rng.normal(0.0, WITHIN, (500, N_DIMS)) for _ in range(2))
        marks[:, 1], steps[:, 1] = rng.normal(0.0, TELLING, 500), rng.normal(0.0, 0.1, 500)
        found.learn_visitors(marks)
        found.learn_place(marks)
        found.learn_itself(steps)
    found.find()
    assert int(np.abs(found.along_axes(np.eye(N_DIMS))[:, 0]).argmax()) == 1


def test_a_still_that_is_repeated_has_axes_without_a_warning():
    found = Discriminants(N_DIMS)
    for _ in range(5):
        found.learn_visitors(np.ones((100, N_DIMS)))
        found.learn_place(np.ones((100, N_DIMS)))
        found.learn_itself(np.zeros((100, N_DIMS)))
    found.find()
    assert np.isfinite(found.along_axes(np.eye(N_DIMS))).all()


def test_fewer_values_than_axes_are_enough():
    found = Discriminants(2)
    rng = np.random.default_rng(2)
    found.learn_visitors(rng.normal(size=(500, 2)))
    found.learn_itself(0.1 * rng.normal(size=(500, 2)))
    found.find()
    assert found.known
    assert found.along_axes(np.ones((1, 2))).shape == (1, AXES)


def test_reset_forgets_everything():
    found = learnt()
    found.reset()
    assert all(np.array_equal(value, Discriminants(N_DIMS).state()[name]) for name, value in found.state().items())
