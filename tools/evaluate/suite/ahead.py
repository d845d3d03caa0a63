"""Worlds of a camera that looks ahead: a robot on its way among rocks, a buoy on the sea; all by seed.

Called by tools/evaluate/suite/cases.py. Seeds as in worlds.py: 0 to 59 to develop on, 1000 to 1059 held.

A seed's remainder by 6 says how it goes: 0 straight on; 1 in turns; 2 with stops; 3 straight on, looking to both sides;
4 straight on, and nothing new is ever there; 5 a buoy that rocks in the waves. Rocks stand all along the way of a
robot, and in half of the worlds (an even seed // 6) things of two usual kinds as well; a buoy is passed by two usual
kinds. Kinds never shown before are the events, while they are at least `SHOWN_PX` high. What is new begins after
`LEARN_S`.
"""

import pathlib
from dataclasses import dataclass, replace

import numpy as np

from stillwatch.tools.evaluate.suite.actors import FAINTEST, KINDS, actor, coded_pictures, paste
from stillwatch.tools.evaluate.suite.clips import Stream, read_picture, rendered
from stillwatch.tools.evaluate.suite.scenery import Haze, Land, Pose, Rays, Sea, ahead_of, rock, sky, sky_seen, standing
from stillwatch.tools.evaluate.suite.voyages import ground
from stillwatch.tools.evaluate.suite.worlds import HEIGHT, LEARN_S, N_FRAMES, RATE_HZ, TOLERANCE_FRAMES, WIDTH, troubled
from stillwatch.tools.evaluate.truth import Truth, merged, runs_of

STYLES = ("straight", "turns", "stops", "looks", "straight", "buoy")
SHOWN_PX = 22.0  # high: from here on a new thing is an event
LEAST_SHOWN = 60  # pixels of it
MOST_SHOWN = 90  # frames: what stays in view for longer is no event but a part of the place
HAZES = ((1.0, 0.9, 0.7), (0.9, 0.95, 1.0), (1.0, 1.0, 0.95))  # blue water, dust, mist: shares of BGR
NUISANCES = ("exposure", "night_noise", "compression", "marine_snow")  # the last one not over the sea
N_ROCKS = 8  # of different looks
APART = 15  # frames between two events, at least
CROSSING = 45  # frames before and after a thing that crosses the view is straight ahead
LEARNT = round(LEARN_S * RATE_HZ)


@dataclass(frozen=True, slots=True)
class Thing:
    """Something with its foot at (x, z) at frame `met`, going so many lengths a frame, there from `first` to `last`.

    tall: heights of the camera. usual: of a kind known from the start. sunk: share under water.
    """

    sprite: np.ndarray
    x: float
    z: float
    tall: float
    usual: bool
    going: tuple[float, float] = (0.0, 0.0)
    met: int = 0
    first: int = 0
    last: int = N_FRAMES
    sunk: float = 0.0


