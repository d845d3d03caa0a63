"""What points said of their components before they were folded, and their clumps no longer say: the model told has it.

Called by agent/learn/mixture/mixture.py around model building. It must not change what is held, nor what is built.
"""

import numpy as np

from stillwatch.kernels import mixture_common
from stillwatch.learn.mixture.build import ModelBuilder
from stillwatch.learn.mixture.families.places import Moments
from stillwatch.learn.mixture.items import Items

# A remainder is a correction: where it would leave a component less than this share of its points or of a variance, it
# is of another component than the one that is there now.
LEAST = 0.3


class Remainders:
    """Statistics that a diagonal mixture answers by: the built ones, and what their clumps have lost of each component.

    All points of a clump share q(z) (2.10): those on a boundary go to both sides alike, with a mean and a variance that
    are nobody's. While they were points, each had its own share. The difference in the statistics of a component, of
    points and of their clumps under the same model, is kept for as long as it is neither split nor gone, and added to
    what its clumps say. It sums to nothing over the components. Building, compression and the bound know clumps alone:
    a remainder says how a component is, not where it could be divided.

    The statistics that are told are all that has to be kept: the remainder is what they are less what the clumps say.

    Parameters
    ----------
    builder : ModelBuilder
        Of a diagonal family. `told` becomes statistics of its own; `began` finds the remainders.
    """

    def __init__(self, builder: ModelBuilder):
        family = builder.family
        self.builder = builder
        self.told = builder.told = Moments(family.capacity, family.n_dims, family.n_packed)
        self.count, self.ids = np.zeros(family.capacity), np.full(family.capacity, -1, np.int64)
        self.centre, self.first, self.second = np.zeros((3, family.capacity, family.n_dims))
        builder.began = self.find
        self.n = 0  # remainders there are, in places of the last model

    def fade(self, factor: float) -> None:
        """Let all that was told count `factor` of what it did."""
        n = self.builder.n_components
        self.told.count[:n] *= factor
        self.told.scatter[:n] *= factor

    def find(self, items: Items, n_held: int) -> None:
        """Find the remainders from responsibilities under the last model, of which items the first `n_held` were there.

        What is told had those of the same model: so no update that a component still has before it gets into them.
        """
        builder, told = self.builder, self.told
        family, kept = builder.family, builder.kept
        n, moments = builder.n_components, family.moments
        builder.spare.take(moments, n)
        mixture_common.build_lists(builder.candidates, n_held, n, kept.offsets, kept.rows, kept.places)
        family.maximise(items, kept, n)
        # About the mean that is told, as sums about the origin would cancel.
        step = moments.mean[:n] - told.mean[:n]
        count = moments.count[:n]
        self.count[:n] = told.count[:n] - count
        self.centre[:n] = told.mean[:n]
        self.first[:n] = -count[:, None] * step
        self.second[:n] = told.scatter[:n] - moments.scatter[:n] - count[:, None] * step**2
        self.ids[:n] = builder.identities.id[:n]
        self.n = n
        moments.take(builder.spare, n)
        family.fit_all(n)

    def tell(self, items: Items) -> None:
        """Write the statistics that the model just built on `items` is told by; it stays as it is."""
        builder = self.builder
        n, family = builder.n_components, builder.family
        if not self.n:
            self.told.take(family.moments, n)
            return
        if builder.identities.events:
            self._follow()
        builder.spare.take(family.moments, n)
        builder.update_lists(items)
        family.maximise(items, builder.kept, n)
        self._add()
        family.moments.take(builder.spare, n)
        family.fit_all(n)
        self.n = 0

    def _follow(self) -> None:
        """Bring remainders to the places of the new model: heirs have those of the dead too, who was split has none."""
        builder = self.builder
        place_of = {int(who): place for place, who in enumerate(self.ids[: self.n])}
        for kind, who, other in builder.identities.events:
            if kind == "birth":
                place_of.pop(other, None)
                continue
            dead, heir = place_of.pop(who, None), place_of.get(other)
            if dead is not None and heir is not None:
                step = self.centre[dead] - self.centre[heir]
                self.second[heir] += self.second[dead] + 2.0 * step * self.first[dead] + self.count[dead] * step**2
                self.first[heir] += self.first[dead] + self.count[dead] * step
                self.count[heir] += self.count[dead]
        n = builder.n_components
        was = np.array([place_of.get(int(who), -1) for who in builder.identities.id[:n]])
        for held in (self.count, self.first, self.second):
            held[:n] = np.where((was < 0).reshape((n,) + (1,) * (held.ndim - 1)), 0.0, held[was])
        self.centre[:n] = np.where((was < 0)[:, None], builder.family.moments.mean[:n], self.centre[was])

    def _add(self) -> None:
        """Tell the statistics of the components with their remainders."""
        builder, told = self.builder, self.told
        n, moments = builder.n_components, builder.family.moments
        count, step = moments.count[:n], moments.mean[:n] - self.centre[:n]
        total = count + self.count[:n]
        is_own = (total > LEAST * count) & (total > 1.0)
        part = np.where(is_own, total, 1.0)[:, None]
        first = (count[:, None] * step + self.first[:n]) / part
        scatter = moments.scatter[:n] + count[:, None] * step**2 + self.second[:n] - part * first**2
        scatter = np.maximum(scatter, LEAST * moments.scatter[:n])
        told.count[:n] = np.where(is_own, total, count)
        told.mean[:n] = np.where(is_own[:, None], self.centre[:n] + first, moments.mean[:n])
        told.scatter[:n] = np.where(is_own[:, None], scatter, moments.scatter[:n])

    def arrays(self) -> list[np.ndarray]:
        """Return every array held, for the account of memory."""
        return [*self.told.arrays(), self.count, self.ids, self.centre, self.first, self.second]
