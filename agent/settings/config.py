"""Every setting there is, with its type, default and range: the first file to open.

Read by agent/settings/reader.py, which turns a TOML file into a `Config` or lists everything wrong with it.
Defaults live here; configs/demo.toml states all of them and a test holds both equal. No setting is read
from the environment, and none is changed while the agent runs.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Fraction = Annotated[float, Meta(ge=0.0, le=1.0)]
NonNegative = Annotated[float, Meta(ge=0.0)]
Polygon = list[tuple[Fraction, Fraction]]
MAX_EPOCH_FRAMES = 128  # bounds the thumbnails that wait for the learners
AGENT_ID = r"^[a-z0-9][a-z0-9_-]{0,31}$"
SIZE = r"^([1-9][0-9]{0,4}x[1-9][0-9]{0,4})?$"
FORMAT = r"^[a-z0-9]{0,16}$"
ENDPOINT = r"^$|^tcp://.+:\d{1,5}$|^ipc://.+$"
CONTROL = r"^$|^auto$|^tcp://.+:\d{1,5}$|^ipc://.+$"
# What a text must be, in the words of a message.
PORT = r"(6553[0-5]|655[0-2]\d|65[0-4]\d\d|6[0-4]\d{3}|[1-5]\d{4}|\d{1,4})"
LOOPBACK = rf"^$|^(127\.0\.0\.1|localhost|\[::1\]):{PORT}$"
TEXTS = {
    AGENT_ID: "1 to 32 of a-z, 0-9, _ and -, the first a letter or digit",
    SIZE: "a size such as 1280x720, or empty",
    FORMAT: "a format such as mjpeg: at most 16 of a-z and 0-9",
    ENDPOINT: "an address: tcp://HOST:PORT, ipc://PATH or empty",
    LOOPBACK: "an address of this machine: 127.0.0.1:PORT, localhost:PORT, [::1]:PORT or empty",
    CONTROL: "an address: tcp://HOST:PORT, ipc://PATH, auto or empty",
}


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of the config file: frozen, and strict about unknown keys."""


class AgentConfig(_Section, frozen=True):
    """Who this agent is. `id` is part of every topic and message; `seed` of every random choice."""

    id: Annotated[str, Meta(pattern=AGENT_ID)] = "cam1"
    seed: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0


class SourceConfig(_Section, frozen=True):
    """Where frames come from, and the box (pixels) that the working size fits into, keeping its shape."""

    uri: str = "synthetic:transect"
    width: Annotated[int, Meta(ge=32, le=4096)] = 384
    height: Annotated[int, Meta(ge=32, le=4096)] = 288
    rate_hz: Annotated[float, Meta(ge=0.0, le=240.0)] = 0.0  # 0: every frame
    fallback_rate_hz: Annotated[float, Meta(gt=0.0, le=240.0)] = 10.0  # where the source gives no time stamps
    max_pixels: Annotated[int, Meta(ge=1024, le=268_435_456)] = 50_000_000
    open_timeout_s: Annotated[float, Meta(gt=0.0, le=600.0)] = 30.0
    stall_timeout_s: Annotated[float, Meta(gt=0.0, le=600.0)] = 5.0
    ring_frames: Annotated[int, Meta(ge=2, le=64)] = 4
    auto_rotate: bool = True  # turn pictures as EXIF or the container says
    black_level: Annotated[float, Meta(ge=0.0, le=1e9)] = 0.0  # of the sensor's own values, shown as 0
    white_level: Annotated[float, Meta(ge=0.0, le=1e9)] = 0.0  # shown as 255; 0: learnt once from the depth in use
    bayer: Literal["", "rggb", "bggr", "grbg", "gbrg"] = ""  # single-channel pictures are a colour mosaic
    rtsp_transport: Literal["tcp", "udp"] = "tcp"
    tls_verify: bool = False  # most cameras sign their own certificates
    camera_size: Annotated[str, Meta(pattern=SIZE)] = ""  # V4L2; empty: its default
    camera_format: Annotated[str, Meta(pattern=FORMAT)] = ""  # V4L2: mjpeg, yuyv422, ...
    reconnect_cap_s: Annotated[float, Meta(ge=1.0, le=60.0)] = 4.0  # longest pause between attempts, +-20 %
    nav_csv: str = ""  # CSV: t_s or time; latitude, longitude, depth_m, altitude_m, heading_deg; at most 10 s apart
    nav_start: str = ""  # ISO time of a file's first frame, for a nav_csv in absolute time; empty: its first row's


