"""The synthetic scenes of scenes.py as a source: every frame stamped by its number, so that runs repeat exactly.

Called by source.py. Adds nothing to a scene and keeps no pixels.
"""

from typing import Any

from stillwatch.agent.config import SourceConfig
from stillwatch.agent.errors import ConfigError, SourceError, UsageError
from stillwatch.agent.scenes import make_scene
from stillwatch.agent.source import RawFrame, SourceInfo
from stillwatch.agent.timestamps import NS


class SyntheticSource:
    """Frames 0, 1, ... of one scene, to its end if it has one."""

    live = False

    def __init__(self, name: str, params: dict[str, Any], config: SourceConfig):
        self.info = SourceInfo(f"synthetic:{name}", "synthetic", pixel_format="bgr24")
        try:
            self._scene = make_scene(name, **params)
        except UsageError as error:
            raise ConfigError([f"source.uri: {error}"]) from None
        except TypeError:
            raise ConfigError([f"source.uri: synthetic:{name}: unknown parameter among {sorted(params)}"]) from None
        self._config = config
        self._index = 0

    def open(self) -> None:
        scene = self._scene
        if scene.width * scene.height > self._config.max_pixels:
            raise SourceError(
                f"{self.info.uri}: {scene.width}x{scene.height} pixels are over source.max_pixels = "
                f"{self._config.max_pixels}"
            )
        self.info.width, self.info.height = scene.width, scene.height
        self.info.frames_claimed = scene.n_frames

    def read(self) -> RawFrame | None:
        index = self._index
        if self._scene.n_frames is not None and index >= self._scene.n_frames:
            return None
        self._index += 1
        return RawFrame(self._scene.render(index), round(index * NS / self._scene.rate_hz), pixel_format="bgr24")

    def close(self) -> None:
        """A scene holds nothing open."""

    def counters(self) -> dict[str, int]:
        return {}
