"""What nature and cameras do to pictures: light, weather, dirt, shake, coding; each a pure function of one picture.

Called by tools/evaluate/suite/cases.py and worlds.py. A rule is `f(picture, i, rng) -> picture`: (h, w, 3) uint8 BGR,
the number of the picture in its stream of about 10 Hz, a generator of this picture alone; what must not change from
picture to picture comes from `field` and its like, which know the shape only. It must not know truth.
"""

import fractions
import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import cv2
import numpy as np

from stillwatch.tools.evaluate.suite.clips import decoded

LAND = ("car_overhead", "bottle_table", "vtest")
SEA = ("habcam_transect",)
Rule = Callable[[np.ndarray, int, np.random.Generator], np.ndarray]


def night_noise(picture, i, rng):
    """A third of the light, and a sensor's noise of 9 grey levels."""
    return _clipped(0.33 * picture + rng.normal(0.0, 9.0, picture.shape).astype(np.float32))


def double_size(picture, i, rng):
    """Twice as many pixels each way, interpolated; the working size brings them back."""
    return cv2.resize(picture, None, fx=2.0, fy=2.0, interpolation=cv2.INTER_CUBIC)


def unchanged(picture, i, rng):
    """The picture itself: for rules that leave pictures out."""
    return picture


def fog(picture, i, rng):
    """Contrast down to 45 %, towards a grey of 190 that drifts slowly."""
    return _clipped(0.45 * picture + np.float32(0.55 * (190.0 + 6.0 * np.sin(0.02 * i))))


def flicker(picture, i, rng):
    """Mains light against the shutter: 8 % up and down within a second, and bands that roll."""
    rows = np.arange(picture.shape[0], dtype=np.float32)[:, None, None]
    gain = 1.0 + 0.05 * np.sin(2.1 * i) + 0.05 * np.sin(rows * (2 * np.pi / picture.shape[0]) + 1.3 * i)
    return _clipped(picture * gain)


def shake(picture, i, rng):
    """A mast in the wind: each picture displaced by a deviation of 2 pixels."""
    dx, dy = rng.normal(0.0, 2.0, 2)
    return moved(picture, dx, dy)


def low_bitrate(picture, i, rng):
    """JPEG of quality 10."""
    return recoded(picture, 10)


def moving_shade(picture, i, rng):
    """A hard-edged shade of half the light that crosses the view in 30 s, there and back."""
    height, width = picture.shape[:2]
    edge = width * (0.5 + 0.5 * np.sin(2 * np.pi * i / 600))
    columns = (
        np.arange(width, dtype=np.float32)[None] + 0.4 * np.arange(height, dtype=np.float32)[:, None] - 0.2 * height
    )
    shade = np.clip(columns - edge, 0.0, 1.0)[..., None]
    return _clipped(picture * (1.0 - 0.5 * shade))


def cloud_shadows(picture, i, rng):
    """Soft shadows of clouds, down to 60 % of the light, that drift 2 pixels a picture."""
    height, width = picture.shape[:2]
    sky = field(height, 3 * width, 0.35 * width, 7)
    at = (2 * i) % (2 * width)
    shade = np.clip(0.5 + 0.9 * sky[:, at : at + width], 0.0, 1.0)
    return _clipped(picture * (1.0 - 0.4 * shade)[..., None])


def rain(picture, i, rng):
    """A hundred streaks a picture, none where one was before."""
    return _clipped(_streaked(picture, rng, 100, 12, 0.35))


def snow(picture, i, rng):
    """Flakes that fall 5 pixels a picture and sway."""
    drops = particles(260, 11)
    height, width = picture.shape[:2]
    out = picture.copy()
    for x, y, depth, speed, sway in drops:
        row = (y * height + (3.0 + 5.0 * speed) * i) % height
        column = (x * width + 8.0 * np.sin(0.15 * i + 6.28 * sway)) % width
        cv2.circle(out, (round(column), round(row)), round(0.6 + 1.6 * depth), (238, 238, 238), -1, cv2.LINE_AA)
    return out


