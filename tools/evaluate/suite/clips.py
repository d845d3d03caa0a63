"""The four shared clips at working size, decoded once a process; and a stream: numbered frames with their truth.

Called by tools/evaluate/suite/cases.py. It must not know scores.
"""

import functools
import json
import pathlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import cv2
import numpy as np
from msgspec import structs

from stillwatch.base import UsageError
from stillwatch.settings import Config
from stillwatch.tools.evaluate.run import frames_of
from stillwatch.tools.evaluate.truth import Truth
from stillwatch.tools.shared import read_image

NS = 1_000_000_000
CLIPS = {  # name -> (file below the data folder, its truth, every n-th frame makes about 10 Hz)
    "car_overhead": ("surveillance/car_overhead.mp4", "surveillance/events.json", 1),
    "bottle_table": ("surveillance/bottle_table.mp4", "surveillance/events.json", 3),
    "vtest": ("surveillance/vtest_384x288.mp4", "surveillance/events.json", 1),
    "habcam_transect": ("underwater/habcam_transect.mp4", "underwater/segments.json", 1),
}


@dataclass(frozen=True, slots=True)
class Stream:
    """What is watched: `pictures()` yields (number, (h, w, 3) uint8 BGR, stream time in ns), the same each time.

    Numbers rise and are those of `truth`. rate_hz: of the numbers.
    """

    name: str
    rate_hz: float
    truth: Truth
    pictures: Callable[[], Iterator[tuple[int, np.ndarray, int]]]


class Rendered(Protocol):
    """A world whose frames can be had one by one."""

    n_frames: int
    rate_hz: float

    def truth(self) -> Truth: ...

    def render(self, i: int) -> np.ndarray: ...


def rendered(name: str, world: Rendered) -> Stream:
    """Return a world as what is watched, frame by frame."""

    def pictures():
        for i in range(world.n_frames):
            yield i, world.render(i), stamp_ns(i, world.rate_hz)

    return Stream(name, world.rate_hz, world.truth(), pictures)


@dataclass(frozen=True, slots=True)
class Clip:
    """A decoded clip: pictures (n, h, w, 3) uint8 BGR at the default working size, its entry in the truth file."""

    name: str
    pictures: np.ndarray
    entry: dict

    @property
    def rate_hz(self) -> float:
        return float(self.entry["fps"])


@functools.lru_cache(maxsize=len(CLIPS))
def clip(data: pathlib.Path, name: str) -> Clip:
    """Return a shared clip, decoded at most once a process; UsageError where a file is absent."""
    file, truth, _ = CLIPS[name]
    for path in (data / file, data / truth):
        if not path.is_file():
            raise UsageError(f"{path}: the suite needs this file of the shared data")
    table = json.loads((data / truth).read_text())
    entry = {**table, **table.get("files", table)[pathlib.Path(file).name]}
    config = Config()
    config = structs.replace(config, source=structs.replace(config.source, uri=str(data / file)))
    return Clip(name, np.stack([frame.colour for frame in frames_of(config)]), entry)


@functools.lru_cache(maxsize=len(CLIPS))
def median_picture(data: pathlib.Path, name: str) -> np.ndarray:
    """Return the median of 25 frames spread over a clip, (h, w, 3) uint8: the place without those who pass."""
    pictures = clip(data, name).pictures
    return np.median(pictures[np.linspace(0, len(pictures) - 1, 25).astype(int)], axis=0).astype(np.uint8)


def stamp_ns(number: int, rate_hz: float) -> int:
    """Return the stream time of a frame, ns."""
    return round(number * NS / rate_hz)


def read_picture(path: pathlib.Path) -> np.ndarray:
    """Return a picture as uint8 BGR; UsageError where it cannot be read."""
    picture = read_image(path)
    if picture is None:
        raise UsageError(f"{path}: the suite needs this picture of the shared data")
    return picture


def decoded(coded: np.ndarray) -> np.ndarray:
    """Return a picture from the bytes of its file, uint8 BGR; UsageError where they hold none."""
    picture = cv2.imdecode(coded, cv2.IMREAD_COLOR)
    if picture is None:
        raise UsageError(
            f"{len(coded)} bytes of the shared data hold no picture that can be decoded; take the data anew"
        )
    return np.asarray(picture, np.uint8)
