"""Data and builders that the mixture's tests share."""

from functools import partial

import numpy as np

from stillwatch.learn.mixture.build import ModelBuilder
from stillwatch.learn.mixture.families import Family, RoundedFamily, make_family
from stillwatch.learn.mixture.families.places import Moments
from stillwatch.learn.mixture.items import Items
from stillwatch.learn.mixture.priors import prior_parameters

FAMILIES = ("diagonal", "full")
FORMS = ("diagonal", "full", "rounded")  # the families, the full one over exact and over rounded clumps
ROUNDED = ("rounded", "wide")
BUILT = (*FORMS, "wide")  # and the last one as it is in many dimensions, whatever these are


def covariance_of(form: str) -> str:
    """Return the covariance of a form's components."""
    return "full" if form in ROUNDED else form


def family_of(form: str, n_dims: int, capacity: int, n_items: int) -> Family:
    """Return the family of one of `BUILT`."""
    return (RoundedFamily if form == "wide" else partial(make_family, form))(n_dims, capacity, n_items)


def clusters(seed: int, n_rows: int = 300, n_dims: int = 4, n_clusters: int = 4, gap: float = 3.0):
    """Return rows of a few Gaussian clusters and their labels."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(n_clusters, n_dims)) * gap
    labels = rng.integers(n_clusters, size=n_rows)
    return means[labels] + rng.normal(size=(n_rows, n_dims)), labels


def awkward_rows(kind: str) -> np.ndarray:
    """Return data of a kind that has broken other libraries."""
    rng = np.random.default_rng(3)
    rows, _ = clusters(11)
    if kind == "random":
        return rng.normal(size=(300, 4))
    if kind == "duplicated":
        return np.repeat(rows[:30], 10, axis=0)
    if kind == "constant column":
        rows[:, 2] = 1.5
        return rows
    if kind == "one point":
        return rows[:1]
    if kind == "scaled":
        return rows * 1e6
    return rows


AWKWARD = ("random", "clustered", "duplicated", "constant column", "one point", "scaled")


def cost_of_clump(form: str, n_dims: int) -> int:
    """Return the values of one clump of one of `BUILT`."""
    return family_of(form, n_dims, 1, 1).clump_cost(n_dims)


def items_of(rows: np.ndarray, form: str, capacity: int = 0) -> Items:
    """Return items that hold the rows as single points."""
    n, d = rows.shape
    n_second = {"diagonal": d, "full": d * (d + 1) // 2}.get(form, d + 1)
    n_codes = d * (d - 1) // 2 if form in ROUNDED else 0
    items = Items(d, n_second, max(capacity, n), max(n // 2, capacity, 1), n_codes)
    items.append(rows)
    return items


def clumped(rows: np.ndarray, labels: np.ndarray, form: str) -> Items:
    """Return items in which rows of the same label are one clump; label -1 stays a single point."""
    n, d = rows.shape
    rows = rows.astype(np.float32).astype(np.float64)
    items = items_of(rows[:0], form, n)
    low = np.tril_indices(d)
    family, moments = make_family("rounded", d, 1, 1), Moments(1, d, d * (d + 1) // 2)
    for who in np.unique(labels[labels >= 0]):
        mine = rows[labels == who]
        row = items.n_clumps
        items.x[row] = mine.mean(axis=0)
        off = mine - items.x[row]
        items.counts[row] = len(mine)
        if form in ROUNDED:
            moments.count[0], moments.mean[0], moments.scatter[0] = len(mine), items.x[row], (off.T @ off)[low]
            family.summarise(items, row, moments, 0)
        else:
            items.second[row] = (off**2).mean(axis=0) if form == "diagonal" else (off.T @ off / len(mine))[low]
        items.n_clumps += 1
    items.n_items = items.n_clumps
    items.append(rows[labels < 0])
    return items


def builder_for(items: Items, form: str, capacity: int = 8, scale: float = 0.1, **settings) -> ModelBuilder:
    """Return a builder with room for the items."""
    n, d = items.x.shape
    family = family_of(form, d, capacity, n)
    family.prior[:] = prior_parameters(covariance_of(form), d, 0.01, scale)
    settings = {"concentration": 1.0, "max_iterations": 200} | settings
    return ModelBuilder(family, n, **settings)


def dense_shares(builder: ModelBuilder, n_items: int) -> np.ndarray:
    """Return q(Z) as a full matrix."""
    shares = np.zeros((n_items, builder.n_components))
    for column in range(builder.candidates.shape[1]):
        used = builder.candidates[:n_items, column] >= 0
        who = builder.candidates[:n_items, column][used]
        shares[np.flatnonzero(used), who] = builder.shares[:n_items, column][used]
    return shares


def second_moments(items: Items, form: str) -> np.ndarray:
    """Return the second moments of all items, zero for points: variances or square matrices."""
    n, d = items.n_items, items.x.shape[1]
    if form == "diagonal":
        second = np.zeros((n, d))
        second[: items.n_clumps] = items.second[: items.n_clumps]
        return second
    second = np.zeros((n, d, d))
    low = np.tril_indices(d)
    kept = items.second[: items.n_clumps]
    if form in ROUNDED:
        kept = family_of(form, d, 1, 1).clump_moments(items)
    for s in range(items.n_clumps):
        second[s][low] = kept[s]
        second[s].T[low] = kept[s]
    return second
