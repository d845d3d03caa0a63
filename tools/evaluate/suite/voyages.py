"""Worlds of a camera that moves over large ground: where it goes, what lies there, what comes by; all by seed.

Called by tools/evaluate/suite/cases.py. Seeds as in worlds.py: 0 to 59 to develop on, 1000 to 1059 held.

A seed's remainder by 6 says how the camera goes: 0 along a line, its height changing; 1 in turns, its view turning
with it; 2 as a buoy sways, drifting slowly; 3 along a line with stops; 4 along a line, and nothing new is ever there;
5 moored at first, then in turns. The ground is a mosaic of two photos that repeats. Usual kinds lie on it from the
start, some of them nearer to the camera, so that they pass faster; kinds never shown before are the events: most lie
there, some cross the view. What is new begins after `LEARN_S`.
"""

import pathlib
from dataclasses import dataclass, replace

import cv2
import numpy as np

from stillwatch.tools.evaluate.suite.actors import KINDS, actor, coded_pictures, paste, sized
from stillwatch.tools.evaluate.suite.clips import Stream, read_picture, rendered
from stillwatch.tools.evaluate.suite.plates import FLOORS
from stillwatch.tools.evaluate.suite.worlds import HEIGHT, LEARN_S, N_FRAMES, RATE_HZ, TOLERANCE_FRAMES, WIDTH, troubled
from stillwatch.tools.evaluate.truth import Truth, merged, runs_of

APART_PX = 80.0  # of the ground, between usual things
TILE_PX = 480  # side of a photo in the ground, which repeats after two
NUISANCES = ("exposure", "night_noise", "compression", "marine_snow")
COURSES = ("line", "turns", "buoy", "stops", "line", "late")


@dataclass(frozen=True, slots=True)
class Pose:
    """Where the camera is: centre of its view in ground pixels, angle in degrees, ground pixels a view pixel."""

    x: float
    y: float
    angle: float
    scale: float

    def to_view(self) -> np.ndarray:
        """Return the matrix, (2, 3), from the ground to the view."""
        matrix = np.asarray(cv2.getRotationMatrix2D((self.x, self.y), self.angle, 1.0 / self.scale), np.float64)
        matrix[:, 2] += (WIDTH / 2 - self.x, HEIGHT / 2 - self.y)
        return matrix


@dataclass(frozen=True, slots=True)
class Thing:
    """Something at a place of the ground at frame `met`, when the camera passes it.

    depth: how fast it passes, against the ground's 1. going: its own way in ground pixels a frame. span: frames
    between which it is there at all. usual: of a kind known from the start.
    """

    sprite: np.ndarray
    x: float
    y: float
    met: int
    depth: float
    going: tuple[float, float]
    span: tuple[int, int]
    usual: bool


