"""Half an hour of fixed scenes in which nothing new happens, whatever light and sensor do: nobody is called."""

import pytest
from msgspec import structs

from stillwatch.base.clock import VirtualClock
from stillwatch.pipeline.pipeline import Pipeline
from stillwatch.settings.config import Config, SourceConfig
from stillwatch.tools.evaluate.run import frames_of

HALF_AN_HOUR = 18_000  # frames at the scenes' 10 Hz


class Forgetful:
    """Takes messages and keeps none."""

    def send(self, message):
        """Forget it."""


def alerts_of(name: str, frames: int, **params) -> list[tuple[int, str]]:
    """Return (frame, kind) of everything told about a quiet scene."""
    words = "".join(f"&{key}={value}" for key, value in params.items())
    uri = f"synthetic:{name}?quiet=1&n_frames={frames}{words}"
    config = structs.replace(Config(), source=SourceConfig(uri=uri, width=320, height=240))
    pipeline, told = Pipeline(config, Forgetful(), VirtualClock()), []
    try:
        for frame in frames_of(config):
            told += [(frame.sequence, record.kind) for record in pipeline.step(frame).events]
    finally:
        pipeline.close()
    return told


@pytest.mark.slow
@pytest.mark.parametrize("name", ["road", "room"])
def test_half_a_minute_with_drifting_light_and_noise_raises_nothing(name):
    assert alerts_of(name, 300, seed=3, drift=0.15, noise=4, width=160, height=120) == []


@pytest.mark.soak
@pytest.mark.parametrize(("name", "seed"), [("road", 5), ("room", 6)])
def test_half_an_hour_with_drifting_light_and_noise_raises_nothing(name, seed):
    assert alerts_of(name, HALF_AN_HOUR, seed=seed, drift=0.15, noise=4) == []
