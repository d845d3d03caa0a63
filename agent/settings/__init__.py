"""Every setting of an agent, read from TOML with every fault listed at once.

In: a config file and overrides. Out: `Config`.
Imports: base.
"""

from stillwatch.settings.config import (
    MAX_EPOCH_FRAMES,
    Config,
    EventsConfig,
    FeaturesConfig,
    GateConfig,
    LinkConfig,
    MixtureConfig,
    NoveltyConfig,
    SourceConfig,
)
from stillwatch.settings.reader import Problem, config_hash, config_toml, load_config, recorded_config

__all__ = [
    "MAX_EPOCH_FRAMES",
    "Config",
    "EventsConfig",
    "FeaturesConfig",
    "GateConfig",
    "NoveltyConfig",
    "LinkConfig",
    "MixtureConfig",
    "Problem",
    "SourceConfig",
    "config_hash",
    "config_toml",
    "load_config",
    "recorded_config",
]
