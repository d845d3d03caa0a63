"""Made worlds: a plate, actors on paths, nuisances; all by seed, any frame by itself, truth exact.

Called by tools/evaluate/suite/cases.py. Seeds 0 to 59 are for development, 1000 to 1059 are looked at once, at the
end: no constant may be chosen on them.

A seed's last digit says what a world is: 7 quiet (nothing but nuisances), 8 quiet with the usual traffic, 9 a camera
that pans over a sea floor; all others a fixed camera. In every world but 7 usual kinds pass again and again from the
first seconds on; visits of kinds never shown before are the events. On even seeds the start is busy: a kind crosses
the first seconds once, and its next visit, after `LEARN_S`, is an event too. Some worlds have a resident in view from
the first frame to the last. A usual visit that begins before `LEARN_S` is not judged.
"""

import pathlib
from dataclasses import dataclass

import cv2
import numpy as np

from stillwatch.tools.evaluate.suite import transforms
from stillwatch.tools.evaluate.suite.actors import KINDS, actor, coded_pictures, paste, placed, sized
from stillwatch.tools.evaluate.suite.clips import Stream, rendered
from stillwatch.tools.evaluate.suite.plates import plate, strip
from stillwatch.tools.evaluate.truth import Truth, merged

HEIGHT, WIDTH = 240, 320
RATE_HZ = 5.0
N_FRAMES = 400
LEARN_S = 30.0
TOLERANCE_FRAMES = 2
PANNED_PX = 8  # a frame, of the camera over the sea floor
NUISANCES = ("cloud_shadows", "exposure", "foliage", "rain", "night_noise", "compression", "shake", "flicker")


@dataclass(frozen=True, slots=True)
class Visit:
    """An actor from frame `first` to `last`, its centre going from `begin` to `end` (x, y), in world pixels.

    pause: share of the time that it stands still, half-way. usual: known from the first seconds on.
    """

    kind: str
    sprite: np.ndarray
    first: int
    last: int
    begin: tuple[float, float]
    end: tuple[float, float]
    pause: float
    usual: bool

    def corner(self, i: int) -> tuple[int, int]:
        """Return the sprite's top left corner at frame i; it bobs by a pixel as it goes."""
        share = (i - self.first) / max(self.last - self.first, 1)
        low, high = 0.5 - self.pause / 2, 0.5 + self.pause / 2
        way = 0.5 * share / low if share < low else 0.5 if share <= high else 0.5 + 0.5 * (share - high) / (1.0 - high)
        x, y = (a + (b - a) * way for a, b in zip(self.begin, self.end, strict=True))
        bob = i % 2 if share < low or share > high else 0
        return round(x - self.sprite.shape[1] / 2), round(y - self.sprite.shape[0] / 2) - bob

    def place(self, i: int, shift_px: int = 0):
        """Return (rows, columns, part) of the sprite in a view at frame i, as `placed`; None where it is not in view.

        shift_px: of the view, to the right.
        """
        if not self.first <= i <= self.last:
            return None
        x, y = self.corner(i)
        return placed(self.sprite, x - shift_px, y, HEIGHT, WIDTH)