class Ahead:
    """One world of a camera that looks ahead; `render(i)` depends on the seed and i alone.

    Parameters
    ----------
    seed : int
    data : pathlib.Path
        The shared data: ground, rocks and things come from its pictures.
    """

    n_frames, height, width, rate_hz = N_FRAMES, HEIGHT, WIDTH, RATE_HZ

    def __init__(self, seed: int, data: pathlib.Path):
        rng = np.random.default_rng([seed, 15])
        self.seed, self.style = seed, STYLES[seed % len(STYLES)]
        self.quiet, is_sea = seed % len(STYLES) == 4, self.style == "buoy"
        self._noise, self._phase = rng.uniform(1.0, 4.0), rng.uniform(0, 2 * np.pi)
        pool = NUISANCES[:3] if is_sea else NUISANCES
        self.nuisances = tuple(str(name) for name in rng.choice(pool, int(rng.integers(0, 3)), replace=False))
        colour = np.array(HAZES[int(rng.integers(len(HAZES)))], np.float32) * np.float32(rng.uniform(80, 200))
        self._haze = Haze(colour, float(rng.uniform(3.0, 7.0)) * (4.0 if is_sea else 1.0))
        self._horizon_px = float(rng.uniform(0.25, 0.45) * HEIGHT)
        self.poses, self._ways = course(self.style, rng)
        self._sky = sky(rng, self._haze)
        kinds = [str(kind) for kind in rng.permutation(KINDS)]
        usual = [kinds.pop(), kinds.pop()]
        if is_sea:
            self._below: Land | Sea = Sea(rng, self._haze)
            self.things = self._passing(rng, data, usual, True) + self._passing(rng, data, kinds, False)
        else:
            self._below = Land(ground(data, rng), rng.uniform(160.0, 320.0), self._haze)
            self.things = self._rocks(rng, data)
            if seed // len(STYLES) % 2 == 0:
                self.things += self._usual(rng, data, usual)
            if not self.quiet:
                self.things += self._new(rng, data, kinds)

    # -- what is there ---------------------------------------------------------------------------------------

    def _beside(self, i: int, ahead: float, aside: float) -> tuple[float, float]:
        """Return the place so far along the way of frame i, and so far to its right."""
        way, pose = self._ways[i], self.poses[i]
        cos, sin = np.cos(way), np.sin(way)
        return pose.x + ahead * sin + aside * cos, pose.z + ahead * cos - aside * sin

    def _rocks(self, rng: np.random.Generator, data: pathlib.Path) -> list[Thing]:
        photos = sorted((data / "underwater" / "reef").glob("*.jpg"))
        photo = read_picture(photos[int(rng.integers(len(photos)))])
        looks = [rock(rng, photo) for _ in range(N_ROCKS)]
        begun = [(0, float(rng.uniform(1.0, 6.0))) for _ in range(40)]
        places = [(pose.x, pose.z) for pose in self.poses]
        goes = [i for i in range(2, N_FRAMES, 2) if places[i] != places[i - 1]]
        later = [(i, 6.0 + float(rng.uniform(-1.0, 1.0))) for i in goes for _ in range(2)]
        things = []
        for i, ahead in begun + later:
            x, z = self._beside(i, ahead, float(rng.choice([-1.0, 1.0]) * rng.uniform(0.35, 4.5)))
            things.append(Thing(looks[int(rng.integers(N_ROCKS))], x, z, float(rng.uniform(0.1, 0.55)), True))
        return things

    def _usual(self, rng: np.random.Generator, data: pathlib.Path, kinds: list[str]) -> list[Thing]:
        """Return things of usual kinds, one every few seconds of the way; two pictures a kind."""
        things, at = [], 0
        while at < N_FRAMES:
            x, z = self._beside(at, float(rng.uniform(3, 5)), float(rng.choice([-1.0, 1.0]) * rng.uniform(0.25, 1.4)))
            sprite = _mirrored(rng, actor(data, str(rng.choice(kinds)), int(rng.integers(2))))
            things.append(Thing(sprite, x, z, float(rng.uniform(0.25, 0.4)), True))
            at += int(rng.integers(10, 25))
        return things

    def _new(self, rng: np.random.Generator, data: pathlib.Path, kinds: list[str]) -> list[Thing]:
        """Return the events of a robot: one after the other, most stand beside its way, some cross it."""
        things: list[Thing] = []
        last, at = LEARNT, LEARNT + int(rng.integers(10, 40))
        while at < N_FRAMES - 30:
            kind = kinds.pop()
            sprite = _mirrored(rng, actor(data, kind, int(rng.integers(len(coded_pictures(data, kind))))))
            thing = self._found_beside(rng, sprite, at, last) or self._crossing(rng, sprite, at)
            seen = self._seen(thing)
            if not seen or seen[0] < last + APART:
                at += 10
                continue
            things.append(thing)
            last = seen[-1]
            at = max(at + 60, last + 35) + int(rng.integers(0, 30))
        return things

    def _found_beside(self, rng: np.random.Generator, sprite: np.ndarray, at: int, last: int) -> Thing | None:
        """Return a thing that comes in view as the camera goes on, after frame `last`; None where none did."""
        for _ in range(20):
            aside = float(rng.choice([-1.0, 1.0]) * rng.uniform(0.2, 0.9))
            x, z = self._beside(at, float(rng.uniform(1.5, 4.0)), aside)
            thing = Thing(sprite, x, z, float(rng.uniform(0.3, 0.7)), False)
            seen = self._seen(thing)
            if seen and seen[0] >= last + APART and len(seen) < MOST_SHOWN:
                return thing
        return None

    def _crossing(self, rng: np.random.Generator, sprite: np.ndarray, at: int) -> Thing:
        speed = float(rng.choice([-1.0, 1.0]) * rng.uniform(0.05, 0.09))
        return self._across(sprite, at, float(rng.uniform(1.2, 2.5)), speed, float(rng.uniform(0.3, 0.7)))

    def _across(self, sprite: np.ndarray, at: int, ahead: float, speed: float, tall: float) -> Thing:
        """Return a thing that is straight ahead at frame `at` and crosses the view."""
        pose = self.poses[at]
        cos, sin = np.cos(pose.heading), np.sin(pose.heading)
        thing = Thing(sprite, pose.x + ahead * sin, pose.z + ahead * cos, tall, False, (speed * cos, -speed * sin), at)
        first, last = max(at - CROSSING, 0), min(at + CROSSING, N_FRAMES - 1)
        while first > 0 and self._shown(thing, first) is not None:
            first -= 1
        while last < N_FRAMES - 1 and self._shown(thing, last) is not None:
            last += 1  # it comes and goes outside of the view, wherever that turns
        return replace(thing, first=first, last=last)

    def _passing(self, rng: np.random.Generator, data: pathlib.Path, kinds: list[str], usual: bool) -> list[Thing]:
        """Return what passes a buoy: usual kinds from the start, or new ones after LEARN_S."""
        things: list[Thing] = []
        last, at = LEARNT, 0 if usual else LEARNT + int(rng.integers(50, 80))
        while at < N_FRAMES - (1 if usual else 30):
            kind = str(rng.choice(kinds)) if usual else kinds.pop()
            which = int(rng.integers(2 if usual else len(coded_pictures(data, kind))))
            ahead = float(rng.uniform(1.5, 4.0))
            speed = float(rng.choice([-1.0, 1.0]) * rng.uniform(0.03, 0.06)) * ahead / 2
            tall = float(rng.uniform(0.15, 0.3) if usual else rng.uniform(0.3, 0.6)) * ahead / 2
            sprite = _mirrored(rng, actor(data, kind, which))
            thing = replace(self._across(sprite, at, ahead, speed, tall), usual=usual, sunk=0.08)
            seen = [] if usual else self._seen(thing)
            at += int(rng.integers(30, 60))
            if usual or (seen and seen[0] >= last + APART):
                things.append(thing)
                last = seen[-1] if seen else last
                at = at if usual else max(at, last + APART + CROSSING)
        return things

    # -- truth -----------------------------------------------------------------------------------------------

    def truth(self) -> Truth:
        """Return the events: frames in which a new thing is high enough and shows enough of itself.

        Frames that show less of it are not judged.
        """
        new = [thing for thing in self.things if not thing.usual]
        counted = merged(span for thing in new for span in runs_of(self._seen(thing)))
        shown = merged(span for thing in new for span in runs_of(self._seen(thing, 0.0, 0)))
        return Truth(counted, TOLERANCE_FRAMES, unjudged=shown)

    def _seen(self, thing: Thing, least_px: float = SHOWN_PX, least_shown: int = LEAST_SHOWN) -> list[int]:
        """Return the frames in which a thing is at least so high and shows more than so many pixels of itself."""
        inside = []
        for i in range(max(thing.first, 0), min(thing.last + 1, N_FRAMES)):
            shown = self._shown(thing, i)
            if shown is not None and shown[1] >= least_px and (shown[0][2][..., 3] > FAINTEST).sum() > least_shown:
                inside.append(i)
        return inside

    def _shown(self, thing: Thing, i: int):
        """Return where a thing falls in the view of frame i, and how high it is, as `standing`."""
        if not thing.first <= i <= thing.last:
            return None
        x, z = thing.x + thing.going[0] * (i - thing.met), thing.z + thing.going[1] * (i - thing.met)
        return standing(thing.sprite, x, z, thing.tall, thing.sunk, self.poses[i], self._horizon_px)

    # -- pictures --------------------------------------------------------------------------------------------

    def scene(self, i: int) -> np.ndarray:
        """Return frame i before nuisances, (height, width, 3) uint8 BGR."""
        pose = self.poses[i]
        rays = Rays(pose, self._horizon_px)
        below = self._below.seen(rays, i / RATE_HZ)
        view = np.where(rays.below[..., None], below, sky_seen(self._sky, rays, pose))
        picture = np.clip(view, 0, 255).astype(np.uint8)
        shown = [(thing, self._shown(thing, i)) for thing in self.things]
        there = [(ahead_of(found[1], thing.tall), found[0]) for thing, found in shown if found is not None]
        for ahead, (rows, columns, part) in sorted(there, key=lambda pair: -pair[0]):
            left, part = self._haze.share_left(ahead), part.copy()
            part[..., :3] = (part[..., :3] * left + self._haze.colour * (1.0 - left)).astype(np.uint8)
            paste(picture, (rows, columns, part))
        return picture

    def render(self, i: int) -> np.ndarray:
        """Return frame i, (height, width, 3) uint8 BGR, a new array; IndexError outside [0, n_frames)."""
        if not 0 <= i < self.n_frames:
            raise IndexError(f"frame {i} of world ahead {self.seed} is outside [0, {self.n_frames})")
        rng = np.random.default_rng([self.seed, 16, i])
        return troubled(self.scene(i), i, self.nuisances, self._phase, self._noise, rng)

    def stream(self) -> Stream:
        """Return the world as what is watched."""
        return rendered(f"ahead {self.seed}", self)


