"""A station's page on a real store with three made agents, served in this process; used by the page's tests.

Pictures are drawn, so that outlines can be checked by eye in the screenshots.
"""

import atexit
import contextlib
import functools
import socket
import threading
import time
import warnings

import cv2
import numpy as np
from anyio.from_thread import BlockingPortal, start_blocking_portal

from stillwatch.tools.station.access import Gate, Passwords
from stillwatch.tools.station.bulletin import Bulletin
from stillwatch.tools.station.page import Services, build_app
from stillwatch.tools.station.store import AlertHeard, Picture, open_store, rows_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it names its next HTTP library, and works with this one
    from starlette.testclient import TestClient

NS = 10**9
HOUR = 3600 * NS
AGENTS = {
    "harbour-north": ("rtsp", "rtsp://10.0.0.21/main", "live"),
    "dive-7": ("synthetic", "synthetic:transect?seed=7", "thin"),
    "car-park": ("v4l2", "v4l2:/dev/video0", "live"),
}
KINDS = ("novel", "new_category", "returned", "vanished", "scene_change")
PASSWORD = "correct horse battery"


def light_passwords():
    """Hashing that costs a test nothing."""
    return Passwords(memory_kib=64, passes=1)


def drawn(seed, width=320, height=240, with_thing=True):
    """Return (JPEG, box of the thing in it as shares)."""
    rng = np.random.default_rng(seed)
    ground = np.linspace(60 + 12 * (seed % 5), 150, height)[:, None, None] * np.array([0.8, 1.0, 0.9])[None, None]
    image = np.repeat(ground, width, axis=1) + rng.normal(0, 7, (height, width, 1))
    image = np.clip(image, 0, 255).astype(np.uint8)
    for _ in range(9):
        at = tuple(int(v) for v in rng.integers((0, height // 3), (width, height)))
        cv2.ellipse(image, at, (18, 9), 0, 0, 360, tuple(int(v) for v in rng.integers(50, 120, 3)), -1)
    x, y = (int(v) for v in rng.integers((30, 40), (width - 90, height - 80)))
    if with_thing:
        cv2.rectangle(image, (x, y), (x + 54, y + 38), (40, 90, 220), -1)
        cv2.circle(image, (x + 27, y + 12), 9, (230, 230, 240), -1)
    box = [(x - 4) / width, (y - 4) / height, (x + 58) / width, (y + 42) / height]
    return cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 85])[1].tobytes(), box


def picture(seed, frame, at_ns, **drawing):
    jpeg, box = drawn(seed, **drawing)
    return Picture(jpeg, "image/jpeg", 320, 240, frame, at_ns, [box, [0.05, 0.62, 0.16, 0.78]])


def alert(agent, number, at_ns, *, kind="novel", phase="end", key="0", duration_s=14.0, with_picture=True, **fields):
    """Return one phase of an alert as ingest hands it to the store."""
    frame = 1000 + 10 * number
    values = {
        "kind": kind, "duration_s": duration_s, "frame": frame + 40, "start_frame": frame, "peak": 6.4,
        "rarity": 24_000.0 + 1000 * number, "x": 0.7, "y": 0.6, "picture_frame": frame + 7, "component": 3,
        "exemplar": 1, "history": "[0.2, 0.4, 0.3, 0.9, 1.4, 3.2, 6.4, 5.9]", "run": "run-1", "epoch": 1, **fields,
    }  # fmt: skip
    shown = picture(number, frame + 7, at_ns) if with_picture else None
    if shown is not None:
        values["boxes"] = str(shown.boxes)
    return AlertHeard(
        agent=agent, plane="live", uid=f"run-1:1:{number}", key=key, event=number, phase=phase, severity=0.7,
        at_ns=at_ns, start_ns=at_ns - 2 * NS, own_ns=at_ns, own_start_ns=at_ns - 2 * NS,
        received_ns=at_ns + NS // 5, fields=values, picture=shown,
    )  # fmt: skip


class Station:
    """A store, a bulletin and the page's application over them."""

    def __init__(self, address, *, allows_open=True, **services):
        self.store, _ = open_store(str(address))
        self.bulletin = Bulletin()
        self.gate = Gate(
            self.store, wall=time.time, monotonic=time.monotonic, allows_open=allows_open, passwords=light_passwords
        )
        self.services = Services(self.store, self.bulletin, self.gate, **services)
        self.app = build_app(self.services)

    def add_user(self, name, role):
        self.store.add_user(name, light_passwords().hashed(PASSWORD), role, time.time())

    def tell(self, heard):
        """Take an alert as ingest does, and post it; return its id."""
        with self.store.writing() as connection:
            taken = self.store.take_alert(connection, heard)
        self.services.agents.forget()
        self.services.waiting.forget()
        self.bulletin.post("alert", heard.agent, taken.id)
        return taken.id

    def fill(self, now_ns):
        """Enter three agents, an hour of scores, alerts of every kind, exemplars, notices and gaps."""
        for place, agent in enumerate(AGENTS):
            self._agent(place, agent, now_ns)
            for i in range(5):
                at = now_ns - (i * 23 + 3 + place) * 60 * NS
                nav = {"latitude": 59.3 + 0.002 * i, "longitude": 18.05 + 0.003 * i * (place + 1), "depth_m": 31.0 + i}
                extra = nav if agent == "dive-7" else {}
                phase = "new" if i == 0 and place == 0 else "end"
                self.tell(alert(agent, 7 * place + i, at, kind=KINDS[i], phase=phase, **extra))
        first = self.store.alerts(limit=50)
        self.store.acknowledge(first[2]["id"], "ann", now_ns)
        self.store.set_label(first[2]["id"], "ann", now_ns, "red van")
        self.store.set_useful(first[2]["id"], "ann", now_ns, True)
        self.store.add_note(first[2]["id"], "ann", now_ns, "Delivery, every Friday.")

    def _agent(self, place, agent, now_ns):
        kind, uri, link = AGENTS[agent]
        rng = np.random.default_rng(place)
        with self.store.writing() as connection:
            self.store.take_agent(connection, agent, {
                "link": link, "planes": link, "heard_ns": now_ns - place * 2 * NS, "state": "live", "learning": 1.0,
                "frames": 361_000 + place, "rate_hz": 10.0, "source_kind": kind, "source_uri": uri, "run": "run-1",
                "epoch": 1, "novelty": 0.4, "rarity": [3.0, 24_000.0, 80.0][place], "frame": 361_000,
                "score_ns": now_ns, "lost": 14 * (place == 1), "control": "tcp://127.0.0.1:9" if place == 0 else "",
                "status": '{"rate_hz": 10.0, "frame_age_s": 0.1, "temperature_c": 51.2, "rss_bytes": 310000000,'
                ' "cpu_seconds": 4021.0, "disk_free_bytes": 81000000000, "refused": {"dark": 41},'
                ' "versions": {"stillwatch": "0.1.0"}}',
            })  # fmt: skip
            for minute in range(60):
                if 31 <= minute < 34 and place == 1:
                    continue  # a link that was away
                at = now_ns - (60 - minute) * 60 * NS
                rarity = np.exp(np.abs(rng.normal(0, 1.6, 60))) * (1 if minute % 23 else 4000)
                is_learning = minute < 4
                rows = [
                    (60 * minute + i, at + i * NS, *((None, None, 1) if is_learning else (0.3, float(rarity[i]), 0)))
                    for i in range(60)
                ]
                self.store.take_scores(connection, agent, "run-1", rows_of(rows))
            for i in range(6):
                jpeg, _ = drawn(100 + 10 * place + i, with_thing=False)
                values = {"role": "frame", "exemplar": i, "frame": 50 * i, "at_ns": now_ns - i * HOUR,
                          "share": 0.4 / (i + 1), "label": "parked car" if i == 1 else "", "width": 320,
                          "height": 240, "picture": jpeg}  # fmt: skip
                self.store.take_exemplar(connection, agent, values, [], 200)
            if place == 0:
                for kind, count, label in ((3, 12, "parked <car>"), (5, 4, ""), (8, 1, "")):
                    shown = {"picture": drawn(200 + kind)[0], "frame": 360_900} if kind != 8 else {}
                    seen = {"first_ns": now_ns - HOUR, "last_ns": now_ns - 60 * kind * NS, "watched_s": 3600.0}
                    values = {"kind": kind, "count": count, "label": label, **seen, **shown}
                    self.store.take_kind(connection, agent, values, [], 64)
            if place == 1:
                self.store.take_gap(connection, agent, {"plane": "thin", "kind": "score", "received_ns": now_ns - HOUR,
                                                        "first": 100, "last": 113})  # fmt: skip
            self.store.take_notice(connection, agent, {"at_ns": now_ns - HOUR, "received_ns": now_ns - HOUR,
                                                       "level": "warning", "code": "disk_full", "count": 2,
                                                       "text": "The disk took no more frames."})  # fmt: skip


def client_of(station, address="http://localhost"):
    """Return a client that follows no redirects, as the tests look at them, and raises the application's own faults."""
    client = TestClient(station.app, base_url=address, follow_redirects=False)
    client.portal = event_loop()
    return client


@functools.cache
def event_loop() -> BlockingPortal:
    """Return the one loop in which all requests of this process are answered, as a station's are.

    A client without one starts a thread and a loop for each request, which takes longer than most answers.
    """
    opened = contextlib.ExitStack()
    atexit.register(opened.close)
    return opened.enter_context(start_blocking_portal())


@contextlib.contextmanager
def served(app):
    """Serve an application on a free port of loopback in a thread; yields its address."""
    import uvicorn

    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as the station's own listener
    config = uvicorn.Config(app, log_level="warning", lifespan="off", ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(timeout=5.0)
        sock.close()
