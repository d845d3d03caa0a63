"""A vehicle, a bad link and a ground station on a virtual clock: what thin-link tests drive."""

from collections import Counter, deque

import numpy as np

from stillwatch.base.clock import VirtualClock
from stillwatch.transport.thin.codec import ThinCodec
from stillwatch.transport.thin.link import ThinReceiver, ThinSender
from stillwatch.transport.thin.linksim import LinkModel, LinkSimulator
from stillwatch.transport.thin.outbox import Number, Outbox
from stillwatch.transport.thin.presets import Preset
from stillwatch.transport.thin.receiver_log import AlertArrived, ReceiverLog
from stillwatch.transport.thin.vehicle import VehicleLink
from stillwatch.transport.wire.messages import Model

START_WALL_NS = 1_795_824_000_000_000_000
BAD_LINK = LinkModel(
    loss=0.5, duplicate=0.05, reorder=0.05, damage=0.02, delay_s=1.0, jitter_s=0.5, outage_every_s=120.0, outage_s=30.0
)


class World:
    """Both ends and the link between them, moved on a second at a time.

    `sent_bytes` holds (second, bytes) of every transmission of the vehicle; `arrivals` all that the ground reported,
    with the second; `first_sent` when each alert was first handed to the modem.
    """

    def __init__(self, folder, preset: Preset, model: LinkModel, seed: int = 0, key: bytes = b"key"):
        self.clock = VirtualClock(0, START_WALL_NS)
        self.codec = ThinCodec(5, key)
        self.outbox = Outbox(folder / "outbox", clock=self.clock)
        self.log = ReceiverLog(folder / "received", clock=self.clock)
        self.vehicle = ThinSender(preset.up, self.codec, self.outbox, now_ns=0)
        self.ground = ThinReceiver(preset.down, self.codec, self.log, now_ns=0)
        self.link = LinkSimulator(seed, model)
        self.second = 0
        self.frames: list[tuple[int, bytes]] = []
        self.arrivals: list[tuple[int, object]] = []
        self.received: Counter[Number] = Counter()

    def step(self) -> list[object]:
        """Let one second pass; return what arrived in it."""
        self.second += 1
        self.clock.advance_ns(1_000_000_000)
        now_ns = self.clock.monotonic_ns()
        for frame in self.vehicle.poll(now_ns):
            self.frames.append((self.second, frame))
            self.link.send(frame, now_ns, 0)
        arrived = [item for frame in self.link.receive(now_ns, 0) for item in self.ground.feed(frame, now_ns)]
        for frame in self.ground.poll(now_ns):
            self.link.send(frame, now_ns, 1)
        for frame in self.link.receive(now_ns, 1):
            self.vehicle.feed(frame, now_ns)
        self.arrivals += [(self.second, item) for item in arrived]
        for item in arrived:
            if isinstance(item, AlertArrived):
                self.received[Number(item.alert.incarnation, item.alert.delivery)] += 1
        return arrived

    def most_bytes_in_10_minutes(self) -> int:
        """Return the most that any closed window of 600 s held, counted from what was handed to the modem."""
        window: deque[tuple[int, int]] = deque()
        total = most = 0
        for second, frame in self.frames:
            window.append((second, len(frame)))
            total += len(frame)
            while window[0][0] < second - 600:
                total -= window.popleft()[1]
            most = max(most, total)
        return most


def make_vehicle(folder, clock, preset: Preset, port: int, codec: ThinCodec) -> VehicleLink:
    """Return the agent's whole end of a link whose modem driver listens on `port` of this machine."""
    vehicle = VehicleLink(
        folder / "outbox",
        clock=clock,
        budget=preset.up,
        codec=codec,
        listen=("127.0.0.1", 0),
        peer=("127.0.0.1", port),
        heartbeat_s=300.0,
        thumbnail_px=96,
        thumbnail_bytes=600,
        outbox_bytes=4_000_000,
    )
    vehicle.connect()
    return vehicle


def make_model(seed: int, n_components: int = 12, n_dims: int = 6, epoch: int = 1, drift: float = 0.0) -> Model:
    """Return a diagonal mixture message; `drift` moves its means a little, as learning does."""
    random = np.random.default_rng(seed)
    means = random.normal(0.0, 5.0, (n_components, n_dims))
    variances = random.uniform(0.3, 2.0, (n_components, n_dims))
    counts = np.sort(random.uniform(50.0, 5000.0, n_components))[::-1]
    means = means + drift * np.random.default_rng(seed + 1).normal(0.0, 1.0, means.shape)
    return Model(
        agent="cam1",
        run="r",
        boot="b",
        epoch=0,
        sequence=epoch,
        t_ns=0,
        mono_ns=0,
        wall_ns=0,
        which="patches",
        covariance="diagonal",
        n_dims=n_dims,
        n_components=n_components,
        model_epoch=epoch,
        ids=np.arange(n_components),
        counts=counts,
        weights=counts / counts.sum(),
        means=means,
        variances=variances,
        prior_mean=np.zeros(n_dims),
        prior_strength=1.0,
        prior_dof=n_dims + 2.0,
        prior_scale=np.ones(n_dims),
        concentration=1.0,
    )
