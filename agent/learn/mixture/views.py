"""What a mixture does around an epoch: sizes are checked, units widened, counts faded, old components recognised.

And how its clumps leave it and come back. Called by agent/learn/mixture/mixture.py. It must not learn.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stillwatch.base import SnapshotError
from stillwatch.kernels import mixture_common
from stillwatch.learn.mixture.build import ModelBuilder
from stillwatch.learn.mixture.compress import COMPRESSIONS
from stillwatch.learn.mixture.items import Items
from stillwatch.learn.mixture.parts import PARTS
from stillwatch.learn.mixture.posterior import BuildReport
from stillwatch.learn.mixture.predictive import COVARIANCES, StudentMixture, pack_lower, unpack_lower
from stillwatch.learn.mixture.priors import Normaliser
from stillwatch.learn.mixture.top_down import CompressReport

# Squares of larger values overflow, of smaller ones vanish.
LARGEST, SMALLEST = 1e150, 1e-150

CHOICES = {
    "covariance": COVARIANCES, "clump_moments": ("rounded", "exact"), "compression": COMPRESSIONS,
    "scaling": ("shared", "column"),
}  # fmt: skip


def check_settings(settings: Mapping[str, Any]) -> None:
    """Raise ValueError for settings of a mixture that cannot work."""
    for name, known in CHOICES.items():
        if settings[name] not in known:
            raise ValueError(f"{name}: {settings[name]!r} is none of {', '.join(known)}")
    if settings["parts"] not in (PARTS if settings["covariance"] == "diagonal" else PARTS[:1]):
        raise ValueError(f"parts: {settings['parts']!r} is none of 1, 2, 4, or above 1 for a full covariance")
    check_numbers(settings, least_one=("horizon",), positive=("concentration",))


def check_numbers(settings: Mapping[str, Any], *, least_one: Sequence[str], positive: Sequence[str]) -> None:
    """Raise ValueError for a number that cannot work: those of all mixtures, and the ones named."""
    for name in ("epoch_size", "max_components", "max_iterations", "halflife", *least_one):
        if settings[name] is not None and settings[name] < 1:
            raise ValueError(f"{name}: {settings[name]} is below 1")
    for name in ("prior_strength", "prior_scale", *positive):
        if not (settings[name] > 0.0 and np.isfinite(settings[name])):
            raise ValueError(f"{name}: {settings[name]} is not a finite number above 0")


def check_sizes(rows: np.ndarray) -> None:
    """Raise ValueError for rows that hold a value too large to be squared, or only values too small."""
    if rows.dtype == np.float32:
        return  # all of them can be squared in float64
    size = np.abs(rows)
    large = (size > LARGEST).any(axis=1)
    if large.any():
        row = int(np.argmax(large))
        raise ValueError(f"X: row {row} holds {size[row].max():.3g}: squares of values above {LARGEST:g} overflow")
    most = size.max(axis=1, initial=0.0)
    small = (most > 0.0) & (most < SMALLEST)
    if small.any():
        row = int(np.argmax(small))
        raise ValueError(f"X: row {row} holds at most {most[row]:.3g}: squares of values below {SMALLEST:g} vanish")


def rescale(builder: ModelBuilder, items: Items, old: Normaliser, new: Normaliser) -> None:
    """Bring all that is held and learnt from the units of one normaliser to those of another, exactly."""
    k, n, family = builder.n_components, items.n_items, builder.family
    ratio, step = old.scale / new.scale, (old.shift - new.shift) / new.scale
    items.x[:n] = items.x[:n] * ratio + step
    family.moments.mean[:k] = family.moments.mean[:k] * ratio + step
    if builder.told is not family.moments:  # of a diagonal family
        builder.told.mean[:k] = builder.told.mean[:k] * ratio + step
        builder.told.scatter[:k] *= ratio**2
    family.rescale(items, k, ratio)
    family.fit_all(k)


def units_of_all(
    items: Items, builder: ModelBuilder, rows: np.ndarray, old: Normaliser, *, by_column: bool
) -> Normaliser:
    """Return the units of what is held and of rows besides, all given in old units; rows : (n, n_dims), float64."""
    n, family = items.n_items, builder.family
    x = np.concatenate([items.x[:n], rows])
    count = np.append(items.counts[:n], np.ones(len(rows)))
    found = {"count": count, "mean": x * old.scale + old.shift}
    found[SECOND[family.covariance]] = family.clump_moments(items) * square_units(family.covariance, old)
    return units_of(found, by_column=by_column)


def fade(items: Items, factor: float) -> None:
    """Let all that is held count `factor` of what it did."""
    items.counts[: items.n_items] *= factor


def shared_mass(old: StudentMixture, items: Items, builder: ModelBuilder, normaliser: Normaliser) -> np.ndarray:
    """Return the mass that each old component, by rising id, has in common with each new one, (n_old, n_new)."""
    n = items.n_items
    rows = items.x[:n] * normaliser.scale + normaliser.shift
    place = np.searchsorted(np.sort(old.ids), old.predict(rows))
    place = np.argsort(old.ids, kind="stable")[place]
    shared = np.zeros((old.n_components, builder.n_components))
    for column in range(builder.candidates.shape[1]):
        used = builder.candidates[:n, column] >= 0
        np.add.at(
            shared,
            (place[used], builder.candidates[:n, column][used]),
            items.counts[:n][used] * builder.shares[:n, column][used],
        )
    return shared


# What leaves a mixture, and clumps that come back

SECOND = {"diagonal": "variance", "full": "covariance"}  # what a clump's second moment is called


def square_units(covariance: str, normaliser: Normaliser) -> np.ndarray:
    """Return what turns second moments of the learner's units into the data's, as they are packed."""
    scale = normaliser.scale
    return scale**2 if covariance == "diagonal" else pack_lower(np.outer(scale, scale)[None])[0]


def summary_of(builder: ModelBuilder, normaliser: Normaliser) -> dict[str, np.ndarray]:
    """Return the components and the prior, largest first, in the units of the data."""
    family, told, weight = builder.family, builder.told, builder.weight
    count = told.count[: builder.n_components]
    order = np.argsort(-count, kind="stable")
    if told is not family.moments:
        weight = np.zeros(len(count))
        mixture_common.sticks_expectation(count, order, builder.alpha, np.zeros(len(count)), weight)
    count = count[order]
    average = told.scatter[order] / np.maximum(count, 1e-300)[:, None]
    return {
        "id": builder.identities.id[order],
        "born_epoch": builder.identities.born_epoch[order],
        "count": count,
        "weight": weight[order],
        "mean": told.mean[order] * normaliser.scale + normaliser.shift,
        SECOND[family.covariance]: average * square_units(family.covariance, normaliser),
        "prior": family.prior.copy(),
        "shift": normaliser.shift.copy(),
        "scale": normaliser.scale.copy(),
        "concentration": np.array(builder.alpha),
    }


def covariances_of(summary: Mapping[str, np.ndarray], n_dims: int) -> np.ndarray:
    """Return (K, D) variances or (K, D, D) covariances out of a summary."""
    return summary["variance"] if "variance" in summary else unpack_lower(summary["covariance"], n_dims)


def clumps_of(items: Items, builder: ModelBuilder, normaliser: Normaliser) -> dict[str, np.ndarray]:
    """Return what is kept of the data, in its units, as `MemoryBoundedMixture.clumps_` says."""
    n, family = items.n_items, builder.family
    second, components = SECOND[family.covariance], summary_of(builder, normaliser)
    return {
        "count": items.counts[:n].copy(),
        "mean": items.x[:n] * normaliser.scale + normaliser.shift,
        second: family.clump_moments(items) * square_units(family.covariance, normaliser),
        "component": builder.identities.id[builder.likeliest(items)],
        "shift": normaliser.shift.copy(),
        "scale": normaliser.scale.copy(),
    } | {f"component_{name}": components[name] for name in ("id", "count", "mean", second)}


def check_clumps(clumps: Mapping[str, np.ndarray], covariance: str) -> dict[str, np.ndarray]:
    """Return received clumps as arrays, float64 but for the ids, or raise SnapshotError."""
    where, second = "mixture clumps", SECOND[covariance]
    missing = [name for name in ("count", "mean", second) if name not in clumps]
    if missing:
        raise SnapshotError(f"{where}: {', '.join(missing)} missing for a {covariance} mixture")
    ids = {"component", "component_id"}
    parts = {f"component_{name}" for name in ("id", "count", "mean", second)}
    if parts & set(clumps) and (missing := sorted(parts - set(clumps))):
        raise SnapshotError(f"{where}: {', '.join(missing)} missing: components are told whole or not at all")
    known = ({"count", "mean", second, "component", "shift", "scale"} | parts) & set(clumps)
    found = {name: np.array(clumps[name], np.int64 if name in ids else np.float64) for name in sorted(known)}
    if found["mean"].ndim != 2 or 0 in found["mean"].shape:
        raise SnapshotError(f"{where}: mean has shape {found['mean'].shape}, must be (n, n_features), n >= 1")
    (n, d), n_clumps = found["mean"].shape, len(np.atleast_1d(found[second]))
    if n_clumps > n:
        raise SnapshotError(f"{where}: {n_clumps} rows of {second} for {n} means")
    width = d if covariance == "diagonal" else d * (d + 1) // 2
    k = found.get("component_id", np.zeros(0)).size
    shapes = {"count": (n,), second: (n_clumps, width), "component": (n,), "shift": (d,), "scale": (d,)}
    shapes |= {
        "component_id": (k,),
        "component_count": (k,),
        "component_mean": (k, d),
        f"component_{second}": (k, width),
    }
    for name, array in found.items():
        if array.shape != shapes.get(name, (n, d)):
            raise SnapshotError(f"{where}: {name} has shape {array.shape}, must be {shapes[name]}")
        if not np.isfinite(array).all():
            raise SnapshotError(f"{where}: {name} is not finite")
    diagonal = np.arange(d) if covariance == "diagonal" else np.cumsum(np.arange(1, d + 1)) - 1
    limits = {"count": SMALLEST, "scale": SMALLEST, "component": 0, "component_id": 0, "component_count": 0.0}
    for name, least in (limits | {second: 0.0, f"component_{second}": 0.0}).items():
        array = found.get(name, np.zeros(0))
        array = array[:, diagonal] if name.endswith(second) and array.size else array
        if array.size and array.min() < least:
            raise SnapshotError(f"{where}: {name} is {array.min():g}, must be at least {least:g}")
    if k != len(np.unique(found.get("component_id", np.zeros(0)))):
        raise SnapshotError(f"{where}: a component_id appears twice")
    return found


def points_of(clumps: dict[str, np.ndarray], clump_cost: int) -> int:
    """Return the points of memory that received clumps and singlets take, of clumps of `clump_cost` values each."""
    (n, d), n_clumps = clumps["mean"].shape, len(clumps["variance" if "variance" in clumps else "covariance"])
    return n - n_clumps - (-n_clumps * clump_cost // d)


def units_of(clumps: dict[str, np.ndarray], *, by_column: bool) -> Normaliser:
    """Return the units of received clumps: those that came with them, or else the spread of all they stand for."""
    if "shift" in clumps and "scale" in clumps:
        return Normaliser(clumps["shift"], clumps["scale"])
    count, mean = clumps["count"], clumps["mean"]
    d, share = mean.shape[1], count / count.sum()
    shift = share @ mean
    variance = share @ (mean - shift) ** 2
    within = clumps["variance"] if "variance" in clumps else clumps["covariance"][:, np.cumsum(np.arange(1, d + 1)) - 1]
    variance += share[: len(within)] @ within
    return Normaliser.of_moments(shift, variance, np.abs(mean).max(axis=0), by_column=by_column)


def take_clumps(clumps: dict[str, np.ndarray], items: Items, builder: ModelBuilder, normaliser: Normaliser) -> None:
    """Fill empty items with received clumps and singlets."""
    family, place = builder.family, builder.family.merged
    mean = (clumps["mean"] - normaliser.shift) / normaliser.scale
    second = clumps[SECOND[family.covariance]] / square_units(family.covariance, normaliser)
    moments = family.moments
    for row in range(len(second)):
        moments.count[place] = clumps["count"][row]
        moments.mean[place] = mean[row]
        moments.scatter[place] = second[row] * clumps["count"][row]
        family.summarise(items, row, moments, place)
    items.n_clumps = items.n_items = len(second)
    items.append(mean[len(second) :], clumps["count"][len(second) :])


def take_components(clumps: dict[str, np.ndarray], items: Items, builder: ModelBuilder, normaliser: Normaliser) -> bool:
    """Begin from the components that came with received clumps, or else from those that these name, if any fit.

    Returns whether they came, with statistics of their own.
    """
    family = builder.family
    told = clumps.get("component_id", np.zeros(0, np.int64))
    if 0 < len(told) <= family.capacity:
        k, moments, second = len(told), family.moments, f"component_{SECOND[family.covariance]}"
        moments.count[:k] = clumps["component_count"]
        moments.mean[:k] = (clumps["component_mean"] - normaliser.shift) / normaliser.scale
        average = clumps[second] / square_units(family.covariance, normaliser)
        moments.scatter[:k] = average * clumps["component_count"][:, None]
        builder.go_on_from(told)
        return True
    ids, label = np.unique(clumps.get("component", np.zeros(0, np.int64)), return_inverse=True)
    if 0 < len(ids) <= family.capacity:
        builder.start_from(items, label, ids)
    return False


def report_of(
    items: Items, built: BuildReport, squeezed: CompressReport, events: list[tuple[str, int, int]]
) -> dict[str, Any]:
    """Return what one epoch did: what is held, moves tried and kept, births and deaths."""
    return {
        "clumps": items.n_clumps,
        "singlets": items.n_items - items.n_clumps,
        "iterations": built.iterations,
        "dense_passes": built.dense_passes,
        "splits_tried": built.splits_tried,
        "splits_kept": built.splits_kept,
        "exchanges": built.exchanges,
        "trials": built.trials,
        "trials_kept": built.trials_kept,
        "merges_tried": built.merges_tried,
        "merges_kept": built.merges_kept,
        "compression_splits_tried": squeezed.splits_tried,
        "compression_splits_kept": squeezed.splits_kept,
        "forced_merges": squeezed.forced_merges,
        "births": [(who, parent) for kind, who, parent in events if kind == "birth"],
        "deaths": [(who, heir) for kind, who, heir in events if kind == "death"],
    }
