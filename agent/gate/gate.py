"""The gate before learning: says of each frame whether it may teach the model, and if not, why.

Called by agent/pipeline/pipeline.py with every frame, in order. Depends on the frames alone (t_ns, pixels, flags),
never on a clock, so that a replay refuses the same frames.
"""

from dataclasses import dataclass

import numpy as np

from stillwatch.base import Frame, FrameFlag, SnapshotError, SourceState
from stillwatch.gate.global_change import NS, GlobalChange
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
    this frame a global change is accepted as the new normal. events: lasting faults that began or ended.
    """

    accepted: bool
    reason: str
    state: SourceState
    scene_change: bool
    changed: bool
    events: tuple[GateEvent, ...] = ()


class _Life:
    """Hysteresis of one reason: begins when it lasted `begin_ns`, ends when it was absent for `end_ns`."""

    def __init__(self, kind: str, begin_ns: int, end_ns: int):
        self.kind, self.begin_ns, self.end_ns = kind, begin_ns, end_ns
        self.numbers = np.zeros(4, np.int64)  # active, present for, absent for (ns), frames

    def update(self, present: bool, step_ns: int, frame: Frame) -> GateEvent | None:
        active, present_ns, absent_ns, frames = (int(value) for value in self.numbers)
        frames += present
        event = None
        if present:
            present_ns, absent_ns = present_ns + (step_ns if present_ns or frames > 1 else 0), 0
        else:
            absent_ns += step_ns
            present_ns = present_ns if active else 0
        if not active and present and present_ns >= self.begin_ns:
            active, event = 1, GateEvent(self.kind, "start", frame.t_ns, frame.sequence, frames)
        elif active and absent_ns >= self.end_ns:
            event = GateEvent(self.kind, "end", frame.t_ns, frame.sequence, frames)
            active = present_ns = frames = 0
        elif not active and not present:
            frames = 0
        self.numbers[:] = active, present_ns, absent_ns, frames
        return event

    @property
    def active(self) -> bool:
        return bool(self.numbers[0])


class Gate:
    """Judge frames one by one; counts refusals by reason.

    Parameters
    ----------
    config : GateConfig
    height, width : int
        Of the frames; `reshape` when they change.
    """

    def __init__(self, config: GateConfig, *, height: int, width: int):
        self._config = config
        self._shape = (height, width)
        self._moving: bool | None = None
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
        self._counts = np.zeros(len(REASONS) + 2, np.int64)  # refused by reason, accepted, scene changes
        self._previous = np.zeros((THUMB_HEIGHT, THUMB_WIDTH), np.float32)
        self._anchor = np.zeros_like(self._previous)  # the picture with which a standstill began
        self._numbers = np.zeros(6, np.int64)  # previous t_ns, epoch, still since, still frames, grey fill since, slips
        self._usual = np.zeros(3, np.float64)  # sharpness, grey fill, frames in them
        self._last_state = 0
        self._begin_again()

    def _begin_again(self) -> None:
        self._numbers[:] = (-1, -1, -1, 0, -1, 0)
        self._usual[:] = 0.0
        self._global.forget()

    @property
    def moving(self) -> bool | None:
        """Whether the camera moves; None until known. Set at frames that the data fix."""
        return self._moving

    @moving.setter
    def moving(self, value: bool | None) -> None:
        self._moving = value

    @property
    def shape(self) -> tuple[int, int]:
        """(height, width) of the frames it takes."""
        return self._shape

    def reshape(self, height: int, width: int) -> None:
        """Take frames of another size from now on: forgets the pictures seen, keeps counts and events."""
        self._shape = (height, width)
        self._begin_again()

    def judge(self, frame: Frame) -> Verdict:
        """Judge the next frame; its arrays are of the shape given to the constructor or `reshape`."""
        if frame.grey.shape != self._shape:
            raise ValueError(f"frame of {frame.grey.shape} came to a gate of {self._shape}; call reshape first")
        if frame.epoch != self._numbers[1]:
            self._begin_again()
            self._numbers[1] = frame.epoch
        now = measure(frame.grey, frame.colour)
        before_ns = int(self._numbers[0])
        step_ns = min(max(frame.t_ns - before_ns, 0), LONGEST_STEP_NS) if before_ns >= 0 else 0
        present = self._present(frame, now)
        reason = next((kind for kind in REASONS[:-1] if kind in present), "")
        arrived = False
        if reason:
            self._global.pass_over(now, frame.t_ns)
        else:
            held, arrived = self._global.update(now, frame.t_ns, self._moving)
            if held:
                reason = "global_change"
                present.add(reason)
        if not reason:
            self._learn_usual(now, step_ns, arrived)
        return self._verdict(frame, reason, present, step_ns, arrived)

    def _present(self, frame: Frame, now: Measures) -> set[str]:
        """Return every reason, but global change, that speaks against this frame by itself."""
        config = self._config
        present = set()
        if frame.flags & FrameFlag.DAMAGED or self._is_filled(frame.t_ns, now):
            present.add("damaged")
        if now.mean < config.dark_level and now.high < 2.0 * config.dark_level:
            present.add("dark")
        elif now.mean > config.bright_level and now.low > 2.0 * config.bright_level - 255.0:
            present.add("overexposed")
        elif now.detail < FLAT_DETAIL or self._is_blurred(now):
            present.add("obstructed")
        if self._is_still(frame.t_ns, now):
            present.add("frozen")
        self._previous[: now.thumb.shape[0], : now.thumb.shape[1]] = now.thumb
        self._numbers[0] = frame.t_ns
        return present

    def _is_still(self, t_ns: int, now: Measures) -> bool:
        """Say whether the content has not changed for a second and three frames (field notes 9)."""
        rows, columns = now.thumb.shape
        before_ns, since_ns, frames, slips = (int(self._numbers[i]) for i in (0, 2, 3, 5))
        anchor = self._anchor[:rows, :columns]
        difference = float(np.abs(now.thumb - self._previous[:rows, :columns]).mean()) if before_ns >= 0 else 255.0
        drift = float(np.abs(now.thumb - anchor).mean())
        limit = self._config.frozen_difference
        slips = slips + 1 if difference >= limit else 0
        # The key frames of a frozen camera's stream differ a little, alone. A quiet scene coded with few bits may
        # change as little from frame to frame, but goes on changing: within a second it has left its anchor.
        if max(difference, drift) >= SLIP_RATIO * limit or slips > 1 or (slips and not frames):
            anchor[:] = now.thumb
            self._numbers[[2, 3, 5]] = -1, 0, 0
            return False
        since_ns = before_ns if frames == 0 else since_ns
        self._numbers[[2, 3, 5]] = since_ns, frames + 1, slips
        return frames + 1 >= STILL_FRAMES and t_ns - since_ns >= STILL_NS

    def _is_filled(self, t_ns: int, now: Measures) -> bool:
        """Say whether a part of the picture has just turned into decoder grey; what stays is no damage."""
        if now.grey_fill - self._usual[1] < FILL_JUMP or self._usual[2] == 0:
            self._numbers[4] = -1
            return False
        if self._numbers[4] < 0:
            self._numbers[4] = t_ns
        return t_ns - int(self._numbers[4]) < round(self._config.scene_change_after_s * NS)

    def _is_blurred(self, now: Measures) -> bool:
        """Say whether a fixed camera lost its focus: the usual scene without its fine structure."""
        known = self._moving is False and self._usual[2] >= BLUR_AFTER_FRAMES
        return bool(known and now.sharpness < BLUR_RATIO * self._usual[0])

    def _learn_usual(self, now: Measures, step_ns: int, arrived: bool) -> None:
        if arrived:
            self._usual[2] = 0.0
        self._usual[2] += 1.0
        share = max(step_ns / USUAL_NS, 1.0 / self._usual[2])
        self._usual[0] += share * (now.sharpness - self._usual[0])
        self._usual[1] += share * (now.grey_fill - self._usual[1])

    def _verdict(self, frame: Frame, reason: str, present: set[str], step_ns: int, arrived: bool) -> Verdict:
        events = [life.update(life.kind in present, step_ns, frame) for life in self._lives]
        self._counts[REASONS.index(reason) if reason else len(REASONS)] += 1
        self._counts[len(REASONS) + 1] += arrived
        active = {life.kind for life in self._lives if life.active}
        state = next((STATES[kind] for kind in STATES if kind in active), SourceState.LIVE)
        index = list(SourceState).index(state)
        changed, self._last_state = index != self._last_state and bool(self._counts.sum() > 1), index
        return Verdict(not reason, reason, state, arrived, changed, tuple(event for event in events if event))

    def counters(self) -> dict[str, int]:
        """Return accepted frames, frames refused by reason, and scene changes."""
        counts = {kind: int(self._counts[i]) for i, kind in enumerate(REASONS)}
        return counts | {"accepted": int(self._counts[-2]), "scene_changes": int(self._counts[-1])}

    def memory_bytes(self) -> int:
        """Return the bytes held; thumbnails do not depend on the frame size."""
        own = (
            self._previous.nbytes
            + self._anchor.nbytes
            + self._numbers.nbytes
            + self._usual.nbytes
            + self._counts.nbytes
        )
        return own + self._global.memory_bytes() + sum(life.numbers.nbytes for life in self._lives)

    def state(self) -> dict[str, np.ndarray]:
        """Return everything that later verdicts depend on, as copies."""
        moving = -1 if self._moving is None else int(self._moving)
        state: dict[str, np.ndarray] = {
            "shape": np.array(self._shape, np.int64),
            "moving": np.array(moving, np.int64),
            "last_state": np.array(self._last_state, np.int64),
            "previous": self._previous.copy(),
            "anchor": self._anchor.copy(),
            "numbers": self._numbers.copy(),
            "usual": self._usual.copy(),
            "counts": self._counts.copy(),
        }
        state |= {f"life_{life.kind}": life.numbers.copy() for life in self._lives}
        return state | {f"global_{name}": value for name, value in self._global.state().items()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take over a saved state; SnapshotError, and nothing changed, where it does not fit."""
        own = self.state()
        if set(state) != set(own):
            raise SnapshotError(f"gate: state has {sorted(set(state) ^ set(own))} missing or too many")
        for name, value in own.items():
            given = np.asarray(state[name])
            if given.shape != value.shape or given.dtype != value.dtype:
                raise SnapshotError(f"gate: {name} is {given.dtype}{given.shape}, not {value.dtype}{value.shape}")
            if value.dtype.kind == "f" and not np.isfinite(given).all():
                raise SnapshotError(f"gate: {name} is not finite")
        if int(state["moving"]) not in (-1, 0, 1) or not 0 <= int(state["last_state"]) < len(SourceState):
            raise SnapshotError("gate: moving or last_state is outside its range")
        self._shape = (int(state["shape"][0]), int(state["shape"][1]))
        self._moving = (None, False, True)[int(state["moving"]) + 1]
        self._last_state = int(state["last_state"])
        self._previous[:], self._anchor[:], self._numbers[:] = state["previous"], state["anchor"], state["numbers"]
        self._usual[:], self._counts[:] = state["usual"], state["counts"]
        for life in self._lives:
            life.numbers[:] = state[f"life_{life.kind}"]
        self._global.restore({name: state[f"global_{name}"] for name in self._global.state()})
