"""Makes run folders of agents that saw known grounds: clumps, a scene model, an exemplar of each."""

import numpy as np
from run_folders import RunMaker, thumbnail

from stillwatch.transport.wire import messages as m

PLACES = {"sand": np.zeros(4), "reef": np.full(4, 6.0), "kelp": np.array([0.0, 9.0, -9.0, 0.0])}


def clumps_of(grounds, rng):
    """Return counts and means of twenty clumps a ground."""
    means = np.concatenate([PLACES[name] + 0.3 * rng.normal(size=(20, 4)) for name in grounds])
    return rng.integers(5, 60, len(means)).astype(np.float32), means.astype(np.float32)


def make_run(path, grounds, *, seed=0, encoder="e1", has_clumps=True, width=4):
    """Write a run folder of an agent that saw these grounds, with an exemplar of each."""
    rng = np.random.default_rng(seed)
    maker = RunMaker(path)
    maker.send(m.Status, state="live", encoder_hash=encoder)
    means = np.array([PLACES[name][:width] for name in grounds], np.float32)
    maker.send(
        m.Model,
        which="scenes",
        covariance="diagonal",
        n_dims=width,
        n_components=len(grounds),
        model_epoch=1,
        ids=np.arange(len(grounds), dtype=np.int64),
        counts=np.full(len(grounds), 300.0, np.float32),
        weights=np.full(len(grounds), 1.0 / len(grounds), np.float32),
        means=means,
        variances=np.ones_like(means),
        prior_mean=np.zeros(width, np.float32),
        prior_strength=1.0,
        prior_dof=2.0,
        prior_scale=np.ones(width, np.float32),
        concentration=1.0,
    )
    if has_clumps:
        counts, rows = clumps_of(grounds, rng)
        scale = (np.abs(rows).max(axis=0) / 127).astype(np.float32)
        maker.send(
            m.Clumps,
            which="scenes",
            model_epoch=1,
            n_clumps=len(counts),
            counts=counts,
            means=np.round(rows / scale).astype(np.int8),
            mean_scale=scale,
            mean_offset=np.zeros(4, np.float32),
            variances=np.full(rows.shape, 0.9, np.float16),
        )
    for k in range(len(grounds)):
        maker.send(
            m.Exemplar, id=50 + k, component=k, role="newest", exemplar_frame=90 + k, thumbnail=thumbnail(k, False)
        )
        maker.send(
            m.Exemplar, id=k, component=k, role="most_typical", exemplar_frame=10 + k, thumbnail=thumbnail(k, False)
        )
    maker.folder.close()
    return str(path)
