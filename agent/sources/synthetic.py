"""The synthetic worlds as a source: every frame stamped by its number, so that runs repeat exactly.

Called by sources/registry.py. Adds nothing to a world and keeps no pixels.
"""

from typing import Any

from stillwatch.base import ConfigError, SourceError, UsageError
from stillwatch.settings import SourceConfig
from stillwatch.sources.base import RawFrame, SourceInfo
from stillwatch.sources.pace import Pace
from stillwatch.sources.timestamps import NS
from stillwatch.worlds import make_world


class SyntheticSource:
    """Frames 0, 1, ... of one world, to its end if it has one; with `pace` in real time."""

    live = False

    def __init__(self, name: str, params: dict[str, Any], config: SourceConfig, pace: Pace | None = None):
        self.info = SourceInfo(f"synthetic:{name}", "synthetic", pixel_format="bgr24")
        try:
            self._world = make_world(name, **params)
        except UsageError as error:
            raise ConfigError([f"source.uri: {error}"]) from None
        except TypeError:
            raise ConfigError(
                [f"source.uri: synthetic:{name}: unknown parameter among {sorted(params)}; write NAME=NUMBER"]
            ) from None
        self._config, self._pace = config, pace
        self._index = 0

    def open(self) -> None:
        world = self._world
        if world.width * world.height > self._config.max_pixels:
            raise SourceError(
                f"{self.info.uri}: {world.width}x{world.height} pixels are over the limit source.max_pixels = "
                f"{self._config.max_pixels}"
            )
        self.info.width, self.info.height = world.width, world.height
        self.info.frames_claimed = world.n_frames

    def read(self) -> RawFrame | None:
        index = self._index
        if self._world.n_frames is not None and index >= self._world.n_frames:
            return None
        self._index += 1
        t_ns = round(index * NS / self._world.rate_hz)
        if self._pace is not None:
            self._pace.wait_for(t_ns)
        return RawFrame(self._world.render(index), t_ns, pixel_format="bgr24")

    def close(self) -> None:
        """A world holds nothing open."""

    def counters(self) -> dict[str, int]:
        return {}
