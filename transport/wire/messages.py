"""The typed messages of wire schema 2: every field with its type, range, unit and meaning.

Made by the agent's outlet and transport/wire/codec.py, read by ground stations; transport/WIRE.md is generated from
here. It must only grow: new fields have defaults; no field changes type or meaning, no name is used again. Schema 2
says the same as 1 and is read by the same types: its bytes are smaller, and scores and models come as changes.
"""

from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from stillwatch.transport.wire.names import AGENT_PATTERN, MODEL_PATTERN, EventKind

SCHEMA = 2
FIRST_SCHEMA = 1  # the oldest that is read
_INT64 = 2**63 - 1


def array_of(dtypes: str, *shape: str | int) -> Meta:
    """Describe an array field: allowed dtypes, and its shape as numbers or as names shared within one message."""
    names = tuple(dtypes.split())
    return Meta(description=f"{' or '.join(names)} ({', '.join(map(str, shape))})", extra={"array": (names, shape)})


Text = Annotated[str, Meta(max_length=256)]
Name = Annotated[str, Meta(max_length=64)]
Count = Annotated[int, Meta(ge=0, le=_INT64)]
Index = Annotated[int, Meta(ge=-1, le=_INT64)]
Nanoseconds = Annotated[int, Meta(ge=-_INT64, le=_INT64)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
NonNegative = Annotated[float, Meta(ge=0.0)]
Counts = Annotated[dict[Name, Count], Meta(max_length=64)]
Thumbnail = Annotated[bytes, Meta(max_length=12_000, description="JPEG, or empty")]

Boxes = Annotated[np.ndarray, array_of("float32", "n", 4)]
History = Annotated[np.ndarray, array_of("float32 float16", "h")]
IdVector = Annotated[np.ndarray, array_of("int64 int32", "any")]
Ids = Annotated[np.ndarray, array_of("int64 int32", "k")]
PerComponent = Annotated[np.ndarray, array_of("float32 float64", "k")]
Means = Annotated[np.ndarray, array_of("float32 float64", "k", "d")]
Packed = Annotated[np.ndarray, array_of("float32 float64", "k", "c")]
PriorMean = Annotated[np.ndarray, array_of("float32 float64", "d")]
PriorScale = Annotated[np.ndarray, array_of("float32 float64", "c")]
Roster = Annotated[np.ndarray, array_of("int64 int32", "n")]
PerRoster = Annotated[np.ndarray, array_of("float32 float64", "n")]
FrameNumbers = Annotated[np.ndarray, array_of("int64", "f")]
FrameOffsets = Annotated[np.ndarray, array_of("int16", "f")]
FrameFlags = Annotated[np.ndarray, array_of("uint8", "f")]
ScoreValues = Annotated[np.ndarray, array_of("float32 float16", "any")]
TopicIds = Annotated[np.ndarray, array_of("int64 int32", "k")]
TopicShares = Annotated[np.ndarray, array_of("float32 float16", "k")]
SharesByFrame = Annotated[np.ndarray, array_of("float32 float16", "s", "k")]
TopicMap = Annotated[np.ndarray, array_of("uint8", "r", "c")]
MapIds = Annotated[np.ndarray, array_of("int64 int32", "t")]
Reasons = Annotated[list[Name], Meta(max_length=256)]
VisitTimes = Annotated[np.ndarray, array_of("int64", "v")]
ClumpCounts = Annotated[np.ndarray, array_of("float32 float16 uint32", "m")]
ClumpRows = Annotated[np.ndarray, array_of("float32 float16 int8", "m", "d")]
ColumnScale = Annotated[np.ndarray, array_of("float32", "d")]
ClumpIds = Annotated[np.ndarray, array_of("int64 int32", "m")]
ClumpLogs = Annotated[np.ndarray, array_of("int8", "v", "d")]
ClumpCodes = Annotated[np.ndarray, array_of("int8", "v", "e")]
ClumpSteps = Annotated[np.ndarray, array_of("float32", "v")]
ComponentCounts = Annotated[np.ndarray, array_of("float32", "k")]
ComponentRows = Annotated[np.ndarray, array_of("int16", "k", "d")]
ComponentLogs = Annotated[np.ndarray, array_of("int8", "k", "d")]
ComponentCodes = Annotated[np.ndarray, array_of("int8", "k", "e")]
ComponentSteps = Annotated[np.ndarray, array_of("float32", "k")]


class Message(msgspec.Struct, frozen=True, kw_only=True, eq=False, tag_field="kind", tag="message"):
    """What every message carries.

    `schema` is the major version, refused when unknown. `epoch` is the publisher's: it rises at each start, and
    sequences restart with it. `sequence` counts messages of one kind (topic). `t_ns` is stream time; `mono_ns` and
    `wall_ns` are the sender's monotonic and UTC clocks; `source_ns` is the source's own stamp or null. `frame` is
    the frame's sequence number, -1 where no frame applies. `valid` false marks data not to be relied upon.
    No number in any message is NaN or infinite: what is not known is null or left out.
    """

    schema: Annotated[int, Meta(ge=1, le=65_535)] = SCHEMA
    agent: Annotated[str, Meta(pattern=AGENT_PATTERN)]
    run: Name
    boot: Name
    epoch: Count
    sequence: Count
    t_ns: Nanoseconds
    mono_ns: Nanoseconds
    wall_ns: Nanoseconds
    source_ns: Nanoseconds | None = None
    frame: Index = -1
    valid: bool = True


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """Where the camera was. Degrees (WGS 84), metres below the surface, metres above ground, degrees from north."""

    latitude: Annotated[float, Meta(ge=-90.0, le=90.0)] | None = None
    longitude: Annotated[float, Meta(ge=-180.0, le=180.0)] | None = None
    depth_m: float | None = None
    altitude_m: float | None = None
    heading_deg: float | None = None


Positions = Annotated[list[Position | None], Meta(max_length=256)]


class Status(Message, tag="status", kw_only=True, frozen=True):
    """The heartbeat: state, counters since the run began, and health."""

    state: Annotated[Name, Meta(description="source state: connecting, live, stalled, frozen, dark, ...")]
    learning: Annotated[Share, Meta(description="progress towards the first model, 1 when scores are calibrated")] = 0.0
    unsure: Annotated[
        Name, Meta(description="why alerts are not to be relied on: learning, busy_start, weather; or empty")
    ] = ""
    busy: Annotated[Share | None, Meta(description="of the looks at the start, in which something moved")] = None
    frames: Count = 0
    accepted: Count = 0
    refused: Annotated[Counts, Meta(description="frames the gate refused, by reason")] = {}
    dropped: Annotated[Count, Meta(description="frames lost before the pipeline")] = 0
    events: Count = 0
    alerts: Count = 0
    suppressed: Annotated[Counts, Meta(description="alerts not raised, by why")] = {}
    drops: Annotated[Counts, Meta(description="messages that a subscriber's full queue lost, by kind")] = {}
    sequences: Annotated[Counts, Meta(description="messages made so far, by kind: the next sequence of each")] = {}
    tx_bytes: Annotated[Counts, Meta(description="bytes sent, by link or kind")] = {}
    epochs: Annotated[Counts, Meta(description="stream, patch, scene epochs")] = {}
    model_hash: Name = ""
    encoder_hash: Name = ""
    config_hash: Name = ""
    memory_bytes: Annotated[Count, Meta(description="what the stages account for")] = 0
    rss_bytes: Count = 0
    cpu_seconds: NonNegative = 0.0
    temperature_c: float | None = None
    disk_free_bytes: Count | None = None
    rate_hz: Annotated[NonNegative, Meta(description="frames a second through the pipeline")] = 0.0
    frame_age_s: Annotated[NonNegative | None, Meta(description="age of the newest new frame; null before it")] = None
    versions: Annotated[dict[Name, Name], Meta(max_length=32)] = {}
    source_kind: Name = ""
    source_uri: Annotated[Text, Meta(description="secrets removed")] = ""
    endpoints: Annotated[dict[Name, Text], Meta(max_length=8, description="data, snapshot, control, as bound")] = {}
    not_kept: Annotated[Counts, Meta(description="what the disk refused: messages, records, checkpoints, clips")] = {}


class Score(Message, tag="score", kw_only=True, frozen=True):
    """One frame's novelty. `value` and `rarity` are null while learning or when the gate refused the frame."""

    value: Annotated[float | None, Meta(description="novelty score, higher is newer")] = None
    rarity: Annotated[NonNegative | None, Meta(description="one frame in this many scores so high here")] = None
    frame_surprise: Annotated[float | None, Meta(description="of the frame descriptor, in nats")] = None
    learning: bool = False
    event: Annotated[Index, Meta(description="id of the open event, or -1")] = -1
    accepted: bool = True
    reason: Annotated[Name, Meta(description="why the gate refused, or empty")] = ""
    topic_ids: Annotated[TopicIds | None, Meta(description="topics in view; null where that was not looked at")] = None
    topic_shares: Annotated[TopicShares | None, Meta(description="of each, of the frame")] = None
    nav: Annotated[Position | None, Meta(description="where the camera was, of a frame with shares")] = None


class Scores(Message, tag="scores", kw_only=True, frozen=True):
    """The scores of up to a second's frames; its header is of the last of them. Readers see it as one `score` a frame.

    `flags` of a frame: 1 learning, 2 refused, 4 has a value, 8 a rarity, 16 a surprise, 32 topic shares. `values`,
    `rarities`, `surprises`, `reasons` and the rows of `topic_shares` are of the frames that have one, in their order.
    """

    first: Annotated[Count, Meta(description="scores of the publisher's epoch before the first of these")]
    frames: Annotated[FrameNumbers | None, Meta(description="numbers; null: consecutive, `frame` is the last")] = None
    offsets: Annotated[FrameOffsets, Meta(description="stream time less t_ns, in tenths of a millisecond")]
    flags: FrameFlags
    values: ScoreValues | None = None
    rarities: ScoreValues | None = None
    surprises: Annotated[ScoreValues | None, Meta(description="of the frame descriptor, in nats")] = None
    events: Annotated[FrameNumbers | None, Meta(description="open event of each frame, or -1; null: none is open")] = (
        None
    )
    reasons: Annotated[Reasons, Meta(description="why the gate refused")] = []
    topic_ids: Annotated[TopicIds | None, Meta(description="topics of all frames that have shares")] = None
    topic_shares: Annotated[SharesByFrame | None, Meta(description="of a frame; 0 of topics that it has not")] = None
    topic_navs: Annotated[Positions | None, Meta(description="of the frames with shares; null: none is known")] = None


class Alert(Message, tag="alert", kw_only=True, frozen=True):
    """A span of novelty, told in phases with one id: new, update, end."""

    id: Count
    alert_kind: Annotated[Name, Meta(description=", ".join(EventKind))] = "novelty"
    phase: Annotated[str, Meta(pattern="^(new|update|end)$")]
    severity: Annotated[Share, Meta(description="0 to 1")] = 0.0
    start_frame: Index = -1
    start_t_ns: Nanoseconds = 0
    duration_s: NonNegative = 0.0
    peak: Annotated[float | None, Meta(description="highest score so far")] = None
    rarity: Annotated[NonNegative | None, Meta(description="one frame in this many, at the peak")] = None
    x: Annotated[Share | None, Meta(description="centre of the main box, share of the width")] = None
    y: Annotated[Share | None, Meta(description="centre of the main box, share of the height")] = None
    boxes: Annotated[Boxes | None, Meta(description="x0, y0, x1, y1 as shares, the main one first")] = None
    component: Annotated[Index, Meta(description="nearest mixture component's id, or -1")] = -1
    exemplar: Annotated[Index, Meta(description="nearest exemplar's id, or -1")] = -1
    history: Annotated[History | None, Meta(description="scores of the last frames, oldest first")] = None
    nav: Position | None = None
    picture_frame: Annotated[Index, Meta(description="that boxes, x, y and thumbnail are of, or -1: not told")] = -1
    picture_t_ns: Annotated[Nanoseconds, Meta(description="its stream time; 0 where not told")] = 0
    thumbnail: Thumbnail = b""
    topic: Annotated[Index, Meta(description="id of the topic that makes a view unusual, or -1")] = -1
    watched_s: Annotated[NonNegative | None, Meta(description="judged before it, seconds; null where not told")] = None
    judged: Annotated[Index, Meta(description="frames judged before it, or -1: not told")] = -1
    visits: Annotated[Index, Meta(description="visits that were over; -1: none are followed")] = -1
    alike: Annotated[Index, Meta(description="of them, of its kind; -1: not seen whole, its kind is not known")] = -1
    here: Annotated[Index, Meta(description="of them, that went to its place or beside; -1: not known")] = -1
    visit_kind: Annotated[Index, Meta(description="id of its kind of visits; -1: of none that is known")] = -1
    topic_map: Annotated[TopicMap | None, Meta(description="places in map_topics over the picture; 255: none")] = None
    map_topics: Annotated[MapIds | None, Meta(description="ids of topics")] = None


class Model(Message, tag="model", kw_only=True, frozen=True):
    """One mixture, enough to rebuild its predictive density.

    `means` and the second moments are of the data each component is responsible for (not yet shrunk by the prior),
    largest component first. Second moments are central: per dimension (`variances`), or as the lower triangle
    row by row, c = d (d + 1) / 2 (`covariances`). Exactly one of both is present. `prior_scale` has the same form:
    scale matrix of the inverse Wishart, or rate of the Gamma prior on each dimension's precision. Fewer components
    than `n_components` were sent where all would pass the size limit.

    With a `base` it is a change of the mixture's message of that sequence: `ids`, `counts`, `weights`, `means` and the
    second moments are of components that are new or moved, `roster` lists all that are left, in their order; those
    that did not move keep their rows. Whoever lacks the base asks for a snapshot, which holds the whole.
    """

    which: Annotated[str, Meta(pattern=MODEL_PATTERN)]
    covariance: Annotated[str, Meta(pattern="^(diagonal|full)$")]
    n_dims: Annotated[int, Meta(ge=1, le=512)]
    n_components: Count
    model_epoch: Annotated[Count, Meta(description="learning epochs so far")]
    activated_frame: Annotated[Index, Meta(description="first frame scored with it")] = -1
    free_energy: Annotated[float | None, Meta(description="nats per sample")] = None
    ids: Annotated[Ids, Meta(description="stable, never used again")]
    counts: Annotated[PerComponent, Meta(description="samples each component stands for")]
    weights: PerComponent
    means: Means
    variances: Means | None = None
    covariances: Packed | None = None
    prior_mean: PriorMean
    prior_strength: Annotated[float, Meta(gt=0.0, description="kappa, in samples")]
    prior_dof: Annotated[float, Meta(gt=0.0, description="of the inverse Wishart; diagonal: shape of the Gamma")]
    prior_scale: PriorScale
    concentration: Annotated[float, Meta(gt=0.0, description="alpha of the Dirichlet process")]
    horizon: Count = 0
    seconds: Annotated[NonNegative, Meta(description="CPU seconds of the last epoch")] = 0.0
    splits: Count = 0
    merges: Count = 0
    clumps: Count = 0
    singlets: Count = 0
    born: IdVector | None = None
    died: IdVector | None = None
    labels: Annotated[dict[Name, Name], Meta(max_length=256, description="people's names, by component id")] = {}
    base: Annotated[Index, Meta(description="sequence of the model that this changes; -1: it is whole")] = -1
    roster: Annotated[Roster | None, Meta(description="ids of all components after the change")] = None
    roster_counts: PerRoster | None = None
    roster_weights: PerRoster | None = None


class Clumps(Message, tag="clumps", kw_only=True, frozen=True):
    """What a learner keeps of its data: clumps, then singlets, which have a mean alone; the largest where not all fit.

    A mean is its row times `mean_scale` plus `mean_offset`, where these are given. The first v rows are clumps, with
    variances exp(variance_logs * log_scale + log_offset). Of a full mixture `correlations` hold, row by row, what is
    below the diagonal of the Cholesky factor of a clump's correlations, e = d (d - 1) / 2, times the clump's
    `correlation_steps`; the diagonal makes each row of unit length. `variances` is an older form of the logs.
    Components, where they are told, are in the same scales: with them a learner goes on where the sender is.
    """

    which: Annotated[str, Meta(pattern=MODEL_PATTERN)]
    model_epoch: Count
    n_clumps: Annotated[Count, Meta(description="in the learner; as many of the largest as fit are sent")]
    counts: ClumpCounts
    means: ClumpRows
    variances: ClumpRows | None = None
    mean_scale: ColumnScale | None = None
    mean_offset: ColumnScale | None = None
    variance_scale: Annotated[ColumnScale | None, Meta(description="for int8 variances, which are >= 0")] = None
    covariance: Annotated[str, Meta(pattern="^(diagonal|full)$", description="of the mixture")] = "diagonal"
    n_singlets: Annotated[Count, Meta(description="in the learner")] = 0
    total: Annotated[NonNegative, Meta(description="samples that all of them stand for, sent or not")] = 0.0
    memory: Annotated[Count, Meta(description="points that clumps, singlets and the epoch share; 0: not told")] = 0
    clump_points: Annotated[NonNegative, Meta(description="of these, what the clumps take; a singlet takes one")] = 0.0
    epoch_size: Annotated[Count, Meta(description="of these, what the epoch takes")] = 0
    components: Annotated[ClumpIds | None, Meta(description="id of the likeliest component of each")] = None
    variance_logs: ClumpLogs | None = None
    log_scale: ColumnScale | None = None
    log_offset: ColumnScale | None = None
    correlations: ClumpCodes | None = None
    correlation_steps: ClumpSteps | None = None
    shift: Annotated[ColumnScale | None, Meta(description="of the units that the learner measures its prior in")] = None
    scale: Annotated[ColumnScale | None, Meta(description="of these units, above 0")] = None
    component_ids: Annotated[Ids | None, Meta(description="components of the learner's newest model")] = None
    component_counts: Annotated[ComponentCounts | None, Meta(description="samples of each, not below 0")] = None
    component_means: Annotated[ComponentRows | None, Meta(description="in 32767ths of mean_scale")] = None
    component_variance_logs: ComponentLogs | None = None
    component_correlations: ComponentCodes | None = None
    component_correlation_steps: ComponentSteps | None = None


class Exemplar(Message, tag="exemplar", kw_only=True, frozen=True):
    """One exemplar frame that was chosen, or chosen again with another share; `removed` ids are gone."""

    id: Index
    exemplar_frame: Index = -1
    exemplar_t_ns: Nanoseconds = 0
    share: Annotated[Share, Meta(description="of the recent frames nearest to it")] = 0.0
    component: Annotated[Index, Meta(description="component that it is an example of, or -1")] = -1
    role: Annotated[
        Name,
        Meta(description="frame; of a scene: most_typical, least_typical, newest; of a topic the same after topic_"),
    ] = "frame"
    label: Name = ""
    removed: IdVector | None = None
    thumbnail: Thumbnail = b""
    topic_map: Annotated[TopicMap | None, Meta(description="of a frame, as an alert's")] = None
    map_topics: Annotated[MapIds | None, Meta(description="ids of topics")] = None


class VisitKind(Message, tag="visits", kw_only=True, frozen=True):
    """One kind of visits under a fixed camera, told again when more of it came; `removed` ids are remembered no more.

    Times are stream times of the ends of visits: `times` are those of the newest, the oldest first. `box` (shares) is
    where in frame `picture_frame` the picture was cut out.
    """

    id: Index
    count: Annotated[Count, Meta(description="visits of this kind, all")] = 0
    first_t_ns: Annotated[Nanoseconds, Meta(description="of the first")] = 0
    last_t_ns: Annotated[Nanoseconds, Meta(description="of the last")] = 0
    times: Annotated[VisitTimes | None, Meta(description="of the newest visits")] = None
    watched_s: Annotated[NonNegative | None, Meta(description="judged so far, seconds")] = None
    label: Name = ""
    removed: IdVector | None = None
    picture_frame: Annotated[Index, Meta(description="that the picture is of, or -1")] = -1
    picture_t_ns: Nanoseconds = 0
    box: Annotated[Boxes | None, Meta(description="x0, y0, x1, y1 of the cut-out, one row")] = None
    thumbnail: Thumbnail = b""


class Encoder(Message, tag="encoder", kw_only=True, frozen=True):
    """How patches become the rows that models speak of: row = descriptor @ basis + offset, float32.

    With it a station describes a picture of its own as the agent would. `settings` are those of the descriptors, each
    as JSON, by the names of the config's section [features]; `width` and `height` are of the box that frames fit into.
    """

    hash: Name
    basis: Annotated[np.ndarray, array_of("float32", "r", "d")]
    offset: Annotated[np.ndarray, array_of("float32", "d")]
    takes_out_brightness: Annotated[bool, Meta(description="a patch's own brightness is no part of its row")] = False
    settings: Annotated[dict[Name, Text], Meta(max_length=64)] = {}


class GateChange(Message, tag="gate", kw_only=True, frozen=True):
    """The gate's reason changed; hysteresis keeps a flickering reason to one message."""

    state: Name
    reason: Name = ""
    previous: Name = ""
    scene_change: bool = False


class SourceChange(Message, tag="source", kw_only=True, frozen=True):
    """The source's state changed: connecting, live, stalled, frozen, dark, overexposed, obstructed, failed, ended."""

    state: Name
    previous: Name = ""
    detail: Annotated[Text, Meta(description="secrets removed")] = ""
    stream_epoch: Count = 0
    width: Count = 0
    height: Count = 0


class LogNotice(Message, tag="log", kw_only=True, frozen=True):
    """A rare notice for people: disk_full, degraded, checkpoint_refused, ..."""

    level: Annotated[str, Meta(pattern="^(info|warning|error)$")] = "info"
    code: Name
    text: Text = ""
    count: Annotated[Count, Meta(description="occurrences since the last notice of this code")] = 1


class Summary(Message, tag="summary", kw_only=True, frozen=True):
    """The end of a run, the same figures as summary.json."""

    frames: Count
    accepted: Count
    refused: Counts = {}
    dropped: Count = 0
    events: Count = 0
    alerts: Count = 0
    hash: Name = ""
    exit_code: Annotated[int, Meta(ge=0, le=255)] = 0
    reason: Text = ""


MESSAGES: tuple[type[Message], ...] = (
    Status, Score, Alert, Model, Clumps, Exemplar, GateChange, SourceChange, LogNotice, Summary, Scores, Encoder,
    VisitKind,
)  # fmt: skip


def kind_of(message: Message | type[Message]) -> str:
    """Return the message's kind, which is also its topic's last part."""
    return str(message.__struct_config__.tag)


def finite_or_none(value: float) -> float | None:
    """Return a plain float, or None for NaN and infinities, which no message may carry."""
    number = float(value)
    return number if abs(number) < float("inf") else None


class Headers:
    """Makes message headers: who sends, and a sequence of its own for every kind.

    Used by one thread. `epoch` must be higher at each start of the agent (a boot counter or UTC seconds).
    """

    def __init__(self, agent: str, run: str, boot: str, epoch: int):
        self._common = {"agent": agent, "run": run, "boot": boot, "epoch": epoch}
        self._next: dict[str, int] = {}

    def next(
        self,
        message: type[Message],
        *,
        t_ns: int,
        mono_ns: int,
        wall_ns: int,
        source_ns: int | None = None,
        frame: int = -1,
        valid: bool = True,
    ) -> dict[str, Any]:
        """Return the header fields of the next message of this type, to be passed as keywords."""
        kind = kind_of(message)
        sequence = self._next.get(kind, 0)
        self._next[kind] = sequence + 1
        return {
            **self._common,
            "sequence": sequence,
            "t_ns": t_ns,
            "mono_ns": mono_ns,
            "wall_ns": wall_ns,
            "source_ns": source_ns,
            "frame": frame,
            "valid": valid,
        }

    def peek(
        self, *, t_ns: int, mono_ns: int = 0, wall_ns: int = 0, source_ns: int | None = None, frame: int = -1
    ) -> dict[str, Any]:
        """Return a header for what is not sent as it is: it takes no sequence."""
        times = {"t_ns": t_ns, "mono_ns": mono_ns, "wall_ns": wall_ns, "source_ns": source_ns, "frame": frame}
        return {**self._common, "sequence": 0, **times}

    def sequences(self) -> dict[str, int]:
        """Return the next sequence of every kind, for Status: readers find lost messages by it at each heartbeat."""
        return dict(self._next)
