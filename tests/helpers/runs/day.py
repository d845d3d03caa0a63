"""One agent's day in less than a day, and everything that befalls it: for the tests of a day in soak and faults.

Run as a program it is the agent: CONFIG FOLDER SPEED CLOCK. Its clocks run SPEED times as fast as ours, so that pauses,
time-outs, heartbeats and the camera's rate are all compressed by as much. The file CLOCK holds when the day began, and
the seconds by which its wall clock is wrong.
"""

import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np

NS = 1_000_000_000
HOUR_NS = 3600 * NS
RATE_HZ = 5.0
STARTING_S = 60.0  # ours: before that a busy machine may not have made all that the process keeps
SETTINGS = {
    "source": ["width = 160", "height = 120"],
    "publish": ['endpoint = ""', "heartbeat_s = 10.0"],
    "features": ["step_px = 12"],
    "patches": ["memory = 1200"],
    "storage": ["min_free_bytes = 0", "checkpoint_every_s = 60.0", "max_file_bytes = 4000000"],
}


def pictures(n_frames=500):
    """Yield a still room with noise, through which something goes near the end."""
    rng = np.random.default_rng(3)
    room = rng.integers(60, 160, (120, 160, 3)).astype(np.uint8)
    for left in range(n_frames, 0, -1):
        picture = room + rng.integers(0, 4, room.shape).astype(np.uint8)
        if left < 100:
            picture[40:80, left : left + 30] = 230
        yield picture


class CompressedClock:
    """`speed` seconds of the agent's for each of ours; goes on over restarts, as a machine's clock does."""

    def __init__(self, speed: float, steps: pathlib.Path):
        self._speed, self._steps = speed, steps

    def monotonic_ns(self) -> int:
        return round(time.monotonic() * self._speed * NS)

    def wall_ns(self) -> int:
        began, step = map(float, self._steps.read_text().split())
        return round((began + (time.time() - began) * self._speed + step) * NS)

    def thread_cpu_s(self) -> float:
        return time.thread_time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds / self._speed)


