"""The fault corpus: videos and images of bad days, made at run time with PyAV and OpenCV, and what each must lead to.

Called by tools/checks/faults.py and by tests. Writes only into the folder it is given; needs no ffmpeg program.
"""

import functools
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np

from stillwatch.base import FIXED, MOVING, CameraRule

WIDTH, HEIGHT, RATE = 192, 144, 25
os.environ.setdefault("SVT_LOG", "0")  # the AV1 encoder talks on stderr otherwise
CLOCK = Fraction(1, 1000)
BIT_RATE = 4_000_000  # of codecs without a quality setting of their own
FIXED_RATE_CODECS = ("mpeg4", "mpeg2video", "wmv2", "mjpeg", "rawvideo")  # their clock is their frame rate


@dataclass(frozen=True)
class Case:
    """One input and what must come of it.

    expected: `all N`, `some`, `some N`, `none`, or `any` (any clear outcome). refused: the least number of frames
    refused for each reason; exact where `only` is set (no other refusals). scene_changes: exact, where given.
    rule: of the camera; one whose view moves on refuses least.
    """

    input: str
    uri: str
    expected: str
    refused: dict[str, int] = field(default_factory=dict)
    only: bool = False
    scene_changes: int | None = None
    rule: CameraRule = MOVING


def picture(index: int, *, seed: int = 0, speed: float = 0.0, noise: float = 2.0) -> np.ndarray:
    """Return frame `index` of a textured scene with a small mover and sensor noise, (144, 192, 3) uint8 BGR."""
    scene = _texture(seed)
    shift = int(index * speed)
    view = scene[:HEIGHT, shift % 400 : shift % 400 + WIDTH].astype(np.float32)
    x, y = 10 + 3 * index % (WIDTH - 30), HEIGHT // 2
    view[y : y + 12, x : x + 18] = (40, 60, 220)
    return np.clip(view + noise * _grain(index), 0, 255).astype(np.uint8)


def _grain(index: int) -> np.ndarray:
    """Return unit noise of a frame's shape, cut from one bank at a place that the frame number chooses."""
    y, x = np.random.default_rng(index).integers(0, 64, 2)
    return _noise_bank()[y : y + HEIGHT, x : x + WIDTH]


@functools.cache
def _noise_bank() -> np.ndarray:
    return np.random.default_rng(99).standard_normal((HEIGHT + 64, WIDTH + 64, 3), np.float32)


