"""The vehicle's half of the model mirror: a mixture as packets of any size, the most telling part first.

Called by the agent's sender thread: `update` with each new Model message, `next_packet` when a link has room. It
must not assume that a packet arrives: owners report each as acknowledged or lost.

A packet is a 35-bit head and records (`Packet layout` in transport/WIRE.md); transport/mirror/ground.py reads it.
Each component is a chain of streams of integers (transport/mirror/values.py): first coarse from nothing, then each
relative to the one before. A stream that has begun is finished even when the model has moved on meanwhile, as a slow
link would finish none otherwise; the next one leads on to the newest model.
"""

from dataclasses import dataclass, field

import numpy as np

from stillwatch.transport.mirror.bits import (
    COUNT_BITS,
    PARAMETER_BITS,
    best_parameter,
    count_code,
    gamma_bits,
    rice_bits,
    write_gamma,
    write_rice,
    zigzag,
)
from stillwatch.transport.mirror.model import posterior_gaussians, prior_gaussian, summary_of
from stillwatch.transport.mirror.values import (
    COARSE,
    FINE,
    REGRESSION,
    STEPS,
    Gaussian,
    classes,
    divergence,
    origin,
    quantise,
    reconstruct,
)
from stillwatch.transport.wire import MODEL_NUMBERS, BitWriter, EncodeError, Model

VERSION = 2  # 1 had one bit for the model
MIN_PACKET_BYTES = 22
MAX_PACKET_BYTES = 2048
MAX_DIMS = 128
INCARNATIONS = 64
MODEL_BITS = {1: 1, 2: 4}  # of the model's number in MODELS, by version
HEAD_BITS = 35
TYPE_BITS, END, ROSTER, SEGMENT, SCALARS = 2, 0, 1, 2, 3
WIDTH_BITS = 5  # of the field that says how wide an id is
REVISION_BITS = 4
LEVEL_BITS = 1
EPOCH_BITS = 14
PRIOR_KEY = -1  # the prior is sent as one more component
_DUE = 3.0  # roundings away from the target
_GAIN = 0.7  # a stream must leave less than this share of the divergence
_MAX_UNACKED = 3  # streams of one component; the ground tells 8 revisions apart
_MAX_IN_FLIGHT = 4096  # packets that nobody reported on: the oldest count as lost
_WORTH_OF_UNKNOWN = 20.0  # nats
_PRIOR_WEIGHT = 0.02
_ROSTER_TAIL_WORTH = 0.01


def rounding_nats(level: int, n_dims: int, is_full: bool) -> float:
    """Return the mean divergence that rounding to a level's steps leaves, in nats."""
    spread, regression, mean = STEPS[level]
    n_regressions = n_dims * (n_dims - 1) / 2 if is_full else 0.0
    return (n_dims * (mean**2 / 2 + (np.log(2.0) * spread) ** 2) + n_regressions * regression**2 / 2) / 12.0


@dataclass(slots=True, eq=False)
class _Stream:
    """One revision of a component as integers, and which of them still have to be sent."""

    key: int
    revision: int
    level: int
    is_new: bool
    worth: float
    values: np.ndarray  # zigzag
    parameters: list[int]
    bits: np.ndarray  # of the integers before each
    todo: list[tuple[int, int]]
    unacked: int


@dataclass(slots=True)
class _Component:
    """What is to be mirrored, and what the ground has once all streams have arrived."""

    target: Gaussian
    weight: float
    state: Gaussian | None = None
    revision: int = -1
    is_settled: bool = False  # the newest target needs no further stream
    streams: list[_Stream] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Roster:
    """The list of all components, largest first, and which ranks still have to be sent."""

    number: int
    ids: list[int]
    todo: list[tuple[int, int]]


