"""Measure the transport: messages a second and latency over ZeroMQ, bytes on thin links, error of the ground's model.

Rows of `bench transport` have a `what`: `topics` (bytes an hour of each topic of an agent with its defaults on a
quiet camera), `live` (a publisher and a subscriber in two processes), `thin` (what a
preset carries, by count of real frames), `dive` (alerts over a simulated bad link) and `mirror` (the ground's model
against the bytes it received).
"""

import argparse
import collections
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from stillwatch.base import AgentError, RealClock, UsageError, VirtualClock
from stillwatch.outlet import LONGEST_NS
from stillwatch.tools.shared import print_rows
from stillwatch.transport.disk import open_run
from stillwatch.transport.live import Publisher, Received, Subscriber
from stillwatch.transport.mirror import (
    MixtureSummary,
    ModelEncoder,
    ModelMirror,
    covariance_of,
    posterior_gaussians,
    summary_of,
)
from stillwatch.transport.thin import (
    PRESETS,
    AlertArrived,
    LinkModel,
    LinkSimulator,
    Outbox,
    PacketArrived,
    Preset,
    ReceiverLog,
    ThinAlert,
    ThinCodec,
    ThinReceiver,
    ThinSender,
)
from stillwatch.transport.wire import PATCH_MODEL, EventKind, encode, messages

AGENT = "bench"
WALL_NS = 1_795_824_000_000_000_000
BAD_LINK = LinkModel(loss=0.5, duplicate=0.05, outage_every_s=120.0, outage_s=30.0)
RATES_HZ = {"score": (0.0, 200.0), "alert": (0.0, 20.0)}  # 0: as fast as it goes
THUMBNAIL_BYTES = 8000
RATE_HZ, WORLD_HZ = 12.5, 10.0  # frames a second of the camera that is meant, and of the room's stamps
CAMERAS = {  # that see nothing happen: the window's light drifts, or nothing but the sensor's noise and a curtain
    "room": "synthetic:room?quiet=1",
    "still": "synthetic:room?quiet=1&drift=0",
}
_WARM_UP_S = 0.5  # after the first message
_PATIENCE_S = 30.0  # on a busy machine another process and its connection take a while; then it is not coming
Row = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each live measurement (default: %(default)s)")
    parser.add_argument("--hours", type=float, default=2.0, help="of each simulated dive (default: %(default)s)")
    parser.add_argument("--frames", type=int, default=3000, help="of each quiet camera (default: %(default)s)")
    parser.add_argument("--only", choices=("topics", "live", "thin", "dive", "mirror"), help="one part only")


def main(args: argparse.Namespace) -> int:
    """Run the parts and print their rows; raise `UsageError` for a measurement of no length."""
    if not args.seconds > 0:
        raise UsageError(f"--seconds: {args.seconds:g} is not above 0")
    parts = {
        "topics": lambda: topic_rows(args.frames),
        "live": lambda: live_rows(args.seconds),
        "thin": thin_rows,
        "dive": lambda: dive_rows(args.hours),
        "mirror": mirror_rows,
    }
    rows = [row for name, part in parts.items() if args.only in (None, name) for row in part()]
    print_rows(rows, as_json=args.json)
    return 0


def topic_rows(n_frames: int, cameras: Sequence[str] = tuple(CAMERAS)) -> list[Row]:
    """Run an agent with its defaults on each quiet camera and count its messages by topic, as stored and as sent.

    Counted is the second half, when models are settled, at `RATE_HZ` frames a second, without what is told because a
    run ends; a heartbeat as seldom as one comes while other messages do, by real time.
    """
    return [row for camera in cameras for row in _camera_rows(camera, n_frames)]