class MadeWorld:
    """One world; `render(i)` depends on the seed and i alone.

    Parameters
    ----------
    seed : int
    data : pathlib.Path
        The shared data: plates and actors come from its pictures.
    n_frames : int
        How long it lasts; a longer world of a seed is another one.
    knocked : range
        Frames in which the camera is pushed aside (transforms.py).
    """

    height, width, rate_hz = HEIGHT, WIDTH, RATE_HZ

    def __init__(self, seed: int, data: pathlib.Path, n_frames: int = N_FRAMES, knocked: range = range(0)):
        self.seed, self.n_frames, self.knocked = seed, n_frames, knocked
        rng = np.random.default_rng([seed, 1])
        style = seed % 10
        self.moving, self.quiet, self.empty = is_panned(seed), style in (7, 8), style == 7
        make = strip if self.moving else plate
        self._ground = make(data, rng, self.height, self.width)
        self._phase = rng.uniform(0, 2 * np.pi, 3)
        self._noise = rng.uniform(1.0, 4.0)
        count = 1 if self.moving else int(rng.integers(1, 4))
        pool = ("exposure", "night_noise", "compression") if self.moving else NUISANCES
        self.nuisances = tuple(str(name) for name in rng.choice(pool, count, replace=False))
        self._leaves = transforms.field(self.height, self.width, 40.0, seed)
        self.visits: list[Visit] = []
        if not self.empty:
            kinds = [str(kind) for kind in rng.permutation(KINDS)]
            (self._plan_panned if self.moving else self._plan)(rng, kinds, data)

    # -- what happens ----------------------------------------------------------------------------------------

    def _plan(self, rng, kinds: list[str], data: pathlib.Path) -> None:
        """Plan a fixed camera's visits: usual traffic on lanes, a resident, a busy start, and what is new."""
        sizes = {True: (60, 105), False: (26, 48)}  # pixels high: people and things
        heights = {kind: int(rng.integers(*sizes[n % 2 == 0])) for n, kind in enumerate(kinds)}
        usual = [kinds.pop() for _ in range(int(rng.integers(1, 3)))]
        for kind in usual:
            lane = rng.uniform(0.35, 0.85) * self.height
            at, every = float(rng.uniform(-8, 20)), rng.uniform(6.0, 11.0) * self.rate_hz
            turn = 0
            while at < self.n_frames:
                turn += 1
                self._cross(rng, data, kind, heights[kind], round(at), lane + rng.uniform(-6, 6), usual=True, turn=turn)
                at += every * rng.uniform(0.8, 1.2)
        if rng.random() < 0.3:
            kind, spot = kinds.pop(), (rng.uniform(40, self.width - 40), rng.uniform(60, self.height - 30))
            sprite = self._sprite(rng, data, kind, heights[kind])
            self.visits.append(Visit(kind, sprite, 0, self.n_frames - 1, spot, spot, 1.0, True))
        if self.quiet:
            return
        first_new = round(LEARN_S * self.rate_hz) + int(rng.integers(0, 30))
        busy = kinds.pop() if self.seed % 2 == 0 else ""
        if busy:
            self._cross(rng, data, busy, heights[busy], -4, rng.uniform(0.4, 0.8) * self.height, usual=True)
        while first_new < self.n_frames - 40:
            kind, busy = busy or kinds.pop(), ""
            lane = rng.uniform(0.3, 0.85) * self.height
            last = self._cross(rng, data, kind, heights[kind], first_new, lane, usual=False)
            first_new = last + int(rng.integers(35, 75))

    def _cross(self, rng, data, kind: str, height_px: int, at: int, lane: float, usual: bool, turn: int = 0) -> int:
        """Add a visit along a lane from frame `at` on; a new one may stop half-way. Returns its last frame.

        The usual ones of a kind look like one of two, by turns, so that both are known early.
        """
        sprite = self._sprite(rng, data, kind, height_px, turn % 2 if usual else None)
        self.visits.append(crossing(rng, kind, sprite, at, lane, usual=usual, may_stop=not usual))
        return self.visits[-1].last

    def _plan_panned(self, rng, kinds: list[str], data: pathlib.Path) -> None:
        """Plan what lies on the sea floor: usual things every few seconds, new ones now and then; nothing moves."""
        usual = [kinds.pop(), kinds.pop()]
        at = int(rng.integers(0, 10))
        next_new = round(LEARN_S * self.rate_hz) + int(rng.integers(0, 30))
        while at < self.n_frames:
            is_new = not self.quiet and at >= next_new
            kind = kinds.pop() if is_new else str(rng.choice(usual))
            if is_new:
                next_new = at + int(rng.integers(85, 120))
            sprite = self._sprite(rng, data, kind, int(rng.integers(60, 100) if is_new else rng.integers(24, 44)))
            place = (self.width + at * PANNED_PX + sprite.shape[1] / 2, rng.uniform(0.25, 0.75) * self.height)
            last = at + (self.width + sprite.shape[1]) // PANNED_PX + 1
            self.visits.append(Visit(kind, sprite, at, last, place, place, 1.0, not is_new))
            at += int(rng.integers(8, 24)) + (30 if is_new else 0)

    def _sprite(self, rng, data: pathlib.Path, kind: str, height_px: int, which: int | None = None) -> np.ndarray:
        which = int(rng.integers(len(coded_pictures(data, kind)))) if which is None else which
        return sized(actor(data, kind, which), height_px, bool(rng.random() < 0.5))

    # -- truth -----------------------------------------------------------------------------------------------

    def mask(self, i: int, usual: bool = False) -> np.ndarray:
        """Return which pixels of the still scene are of an actor, new or usual, at frame i, (h, w) bool."""
        inside = np.zeros((self.height, self.width), bool)
        for visit in self.visits:
            found = self._place(visit, i) if visit.usual == usual else None
            if found is not None:
                rows, columns, part = found
                inside[rows, columns] |= part[..., 3] > 0
        return self._mask_as_seen(inside, i)

    def truth(self) -> Truth:
        """Return the events: frames in which a pixel of a new actor is in view, visit by visit."""
        new = [self._seen(visit) for visit in self.visits if not visit.usual]
        soon = [self._seen(visit) for visit in self.visits if visit.usual and visit.first < LEARN_S * self.rate_hz]
        soon = [span for span in soon if span and span[1] - span[0] < self.n_frames - 1]
        return Truth(merged(span for span in new if span), TOLERANCE_FRAMES, merged(span for span in soon if span))

    def _seen(self, visit: Visit) -> tuple[int, int] | None:
        """Return the first and last frame in which a pixel of a visit is in view."""
        inside = [i for i in range(max(visit.first, 0), min(visit.last + 1, self.n_frames)) if self._shows(visit, i)]
        return (inside[0], inside[-1]) if inside else None

    def _shows(self, visit: Visit, i: int) -> bool:
        found = self._place(visit, i)
        if found is None or i not in self.knocked:
            return found is not None and bool(found[2][..., 3].any())
        inside = np.zeros((self.height, self.width), bool)
        inside[found[0], found[1]] = found[2][..., 3] > 0
        return bool(self._mask_as_seen(inside, i).any())

    def _as_seen(self, picture: np.ndarray, i: int) -> np.ndarray:
        """Return a picture of the scene, uint8, as the camera has it in frame i."""
        return transforms.knocked(picture, i, np.random.default_rng(i)) if i in self.knocked else picture

    def _mask_as_seen(self, inside: np.ndarray, i: int) -> np.ndarray:
        return np.asarray(self._as_seen(np.where(inside, 255, 0).astype(np.uint8), i) > 0)

    def _place(self, visit: Visit, i: int):
        return visit.place(i, i * PANNED_PX if self.moving else 0)

    # -- pictures --------------------------------------------------------------------------------------------

    def scene(self, i: int) -> np.ndarray:
        """Return frame i before nuisances, (height, width, 3) uint8 BGR: the ground and who is there."""
        if not 0 <= i < self.n_frames:
            raise IndexError(f"frame {i} of world {self.seed} is outside [0, {self.n_frames})")
        if self.moving:
            image = self._ground[:, np.arange(i * PANNED_PX, i * PANNED_PX + self.width) % self._ground.shape[1]].copy()
        else:
            image = self._swaying(i) if "foliage" in self.nuisances else self._ground.copy()
        for visit in self.visits:
            paste(image, self._place(visit, i))
        return self._as_seen(image, i)

    def _swaying(self, i: int) -> np.ndarray:
        """Return the plate with the leaves, about a third of it, displaced by up to 2 pixels in gusts."""
        rows, columns = np.mgrid[: self.height, : self.width].astype(np.float32)
        leafy = np.clip(2.0 * self._leaves, 0.0, 1.0)
        gust = 2.0 * np.sin(0.05 * i + self._phase[0]) * np.sin(1.7 * i + self._phase[1])
        return cv2.remap(
            self._ground,
            columns + np.float32(gust) * leafy,
            rows + np.float32(0.5 * gust) * leafy,
            cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_REPLICATE,
        )

    def render(self, i: int) -> np.ndarray:
        """Return frame i, (height, width, 3) uint8 BGR, a new array; IndexError outside [0, n_frames)."""
        picture = self.scene(i)
        rng = np.random.default_rng([self.seed, 2, i])
        return troubled(picture, i, self.nuisances, self._phase[2], self._noise, rng)

    def stream(self) -> Stream:
        """Return the world as what is watched."""
        return rendered(f"world {self.seed}", self)


