"""Pictures become numbers: an ScSPM descriptor each and one a segment, in parts on disk that a second run finds again.

Called by tools/survey/command.py and the survey experiments. A picture that cannot be read is noted and skipped.
"""

import hashlib
import itertools
import os
import pathlib
import queue
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import cv2
import numpy as np
from threadpoolctl import threadpool_limits

from stillwatch.features import SparseCodePyramid, patch_descriptor
from stillwatch.tools.survey.pictures import LONGEST_PX, Dive, Picture, read_picture

PICTURES_A_PART = 128
# Segments of a picture: cells of a grid, about as many as the thesis's super-pixels.
GRID = (6, 8)
SEGMENT_WIDTH = 128 + 6
VERSION = "1"


@dataclass(frozen=True)
class Described:
    """Descriptors of one picture: whole (21504,) float16, segments (48, 134) float16."""

    whole: np.ndarray
    segments: np.ndarray


class _Describer:
    """What one thread describes pictures with."""

    def __init__(self) -> None:
        self._pyramid = SparseCodePyramid(LONGEST_PX, LONGEST_PX)
        self._sift = patch_descriptor(LONGEST_PX, LONGEST_PX)

    def describe(self, image: np.ndarray) -> Described:
        """Return the descriptors of a BGR picture of at most 320 px."""
        grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
        return Described(self._pyramid.describe(grey).astype(np.float16), self._segments(image, grey))

    def _segments(self, image: np.ndarray, grey: np.ndarray) -> np.ndarray:
        """Return mean SIFT, and mean and deviation of Lab colour, of each cell of a grid."""
        if grey.shape != self._sift.shape:
            self._sift.reshape(*grey.shape)
        patches = self._sift.compute(grey)
        rows = np.minimum(self._sift.rows * GRID[0] // grey.shape[0], GRID[0] - 1)
        columns = np.minimum(self._sift.columns * GRID[1] // grey.shape[1], GRID[1] - 1)
        cells = (rows[:, None] * GRID[1] + columns).ravel()
        n_cells = GRID[0] * GRID[1]
        sums = np.zeros((n_cells, patches.shape[1]), np.float32)
        np.add.at(sums, cells, patches)
        sums /= np.maximum(np.bincount(cells, minlength=n_cells), 1)[:, None]
        lab = cv2.cvtColor(image, cv2.COLOR_BGR2LAB).astype(np.float32) / 255.0
        size = GRID[::-1]
        mean = cv2.resize(lab, size, interpolation=cv2.INTER_AREA).reshape(n_cells, 3)
        square = cv2.resize(lab * lab, size, interpolation=cv2.INTER_AREA).reshape(n_cells, 3)
        spread = np.sqrt(np.maximum(square - mean * mean, 0.0))
        return np.concatenate([sums, mean, spread], axis=1).astype(np.float16)


def describe_images(images: Iterable[np.ndarray | None], n_threads: int | None = None) -> Iterator[Described | None]:
    """Yield the descriptors of BGR pictures of at most 320 px in their order, None for None."""
    n_threads = n_threads or os.cpu_count() or 1
    free: queue.SimpleQueue[_Describer] = queue.SimpleQueue()
    for _ in range(n_threads):
        free.put(_Describer())

    def work(image: np.ndarray | None) -> Described | None:
        if image is None:
            return None
        describer = free.get()
        try:
            return describer.describe(image)
        finally:
            free.put(describer)

    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(n_threads) as pool:
        remaining = iter(images)
        while batch := list(itertools.islice(remaining, PICTURES_A_PART)):  # a pool takes all that it is given at once
            yield from pool.map(work, batch)


def describe_dives(
    dives: list[Dive], folder: pathlib.Path, show: Callable[[str], None]
) -> tuple[list[pathlib.Path], np.ndarray]:
    """Describe what was not yet; return (parts on disk, which pictures could be read, dive by dive, bool).

    A part holds `whole` and `segments` of its readable pictures and `readable` of all. It is written whole or not at
    all, under a name that follows from its files' names, sizes and times: a stopped survey goes on after the last one.

    show : told a line of progress
    """
    folder.mkdir(parents=True, exist_ok=True)
    parts = [
        dive.pictures[start : start + PICTURES_A_PART]
        for dive in dives
        for start in range(0, len(dive.pictures), PICTURES_A_PART)
    ]
    n_all, n_done, n_new, began = sum(map(len, parts)), 0, 0, time.monotonic()
    paths, readable = [], []
    for part in parts:
        path = folder / f"{_key(part)}.npz"
        if not path.exists():
            _write_part(path, part)
            n_new += len(part)
        with np.load(path) as held:
            readable.append(held["readable"])
        paths.append(path)
        n_done += len(part)
        rate = n_new / max(time.monotonic() - began, 1e-9)
        left = f"{(n_all - n_done) / rate:.0f} s left" if n_new else ""
        show(f"described {n_done} of {n_all} pictures  {rate:.0f}/s  {left}")
    return paths, np.concatenate(readable)


def _key(part: list[Picture]) -> str:
    """Return the name of a part: other pictures, or pictures that changed, have another."""
    key = hashlib.sha256(VERSION.encode())
    for picture in part:
        status = picture.path.stat()
        key.update(f"{picture.path.resolve()}|{status.st_size}|{status.st_mtime_ns}\n".encode())
    return key.hexdigest()[:24]


def _write_part(path: pathlib.Path, part: list[Picture]) -> None:
    images = (read_picture(picture.path) for picture in part)
    found = list(describe_images(images))
    read = [made for made in found if made is not None]
    whole, segments = [made.whole for made in read], [made.segments for made in read]
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as file:
        np.savez(
            file,
            readable=np.array([made is not None for made in found]),
            whole=np.array(whole) if read else np.zeros((0, 1), np.float16),
            segments=np.array(segments) if read else np.zeros((0, 1, SEGMENT_WIDTH), np.float16),
        )
    temporary.replace(path)
