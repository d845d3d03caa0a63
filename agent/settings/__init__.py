"""Every setting of an agent, read from TOML with every fault listed at once.

Owns: the sections with their ranges and defaults, the reader, the config's hash.
In: a config file and overrides. Out: `Config`, or ConfigError.
Imports: base.
"""

from stillwatch.settings.config import (
    MAX_EPOCH_FRAMES,
    ClipsConfig,
    Config,
    EncoderConfig,
    EventsConfig,
    ExemplarsConfig,
    FeaturesConfig,
    GateConfig,
    LinkConfig,
    MixtureConfig,
    NoveltyConfig,
    SourceConfig,
    TopicsConfig,
)
from stillwatch.settings.reader import (
    Problem,
    allowed,
    config_hash,
    config_toml,
    key_lines,
    load_config,
    read_text,
    recorded_config,
    unknown_word,
)

__all__ = [
    "MAX_EPOCH_FRAMES",
    "ClipsConfig",
    "Config",
    "EncoderConfig",
    "EventsConfig",
    "ExemplarsConfig",
    "FeaturesConfig",
    "GateConfig",
    "NoveltyConfig",
    "LinkConfig",
    "MixtureConfig",
    "Problem",
    "SourceConfig",
    "TopicsConfig",
    "allowed",
    "config_hash",
    "config_toml",
    "key_lines",
    "load_config",
    "read_text",
    "recorded_config",
    "unknown_word",
]
