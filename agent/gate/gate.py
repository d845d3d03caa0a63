"""The gate before learning: says of each frame whether it may teach the model, and if not, why.

Called by agent/pipeline/pipeline.py with every frame, in order. Depends on the frames alone (t_ns, pixels, flags),
never on a clock, so that a replay refuses the same frames.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stillwatch.base import (
    CameraRule,
    Composed,
    Frame,
    FrameFlag,
    Recorded,
    RecordPart,
    SourceState,
    Stage,
    record_bytes,
    saved,
    saved_array,
)
from stillwatch.gate.global_change import NS, GlobalChange, Held
from stillwatch.gate.measures import THUMB_HEIGHT, THUMB_WIDTH, Measures, measure
from stillwatch.settings import GateConfig

REASONS = ("damaged", "dark", "overexposed", "obstructed", "frozen", "global_change")
STATES = {
    "dark": SourceState.DARK,
    "overexposed": SourceState.OVEREXPOSED,
    "obstructed": SourceState.OBSTRUCTED,
    "frozen": SourceState.FROZEN,
}  # in order of precedence: black is also static and flat

SETTLE_NS = NS  # a state begins (dark, overexposed) and every state ends after this long without exception
DAMAGE_END_NS = 5 * NS  # damage comes in bursts: one event for a burst
STILL_NS = NS  # refused after this long; compressed video of a quiet scene holds still for half of it
STILL_FRAMES = 3
SLIP_RATIO = 10.0  # of frozen_difference: a single frame, and the whole standstill, may differ by this much
FILL_JUMP = 0.15  # share of the frame that turned decoder grey
FLAT_DETAIL = 0.05
BLUR_RATIO = 0.35  # of the usual sharpness; clean clips stay above 0.58, a blur of 2 pixels falls below 0.3
BLUR_AFTER_FRAMES = 50
USUAL_NS = 300 * NS  # memory of what is usual: a focus that drifts within minutes is still a fault
SOFTEST = 0.1  # quantile of sharpness: somebody sharper than the place may be in view nine tenths of the time
SOFTEST_STEP = 10.0  # of its logarithm, in all of USUAL_NS: 40 s without them bring it to a third
LONGEST_STEP_NS = NS  # a gap in the stream counts as this much of whatever lasts


@dataclass(frozen=True, slots=True)
class GateEvent:
    """The start or end of a lasting fault. `frames`: refused for it so far in this event."""

    kind: str
    phase: str  # start, end
    t_ns: int
    sequence: int
    frames: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate thinks of one frame.

    accepted: it may be learnt from and scored. reason: why not ('' when accepted), one of REASONS. state: what the
    picture looks like over the last seconds. changed: `state` differs from the last frame's. scene_change: with
    this frame a global change is accepted as the new normal. known_scene: and that is a picture which was normal
    before. events: lasting faults that began or ended.
    """

    accepted: bool
    reason: str
    state: SourceState
    scene_change: bool
    changed: bool
    known_scene: bool = False
    events: tuple[GateEvent, ...] = ()


@dataclass
class _Lasting:
    """active: the fault is an event. present_ns, absent_ns: for so long without a break. frames: refused for it."""

    active: bool = saved(False)
    present_ns: int = saved(0, low=0)
    absent_ns: int = saved(0, low=0)
    frames: int = saved(0, low=0)


class _Life(Recorded):
    """Hysteresis of one reason: begins when it lasted `begin_ns`, ends when it was absent for `end_ns`."""

    def __init__(self, kind: str, begin_ns: int, end_ns: int):
        self.kind, self.begin_ns, self.end_ns = kind, begin_ns, end_ns
        self._where = f"gate: {kind}"
        self._now = _Lasting()

    def update(self, present: bool, step_ns: int, frame: Frame) -> GateEvent | None:
        now = self._now
        now.frames += present
        if present:
            now.present_ns += step_ns if now.present_ns or now.frames > 1 else 0
            now.absent_ns = 0
        else:
            now.absent_ns += step_ns
            now.present_ns = now.present_ns if now.active else 0
        if not now.active and present and now.present_ns >= self.begin_ns:
            now.active = True
            return GateEvent(self.kind, "start", frame.t_ns, frame.sequence, now.frames)
        if now.active and now.absent_ns >= self.end_ns:
            event = GateEvent(self.kind, "end", frame.t_ns, frame.sequence, now.frames)
            now.active, now.present_ns, now.frames = False, 0, 0
            return event
        if not now.active and not present:
            now.frames = 0
        return None

    @property
    def active(self) -> bool:
        return self._now.active

    def _record(self) -> Any:
        return self._now

    def memory_bytes(self) -> dict[str, int]:
        return {self.kind: record_bytes(self._now)}


