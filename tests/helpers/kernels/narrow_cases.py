"""Clumps and points in few dimensions, and what kernels of the narrow family are given with them."""

import numpy as np
import reference_kernels_mixture as reference

from stillwatch.kernels import mixture_narrow as narrow
from stillwatch.kernels import mixture_rounded as rounded

PRIOR = np.array([0.01, 6.0, 0.3])
D, N, N_CLUMPS, N_COMPONENTS = 4, 300, 5, 3  # more items than a block takes
LOW = np.tril_indices(D)
ROOMS = (N_CLUMPS + 1, N_CLUMPS)  # for decoded clumps: all fit, or one too few


class World:
    """Clumps and points, soft responsibilities of three components, and the workspaces of the kernels."""

    def __init__(self, room, seed=0):
        rng = np.random.default_rng(seed)
        self.x = (rng.normal(size=(N, D)) + rng.choice([-3.0, 0.0, 3.0], (N, 1))).astype(np.float32)
        self.counts = np.ones(N)
        self.counts[:N_CLUMPS] = rng.integers(2, 30, N_CLUMPS)
        self.second = np.zeros((N_CLUMPS, D + 1), np.float32)
        self.codes = np.zeros((N_CLUMPS, D * (D - 1) // 2), np.int8)
        self.squares = np.zeros((N, D, D))
        for clump in range(N_CLUMPS):
            rows = rng.normal(size=(20, D)) @ rng.normal(size=(D, D))
            packed = np.ascontiguousarray(np.cov(rows.T)[LOW])
            rounded.encode(packed, 1.0, np.zeros((D, D)), self.second[clump], self.codes[clump])
            self.squares[clump] = reference.decode_rounded(self.second[clump], self.codes[clump])
        self.items = (self.x, self.second, self.codes, N_CLUMPS)
        self.dense = rng.dirichlet(np.ones(N_COMPONENTS), N)
        self.spaces = (np.zeros((room, len(LOW[0]))), np.zeros((D, D)), np.zeros((D + narrow.N_EXTRA, narrow.COLUMNS)))
        self.places = self.room_for(N_COMPONENTS)

    @staticmethod
    def room_for(n):
        """Return count, mean, packed, post_mean, whiten, fits of so many places."""
        return (
            np.zeros(n), np.zeros((n, D)), np.zeros((n, len(LOW[0]))), np.zeros((n, D)), np.zeros((n, D, D)),
            np.zeros((n, 3)),
        )  # fmt: skip

    def listed(self):
        """Return offsets, rows and places of lists in which every item is, its components in the columns of `dense`."""
        everyone = np.arange(N)
        rows, places = np.tile(everyone, N_COMPONENTS), np.repeat(np.arange(N_COMPONENTS), N)
        return np.arange(N_COMPONENTS + 1) * N, rows, places

    def maximised(self):
        narrow.maximise(
            *self.items, self.counts, self.dense, *self.listed(), N_COMPONENTS, PRIOR, *self.spaces, np.zeros(N),
            *self.places,
        )  # fmt: skip
        return self.places

    def statistics(self, shares):
        return reference.statistics(self.x.astype(float), self.counts, self.squares, shares)

    def log_joints(self, stats, log_weight):
        parts = [reference.FullComponent(*stat, PRIOR) for stat in stats]
        x = self.x.astype(float)
        return np.array(
            [
                [
                    weight + part.expected_log_density(x[s], self.squares[s])
                    for part, weight in zip(parts, log_weight, strict=True)
                ]
                for s in range(N)
            ]
        )
