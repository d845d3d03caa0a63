"""What has no clusters is not forgotten, and what is new becomes a component while it matters."""

import numpy as np
import pytest
from mixture_cases import FAMILIES, builder_for, clusters, items_of

from stillwatch.learn.mixture.mixture import MemoryBoundedMixture


def ring(n, seed=0):
    """Return rows about a circle in three dimensions."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, n)
    return np.stack([3 * np.cos(angle), 3 * np.sin(angle), np.cos(2 * angle)], axis=1) + 0.2 * rng.normal(size=(n, 3))


@pytest.mark.parametrize("covariance", FAMILIES)
def test_on_a_ring_geometry_forgets_less_than_the_papers_splits(covariance):
    rows, held = ring(8000), ring(2000, 1)
    settings = {"covariance": covariance, "horizon": 8000}
    batch = MemoryBoundedMixture(memory=16_003, epoch_size=8000, **settings).fit(rows).score(held)
    geometry, paper = (
        MemoryBoundedMixture(memory=400, compression=form, **settings).fit(rows) for form in ("geometry", "paper")
    )
    gap = batch - geometry.score(held)
    assert gap < 0.1
    assert gap < 0.6 * (batch - paper.score(held))
    assert geometry.report_["clumps"] > 2 * paper.report_["clumps"]


def stream(seed, n_clusters=8, n_dims=5):
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(n_clusters, n_dims)) * 8
    return rng, means, lambda n: means[rng.integers(n_clusters, size=n)] + rng.normal(size=(n, n_dims))


@pytest.mark.parametrize("covariance", FAMILIES)
@pytest.mark.parametrize(("deviations", "rows_an_epoch", "epochs"), [(8, 3, 2), (4, 5, 20)])
def test_a_new_cluster_becomes_a_component_of_its_own(deviations, rows_an_epoch, epochs, covariance):
    rng, means, draw = stream(3)
    model = MemoryBoundedMixture(memory=1000, covariance=covariance).partial_fit(draw(20_000))
    before = set(model.component_ids_)
    way = rng.normal(size=5)
    news = means[0] + deviations * way / np.linalg.norm(way)
    for _ in range(epochs):
        rows = draw(500)
        rows[:rows_an_epoch] = news + rng.normal(size=(rows_an_epoch, 5))
        model.partial_fit(rows)
    found = model.predict(news[None])[0]
    assert found not in before
    assert found not in model.predict(means)


@pytest.mark.parametrize("covariance", FAMILIES)
@pytest.mark.parametrize("seed", range(3))
def test_a_trial_that_gains_nothing_leaves_the_model_as_it_was(seed, covariance):
    rows, _ = clusters(seed, n_rows=200, n_clusters=3, gap=4.0)
    items = items_of(rows / 4.0, covariance)
    builder = builder_for(items, covariance, capacity=20)
    bound = builder.build(items, warm=True, merges=True).free_energy
    n, ids = builder.n_components, builder.identities.id.copy()
    # As if every component had failed by almost nothing.
    builder.loss[:n] = 0.0
    kept = builder.try_optimistic_splits(items, merges=False)
    assert builder.report.free_energy >= bound - 1e-9 * abs(bound)
    if not kept:
        assert builder.n_components == n
        np.testing.assert_array_equal(builder.identities.id[:n], ids[:n])
