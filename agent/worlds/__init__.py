"""Worlds made by seed, with exact truth: a road, a room, a transect over a sea floor.

Owns: how each is painted, and when something happens in it.
In: a name, a seed, a size. Out: pictures and the events in them.
Imports: base.
"""

from stillwatch.worlds.catalogue import make_world
from stillwatch.worlds.transect import ANIMAL, HABITATS, Transect

__all__ = ["ANIMAL", "HABITATS", "Transect", "make_world"]