def exposure_steps(picture, i, rng):
    """Auto-exposure: every 12 s the gain steps between 1, 0.8 and 1.2, within four pictures."""
    return _clipped(picture * _steps(i, 120, (1.0, 0.8, 1.2, 1.0, 0.85)))


def white_balance_steps(picture, i, rng):
    """White balance: every 15 s the light turns warmer or cooler by 12 %, within four pictures."""
    warm = _steps(i, 150, (0.0, 0.12, -0.12, 0.0))
    return _clipped(picture * np.array([1.0 - warm, 1.0, 1.0 + warm], np.float32))


def headlights(picture, i, rng):
    """Every 20 s a beam sweeps over the view for 2 s."""
    phase = i % 200 - 100
    if not 0 <= phase < 20:
        return picture
    height, width = picture.shape[:2]
    beam = np.exp(-(((np.arange(width, dtype=np.float32) - width * phase / 20.0) / (0.15 * width)) ** 2))
    fall = np.linspace(0.2, 1.0, height, dtype=np.float32)
    return _clipped(picture + 110.0 * (fall[:, None] * beam[None])[..., None])


def drops(picture, i, rng):
    """Drops on the glass: from picture 60 on another blurred disc every 8 s; each stays."""
    blurred = cv2.GaussianBlur(picture, (0, 0), 6.0)
    height, width = picture.shape[:2]
    mask = np.zeros((height, width), np.float32)
    for n, (x, y, size, *_) in enumerate(particles(12, 13)):
        if i >= 60 + 80 * n:
            cv2.circle(mask, (round(x * width), round(y * height)), round((0.02 + 0.04 * size) * width), 1.0, -1)
    mask = cv2.GaussianBlur(mask, (0, 0), 1.5)[..., None]
    return _clipped(picture * (1.0 - mask) + 1.08 * blurred * mask)


def spider(picture, i, rng):
    """A spider close to the lens: a dark blur that wanders for 6 s of every 30 s."""
    phase = i % 300 - 150
    if not 0 <= phase < 60:
        return picture
    height, width = picture.shape[:2]
    x = width * (0.1 + 0.8 * phase / 60 + 0.05 * np.sin(0.7 * phase))
    y = height * (0.5 + 0.3 * np.sin(0.2 * phase))
    mask = np.zeros((height, width), np.float32)
    cv2.ellipse(mask, (round(x), round(y)), (round(0.06 * width), round(0.04 * width)), 8.0 * phase, 0, 360, 0.8, -1)
    return _clipped(picture * (1.0 - cv2.GaussianBlur(mask, (0, 0), 4.0))[..., None])


def knocked(picture, i, rng):
    """The camera turned and pushed by a tenth of its view, as from the picture that `views_changed` names."""
    height, width = picture.shape[:2]
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), 4.0, 1.12)
    matrix[:, 2] += (0.05 * width, -0.05 * height)
    return cv2.warpAffine(picture, matrix, (width, height), borderMode=cv2.BORDER_REFLECT)


def marine_snow(picture, i, rng):
    """Particles in the lamps: 90 soft flakes, anew each picture, near ones large."""
    height, width = picture.shape[:2]
    mask = np.zeros((height, width), np.float32)
    for x, y, size, bright in rng.random((90, 4)):
        radius = round(0.6 + 3.0 * size**4)
        cv2.circle(mask, (round(x * width), round(y * height)), radius, 0.3 + 0.5 * bright, -1, cv2.LINE_AA)
    mask = cv2.GaussianBlur(mask, (0, 0), 0.8)[..., None]
    return _clipped(picture + (225.0 - picture) * mask)