def course(style: str, rng: np.random.Generator) -> tuple[list[Pose], list[float]]:
    """Return the camera's pose at each frame, and the heading of its way, which it may look away from."""
    i = np.arange(N_FRAMES)
    phase = rng.uniform(0, 2 * np.pi, 8)
    way, aside = 0.15 * np.sin(0.02 * i + phase[0]), np.zeros(N_FRAMES)
    steps = np.full(N_FRAMES, rng.uniform(0.05, 0.10))
    roll = np.deg2rad(np.sin(0.3 * i + phase[1]) + 0.5 * np.sin(0.83 * i + phase[2]))
    dip = 3.0 * np.sin(0.41 * i + phase[3]) + 1.5 * np.sin(1.3 * i + phase[4])
    if style == "turns":
        way = np.deg2rad(70.0 * np.sin(0.03 * i + phase[5]) + 30.0 * np.sin(0.013 * i + phase[6]))
    elif style == "stops":
        steps = steps * np.clip(4.0 * np.sin(2 * np.pi * i / 130 + phase[7]) + 2.0, 0.0, 1.0)
    elif style == "looks":
        aside = np.deg2rad(35.0 * np.sin(0.05 * i + phase[5]))
    elif style == "buoy":
        steps = np.zeros(N_FRAMES)
        way = np.deg2rad(20.0 * np.sin(0.02 * i + phase[0]) + 6.0 * np.sin(0.13 * i + phase[5]))
        roll = np.deg2rad(6.0 * np.sin(0.5 * i + phase[1]) + 3.0 * np.sin(0.83 * i + phase[2]))
        dip = 14.0 * np.sin(0.43 * i + phase[3]) + 6.0 * np.sin(0.9 * i + phase[4])
    columns = np.cumsum(steps * np.sin(way)), np.cumsum(steps * np.cos(way)), way + aside, roll, dip
    poses = [Pose(*(float(value) for value in row)) for row in zip(*columns, strict=True)]
    return poses, [float(value) for value in way]


def _mirrored(rng: np.random.Generator, sprite: np.ndarray) -> np.ndarray:
    """Return a sprite as it is or as a mirror has it."""
    return sprite if rng.random() < 0.5 else np.ascontiguousarray(sprite[:, ::-1])
