"""Plates: the still places that made worlds show, from the shared data; and strips of sea floor to pan over.

Called by tools/evaluate/suite/worlds.py. It must not know what happens there.
"""

import pathlib
import zipfile

import cv2
import numpy as np

from stillwatch.tools.evaluate.suite.clips import decoded, median_picture, read_picture

SCENES = ("joshua_tree", "minaret", "pagoda", "pyramid")  # of Caltech-101: places, not things
FLOORS = ("sand", "gravel", "shell_hash", "cobble", "boulder")


def plate(data: pathlib.Path, rng: np.random.Generator, height: int, width: int) -> np.ndarray:
    """Return a place, (height, width, 3) uint8 BGR: one of the sources, cut, perhaps mirrored, brighter or darker."""
    kind = rng.choice(["clip", "reef", "floor", "scene"], p=[0.45, 0.25, 0.15, 0.15])
    if kind == "clip":
        source = median_picture(data, str(rng.choice(["car_overhead", "bottle_table", "vtest"])))
    elif kind == "reef":
        source = read_picture(rng.choice(sorted((data / "underwater" / "reef").glob("*.jpg"))))
    elif kind == "floor":
        source = read_picture(data / "underwater" / "habcam" / f"{rng.choice(FLOORS)}.jpg")
    else:
        source = _scene(data, rng)
    return _cut(source, rng, height, width)


def strip(data: pathlib.Path, rng: np.random.Generator, height: int, width: int) -> np.ndarray:
    """Return ground to pan over, (height, 4 * width, 3) uint8 BGR, that wraps from its right end to its left."""
    photo = read_picture(data / "underwater" / "habcam" / f"{rng.choice(FLOORS)}.jpg")
    tile = cv2.resize(photo, (2 * width, round(2 * width * photo.shape[0] / photo.shape[1])))[:height]
    return np.concatenate([tile, tile[:, ::-1]], axis=1)


def _scene(data: pathlib.Path, rng: np.random.Generator) -> np.ndarray:
    with zipfile.ZipFile(data / "caltech" / "train.zip") as pictures:
        folder = str(rng.choice(SCENES))
        names = sorted(name for name in pictures.namelist() if name.startswith(f"{folder}/") and name.endswith(".jpg"))
        coded = np.frombuffer(pictures.read(str(rng.choice(names))), np.uint8)
    return decoded(coded)


def _cut(source: np.ndarray, rng: np.random.Generator, height: int, width: int) -> np.ndarray:
    """Return a window of the view's shape over 75 to 100 % of the source, scaled, with another gain."""
    rows, columns = source.shape[:2]
    scale = min(rows / height, columns / width) * rng.uniform(0.75, 1.0)
    tall, wide = int(height * scale), int(width * scale)
    top, left = rng.integers(0, rows - tall + 1), rng.integers(0, columns - wide + 1)
    window = cv2.resize(source[top : top + tall, left : left + wide], (width, height), interpolation=cv2.INTER_AREA)
    window = window[:, ::-1] if rng.random() < 0.5 else window
    return np.clip(window * rng.uniform(0.75, 1.1), 0, 255).astype(np.uint8)
