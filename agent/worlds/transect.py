"""The sea floor below a slowly moving vehicle: habitats that change, animals that come into view, light in water.

Made by worlds/catalogue.make_world("transect"). The default demo's world; all of it is painted by us, none of it is
photographed.
"""

import bisect
from collections.abc import Iterator
from typing import ClassVar

import cv2
import numpy as np

from stillwatch.worlds.base import World
from stillwatch.worlds.textures import cobble, fractal_noise, gravel, paste, sand, shadow_of, shell_hash, sprite

_HABITATS = {"sand": sand, "gravel": gravel, "shell_hash": shell_hash, "cobble": cobble}
HABITATS = tuple(_HABITATS)
ANIMAL = -1  # of a pixel that shows no ground
_HALF = 0.5  # of a pixel that something covers, above which the pixel shows it
_CYCLE = 600  # frames of one plan; longer worlds append plans in which nothing is new any more


class Transect(World):
    """A downward camera that moves ahead by a fixed number of pixels a frame; new ground enters at the top."""

    name = "transect"
    default_frames = 600
    drift_period_s = 40.0
    water: ClassVar = (1.06, 1.0, 0.74)  # attenuation of blue, green, red by the water

    def _build(self) -> None:
        rng = self._build_rng
        self._speed = max(1, round(4 * self.unit))
        self._sway = round(12 * self.unit)
        wide, tall = self.width + 2 * self._sway, 4 * self.height
        self._tiles = {
            name: _softened(paint(rng, tall, wide, self.unit), self.unit) for name, paint in _HABITATS.items()
        }
        self._wobble = 16 * self.unit * fractal_noise(rng, 64, wide, 60 * self.unit, 4)[0]
        self._sprites = {name: _animal(rng, name, self.unit) for name in ("crab", "ray", "starfish", "urchin")}
        self._shadows = {name: shadow_of(pixels, 2.5 * self.unit, 0.55) for name, pixels in self._sprites.items()}
        self._borders = [(0, "sand")]
        self._animals: list = []
        self._plan(rng)
        self._vignette = self._make_vignette()
        self._caustics = [self._caustic_tile(rng) for _ in range(2)]
        count = {"clear": 26, "fog": 60, "rain": 90, "snow": 220}[self.weather]
        self._snow = rng.random((count, 6))
        self._flakes = [_flake(radius * self.unit) for radius in (0.7, 1.1, 1.6, 2.4)]

    def _plan(self, rng) -> None:
        """Lay out habitats and animals along the track, and write the ground truth; the first plan has all firsts."""
        seen: set[str] = {"sand"}
        self._segments.append(_segment(0, self.n_frames - 1, "sand", "substrate", True))
        self._ground_now = self._segments[-1]
        if self.quiet:
            return
        for base in range(0, self.n_frames, _CYCLE):
            new = list(rng.permutation(["gravel", "shell_hash", "cobble"]))
            jitter = rng.integers(-12, 13, 3)
            for habitat, start, length in zip(new, np.array([150, 300, 490]) + jitter, (70, 60, 70), strict=True):
                self._add_habitat(base + int(start), str(habitat), seen)
                self._add_habitat(base + int(start) + length, "sand", seen)
            first, second, third = (str(name) for name in rng.permutation(["crab", "ray", "starfish", "urchin"])[:3])
            times = np.array([80, 245, 275, 410, 445]) + rng.integers(-8, 9, 5)
            for animal, start in zip((first, second, first, third, second), times, strict=True):
                self._add_animal(rng, base + int(start), animal, seen)
        self._events.sort(key=lambda event: event["start"])
        self._segments.sort(key=lambda segment: segment["start"])
        self._borders.sort()
        self._animals.sort()

    def _add_habitat(self, start: int, habitat: str, seen: set) -> None:
        """Begin a habitat whose border enters the view at frame `start`."""
        if start >= self.n_frames:
            return
        self._borders.append((start, habitat))
        first = habitat not in seen
        seen.add(habitat)
        self._segments.append(_segment(start, self.n_frames - 1, habitat, "substrate", first))
        self._ground_now["end"] = start - 1
        self._ground_now = self._segments[-1]
        if first:
            end = min(start + self.height // self._speed, self.n_frames) - 1  # until it fills the view
            self._events.append({"start": start, "end": end, "what": f"{habitat} for the first time"})

    def _add_animal(self, rng, start: int, animal: str, seen: set) -> None:
        """Place an animal on the track so that it enters the view at frame `start`."""
        if start >= self.n_frames:
            return
        half = self._sprites[animal].shape[0] / 2
        along = self.height + start * self._speed + half - 2 * self.unit
        x = rng.uniform(0.28, 0.72) * self.width
        drift = rng.uniform(-0.5, 0.5) * self.unit
        self._animals.append((start, along, x, drift, animal))
        stop = start + int((self.height + 2 * half - 4 * self.unit) / self._speed)
        first = animal not in seen
        seen.add(animal)
        span = _segment(start, min(stop, self.n_frames - 1), animal, "object", first)
        self._segments.append(span)
        if first:
            self._events.append({"start": start, "end": span["end"], "what": f"{animal} for the first time"})

    def _paint(self, i: int) -> np.ndarray:
        side = self._side(i)
        rows = (np.arange(self.height) - self.height - i * self._speed) % (4 * self.height)
        columns = slice(side, side + self.width)
        image = None
        for habitat, weight in self._layers(i, side):
            tile = self._tiles[habitat][rows, columns]
            image = tile if image is None else image + (tile - image) * weight[..., None]
        for animal, row, column in self._in_view(i, side):
            paste(image, self._shadows[animal], column + 5 * self.unit, row + 6 * self.unit)
            paste(image, self._sprites[animal], column, row)
        self._add_snow(image, i)
        image *= self._vignette
        self._add_caustics(image, i)
        return image

    def _side(self, i: int) -> int:
        """Return the column of the tiles at the left of the view."""
        return self._sway + round(0.8 * self._sway * np.sin(2 * np.pi * i / 170 + self._phase[3]))

    def _in_view(self, i: int, side: int) -> Iterator[tuple[str, float, float]]:
        """Yield the animals that may be in view at frame `i`: name, row and column."""
        longest = 2 * self.height // self._speed  # frames that anything can stay in view
        first = bisect.bisect_left(self._animals, (i - longest,))
        for start, along, x, drift, animal in self._animals[first : bisect.bisect_right(self._animals, (i + 1,))]:
            row = self.height + i * self._speed - along
            yield animal, row, x + drift * (i - start) - (side - self._sway)

    def _layers(self, i: int, side: int) -> Iterator[tuple[str, np.ndarray]]:
        """Yield the habitats below the camera, first come first, and how much each hides those before it.

        A weight is (height, width) float32 in [0, 1]: habitats blend along their ragged borders.
        """
        travelled = i * self._speed
        margin = float(np.abs(self._wobble).max()) + 6 * self.unit
        left_view = (self.height + margin) / self._speed  # frames until a border that entered is below the view
        under = max(0, bisect.bisect_right(self._borders, (i - left_view,)) - 1)
        yield self._borders[under][1], np.ones((self.height, self.width), np.float32)
        for start, habitat in self._borders[under + 1 :]:
            row = travelled - start * self._speed
            if row + margin < 0:
                break
            depth = row + self._wobble[side : side + self.width] - np.arange(self.height, dtype=np.float32)[:, None]
            yield habitat, np.clip(depth / (5 * self.unit) + 0.5, 0, 1).astype(np.float32)

    def ground(self, i: int) -> np.ndarray:
        """Return what each pixel of frame `i` shows, (height, width) int64: a place in `HABITATS`, or ANIMAL.

        What covers more than half of a pixel is there; an animal's shadow is ground.
        """
        side = self._side(i)
        found = np.zeros((self.height, self.width), np.int64)
        for habitat, weight in self._layers(i, side):
            found[weight > _HALF] = HABITATS.index(habitat)
        hidden = np.zeros((self.height, self.width, 3), np.float32)
        for animal, row, column in self._in_view(i, side):
            paste(hidden, _opaque(self._sprites[animal]), column, row)
        found[hidden[..., 0] > _HALF] = ANIMAL
        return found

    def _make_vignette(self) -> np.ndarray:
        """Return the footprint of the lamps in the colour of the water, (height, width, 3) float32."""
        y, x = np.mgrid[-1 : 1 : self.height * 1j, -1 : 1 : self.width * 1j]
        light = 1.12 - 0.42 * (x * x + y * y) ** 0.9 / 1.6
        return (light[..., None] * np.asarray(self.water)).astype(np.float32)

    def _caustic_tile(self, rng) -> np.ndarray:
        """Return a web of bright lines about a mean of zero, twice the view in each direction to scroll in."""
        noise = fractal_noise(rng, 2 * self.height, 2 * self.width, 46 * self.unit, 2)
        web = np.exp(-3.0 * np.abs(noise))
        return ((web - web.mean()) * 0.16).astype(np.float32)

    def _add_caustics(self, image, i: int) -> None:
        """Let light refracted by the waves play over the ground: two webs that drift across each other."""
        gain = np.full((self.height, self.width), 1.0, np.float32)
        for n, tile in enumerate(self._caustics):
            angle = self._phase[n] + 0.02 * i
            row = round((self.height - 2) * (0.5 + 0.5 * np.sin(angle)))
            column = round((self.width - 2) * (0.5 + 0.5 * np.cos(0.8 * angle)))
            gain += tile[row : row + self.height, column : column + self.width]
        image *= gain[..., None]

    def _add_snow(self, image, i: int) -> None:
        """Draw particles between camera and ground: near ones large, faint and fast."""
        for x, y, depth, speed, sway, shade in self._snow:
            flake = self._flakes[int(depth * len(self._flakes))]
            row = (y * (self.height + 20) + (1.2 + speed) * self._speed * i) % (self.height + 20) - 10
            column = (x * (self.width + 20) + 30 * self.unit * np.sin(0.05 * i + 6.28 * sway)) % (self.width + 20) - 10
            paste(image, flake * np.float32(0.35 + 0.5 * shade), column, row)


def _softened(tile, unit: float) -> np.ndarray:
    """Return a tile within 0-255, with the edges of its painted shapes as soft as a lens makes them."""
    return np.clip(cv2.GaussianBlur(tile, (0, 0), 0.6 * unit, borderType=cv2.BORDER_REFLECT), 0, 255)


def _segment(start: int, end: int, scene: str, kind: str, first: bool) -> dict:
    return {"start": start, "end": end, "scene": scene, "kind": kind, "first_time": first}


def _opaque(pixels: np.ndarray) -> np.ndarray:
    """Return a premultiplied sprite's own opacity in place of its colours."""
    return np.repeat(pixels[..., 3:], 4, axis=2)


def _flake(radius: float) -> np.ndarray:
    """Return a soft particle as a premultiplied sprite."""
    size = 2 * round(2 * radius) + 3
    y, x = np.mgrid[:size, :size] - size // 2
    alpha = np.exp(-(x * x + y * y) / (2 * (0.7 * radius) ** 2)).astype(np.float32)
    colour = np.asarray((214, 222, 220), np.float32)
    return np.dstack([alpha[..., None] * colour, alpha]).astype(np.float32)


def _animal(rng, name: str, unit: float) -> np.ndarray:
    """Return a sprite of the animal, premultiplied BGRA float32, with its own texture."""
    size = {"crab": (84, 112), "ray": (150, 124), "starfish": (96, 96), "urchin": (76, 76)}[name]
    height, width = (round(side * unit) for side in size)
    draw = {"crab": _draw_crab, "ray": _draw_ray, "starfish": _draw_starfish, "urchin": _draw_urchin}[name]

    def textured(colour, alpha):
        draw(colour, alpha)
        mottle = fractal_noise(rng, colour.shape[0], colour.shape[1], 24 * unit, 4)
        colour *= (1.0 + 0.10 * mottle)[..., None]

    return sprite(height, width, textured)


def _outline(canvas, alpha, points, colour):
    """Fill a polygon given in fractions of the canvas."""
    scaled = np.round(np.asarray(points) * np.asarray([canvas.shape[1], canvas.shape[0]])).astype(np.int32)
    cv2.fillPoly(canvas, [scaled], colour, cv2.LINE_AA)
    cv2.fillPoly(alpha, [scaled], 1.0, cv2.LINE_AA)


def _limb(canvas, alpha, points, colour, thickness):
    """Draw a jointed limb through points given in fractions of the canvas."""
    scaled = np.round(np.asarray(points) * np.asarray([canvas.shape[1], canvas.shape[0]])).astype(np.int32)
    width = max(1, round(thickness * canvas.shape[1]))
    cv2.polylines(canvas, [scaled], False, colour, width, cv2.LINE_AA)
    cv2.polylines(alpha, [scaled], False, 1.0, width, cv2.LINE_AA)


def _blob(canvas, alpha, centre, axes, colour, angle=0.0):
    """Draw an ellipse in fractions of the canvas: lit from the upper left by three shades."""
    height, width = canvas.shape[:2]
    for shift, scale, factor in ((0.0, 1.0, 0.78), (0.06, 0.84, 1.0), (0.16, 0.5, 1.18)):
        middle = (round((centre[0] - shift * axes[0]) * width), round((centre[1] - shift * axes[1]) * height))
        radii = (max(1, round(axes[0] * scale * width)), max(1, round(axes[1] * scale * height)))
        shade = tuple(value * factor for value in colour)
        cv2.ellipse(canvas, middle, radii, angle, 0, 360, shade, -1, cv2.LINE_AA)
        cv2.ellipse(alpha, middle, radii, angle, 0, 360, 1.0, -1, cv2.LINE_AA)


def _draw_crab(canvas, alpha):
    shell, joint = (52, 84, 176), (44, 70, 150)
    for side in (-1, 1):
        for n in range(4):
            root, knee, tip = 0.46 + 0.05 * n, 0.34 + 0.13 * n, 0.5 + 0.13 * n
            points = [(0.5 + side * 0.2, root), (0.5 + side * 0.36, knee), (0.5 + side * 0.46, tip)]
            _limb(canvas, alpha, points, joint, 0.035)
        _limb(
            canvas, alpha, [(0.5 + side * 0.2, 0.4), (0.5 + side * 0.33, 0.24), (0.5 + side * 0.24, 0.13)], joint, 0.06
        )
        _blob(canvas, alpha, (0.5 + side * 0.23, 0.13), (0.085, 0.1), (60, 98, 204), side * 25)
        _blob(canvas, alpha, (0.5 + side * 0.08, 0.32), (0.02, 0.026), (20, 20, 24))
    _blob(canvas, alpha, (0.5, 0.54), (0.27, 0.25), shell)
    for x, y in ((0.38, 0.5), (0.5, 0.42), (0.62, 0.5), (0.44, 0.63), (0.57, 0.64)):
        _blob(canvas, alpha, (x, y), (0.03, 0.03), (72, 118, 214))


def _draw_ray(canvas, alpha):
    skin = (74, 92, 104)
    _limb(canvas, alpha, [(0.5, 0.55), (0.51, 0.75), (0.48, 0.97)], (62, 80, 92), 0.035)
    body = [(0.5, 0.02), (0.62, 0.1), (0.8, 0.22), (0.98, 0.36), (0.84, 0.47), (0.66, 0.58), (0.55, 0.66), (0.45, 0.66)]
    mirrored = [(1 - x, y) for x, y in body[1:-1]][::-1]
    _outline(canvas, alpha, body + mirrored, skin)
    _blob(canvas, alpha, (0.5, 0.34), (0.15, 0.24), (84, 106, 120))
    for side in (-1, 1):
        _blob(canvas, alpha, (0.5 + side * 0.07, 0.16), (0.022, 0.02), (24, 28, 30))
        for x, y in ((0.18, 0.3), (0.26, 0.42), (0.14, 0.45), (0.34, 0.36)):
            _blob(canvas, alpha, (0.5 + side * x, y), (0.026, 0.022), (120, 144, 152))


def _draw_starfish(canvas, alpha):
    angles = np.arange(10) * np.pi / 5 - np.pi / 2
    radii = np.where(np.arange(10) % 2 == 0, 0.47, 0.17)
    points = np.stack([0.5 + radii * np.cos(angles), 0.5 + radii * np.sin(angles)], axis=1)
    _outline(canvas, alpha, points, (64, 112, 208))
    _blob(canvas, alpha, (0.5, 0.5), (0.15, 0.15), (70, 124, 222))
    for angle in angles[::2]:
        for distance in (0.2, 0.28, 0.36):
            centre = (0.5 + distance * np.cos(angle), 0.5 + distance * np.sin(angle))
            _blob(canvas, alpha, centre, (0.022, 0.022), (120, 176, 240))


def _draw_urchin(canvas, alpha):
    for angle in np.linspace(0, 2 * np.pi, 40, endpoint=False):
        reach = 0.47 if round(angle * 20 / np.pi) % 2 else 0.4
        points = [(0.5, 0.5), (0.5 + reach * np.cos(angle), 0.5 + reach * np.sin(angle))]
        _limb(canvas, alpha, points, (58, 40, 66), 0.02)
    _blob(canvas, alpha, (0.5, 0.5), (0.26, 0.26), (66, 46, 74))
