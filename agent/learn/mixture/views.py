"""What a mixture tells of an epoch, and how a rebuilt model recognises the components of the one before.

Called by agent/learn/mixture/mixture.py. It must not change what was learnt.
"""

from typing import Any

import numpy as np

from stillwatch.learn.mixture.build import BuildReport, ModelBuilder
from stillwatch.learn.mixture.items import Items
from stillwatch.learn.mixture.predictive import StudentMixture
from stillwatch.learn.mixture.priors import Normaliser
from stillwatch.learn.mixture.top_down import CompressReport


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
