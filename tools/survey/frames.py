"""Frames of recordings, videos and made worlds as the pictures of a dive, kept in the survey's folder.

Called by tools/survey/command.py. What was taken once is found again; a source that was not read to its end is read
anew. It must not keep frames in memory.
"""

import csv
import hashlib
import math
import pathlib
import shutil
from collections.abc import Callable

import cv2
import numpy as np

from stillwatch.base import ConfigError, RealClock, SourceError, UsageError, shown
from stillwatch.settings import SourceConfig
from stillwatch.sources import RawFrame, open_source
from stillwatch.tools.shared import write_image
from stillwatch.tools.survey.pictures import Dive, Picture, places_of, scaled
from stillwatch.transport.disk import RECORDING_NAME, log_files

SCHEMES = ("recording:", "synthetic:")
EVERY = 30
QUALITY = 95
NAV_NAME, NOTE_NAME = "nav.csv", "cut-short.txt"
NAV_COLUMNS = ("picture", "latitude", "longitude", "altitude_m")


def is_source(given: str, every: int | None) -> bool:
    """Return whether a dive is to be read as frames: a video, a made world; a recording where `every` asks for it."""
    path = pathlib.Path(given)
    is_recording = every is not None and path.is_dir() and bool(log_files(path, RECORDING_NAME))
    return given.startswith(SCHEMES) or path.is_file() or is_recording


def take_frames(given: str, folder: pathlib.Path, every: int | None, show: Callable[[str], None]) -> pathlib.Path:
    """Return the folder with one frame in `every` (None: 30) of a source, of at most 320 px, named by its number.

    Its nav.csv has the frames' positions, where the source knows them; cut-short.txt says why a source ended early.

    Raises UsageError where the source cannot be read, or gives no frame.
    """
    every = EVERY if every is None else every
    uri = f"recording:{given}" if pathlib.Path(given).is_dir() else given
    name = _name(given)
    key = f"{uri}|{every}|{_written(given)}".encode("utf-8", "surrogateescape")
    place = folder / hashlib.sha256(key).hexdigest()[:12] / name
    if place.exists():
        return place
    part = place.with_name(f"{name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    rows = _read(uri, part, every, lambda n: show(f"{name}: {n} frames taken"))
    with (part / NAV_NAME).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([NAV_COLUMNS, *rows])
    part.replace(place)
    return place


def known_places(folders: list[str], dives: list[Dive]) -> np.ndarray:
    """Return latitude, longitude and altitude of pictures that a source knew, dive by dive, (n, 3), NaN of all others.

    folders : made by `take_frames`
    """
    pairs = [picture.path for dive in dives for picture in dive.pictures]
    places = np.full((len(pairs), 3), np.nan)
    of_path = {path: n for n, path in enumerate(pairs)}
    for folder in map(pathlib.Path, folders):
        frames = Dive("", [Picture(path, path.name) for path in pairs if path.parent == folder])
        for picture, place in zip(frames.pictures, places_of([frames], str(folder / NAV_NAME))[0], strict=True):
            places[of_path[picture.path]] = place
    return places


def _name(given: str) -> str:
    """Return what a dive is called after its source."""
    path, _, options = given.removeprefix("recording:").partition("?")
    stem = pathlib.Path(path).stem or pathlib.Path(path).resolve().name
    text = "-".join([stem, *(option.partition("=")[2] for option in options.split("&") if option)])
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in text)


def _written(given: str) -> str:
    """Return what changes when a file does; nothing for what is no file."""
    path = pathlib.Path(given)
    return f"{path.resolve()}|{path.stat().st_size}|{path.stat().st_mtime_ns}" if path.is_file() else ""


def _read(uri: str, part: pathlib.Path, every: int, show: Callable[[int], None]) -> list[tuple[str, float, float, str]]:
    """Write the frames; return (name, latitude, longitude, altitude or "") of those whose position is known."""
    rows, n, taken = [], 0, 0
    try:
        source = open_source(uri, SourceConfig(), RealClock())
        source.open()
        try:
            while (frame := source.read()) is not None:
                if not isinstance(frame, RawFrame):
                    continue
                if n % every == 0:
                    name = f"{n:08d}.jpg"
                    write_image(part / name, scaled(frame.colour), [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
                    taken += 1
                    show(taken)
                    if frame.recorded is not None and math.isfinite(frame.recorded.nav.latitude):
                        nav = frame.recorded.nav
                        altitude = f"{nav.altitude_m}" if math.isfinite(nav.altitude_m) else ""
                        rows.append((name, nav.latitude, nav.longitude, altitude))
                n += 1
        finally:
            source.close()
    except OSError as error:
        raise UsageError(f"{part}: frames not written: {error.strerror}; name another place with --out") from None
    except (SourceError, ConfigError) as error:
        if not taken:
            raise UsageError(f"{uri}: {error}") from None
        (part / NOTE_NAME).write_text(shown(f"{uri}: {error}"), encoding="utf-8")
    if not taken:
        raise UsageError(f"{uri}: it has no frame; leave it out")
    return rows
