"""Which of the things that come are kept, where there is room for a few: a uniform sample that forgets.

Called by every memory of agent/novelty that keeps a sample. It must not draw before the room is full: what is drawn
decides bits.
"""

from collections.abc import Callable

import numpy as np


def place_of_oldest(ids: np.ndarray, but: int) -> int:
    """Return which place gives way to something new: a free one (-1), else that of the lowest id, never place `but`."""
    others = ids.copy()
    others[but] = np.iinfo(ids.dtype).max
    return int(np.argmin(others))


def place_of_next(
    held: int, room: int, offered: int, generator: Callable[[], np.random.Generator], horizon: int | None = None
) -> int:
    """Return where the next candidate goes, `room` or beyond where it is not kept (Vitter 1985, algorithm R [1]_).

    held : places that are in use;  offered : candidates before this one;  generator : asked where one is replaced
    horizon : candidates; of so many each is as likely to be kept, and older ones are ever less. None forgets nothing

    References
    ----------
    .. [1] J. S. Vitter, Random sampling with a reservoir, ACM TOMS 11(1), 1985, 37-57.
    """
    if held < room:
        return held
    return int(generator().integers(offered + 1 if horizon is None else min(offered + 1, horizon)))


def places_of_next(n: int, room: int, offered: int, rng: np.random.Generator) -> np.ndarray:
    """Return where each of the next n candidates goes, (n,) int64, as `place_of_next` told it one after the other.

    Nothing is forgotten, and `rng` draws for those beyond the room alone.
    """
    places = offered + np.arange(n)
    full = places >= room
    places[full] = rng.integers(places[full] + 1)
    return places
