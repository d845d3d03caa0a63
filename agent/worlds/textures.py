"""Procedural textures and sprites that the synthetic worlds are painted with: noise, sand, stones, shells, shading.

Called by agent/worlds/transect.py, agent/worlds/road.py and agent/worlds/room.py while a world is built; never per
frame. It must not hold state: everything is a function of the generator it is given.
"""

import cv2
import numpy as np


def fractal_noise(rng, height: int, width: int, coarsest_px: float, octaves: int = 4, gain: float = 0.55):
    """Return smooth noise of shape (height, width), float32, zero mean, unit deviation, wrapping vertically."""
    total = np.zeros((height, width), np.float32)
    cell, weight = float(coarsest_px), 1.0
    for _ in range(octaves):
        rows, columns = max(2, round(height / cell)), max(2, round(width / cell))
        grid = rng.standard_normal((rows, columns)).astype(np.float32)
        grid = np.concatenate([grid[-2:], grid, grid[:2]])  # wraps, so that a tile can be repeated along track
        scaled = cv2.resize(grid, (width, round((rows + 4) * height / rows)), interpolation=cv2.INTER_CUBIC)
        offset = round(2 * height / rows)
        total += weight * scaled[offset : offset + height]
        cell, weight = max(1.0, cell / 2), weight * gain
    total -= total.mean()
    return total / max(1e-6, float(total.std()))


def tinted(luminance, colour, spread: float):
    """Return a float32 BGR image: `colour` (0-255) times 1 + spread * luminance noise of (height, width)."""
    return np.asarray(colour, np.float32) * (1.0 + spread * luminance[..., None])


def sand(rng, height: int, width: int, unit: float):
    """Return rippled sand with grain and specks, (height, width, 3) float32 BGR of 0-255."""
    patches = fractal_noise(rng, height, width, 90 * unit, 4)
    bend = fractal_noise(rng, height, width, 120 * unit, 2)
    rows = np.arange(height, dtype=np.float32)[:, None]
    turns = max(1, round(height / (13 * unit)))  # a whole number of ripples, so that the tile wraps
    ripple = np.sin(2 * np.pi * turns * rows / height + 1.6 * bend)
    grain = rng.standard_normal((height, width)).astype(np.float32)
    image = tinted(0.09 * patches + 0.055 * ripple + 0.05 * grain, (128, 158, 170), 1.0)
    _specks(rng, image, round(height * width / 900 / unit**2), 0.6 * unit, 1.6 * unit, (0.55, 1.35))
    return image


def _specks(rng, image, count, small, large, tone):
    """Scatter small dots, each a multiple in `tone` of the ground below it."""
    height, width = image.shape[:2]
    for x, y, radius, factor in zip(
        rng.integers(0, width, count),
        rng.integers(0, height, count),
        rng.uniform(small, large, count),
        rng.uniform(*tone, count),
        strict=True,
    ):
        colour = image[y, x] * factor
        cv2.circle(image, (int(x), int(y)), max(0, round(radius)), colour.tolist(), -1, cv2.LINE_AA)


def stones(rng, ground, count: int, smallest: float, largest: float, palette, flat: float = 0.75):
    """Lay `count` shaded stones (pixels of radius, small ones last) on a float32 BGR ground, wrapping vertically."""
    height, width = ground.shape[:2]
    radii = np.sort(smallest * (largest / smallest) ** (rng.random(count) ** 2.2))[::-1]
    for radius in radii.tolist():
        x, y = rng.uniform(-radius, width + radius), rng.uniform(0, height)
        tone = np.asarray(palette[rng.integers(len(palette))], np.float32) * rng.uniform(0.75, 1.2)
        shape = (radius, radius * rng.uniform(flat - 0.2, 1.0), rng.uniform(0, 180))
        shades = (tone * _SHADES).tolist()
        for wrapped in (y - height, y, y + height):
            if -2 * radius <= wrapped < height + 2 * radius:
                _stone(ground, x, wrapped, shape, shades)


# How a stone is lit from the upper left: where each of its layers lies, how large it is, how bright.
_LAYERS = ((0.22, 0.25, 1.05), (0.0, 0.0, 1.0), (-0.1, -0.12, 0.82), (-0.22, -0.25, 0.5))  # shadow to highlight
_SHADES = np.array([[0.35], [0.72], [1.0], [1.18]], np.float32)