def _camera_rows(camera: str, n_frames: int) -> list[Row]:
    program = "import sys; from stillwatch.tools.cli import main; sys.exit(main(sys.argv[1:]))"
    n_bytes: collections.Counter[str] = collections.Counter()
    count: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        options = ["run", "-q", "--source", f"{CAMERAS[camera]}&n_frames={n_frames}", "--out", folder]
        options += ["--set", "publish.endpoint="]
        subprocess.run([sys.executable, "-c", program, *options], check=True, stdout=subprocess.DEVNULL)
        run = open_run(folder)
        half_ns = round(n_frames / 2 / WORLD_HZ * 1e9)
        ends = False
        for kind, message in run.messages():
            ends = ends or message.frame >= n_frames - 2 * WORLD_HZ
            if ends and kind in ("model", "clumps"):
                continue
            if message.t_ns >= half_ns and kind not in ("source", "summary"):  # which a run has once, not once an hour
                n_bytes[kind] += run.payload_bytes
                count[kind] += int(run.payload_bytes > 0)
    hour = RATE_HZ * 3600 / (n_frames / 2)
    beats = 3600e9 / LONGEST_NS
    rows: list[Row] = [
        {
            "what": "topics",
            "camera": camera,
            "kind": "scores" if kind == "score" else kind,
            "messages_per_hour": beats if kind == "status" else count[kind] * hour,
            "bytes_per_hour": beats * n_bytes[kind] / count[kind] if kind == "status" else n_bytes[kind] * hour,
        }
        for kind in sorted(n_bytes, key=lambda kind: -n_bytes[kind])
    ]
    total = sum(float(row["bytes_per_hour"]) for row in rows)
    return [
        *rows,
        {"what": "topics", "camera": camera, "kind": "all", "messages_per_hour": None, "bytes_per_hour": total},
    ]


def live_rows(seconds: float) -> list[Row]:
    """Measure each kind at full speed and at a calm rate; the publisher is another process."""
    return [_live_row(kind, rate_hz, seconds) for kind, rates in RATES_HZ.items() for rate_hz in rates]


def _live_row(kind: str, rate_hz: float, seconds: float) -> Row:
    """Return one measurement. At full speed the sender waits only when its queue is full, as counted in `lost`."""
    program = f"from stillwatch.tools.bench.transport import publish; publish({kind!r}, {rate_hz})"
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    clock = RealClock()
    assert process.stdout is not None
    subscriber = Subscriber(process.stdout.readline().strip(), clock=clock, agent=AGENT, queue=1000)
    latencies: list[float] = []
    first = last = payload_bytes = 0
    try:
        subscriber.open()
        arrivals = _arrivals(subscriber, kind)
        next(arrivals)  # a measurement that begins by the clock may end before the connection is
        begin = now = time.perf_counter() + _WARM_UP_S
        while now < begin + seconds:
            item = next(arrivals)
            now = time.perf_counter()
            if now >= begin:
                latencies.append((clock.monotonic_ns() - item.message.mono_ns) / 1e6)
                first = first or item.message.sequence
                last, payload_bytes = item.message.sequence, len(item.payload)
        measured_s = now - begin
    finally:
        subscriber.close()
        process.kill()
        process.wait()
        process.stdout.close()
    p50, p95, p99 = np.percentile(latencies, [50, 95, 99]).tolist()
    return {
        "what": "live",
        "kind": kind,
        "rate_hz": rate_hz or None,
        "bytes": payload_bytes,
        "messages_per_s": len(latencies) / measured_s,
        "p50_ms": p50,
        "p95_ms": p95,
        "p99_ms": p99,
        "max_ms": max(latencies),
        "lost": last - first + 1 - len(latencies),
    }


def _arrivals(subscriber: Subscriber, kind: str) -> Iterator[Received]:
    """Yield the messages of a kind as they come; raise `AgentError` where none does for _PATIENCE_S."""
    end = time.perf_counter() + _PATIENCE_S
    while time.perf_counter() < end:
        item = subscriber.recv(100)
        if isinstance(item, Received) and item.kind == kind:
            yield item
            end = time.perf_counter() + _PATIENCE_S
    raise AgentError(f"bench transport: no {kind} came in {_PATIENCE_S:.0f} s; try on a machine less busy")


