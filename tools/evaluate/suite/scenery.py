"""What a camera sees that looks ahead: ground or sea to the horizon, sky above, things that stand there, in haze.

Called by tools/evaluate/suite/ahead.py. It must not know where the camera goes, nor what is new.

Units: what lies on the ground is measured in lengths, of which the camera is CAMERA_TALL high; how tall things are, in
heights of the camera: a thing of 1 reaches to the horizon. z is ahead of the camera, x to its right.
"""

from dataclasses import dataclass

import cv2
import numpy as np

from stillwatch.tools.evaluate.suite.actors import placed
from stillwatch.tools.evaluate.suite.worlds import HEIGHT, WIDTH

FOCAL_PX = 0.9 * WIDTH
CAMERA_TALL = 0.6  # lengths, how high the camera is over the ground
NEAREST, FARTHEST = 0.5, 9.0  # lengths between which things are drawn
PANORAMA_PX = 6 * WIDTH  # of the sky, all around
BLURRED_FROM = 1.5  # lengths: texture farther away is averaged
OCTAVES = ((12, 1.0), (30, 0.5), (80, 0.3))  # of clouds: cells around, how strong
N_WAVES = 9


@dataclass(frozen=True, slots=True)
class Pose:
    """Where the camera is and looks: x, z, heading and roll in radians, how far the horizon is below its usual row."""

    x: float
    z: float
    heading: float
    roll: float
    dip_px: float


@dataclass(frozen=True, slots=True)
class Haze:
    """The colour that all fades into, (3,) float32 BGR, after `far` lengths to a third."""

    colour: np.ndarray
    far: float

    def share_left(self, z):
        """Return how much of itself what is z ahead still shows."""
        return np.exp(-z / self.far)


class Rays:
    """What each pixel of a view looks at.

    u, v: pixels to the right of the middle and below the horizon. below: where the ground is. x, z: where on it, in
    the world. ahead: how far, in front of the camera. All (HEIGHT, WIDTH) float32.
    """

    def __init__(self, pose: Pose, horizon_px: float):
        rows, columns = np.mgrid[:HEIGHT, :WIDTH].astype(np.float32)
        cos, sin = np.float32(np.cos(pose.roll)), np.float32(np.sin(pose.roll))
        right, down = columns - np.float32(WIDTH / 2), rows - np.float32(horizon_px + pose.dip_px)
        self.u, self.v = cos * right + sin * down, cos * down - sin * right
        self.below = self.v > 0.5
        self.ahead = np.float32(FOCAL_PX * CAMERA_TALL) / np.maximum(self.v, np.float32(0.5))
        aside = self.u / np.float32(FOCAL_PX) * self.ahead
        cos, sin = np.float32(np.cos(pose.heading)), np.float32(np.sin(pose.heading))
        self.x = aside * cos + self.ahead * sin + np.float32(pose.x)
        self.z = self.ahead * cos - aside * sin + np.float32(pose.z)


