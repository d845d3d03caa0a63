"""How much ground each picture stands for, and each cluster of each dive: metres of track, or square metres seen.

Called by tools/survey/command.py and page.py. It must not read pictures.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from stillwatch.base import UsageError

EARTH_M = 6_371_000.0
# A way between two pictures of a dive that is longer than so many of its median ones is a gap.
MOST_STEPS = 5.0
# The doubt of shares is measured between so many stretches of a dive's track.
STRETCHES = 20
METRES, SQUARE_METRES = "m", "m2"


@dataclass(frozen=True)
class View:
    """What a camera that looks straight down sees, in radians (under water: in water), across and along the track."""

    across: float
    along: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the view of "42x34", degrees; UsageError where it is none."""
        try:
            across, along = (math.radians(float(part)) for part in text.lower().split("x"))
        except ValueError:
            raise UsageError(f"--view {text}: two numbers of degrees are needed, across and along: 42x34") from None
        if not (0.0 < across < math.pi and 0.0 < along < math.pi):
            raise UsageError(f"--view {text}: both angles are above 0 and below 180 degrees")
        return cls(across, along)

    def footprint(self, altitude: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (metres across, metres along) of flat ground seen from altitudes in metres."""
        return 2.0 * altitude * math.tan(0.5 * self.across), 2.0 * altitude * math.tan(0.5 * self.along)


@dataclass(frozen=True)
class Ground:
    """Ground by dive and cluster.

    Attributes
    ----------
    unit : METRES of track, or SQUARE_METRES seen
    amounts, deviations : ndarray of shape (J, K), float64
        In that unit; standard deviations of what is known of each.
    n_pictures : ndarray of shape (J,), int64
        Pictures of each dive that stand for some ground.
    """

    unit: str
    amounts: np.ndarray
    deviations: np.ndarray
    n_pictures: np.ndarray


def flat_metres(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return metres (east, north) of the middle latitude and of the first position, (n,) each; NaN where unknown.

    positions : (n, 2) latitude, longitude in degrees; the date line is no edge
    """
    latitude, longitude = positions.T
    known = np.isfinite(positions).all(axis=1)
    if not known.any():
        return np.full(len(positions), np.nan), np.full(len(positions), np.nan)
    first = longitude[known][0]
    middle = 0.5 * (latitude[known].min() + latitude[known].max())
    east = (longitude - first + 180.0) % 360.0 - 180.0
    metres = EARTH_M * math.pi / 180.0
    return np.where(known, east, np.nan) * metres * math.cos(math.radians(middle)), (latitude - middle) * metres


def ways(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (metres from each picture of a dive to the next, which of them are gaps), (n - 1,) each; none unknown."""
    latitude, longitude = np.radians(positions).T
    north = np.diff(latitude)
    turned = (np.diff(longitude) + np.pi) % (2.0 * np.pi) - np.pi
    steps = EARTH_M * np.hypot(north, turned * np.cos(latitude[:-1]))
    return steps, steps > MOST_STEPS * max(float(np.median(steps)), 1e-9) if len(steps) else np.zeros(0, bool)


def picture_ground(
    dives: np.ndarray, positions: np.ndarray, altitudes: np.ndarray, view: View | None
) -> tuple[np.ndarray, str]:
    """Return (the ground that each picture stands for, (n,) float64, 0 where unknown; its unit).

    Of track: half the way to the one before and half the way to the next, in the dive's order; gaps are nobody's. Of
    area: as wide as the picture sees across, as long as that way or what it sees along, whichever is shorter, so that
    pictures that overlap count once and ground that was not seen does not count.

    dives : (n,) int64;  positions : (n, 2) degrees, NaN where unknown;  altitudes : (n,) metres above ground, NaN
    where unknown;  view : None gives metres of track, as does an altitude that no picture has
    """
    has_area = view is not None and bool(np.isfinite(altitudes).any())
    ground = np.zeros(len(dives))
    known = np.isfinite(positions).all(axis=1)
    if has_area:
        known &= np.isfinite(altitudes) & (altitudes > 0.0)
    for dive in np.unique(dives):
        own = np.flatnonzero((dives == dive) & known)
        if not len(own):
            continue
        steps, is_gap = ways(positions[own])
        halves = np.where(is_gap, np.inf if has_area else 0.0, 0.5 * steps)
        edge = [np.inf] if has_area else [0.0]
        before, after = np.r_[edge, halves], np.r_[halves, edge]
        if not has_area:
            ground[own] = before + after
            continue
        assert view is not None
        across, along = view.footprint(altitudes[own])
        ground[own] = across * (np.minimum(before, 0.5 * along) + np.minimum(after, 0.5 * along))
    return ground, SQUARE_METRES if has_area else METRES


def ground_of(
    clusters: np.ndarray,
    certainty: np.ndarray,
    least: np.ndarray,
    dives: np.ndarray,
    of_picture: tuple[np.ndarray, str],
) -> Ground:
    """Return ground by dive and cluster.

    The deviation of an amount has two parts: between stretches of the track (a ratio estimate by clusters of pictures,
    Cochran 1977, section 11.8: neighbours show the same ground, so pictures are no independent draws), and the labels'
    own probabilities. It is never less than `least` says: a cluster that one stretch has not shown may still be there.

    clusters, certainty : (n,) of each picture;  least : (J, K) least deviation, part of the dive
    dives : (n,) int64;  of_picture : as `picture_ground` returns it
    """
    metres, unit = of_picture
    amounts = np.zeros(least.shape)
    np.add.at(amounts, (dives, clusters), metres)
    label_variance = np.zeros(least.shape)
    np.add.at(label_variance, (dives, clusters), metres**2 * certainty * (1.0 - certainty))
    deviations = np.zeros(least.shape)
    for j in range(len(least)):
        own = np.flatnonzero((dives == j) & (metres > 0.0))
        total = float(metres[own].sum())
        if total > 0.0:
            shares = share_deviations(clusters[own], metres[own], least.shape[1])
            deviations[j] = np.sqrt((total * np.maximum(shares, least[j])) ** 2 + label_variance[j])
    return Ground(unit, amounts, deviations, np.bincount(dives[metres > 0.0], minlength=len(least)))


def share_deviations(clusters: np.ndarray, metres: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the standard deviation of each cluster's share of a track, (K,), between stretches of it.

    clusters, metres : (n,) of the pictures in the track's order
    """
    reached = np.cumsum(metres) - 0.5 * metres
    n = min(STRETCHES, len(metres))
    stretch = np.minimum((reached / metres.sum() * n).astype(int), n - 1)
    table = np.zeros((n, n_clusters))
    np.add.at(table, (stretch, clusters), metres)
    of_stretch = table.sum(axis=1, keepdims=True)
    shares = table.sum(axis=0) / metres.sum()
    if n < 2:
        return np.zeros(n_clusters)
    return np.sqrt(n / (n - 1) * ((table - shares * of_stretch) ** 2).sum(axis=0)) / metres.sum()
