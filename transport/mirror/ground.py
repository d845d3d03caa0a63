"""The ground's half of the model mirror: a vehicle's mixture rebuilt from packets, or from whole Model messages.

Called by ground tools. Packets may be lost, doubled and out of order; what is there is always usable. It must not
trust them: whatever is wrong with one raises DecodeError and changes nothing.
"""

from dataclasses import dataclass, field

import numpy as np

from stillwatch.transport.mirror.bits import COUNT_BITS, PARAMETER_BITS, count_of, read_gamma, read_rice, unzigzag
from stillwatch.transport.mirror.model import MixtureSummary, moments_of, pack_triangle
from stillwatch.transport.mirror.values import (
    REGRESSION,
    Gaussian,
    classes,
    covariance_of,
    from_moments,
    n_rows,
    origin,
    reconstruct,
)
from stillwatch.transport.mirror.vehicle import (
    END,
    EPOCH_BITS,
    INCARNATIONS,
    LEVEL_BITS,
    MAX_DIMS,
    MAX_PACKET_BYTES,
    MODEL_BITS,
    PRIOR_KEY,
    REVISION_BITS,
    ROSTER,
    SCALARS,
    SEGMENT,
    TYPE_BITS,
    WIDTH_BITS,
)
from stillwatch.transport.wire import MODELS, BitReader, DecodeError

MAX_COMPONENTS = 2000
MAX_UNFINISHED = 4_000_000  # integers of streams that have begun, 20 MB: forged packets must not fill memory
_REVISIONS = 1 << REVISION_BITS
_EPOCHS = 1 << EPOCH_BITS
_LARGEST = 1e60  # of a mean: squares and their sums stay finite
_UNKNOWN_STRENGTH = 1e-6  # of a prior that has not arrived


@dataclass(slots=True)
class _Partial:
    """A stream of which some integers have arrived."""

    level: int
    is_new: bool
    values: np.ndarray
    has: np.ndarray

    @property
    def prefix(self) -> int:
        """How many integers are there from the start without a gap."""
        return len(self.has) if self.has.all() else int(np.argmin(self.has))


@dataclass(slots=True)
class _Component:
    """The newest whole state, and the streams that lead on from it."""

    state: Gaussian | None = None
    revision: int = -1
    partial: dict[int, _Partial] = field(default_factory=dict)
    count_code: int | None = None
    count_epoch: int = 0


@dataclass(frozen=True, slots=True)
class _Head:
    which: int
    is_full: bool
    n_dims: int
    incarnation: int
    epoch: int


@dataclass(frozen=True, slots=True)
class _Roster:
    number: int
    total: int
    start: int
    ids: list[int]
    codes: list[int]


@dataclass(frozen=True, slots=True)
class _Segment:
    key: int
    revision: int
    level: int
    is_new: bool
    count_code: int | None
    start: int
    values: list[int]


