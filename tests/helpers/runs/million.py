"""One agent over a million small frames, as fast as it can, that tells what its memory does: for the soak of that name.

Run as a program it is the agent: CONFIG FOLDER. Each EVERY frames it adds a line to the file memory beside FOLDER:
frames, resident, of the C library's heap what is in use and what is free in it, and the blocks of Python's own small
objects. What is resident and not in use are the heap's holes, which come and go with learning; a leak lifts what is in
use, or the blocks. Those are counted without the interpreter's cache of attribute names, which C code fills with new
strings of the same name until its 4,096 places are taken.
"""

import contextlib
import ctypes
import gc
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import av
import numpy as np

from stillwatch.base import RealClock
from stillwatch.outlet.health import rss_bytes
from stillwatch.transport.live import Received, Subscriber

EVERY = 10_000
CLIP_FRAMES = 20_000
RATE_HZ = 25
WIDTH, HEIGHT = map(int, os.environ.get("STILLWATCH_SOAK_MILLION_SIZE", "64x48").split("x"))
SETTINGS = {
    "source": [f"width = {WIDTH}", f"height = {HEIGHT}"],
    "features": ["step_px = 12"],
    "encoder": ["patch_dims = 8", "frame_dims = 8"],
    "patches": ["memory = 400"],
    "scenes": ["memory = 100"],
    "topics": ["memory = 400"],
    "exemplars": ["k = 8", "block = 128", "validation = 100"],
    "learning": ["epoch_frames = 128"],
    "clips": ["ring_bytes = 200000", "max_bytes = 5000000"],
    "storage": ["min_free_bytes = 0", "checkpoint_every_s = 20.0", "max_file_bytes = 4000000", "max_bytes = 40000000"],
}


class _Mallinfo2(ctypes.Structure):
    """glibc's `struct mallinfo2` (malloc.h): bytes, but for the three counts of chunks."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    ]


def pictures(n_frames: int):
    """Yield a still room with noise, through which something of its own size, colour and way goes now and then."""
    rng = np.random.default_rng(3)
    room = rng.integers(60, 160, (HEIGHT, WIDTH, 3)).astype(np.uint8)
    begins = 200
    for index in range(n_frames):
        picture = room + rng.integers(0, 4, room.shape).astype(np.uint8)
        if index == begins:
            size, colour = rng.integers(HEIGHT // 5, HEIGHT // 2, 2), rng.integers(0, 255, 3)
            at, step = rng.uniform(0, (HEIGHT, WIDTH)), rng.uniform(-1.5, 1.5, 2)
        if index >= begins:
            top, left = (int(value) for value in at + step * (index - begins))
            picture[max(top, 0) : max(top + size[0], 0), max(left, 0) : max(left + size[1], 0)] = colour
            if index - begins == 60:
                begins = index + int(rng.integers(50, 600))
        yield picture


def write_clip(path: pathlib.Path, n_frames: int) -> None:
    with av.open(str(path), "w") as out:
        stream = out.add_stream("libx264", rate=RATE_HZ)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.options = {"preset": "ultrafast", "g": "10", "threads": "1"}
        for picture in pictures(n_frames):
            out.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="bgr24")))
        out.mux(stream.encode(None))


class Millions:
    """The agent's process, who listens to it, and what befalls it: the test's end.

    Parameters
    ----------
    folder : Path
        Where clip, config, run folder and recording are.
    frames : int
        How many the source has.
    """

    def __init__(self, folder: pathlib.Path, frames: int):
        self.memory, self._config, self._folder = folder / "memory", folder / "camera.toml", folder
        clip = folder / "clip.mp4"
        write_clip(clip, min(frames, CLIP_FRAMES))
        self._uri = f"{clip}?loop={-(-frames // CLIP_FRAMES)}"
        self._data = _free_ports(4)  # then snapshots, commands and, here, metrics
        self._metrics = self._data + 3
        self.reloads = self.heard = self.scraped = 0
        self.told: list[dict] = []
        self._over = threading.Event()
        self._listener = threading.Thread(target=self._listen)
        self.start()
        self._listener.start()

    def start(self) -> None:
        self._write_config()
        call = [sys.executable, __file__, self._config, self._folder / "run"]
        self.process = subprocess.Popen(call)

    def _write_config(self) -> None:
        sections = {
            **SETTINGS,
            "events": [f"alerts_per_hour = {1000 + self.reloads % 100}"],
            "publish": [f'endpoint = "tcp://127.0.0.1:{self._data}"'],
            "metrics": [f'endpoint = "127.0.0.1:{self._metrics}"'],
        }
        sections["source"] = [f'uri = "{self._uri}"', *SETTINGS["source"]]
        self._config.write_text("".join(f"[{name}]\n" + "\n".join(rows) + "\n" for name, rows in sections.items()))

    def reload(self) -> None:
        self.reloads += 1
        self._write_config()
        self.process.send_signal(signal.SIGHUP)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def scrape(self) -> None:
        """Read the figures for Prometheus: not there while the process starts and ends."""
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{self._metrics}/metrics", timeout=10).read()
            self.scraped += 1

    def news(self) -> list[dict]:
        """Return what was told of memory since the last call."""
        lines = self.memory.read_text("utf-8").splitlines() if self.memory.exists() else []
        new = [json.loads(line) for line in lines[len(self.told) :]]
        self.told += new
        return new

    def _listen(self) -> None:
        subscriber = Subscriber(f"tcp://127.0.0.1:{self._data}", clock=RealClock())
        subscriber.open()
        while not self._over.is_set():
            self.heard += isinstance(subscriber.recv(200), Received)
        subscriber.close()

    def __enter__(self) -> "Millions":
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._listener.join()
        self.process.kill()
        self.process.wait()


def _free_ports(count: int) -> int:
    """Return the first of `count` ports in a row, below those that the system hands out."""
    for first in range(20_000, 30_000, count):
        with contextlib.ExitStack() as held, contextlib.suppress(OSError):
            for port in range(first, first + count):
                held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    raise RuntimeError("no free ports")


class Memory:
    """Writes what is resident and what is in use, each EVERY frames."""

    def __init__(self, path: pathlib.Path):
        self._path, self._next, self._began = path, EVERY, time.monotonic()
        self._libc = ctypes.CDLL(None)
        self._libc.mallinfo2.restype = _Mallinfo2

    def see(self, progress) -> None:
        if progress.counts.frames < self._next:
            return
        self._next = progress.counts.frames // EVERY * EVERY + EVERY
        gc.collect()
        ctypes.pythonapi.PyType_ClearCache()
        heap = self._libc.mallinfo2()
        row = {
            "frames": progress.counts.frames,
            "seconds": round(time.monotonic() - self._began),
            "resident": rss_bytes(),
            "in_use": heap.uordblks + heap.hblkhd,
            "holes": heap.fordblks,
            "blocks": sys.getallocatedblocks(),
            "alerts": progress.counts.alerts,
        }
        with open(self._path, "a", encoding="utf-8") as told:
            told.write(json.dumps(row) + "\n")


def _main(config_file: str, folder: str) -> int:
    from stillwatch.process import RunOptions, run_agent
    from stillwatch.settings import load_config
    from stillwatch.tools.shared import end_while_starting, stop_on_signals

    end_while_starting()
    out = pathlib.Path(folder)
    options = RunOptions(out=out, record=out.with_name("recording"), read_config=lambda: load_config(config_file))
    options.on_progress = Memory(out.with_name("memory")).see
    stop_on_signals(options.stop, options.reload)
    return run_agent(load_config(config_file), options).exit_code


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
