"""Actors: things cut out of Caltech-101 pictures, several of a kind, people-sized and thing-sized.

Called by tools/evaluate/suite/worlds.py. It must not know where they go.
"""

import functools
import pathlib
import zipfile

import cv2
import numpy as np

from stillwatch.tools.evaluate.suite.clips import decoded

# Kinds that stand by themselves in most of their pictures, so that a cut-out looks like one.
KINDS = (
    "barrel", "binocular", "bonsai", "buddha", "camera", "cannon", "cellphone", "crab", "crayfish", "cup", "dalmatian",
    "dolphin", "electric_guitar", "elephant", "emu", "ewer", "flamingo", "garfield", "gramophone", "hawksbill",
    "inline_skate", "kangaroo", "llama", "lobster", "mandolin", "metronome", "Motorbikes", "octopus", "panda",
    "pigeon", "rhino", "rooster", "saxophone", "scorpion", "snoopy", "soccer_ball", "starfish", "stegosaurus",
    "stop_sign", "umbrella", "watch", "wheelchair", "wild_cat", "windsor_chair", "yin_yang",
)  # fmt: skip
PICTURES = 4  # of a kind
CUT_PX = 96  # longer side at which an outline is looked for
LEAST_SHARE, MOST_SHARE = 0.12, 0.85  # of a picture, that a believable outline covers
FAINTEST = 64  # of 255: less of a pixel than that is no part of an actor


@functools.lru_cache(maxsize=64)
def coded_pictures(data: pathlib.Path, kind: str) -> tuple[np.ndarray, ...]:
    """Return the bytes of a kind's first pictures, uint8: those that a world chooses among."""
    with zipfile.ZipFile(data / "caltech" / "train.zip") as pictures:
        names = sorted(name for name in pictures.namelist() if name.startswith(f"{kind}/") and name.endswith(".jpg"))
        return tuple(np.frombuffer(pictures.read(name), np.uint8) for name in names[:PICTURES])


@functools.lru_cache(maxsize=64 * PICTURES)
def actor(data: pathlib.Path, kind: str, which: int) -> np.ndarray:
    """Return one of a kind's pictures cut out: (h, w, 4) uint8 BGRA, trimmed to what is not transparent."""
    return cut_out(decoded(coded_pictures(data, kind)[which]))


def cut_out(picture: np.ndarray) -> np.ndarray:
    """Return a picture's thing as BGRA: by GrabCut from a frame around it; an ellipse where no outline is found."""
    scale = CUT_PX / max(picture.shape[:2])
    picture = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    height, width = picture.shape[:2]
    mask = np.zeros((height, width), np.uint8)
    edge = max(2, round(0.04 * min(height, width)))
    cv2.setRNGSeed(0)
    models = np.zeros((1, 65)), np.zeros((1, 65))
    cv2.grabCut(picture, mask, (edge, edge, width - 2 * edge, height - 2 * edge), *models, 3, cv2.GC_INIT_WITH_RECT)
    inside = np.isin(mask, (cv2.GC_FGD, cv2.GC_PR_FGD)).astype(np.uint8)
    inside = np.asarray(cv2.morphologyEx(inside, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8)), np.uint8)
    _, labels, stats, _ = cv2.connectedComponentsWithStats(inside)
    if len(stats) > 1:
        inside = (labels == 1 + int(np.argmax(stats[1:, cv2.CC_STAT_AREA]))).astype(np.uint8)
    if not LEAST_SHARE <= inside.mean() <= MOST_SHARE:
        inside[:] = 0
        cv2.ellipse(inside, (width // 2, height // 2), (round(0.4 * width), round(0.4 * height)), 0, 0, 360, 1, -1)
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    alpha = np.where(inside, cv2.GaussianBlur(255 * inside, (0, 0), 0.8), 0)  # soft, never beyond its outline
    bgra = np.dstack([picture, alpha.astype(np.uint8)])
    return bgra[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def sized(sprite: np.ndarray, height_px: int, mirrored: bool) -> np.ndarray:
    """Return a sprite so high, its shape kept, perhaps mirrored; what would hardly show is left out altogether."""
    width_px = max(4, round(sprite.shape[1] * height_px / sprite.shape[0]))
    small = cv2.resize(sprite, (width_px, height_px), interpolation=cv2.INTER_AREA)
    small[small[..., 3] < FAINTEST] = 0
    return small[:, ::-1] if mirrored else small


def placed(sprite: np.ndarray, x: int, y: int, height: int, width: int):
    """Return (rows, columns, part): where in a view a sprite with its top left corner at (x, y) falls; None outside."""
    tall, wide = sprite.shape[:2]
    top, left, bottom, right = max(y, 0), max(x, 0), min(y + tall, height), min(x + wide, width)
    if top >= bottom or left >= right:
        return None
    return slice(top, bottom), slice(left, right), sprite[top - y : bottom - y, left - x : right - x]


def paste(picture: np.ndarray, found) -> None:
    """Draw a sprite over a picture, (h, w, 3) uint8 BGR, in place; `found`: where, from `placed`; None: nowhere."""
    if found is None:
        return
    rows, columns, part = found
    share = part[..., 3:].astype(np.float32) / 255.0
    mixed = picture[rows, columns] * (1.0 - share) + part[..., :3] * share + 0.5
    picture[rows, columns] = mixed.astype(np.uint8)