def sky(rng: np.random.Generator, haze: Haze) -> np.ndarray:
    """Return clouds all around, (HEIGHT, PANORAMA_PX, 3) float32 BGR, over a shore in half of the worlds."""
    clouds = np.zeros((HEIGHT, PANORAMA_PX), np.float32)
    for cells, strength in OCTAVES:
        grid = rng.standard_normal((cells // 2 + 2, cells)).astype(np.float32)
        grid = np.concatenate([grid[:, -2:], grid, grid[:, :2]], axis=1)  # so that the end meets the beginning
        cell_px = PANORAMA_PX // cells
        wide = cv2.resize(grid, (cell_px * (cells + 4), HEIGHT), interpolation=cv2.INTER_CUBIC)
        clouds += strength * wide[:, 2 * cell_px : 2 * cell_px + PANORAMA_PX]
    painted = haze.colour * (1.0 + 0.08 * clouds[..., None])
    if rng.random() < 0.5:
        peaks = rng.uniform(0.0, 17.0, 59)
        line = np.interp(np.arange(PANORAMA_PX), np.linspace(0, PANORAMA_PX, 60), np.append(peaks, peaks[0]))
        shore = np.arange(HEIGHT)[::-1, None] < line[None]
        rough = 8.0 * rng.standard_normal((HEIGHT, PANORAMA_PX, 1))
        painted = np.where(shore[..., None], painted * 0.6 + rough, painted)
    return np.clip(painted, 0, 255).astype(np.float32)


def sky_seen(panorama: np.ndarray, rays: Rays, pose: Pose) -> np.ndarray:
    """Return the sky in each pixel of a view, (HEIGHT, WIDTH, 3) float32 BGR."""
    columns = (rays.u + np.float32(pose.heading * FOCAL_PX)) % PANORAMA_PX
    rows = np.clip(HEIGHT - 1 + rays.v, 0, HEIGHT - 1)
    return np.asarray(cv2.remap(panorama, columns, rows, cv2.INTER_LINEAR, borderMode=cv2.BORDER_WRAP))


class Land:
    """Flat ground that repeats.

    Parameters
    ----------
    tile : ndarray of shape (side, side, 3), uint8 BGR
    px : float
        Of the tile, a length.
    haze : Haze
    """

    def __init__(self, tile: np.ndarray, px: float, haze: Haze):
        self._tile, self._px, self._haze = tile, np.float32(px), haze

    def seen(self, rays: Rays, t_s: float) -> np.ndarray:
        """Return the ground in each pixel of a view, (HEIGHT, WIDTH, 3) float32 BGR; the same at any time."""
        side = len(self._tile)
        where = (rays.x * self._px) % side, (rays.z * self._px) % side
        sharp = cv2.remap(self._tile, *where, cv2.INTER_LINEAR, borderMode=cv2.BORDER_WRAP).astype(np.float32)
        blur = np.clip(rays.ahead - BLURRED_FROM, 0.0, 1.0)[..., None]
        ground = sharp * (1.0 - blur) + cv2.GaussianBlur(sharp, (5, 5), 0) * blur
        left = self._haze.share_left(rays.ahead)[..., None]
        return ground * left + self._haze.colour * (1.0 - left)


class Sea:
    """Water with waves of many lengths, each at its own speed: long ones go faster (deep water).

    Parameters
    ----------
    rng : numpy.random.Generator
    haze : Haze
    """

    def __init__(self, rng: np.random.Generator, haze: Haze):
        colours = ((110, 95, 60), (90, 90, 80), (130, 120, 70))
        self._colour = np.array(colours[int(rng.integers(3))], np.float32) * np.float32(rng.uniform(0.7, 1.2))
        self._haze = haze
        lengths = rng.uniform(0.15, 2.5, N_WAVES)
        ways = rng.uniform(0, 2 * np.pi) + rng.uniform(-0.9, 0.9, N_WAVES)  # about where the wind blows
        numbers = 2 * np.pi / lengths
        along = numbers * np.cos(ways), numbers * np.sin(ways)
        columns = (*along, numbers, 0.5 * np.sqrt(9.8 * numbers), rng.uniform(0, 2 * np.pi, N_WAVES))
        self._waves = [tuple(map(float, wave)) for wave in zip(*columns, 0.5 * lengths**0.7, strict=True)]

    def seen(self, rays: Rays, t_s: float) -> np.ndarray:
        """Return the sea in each pixel of a view at `t_s` seconds, (HEIGHT, WIDTH, 3) float32 BGR."""
        height = np.zeros((HEIGHT, WIDTH), np.float32)
        for kx, kz, number, speed, phase, strength in self._waves:
            shown = np.exp(
                -((number * rays.ahead**2 / (2.0 * FOCAL_PX * CAMERA_TALL)) ** 2)
            )  # a pixel averages the rest
            height += np.float32(strength) * shown * np.sin(kx * rays.x + kz * rays.z - speed * t_s + phase)
        height = height[..., None]
        water = self._colour * (1.0 + 0.35 * height) + 60.0 * np.clip(height - 1.6, 0.0, 1.0)  # and foam
        mirror = 0.5 * np.clip(1.0 - rays.v / 80.0, 0.15, 0.9)[..., None]
        water = water * (1.0 - mirror) + self._haze.colour * mirror
        left = self._haze.share_left(rays.ahead)[..., None]
        return water * left + 0.9 * self._haze.colour * (1.0 - left)


def standing(sprite: np.ndarray, x: float, z: float, tall: float, sunk: float, pose: Pose, horizon_px: float):
    """Return (rows, columns, part) of a thing in a view, as `placed`, and its height in pixels; None outside.

    sprite : (h, w, 4) uint8 BGRA;  x, z : of its foot, in the world;  tall : heights of the camera;
    sunk : share under water
    """
    away = (x - pose.x, z - pose.z)
    cos, sin = np.cos(pose.heading), np.sin(pose.heading)
    ahead, aside = away[0] * sin + away[1] * cos, away[0] * cos - away[1] * sin
    if not NEAREST < ahead < FARTHEST:
        return None
    tall_px = FOCAL_PX * CAMERA_TALL * tall / ahead
    wide_px = tall_px * sprite.shape[1] / sprite.shape[0]
    right, down = FOCAL_PX * aside / ahead, FOCAL_PX * CAMERA_TALL / ahead
    cos, sin = np.cos(pose.roll), np.sin(pose.roll)
    foot = cos * right - sin * down + WIDTH / 2, sin * right + cos * down + horizon_px + pose.dip_px
    reach = wide_px + tall_px
    inside = -reach < foot[0] < WIDTH + reach and -reach < foot[1] < HEIGHT + reach
    if not inside or not 2.0 <= tall_px <= 3 * HEIGHT:
        return None
    turned, at = _turned(sprite, tall_px, sunk, pose.roll)
    found = placed(turned, round(foot[0] - at[0]), round(foot[1] - at[1]), HEIGHT, WIDTH)
    return None if found is None or not found[2][..., 3].any() else (found, tall_px)


def ahead_of(tall_px: float, tall: float) -> float:
    """Return how many lengths ahead a thing is that is so many pixels high; tall : heights of the camera."""
    return FOCAL_PX * CAMERA_TALL * tall / tall_px


def _turned(sprite: np.ndarray, tall_px: float, sunk: float, roll: float) -> tuple[np.ndarray, tuple[float, float]]:
    """Return a sprite so high, without what is under water, turned; and where in it the middle of its foot is."""
    tall, wide = max(2, round(tall_px)), max(2, round(tall_px * sprite.shape[1] / sprite.shape[0]))
    part = cv2.resize(sprite, (wide, tall), interpolation=cv2.INTER_AREA)[: max(1, round(tall * (1.0 - sunk)))]
    tall = len(part)
    cos, sin = abs(np.cos(roll)), abs(np.sin(roll))
    across, down = int(np.ceil(wide * cos + tall * sin)) + 2, int(np.ceil(wide * sin + tall * cos)) + 2
    matrix = np.asarray(cv2.getRotationMatrix2D((wide / 2, tall / 2), -np.degrees(roll), 1.0), np.float64)
    matrix[:, 2] += ((across - wide) / 2, (down - tall) / 2)
    foot = matrix @ (wide / 2, tall, 1.0)
    return cv2.warpAffine(part, matrix, (across, down)), (float(foot[0]), float(foot[1]))


def rock(rng: np.random.Generator, photo: np.ndarray) -> np.ndarray:
    """Return a boulder of a photo's ground, lit from above, (72, 96, 4) uint8 BGRA."""
    side = int(rng.integers(60, 110))
    top, left = rng.integers(0, photo.shape[0] - side), rng.integers(0, photo.shape[1] - side)
    skin = cv2.resize(photo[top : top + side, left : left + side], (96, 72)).astype(np.float32)
    rows, columns = np.mgrid[:72, :96].astype(np.float32)
    angle, phase = np.arctan2(rows - 50, columns - 48), rng.uniform(0, 2 * np.pi, 3)
    outline = 1.0
    for bumps, size, at in zip((2, 3, 5), (0.12, 0.08, 0.05), phase, strict=True):
        outline = outline + size * np.sin(bumps * angle + at)
    away = np.hypot((columns - 48) / 44, (rows - 50) / 46) / outline
    alpha = np.clip((1.0 - away) * 20.0, 0.0, 1.0)
    shade = (0.55 + 0.6 * (1.0 - rows / 72))[..., None] * rng.uniform(0.6, 1.1)
    return np.dstack([np.clip(skin * shade, 0, 255), 255 * alpha]).astype(np.uint8)