class ModelMirror:
    """One mixture of one vehicle, as far as it is known here."""

    def __init__(self) -> None:
        self.packets = 0
        self._head: _Head | None = None
        self._scalars: tuple[float, float, float] | None = None
        self._clear()

    def take_packet(self, data: bytes) -> None:
        """Take one packet. Raises DecodeError, and then has taken nothing of it."""
        head, records = _parse(data)
        known = self._head
        if known is not None and head.incarnation != known.incarnation:
            if (head.incarnation - known.incarnation) % INCARNATIONS >= INCARNATIONS // 2:
                return  # from before the vehicle's restart
            known = None
        if known is None:
            self._clear()
        elif (head.which, head.is_full, head.n_dims) != (known.which, known.is_full, known.n_dims):
            raise DecodeError("model packet of another shape than those before it")
        self.packets += 1
        if known is None or _is_newer(head.epoch, known.epoch, _EPOCHS):
            self._head = head
        for record in records:
            match record:
                case _Roster():
                    self._take_roster(record, head.epoch)
                case _Segment():
                    self._take_segment(record, head)
                case tuple():
                    self._scalars = record

    @property
    def ranking(self) -> list[tuple[int, float]]:
        """Ids and counts of the components known by name, the largest first; a few bytes suffice for the first."""
        named = [
            (key, count_of(c.count_code))
            for key, c in self._components.items()
            if c.count_code is not None and key != PRIOR_KEY
        ]
        ranks = self._ranks()
        return sorted(named, key=lambda pair: (-pair[1], ranks.get(pair[0], MAX_COMPONENTS), pair[0]))

    @property
    def n_components(self) -> int | None:
        """How many components the vehicle has, or None before it said so."""
        return self._total

    def summary(self) -> MixtureSummary | None:
        """Return the mixture as known, the largest component first; None before anything of a component arrived.

        Dimensions and priors that have not arrived are filled with what the components at hand look like together.
        """
        if self._head is None:
            return None
        head = self._head
        known = {key: self._known(c) for key, c in self._components.items() if key != PRIOR_KEY}
        usable = {key: seen for key, seen in known.items() if seen is not None}
        if not usable:
            return None
        prior, strength, dof, concentration = self._prior(usable)
        rows = []
        for key, (gaussian, dims) in usable.items():
            code = self._components[key].count_code
            count = count_of(code) if code is not None else 1.0
            filled = _fill(gaussian, dims, prior)
            rows.append((count, key, *moments_of(filled, count, prior, strength, dof if head.is_full else 2.0 * dof)))
        ranks = self._ranks()
        rows.sort(key=lambda row: (-row[0], ranks.get(row[1], MAX_COMPONENTS), row[1]))
        second = np.array([row[3] for row in rows])
        scale = covariance_of(prior) * dof
        return MixtureSummary(
            MODELS[head.which],
            head.epoch,
            np.array([row[1] for row in rows], np.int64),
            np.array([row[0] for row in rows]),
            np.array([row[2] for row in rows]),
            None if head.is_full else second,
            second if head.is_full else None,
            prior.mean,
            pack_triangle(scale) if head.is_full else scale,
            strength,
            dof,
            concentration,
        )

    def _ranks(self) -> dict[int, int]:
        """Return what orders components of one rounded count: the vehicle's order, not that of the packets."""
        return {key: rank for rank, key in self._roster.items()}

    def _clear(self) -> None:
        self._components: dict[int, _Component] = {}
        self._total: int | None = None
        self._scalars = None
        self._roster_number = -1
        self._roster: dict[int, int] = {}

    def _take_roster(self, roster: _Roster, epoch: int) -> None:
        if roster.number != self._roster_number:
            if self._roster_number >= 0 and not _is_newer(roster.number, self._roster_number, _REVISIONS):
                return
            self._roster_number, self._roster, self._total = roster.number, {}, roster.total
        for rank, (key, code) in enumerate(zip(roster.ids, roster.codes, strict=True), start=roster.start):
            self._roster[rank] = key
            component = self._component(key)
            if component is not None:
                self._set_count(component, code, epoch)
        if len(self._roster) == self._total:
            alive = {*self._roster.values(), PRIOR_KEY}
            for key in [key for key in self._components if key not in alive]:
                del self._components[key]

    def _take_segment(self, segment: _Segment, head: _Head) -> None:
        component = self._component(segment.key)
        if component is None:
            return
        if segment.count_code is not None:
            self._set_count(component, segment.count_code, head.epoch)
        if component.revision >= 0 and not _is_newer(segment.revision, component.revision, _REVISIONS):
            return
        partial = component.partial.get(segment.revision)
        if partial is None or (partial.level, partial.is_new) != (segment.level, segment.is_new):
            n_values = len(classes(head.n_dims, head.is_full))
            if self._n_unfinished() + n_values > MAX_UNFINISHED:
                raise DecodeError(f"model packets leave over {MAX_UNFINISHED} integers in unfinished streams")
            empty = np.zeros(n_values, np.int32), np.zeros(n_values, bool)
            partial = component.partial[segment.revision] = _Partial(segment.level, segment.is_new, *empty)
        stop = segment.start + len(segment.values)
        partial.values[segment.start : stop] = segment.values
        partial.has[segment.start : stop] = True
        self._advance(component, head)

    def _advance(self, component: _Component, head: _Head) -> None:
        """Apply whole streams in the order of their revisions."""
        while True:
            following = (component.revision + 1) % _REVISIONS
            partial = component.partial.get(following)
            if partial is None or not partial.has.all() or (component.state is None and not partial.is_new):
                return
            known = origin(head.n_dims, head.is_full) if partial.is_new else component.state
            assert known is not None
            state = _reconstruct(partial.values, known, partial)
            if state is None:
                component.partial.clear()
                raise DecodeError("model component whose numbers overflow")
            component.state, component.revision = state, following
            del component.partial[following]

    def _known(self, component: _Component) -> tuple[Gaussian, int] | None:
        """Return a component's Gaussian and how many of its first dimensions it is good for."""
        assert self._head is not None
        d, is_full = self._head.n_dims, self._head.is_full
        partial = component.partial.get((component.revision + 1) % _REVISIONS)
        if partial is not None and (component.state is not None or partial.is_new):
            prefix = partial.values[: partial.prefix]
            known = origin(d, is_full) if partial.is_new else component.state
            assert known is not None
            rows = n_rows(len(prefix), d, is_full)
            state = _reconstruct(prefix, known, partial) if rows else None
            if state is not None:
                return state, rows if partial.is_new else d
        return None if component.state is None else (component.state, d)

    def _prior(self, usable: dict[int, tuple[Gaussian, int]]) -> tuple[Gaussian, float, float, float]:
        """Return prior, strength, degrees of freedom and concentration, or what stands in for them."""
        prior = self._components.get(PRIOR_KEY)
        if prior is not None and prior.state is not None and self._scalars is not None:
            dof, concentration, strength = self._scalars
            return prior.state, strength, dof, concentration
        assert self._head is not None
        d = self._head.n_dims
        mean, second, seen = np.zeros(d), np.zeros(d), np.zeros(d)
        for gaussian, dims in usable.values():
            variance = covariance_of(gaussian)
            variance = np.diag(variance) if variance.ndim == 2 else variance
            mean[:dims] += gaussian.mean[:dims]
            second[:dims] += gaussian.mean[:dims] ** 2 + variance[:dims]
            seen[:dims] += 1
        has = seen > 0
        mean[has] /= seen[has]
        variance = np.maximum(second / np.maximum(seen, 1) - mean**2, 1e-12)
        variance[~has] = variance[has].min()
        covariance = np.diag(variance) if self._head.is_full else variance
        return from_moments(mean, covariance), _UNKNOWN_STRENGTH, d + 2.0, 1.0

    def _n_unfinished(self) -> int:
        return sum(len(stream.values) for c in self._components.values() for stream in c.partial.values())

    def _component(self, key: int) -> _Component | None:
        """Return the component of that id, made if there is room: a forged packet must not fill memory."""
        if key not in self._components and len(self._components) < MAX_COMPONENTS:
            self._components[key] = _Component()
        return self._components.get(key)

    @staticmethod
    def _set_count(component: _Component, code: int, epoch: int) -> None:
        if component.count_code is None or not _is_newer(component.count_epoch, epoch, _EPOCHS):
            component.count_code, component.count_epoch = code, epoch


