"""The novelty rules by the name that a `CameraRule` gives: another one is its file, a row here and its test.

Read by agent/novelty/score.py, which makes every row at start: a camera may only be known later.
"""

from collections.abc import Callable

from stillwatch.novelty.baselines import ComponentBaseline
from stillwatch.novelty.rules import LEAST_SPREAD_COMPONENTS
from stillwatch.novelty.strategy import Sizes, Strategy
from stillwatch.novelty.surprise import Surprise
from stillwatch.novelty.unlikeness import Unlikeness
from stillwatch.settings import Config


def _by_component(config: Config, sizes: Sizes) -> Strategy:
    baseline = ComponentBaseline(sizes.n_row_dims, config.patches.max_components, config.agent.seed)
    return Surprise(config.novelty, baseline, sizes.capacity_patches, LEAST_SPREAD_COMPONENTS)


STRATEGIES: dict[str, Callable[[Config, Sizes], Strategy]] = {"places": Unlikeness, "components": _by_component}