class Voyage:
    """One world of a moving camera; `render(i)` depends on the seed and i alone.

    Parameters
    ----------
    seed : int
    data : pathlib.Path
        The shared data: ground and things come from its pictures.
    """

    n_frames, height, width, rate_hz = N_FRAMES, HEIGHT, WIDTH, RATE_HZ

    def __init__(self, seed: int, data: pathlib.Path):
        self.seed = seed
        rng = np.random.default_rng([seed, 5])
        self.course, self.quiet = COURSES[seed % len(COURSES)], seed % len(COURSES) == 4
        self._ground = ground(data, rng)
        self.poses = course(self.course, rng)
        self._phase, self._noise = rng.uniform(0, 2 * np.pi), rng.uniform(1.0, 4.0)
        self.nuisances = tuple(str(name) for name in rng.choice(NUISANCES, int(rng.integers(0, 3)), replace=False))
        kinds = [str(kind) for kind in rng.permutation(KINDS)]
        usual = [kinds.pop(), kinds.pop()]
        self.things = self._usual(rng, data, usual)
        if not self.quiet:
            self.things += self._new(rng, data, kinds)

    def _usual(self, rng, data: pathlib.Path, kinds: list[str]) -> list[Thing]:
        """Plan what lies there all along: a thing every few frames of the way; two pictures a kind."""
        things: list[Thing] = []
        met = 0
        while met < self.n_frames:
            thing = actor(data, str(rng.choice(kinds)), int(rng.integers(2)))
            sprite = sized(thing, int(rng.integers(24, 44)), bool(rng.random() < 0.5))
            pose = self.poses[met]
            depth = float(rng.uniform(1.0, 1.25))
            x, y = (pose.x, pose.y) + rng.uniform(-0.4, 0.4, 2) * (WIDTH, HEIGHT)
            if all(np.hypot(x - other.x, y - other.y) > APART_PX for other in things):
                things.append(Thing(sprite, x, y, met, depth, (0.0, 0.0), (0, self.n_frames - 1), True))
            met += int(rng.integers(8, 20))
        return things

    def _new(self, rng, data: pathlib.Path, kinds: list[str]) -> list[Thing]:
        """Plan the events: one after the other, most of them lying on the ground, some crossing the view."""
        things: list[Thing] = []
        learnt = round(LEARN_S * self.rate_hz)
        at = learnt + int(rng.integers(20, 50))
        while at < self.n_frames - 30:
            kind = kinds.pop()
            thing = actor(data, kind, int(rng.integers(len(coded_pictures(data, kind)))))
            sprite = sized(thing, int(rng.integers(50, 95)), bool(rng.random() < 0.5))
            pose, lane = self.poses[at], rng.uniform(-0.25, 0.25) * HEIGHT
            lying = Thing(sprite, pose.x, pose.y + lane, at, 1.0, (0.0, 0.0), (0, self.n_frames - 1), False)
            seen = self._seen(lying)
            if seen[0] <= learnt or len(seen) > 70 or rng.random() < 0.25:  # in view for long: it comes by itself
                going = float(rng.choice([-1.0, 1.0])) * float(rng.uniform(8.0, 14.0))
                lying = replace(lying, going=(going, 0.0), span=(max(at - 35, learnt + 1), at + 35))
                seen = self._seen(lying)
            things.append(lying)
            at = max(at + 70, seen[-1] + 40) + int(rng.integers(0, 30))
        return things

    # -- truth -----------------------------------------------------------------------------------------------

    def truth(self) -> Truth:
        """Return the events: frames in which a pixel of a new thing is in view, thing by thing."""
        new = [runs_of(self._seen(thing)) for thing in self.things if not thing.usual]
        return Truth(merged(span for spans in new for span in spans), TOLERANCE_FRAMES)

    def _seen(self, thing: Thing) -> list[int]:
        """Return the frames in which a pixel of a thing is in view; the one in which it is met is among them."""
        return [i for i in range(self.n_frames) if self._shown(thing, i) is not None]

    def _shown(self, thing: Thing, i: int) -> np.ndarray | None:
        """Return a thing as the view of frame i shows it, (height, width, 4) uint8 BGRA; None where it is outside."""
        if not thing.span[0] <= i <= thing.span[1]:
            return None
        pose, met = self.poses[i], self.poses[thing.met]
        x = thing.x + (1.0 - thing.depth) * (pose.x - met.x) + thing.going[0] * (i - thing.met)
        y = thing.y + (1.0 - thing.depth) * (pose.y - met.y) + thing.going[1] * (i - thing.met)
        tall, wide = thing.sprite.shape[:2]
        matrix = pose.to_view()
        matrix[:, 2] += matrix[:, :2] @ (x - wide / 2, y - tall / 2)
        at = matrix @ (wide / 2, tall / 2, 1.0)
        reach = 0.75 * float(np.hypot(tall, wide)) / pose.scale
        if not (-reach < at[0] < WIDTH + reach and -reach < at[1] < HEIGHT + reach):
            return None
        shown = cv2.warpAffine(thing.sprite, matrix, (WIDTH, HEIGHT))
        return shown if (shown[..., 3] > 0).any() else None

    # -- pictures --------------------------------------------------------------------------------------------

    def render(self, i: int) -> np.ndarray:
        """Return frame i, (height, width, 3) uint8 BGR, a new array; IndexError outside [0, n_frames)."""
        if not 0 <= i < self.n_frames:
            raise IndexError(f"frame {i} of voyage {self.seed} is outside [0, {self.n_frames})")
        matrix = self.poses[i].to_view()
        picture = cv2.warpAffine(self._ground, matrix, (WIDTH, HEIGHT), borderMode=cv2.BORDER_WRAP)
        for thing in self.things:
            shown = self._shown(thing, i)
            if shown is not None:
                paste(picture, (slice(None), slice(None), shown))
        rng = np.random.default_rng([self.seed, 6, i])
        return troubled(picture, i, self.nuisances, self._phase, self._noise, rng)

    def stream(self) -> Stream:
        """Return the world as what is watched."""
        return rendered(f"voyage {self.seed}", self)


