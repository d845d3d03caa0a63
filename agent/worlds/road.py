"""A fixed camera over a road between meadows: vehicles pass now and then, trees sway, the light drifts.

Made by worlds/catalogue.make_world("road"). Each passage of a vehicle is an event; nothing else ever enters.
"""

import bisect

import cv2
import numpy as np

from stillwatch.worlds.base import World
from stillwatch.worlds.textures import fractal_noise, paste, shadow_of, sprite, tinted

_PAINTS = ((200, 200, 205), (40, 40, 200), (150, 80, 30), (60, 60, 60), (60, 150, 190), (230, 230, 235), (70, 120, 60))
_KINDS = {"car": (74, 40), "van": (88, 46), "lorry": (132, 54), "motorcycle": (40, 20)}  # length, width in units


class Road(World):
    """Seen from above: two lanes from left to right, a footpath, meadow, trees, a roof."""

    name = "road"
    default_frames = 600
    drift_period_s = 90.0

    def _build(self) -> None:
        rng = self._build_rng
        self._background = self._paint_background(rng)
        self._crowns = [self._tree(rng) for _ in range(5)]
        self._vehicles: list[tuple] = []
        self._looks: dict[tuple, tuple] = {}
        if not self.quiet:
            self._plan(rng)

    def _plan(self, rng) -> None:
        """Let a vehicle pass about every hundred frames, the first not before frame 90."""
        at = 90 + int(rng.integers(0, 20))
        while at < self.n_frames - 10:
            kind = str(rng.choice(list(_KINDS), p=(0.55, 0.2, 0.15, 0.1)))
            paint = _PAINTS[rng.integers(len(_PAINTS))]
            lane = int(rng.integers(2))
            pixels, shadow = self._look(kind, paint, lane)
            speed = rng.uniform(6.0, 12.0) * self.unit
            stop = at + int((self.width + pixels.shape[1]) / speed)
            self._vehicles.append((at, stop, lane, speed, pixels, shadow))
            self._events.append({"start": at, "end": min(stop, self.n_frames - 1), "what": f"{kind} on the road"})
            at = stop + int(rng.integers(50, 110))

    def _look(self, kind: str, paint: tuple, lane: int) -> tuple:
        """Return a vehicle's sprite and its shadow, the same arrays for the same look."""
        key = (kind, paint, lane)
        if key not in self._looks:
            pixels = _vehicle(kind, paint, self.unit)
            pixels = pixels if lane else np.ascontiguousarray(pixels[:, ::-1])
            self._looks[key] = (pixels, shadow_of(pixels, 2 * self.unit, 0.45))
        return self._looks[key]

    def _paint(self, i: int) -> np.ndarray:
        image = self._background.copy()
        last = bisect.bisect_right(self._vehicles, i, key=lambda vehicle: vehicle[0])
        for start, stop, lane, speed, pixels, shadow in self._vehicles[max(0, last - 1) : last]:
            if i <= stop:
                run = 2.0 - pixels.shape[1] / 2 + speed * (i - start)
                x = run if lane else self.width - run
                y = self.height * (0.66 if lane else 0.5)
                paste(image, shadow, x + 4 * self.unit, y + 5 * self.unit)
                paste(image, pixels, x, y)
        for n, (pixels, x, y) in enumerate(self._crowns):
            sway = 1.2 * self.unit * np.sin(0.21 * i + 1.7 * n + self._phase[0])
            paste(image, pixels, x + sway, y + 0.5 * sway)
        return image

    def _paint_background(self, rng) -> np.ndarray:
        """Return meadow, footpath, asphalt with its markings, and a roof, (height, width, 3) float32."""
        height, width, unit = self.height, self.width, self.unit
        fine = fractal_noise(rng, height, width, 5 * unit, 3)
        coarse = fractal_noise(rng, height, width, 70 * unit, 3)
        image = tinted(0.14 * fine + 0.10 * coarse, (62, 128, 98), 1.0)
        asphalt = tinted(0.05 * fine + 0.03 * coarse, (116, 114, 112), 1.0)
        top, bottom = round(0.41 * height), round(0.75 * height)
        image[top:bottom] = asphalt[top:bottom]
        path = image[top - round(16 * unit) : top - round(3 * unit)]
        path[:] = tinted(fine, (150, 164, 172), 0.05)[: len(path)]
        for edge in (top + round(3 * unit), bottom - round(5 * unit)):
            image[edge : edge + max(1, round(2 * unit))] = (208, 214, 216)
        middle = round(0.58 * height)
        for x in range(round(6 * unit), width, round(34 * unit)):
            image[middle - 1 : middle + max(1, round(unit)), x : x + round(17 * unit)] = (208, 214, 216)
        self._paint_roof(image, rng)
        return np.clip(cv2.GaussianBlur(image, (0, 0), 0.5 * unit), 0, 255)

    def _paint_roof(self, image, rng) -> None:
        """Paint a tiled roof with its shadow in the upper right, in place."""
        unit = self.unit
        x0, y0 = round((0.6 + 0.1 * rng.random()) * self.width), round(0.05 * self.height)
        x1, y1 = x0 + round(84 * unit), y0 + round(54 * unit)
        image[y0 + round(6 * unit) : y1 + round(7 * unit), x0 + round(7 * unit) : x1 + round(8 * unit)] *= 0.55
        roof = image[y0:y1, x0:x1]
        rows = np.arange(roof.shape[0])[:, None, None]
        lit = np.where(rows < roof.shape[0] // 2, 1.1, 0.8)
        roof[:] = np.asarray((70, 84, 150)) * lit * (0.93 + 0.07 * np.cos(2 * np.pi * rows / (5 * unit)))

    def _tree(self, rng) -> tuple:
        """Return a tree's crown as sprite, and where it stands: in the meadows, clear of the lanes."""
        radius = rng.uniform(13, 24) * self.unit
        size = 2 * round(radius) + 4
        leaves = fractal_noise(rng, 4 * size, 4 * size, 16 * self.unit, 3)

        def draw(colour, alpha):
            middle, reach = 2 * size, 4 * radius
            for _ in range(26):
                angle, distance = rng.uniform(0, 6.28), reach * 0.7 * np.sqrt(rng.random())
                centre = (round(middle + distance * np.cos(angle)), round(middle + distance * np.sin(angle)))
                shade = 1.0 - 0.35 * (np.cos(angle - 0.8) * distance / reach)
                tone = tuple(shade * value for value in (48, 104, 66))
                cv2.circle(colour, centre, round(0.32 * reach), tone, -1, cv2.LINE_AA)
                cv2.circle(alpha, centre, round(0.32 * reach), 1.0, -1, cv2.LINE_AA)
            colour *= (1.0 + 0.16 * leaves)[..., None]

        x, low = rng.uniform(0.03, 0.97) * self.width, rng.random() < 0.5
        y = (0.92 + 0.1 * rng.random()) * self.height if low else rng.uniform(0.04, 0.2) * self.height
        return sprite(size, size, draw), x, y


def _vehicle(kind: str, paint, unit: float) -> np.ndarray:
    """Return a vehicle seen from above, heading right, as a premultiplied sprite."""
    length, width = (round(side * unit) for side in _KINDS[kind])
    draw = _draw_motorcycle if kind == "motorcycle" else _draw_lorry if kind == "lorry" else _draw_car

    def painted(colour, alpha):
        draw(colour, alpha, np.asarray(paint, np.float32))

    return sprite(width, length, painted)


def _box(colour, alpha, left, top, right, bottom, tone, round_by=0.25):
    """Fill a rounded box given in fractions of the canvas."""
    height, width = colour.shape[:2]
    x0, y0, x1, y1 = round(left * width), round(top * height), round(right * width), round(bottom * height)
    radius = max(1, round(round_by * (y1 - y0) / 2))
    tone = tuple(float(value) for value in tone)
    for canvas, value in ((colour, tone), (alpha, 1.0)):
        cv2.rectangle(canvas, (x0 + radius, y0), (x1 - radius, y1), value, -1)
        cv2.rectangle(canvas, (x0, y0 + radius), (x1, y1 - radius), value, -1)
        for x in (x0 + radius, x1 - radius):
            for y in (y0 + radius, y1 - radius):
                cv2.circle(canvas, (x, y), radius, value, -1, cv2.LINE_AA)


def _draw_car(colour, alpha, paint):
    _box(colour, alpha, 0.02, 0.06, 0.98, 0.94, paint * 0.8, 0.5)
    _box(colour, alpha, 0.04, 0.12, 0.95, 0.86, paint, 0.5)
    _box(colour, alpha, 0.24, 0.16, 0.74, 0.84, (52, 46, 40), 0.4)
    _box(colour, alpha, 0.34, 0.2, 0.62, 0.8, paint * 1.08, 0.3)
    for row in (0.16, 0.74):
        _box(colour, alpha, 0.92, row, 0.97, row + 0.1, (210, 240, 245), 0.5)
        _box(colour, alpha, 0.03, row, 0.06, row + 0.1, (40, 40, 190), 0.5)


def _draw_lorry(colour, alpha, paint):
    _box(colour, alpha, 0.01, 0.04, 0.74, 0.96, paint * 0.85, 0.1)
    _box(colour, alpha, 0.02, 0.08, 0.73, 0.9, paint * 1.05, 0.1)
    for column in (0.2, 0.38, 0.56):
        _box(colour, alpha, column, 0.06, column + 0.008, 0.94, paint * 0.7, 0.1)
    _box(colour, alpha, 0.77, 0.08, 0.98, 0.92, paint[::-1], 0.3)
    _box(colour, alpha, 0.89, 0.12, 0.95, 0.88, (52, 46, 40), 0.3)


def _draw_motorcycle(colour, alpha, paint):
    _box(colour, alpha, 0.05, 0.4, 0.95, 0.6, (36, 36, 36), 0.9)
    _box(colour, alpha, 0.3, 0.32, 0.7, 0.68, paint, 0.9)
    _box(colour, alpha, 0.7, 0.12, 0.76, 0.88, (60, 60, 60), 0.5)
    _box(colour, alpha, 0.4, 0.34, 0.58, 0.66, (225, 225, 230), 1.0)