class GateConfig(_Section, frozen=True):
    """When a frame may not teach the model. Grey levels are of 0-255."""

    dark_level: Annotated[float, Meta(ge=0.0, le=255.0)] = 8.0
    bright_level: Annotated[float, Meta(ge=0.0, le=255.0)] = 247.0
    frozen_difference: Annotated[float, Meta(ge=0.0, le=10.0)] = 0.05
    frozen_after_s: Annotated[float, Meta(gt=0.0, le=3600.0)] = 5.0
    obstructed_after_s: Annotated[float, Meta(gt=0.0, le=3600.0)] = 5.0
    scene_change_after_s: Annotated[float, Meta(gt=0.0, le=3600.0)] = 5.0


class FeaturesConfig(_Section, frozen=True):
    """Dense patch descriptors and the frame descriptor. Pixels are of the working size.

    `gated_sift` is SIFT times min(contrast / gate_level, 1), with contrast and brightness appended: a nearly flat
    patch lies near zero instead of being noise scaled up. Contrast: grey levels between pixels two apart.
    """

    patch: Literal["gated_sift", "sift"] = "gated_sift"
    step_px: Annotated[int, Meta(ge=2, le=64)] = 8
    bin_px: Annotated[list[Annotated[int, Meta(ge=2, le=32)]], Meta(min_length=1, max_length=4)] = msgspec.field(
        default_factory=lambda: [4]
    )  # each a scale; the scales of one place make one descriptor
    window: Literal["gaussian", "flat"] = "gaussian"
    smoothing_px: Annotated[float, Meta(ge=0.0, le=8.0)] = 1.6  # blur of the image described, a camera's 0.5 included
    root_sift: bool = False
    contrast_threshold: Annotated[float, Meta(ge=0.0, le=255.0)] = 1.0  # below: flat
    gate_level: Annotated[float, Meta(gt=0.0, le=512.0)] = 50.0
    colour_constancy: bool = False
    mask: list[Polygon] = msgspec.field(default_factory=list)  # areas never looked at
    mask_png: str = ""  # white where never looked at; scaled to the frame


class EncoderConfig(_Section, frozen=True):
    """The frozen projections. `file` empty: fitted on the first `warmup_frames` accepted frames."""

    kind: Literal["pca", "random"] = "pca"  # of patches
    frame_kind: Literal["pca", "random"] = "random"  # a few first frames do not span what will come
    file: str = ""
    warmup_frames: Annotated[int, Meta(ge=2, le=1000)] = 12
    patch_dims: Annotated[int, Meta(ge=2, le=64)] = 16
    frame_dims: Annotated[int, Meta(ge=2, le=64)] = 20
    whiten: bool = False


class MixtureConfig(_Section, frozen=True):
    """One MB-VDP mixture. `memory` counts data points, as in the paper; half of it is the epoch."""

    memory: Annotated[int, Meta(ge=20, le=200_000)] = 4000
    horizon: Annotated[int, Meta(ge=100, le=10**12)] = 10_000_000
    concentration: Annotated[float, Meta(gt=0.0, le=1e6)] = 1.0
    prior_scale: Annotated[float, Meta(gt=0.0, le=1e3)] = 0.05  # a component's covariance, in the data's own spread
    max_components: Annotated[int, Meta(ge=1, le=1000)] = 80
    max_iterations: Annotated[int, Meta(ge=1, le=1000)] = 30
    halflife: Annotated[int, Meta(ge=0, le=10**12)] = 0  # samples after which what was learnt counts half; 0: never

    @property
    def epoch_size(self) -> int:
        """Samples of one epoch: the other half of the memory is left to the clumps."""
        return self.memory // 2


class TopicsConfig(_Section, frozen=True):
    """The topic model: what is in view. `memory` counts words; half of it is the epoch."""

    memory: Annotated[int, Meta(ge=200, le=200_000)] = 2000
    document_groups: Annotated[int, Meta(ge=1, le=1000)] = 64  # frames whose shares are kept apart
    prior_scale: Annotated[float, Meta(gt=0.0, le=1e3)] = 0.2  # a topic's covariance, in the data's own spread
    least_gain: NonNegative = 1.0  # nats that each word of a new topic gains: textures are no Gaussians
    max_components: Annotated[int, Meta(ge=1, le=200)] = 32
    max_iterations: Annotated[int, Meta(ge=1, le=1000)] = 30
    halflife: Annotated[int, Meta(ge=0, le=10**12)] = 0  # words after which what was learnt counts half; 0: never
    share_every_s: Annotated[float, Meta(ge=0.0, le=3600.0)] = 1.0  # between two looks; told if they say more

    @property
    def epoch_size(self) -> int:
        """Words of one epoch: the other half of the memory is left to the clumps."""
        return self.memory // 2