def ground(data: pathlib.Path, rng: np.random.Generator) -> np.ndarray:
    """Return ground that repeats without a seam, (2 * TILE_PX, 2 * TILE_PX, 3) uint8 BGR: two photos in patches."""
    floors = [data / "underwater" / "habcam" / f"{name}.jpg" for name in FLOORS]
    photos = [*floors, *sorted((data / "underwater" / "reef").glob("*.jpg"))]
    chosen = rng.choice(len(photos), 2, replace=False)
    one, other = (_tile(read_picture(photos[place])).astype(np.float32) for place in chosen)
    turn = np.arange(2 * TILE_PX, dtype=np.float32) * np.float32(np.pi / TILE_PX)
    phase = rng.uniform(0, 2 * np.pi, 2)
    waves = np.sin(turn[None] + phase[0] + np.sin(turn[:, None])) + np.sin(2 * turn[:, None] + phase[1])
    share = np.clip(0.5 + 3.0 * waves, 0.0, 1.0)[..., None]
    return (one * share + other * (1.0 - share) + 0.5).astype(np.uint8)


def _tile(photo: np.ndarray) -> np.ndarray:
    """Return the middle square of a photo beside its mirror images, so that all edges meet."""
    side = min(photo.shape[:2])
    top, left = (photo.shape[0] - side) // 2, (photo.shape[1] - side) // 2
    square = cv2.resize(photo[top : top + side, left : left + side], (TILE_PX, TILE_PX), interpolation=cv2.INTER_AREA)
    row = np.concatenate([square, square[:, ::-1]], axis=1)
    return np.concatenate([row, row[::-1]], axis=0)


def course(name: str, rng: np.random.Generator) -> list[Pose]:
    """Return the camera's pose at each frame of a course."""
    i = np.arange(N_FRAMES)
    speed, heading = rng.uniform(5.0, 9.0), rng.uniform(0, 2 * np.pi)
    phase = rng.uniform(0, 2 * np.pi, 6)
    angle, scale = 2.0 * np.sin(0.05 * i + phase[0]), 1.0 + 0.12 * np.sin(0.03 * i + phase[1])
    steps = np.full(N_FRAMES, speed)
    if name == "stops":
        steps = speed * np.clip(4.0 * np.sin(2 * np.pi * i / 130 + phase[2]) + 2.0, 0.0, 1.0)
    if name in ("turns", "late"):
        turning = 60.0 * np.sin(0.035 * i + phase[3]) + 25.0 * np.sin(0.011 * i + phase[4])
        heading, angle = heading + np.deg2rad(turning), turning
    if name == "late":
        steps = speed * np.clip((i - 90) / 10.0, 0.0, 1.0)
        angle, scale = np.where(i < 90, angle[90], angle), np.where(i < 90, scale[90], scale)
    if name == "buoy":
        x = 0.8 * i + 45.0 * np.sin(0.11 * i + phase[2]) + 20.0 * np.sin(0.31 * i + phase[3])
        y = 25.0 * np.sin(0.17 * i + phase[4]) + 12.0 * np.sin(0.4 * i + phase[5])
        angle = 8.0 * np.sin(0.13 * i + phase[0])
    else:
        x, y = np.cumsum(steps * np.cos(heading)), np.cumsum(steps * np.sin(heading))
    columns = np.broadcast_arrays(x, y, angle, scale)
    return [Pose(*(float(value) for value in row)) for row in zip(*columns, strict=True)]


def make_voyage(seed: int, data: pathlib.Path) -> Voyage:
    """Return the world of a seed."""
    return Voyage(seed, data)