@dataclass
class _Seen:
    """What the gate knows of the frames so far.

    height, width: of the frames. picture: the last verdict's state. refused: frames by reason, in the order of
    REASONS. previous: thumbnail of the frame before, and its stream time (-1 without one) and stream epoch. anchor:
    thumbnail with which a standstill began, still_since_ns and still_frames: since when, for how many frames; slips:
    frames in a row that broke it. filled_since_ns: since when a part is decoder grey, -1 while none is. usual_*:
    of accepted frames: a low quantile of sharpness, mean of grey fill, and how many these are.
    """

    height: int = saved(1, low=1)
    width: int = saved(1, low=1)
    picture: SourceState = field(default=SourceState.LIVE)
    refused: np.ndarray = saved_array((len(REASONS),), np.int64, low=0)
    accepted: int = saved(0, low=0)
    scene_changes: int = saved(0, low=0)
    previous: np.ndarray = saved_array((THUMB_HEIGHT, THUMB_WIDTH), np.float32, low=0.0, high=255.0)
    previous_ns: int = saved(-1, low=-1)
    epoch: int = saved(-1, low=-1)
    anchor: np.ndarray = saved_array((THUMB_HEIGHT, THUMB_WIDTH), np.float32, low=0.0, high=255.0)
    still_since_ns: int = saved(-1, low=-1)
    still_frames: int = saved(0, low=0)
    slips: int = saved(0, low=0)
    filled_since_ns: int = saved(-1, low=-1)
    usual_sharpness: float = saved(0.0, low=0.0)
    usual_grey_fill: float = saved(0.0, low=0.0, high=1.0)
    usual_frames: int = saved(0, low=0)