def _reconstruct(values: np.ndarray, known: Gaussian, partial: _Partial) -> Gaussian | None:
    """Return the Gaussian that the integers lead to, or None for forged ones that lead to no finite covariance."""
    with np.errstate(all="ignore"):
        state = reconstruct(values, known, partial.level, partial.is_new)
        try:
            is_finite = np.isfinite(state.mean).all() and np.isfinite(covariance_of(state)).all()
        except np.linalg.LinAlgError:
            return None
    return state if is_finite and np.abs(state.mean).max() < _LARGEST else None


def _is_newer(a: int, b: int, modulus: int) -> bool:
    return 0 < (a - b) % modulus < modulus // 2


def _fill(gaussian: Gaussian, dims: int, prior: Gaussian) -> Gaussian:
    """Return the Gaussian with its dimensions from `dims` on taken from the prior, uncorrelated."""
    if dims == gaussian.n_dims:
        return gaussian
    spread = covariance_of(prior)
    spread = np.diag(spread) if spread.ndim == 2 else spread
    mean, log = gaussian.mean.copy(), gaussian.log_spread.copy()
    mean[dims:], log[dims:] = prior.mean[dims:], 0.5 * np.log2(spread[dims:])
    whitener = gaussian.whitener
    if whitener is not None:
        whitener = whitener.copy()
        whitener[dims:] = 0.0
        whitener[range(dims, len(mean)), range(dims, len(mean))] = 2.0 ** -log[dims:]
    return Gaussian(mean, log, whitener)


def _parse(data: bytes) -> tuple[_Head, list[_Roster | _Segment | tuple[float, float, float]]]:
    """Return head and records of a packet, all checked."""
    if len(data) > MAX_PACKET_BYTES:
        raise DecodeError(f"model packet of {len(data)} bytes is longer than {MAX_PACKET_BYTES}")
    reader = BitReader(data)
    version = reader.read(3)
    if version not in MODEL_BITS:
        raise DecodeError(f"model packet of version {version} is unknown: versions {', '.join(map(str, MODEL_BITS))}")
    which, is_full, n_dims = reader.read(MODEL_BITS[version]), bool(reader.read(1)), reader.read(7) + 1
    assert n_dims <= MAX_DIMS
    if which >= len(MODELS):
        raise DecodeError(f"model packet of model {which}: {len(MODELS)} are known")
    head = _Head(which, is_full, n_dims, reader.read(6), reader.read(EPOCH_BITS))
    records: list[_Roster | _Segment | tuple[float, float, float]] = []
    while reader.left >= 8:
        kind = reader.read(TYPE_BITS)
        if kind == END:
            break
        if kind == ROSTER:
            records.append(_parse_roster(reader))
        elif kind == SEGMENT:
            records.append(_parse_segment(reader, head))
        elif kind == SCALARS:
            records.append(_parse_scalars(reader))
    return head, records


def _parse_roster(reader: BitReader) -> _Roster:
    number, total, start, n = reader.read(REVISION_BITS), read_gamma(reader), read_gamma(reader), read_gamma(reader)
    if total >= MAX_COMPONENTS or start + n > total:
        raise DecodeError(f"model roster of ranks {start} to {start + n} of {total} components")
    width, code = reader.read(WIDTH_BITS), reader.read(COUNT_BITS)
    ids, codes = [], []
    for at in range(n):
        ids.append(reader.read(width))
        code += unzigzag(read_gamma(reader)) if at else 0
        if not 0 <= code < 1 << COUNT_BITS:
            raise DecodeError(f"model roster has count code {code}")
        codes.append(code)
    return _Roster(number, total, start, ids, codes)


def _parse_segment(reader: BitReader, head: _Head) -> _Segment:
    key = reader.read(reader.read(WIDTH_BITS)) - 1
    revision, is_new, level = reader.read(REVISION_BITS), bool(reader.read(1)), reader.read(LEVEL_BITS)
    if key < PRIOR_KEY:
        raise DecodeError(f"model segment of component {key}, level {level}")
    count_code = reader.read(COUNT_BITS) if reader.read(1) else None
    labels = classes(head.n_dims, head.is_full)
    total = len(labels)
    start, n = 0, total
    if not reader.read(1):
        start, n = reader.read(total.bit_length()), reader.read(total.bit_length())
    if not n or start + n > total:
        raise DecodeError(f"model segment of integers {start} to {start + n} of {total}")
    parameters = [reader.read(PARAMETER_BITS) if c != REGRESSION or head.is_full else 0 for c in range(3)]
    values = [unzigzag(read_rice(reader, parameters[labels[index]])) for index in range(start, start + n)]
    return _Segment(key, revision, level, is_new, count_code, start, values)


def _parse_scalars(reader: BitReader) -> tuple[float, float, float]:
    words = np.array([reader.read(32) for _ in range(3)], np.uint32).view(np.float32).astype(np.float64)
    if not (np.isfinite(words).all() and (words > 0.0).all()):
        raise DecodeError("model prior with a scalar that is not positive and finite")
    return float(words[0]), float(words[1]), float(words[2])
