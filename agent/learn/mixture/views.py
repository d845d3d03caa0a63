"""What a mixture does around an epoch: sizes are checked, units widened, counts faded, old components recognised.

Called by agent/learn/mixture/mixture.py. It must not learn.
"""

from typing import Any

import numpy as np

from stillwatch.learn.mixture.build import BuildReport, ModelBuilder
from stillwatch.learn.mixture.items import Items
from stillwatch.learn.mixture.predictive import StudentMixture
from stillwatch.learn.mixture.priors import Normaliser
from stillwatch.learn.mixture.top_down import CompressReport

# Squares of larger values overflow, of smaller ones vanish.
LARGEST, SMALLEST = 1e150, 1e-150


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
    family.rescale(items, k, ratio)
    for place in range(k):
        family.fit(place)


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


def report_of(items: Items, built: BuildReport, squeezed: CompressReport, events: list) -> dict[str, Any]:
    """Return what one epoch did: what is held, moves tried and kept, births and deaths."""
    return {
        "clumps": items.n_clumps,
        "singlets": items.n_items - items.n_clumps,
        "iterations": built.iterations,
        "dense_passes": built.dense_passes,
        "splits_tried": built.splits_tried,
        "splits_kept": built.splits_kept,
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
