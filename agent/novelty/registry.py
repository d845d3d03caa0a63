"""The novelty rules by the name that a `CameraRule` gives: another one is its file, a row here and its test.

Read by agent/novelty/score.py, which makes every row at start: a camera may only be known later.
"""

from collections.abc import Callable

from stillwatch.novelty.places import Unlikeness
from stillwatch.novelty.strangeness import Strangeness
from stillwatch.novelty.strategy import Sizes, Strategy
from stillwatch.settings import Config

STRATEGIES: dict[str, Callable[[Config, Sizes], Strategy]] = {"places": Unlikeness, "patches": Strangeness}