def publish(kind: str, rate_hz: float) -> None:
    """Publish for ever, as fast as the subscriber takes it or at a rate: what the child process runs."""
    clock = RealClock()
    publisher = Publisher("tcp://127.0.0.1:0", AGENT, queue=64, clock=clock)
    publisher.open()
    print(publisher.bound_endpoint, flush=True)
    sequence = 0
    due = time.perf_counter()
    while True:
        sent = publisher.send(kind, encode(_message(kind, sequence, clock)))
        sequence += 1
        if rate_hz:
            due += 1.0 / rate_hz
            publisher.poll(max(round((due - time.perf_counter()) * 1000), 0))
        elif not sent or sequence % 16 == 0:
            publisher.poll(0 if sent else 1)


def _message(kind: str, sequence: int, clock: RealClock) -> messages.Message:
    now_ns = clock.monotonic_ns()
    head: dict[str, Any] = {
        "agent": AGENT,
        "run": "bench",
        "boot": "bench",
        "epoch": 1,
        "sequence": sequence,
        "t_ns": now_ns,
        "mono_ns": now_ns,
        "wall_ns": WALL_NS,
    }
    if kind == "score":
        return messages.Score(**head, value=3.2, rarity=120.0, frame_surprise=44.0)
    return messages.Alert(**head, id=sequence % 8, phase="new", thumbnail=bytes(THUMBNAIL_BYTES))