class LearningConfig(_Section, frozen=True):
    """How samples reach the learners, and when a new model becomes active (counted in accepted frames)."""

    patch_share: Annotated[float, Meta(gt=0.0, le=1.0)] = 0.25
    first_epoch_frames: Annotated[int, Meta(ge=2, le=1000)] = 8
    epoch_frames: Annotated[int, Meta(ge=2, le=MAX_EPOCH_FRAMES)] = 32  # longest epoch, in accepted frames
    activation_delay_frames: Annotated[int, Meta(ge=1, le=1000)] = 12

    def delay_of(self, n_frames: int) -> int:
        """Accepted frames from the end of an epoch of that many until its model is active: two thirds for a short one.

        Those that a start learns in take less time. Sooner still, models know too little: more is told that is nothing.
        """
        is_short = n_frames < self.epoch_frames
        return -(-2 * self.activation_delay_frames // 3) if is_short else self.activation_delay_frames


class ExemplarsConfig(_Section, frozen=True):
    """StreamGreedy over frame descriptors. Thumbnails of the block and of the validation frames wait with them."""

    k: Annotated[int, Meta(ge=1, le=1000)] = 16  # exemplars kept
    block: Annotated[int, Meta(ge=1, le=10_000)] = 32  # frames offered together
    validation: Annotated[int, Meta(ge=2, le=100_000)] = 500  # frames sampled to judge by
    minimum_gain: NonNegative = 0.0  # of a swap, in mean squared distance of the sampled frames
    thumbnail_px: Annotated[int, Meta(ge=16, le=640)] = 160
    thumbnail_bytes: Annotated[int, Meta(ge=500, le=12_000)] = 8000  # a message holds no more


class NoveltyConfig(_Section, frozen=True):
    """How patch scores become one calibrated score a frame."""

    camera: Literal["auto", "fixed", "moving"] = "auto"  # auto: found from the frames, anew when it changes
    top_share: Annotated[float, Meta(gt=0.0, le=1.0)] = 0.1  # moving cameras: patches that make the score
    least_patches: Annotated[int, Meta(ge=1, le=10_000)] = 2  # smallest region that counts as novel
    smoothing_s: NonNegative = 0.0  # moving cameras: half-life of the score; 0: none
    halflife_s: Annotated[float, Meta(gt=0.0, le=1e8)] = 3600.0  # of everything that is usual here


class EventsConfig(_Section, frozen=True):
    """When a score becomes an alert, and how often a person may be called."""

    raise_rarity: Annotated[float, Meta(gt=1.0, le=1e9)] = 500.0  # one frame in N
    clear_rarity: Annotated[float, Meta(gt=1.0, le=1e9)] = 100.0
    min_frames: Annotated[int, Meta(ge=1, le=1000)] = 2  # rare frames in a row before an alert
    gap_s: NonNegative = 1.0  # an event ends when nothing was rare for this long
    cooldown_s: NonNegative = 1.5  # after an event, at the same place
    update_s: Annotated[float, Meta(ge=0.0, le=3600.0)] = 2.0  # between two messages about an open event
    longest_s: Annotated[float, Meta(gt=0.0, le=1e6)] = 120.0  # what lasts longer may become usual
    vanish_s: Annotated[float, Meta(gt=0.0, le=1e6)] = 10.0  # what was always there is missed after this long
    tell: Literal["first_of_kind", "rare", "every"] = "rare"  # of what comes again, visits, events, views: the seldom
    alerts_per_hour: Annotated[float, Meta(gt=0.0, le=3600.0)] = 60.0
    burst: Annotated[int, Meta(ge=1, le=1000)] = 30


class PublishConfig(_Section, frozen=True):
    """The live plane. An empty endpoint publishes nothing on a socket; the run folder is always written.

    Snapshots for late joiners are served one port above `endpoint`, commands two above where `control` is "auto".
    Endpoints that other machines can reach need both key files (stillwatch keygen), or the agent refuses to start.
    While other messages leave, a heartbeat that says nothing that people act on waits for up to ten seconds.
    """

    endpoint: Annotated[str, Meta(pattern=ENDPOINT)] = "tcp://127.0.0.1:5570"  # port 0: any
    control: Annotated[str, Meta(pattern=CONTROL)] = "auto"  # empty: no commands
    queue: Annotated[int, Meta(ge=1, le=10_000)] = 64  # messages that may wait for one slow subscriber
    heartbeat_s: Annotated[float, Meta(gt=0.0, le=60.0)] = 2.0
    key_file: str = ""  # the agent's NAME.key
    allow_file: str = ""  # public keys of those who may read ([data]) and command ([control])


class LinkConfig(_Section, frozen=True):
    """A thin link beside the live plane: a preset's name (transport/thin/presets.py), or empty for none."""

    preset: str = ""
    endpoint: str = ""  # udp://HOST:PORT of the program that drives the modem: one datagram a frame
    listen: str = "udp://127.0.0.1:0"  # where the ground's frames come in; port 0: any
    agent_number: Annotated[int, Meta(ge=0, le=255)] = 0  # this agent's on the link
    key_file: str = ""  # 64 hex digits shared with the ground; empty: frames are checked, not authenticated
    share: Annotated[float, Meta(gt=0.0, le=1.0)] = 1.0  # of the preset's slots that are ours
    thumbnail_px: Annotated[int, Meta(ge=8, le=256)] = 96
    thumbnail_bytes: Annotated[int, Meta(ge=0, le=8000)] = 1000  # 0: no thumbnails
    heartbeat_s: Annotated[float, Meta(gt=0.0, le=86_400.0)] = 300.0
    outbox_dir: str = ""  # alerts wait in AGENT_ID/ below it, kept over runs; empty: outbox/ beside the run folder
    outbox_bytes: Annotated[int, Meta(ge=65_536, le=10**9)] = 4_000_000


class MetricsConfig(_Section, frozen=True):
    """Figures for Prometheus (/metrics) and health (/healthz) over HTTP, on this machine alone."""

    endpoint: Annotated[str, Meta(pattern=LOOPBACK)] = ""  # 127.0.0.1:9570; empty: none


class StorageConfig(_Section, frozen=True):
    """What may be written: run folder, recording, outbox, checkpoints. `max_bytes` is of each log by itself."""

    max_bytes: Annotated[int, Meta(ge=1_000_000, le=10**14)] = 2_000_000_000
    min_free_bytes: Annotated[int, Meta(ge=0, le=10**14)] = 200_000_000
    max_age_days: Annotated[float, Meta(gt=0.0, le=3650.0)] = 365.0
    checkpoint_every_s: Annotated[float, Meta(gt=0.0, le=86_400.0)] = 60.0
    checkpoints_kept: Annotated[int, Meta(ge=1, le=100)] = 3
    record_frames: Literal["packets", "jpeg", "lossless"] = "packets"
    max_file_bytes: Annotated[int, Meta(ge=100_000, le=10**10)] = 16_000_000  # of one file of a log
    max_file_s: Annotated[float, Meta(ge=1.0, le=86_400.0)] = 3600.0


class ClipsConfig(_Section, frozen=True):
    """Video of each alert in the run folder's clips/: the camera's own packets, from a key frame, in MP4."""

    ring_bytes: Annotated[int, Meta(ge=0, le=10**9)] = 0  # packets held in memory, and of each clip; 0: no clips
    before_s: Annotated[float, Meta(ge=0.0, le=600.0)] = 5.0  # an event's beginning, at least
    after_s: Annotated[float, Meta(ge=0.0, le=600.0)] = 5.0  # the event was last seen
    max_bytes: Annotated[int, Meta(ge=1_000_000, le=10**13)] = 1_000_000_000  # of all clips: the oldest go first


class LimitsConfig(_Section, frozen=True):
    """What the whole process may have resident, libraries included; a config that will need more is refused."""

    memory_bytes: Annotated[int, Meta(ge=1_000_000, le=10**12)] = 400_000_000


class Config(_Section, frozen=True):
    """The whole configuration of one agent: one source, one process."""

    agent: AgentConfig = AgentConfig()
    source: SourceConfig = SourceConfig()
    gate: GateConfig = GateConfig()
    features: FeaturesConfig = FeaturesConfig()
    encoder: EncoderConfig = EncoderConfig()
    patches: MixtureConfig = MixtureConfig()
    scenes: MixtureConfig = MixtureConfig(memory=200, max_components=40)
    topics: TopicsConfig = TopicsConfig()
    learning: LearningConfig = LearningConfig()
    exemplars: ExemplarsConfig = ExemplarsConfig()
    novelty: NoveltyConfig = NoveltyConfig()
    events: EventsConfig = EventsConfig()
    publish: PublishConfig = PublishConfig()
    link: LinkConfig = LinkConfig()
    metrics: MetricsConfig = MetricsConfig()
    storage: StorageConfig = StorageConfig()
    clips: ClipsConfig = ClipsConfig()
    limits: LimitsConfig = LimitsConfig()
