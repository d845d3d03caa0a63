"""What tests ask of every made world with things: its frames when nothing new ever came."""

from typing import Any

import numpy as np


def without_news(world: Any, i: int) -> np.ndarray:
    """Return frame i of the same world with its usual things alone, as `world.render`."""
    whole, world.things = world.things, [thing for thing in world.things if thing.usual]
    try:
        return world.render(i)
    finally:
        world.things = whole