class Day:
    """The world of one agent, and the agent. Each method behind `nothing` is something that befalls it.

    Parameters
    ----------
    disk : Path
        A small file system of its own.
    server : RtspServer
        The camera.
    """

    def __init__(self, folder: pathlib.Path, disk: pathlib.Path, server, speed: float):
        self.disk, self.server, self.speed = disk, server, speed
        self.config, self.steps, self.said = folder / "camera.toml", folder / "clock", folder / "said"
        self.began, self.step_s, self.reloads = time.time(), 7200, 0
        self.codes: list[int] = []
        self.held: list[tuple[int, int]] = []  # descriptors and threads, each time it runs undisturbed
        self.clock_step()
        self.write_config(20)
        self.start()

    def write_config(self, alerts_per_hour: int) -> None:
        sections = {"events": [f"alerts_per_hour = {alerts_per_hour}"], **SETTINGS}
        sections["source"] = [f'uri = "{self.server.url()}"', *SETTINGS["source"]]
        self.config.write_text("".join(f"[{name}]\n" + "\n".join(rows) + "\n" for name, rows in sections.items()))

    def start(self) -> None:
        call = [sys.executable, __file__, self.config, self.disk / "run", str(self.speed), self.steps]
        self.started = time.monotonic()
        with open(self.said, "ab") as said:
            self.process = subprocess.Popen(call, stderr=said)

    def __enter__(self) -> "Day":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def end(self, number: int) -> None:
        self.process.send_signal(number)
        self.codes.append(self.process.wait(30))

    def nothing(self) -> None:
        if time.monotonic() - self.started < STARTING_S:
            return
        own = pathlib.Path(f"/proc/{self.process.pid}")
        self.held.append((len(list((own / "fd").iterdir())), len(list((own / "task").iterdir()))))

    def camera_lost(self) -> None:
        self.server.kill()
        time.sleep(60.0 / self.speed)
        self.server.start()

    def camera_silent(self) -> None:
        self.server.silent.set()
        time.sleep(60.0 / self.speed)
        self.server.silent.clear()

    def clock_step(self) -> None:
        self.step_s = 0 if self.step_s else 7200
        staged = self.steps.with_suffix(".new")
        staged.write_text(f"{self.began} {self.step_s}")
        staged.replace(self.steps)  # never half of it

    def reload(self) -> None:
        self.reloads += 1
        self.write_config(20 + self.reloads)
        self.process.send_signal(signal.SIGHUP)

    def disk_full(self) -> None:
        with open(self.disk / "filler", "wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(bytes(100_000))
            except OSError:
                pass
        time.sleep(60.0 / self.speed)
        (self.disk / "filler").unlink()

    def stop(self) -> None:
        self.end(signal.SIGTERM)
        self.start()

    def power_cut(self) -> None:
        self.end(signal.SIGKILL)
        self.start()


def account(run, warm_frames: int) -> dict:
    """Return what a run's own messages say of frames, hours, reloads and memory, in order of its starts.

    Resident memory scatters by some 20 MB while models are learnt, and rises for the first thousands of frames to
    where it stays. Its growth is that of the least of each of ten windows behind `warm_frames`: a leak lifts it.
    """
    starts: dict[int, list[tuple[int, int]]] = {}
    hours, states, codes = set(), set(), set()
    newest: dict[int, int] = {}  # stream time told of, by start
    frames = steps_back = 0
    for kind, message in run.messages({"status", "score", "log", "source"}):
        hours.add(message.t_ns // HOUR_NS)
        frames += kind == "score"
        if kind == "log":
            codes.add(message.code)
        if kind == "source":
            states.add(message.state)
            steps_back += message.t_ns < newest.get(message.epoch, 0)
        newest[message.epoch] = max(newest.get(message.epoch, 0), message.t_ns)
        if kind == "status":
            starts.setdefault(message.epoch, []).append((message.frames, message.rss_bytes))
    growths = [found for rows in starts.values() if (found := _growth(rows, warm_frames)) is not None]
    return {
        "frames": frames,
        "starts": len(starts),
        "hours": len(hours),
        "hours_without_word": sorted(set(range(max(hours) + 1)) - hours),
        "states": sorted(states),
        "states_out_of_time": steps_back,  # a report's strip would be of that state from then on
        "notices": sorted(codes),
        "bytes_a_frame": [round(slope, 1) for slope, _, _ in growths],
        "least_mb": [[round(first, 1), round(last, 1)] for _, first, last in growths],
    }


def _growth(rows: list[tuple[int, int]], warm_frames: int) -> tuple[float, float, float] | None:
    """Return (bytes a frame, least MB of the first window, of the last); None of a start that was too short."""
    first, last = rows[0][0], rows[-1][0]
    warm = [row for row in rows if row[0] - first >= warm_frames]
    if len(warm) < 50 or last - first < 2 * warm_frames:
        return None
    least = [min(part, key=lambda row: row[1]) for part in np.array_split(np.array(warm), 10)]
    at, held = np.array(least, float).T
    return float(np.polyfit(at, held, 1)[0]), held[0] / 1e6, held[-1] / 1e6


def _main(config_file: str, folder: str, speed: str, steps: str) -> int:
    from stillwatch.process import RunOptions, run_agent
    from stillwatch.settings import load_config
    from stillwatch.tools.shared import end_while_starting, stop_on_signals

    end_while_starting()
    options = RunOptions(out=pathlib.Path(folder))
    options.read_config = lambda: load_config(config_file)
    stop_on_signals(options.stop, options.reload)
    clock = CompressedClock(float(speed), pathlib.Path(steps))
    return run_agent(load_config(config_file), options, clock).exit_code


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(_main(*sys.argv[1:]))
