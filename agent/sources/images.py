"""Still images through OpenCV: one file, a glob, a folder in natural order, and a folder that is being filled.

Called by agent/sources/capture.py through agent/sources/registry.py. Decodes nothing before its header said how large
it is; one bad file is counted and named at the end, never the end of the others.
"""

import contextlib
import logging
import os
import re
from pathlib import Path

import cv2
import numpy as np

from stillwatch.base import Clock, FrameFlag, SourceError
from stillwatch.settings import SourceConfig
from stillwatch.sources.base import NOTHING_YET, NothingYet, RawFrame, SourceInfo
from stillwatch.sources.image_header import is_complete, read_header
from stillwatch.sources.pixels import PixelScale

log = logging.getLogger(__name__)

IMAGE_SUFFIXES = frozenset(
    {
        ".png",
        ".jpg",
        ".jpeg",
        ".jpe",
        ".bmp",
        ".tif",
        ".tiff",
        ".webp",
        ".gif",
        ".pgm",
        ".ppm",
        ".pbm",
        ".pnm",
        ".jp2",
        ".avif",
    }
)
LARGEST_FILE_BYTES = 1 << 30
VIDEO_SUFFIXES = (".mp4", ".mov", ".mkv", ".avi", ".webm", ".m4v", ".ts", ".mpg")  # the common ones, for a hint
OTHER_IMAGE = "give one that a viewer of pictures opens, as JPEG or PNG"
POLL_S = 0.2
SETTLE_POLLS = 2  # polls over which a new file's size must not change before it is read, unless it has its end


def natural_key(name: str) -> tuple:
    """Return a sort key by which img2 comes before img10."""
    return tuple(int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name))


class ImageReader:
    """Read one image file as BGR, or say why not."""

    def __init__(self, config: SourceConfig):
        self._config = config
        self._scale = PixelScale(config)
        self._flags = cv2.IMREAD_ANYDEPTH | cv2.IMREAD_ANYCOLOR
        if not config.auto_rotate:
            self._flags |= cv2.IMREAD_IGNORE_ORIENTATION

    def read(self, path: str) -> RawFrame:
        """Return the image as a frame without stamp; SourceError names the file and the fault."""
        data = self._bytes(path)
        header = read_header(data)
        if header is None:
            raise SourceError(f"{path}: not an image, or its header is damaged; {OTHER_IMAGE}")
        pixels = header.width * header.height
        if not 0 < pixels <= self._config.max_pixels:
            limit = f"source.max_pixels = {self._config.max_pixels}"
            raise SourceError(f"{path}: {header.width}x{header.height} pixels are outside [1, {limit}]")
        image = self._decode(path, data)
        flags = FrameFlag.NONE if is_complete(header.kind, data) else FrameFlag.DAMAGED
        try:
            colour = self._scale.to_bgr(image)
        except ValueError as error:
            raise SourceError(f"{path}: {error}; {OTHER_IMAGE}") from None
        return RawFrame(colour, None, flags, f"{image.dtype.name}{self._scale.name}")

    def _bytes(self, path: str) -> bytes:
        try:
            size = os.path.getsize(path)
            if not 0 < size <= LARGEST_FILE_BYTES:
                raise SourceError(f"{path}: {size} bytes are outside [1, {LARGEST_FILE_BYTES}]")
            return Path(path).read_bytes()
        except OSError as error:
            raise SourceError(f"{path}: cannot be read: {error.strerror}; {OTHER_IMAGE}") from None

    def _decode(self, path: str, data: bytes) -> np.ndarray:
        try:
            image = cv2.imdecode(np.frombuffer(data, np.uint8), self._flags)
        except cv2.error as error:
            raise SourceError(f"{path}: cannot be decoded: {error.err or 'decoder error'}; {OTHER_IMAGE}") from None
        if image is None:
            raise SourceError(f"{path}: cannot be decoded: damaged, or of a variant the decoder lacks; {OTHER_IMAGE}")
        return image


def _instead(folder: str) -> str:
    """Return what could be given instead of a folder without pictures: a video in it, else which pictures are known."""
    with contextlib.suppress(OSError):
        videos = sorted((name for name in os.listdir(folder) if name.lower().endswith(VIDEO_SUFFIXES)), key=natural_key)
        if videos:
            more = f" (or another of {len(videos)})" if len(videos) > 1 else ""
            return f"the video in it: {os.path.join(folder, videos[0])}{more}"
    return f"pictures: {', '.join(sorted(IMAGE_SUFFIXES))}"


