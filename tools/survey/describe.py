"""Pictures become numbers: an ScSPM descriptor each and one a segment, in parts on disk that a second run finds again.

Called by tools/survey/command.py and the survey experiments. A picture that cannot be read is noted and skipped.
"""

import functools
import hashlib
import itertools
import os
import pathlib
import queue
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import cv2
import numpy as np
from threadpoolctl import threadpool_limits

from stillwatch.features import SparseCodePyramid, patch_descriptor
from stillwatch.tools.survey.machines import Here, Machines
from stillwatch.tools.survey.pictures import LONGEST_PX, Dive, Picture, read_picture
from stillwatch.tools.survey.segments import N_COLOURS, NONE, describe_segments, segment_map

# A task of a survey: what a worker that dies has to do again.
PICTURES_A_PART = 128
SEGMENT_WIDTH = 128 + 2 * N_COLOURS
VERSION = "3"


@dataclass(frozen=True)
class Described:
    """Descriptors of one picture: whole (21504,) float16, segments (n, 134) float16, n 0 where none were asked for."""

    whole: np.ndarray
    segments: np.ndarray


class _Describer:
    """What one thread describes pictures with."""

    def __init__(self) -> None:
        self._pyramid = SparseCodePyramid(LONGEST_PX, LONGEST_PX)
        self._sift = patch_descriptor(LONGEST_PX, LONGEST_PX)

    def describe(self, image: np.ndarray, segments: str) -> Described:
        """Return the descriptors of a BGR picture of at most 320 px."""
        grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
        whole = self._pyramid.describe(grey).astype(np.float16)
        if segments == NONE:
            return Described(whole, np.zeros((0, SEGMENT_WIDTH), np.float16))
        if grey.shape != self._sift.shape:
            self._sift.reshape(*grey.shape)
        patches = self._sift.compute(grey)
        cells = segment_map(image, segments)
        return Described(whole, describe_segments(image, cells, patches, self._sift.rows, self._sift.columns))


def describe_images(
    images: Iterable[np.ndarray | None], segments: str = NONE, n_threads: int | None = None
) -> Iterator[Described | None]:
    """Yield the descriptors of BGR pictures of at most 320 px in their order, None for None."""
    n_threads = n_threads or os.cpu_count() or 1
    free: queue.SimpleQueue[_Describer] = queue.SimpleQueue()

    def work(image: np.ndarray | None) -> Described | None:
        if image is None:
            return None
        describer = free.get()
        try:
            return describer.describe(image, segments)
        finally:
            free.put(describer)

    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(n_threads) as pool:
        for _ in range(n_threads):  # the dictionary's products too: BLAS sums differ between one thread and two
            free.put(_Describer())
        remaining = iter(images)
        while batch := list(itertools.islice(remaining, PICTURES_A_PART)):  # a pool takes all that it is given at once
            yield from pool.map(work, batch)


@dataclass(frozen=True)
class Part:
    """Pictures of one dive that are described together, and the file that holds what was made of them."""

    path: pathlib.Path
    pictures: tuple[pathlib.Path, ...]


def describe_dives(
    dives: list[Dive],
    folder: pathlib.Path,
    show: Callable[[str], None],
    segments: str = NONE,
    machines: Machines | None = None,
) -> tuple[list[pathlib.Path], np.ndarray]:
    """Describe what was not yet; return (parts on disk, which pictures could be read, dive by dive, bool).

    A part holds `whole`, `segments` and `n_segments` of its readable pictures and `readable` of all. It is written
    whole or not at all, under a name that follows from its files' names, sizes and times: a stopped survey goes on
    after the parts that are there.

    show : told a line of progress;  machines : where parts are made; None is here
    """
    folder.mkdir(parents=True, exist_ok=True)
    parts = parts_of(dives, folder, segments)
    missing = [part for part in parts if not part.path.exists()]
    n_all = sum(len(part.pictures) for part in parts)
    n_done, n_new, began = n_all - sum(len(part.pictures) for part in missing), 0, time.monotonic()
    machines = Here() if machines is None else machines
    n_threads = None if isinstance(machines, Here) else 1
    for place, _ in machines.run(functools.partial(write_part, segments=segments, n_threads=n_threads), missing):
        n_done += len(missing[place].pictures)
        n_new += len(missing[place].pictures)
        rate = n_new / max(time.monotonic() - began, 1e-9)
        show(f"described {n_done} of {n_all} pictures  {rate:.0f}/s  {(n_all - n_done) / rate:.0f} s left")
    readable = []
    for part in parts:
        with np.load(part.path) as held:
            readable.append(held["readable"])
    return [part.path for part in parts], np.concatenate(readable)


def parts_of(dives: list[Dive], folder: pathlib.Path, segments: str) -> list[Part]:
    """Return the parts of all dives in order, made or not."""
    cut = [
        dive.pictures[start : start + PICTURES_A_PART]
        for dive in dives
        for start in range(0, len(dive.pictures), PICTURES_A_PART)
    ]
    folder = folder.resolve()
    return [
        Part(folder / f"{_key(part, segments)}.npz", tuple(picture.path.resolve() for picture in part)) for part in cut
    ]


def _key(part: list[Picture], segments: str) -> str:
    """Return the name of a part: other pictures, or pictures that changed, have another."""
    key = hashlib.sha256(f"{VERSION}|{segments}".encode())
    for picture in part:
        status = picture.path.stat()
        line = f"{picture.path.resolve()}|{status.st_size}|{status.st_mtime_ns}\n"
        key.update(line.encode("utf-8", "surrogateescape"))
    return key.hexdigest()[:24]


def write_part(part: Part, segments: str, n_threads: int | None) -> None:
    """Describe a part's pictures and write its file; two workers at one part write the same."""
    found = list(describe_images((read_picture(path) for path in part.pictures), segments, n_threads))
    read = [made for made in found if made is not None]
    temporary = part.path.with_name(f"{part.path.stem}-{uuid.uuid4().hex[:8]}.tmp")
    with temporary.open("wb") as file:
        np.savez(
            file,
            readable=np.array([made is not None for made in found]),
            whole=np.array([made.whole for made in read]) if read else np.zeros((0, 1), np.float16),
            segments=np.concatenate([np.zeros((0, SEGMENT_WIDTH), np.float16), *(made.segments for made in read)]),
            n_segments=np.array([len(made.segments) for made in read], np.int64),
        )
    temporary.replace(part.path)