def thin_rows() -> list[Row]:
    """Return for each preset what an alert and two models take, and how many go into an hour."""
    rows = []
    for preset in PRESETS.values():
        alert = len(ThinCodec().encode_alert(ThinAlert(1, EventKind.NOVEL, WALL_NS)))
        sizes = {name: _model_on_link(preset, _model(*shape)) for name, shape in MODELS.items()}
        per_slot = preset.up.frames_per_slot * ((preset.up.frame_bytes - 6) // 26)
        rows.append(
            {
                "what": "thin",
                "preset": preset.name,
                "alert_bytes": alert,
                "bytes_per_hour": preset.up.bytes_per_hour,
                "alerts_per_hour": per_slot * preset.up.slots_per_hour,
            }
            | {f"{name}_bytes": n_bytes for name, (n_bytes, _) in sizes.items()}
            | {f"{name}_minutes": seconds / 60 for name, (_, seconds) in sizes.items()}
        )
    return rows


def _model_on_link(preset: Preset, model: messages.Model) -> tuple[int, float]:
    """Return the bytes and seconds until the whole model is across a perfect link."""
    with tempfile.TemporaryDirectory() as folder:
        world = _World(pathlib.Path(folder), preset, LinkModel())
        encoder = ModelEncoder()
        encoder.update(model)
        world.vehicle.mirror(0, encoder)
        last_s = 0
        while world.second < 24 * 3600:
            if any(isinstance(item, PacketArrived) for item in world.step()):
                last_s = world.second
            if not world.vehicle.scheduler.count("model"):
                break
        return world.ground.counters["bytes"], float(last_s)


def dive_rows(hours: float) -> list[Row]:
    """Return for each preset how alerts fare beside a changing model, with half of the frames lost and outages."""
    return [_dive_row(preset, hours) for preset in PRESETS.values()]


def _dive_row(preset: Preset, hours: float) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        world = _World(pathlib.Path(folder), preset, BAD_LINK)
        encoder = ModelEncoder()
        world.vehicle.mirror(0, encoder)
        random = np.random.default_rng(1)
        raised: dict[int, int] = {}
        latencies = []
        while world.second < (hours + 3) * 3600 and (world.second < hours * 3600 or len(world.outbox)):
            if world.second < hours * 3600 and random.random() < 20 / 3600:
                raised[len(raised)] = world.second
                world.vehicle.alert(ThinAlert(len(raised) - 1, EventKind.NOVEL, WALL_NS), world.second * 1_000_000_000)
            if world.second % 900 == 0 and world.second < hours * 3600:
                encoder.update(_model(40, 16, "diagonal", world.second))
            for item in world.step():
                if isinstance(item, AlertArrived):
                    latencies.append(world.second - raised[item.alert.event])
        p50, p95 = np.percentile(latencies, [50, 95]).tolist()
        return {
            "what": "dive",
            "preset": preset.name,
            "hours": hours,
            "loss": BAD_LINK.loss,
            "alerts": len(raised),
            "arrived": len(latencies),
            "p50_s": p50,
            "p95_s": p95,
            "max_s": max(latencies),
            "bytes_per_hour": world.vehicle.scheduler.counters["bytes"] / world.second * 3600,
            "most_bytes_10_min": world.most_bytes(),
            "budget_10_min": preset.up.window_bytes,
        }


MODELS: dict[str, tuple[int, int, str]] = {"diagonal_100x20": (100, 20, "diagonal"), "full_30x20": (30, 20, "full")}
STEPS = (64, 128, 256, 512, 1024, 2048, 3000, 4096, 5000, 6500, 8000, 10_000)


def mirror_rows() -> list[Row]:
    """Return the share of samples that the ground assigns as the vehicle does, against bytes received."""
    rows = []
    for name, shape in MODELS.items():
        model = _model(*shape)
        encoder, mirror = ModelEncoder(), ModelMirror()
        encoder.update(model)
        samples = _samples(summary_of(model))
        theirs = _assign(summary_of(model), samples)
        received, steps = 0, list(STEPS)
        while steps:
            packet = encoder.next_packet(57)
            if packet is None or received + len(packet[1]) > steps[0]:
                summary = mirror.summary()
                ours = None if summary is None else _assign(summary, samples)
                rows.append(
                    {
                        "what": "mirror",
                        "model": name,
                        "bytes": steps.pop(0),
                        "received_bytes": received,
                        "components": 0 if summary is None else len(summary.ids),
                        "assigned_as_vehicle": 0.0 if ours is None else float(np.mean(ours == theirs)),
                        "mean_error": None if summary is None else _mean_error(summary_of(model), summary),
                    }
                )
                if packet is None:
                    break
            encoder.acknowledge(packet[0])
            mirror.take_packet(packet[1])
            received += len(packet[1])
    return rows


def _model(n_components: int, n_dims: int, covariance: str, seed: int = 0) -> messages.Model:
    """Return a mixture with overlapping components, as a learner's are: neighbours a few deviations apart."""
    random = np.random.default_rng([n_components, n_dims])
    drift = np.random.default_rng(seed)
    means = random.normal(0.0, 2.0, (n_components, n_dims)) + drift.normal(0.0, 0.05, (n_components, n_dims))
    counts = np.sort(random.pareto(1.2, n_components) * 100.0 + 20.0)[::-1]
    roots = random.normal(0.0, 0.25, (n_components, n_dims, n_dims)) + np.eye(n_dims) * random.uniform(0.5, 1.2, n_dims)
    full = roots @ roots.transpose(0, 2, 1)
    rows, columns = np.tril_indices(n_dims)
    second = full[:, rows, columns] if covariance == "full" else np.einsum("kii->ki", full)
    scale = np.eye(n_dims)[rows, columns] if covariance == "full" else np.ones(n_dims)
    return messages.Model(
        agent=AGENT,
        run="bench",
        boot="bench",
        epoch=1,
        sequence=1,
        t_ns=0,
        mono_ns=0,
        wall_ns=WALL_NS,
        which=PATCH_MODEL,
        covariance=covariance,
        n_dims=n_dims,
        n_components=n_components,
        model_epoch=1 + seed,
        ids=np.arange(n_components),
        counts=counts,
        weights=counts / counts.sum(),
        means=means,
        variances=None if covariance == "full" else second,
        covariances=second if covariance == "full" else None,
        prior_mean=np.zeros(n_dims),
        prior_strength=1.0,
        prior_dof=n_dims + 2.0,
        prior_scale=scale,
        concentration=1.0,
    )


def _samples(summary: MixtureSummary, n: int = 4000) -> np.ndarray:
    random = np.random.default_rng(5)
    gaussians = posterior_gaussians(summary)
    which = random.choice(len(gaussians), size=n, p=summary.counts / summary.counts.sum())
    noise = random.normal(size=(n, summary.n_dims))
    factors = [np.linalg.cholesky(_matrix(covariance_of(gaussian))) for gaussian in gaussians]
    return np.array([gaussians[k].mean + factors[k] @ noise[i] for i, k in enumerate(which)])


def _matrix(covariance: np.ndarray) -> np.ndarray:
    return np.diag(covariance) if covariance.ndim == 1 else covariance


def _assign(summary: MixtureSummary, samples: np.ndarray) -> np.ndarray:
    """Return the id of the most probable component of each sample, with Gaussian densities."""
    scores = []
    for gaussian, count in zip(posterior_gaussians(summary), summary.counts, strict=True):
        factor = np.linalg.cholesky(_matrix(covariance_of(gaussian)))
        z = np.linalg.solve(factor, (samples - gaussian.mean).T)
        scores.append(np.log(count) - np.log(np.diag(factor)).sum() - 0.5 * np.sum(z * z, axis=0))
    return summary.ids[np.argmax(np.array(scores), axis=0)]


def _mean_error(theirs: MixtureSummary, ours: MixtureSummary) -> float:
    """Return the root mean square distance of the known components' means, in the vehicle's standard deviations."""
    known = {int(key): gaussian.mean for key, gaussian in zip(ours.ids, posterior_gaussians(ours), strict=True)}
    errors = [
        (known[int(key)] - gaussian.mean) / np.sqrt(np.diag(_matrix(covariance_of(gaussian))))
        for key, gaussian in zip(theirs.ids, posterior_gaussians(theirs), strict=True)
        if int(key) in known
    ]
    return float(np.sqrt(np.mean(np.square(errors))))


class _World:
    """Both ends of a thin link on a virtual clock, a second a step."""

    def __init__(self, folder: pathlib.Path, preset: Preset, model: LinkModel):
        self.second = 0
        self.clock = VirtualClock(0, WALL_NS)
        codec = ThinCodec(1)
        self.outbox = Outbox(folder / "outbox", clock=self.clock)
        self.vehicle = ThinSender(preset.up, codec, self.outbox, now_ns=0)
        log = ReceiverLog(folder / "received", clock=self.clock)
        self.ground = ThinReceiver(preset.down, codec, log, now_ns=0)
        self._link = LinkSimulator(1, replace(model, delay_s=preset.up.round_trip_s / 2))
        self._sent: list[tuple[int, int]] = []

    def step(self) -> list[object]:
        self.second += 1
        self.clock.advance_ns(1_000_000_000)
        now_ns = self.clock.monotonic_ns()
        for frame in self._link.receive(now_ns, 1):
            self.vehicle.feed(frame, now_ns)
        for frame in self.vehicle.poll(now_ns):
            self._sent.append((self.second, len(frame)))
            self._link.send(frame, now_ns, 0)
        arrived: list[object] = []
        for frame in self._link.receive(now_ns, 0):
            arrived += self.ground.feed(frame, now_ns)
        for frame in self.ground.poll(now_ns):
            self._link.send(frame, now_ns, 1)
        return arrived

    def most_bytes(self) -> int:
        """Return the most that any closed window of 10 minutes held."""
        seconds = np.array([second for second, _ in self._sent])
        sums = np.concatenate([[0], np.cumsum([n_bytes for _, n_bytes in self._sent])])
        begins = np.searchsorted(seconds, seconds - 600, side="left")
        return int(np.max(sums[1:] - sums[begins]))
