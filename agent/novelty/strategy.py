"""What a novelty rule is: a strategy that judges a frame's rows, and learns from what it judged.

Made by agent/novelty/registry.py, called by agent/novelty/score.py. It must not keep "the last frame": what `learn`
needs is in the rows and the judgement that it is given.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from stillwatch.base import Stage
from stillwatch.features import Rows
from stillwatch.novelty.regions import Region
from stillwatch.novelty.rules import JUDGED
from stillwatch.novelty.visits import Kind, Over, Precedents, Sighting


class Sizes(NamedTuple):
    """What a strategy allocates for: patches of the largest frame, values of a patch without and with context."""

    capacity_patches: int
    n_patch_dims: int
    n_row_dims: int


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a strategy says of one frame. Arrays are the strategy's own and valid until its next call of `judge`.

    Attributes
    ----------
    surprise : ndarray of shape (n,), float
        Of each patch, in the strategy's own unit.
    deviations : ndarray of shape (n,), float32
        Of each patch above what is usual; NOVEL and more is novel; 0 where not valid.
    regions : list of Region
        The novel places, the strongest first.
    statistics : tuple of float
        The frame in one number by each measure, before it is compared with other frames.
    value : float
        Deviations of the statistics above what frames usually have.
    rarity : float
        One frame in this many has such a value here.
    sightings : list of Sighting
        Who stands out, under a camera that knows visits.
    precedents : Precedents
        What came before the visit that the strongest region is part of.
    stands_out : ndarray of shape (n,), bool, or None
        Patches that are unlike their place, with those that do not stay; None where the rule knows no places.
    weather : float
        How far what is unlike its place was left out, because nearly the whole picture is or it does not stay for two
        frames: 0 not at all, 1 all of it.
    unnamed : float
        The same of what things are called, which another colour of the whole picture changes as well.
    """

    surprise: np.ndarray
    deviations: np.ndarray
    regions: list[Region]
    statistics: tuple[float, ...]
    value: float
    rarity: float
    sightings: list[Sighting] = field(default_factory=list)
    precedents: Precedents = Precedents()
    stands_out: np.ndarray | None = None
    weather: float = 0.0
    unnamed: float = 0.0

    @property
    def was_judged(self) -> bool:
        """Whether less than half of what is unlike its place was left out for the weather."""
        return self.weather < JUDGED

    @property
    def was_named(self) -> bool:
        """Whether what patches and views are called is believed."""
        return self.unnamed < JUDGED


class Strategy(Stage, Protocol):
    """One way to tell what is novel; a row of agent/novelty/registry.py."""

    @property
    def kinds(self) -> list[Kind]:
        """Kinds of visits, the most frequent first; none where the rule knows no visits."""

    def judge(self, rows: Rows, t_ns: int) -> Judgement:
        """Judge a frame at stream time `t_ns`; it teaches nothing. A grid of another shape makes places void."""

    def share_like(self, rows: Rows, patches: np.ndarray) -> tuple[float, float]:
        """Return in what shares of all that was watched, and of the last seconds, the places of some patches looked as
        they do now; patches : (m,) int64. NaN where the rule knows no places, or was not asked of any.
        """

    def learn(self, rows: Rows, judgement: Judgement | None, t_ns: int, *, in_event: bool) -> list[Over]:
        """Let a frame teach what is usual; `judgement` is None before there is a model to judge it by.

        Return the visits that are over, under a camera that knows visits.
        """