def _stone(image, x, y, shape, shades):
    """Draw one stone: shadow, body, lit side, highlight, each in its shade of BGR."""
    major, minor, angle = shape
    for (dx, dy, scale), shade in zip(_LAYERS, shades, strict=True):
        centre = (round((x + dx * major) * 8), round((y + dy * major) * 8))
        axes = (max(4, round(major * scale * 8)), max(4, round(minor * scale * 8)))
        cv2.ellipse(image, centre, axes, angle, 0, 360, shade, -1, cv2.LINE_AA, 3)


def gravel(rng, height: int, width: int, unit: float):
    """Return gravel: close-packed small stones of mixed greys, (height, width, 3) float32 BGR."""
    ground = tinted(fractal_noise(rng, height, width, 6 * unit, 3), (60, 72, 78), 0.2)
    palette = [(112, 120, 122), (92, 108, 120), (140, 146, 144), (84, 92, 92), (120, 140, 160)]
    stones(rng, ground, round(height * width / 30 / unit**2), 1.8 * unit, 6.5 * unit, palette)
    return ground


def cobble(rng, height: int, width: int, unit: float):
    """Return cobbles: large rounded stones in sand, some overgrown, (height, width, 3) float32 BGR."""
    ground = sand(rng, height, width, unit) * 0.7
    palette = [(98, 104, 104), (122, 128, 124), (78, 96, 98), (92, 118, 106), (128, 138, 150)]
    stones(rng, ground, round(height * width / 420 / unit**2), 7 * unit, 30 * unit, palette)
    growth = fractal_noise(rng, height, width, 26 * unit, 4)
    ground[growth > 1.1] *= np.asarray((0.72, 0.95, 0.78), np.float32)
    return ground


def shell_hash(rng, height: int, width: int, unit: float):
    """Return shell hash: bright broken shells lying thick on sand, (height, width, 3) float32 BGR."""
    ground = sand(rng, height, width, unit) * 0.72
    count = round(height * width / 60 / unit**2)
    pale = np.array((178, 198, 206), np.float32)
    for _ in range(count):
        x, y, angle = rng.uniform(0, width), rng.uniform(0, height), rng.uniform(0, 360)
        radius, tone = rng.uniform(1.5, 6.0) * unit, rng.uniform(0.6, 1.15)
        start, sweep = rng.uniform(0, 360), rng.uniform(90, 300)
        shade = (pale * tone).tolist()
        for wrapped in (y - height, y, y + height):
            if -10 * unit <= wrapped < height + 10 * unit:
                centre = (round(x * 8), round(wrapped * 8))
                axes = (round(radius * 8), round(radius * 8 * rng.uniform(0.45, 0.8)))
                cv2.ellipse(ground, centre, axes, angle, start, start + sweep, shade, -1, cv2.LINE_AA, 3)
    return ground


def sprite(height: int, width: int, draw, oversample: int = 4):
    """Return a (height, width, 4) float32 sprite, BGR premultiplied by alpha of 0-1, drawn large by `draw(bgr, alpha)`.

    `draw` gets float32 canvases of shape (oversample * height, oversample * width, 3) and (..., 1-channel).
    """
    shape = (height * oversample, width * oversample)
    colour, alpha = np.zeros((*shape, 3), np.float32), np.zeros(shape, np.float32)
    draw(colour, alpha)
    colour *= alpha[..., None]
    small = cv2.resize(np.dstack([colour, alpha]), (width, height), interpolation=cv2.INTER_AREA)
    return np.ascontiguousarray(small)


def paste(image, pixels, x: float, y: float) -> None:
    """Composite a premultiplied sprite with its centre at (x, y) pixels onto a float32 BGR image, clipped, in place."""
    height, width = pixels.shape[:2]
    left, top = round(x - width / 2), round(y - height / 2)
    x0, y0 = max(0, left), max(0, top)
    x1, y1 = min(image.shape[1], left + width), min(image.shape[0], top + height)
    if x0 >= x1 or y0 >= y1:
        return
    part = pixels[y0 - top : y1 - top, x0 - left : x1 - left]
    target = image[y0:y1, x0:x1]
    target *= 1.0 - part[..., 3:]
    target += part[..., :3]


def shadow_of(pixels, blur_px: float, strength: float):
    """Return a soft black sprite in the shape of another one, to be pasted beside it first."""
    alpha = cv2.GaussianBlur(pixels[..., 3], (0, 0), max(0.5, blur_px)) * strength
    out = np.zeros_like(pixels)
    out[..., 3] = alpha
    return out
