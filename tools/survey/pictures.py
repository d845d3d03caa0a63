"""What a survey is about: dives of pictures, where each was taken, what people say it shows.

Called by tools/survey/command.py and the survey experiments. It must not decode pictures but in `read_picture`.
"""

import csv
import math
import os
import pathlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import cv2
import numpy as np

from stillwatch.base import UsageError, absent, shown
from stillwatch.sources import natural_key
from stillwatch.tools.shared import read_image

SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp", ".pgm", ".ppm"}
LONGEST_PX = 320
BY_FOLDER = "DIR-NAMES"
# What is out of range is taken for unknown: longitudes are told by 180 or by 360, cameras do not look from higher up.
MOST_LATITUDE, MOST_LONGITUDE, MOST_ALTITUDE_M = 90.0, 360.0, 12_000.0
MOST_NAMED = 5


@dataclass(frozen=True)
class Picture:
    """One picture: its file, and its name below the dive's folder."""

    path: pathlib.Path
    name: str


@dataclass(frozen=True)
class Dive:
    """Pictures that were taken together, by natural order of their names."""

    name: str
    pictures: list[Picture] = field(default_factory=list)
    numbered: bool = False  # another dive has its name


def notes_of_dives(dives: list[Dive]) -> list[str]:
    """Return a note of the dives that got a number, and where their pictures lie; none, no note."""
    numbered = [f"{dive.name} is {shown(str(dive.pictures[0].path.parent))}" for dive in dives if dive.numbered]
    return [f"dives of one name have numbers: {named_few(numbered)}"] if numbered else []


def dives_of(folders: list[str], labels_by_folder: bool = False) -> list[Dive]:
    """Return a dive for each folder; a folder whose pictures all lie in folders of its own gives one for each of them.

    labels_by_folder : folders inside a folder are classes and no dives

    Raises UsageError where a folder is not there or holds no picture. Dives of one name get numbers.
    """
    found: list[tuple[str, list[Picture]]] = []
    for given in folders:
        root = pathlib.Path(given)
        if not root.is_dir():
            raise UsageError(absent(given))
        names = sorted((str(path.relative_to(root)) for path in _pictures_below(root)), key=natural_key)
        if not names:
            raise UsageError(f"{given}: no pictures in it or in its folders; known are {', '.join(sorted(SUFFIXES))}")
        parts: dict[str, list[Picture]] = {}
        is_split = not labels_by_folder and all(len(pathlib.PurePath(name).parts) > 1 for name in names)
        for name in names:
            dive = pathlib.PurePath(name).parts[0] if is_split else (root.name or root.resolve().name)
            parts.setdefault(shown(dive), []).append(Picture(root / name, shown(name)))
        found += parts.items()
    seen: Counter[str] = Counter()
    dives = []
    for name, pictures in found:
        seen[name] += 1
        is_first = seen[name] == 1
        dives.append(Dive(name if is_first else f"{name}-{seen[name]}", pictures, not is_first))
    return dives


