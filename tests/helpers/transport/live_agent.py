"""A publisher in a process of its own, told what to do line by line; and how tests start and talk to it.

In-process publishers would hide the slow joiner: two sockets of one context lose nothing.
"""

import ctypes
import faulthandler
import json
import pathlib
import queue
import subprocess
import sys
import threading
import time

import numpy as np

from stillwatch.base.clock import RealClock
from stillwatch.transport.live.publisher import Publisher
from stillwatch.transport.live.security import load_server_keys
from stillwatch.transport.wire import clump_fields
from stillwatch.transport.wire import messages as m
from stillwatch.transport.wire.codec import encode

NOISE = np.random.default_rng(1)
LIBC = ctypes.CDLL(None)
STUCK_S = 120  # seconds of one turn of the publisher's loop: no order takes so long


def noise(size: int) -> bytes:
    """Return bytes that deflate makes no shorter."""
    return NOISE.bytes(size)


class Agent:
    """The test's end: start, ask, stop."""

    def __init__(self, endpoint="tcp://127.0.0.1:0", *, key_file="", allow_file="", epoch=1):
        arguments = [endpoint, key_file, allow_file, str(epoch)]
        self.process = subprocess.Popen(
            [sys.executable, str(pathlib.Path(__file__)), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.endpoints = self._answer()

    def ask(self, **order):
        """Carry out one order; return its answer."""
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"agent process ended with {self.process.wait(10)}")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        finally:
            self.process.kill()
            self.process.wait(10)
            self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class _Worker:
    """The process's end: publishes what it is told to, and serves requests in between."""

    def __init__(self, endpoint, key_file, allow_file, epoch):
        self.clock = RealClock()
        self.headers = m.Headers("cam1", "run1", "boot1", int(epoch))
        keys = load_server_keys(key_file, allow_file) if key_file else None
        self.publisher = Publisher(endpoint, "cam1", queue=64, keys=keys, control="auto", clock=self.clock)
        self.publisher.open()
        self.carried_out = []

    def header(self, kind, mono_ns=None):
        now = self.clock.monotonic_ns() if mono_ns is None else mono_ns
        return self.headers.next(kind, t_ns=now, mono_ns=now, wall_ns=self.clock.wall_ns(), frame=1)

    def send(self, kind, count=1, size=0, first_id=0, skip=0, pause_s=0.0, age_s=0.0):
        """Make `count` messages of a kind; the first `skip` are made, and never sent."""
        lost = 0
        for at in range(count + skip):
            message = self.message(kind, first_id + at, size, age_s)
            if at >= skip:
                lost += not self.publisher.send(kind, encode(message))
            if pause_s:
                time.sleep(pause_s)
        return {"lost": lost}

    def message(self, kind, number, size, age_s):
        now = self.clock.monotonic_ns() - int(age_s * 1e9)
        match kind:
            case "score":
                return m.Score(**self.header(m.Score, now), value=float(number))
            case "alert":
                return m.Alert(**self.header(m.Alert), id=number, phase="new", thumbnail=noise(size))
            case "exemplar":
                return m.Exemplar(**self.header(m.Exemplar), id=number, thumbnail=noise(size))
            case "status":
                header = self.header(m.Status, now)
                return m.Status(**header, state="live", sequences=self.headers.sequences(), drops=self.publisher.drops)
            case "model":
                k = max(1, size // 80)
                rows = NOISE.normal(size=(k, 10)).astype(np.float32)  # which no codec makes small
                zeros = np.zeros(10, np.float32)
                return m.Model(
                    **self.header(m.Model),
                    which="patches",
                    covariance="diagonal",
                    n_dims=10,
                    n_components=k,
                    model_epoch=number,
                    ids=np.arange(k),
                    counts=rows[:, 0],
                    weights=rows[:, 1],
                    means=rows,
                    variances=rows**2,
                    prior_mean=zeros,
                    prior_scale=zeros,
                    prior_strength=1.0,
                    prior_dof=1.0,
                    concentration=1.0,
                )

            case "clumps":
                rows = NOISE.normal(size=(max(2, size // 64), 18))  # 64 bytes a clump
                second = {"variance": rows**2 + 1.0, "component": np.arange(len(rows))}
                held = {"count": np.full(len(rows), 5.0), "mean": rows, **second}
                units = {"shift": np.zeros(18), "scale": np.ones(18)}
                return m.Clumps(
                    **self.header(m.Clumps), which="patches", model_epoch=number, **clump_fields(held | units)
                )

    def serve(self, orders):
        while True:
            faulthandler.dump_traceback_later(STUCK_S, exit=True)  # begins anew each time: who is stuck says where
            for command in self.publisher.poll(5):
                self.carried_out.append(command.name)
                if command.name != "flush":  # which this agent never answers
                    self.publisher.reply(command, {"times": self.carried_out.count(command.name)}, attachment=b"\xff")
            try:
                line = orders.get_nowait()
            except queue.Empty:
                continue
            if line is None:
                return
            order = json.loads(line)
            match order.pop("do"):
                case "send":
                    answer = self.send(**order)
                case "rss":
                    answer = rss_bytes()
                case "drops":
                    answer = self.publisher.drops
                case "carried_out":
                    answer = self.carried_out
            print(json.dumps(answer), flush=True)


def rss_bytes() -> int:
    """Return this process's resident memory, without the pages that the C library keeps though they are free."""
    if hasattr(LIBC, "malloc_trim"):
        LIBC.malloc_trim(0)
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096


def main():
    worker = _Worker(*sys.argv[1:])
    print(json.dumps(worker.publisher.endpoints), flush=True)
    orders: queue.Queue = queue.Queue()

    def read():
        for line in sys.stdin:
            orders.put(line)
        orders.put(None)

    threading.Thread(target=read, daemon=True).start()
    worker.serve(orders)
    worker.publisher.close()


if __name__ == "__main__":
    main()