def troubled(
    picture: np.ndarray, i: int, nuisances: tuple[str, ...], phase: float, noise: float, rng: np.random.Generator
) -> np.ndarray:
    """Return frame i as its camera has it, uint8: under a world's nuisances, but foliage, and the sensor's noise.

    phase : of the exposure's slow wave, radians;  noise : grey levels
    """
    for name in nuisances:
        if name == "exposure":
            gain = 1.0 + 0.12 * np.sin(2 * np.pi * i / (40.0 * RATE_HZ) + phase)
            picture = cv2.convertScaleAbs(picture, alpha=float(gain))
        elif name not in ("foliage", "compression"):
            picture = transforms.TRANSFORMS[name].rule(picture, i, rng)
    grain = rng.normal(0.0, noise, (HEIGHT, WIDTH, 1)).astype(np.float32)
    picture = np.clip(picture + grain, 0, 255).astype(np.uint8)
    return transforms.recoded(picture, 25) if "compression" in nuisances else picture


def crossing(
    rng: np.random.Generator, kind: str, sprite: np.ndarray, at: int, lane: float, *, usual: bool, may_stop: bool
) -> Visit:
    """Return a visit from frame `at` on, from one side of the view to the other along a lane, half-way at rest or not.

    lane: height in the view, pixels from its top.
    """
    half = sprite.shape[1] / 2 + 1
    ends = [(-half, lane), (WIDTH + half, lane + rng.uniform(-20, 20))]
    ends = ends[::-1] if rng.random() < 0.5 else ends
    pause = 0.4 if may_stop and rng.random() >= 0.6 else 0.0
    frames = round((WIDTH + 2 * half) / rng.uniform(9.0, 15.0) / (1.0 - pause))
    return Visit(kind, sprite, at, at + frames, ends[0], ends[1], pause, usual)


def is_panned(seed: int) -> bool:
    """Whether the camera of a seed's world moves."""
    return seed % 10 == 9


def make_world(seed: int, data: pathlib.Path, n_frames: int = N_FRAMES, knocked: range = range(0)) -> MadeWorld:
    """Return the world of a seed."""
    return MadeWorld(seed, data, n_frames, knocked)