def turbidity(picture, i, rng):
    """Clouds of silt that come and go within a minute: contrast down to 55 %, blurred."""
    thick = np.float32(0.25 + 0.2 * np.sin(2 * np.pi * i / 400))
    soft = cv2.GaussianBlur(picture, (0, 0), 1.2)
    return _clipped(soft * (1.0 - thick) + thick * np.array([120.0, 135.0, 110.0], np.float32))


def strobe(picture, i, rng):
    """A strobe that fires on every second picture: the others have 60 % of the light."""
    return _clipped(picture * np.float32(0.6)) if i % 2 else picture


def auto_exposure(picture, i, rng):
    """Auto-exposure that holds the mean at 110 grey levels: whoever is dark brightens all the rest."""
    return _clipped(picture * np.float32(110.0 / max(float(picture.mean()), 1.0)))


def foliage(picture, i, rng):
    """Leaves in the wind over half of the view: up to 3 pixels across and 2 down, each part in its own time."""
    height, width = picture.shape[:2]
    rows, columns = np.mgrid[:height, :width].astype(np.float32)
    leaves = cv2.GaussianBlur((field(height, width, 40.0, 3) > 0.0).astype(np.float32), (0, 0), 8.0)
    x = columns + leaves * np.float32(3.0) * np.sin(np.float32(0.9 * i) + 0.05 * rows)
    y = rows + leaves * np.float32(2.0) * np.sin(np.float32(1.3 * i) + 0.04 * columns)
    return cv2.remap(picture, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)


def infrared(picture, i, rng):
    """A camera's own lamps by night: no colour, less light towards the edges, noise of 4 grey levels."""
    height, width = picture.shape[:2]
    rows, columns = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j].astype(np.float32)
    grey = cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY) * (1.0 - 0.35 * (rows**2 + columns**2))
    noisy = grey + rng.normal(0.0, 4.0, grey.shape).astype(np.float32)
    return cv2.cvtColor(_clipped(noisy), cv2.COLOR_GRAY2BGR)


@dataclass(frozen=True, slots=True)
class Transform:
    """A rule, the clips that it makes sense on, and of how many pictures one is shown."""

    rule: Rule
    clips: tuple[str, ...] = LAND
    stride: int = 1


TRANSFORMS: dict[str, Transform] = {
    "night_noise": Transform(night_noise, (*LAND, *SEA)),
    "double_size": Transform(double_size, (*LAND, *SEA)),
    "half_rate": Transform(unchanged, (*LAND, *SEA), stride=2),
    "fog": Transform(fog),
    "flicker": Transform(flicker),
    "shake": Transform(shake),
    "low_bitrate": Transform(low_bitrate, (*LAND, *SEA)),
    "h264": Transform(unchanged, (*LAND, *SEA)),
    "moving_shade": Transform(moving_shade),
    "cloud_shadows": Transform(cloud_shadows),
    "rain": Transform(rain),
    "snow": Transform(snow),
    "exposure_steps": Transform(exposure_steps),
    "white_balance_steps": Transform(white_balance_steps),
    "headlights": Transform(headlights),
    "drops": Transform(drops),
    "spider": Transform(spider),
    "knocked": Transform(knocked),
    "marine_snow": Transform(marine_snow, SEA),
    "turbidity": Transform(turbidity, SEA),
    "strobe": Transform(strobe, SEA),
    "auto_exposure": Transform(auto_exposure),
    "foliage": Transform(foliage),
    "infrared": Transform(infrared),
}


def transformed(name: str, pictures: Iterable[np.ndarray], n: int) -> Iterator[np.ndarray]:
    """Yield n pictures under a transform; each has a generator of its own, so that any can be made again."""
    if name == "h264":
        yield from h264(pictures)
        return
    rule, number = TRANSFORMS[name].rule, list(TRANSFORMS).index(name)
    changes = views_changed(name, n)
    for i, picture in enumerate(pictures):
        is_before = bool(changes) and i < changes[0]
        yield picture if is_before else rule(picture, i, np.random.default_rng([number, i]))