class ImagesSource:
    """A fixed list of image files, read `loop` times, at the fallback rate."""

    live = False

    def __init__(self, uri: str, paths: list[str], config: SourceConfig, *, loop: int = 1, kind: str = "images"):
        self.info = SourceInfo(uri, kind, frames_claimed=len(paths) * loop)
        self._paths = paths
        self._total = len(paths) * loop
        self._reader = ImageReader(config)
        self._next = 0
        self._read = 0
        self._first_fault = ""
        self._undecodable = 0

    def open(self) -> None:
        if not self._paths:
            raise SourceError(f"{self.info.uri}: holds no image; give {_instead(self.info.uri)}")

    def read(self) -> RawFrame | None:
        """Return the next image that can be read; at the end SourceError(partial=True) if one could not."""
        while self._next < self._total:
            path = self._paths[self._next % len(self._paths)]
            self._next += 1
            try:
                frame = self._reader.read(path)
            except SourceError as error:
                self._undecodable += 1
                self._first_fault = self._first_fault or str(error)
                continue
            self._read += 1
            self.info.height, self.info.width = frame.colour.shape[:2]
            return frame
        if self._first_fault and self._total == 1:
            raise SourceError(self._first_fault)
        if self._first_fault:
            raise SourceError(
                f"{self.info.uri}: {self._read} of {self._total} images read; first fault: {self._first_fault}",
                partial=self._read > 0,
            )
        return None

    def close(self) -> None:
        """Nothing is held open between reads."""

    def counters(self) -> dict[str, int]:
        return {"undecodable": self._undecodable}


class FolderSource:
    """A folder of images in natural order. `live`: it is being filled, and is watched for new names.

    Subfolders and files without an image's suffix are passed over; a live folder starts with what it holds.
    """

    def __init__(self, path: str, config: SourceConfig, clock: Clock, *, live: bool = False, loop: int = 1):
        self.live = live
        self._path = path
        self._config = config
        self._clock = clock
        self._loop = loop
        self.info = SourceInfo(path, "folder")
        self._images: ImagesSource | None = None
        self._reader = ImageReader(config)
        self._waiting: dict[str, tuple[int, int]] = {}  # name -> (size, polls without change)
        self._ready: list[str] = []
        self._newest: tuple = ()
        self._undecodable = 0

    def open(self) -> None:
        names = self._names()
        if self.live:
            return
        self._images = ImagesSource(
            self._path, [os.path.join(self._path, name) for name in names], self._config, loop=self._loop, kind="folder"
        )
        self.info = self._images.info
        self._images.open()

    def _names(self) -> list[str]:
        try:
            with os.scandir(self._path) as entries:
                names = [
                    entry.name
                    for entry in entries
                    if os.path.splitext(entry.name)[1].lower() in IMAGE_SUFFIXES and entry.is_file()
                ]
        except OSError as error:
            raise SourceError(
                f"{self._path}: cannot be listed: {error.strerror}; give a folder that can be read"
            ) from None
        return sorted(names, key=natural_key)

    def read(self) -> RawFrame | NothingYet | None:
        """Return the next image; in a live folder NOTHING_YET when no new one is complete."""
        if self._images is not None:
            return self._images.read()
        if not self._ready:
            self._poll()
        while self._ready:
            path = os.path.join(self._path, self._ready.pop(0))
            try:
                frame = self._reader.read(path)
                frame.source_ns = int(os.stat(path).st_mtime_ns)
            except (SourceError, OSError) as error:
                self._undecodable += 1
                log.warning("%s", error)
                continue
            return frame
        self._clock.sleep(POLL_S)
        return NOTHING_YET

    def _poll(self) -> None:
        """Move files whose size has settled from waiting to ready, in natural order.

        Only names after the last one read count as new: a writer's names ascend, and nothing grows with time.
        """
        still_waiting: dict[str, tuple[int, int]] = {}
        blocked = False
        for name in self._names():
            if self._newest and natural_key(name) <= self._newest:
                continue
            try:
                size = os.path.getsize(os.path.join(self._path, name))
            except OSError:
                continue
            before, polls = self._waiting.get(name, (-1, 0))
            polls = polls + 1 if size == before and size > 0 else 0
            blocked = blocked or polls < SETTLE_POLLS
            if blocked:
                still_waiting[name] = (size, polls)
            else:
                self._ready.append(name)
                self._newest = natural_key(name)
        self._waiting = still_waiting

    def close(self) -> None:
        self._waiting.clear()

    def counters(self) -> dict[str, int]:
        return self._images.counters() if self._images is not None else {"undecodable": self._undecodable}
