"""Makes run folders by hand, from typed messages, for tests of reports, comparisons and exports."""

import cv2
import numpy as np

from stillwatch.base.clock import VirtualClock
from stillwatch.transport.disk.run_folder import RunFolder
from stillwatch.transport.wire import messages as m
from stillwatch.transport.wire.codec import encode

STEP_NS = 100_000_000
START_WALL_NS = 1_790_000_000_000_000_000
EVENTS = ((260, 300), (420, 470), (700, 716))  # frames of the made-up run that are novel


def thumbnail(i: int, novel: bool) -> bytes:
    """Return a small JPEG: a rippled floor, with a bright animal where something is novel."""
    y, x = np.mgrid[0:120, 0:160]
    floor = 90 + 30 * np.sin(x / 9 + i) * np.cos(y / 7 - i / 3) + y / 4
    image = np.dstack([floor + 30, floor + 10, floor - 20]).clip(0, 255).astype(np.uint8)
    if novel:
        cv2.ellipse(image, (40 + (i * 7) % 80, 60), (22, 9), 20, 0, 360, (60, 140, 250), -1, cv2.LINE_AA)
    return cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 70])[1].tobytes()


class RunMaker:
    """Publishes into one run folder what an agent would have."""

    def __init__(self, path, *, agent="cam1", run="20260101T000000Z-ab12", epoch=1, t0_ns=0):
        self.clock = VirtualClock(mono_ns=10**9, wall_ns=START_WALL_NS)
        self.folder = RunFolder(path, self.clock)
        self.headers = m.Headers(agent, run, "boot-1", epoch)
        self.t_ns = t0_ns
        self.lossy = lambda kind, sequence: False

    def send(self, kind, frame=-1, **fields):
        head = self.headers.next(
            kind, t_ns=self.t_ns, mono_ns=self.clock.monotonic_ns(), wall_ns=self.clock.wall_ns(), frame=frame
        )
        message = kind(**head, **fields)
        if not self.lossy(m.kind_of(message), message.sequence):
            self.folder.write(m.kind_of(message), encode(message))
        return message

    def tick(self):
        self.t_ns += STEP_NS
        self.clock.advance_ns(STEP_NS)


def _model(maker, which, step, frame, rng):
    n = min(3 + step, 9)
    counts = np.sort(rng.gamma(2.0, 50.0 * (step + 1), n))[::-1].astype(np.float64)
    maker.send(
        m.Model,
        frame,
        which=which,
        covariance="diagonal",
        n_dims=4,
        n_components=n,
        model_epoch=step + 1,
        activated_frame=frame,
        free_energy=float(40 / (step + 1) + 12),
        ids=np.arange(n),
        counts=counts,
        weights=counts / counts.sum(),
        means=rng.normal(size=(n, 4)),
        variances=np.ones((n, 4)),
        prior_mean=np.zeros(4),
        prior_strength=1.0,
        prior_dof=6.0,
        prior_scale=np.ones(4),
        concentration=1.0,
        seconds=0.2,
        splits=1,
        merges=0,
        clumps=50 + 10 * step,
        singlets=12,
        born=np.array([n - 1]),
        died=np.array([], np.int64),
    )


