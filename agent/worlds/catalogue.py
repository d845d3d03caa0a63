"""The worlds there are, by name: `make_world(name, seed, ...)` for demos, tests, benchmarks and soak runs.

Called by sources/synthetic.py, tools and tests. Parameters come checked, also where they come as text from a URI.
"""

from stillwatch.base import UsageError
from stillwatch.worlds.base import WEATHERS, World
from stillwatch.worlds.road import Road
from stillwatch.worlds.room import Room
from stillwatch.worlds.transect import Transect

WORLDS: dict[str, type[World]] = {world.name: world for world in (Transect, Road, Room)}
_LIMITS = {
    "n_frames": (int, 1, 10_000_000),
    "width": (int, 64, 4096),
    "height": (int, 64, 4096),
    "drift": (float, 0.0, 0.9),
    "shake": (float, 0.0, 20.0),
    "noise": (float, 0.0, 100.0),
}
_DEFAULTS = {"width": 320, "height": 240, "weather": "clear", "drift": 0.08, "shake": 0.0, "noise": 2.0, "quiet": False}


def make_world(name: str, seed: int = 0, **params) -> World:
    """Return the world `name` (one of WORLDS); parameters as `World`, also as strings from a URI.

    Raises
    ------
    UsageError
        In one line: which name, parameter or value is wrong, and what there is instead.
    """
    if name not in WORLDS:
        raise UsageError(f"synthetic:{name}: no such world; there are {', '.join(WORLDS)}")
    world = WORLDS[name]
    chosen = {**_DEFAULTS, "n_frames": world.default_frames}
    for key, value in params.items():
        if key not in chosen:
            raise UsageError(f"synthetic:{name}: unknown parameter {key!r}; there are seed, {', '.join(chosen)}")
        chosen[key] = _parsed(name, key, value)
    return world(int(_number(name, "seed", seed, int, 0, 2**31 - 1)), **chosen)


def _parsed(name, key, value):
    """Return a parameter's value checked and of its type."""
    if key == "weather":
        if value not in WEATHERS:
            raise UsageError(f"synthetic:{name}: weather {value!r} is not one of {', '.join(WEATHERS)}")
        return value
    if key == "quiet":
        text = str(value).lower()
        if text not in ("1", "0", "true", "false"):
            raise UsageError(f"synthetic:{name}: quiet {value!r} is not true, false, 1 or 0")
        return text in ("1", "true")
    return _number(name, key, value, *_LIMITS[key])


def _number(name, key, value, kind, low, high):
    """Return a number of `kind` within its limits, from a number or its text."""
    try:
        number = kind(value)
    except (TypeError, ValueError):
        raise UsageError(f"synthetic:{name}: {key} {value!r} is not a number; it needs one") from None
    if not low <= number <= high:  # also refuses NaN
        raise UsageError(f"synthetic:{name}: {key} {number} is outside [{low}, {high}]")
    return number
