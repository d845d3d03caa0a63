"""What every world shares: light, weather, the camera's shake and the sensor's noise; subclasses paint what is in it.

Made by worlds/catalogue.py. A world must not keep state between frames: `render(i)` depends on the seed, the
parameters and i alone, so that frames can be had in any order and again.
"""

import cv2
import numpy as np

WEATHERS = ("clear", "rain", "snow", "fog")
_BANK_PX = 64  # how far the noise bank reaches beyond the frame: 64 x 64 offsets


class World:
    """One rendered world: the light, the weather, the camera and the sensor; subclasses paint what is in it.

    Parameters
    ----------
    seed : int
        Chooses textures, order, times and places of everything.
    n_frames, width, height : int
        Frames to the end of the stream; pixels.
    weather : str
        One of `WEATHERS`. In the transect, rain and snow mean denser marine snow, fog means murkier water.
    drift : float
        Relative amplitude of the slow changes of the light.
    shake : float
        Deviation of the camera's shake, pixels at 240 rows.
    noise : float
        Deviation of the sensor's noise, grey levels.
    quiet : bool
        Nothing new ever happens: the world without its events, for tests of false alerts.
    """

    name = ""
    rate_hz = 10.0
    default_frames = 600
    drift_period_s = 60.0

    def __init__(self, seed, n_frames, width, height, weather, drift, shake, noise, quiet):
        self.seed, self.n_frames, self.width, self.height = seed, n_frames, width, height
        self.weather, self.drift, self.shake, self.noise, self.quiet = weather, drift, shake, noise, quiet
        self.unit = height / 240.0
        self._build_rng = np.random.default_rng([seed, 1])
        self._events: list[dict] = []
        self._segments: list[dict] = []
        bank = self._build_rng.standard_normal((height + _BANK_PX, width + _BANK_PX, 3)).astype(np.float32)
        self._bank = bank * np.float32(noise)
        self._phase = self._build_rng.uniform(0, 2 * np.pi, 4)
        count = {"clear": 0, "rain": 160, "snow": 220, "fog": 0}[weather]
        self._drops = self._build_rng.random((count, 5))
        self._build()

    def _build(self) -> None:
        """Paint what does not change and plan what happens; fills `_events` and `_segments`."""
        raise NotImplementedError

    def _paint(self, i: int) -> np.ndarray:
        """Return the world at frame i as a new float32 BGR image before light, weather, camera and sensor."""
        raise NotImplementedError

    def truth(self) -> dict:
        """Return {"events": [{start, end, what}], "segments": [...]}, frames 0-based and inclusive, as events.json."""
        return {
            "tolerance_frames": 2,
            "events": [dict(event) for event in self._events],
            "segments": [dict(segment) for segment in self._segments],
        }

    def render(self, i: int) -> np.ndarray:
        """Return frame i, (height, width, 3) uint8 BGR, a new array; IndexError outside [0, n_frames)."""
        if not 0 <= i < self.n_frames:
            raise IndexError(f"frame {i} of world {self.name} is outside [0, {self.n_frames})")
        rng = np.random.default_rng([self.seed, 2, i])
        image = self._paint(i)
        image *= self._light(i)
        self._add_weather(image, i)
        if self.shake > 0.0:
            image = self._shaken(image, rng)
        if self.noise > 0.0:
            dy, dx = rng.integers(0, _BANK_PX, 2)
            image += self._bank[dy : dy + self.height, dx : dx + self.width]
        return cv2.convertScaleAbs(np.maximum(image, 0.0, out=image))

    def _light(self, i: int) -> np.ndarray:
        """Return the gain of the three channels at frame i: two incommensurate waves, and a drift of tint."""
        t = 2 * np.pi * i / self.rate_hz / self.drift_period_s
        wave = 0.6 * np.sin(t + self._phase[0]) + 0.4 * np.sin(2.7 * t + self._phase[1])
        tint = 0.15 * np.sin(0.6 * t + self._phase[2])
        gain = 1.0 + self.drift * (wave + tint * np.asarray([1.0, 0.0, -1.0]))
        return gain.astype(np.float32)

    def _add_weather(self, image, i: int) -> None:
        """Draw fog, rain or snow into the image, in place."""
        if self.weather == "fog":
            image *= np.float32(0.55)
            image += np.float32(90.0)
        height, width, unit = self.height, self.width, self.unit
        for x, y, depth, speed, sway in self._drops:
            if self.weather == "rain":
                row = (y * (height + 30) + (0.6 + 0.4 * depth) * 31 * unit * i) % (height + 30) - 15
                column = (x * width + 3.0 * i) % width
                tail = (round(column - 2 * unit), round(row - (5 + 6 * depth) * unit))
                self._streak(image, tail, (round(column), round(row)), 0.25 + 0.25 * depth)
            else:
                row = (y * (height + 8) + (0.4 + speed) * 6 * unit * i) % (height + 8) - 4
                column = (x * width + 10 * unit * np.sin(0.1 * i + 6.28 * sway)) % width
                radius = 0.6 + 1.4 * depth * unit
                cv2.circle(image, (round(column), round(row)), round(radius), (235, 235, 235), -1, cv2.LINE_AA)

    @staticmethod
    def _streak(image, start, end, strength):
        """Lighten one thin line: a falling drop during the exposure."""
        x0, x1 = max(0, min(start[0], end[0])), min(image.shape[1], max(start[0], end[0]) + 1)
        y0, y1 = max(0, start[1]), min(image.shape[0], end[1] + 1)
        if x0 < x1 and y0 < y1:
            part = image[y0:y1, x0:x1]
            part += (np.float32(205.0) - part) * np.float32(strength)

    def _shaken(self, image, rng) -> np.ndarray:
        """Return the image displaced by this frame's shake, borders replicated."""
        dx, dy = rng.standard_normal(2) * self.shake * self.unit
        matrix = np.asarray([[1.0, 0.0, dx], [0.0, 1.0, dy]])
        size = (self.width, self.height)
        return cv2.warpAffine(image, matrix, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
