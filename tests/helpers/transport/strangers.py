"""An agent's live plane in a process of its own, and strangers who connect to its ports in every way they know."""

import json
import pathlib
import random
import socket
import subprocess
import sys
import threading
import time

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)  # ZMTP 3.0, as RFC 23 says
CURVE_GREETING = GREETING.replace(b"NULL\0", b"CURVE")
READY = b"\x04\x26\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity\x00\x00\x00\x00"
KINDS = {
    "says nothing": lambda rng: b"",
    "random bytes": lambda rng: rng.randbytes(rng.randint(1, 1500)),
    "zeros": lambda rng: bytes(64),
    "a browser": lambda rng: b"GET / HTTP/1.1\r\nHost: camera\r\n\r\n",
    "ZMTP 1": lambda rng: b"\x01\x00\x05\x00abcd",
    "half a greeting": lambda rng: GREETING[:30],
    "a greeting without a key": lambda rng: GREETING + READY,
    "a greeting and random bytes": lambda rng: GREETING + rng.randbytes(200),
    "a wrong key": lambda rng: CURVE_GREETING + b"\x04\xc8\x05HELLO" + rng.randbytes(194),
}


class Besieged:
    """The test's end of a live plane: start, ask what it holds, stop."""

    def __init__(self, *, keys):
        self.process = subprocess.Popen(
            [sys.executable, __file__, "keys" if keys else "none"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.ports = {role: int(end.rpartition(":")[2]) for role, end in self._answer()["endpoints"].items()}

    def held(self):
        """Return resident bytes, descriptors and threads of the process, and what it counted."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self._answer()

    def settled(self):
        """Return what is held once no connection is left."""
        for _ in range(200):
            held = self.held()
            if not held["open"]:
                return held
            time.sleep(0.05)
        raise AssertionError(f"connections stay open: {held}")

    def _answer(self):
        return json.loads(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


def visit(port, words):
    """Connect, say something, wait for the first bytes of an answer, and go."""
    with socket.socket() as stranger:
        stranger.settimeout(5.0)
        try:
            stranger.connect(("127.0.0.1", port))
            stranger.sendall(words)
            stranger.recv(16)
        except OSError:
            pass  # turned away


def besiege(agent, count, seed=0):
    """Let `count` strangers connect, of every kind in turn, to every port in turn."""
    rng = random.Random(seed)
    kinds, ports = list(KINDS.values()), list(agent.ports.values())
    for at in range(count):
        visit(ports[at % len(ports)], kinds[at // len(ports) % len(kinds)](rng))


def _main():
    from stillwatch.base import RealClock
    from stillwatch.outlet import CommandBox, LiveCarrier, health
    from stillwatch.transport.live.publisher import Publisher
    from stillwatch.transport.live.security import ServerKeys

    keys = None
    if sys.argv[1] == "keys":
        import zmq

        public, secret = zmq.curve_keypair()
        reader = frozenset([zmq.curve_keypair()[0]])
        keys = ServerKeys(public, secret, {"data": reader, "control": reader})
    health.share_malloc_arenas()
    clock = RealClock()
    publisher = Publisher("tcp://127.0.0.1:0", "cam1", control="auto", clock=clock, keys=keys)
    told = []
    carrier = LiveCarrier(publisher, CommandBox(), clock, on_state=lambda code, _: told.append(code))
    carrier.open()
    print(json.dumps({"endpoints": publisher.endpoints}), flush=True)
    asked, over = threading.Event(), threading.Event()

    def read():
        for _ in sys.stdin:
            asked.set()
        over.set()

    threading.Thread(target=read, daemon=True).start()
    while not over.is_set():
        carrier.poll()
        if asked.is_set():
            asked.clear()
            own = pathlib.Path("/proc/self")
            held = {
                "rss": health.rss_bytes(),
                "descriptors": len(list((own / "fd").iterdir())),
                "threads": len(list((own / "task").iterdir())),
                "open": publisher.connections.n_open,
                "told": told,
            }
            print(json.dumps(held | carrier.connections()), flush=True)
        time.sleep(0.02)
    carrier.close()


if __name__ == "__main__":
    _main()