def _topics(maker, i, rng):
    """Send the topic model, and what two topics look like."""
    _model(maker, "topics", i // 200, i, rng)
    for topic, role in ((0, "most_typical"), (1, "newest")):
        name = {"role": f"topic_{role}", "component": topic}
        maker.send(m.Exemplar, i, id=(1 << 33) + topic, exemplar_frame=i, thumbnail=thumbnail(i, False), **name)


def _in_view(i):
    """What is told of every tenth frame: sand, and rock on the way north."""
    if i % 10:
        return {}
    shares = np.array([0.75, 0.25], np.float32)
    ids, place = np.array([0, 1], np.int64), m.Position(latitude=10.0 + i / 1e5, longitude=20.0)
    return {"topic_ids": ids, "topic_shares": shares if i < 500 else shares[::-1].copy(), "nav": place}


def make_run(path, *, n_frames=900, seed=0, lossy=None, config="[agent]\nid = 'cam1'\n", finish=True, topics=False):
    """Write a run of `n_frames` frames at 10 a second with three events; return its folder's path."""
    rng = np.random.default_rng(seed)
    maker = RunMaker(path)
    maker.lossy = lossy or maker.lossy
    maker.folder.write_config(config, "c0ffee0123456789", agent="cam1", run="20260101T000000Z-ab12", source="cam.mp4")
    maker.send(m.SourceChange, state="live", previous="connecting", width=384, height=288)
    refused, history, n_alerts = 0, [], 0
    for i in range(n_frames):
        maker.tick()
        learning = i < 100
        dark = 540 <= i < 580
        refused += dark
        event = next((k for k, (a, b) in enumerate(EVENTS) if a <= i < b), -1)
        value = float(rng.gamma(3.0, 0.4) + (6 + rng.normal() if event >= 0 else 0))
        if dark or learning:
            maker.send(m.Score, i, learning=learning, accepted=not dark, reason="dark" if dark else "")
        else:
            maker.send(
                m.Score,
                i,
                value=value,
                rarity=float(np.exp(value * 1.4)),
                event=event,
                **(_in_view(i) if topics else {}),
            )
            history = [*history, value][-30:]
        for k, (a, b) in enumerate(EVENTS):
            if i in (a + 2, b):
                n_alerts += i == a + 2
                maker.send(
                    m.Alert,
                    i,
                    id=k,
                    phase="new" if i == a + 2 else "end",
                    severity=0.5 + 0.2 * k,
                    start_frame=a,
                    start_t_ns=(a + 1) * STEP_NS,
                    duration_s=(i - a) / 10,
                    peak=7.5,
                    rarity=4000.0 * (k + 1),
                    boxes=np.array([[0.2, 0.4, 0.45, 0.62], [0.5, 0.3, 0.6, 0.5]], np.float32),
                    component=k,
                    x=0.3,
                    y=0.5,
                    thumbnail=thumbnail(i, True),
                    history=np.array(history, np.float32),
                )
        if i in (540, 580):
            maker.send(m.GateChange, i, state="dark" if dark else "good", reason="dark" if dark else "")
        if i % 100 == 99:
            _model(maker, "patches", i // 100, i, rng)
            _model(maker, "scenes", i // 200, i, rng)
            if topics:
                _topics(maker, i, rng)
            maker.send(
                m.Exemplar,
                i,
                id=i // 100,
                exemplar_frame=i,
                exemplar_t_ns=maker.t_ns,
                share=1 / (1 + i // 100),
                component=i // 300,
                thumbnail=thumbnail(i, False),
            )
        if i % 10 == 9:
            maker.send(
                m.Status,
                i,
                state="live",
                learning=min(1.0, i / 100),
                frames=i + 1,
                accepted=i + 1 - refused,
                refused={"dark": refused} if refused else {},
                dropped=i // 300,
                events=n_alerts,
                alerts=n_alerts,
                drops={"score": i // 400},
                tx_bytes={"alert": 9000 * n_alerts, "score": 120 * i, "model": 300 * i},
                memory_bytes=48_000_000,
                rss_bytes=150_000_000 + i * 10,
                cpu_seconds=i * 0.02,
                rate_hz=10.0,
                disk_free_bytes=5 * 10**9,
                temperature_c=48 + i / 100,
                model_hash="0123456789abcdef",
                source_kind="file",
                source_uri="cam.mp4",
                versions={"stillwatch": "0.1.0"},
            )
    totals = {
        "frames": n_frames,
        "accepted": n_frames - refused,
        "refused": {"dark": refused},
        "dropped": 2,
        "events": n_alerts,
        "alerts": n_alerts,
        "hash": "0123456789abcdef",
    }
    if finish:
        maker.send(m.Summary, **totals)
        maker.folder.finish(totals)
    else:
        maker.folder.close()
    return maker.folder.path