class ModelEncoder:
    """Turns the newest model into packets.

    Parameters
    ----------
    incarnation : int
        Rises at each start of the agent (taken modulo 64): the ground then forgets what it had.
    """

    def __init__(self, incarnation: int = 0):
        self._incarnation = incarnation % INCARNATIONS
        self._which, self._is_full, self._n_dims, self._epoch = 0, False, 0, 0
        self._components: dict[int, _Component] = {}
        self._counts: dict[int, int] = {}  # codes, as now
        self._counts_sent: dict[int, int] = {}
        self._roster: _Roster | None = None
        self._roster_is_stale = False
        self._scalars: tuple[float, float, float] | None = None
        self._scalars_todo = False
        self._number = 0
        self._in_flight: dict[int, list[tuple[object, int, int]]] = {}

    def update(self, model: Model) -> None:
        """Take a newer model as what the ground should have. Raises EncodeError if it is another kind of mixture."""
        summary = summary_of(model)
        d = summary.n_dims
        if d > MAX_DIMS:
            raise EncodeError(f"model of {d} dimensions cannot be mirrored: at most {MAX_DIMS}")
        shape = MODEL_NUMBERS[summary.which], summary.is_full, d
        if self._components and shape != (self._which, self._is_full, self._n_dims):
            raise EncodeError("model of another shape: use another ModelEncoder")
        self._which, self._is_full, self._n_dims = shape
        self._epoch = summary.model_epoch
        weights = summary.shares
        targets = posterior_gaussians(summary)
        ids = [int(i) for i in summary.ids]
        for gone in set(self._components) - set(ids) - {PRIOR_KEY}:
            del self._components[gone]
            self._counts_sent.pop(gone, None)
            self._roster_is_stale = True
        self._aim(PRIOR_KEY, prior_gaussian(summary), _PRIOR_WEIGHT)
        for k, key in enumerate(ids):
            self._aim(key, targets[k], float(weights[k]))
        self._counts = {key: count_code(float(summary.counts[k])) for k, key in enumerate(ids)}
        scalars = summary.prior_dof, summary.concentration, summary.prior_strength
        self._scalars_todo |= scalars != self._scalars
        self._scalars = scalars
        self._renew_roster()

    def next_packet(self, budget_bytes: int) -> tuple[int, bytes] | None:
        """Return (number, packet of at most `budget_bytes`), or None where nothing is left to tell.

        Report the number to `acknowledge` or `lose` in the end; links without acknowledgements call `acknowledge`
        at once. Raises EncodeError for a budget outside 22 to 2048 bytes.
        """
        if not MIN_PACKET_BYTES <= budget_bytes <= MAX_PACKET_BYTES:
            raise EncodeError(f"packet budget {budget_bytes} is outside {MIN_PACKET_BYTES} to {MAX_PACKET_BYTES} bytes")
        if not self._components:
            return None
        writer = BitWriter()
        self._write_head(writer)
        parts: list[tuple[object, int, int]] = []
        for item in self._by_worth():
            left = 8 * budget_bytes - writer.n_bits
            part = self._write_item(writer, item, left)
            if part is None:
                if left < 8 * MIN_PACKET_BYTES:
                    break
                continue
            parts.append((item, *part))
        if not parts:
            return None
        self._number += 1
        self._in_flight[self._number] = parts
        if len(self._in_flight) > _MAX_IN_FLIGHT:
            self.lose(next(iter(self._in_flight)))
        return self._number, writer.to_bytes()

    def acknowledge(self, number: int) -> None:
        """Note that a packet has arrived; unknown numbers (doubles) are ignored."""
        for item, start, stop in self._in_flight.pop(number, []):
            if isinstance(item, _Stream):
                item.unacked -= stop - start
                component = self._components.get(item.key)
                if component is not None and item.unacked == 0 and item in component.streams:
                    component.streams.remove(item)

    def lose(self, number: int) -> None:
        """Note that a packet will not arrive: what was in it is sent again. Unknown numbers are ignored."""
        for item, start, stop in self._in_flight.pop(number, []):
            if isinstance(item, _Stream | _Roster):
                item.todo.append((start, stop))
                item.todo.sort()
            else:
                self._scalars_todo = True

    def refresh(self) -> None:
        """Begin again from nothing under the next incarnation: the ground has lost its copy."""
        self._incarnation = (self._incarnation + 1) % INCARNATIONS
        for key, component in self._components.items():
            self._components[key] = _Component(component.target, component.weight)
        self._in_flight.clear()
        self._counts_sent.clear()
        self._scalars_todo = True
        self._roster = None
        self._renew_roster()

    def _aim(self, key: int, target: Gaussian, weight: float) -> None:
        component = self._components.get(key)
        if component is None:
            self._components[key] = _Component(target, weight)
        else:
            component.target, component.weight, component.is_settled = target, weight, False

    def _renew_roster(self) -> None:
        """Begin a new roster once the last one is sent and it says something new."""
        if self._roster is not None and self._roster.todo:
            return
        ids = list(self._counts)
        if self._roster is None or self._roster_is_stale or self._counts != self._counts_sent:
            number = 0 if self._roster is None else (self._roster.number + 1) % (1 << REVISION_BITS)
            self._roster = _Roster(number, ids, [(0, len(ids))])
            self._roster_is_stale = False

    def _by_worth(self) -> list[object]:
        """Return what can be sent, most nats for the stream's samples first."""
        items: list[tuple[float, object]] = []
        self._renew_roster()
        if self._roster is not None and self._roster.todo:
            items.append((np.inf if self._roster.todo[0][0] == 0 else _ROSTER_TAIL_WORTH, self._roster))
        if self._scalars_todo:
            items.append((1.0, SCALARS))
        for key, component in self._components.items():
            is_idle = not any(stream.todo for stream in component.streams) and len(component.streams) < _MAX_UNACKED
            if is_idle and not component.is_settled:
                self._begin_stream(key, component)
            items += [(stream.worth, stream) for stream in component.streams if stream.todo]
        items.sort(key=lambda pair: -pair[0])
        return [item for _, item in items]

    def _begin_stream(self, key: int, component: _Component) -> None:
        is_new = component.state is None
        known = origin(self._n_dims, self._is_full) if component.state is None else component.state
        gap = _WORTH_OF_UNKNOWN if component.state is None else divergence(component.target, known)
        if gap <= _DUE * rounding_nats(FINE, self._n_dims, self._is_full):
            component.is_settled = True
            return
        level = COARSE if is_new else FINE
        integers = quantise(component.target, known, level, is_new)
        state = reconstruct(integers, known, level, is_new)
        if not is_new and divergence(component.target, state) > _GAIN * gap:
            component.is_settled = True  # rounding of correlated dimensions: another stream would gain nothing
            return
        component.state = state
        component.revision = (component.revision + 1) % (1 << REVISION_BITS)
        values = zigzag(integers)
        labels = classes(self._n_dims, self._is_full)
        parameters = [best_parameter(values[labels == label]) for label in range(3)]
        sizes = rice_bits(values, np.array(parameters)[labels])
        worth = component.weight * min(gap, _WORTH_OF_UNKNOWN)
        bits = np.concatenate([[0], np.cumsum(sizes)])
        todo, revision = [(0, len(values))], component.revision
        stream = _Stream(key, revision, level, is_new, worth, values, parameters, bits, todo, len(values))
        component.streams.append(stream)

    def _write_head(self, writer: BitWriter) -> None:
        writer.write(VERSION, 3)
        writer.write(self._which, MODEL_BITS[VERSION])
        writer.write(int(self._is_full), 1)
        writer.write(self._n_dims - 1, 7)
        writer.write(self._incarnation, 6)
        writer.write(self._epoch % (1 << EPOCH_BITS), EPOCH_BITS)

    def _write_item(self, writer: BitWriter, item: object, left: int) -> tuple[int, int] | None:
        """Write as much of an item as fits `left` bits; return the range written, or None."""
        if isinstance(item, _Stream):
            return self._write_segment(writer, item, left)
        if isinstance(item, _Roster):
            return self._write_roster(writer, item, left)
        assert self._scalars is not None
        if left < TYPE_BITS + 96:
            return None
        writer.write(SCALARS, TYPE_BITS)
        for word in np.array(self._scalars, np.float32).view(np.uint32):
            writer.write(int(word), 32)
        self._scalars_todo = False
        return 0, 0

    def _write_segment(self, writer: BitWriter, stream: _Stream, left: int) -> tuple[int, int] | None:
        start, stop = stream.todo[0]
        total = len(stream.values)
        has_count = stream.is_new and start == 0
        head = TYPE_BITS + _key_bits(stream.key) + REVISION_BITS + 1 + LEVEL_BITS + 1 + COUNT_BITS * has_count + 1
        head += PARAMETER_BITS * (3 if self._is_full else 2)
        room = left - head
        is_whole = (start, stop) == (0, total) and stream.bits[-1] <= room
        if not is_whole:
            width = total.bit_length()
            room -= 2 * width
            end = int(np.searchsorted(stream.bits, stream.bits[start] + room, side="right")) - 1
            if min(end, stop) - start < (1 if writer.n_bits == HEAD_BITS else min(4, stop - start)):
                return None
            stop = min(end, stop)
        writer.write(SEGMENT, TYPE_BITS)
        _write_key(writer, stream.key)
        writer.write(stream.revision, REVISION_BITS)
        writer.write(int(stream.is_new), 1)
        writer.write(stream.level, LEVEL_BITS)
        writer.write(int(has_count), 1)
        if has_count:
            code = self._counts.get(stream.key, 0)
            writer.write(code, COUNT_BITS)
            if stream.key != PRIOR_KEY:
                self._counts_sent[stream.key] = code
        writer.write(int(is_whole), 1)
        if not is_whole:
            writer.write(start, width)
            writer.write(stop - start, width)
        labels = classes(self._n_dims, self._is_full)
        for label in range(3):
            if label != REGRESSION or self._is_full:
                writer.write(stream.parameters[label], PARAMETER_BITS)
        for index in range(start, stop):
            write_rice(writer, int(stream.values[index]), stream.parameters[labels[index]])
        _take(stream.todo, stop)
        return start, stop

    def _write_roster(self, writer: BitWriter, roster: _Roster, left: int) -> tuple[int, int] | None:
        start, stop = roster.todo[0]
        width = max(1, max(roster.ids, default=0).bit_length())
        head = TYPE_BITS + REVISION_BITS + gamma_bits(len(roster.ids)) + gamma_bits(start) + WIDTH_BITS
        head += gamma_bits(stop - start) + COUNT_BITS
        codes = [self._counts.get(key, 0) for key in roster.ids]
        steps = [0] + [int(value) for value in zigzag(np.diff(codes[start:stop]))]
        sizes = np.cumsum([width + (gamma_bits(step) if at else 0) for at, step in enumerate(steps)])
        most = 3 if start == 0 and stop > 3 else stop - start  # the head goes first and leaves room for the rest
        n = min(most, int(np.searchsorted(sizes, left - head, side="right")))
        if n < (1 if writer.n_bits == HEAD_BITS and stop > start else min(3, stop - start)):
            return None
        writer.write(ROSTER, TYPE_BITS)
        writer.write(roster.number, REVISION_BITS)
        write_gamma(writer, len(roster.ids))
        write_gamma(writer, start)
        write_gamma(writer, n)
        writer.write(width, WIDTH_BITS)
        writer.write(codes[start] if n else 0, COUNT_BITS)
        for at in range(n):
            writer.write(roster.ids[start + at], width)
            if at:
                write_gamma(writer, steps[at])
            self._counts_sent[roster.ids[start + at]] = codes[start + at]
        _take(roster.todo, start + n)
        return start, start + n


def _take(todo: list[tuple[int, int]], upto: int) -> None:
    """Cut the first range at `upto`."""
    _, stop = todo.pop(0)
    if upto < stop:
        todo.insert(0, (upto, stop))


def _key_bits(key: int) -> int:
    return WIDTH_BITS + (key + 1).bit_length()


def _write_key(writer: BitWriter, key: int) -> None:
    width = (key + 1).bit_length()
    writer.write(width, WIDTH_BITS)
    writer.write(key + 1, width)