@functools.cache
def _texture(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    coarse = cv2.resize(
        rng.uniform(40, 200, (8, 32, 3)).astype(np.float32), (640, HEIGHT), interpolation=cv2.INTER_CUBIC
    )
    fine = cv2.GaussianBlur(rng.normal(0, 60, (HEIGHT, 640, 3)).astype(np.float32), (0, 0), 1.2)
    return np.clip(coarse + fine, 0, 255).astype(np.uint8)


def clip(count: int, **options) -> Iterator[np.ndarray]:
    """Yield frames 0 to count - 1 of `picture`."""
    return (picture(index, **options) for index in range(count))


def encode(
    path: Path,
    frames: Iterable[np.ndarray],
    *,
    codec: str = "libx264",
    pix_fmt: str = "yuv420p",
    times_s: Callable[[int], float] = lambda i: i / RATE,
    source_format: str = "bgr24",
    container: dict[str, str] | None = None,
    options: dict[str, str] | None = None,
) -> Path:
    """Write frames as a video whose stamps are `times_s(index)`."""
    with av.open(str(path), "w", options=container or {}) as out:
        stream: Any = None
        clock = Fraction(1, RATE) if codec in FIXED_RATE_CODECS else CLOCK
        for index, image in enumerate(frames):
            if stream is None:
                stream = out.add_stream(codec, rate=RATE, options={"g": "25", **(options or {})})
                stream.height, stream.width = image.shape[:2]
                stream.pix_fmt = pix_fmt
                if codec in FIXED_RATE_CODECS:
                    stream.bit_rate = BIT_RATE
                stream.codec_context.time_base = clock
                stream.codec_context.thread_count = 1
            frame = av.VideoFrame.from_ndarray(image, format=source_format)
            frame.pts, frame.time_base = round(times_s(index) / clock), clock
            out.mux(stream.encode(frame))
        if stream is not None:
            out.mux(stream.encode(None))
    return path


def restamp(source: Path, target: Path, stamps: Callable[[int], tuple[int, int]]) -> Path:
    """Copy packets with other stamps: stamps(packet number) -> (pts, dts), dts never falling, pts not below it."""
    with av.open(str(source)) as given, av.open(str(target), "w") as out:
        video = given.streams.video[0]
        stream = out.add_stream_from_template(video)
        for number, packet in enumerate(packet for packet in given.demux(video) if packet.dts is not None):
            packet.pts, packet.dts = stamps(number)
            packet.stream = stream
            out.mux_one(packet)
    return target


def write_png_1bit(path: Path, width: int, height: int) -> Path:
    """Write a valid black 1-bit PNG of any size, a few kilobytes long: a decompression bomb."""
    row = bytes(1 + (width + 7) // 8)
    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()

    def chunk(tag: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + tag + body + struct.pack(">I", zlib.crc32(tag + body))

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b""))
    return path


def with_exif_orientation(jpeg: bytes, orientation: int) -> bytes:
    """Return the JPEG with an APP1 EXIF segment that holds nothing but an orientation."""
    entry = struct.pack("<HHIHH", 0x0112, 3, 1, orientation, 0)
    body = b"Exif\x00\x00" + b"II*\x00\x08\x00\x00\x00" + struct.pack("<H", 1) + entry + b"\x00" * 4
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + jpeg[2:]


def make_corpus(folder: Path) -> list[Case]:
    """Write the whole corpus into `folder` and return its cases."""
    cases = [
        *_codecs(folder),
        *_broken(folder),
        *_stamps(folder),
        *_formats(folder),
        *_scenes(folder),
        *_moving_scenes(folder),
        *_images(folder),
        *_folders(folder),
    ]
    return [*cases, Case("missing.mp4", str(folder / "missing.mp4"), "none")]


def _codecs(folder: Path) -> Iterator[Case]:
    for name, codec in (
        ("h264.mp4", "libx264"),
        ("hevc.mkv", "libx265"),
        ("mpeg4.avi", "mpeg4"),
        ("mjpeg.avi", "mjpeg"),
        ("vp9.webm", "libvpx-vp9"),
        ("av1.mp4", "libsvtav1"),
        ("mpeg2.ts", "mpeg2video"),
        ("raw.h264", "libx264"),
        ("wmv2.avi", "wmv2"),
    ):
        if codec not in av.codecs_available:
            continue
        extra = {
            "libx265": {"x265-params": "log-level=none"},
            "libsvtav1": {"preset": "12"},
            "libvpx-vp9": {"deadline": "realtime", "cpu-used": "8"},
        }.get(codec, {})
        pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
        path = encode(folder / name, clip(30), codec=codec, pix_fmt=pix_fmt, options=extra)
        yield Case(name, str(path), "all 30")
    loop = folder / "h264.mp4"
    yield Case("h264.mp4?loop=3", f"{loop}?loop=3", "all 90")


def _broken(folder: Path) -> Iterator[Case]:
    whole = (folder / "h264.mp4").read_bytes()
    fast = encode(folder / "fast.mp4", clip(100), container={"movflags": "+faststart"}).read_bytes()

    def write(name: str, data: bytes, expected: str) -> Case:
        (folder / name).write_bytes(data)
        return Case(name, str(folder / name), expected)

    rng = np.random.default_rng(1)
    yield write("trunc_nomoov.mp4", whole[: len(whole) * 6 // 10], "none")
    yield write("trunc_faststart.mp4", fast[: len(fast) * 6 // 10], "some")
    yield write("empty.mp4", b"", "none")
    yield write("random.mp4", rng.bytes(5000), "none")
    yield write("zeros.avi", bytes(65_536), "none")
    yield write("text.mp4", b"hello\n" * 100, "none")
    corrupt = bytearray(fast)
    for offset in rng.integers(len(fast) * 3 // 10, len(fast) * 9 // 10, 200):
        corrupt[offset] = rng.integers(256)
    yield write("corrupt.mp4", bytes(corrupt), "any")
    yield write("png_inside.mp4", cv2.imencode(".png", picture(0))[1].tobytes(), "all 1")
    encode(folder / "size_a.ts", clip(25))
    encode(folder / "size_b.ts", (frame[:96, :128] for frame in clip(25)))
    both = (folder / "size_a.ts").read_bytes() + (folder / "size_b.ts").read_bytes()
    yield write("size_change.ts", both, "all 50")


def _stamps(folder: Path) -> Iterator[Case]:
    def case(name: str, times_s: Callable[[int], float]) -> Case:
        return Case(name, str(encode(folder / name, clip(50), times_s=times_s)), "all 50")

    yield case("vfr.mp4", lambda i: i / 25 + 0.7 * (i // 10))
    yield case("gap_30s.mp4", lambda i: i / 25 + 30.0 * (i >= 25))
    yield case("thousand_fps.mp4", lambda i: i / 1000)
    yield case("one_a_minute.mkv", lambda i: i * 60.0)
    plain = encode(folder / "plain.mkv", clip(50), codec="mpeg4", options={"bf": "0"})
    equal = restamp(plain, folder / "equal_stamps.mkv", lambda n: (0, 0))
    yield Case(equal.name, str(equal), "all 50")
    # A muxer wants rising dts; the decoder hands out the pts, here 60 ms back at every third frame.
    back = restamp(plain, folder / "stamps_step_back.mkv", lambda n: (5000 + 40 * n - 100 * (n % 3 == 2), n))
    yield Case(back.name, str(back), "all 50")
    twice = folder / "back_by_seconds.ts"
    twice.write_bytes(encode(folder / "fifty.ts", clip(50)).read_bytes() * 2)
    yield Case(twice.name, str(twice), "all 100")
    live = encode(folder / "live.mkv", clip(50), container={"live": "1"})
    yield Case("live.mkv", str(live), "all 50")


def _formats(folder: Path) -> Iterator[Case]:
    def grey16() -> Iterator[np.ndarray]:
        return (cv2.cvtColor(frame, cv2.COLOR_BGR2GRAY).astype(np.uint16) * 257 for frame in clip(20))

    yield Case("gray.mkv", str(encode(folder / "gray.mkv", clip(20), codec="ffv1", pix_fmt="gray")), "all 20")
    yield Case(
        "ten_bit.mkv", str(encode(folder / "ten_bit.mkv", clip(20), codec="ffv1", pix_fmt="yuv420p10le")), "all 20"
    )
    yield Case("yuv444.mp4", str(encode(folder / "yuv444.mp4", clip(20), pix_fmt="yuv444p")), "all 20")
    path = encode(folder / "gray16.mkv", grey16(), codec="ffv1", pix_fmt="gray16le", source_format="gray16le")
    yield Case("gray16.mkv", str(path), "all 20")
    path = encode(folder / "bgr24.avi", clip(20), codec="rawvideo", pix_fmt="bgr24")
    yield Case("bgr24.avi", str(path), "all 20")
    tiny = encode(
        folder / "tiny_2x2.mkv", (np.full((2, 2, 3), i, np.uint8) for i in range(5)), codec="ffv1", pix_fmt="bgr0"
    )
    yield Case("tiny_2x2.mkv", str(tiny), "none")
    thin = encode(
        folder / "thin_8x480.mkv", (np.full((480, 8, 3), i, np.uint8) for i in range(5)), codec="ffv1", pix_fmt="bgr0"
    )
    yield Case("thin_8x480.mkv", str(thin), "none")


def _scenes(folder: Path) -> Iterator[Case]:
    """Bad days of a fixed camera, 10 frames a second; the first two seconds are good."""

    def scene(name: str, change: Callable[[int, np.ndarray], np.ndarray], seconds: int = 14, **case) -> Case:
        frames = (change(i, picture(i)) if i >= 20 else picture(i) for i in range(seconds * 10))
        path = encode(folder / name, frames, times_s=lambda i: i / 10, options={"crf": "18"})
        return Case(name, str(path), f"all {seconds * 10}", rule=FIXED, **case)

    grey = np.full((HEIGHT, WIDTH, 3), 128, np.uint8)
    yield scene("frozen.mp4", lambda i, f: picture(19), refused={"frozen": 90}, only=True)
    yield scene("black.mp4", lambda i, f: grey * 0, refused={"dark": 120}, only=True)
    yield scene("white.mp4", lambda i, f: grey * 0 + 255, refused={"overexposed": 120}, only=True)
    yield scene("covered.mp4", lambda i, f: _noisy(grey // 2, i), refused={"obstructed": 115})
    yield scene(
        "defocused.mp4",
        lambda i, f: _noisy(cv2.GaussianBlur(f, (0, 0), 4.0), i) if i >= 60 else f,
        refused={"obstructed": 75},
        only=True,
    )
    yield scene("night_noise.mp4", lambda i, f: _noisy(picture(0, noise=0.0) // 6 + 4, i), scene_changes=1)
    yield scene(
        "lightswitch.mp4",
        lambda i, f: cv2.convertScaleAbs(f, alpha=0.4),
        refused={"global_change": 40},
        only=True,
        scene_changes=1,
    )
    yield scene(
        "irswitch.mp4",
        lambda i, f: cv2.merge([cv2.cvtColor(f, cv2.COLOR_BGR2GRAY)] * 3),
        refused={"global_change": 40},
        only=True,
        scene_changes=1,
    )
    yield scene("strobe.mp4", lambda i, f: f * (i % 2), refused={"dark": 50}, only=True, scene_changes=0)
    yield scene(
        "auto_exposure.mp4",
        lambda i, f: cv2.convertScaleAbs(f, alpha=max(0.5, 1.0 - 0.03 * (i - 20))),
        only=True,
        scene_changes=0,
    )


def _noisy(image: np.ndarray, index: int) -> np.ndarray:
    return np.clip(image + 3.0 * _grain(index), 0, 255).astype(np.uint8)


def _moving_scenes(folder: Path) -> Iterator[Case]:
    """A camera that moves: hard cuts are views, an exposure jump of the same view is not."""

    def scene(name: str, frame: Callable[[int], np.ndarray], **case) -> Case:
        path = encode(folder / name, (frame(i) for i in range(120)), times_s=lambda i: i / 10, options={"crf": "18"})
        return Case(name, str(path), "all 120", rule=MOVING, **case)

    yield scene("views.mp4", lambda i: picture(i, seed=i // 30, speed=1.0), only=True, scene_changes=0)
    yield scene(
        "exposure_jump.mp4",
        lambda i: cv2.convertScaleAbs(picture(i, speed=1.0), alpha=0.4 if i >= 40 else 1.0),
        refused={"global_change": 40},
        only=True,
        scene_changes=1,
    )


def _images(folder: Path) -> Iterator[Case]:
    image = picture(0)
    jpeg = cv2.imencode(".jpg", image)[1].tobytes()
    png = cv2.imencode(".png", image)[1].tobytes()
    crc = bytearray(png)
    crc[len(png) // 2] ^= 255
    grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    files = {
        "plain.jpg": (jpeg, "all 1"),
        "noext": (jpeg, "all 1"),
        "empty.jpg": (b"", "none"),
        "hello.png": (b"hello" * 100, "none"),
        "cut.jpg": (jpeg[: len(jpeg) * 4 // 10], "none"),
        "cut_eoi.jpg": (jpeg[: len(jpeg) * 4 // 10] + b"\xff\xd9", "any"),
        "cut.png": (png[: len(png) // 2], "none"),
        "bad_crc.png": (bytes(crc), "none"),
        "exif6.jpg": (with_exif_orientation(jpeg, 6), "all 1"),
        "gray16.png": (cv2.imencode(".png", grey.astype(np.uint16) * 257)[1].tobytes(), "all 1"),
        "twelve_in_16.png": (cv2.imencode(".png", grey.astype(np.uint16) * 16)[1].tobytes(), "all 1"),
        "float.tiff": (cv2.imencode(".tiff", grey.astype(np.float32) / 255)[1].tobytes(), "all 1"),
        "alpha.png": (cv2.imencode(".png", cv2.cvtColor(image, cv2.COLOR_BGR2BGRA))[1].tobytes(), "all 1"),
        "one_pixel.png": (cv2.imencode(".png", image[:1, :1])[1].tobytes(), "none"),
        "line.png": (cv2.imencode(".png", np.zeros((1, 5000), np.uint8))[1].tobytes(), "none"),
    }
    for name, (data, expected) in files.items():
        (folder / name).write_bytes(data)
        yield Case(name, str(folder / name), expected)
    bomb = write_png_1bit(folder / "bomb_20000x20000.png", 20_000, 20_000)
    yield Case(bomb.name, str(bomb), "none")


def _folders(folder: Path) -> Iterator[Case]:
    good, bad = folder / "folder", folder / "folder_with_faults"
    for place in (good, bad):
        place.mkdir(exist_ok=True)
        for index in range(12):
            cv2.imwrite(str(place / f"img{index + 1}.jpg"), picture(index))
    (bad / "img3.jpg").write_bytes(b"\xff\xd8\xff")
    write_png_1bit(bad / "img5.png", 20_000, 20_000)
    (good / "notes.txt").write_text("not an image")
    empty = folder / "folder_empty"
    empty.mkdir(exist_ok=True)
    yield Case("folder/", str(good), "all 12")
    yield Case("folder/*.jpg", str(good / "*.jpg"), "all 12")
    yield Case("folder_with_faults/", str(bad), "some 11")
    yield Case("folder_empty/", str(empty), "none")