def views_changed(name: str, n: int) -> tuple[int, ...]:
    """Return the places, of n pictures, at which a transform changes the view for good."""
    return (n * 2 // 5,) if name == "knocked" else ()


def h264(pictures: Iterable[np.ndarray], crf: int = 38) -> Iterator[np.ndarray]:
    """Yield the pictures through an H.264 stream of a constant quality of 38: blocks that build up between key frames.

    The same number comes out as goes in. Sides are cut to even lengths.
    """
    import av

    encoder = av.CodecContext.create("libx264", "w")
    decoder = av.CodecContext.create("h264", "r")
    encoder.options = {"crf": str(crf), "preset": "veryfast", "tune": "zerolatency", "threads": "1"}
    encoder.pix_fmt, encoder.time_base, encoder.gop_size = "yuv420p", fractions.Fraction(1, 10), 50

    def decoded(packets):
        for packet in packets:
            for frame in decoder.decode(packet):
                yield frame.to_ndarray(format="bgr24")

    for i, picture in enumerate(pictures):
        height, width = (side // 2 * 2 for side in picture.shape[:2])
        if i == 0:
            encoder.width, encoder.height = width, height
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture[:height, :width]), format="bgr24")
        frame = frame.reformat(format="yuv420p")
        frame.pts = i
        yield from decoded(encoder.encode(frame))
    yield from decoded(encoder.encode(None))
    yield from decoded([None])


@functools.lru_cache(maxsize=16)
def field(height: int, width: int, grain_px: float, seed: int) -> np.ndarray:
    """Return smooth noise of about [-1, 1], (height, width) float32, the same for the same arguments."""
    rng = np.random.default_rng(seed)
    small = rng.uniform(-1.0, 1.0, (max(2, round(height / grain_px)) + 2, max(2, round(width / grain_px)) + 2))
    return cv2.resize(small.astype(np.float32), (width, height), interpolation=cv2.INTER_CUBIC)


@functools.lru_cache(maxsize=16)
def particles(n: int, seed: int) -> np.ndarray:
    """Return n particles: x, y, depth, speed, sway, each of [0, 1), (n, 5) float64."""
    return np.random.default_rng(seed).random((n, 5))


def moved(picture: np.ndarray, dx: float, dy: float) -> np.ndarray:
    """Return the picture displaced by (dx, dy) pixels, its borders replicated."""
    height, width = picture.shape[:2]
    matrix = np.array([[1.0, 0.0, dx], [0.0, 1.0, dy]])
    return cv2.warpAffine(picture, matrix, (width, height), borderMode=cv2.BORDER_REPLICATE)


def recoded(picture: np.ndarray, quality: int) -> np.ndarray:
    """Return the picture as a JPEG of that quality shows it."""
    return decoded(cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, quality])[1])


def _streaked(picture, rng, count, length_px, strength):
    """Return the picture, float32, with thin falling streaks."""
    height, width = picture.shape[:2]
    mask = np.zeros((height, width), np.float32)
    for x, y, depth in rng.random((count, 3)):
        top = (round(x * width), round(y * height))
        tip = (top[0] - 2, top[1] + round(length_px * (0.5 + depth)))
        cv2.line(mask, top, tip, strength * (0.5 + depth), 1, cv2.LINE_AA)
    return picture + (215.0 - picture) * mask[..., None]


def _steps(i: int, every: int, levels: tuple[float, ...]) -> np.float32:
    """Return the level at picture i: each for `every` pictures, the way from the one before within four."""
    place, within = divmod(i, every)
    now, before = levels[place % len(levels)], levels[(place - 1) % len(levels)] if place else levels[0]
    return np.float32(before + (now - before) * min(1.0, (within + 1) / 4.0))


def _clipped(values) -> np.ndarray:
    """Return values as pixels."""
    return np.clip(values, 0.0, 255.0).astype(np.uint8)