def _pictures_below(root: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yield the files of pictures in a folder and its folders, links followed; a folder is entered once."""
    entered: set[str] = set()
    for place, folders, files in os.walk(root, followlinks=True):
        real = os.path.realpath(place)
        if real in entered:
            folders.clear()
            continue
        entered.add(real)
        paths = (pathlib.Path(place, name) for name in files)
        yield from (path for path in paths if path.suffix.lower() in SUFFIXES and path.is_file())


def read_picture(path: pathlib.Path) -> np.ndarray | None:
    """Return a picture as BGR with the longer side at most 320 px, uint8, or None where it cannot be read."""
    try:
        image = read_image(path)
    except cv2.error:  # more pixels than OpenCV may decode
        return None
    return None if image is None else scaled(image)


def scaled(image: np.ndarray) -> np.ndarray:
    """Return a picture whose longer side is at most 320 px; smaller ones stay."""
    ratio = LONGEST_PX / max(image.shape[:2])
    if ratio >= 1.0:
        return image
    size = (max(1, round(image.shape[1] * ratio)), max(1, round(image.shape[0] * ratio)))
    return cv2.resize(image, size, interpolation=cv2.INTER_AREA)


class Table:
    """Rows of a CSV about pictures, by `picture`: dive/name, name below the dive's folder, or the file's name.

    A name that fits several pictures, and is the dive/name of none, does not say which it means: its row is left out,
    and noted.
    """

    def __init__(self, path: str, columns: tuple[str, ...], dives: list[Dive]):
        try:
            with open(path, newline="", encoding="utf-8-sig") as file:
                reader = csv.DictReader(file)
                held, rows = reader.fieldnames or (), list(reader)
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise UsageError(
                f"{path}: {getattr(error, 'strerror', None) or error}; it needs to be a CSV file"
            ) from None
        missing = [name for name in ("picture", *columns) if name not in held]
        if missing:
            raise UsageError(f"{path}: no column {', '.join(missing)}; it needs picture, {', '.join(columns)}")
        self._path, self._n_rows = path, len(rows)
        self._rows = {row["picture"]: row for row in rows if row["picture"]}
        self._used: set[str] = set()
        pairs = [(dive, picture) for dive in dives for picture in dive.pictures]
        self._fits = Counter(key for pair in pairs for key in set(_keys(*pair)))

    def find(self, dive: Dive, picture: Picture) -> dict[str, str] | None:
        """Return the row of a picture."""
        full, *shorter = _keys(dive, picture)
        for key in (full, *(key for key in shorter if self._fits[key] == 1)):
            if key in self._rows:
                self._used.add(key)
                return self._rows[key]
        return None

    def strays(self) -> list[str]:
        """Return notes of the rows that fit no picture, several, or of which a later one is used; none, no note."""
        notes = []
        unused = [name for name in self._rows if name not in self._used]
        several = [name for name in unused if self._fits[name] > 1]
        if several:
            notes.append(
                f"{self._path}: rows that fit more than one picture were left out, {len(several)} of {self._n_rows} "
                f"({named_few([shown(name) for name in several])}); their column picture needs dive/name"
            )
        n_strays = self._n_rows - len(self._used) - len(several)
        if n_strays:
            strays = [shown(name) for name in unused if self._fits[name] == 0]
            named = named_few(strays) if strays else "no name, or one that a later row has"
            notes.append(
                f"{self._path}: rows that match no picture were left out, {n_strays} of {self._n_rows} ({named}); its "
                "column picture needs dive/name, the name below the dive's folder, or the file's name, once"
            )
        return notes


def _keys(dive: Dive, picture: Picture) -> tuple[str, str, str]:
    """Return what a row may call a picture, the plainest name last."""
    return f"{dive.name}/{picture.name}", picture.name, picture.path.name


def named_few(names: list[str]) -> str:
    """Return the first few of some names in words."""
    return ", ".join(names[:MOST_NAMED]) + (", ..." if len(names) > MOST_NAMED else "")


def labels_of(dives: list[Dive], given: str | None) -> tuple[list[str], list[str]]:
    """Return (the label of each picture, dive by dive, "" where there is none; notes of rows without a picture).

    given : DIR-NAMES (the folder that a picture lies in), a CSV with picture and label, or None
    """
    pairs = [(dive, picture) for dive in dives for picture in dive.pictures]
    if given is None:
        return [""] * len(pairs), []
    if given == BY_FOLDER:
        return [picture.path.parent.name for _, picture in pairs], []
    table = Table(given, ("label",), dives)
    labels = [(table.find(dive, picture) or {}).get("label", "") or "" for dive, picture in pairs]
    return labels, table.strays()


def places_of(dives: list[Dive], given: str | None) -> tuple[np.ndarray, list[str]]:
    """Return (latitude, longitude and altitude above ground of each picture, dive by dive, (n, 3); notes).

    given : a CSV with picture, latitude, longitude, and altitude_m where it is known; empty cells and missing rows
    are unknown, NaN; what is no number or out of range is too, and noted, as are rows without a picture
    """
    pairs = [(dive, picture) for dive in dives for picture in dive.pictures]
    places = np.full((len(pairs), 3), np.nan)
    if given is None:
        return places, []
    table = Table(given, ("latitude", "longitude"), dives)
    refused: list[str] = []
    for n, (dive, picture) in enumerate(pairs):
        row = table.find(dive, picture) or {}
        cells = {name: row.get(name) or "" for name in ("latitude", "longitude", "altitude_m")}
        latitude, longitude, altitude = map(_number, cells.values())
        is_known = [abs(latitude) <= MOST_LATITUDE, abs(longitude) <= MOST_LONGITUDE, 0.0 < altitude < MOST_ALTITUDE_M]
        if all(is_known[:2]):
            places[n, :2] = latitude, longitude
        if is_known[2]:
            places[n, 2] = altitude
        bad = [(name, text) for (name, text), known in zip(cells.items(), is_known, strict=True) if text and not known]
        refused += [f"{name} {shown(text)} of {shown(row['picture'])}" for name, text in bad]
    notes = table.strays()
    if refused:
        notes.append(
            f"{given}: cells that are no number in range count as unknown, {len(refused)} of them "
            f"({named_few(refused)}); latitudes need to be within {MOST_LATITUDE:.0f} degrees, longitudes within "
            f"{MOST_LONGITUDE:.0f}, altitudes above 0 and below {MOST_ALTITUDE_M:.0f} m"
        )
    return places, notes


def _number(text: str) -> float:
    """Return a cell's finite number, or NaN."""
    try:
        number = float(text)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan
