"""Compact messages as readers see them: a batch of scores frame by frame, a change of a model as the whole model.

Used by publisher (last values), subscriber, run folder, thin link and ground tools. It must not guess: a change whose
base is not there gives nothing.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from stillwatch.transport.wire.errors import DecodeError
from stillwatch.transport.wire.messages import Message, Model, Score, Scores

LEARNING, REFUSED, HAS_VALUE, HAS_RARITY, HAS_SURPRISE, HAS_SHARES = 1, 2, 4, 8, 16, 32  # bits of Scores.flags
OFFSET_NS = 100_000  # unit of Scores.offsets
_HEADER = ("agent", "run", "boot", "epoch", "source_ns", "valid")
_PER_COMPONENT = ("counts", "weights", "means", "variances", "covariances")
_HALF_LIMIT = 60_000.0  # beyond it float16 has no numbers


class Unfolder:
    """Turns the messages of one publisher into those that readers work with; it keeps the newest whole models."""

    def __init__(self) -> None:
        self._models: dict[tuple[str, int, str], Model] = {}

    def has_base(self, message: Message) -> bool:
        """Return whether `unfold` can make something of the message: false for a change of an unknown model."""
        if not isinstance(message, Model) or message.base < 0:
            return True
        known = self._models.get((message.run, message.epoch, message.which))
        return known is not None and known.sequence == message.base

    def unfold(self, message: Message) -> Sequence[Message]:
        """Return what a message says, in the forms that need no other message; empty without its base.

        Raises
        ------
        DecodeError
            A change that does not fit its base.
        """
        match message:
            case Scores():
                return list(scores_of(message))
            case Model():
                if not self.has_base(message):
                    return []
                key = message.run, message.epoch, message.which
                whole = message if message.base < 0 else changed_model(self._models[key], message)
                self._models = {k: known for k, known in self._models.items() if k[:2] == key[:2]} | {key: whole}
                return [whole]
        return [message]


def scores_of(batch: Scores) -> Iterator[Score]:
    """Yield the scores of a batch, each with the header of its own frame; wall and monotonic times as far apart."""
    common = {name: getattr(batch, name) for name in _HEADER}
    values, rarities, surprises = (
        iter(() if array is None else array.astype(float).tolist())
        for array in (batch.values, batch.rarities, batch.surprises)
    )
    reasons = iter(batch.reasons)
    shares = iter(() if batch.topic_shares is None else batch.topic_shares)
    navs = iter(batch.topic_navs or ())
    n = len(batch.flags)
    events = [-1] * n if batch.events is None else batch.events.tolist()
    frames = list(range(batch.frame - n + 1, batch.frame + 1)) if batch.frames is None else batch.frames.tolist()
    rows = zip(frames, batch.offsets.tolist(), batch.flags.tolist(), events, strict=True)
    for i, (frame, offset, flags, event) in enumerate(rows):
        yield Score(
            **common,
            sequence=batch.first + i,
            t_ns=batch.t_ns + OFFSET_NS * offset,
            mono_ns=batch.mono_ns + OFFSET_NS * offset,
            wall_ns=batch.wall_ns + OFFSET_NS * offset,
            frame=frame,
            value=next(values) if flags & HAS_VALUE else None,
            rarity=next(rarities) if flags & HAS_RARITY else None,
            frame_surprise=next(surprises) if flags & HAS_SURPRISE else None,
            learning=bool(flags & LEARNING),
            event=event,
            accepted=not flags & REFUSED,
            reason=next(reasons) if flags & REFUSED else "",
            topic_ids=batch.topic_ids if flags & HAS_SHARES else None,
            topic_shares=next(shares) if flags & HAS_SHARES else None,
            nav=next(navs, None) if flags & HAS_SHARES else None,
        )


def check_scores(batch: Scores) -> None:
    """Raise DecodeError unless every list of a batch is as long as its flags say."""
    n = len(batch.flags)
    for name, numbers in (("events", batch.events), ("frames", batch.frames)):
        if numbers is not None and n and int(numbers.min()) < -1:
            raise DecodeError(f"scores: one of {name} is below -1")
    if batch.frames is None and batch.frame < n - 1:
        raise DecodeError(f"scores: {n} consecutive frames end at {batch.frame}")
    for flag, name in (
        (HAS_VALUE, "values"),
        (HAS_RARITY, "rarities"),
        (HAS_SURPRISE, "surprises"),
        (REFUSED, "reasons"),
        (HAS_SHARES, "topic_shares"),
    ):
        found = getattr(batch, name)
        wanted, have = int(np.count_nonzero(batch.flags & flag)), 0 if found is None else len(found)
        if wanted != have:
            raise DecodeError(f"scores: {have} {name}, flags say {wanted}")
    if batch.rarities is not None and len(batch.rarities) and float(batch.rarities.min()) < 0.0:
        raise DecodeError("scores: a rarity is below 0")
    n_shares = 0 if batch.topic_shares is None else len(batch.topic_shares)
    if batch.topic_navs is not None and len(batch.topic_navs) != n_shares:
        raise DecodeError(f"scores: {len(batch.topic_navs)} positions of {n_shares} frames with shares")
    if (batch.topic_ids is None) != (batch.topic_shares is None):
        raise DecodeError("scores: topics without shares, or shares without topics")


def scores_message(first: int, scores: Sequence[Score], header: dict[str, Any]) -> Scores:
    """Return the batch that says what consecutive scores say. `header` is that of the batch, of its last frame."""
    flags = [
        LEARNING * s.learning
        | REFUSED * (not s.accepted)
        | HAS_VALUE * (s.value is not None)
        | HAS_RARITY * (s.rarity is not None)
        | HAS_SURPRISE * (s.frame_surprise is not None)
        | HAS_SHARES * (s.topic_ids is not None)
        for s in scores
    ]
    frames = [s.frame for s in scores]
    shown = [s for s in scores if s.topic_ids is not None]
    topic_ids, topic_shares = _shares(shown)
    navs = [s.nav for s in shown]
    is_run = frames == list(range(frames[-1] - len(frames) + 1, frames[-1] + 1))
    return Scores(
        **header,
        first=first,
        frames=None if is_run else np.array(frames, np.int64),
        offsets=np.array([round((s.t_ns - header["t_ns"]) / OFFSET_NS) for s in scores], np.int16),
        flags=np.array(flags, np.uint8),
        values=_small([s.value for s in scores if s.value is not None]),
        rarities=_small([s.rarity for s in scores if s.rarity is not None]),
        surprises=_small([s.frame_surprise for s in scores if s.frame_surprise is not None]),
        events=np.array([s.event for s in scores], np.int64) if any(s.event >= 0 for s in scores) else None,
        reasons=[s.reason for s in scores if not s.accepted],
        topic_ids=topic_ids,
        topic_shares=topic_shares,
        topic_navs=navs if any(nav is not None for nav in navs) else None,
    )


def _shares(scores: Sequence[Score]) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the topics of all these frames, and the shares of each frame by topic, to 11 bits; None for none."""
    if not scores:
        return None, None
    by_topic = [
        dict(zip(s.topic_ids.tolist(), s.topic_shares.tolist(), strict=True))
        for s in scores
        if s.topic_ids is not None and s.topic_shares is not None
    ]
    ids = sorted({topic for shares in by_topic for topic in shares})
    shares = [[shares.get(topic, 0.0) for topic in ids] for shares in by_topic]
    return np.array(ids, np.int64), np.array(shares, np.float16).reshape(len(by_topic), len(ids))


def _small(values: Sequence[float]) -> np.ndarray | None:
    """Return the values to 11 bits, or to 24 where one is larger than those can say; None for none."""
    if not values:
        return None
    fits = max(map(abs, values)) < _HALF_LIMIT
    return np.array(values, np.float16 if fits else np.float32)


def changed_model(base: Model, change: Model) -> Model:
    """Return the whole model after a change, under the change's header. Arrays are float32.

    Raises
    ------
    DecodeError
        The change is of another shape, or leaves a component without a row.
    """
    roster, counts, weights = change.roster, change.roster_counts, change.roster_weights
    if roster is None or counts is None or weights is None:
        raise DecodeError("model: a change without its roster")
    if (base.covariance, base.n_dims) != (change.covariance, change.n_dims):
        raise DecodeError(f"model: a change of {change.n_dims} dimensions for one of {base.n_dims}")
    place = {who: (base, row) for row, who in enumerate(base.ids.tolist())}
    place |= {who: (change, row) for row, who in enumerate(change.ids.tolist())}
    if missing := [who for who in roster.tolist() if who not in place]:
        raise DecodeError(f"model: component {missing[0]} has no row in the change nor before it")
    spread = "variances" if change.variances is not None else "covariances"
    if getattr(base, spread) is None:
        raise DecodeError("model: a change of another kind of second moments")
    rows = [place[who] for who in roster.tolist()]
    gathered = {
        name: np.array([getattr(source, name)[row] for source, row in rows], np.float32).reshape(
            len(rows), getattr(change, name).shape[1]
        )
        for name in ("means", spread)
    }
    return msgspec.structs.replace(
        change,
        ids=np.array(roster),
        counts=np.array(counts),
        weights=np.array(weights),
        base=-1,
        roster=None,
        roster_counts=None,
        roster_weights=None,
        **gathered,
    )


def model_change(known: Model, model: Model, moved: Sequence[int]) -> Model:
    """Return `model` as a change of `known`, with the rows of the components `moved` (ids) alone."""
    wanted = set(moved)
    rows = [row for row, who in enumerate(model.ids.tolist()) if who in wanted]
    kept = {name: None if (array := getattr(model, name)) is None else array[rows] for name in _PER_COMPONENT}
    return msgspec.structs.replace(
        model,
        base=known.sequence,
        roster=model.ids,
        roster_counts=model.counts,
        roster_weights=model.weights,
        ids=model.ids[rows],
        **kept,
    )