class Gate(Composed):
    """Judge frames one by one; counts refusals by reason.

    Parameters
    ----------
    config : GateConfig
    height, width : int
        Of the frames; `reshape` when they change.
    """

    _where = "gate"

    def __init__(self, config: GateConfig, *, height: int, width: int):
        self._config = config
        self._seen = _Seen(height=height, width=width)
        self._global = GlobalChange(round(config.scene_change_after_s * NS))
        begins = {
            "damaged": 0,
            "dark": SETTLE_NS,
            "overexposed": SETTLE_NS,
            "obstructed": round(config.obstructed_after_s * NS),
            "frozen": round(config.frozen_after_s * NS),
            "global_change": 0,
        }
        ends = {"damaged": DAMAGE_END_NS}
        self._lives = tuple(_Life(kind, begins[kind], ends.get(kind, SETTLE_NS)) for kind in REASONS)
        self._begin_again()

    def _begin_again(self) -> None:
        seen = self._seen
        seen.previous_ns = seen.epoch = seen.still_since_ns = seen.filled_since_ns = -1
        seen.still_frames = seen.slips = seen.usual_frames = 0
        seen.usual_sharpness = seen.usual_grey_fill = 0.0
        self._global.forget()

    @property
    def shape(self) -> tuple[int, int]:
        """(height, width) of the frames it takes."""
        return self._seen.height, self._seen.width

    def reshape(self, height: int, width: int) -> None:
        """Take frames of another size from now on: forgets the pictures seen, keeps counts and events."""
        self._seen.height, self._seen.width = height, width
        self._begin_again()

    def judge(self, frame: Frame, rule: CameraRule) -> Verdict:
        """Judge the next frame; its arrays are of the shape given to the constructor or `reshape`.

        `rule` is of the camera as far as it was known before this frame.
        """
        if frame.grey.shape != self.shape:
            raise ValueError(f"frame of {frame.grey.shape} came to a gate of {self.shape}; call reshape first")
        if frame.epoch != self._seen.epoch:
            self._begin_again()
            self._seen.epoch = frame.epoch
        now = measure(frame.grey, frame.colour)
        before_ns = self._seen.previous_ns
        step_ns = min(max(frame.t_ns - before_ns, 0), LONGEST_STEP_NS) if before_ns >= 0 else 0
        present = self._present(frame, now, rule)
        reason = next((kind for kind in REASONS[:-1] if kind in present), "")
        held = Held(refused=False, arrived=False, known=False)
        if reason:
            self._global.pass_over(now, frame.t_ns)
        else:
            held = self._global.update(now, frame.t_ns, rule)
            if held.refused:
                reason = "global_change"
                present.add(reason)
        if not reason:
            self._learn_usual(now, step_ns, held.arrived)
        return self._verdict(frame, reason, present, step_ns, held)

    def _present(self, frame: Frame, now: Measures, rule: CameraRule) -> set[str]:
        """Return every reason, but global change, that speaks against this frame by itself."""
        config = self._config
        present = set()
        if frame.flags & FrameFlag.DAMAGED or self._is_filled(frame.t_ns, now):
            present.add("damaged")
        if now.mean < config.dark_level and now.high < 2.0 * config.dark_level:
            present.add("dark")
        elif now.mean > config.bright_level and now.low > 2.0 * config.bright_level - 255.0:
            present.add("overexposed")
        elif now.detail < FLAT_DETAIL or (rule.judges_blur and self._is_blurred(now)):
            present.add("obstructed")
        if self._is_still(frame.t_ns, now):
            present.add("frozen")
        self._seen.previous[: now.thumb.shape[0], : now.thumb.shape[1]] = now.thumb
        self._seen.previous_ns = frame.t_ns
        return present

    def _is_still(self, t_ns: int, now: Measures) -> bool:
        """Say whether the content has not changed for a second and three frames (field notes 9)."""
        rows, columns = now.thumb.shape
        seen = self._seen
        anchor = seen.anchor[:rows, :columns]
        known = seen.previous_ns >= 0
        difference = float(np.abs(now.thumb - seen.previous[:rows, :columns]).mean()) if known else 255.0
        drift = float(np.abs(now.thumb - anchor).mean())
        limit = self._config.frozen_difference
        slips = seen.slips + 1 if difference >= limit else 0
        # The key frames of a frozen camera's stream differ a little, alone. A quiet scene coded with few bits may
        # change as little from frame to frame, but goes on changing: within a second it has left its anchor.
        if max(difference, drift) >= SLIP_RATIO * limit or slips > 1 or (slips and not seen.still_frames):
            anchor[:] = now.thumb
            seen.still_since_ns, seen.still_frames, seen.slips = -1, 0, 0
            return False
        if seen.still_frames == 0:
            seen.still_since_ns = seen.previous_ns
        seen.still_frames, seen.slips = seen.still_frames + 1, slips
        return seen.still_frames >= STILL_FRAMES and t_ns - seen.still_since_ns >= STILL_NS

    def _is_filled(self, t_ns: int, now: Measures) -> bool:
        """Say whether a part of the picture has just turned into decoder grey; what stays is no damage."""
        seen = self._seen
        if now.grey_fill - seen.usual_grey_fill < FILL_JUMP or seen.usual_frames == 0:
            seen.filled_since_ns = -1
            return False
        if seen.filled_since_ns < 0:
            seen.filled_since_ns = t_ns
        return t_ns - seen.filled_since_ns < round(self._config.scene_change_after_s * NS)

    def _is_blurred(self, now: Measures) -> bool:
        """Say whether the camera lost its focus: the usual scene without its fine structure."""
        known = self._seen.usual_frames >= BLUR_AFTER_FRAMES
        return known and now.sharpness < BLUR_RATIO * self._seen.usual_sharpness

    def _learn_usual(self, now: Measures, step_ns: int, arrived: bool) -> None:
        seen = self._seen
        seen.usual_frames = 1 if arrived else seen.usual_frames + 1
        share = max(step_ns / USUAL_NS, 1.0 / seen.usual_frames)
        seen.usual_sharpness = self._softest(now.sharpness, share)
        seen.usual_grey_fill += share * (now.grey_fill - seen.usual_grey_fill)

    def _softest(self, sharpness: float, share: float) -> float:
        """Return the running quantile with one more frame: a step towards it, never beyond [1]_.

        Who is sharper than the place, in murky water or fog, must not make it look blurred when they leave.

        References
        ----------
        .. [1] H. Robbins and S. Monro, Annals of Mathematical Statistics 22(3), 1951, 400-407, section 5.
        """
        usual = self._seen.usual_sharpness
        if self._seen.usual_frames == 1:
            return sharpness
        if sharpness < usual:
            return max(usual * math.exp(-SOFTEST_STEP * (1.0 - SOFTEST) * share), sharpness)
        return min(usual * math.exp(SOFTEST_STEP * SOFTEST * share), sharpness)

    def _verdict(self, frame: Frame, reason: str, present: set[str], step_ns: int, held: Held) -> Verdict:
        events = [life.update(life.kind in present, step_ns, frame) for life in self._lives]
        seen = self._seen
        is_first = not seen.accepted and not seen.refused.any()
        if reason:
            seen.refused[REASONS.index(reason)] += 1
        else:
            seen.accepted += 1
        seen.scene_changes += held.arrived
        active = {life.kind for life in self._lives if life.active}
        state = next((STATES[kind] for kind in STATES if kind in active), SourceState.LIVE)
        changed, seen.picture = state is not seen.picture and not is_first, state
        told = tuple(event for event in events if event)
        return Verdict(not reason, reason, state, held.arrived, changed, held.known, told)

    def counters(self) -> dict[str, int]:
        """Return accepted frames, frames refused by reason, and scene changes."""
        seen = self._seen
        counts = {kind: int(count) for kind, count in zip(REASONS, seen.refused, strict=True)}
        return counts | {"accepted": seen.accepted, "scene_changes": seen.scene_changes}

    def _parts(self) -> dict[str, Stage]:
        return {life.kind: life for life in self._lives} | {
            "views": self._global,
            "seen": RecordPart(self._seen, "gate: seen"),
        }

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes held; thumbnails do not depend on the frame size."""
        return {"gate": self.parts_bytes()}
