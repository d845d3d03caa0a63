"""A clump looked at as parts: the same points, of which some may be another component's."""

import numpy as np
import pytest
from mixture_cases import items_of

from stillwatch.base import SnapshotError
from stillwatch.learn.mixture.mixture import MemoryBoundedMixture
from stillwatch.learn.mixture.parts import Parts
from stillwatch.tools.experiments.mixture.continuum import curve


def some_items(n_clumps=7, n_points=5, n_dims=3):
    rng = np.random.default_rng(4)
    items = items_of(rng.normal(size=(n_clumps + n_points, n_dims)), "diagonal")
    items.second = rng.uniform(0.1, 2.0, (n_clumps, n_dims)).astype(np.float32)
    items.counts[:n_clumps] = rng.integers(2, 30, n_clumps)
    items.n_clumps = n_clumps
    return items


def weighted(items, rows):
    """Return count, mean and variances of items together."""
    count, mean, second = items.counts[rows], items.x[rows].astype(float), items.second[rows].astype(float)
    middle = np.average(mean, axis=0, weights=count)
    return count.sum(), middle, np.average(second + (mean - middle) ** 2, axis=0, weights=count)


@pytest.mark.parametrize("n_parts", [2, 4])
def test_the_parts_of_a_clump_have_its_count_mean_and_variances_together(n_parts):
    items = some_items()
    before = items.x.copy(), items.counts.copy(), items.second.copy()
    seen = Parts(n_parts, 3, 7, 40).of(items, None)
    assert (seen.n_clumps, seen.n_items) == (7 * n_parts, 7 * n_parts + 5)
    for clump in range(7):
        count, mean, variance = weighted(seen, np.arange(clump, 7 * n_parts, 7))
        assert count == pytest.approx(items.counts[clump])
        np.testing.assert_allclose(mean, items.x[clump], atol=1e-6)
        np.testing.assert_allclose(variance, items.second[clump], rtol=1e-5)
        widest = int(items.second[clump].argmax())
        apart = np.ptp(seen.x[clump : 7 * n_parts : 7, widest])
        assert apart >= 2.0 * np.sqrt(2.0 / np.pi * items.second[clump, widest]) * (1.0 - 1e-5)
    np.testing.assert_array_equal(seen.x[7 * n_parts : seen.n_items], items.x[7:12])
    assert seen.counts[7 * n_parts : seen.n_items].tolist() == [1.0] * 5
    for held, was in zip((items.x, items.counts, items.second), before, strict=True):
        np.testing.assert_array_equal(held, was)


def test_a_clump_is_cut_where_it_is_widest_to_its_component():
    items = some_items(n_clumps=1)
    items.second[0] = [1.0, 0.5, 0.1]
    seen = Parts(2, 3, 1, 10).of(items, np.tile([1.0, 1.0, 100.0], (6, 1)))
    assert np.flatnonzero(seen.x[0] != seen.x[1]).tolist() == [2]


def test_without_clumps_and_as_one_part_the_items_are_what_they_are():
    items = some_items(n_clumps=0)
    assert Parts(4, 3, 7, 40).of(items, None) is items
    assert Parts(1, 3, 7, 40).of(some_items(), None).n_clumps == 7
    assert sum(array.nbytes for array in Parts(1, 3, 7, 40).seen.arrays()) == 0


@pytest.mark.parametrize("seed", [0, 2])
def test_of_a_curve_quarters_forget_less(seed):
    data = curve(6, "shuffled", 8000, seed, 3000)
    batch = MemoryBoundedMixture(memory=16_006, epoch_size=8000, horizon=8000, max_iterations=100).fit(data.train)
    whole, quarters = (MemoryBoundedMixture(memory=500, horizon=8000, parts=n).fit(data.train) for n in (1, 4))
    gap, less = (batch.score(data.test) - model.score(data.test) for model in (whole, quarters))
    assert less < 0.75 * gap
    assert quarters.n_components_ > whole.n_components_


def test_a_learner_of_parts_continues_bit_for_bit_in_constant_memory():
    rows = curve(4, "shuffled", 3000).train
    settings = {"memory": 200, "parts": 4}
    whole = MemoryBoundedMixture(**settings).partial_fit(rows[:1050])
    taken = whole.memory_bytes()
    other = MemoryBoundedMixture(**settings).allocate(4)
    other.restore(whole.state())
    for model in (whole, other):
        model.partial_fit(rows[1050:])
    for name, array in whole.state().items():
        np.testing.assert_array_equal(array, other.state()[name])
    assert whole.memory_bytes() == taken
    assert taken["items"] > MemoryBoundedMixture(memory=200).allocate(4).memory_bytes()["items"]
    with pytest.raises(SnapshotError):
        MemoryBoundedMixture(memory=200).allocate(4).restore(whole.state())


@pytest.mark.parametrize("n_dims", [1, 2, 18])
@pytest.mark.parametrize("n_parts", [2, 4])
def test_parts_fit_whatever_the_clumps_are(n_parts, n_dims):
    rng = np.random.default_rng(1)
    rows = np.repeat(rng.normal(size=(600, n_dims)), rng.integers(1, 4, 600), axis=0)
    model = MemoryBoundedMixture(memory=60, parts=n_parts).partial_fit(rows).flush()
    again = MemoryBoundedMixture.from_clumps(
        {name: model.clumps_[name] for name in ("count", "mean", "variance")}, memory=60, parts=n_parts
    )
    assert np.isfinite(again.score(rows))
    assert np.isfinite(model.score(rows))


@pytest.mark.parametrize(("parts", "covariance"), [(3, "diagonal"), (0, "diagonal"), (2, "full")])
def test_parts_that_cannot_be_are_refused(parts, covariance):
    with pytest.raises(ValueError, match="parts"):
        MemoryBoundedMixture(parts=parts, covariance=covariance).partial_fit(np.zeros((3, 2)))
