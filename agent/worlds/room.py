"""A fixed camera in a room: people come in and cross it, things are left on the floor and taken away again.

Made by worlds/catalogue.make_world("room"). Each visit is an event; what was left behind, and how
long it stood there, is in the ground truth's segments.
"""

import bisect

import cv2
import numpy as np

from stillwatch.worlds.base import World
from stillwatch.worlds.textures import fractal_noise, paste, shadow_of, sprite, tinted

_SHIRTS = ((60, 60, 170), (150, 90, 40), (70, 140, 80), (190, 190, 195), (50, 150, 200), (90, 50, 110))
_THINGS = {"box": (30, 26), "suitcase": (24, 36), "ball": (20, 20)}  # width, height in units


class Room(World):
    """Wall, window, door, bookshelf, picture, sofa, lamp; the window's light drifts, its curtain moves a little."""

    name = "room"
    default_frames = 700
    drift_period_s = 120.0

    def _build(self) -> None:
        rng = self._build_rng
        self._background = self._paint_background(rng)
        self._curtain = fractal_noise(rng, self.height, round(26 * self.unit), 20 * self.unit, 2)
        self._visits: list[tuple] = []
        self._things: list[tuple] = []
        self._looks: dict[tuple, tuple] = {}
        self._shapes: dict[str, np.ndarray] = {}
        if not self.quiet:
            self._plan(rng)

    def _plan(self, rng) -> None:
        """Let a person cross about every hundred frames; every second one leaves or takes a thing."""
        at, left_since = 100 + int(rng.integers(0, 20)), None
        while at < self.n_frames - 10:
            shirt = _SHIRTS[rng.integers(len(_SHIRTS))]
            speed = rng.uniform(3.5, 5.5) * self.unit
            heading = 1 if rng.random() < 0.5 else -1
            foot = rng.uniform(0.84, 0.94) * self.height
            steps, shadow = self._look(shirt)
            stop = at + int((self.width + steps[0].shape[1]) / speed)
            self._visits.append((at, stop, heading, speed, foot, steps, shadow))
            self._events.append({"start": at, "end": min(stop, self.n_frames - 1), "what": "person crosses the room"})
            if rng.random() < 0.5:
                left_since = self._leave_or_take(rng, (at + stop) // 2, foot, left_since)
            at = stop + int(rng.integers(50, 110))
        if left_since is not None:
            self._close(self.n_frames - 1)

    def _look(self, shirt: tuple) -> tuple:
        """Return the four steps of a person in this shirt, and the shadow."""
        if shirt not in self._looks:
            steps = [_person(shirt, phase, self.unit) for phase in range(4)]
            self._looks[shirt] = (steps, shadow_of(steps[0], 3 * self.unit, 0.25))
        return self._looks[shirt]

    def _leave_or_take(self, rng, at: int, foot: float, left_since: int | None) -> int | None:
        """Leave a thing where the person is at frame `at`, or take the one that stands there."""
        if left_since is not None:
            self._close(at)
            return None
        thing = str(rng.choice(list(_THINGS)))
        place = (self.width / 2, foot - 4 * self.unit)
        pixels = self._shapes.setdefault(thing, _thing(thing, self.unit))
        self._things.append((at, self.n_frames, thing, pixels, place))
        return at

    def _close(self, at: int) -> None:
        """Let the last thing end at frame `at`, and write its span to the ground truth's segments."""
        start, _, thing, pixels, place = self._things[-1]
        self._things[-1] = (start, at, thing, pixels, place)
        span = {"start": start, "end": min(at, self.n_frames) - 1, "scene": thing, "kind": "object", "first_time": True}
        self._segments.append(span)

    def _paint(self, i: int) -> np.ndarray:
        image = self._background.copy()
        self._paint_curtain(image, i)
        last = bisect.bisect_right(self._things, i, key=lambda thing: thing[0])
        for _, stop, _, pixels, (x, y) in self._things[max(0, last - 1) : last]:
            if i < stop:
                paste(image, shadow_of(pixels, 2 * self.unit, 0.4), x + 3 * self.unit, y + 3 * self.unit)
                paste(image, pixels, x, y)
        last = bisect.bisect_right(self._visits, i, key=lambda visit: visit[0])
        for start, stop, heading, speed, foot, steps, shadow in self._visits[max(0, last - 1) : last]:
            if i <= stop:
                run = 2.0 - steps[0].shape[1] / 2 + speed * (i - start)
                x = run if heading > 0 else self.width - run
                pixels = steps[(i - start) // 2 % len(steps)]
                pixels = pixels if heading > 0 else pixels[:, ::-1]
                y = foot - pixels.shape[0] / 2 + self.unit * (((i - start) // 2) % 2)
                paste(image, shadow, x + 9 * self.unit, y + 4 * self.unit)
                paste(image, pixels, x, y)
        return image

    def _paint_curtain(self, image, i: int) -> None:
        """Shade the folds of the curtain, which drift sideways by a pixel or two, in place."""
        unit = self.unit
        left = round(0.09 * self.width + 1.5 * unit * np.sin(0.09 * i + self._phase[0]))
        top, bottom = round(0.1 * self.height), round(0.52 * self.height)
        part = image[top:bottom, left : left + self._curtain.shape[1]]
        columns = np.arange(part.shape[1], dtype=np.float32)[None, :]
        folds = 0.86 + 0.1 * np.sin(columns / (2.2 * unit)) + 0.02 * self._curtain[: part.shape[0], : part.shape[1]]
        part[:] = np.asarray((120, 150, 190), np.float32) * folds[..., None]

    def _paint_background(self, rng) -> np.ndarray:
        """Return the empty room, (height, width, 3) float32."""
        height, width, unit = self.height, self.width, self.unit
        noise = fractal_noise(rng, height, width, 60 * unit, 3)
        image = tinted(noise, (176, 196, 204), 0.02)
        floor = round(0.64 * height)
        self._paint_floor(image[floor:], noise[floor:], rng)
        image[floor - round(5 * unit) : floor] = (150, 165, 175)
        self._paint_window(image)
        self._paint_shelf(image, rng)
        self._paint_sofa(image, noise)
        x, y = round(0.5 * width), round(0.2 * height)
        cv2.rectangle(image, (x, y), (x + round(44 * unit), y + round(34 * unit)), (40, 60, 90), -1)
        picture = image[y + round(3 * unit) : y + round(31 * unit), x + round(3 * unit) : x + round(41 * unit)]
        motif = fractal_noise(rng, picture.shape[0], picture.shape[1], 16 * unit, 3)
        picture[:] = np.asarray((140, 120, 90)) + 40 * motif[..., None] * np.asarray((0.6, 0.9, 1.0))
        return np.clip(cv2.GaussianBlur(image, (0, 0), 0.5 * unit), 0, 255)

    def _paint_floor(self, floor, noise, rng) -> None:
        """Paint boards that run towards the camera, in place."""
        height, width = floor.shape[:2]
        y, x = np.mgrid[0:height, 0:width].astype(np.float32)
        along = (x - width / 2) / (0.45 + 0.55 * y / height)
        board = np.floor(along / (24 * self.unit)).astype(int)
        tones = rng.uniform(0.86, 1.08, 64)[board % 64]
        seam = np.abs(along / (24 * self.unit) - board - 0.5) > 0.47
        floor[:] = np.asarray((86, 120, 156)) * (tones * np.where(seam, 0.7, 1.0) + 0.03 * noise)[..., None]

    def _paint_window(self, image) -> None:
        """Paint the window's frame and the sky behind it, in place."""
        width, height, unit = self.width, self.height, self.unit
        x0, y0, x1, y1 = round(0.1 * width), round(0.1 * height), round(0.3 * width), round(0.5 * height)
        image[y0:y1, x0:x1] = (236, 226, 210)
        cv2.rectangle(image, (x0, y0), (x1, y1), (215, 220, 224), max(1, round(4 * unit)))
        cv2.line(image, ((x0 + x1) // 2, y0), ((x0 + x1) // 2, y1), (215, 220, 224), max(1, round(3 * unit)))

    def _paint_shelf(self, image, rng) -> None:
        """Paint a bookshelf with its books, in place."""
        unit = self.unit
        x0, y0 = round(0.76 * self.width), round(0.1 * self.height)
        x1, y1 = round(0.95 * self.width), round(0.68 * self.height)
        image[y0:y1, x0:x1] = (44, 66, 94)
        step = (y1 - y0) / 4
        for row in range(4):
            x = x0 + 3 * unit
            while x < x1 - 6 * unit:
                thick, tall = rng.uniform(3, 7) * unit, rng.uniform(0.6, 0.88) * step
                base = round(y0 + (row + 1) * step - 2 * unit)
                tone = rng.integers(40, 190, 3).tolist()
                cv2.rectangle(image, (round(x), round(base - tall)), (round(x + thick) - 1, base), tone, -1)
                x += thick

    def _paint_sofa(self, image, noise) -> None:
        """Paint a sofa against the wall, in place."""
        unit = self.unit
        x0, x1, y0 = round(0.36 * self.width), round(0.7 * self.width), round(0.47 * self.height)
        y1 = round(0.72 * self.height)
        for left, top, right, bottom, tone in (
            (x0, y0, x1, y1, 0.85),
            (x0 + round(10 * unit), y0 + round(28 * unit), x1 - round(10 * unit), y1 - round(8 * unit), 1.1),
            (x0, y0 + round(16 * unit), x0 + round(10 * unit), y1, 1.0),
            (x1 - round(10 * unit), y0 + round(16 * unit), x1, y1, 1.0),
        ):
            shade = tone * (1 + 0.04 * noise[top:bottom, left:right])
            image[top:bottom, left:right] = np.asarray((120, 98, 84)) * shade[..., None]


def _person(shirt, phase: int, unit: float) -> np.ndarray:
    """Return a walking person in one of four phases of the step, as a premultiplied sprite."""
    height, width = round(118 * unit), round(50 * unit)
    swing = (0.16, 0.06, -0.12, 0.05)[phase]

    def draw(colour, alpha):
        tall, wide = colour.shape[:2]

        def limb(x0, y0, x1, y1, tone, thick):
            ends = (round(x0 * wide), round(y0 * tall)), (round(x1 * wide), round(y1 * tall))
            cv2.line(colour, *ends, tone, round(thick * wide), cv2.LINE_AA)
            cv2.line(alpha, *ends, 1.0, round(thick * wide), cv2.LINE_AA)

        trousers, skin = (72, 52, 44), (140, 170, 214)
        dark = tuple(0.8 * value for value in shirt)
        limb(0.5, 0.52, 0.5 - swing, 0.95, tuple(0.8 * value for value in trousers), 0.2)
        limb(0.5, 0.52, 0.5 + swing, 0.95, trousers, 0.2)
        limb(0.48, 0.24, 0.5 - 1.5 * swing, 0.52, dark, 0.12)
        limb(0.5, 0.24, 0.5, 0.48, shirt, 0.38)
        limb(0.52, 0.26, 0.5 + 1.5 * swing, 0.52, dark, 0.12)
        limb(0.5, 0.08, 0.51, 0.1, skin, 0.26)
        limb(0.47, 0.055, 0.5, 0.05, (40, 44, 60), 0.22)

    return sprite(height, width, draw)


def _thing(name: str, unit: float) -> np.ndarray:
    """Return a thing that may be left on the floor, as a premultiplied sprite."""
    width, height = (round(side * unit) for side in _THINGS[name])

    def draw(colour, alpha):
        tall, wide = colour.shape[:2]
        if name == "ball":
            for scale, tone in ((1.0, (40, 60, 170)), (0.8, (50, 80, 210)), (0.35, (120, 150, 240))):
                shift = round(0.5 * wide - 0.15 * (1 - scale) * wide)
                cv2.circle(colour, (shift, shift), round(0.46 * wide * scale), tone, -1, cv2.LINE_AA)
                cv2.circle(alpha, (shift, shift), round(0.46 * wide * scale), 1.0, -1, cv2.LINE_AA)
            return
        tone = (80, 130, 175) if name == "box" else (70, 50, 48)
        alpha[round(0.08 * tall) :, :] = 1.0
        colour[round(0.08 * tall) :, :] = tone
        colour[round(0.08 * tall) : round(0.3 * tall), :] = tuple(1.15 * value for value in tone)
        colour[:, round(0.46 * wide) : round(0.54 * wide)] = tuple(0.7 * value for value in tone)

    return sprite(height, width, draw)
