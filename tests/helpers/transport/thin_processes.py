"""A vehicle and a ground station of a thin link as real processes, to be killed: what the kill tests start."""

import argparse
import os
import pathlib
import random
import select
import signal
import socket
import subprocess
import sys
import time

from stillwatch.base.clock import RealClock
from stillwatch.tools import linksim
from stillwatch.transport.thin.codec import ThinCodec
from stillwatch.transport.thin.link import ThinReceiver, ThinSender
from stillwatch.transport.thin.outbox import Outbox
from stillwatch.transport.thin.port import ThinPort
from stillwatch.transport.thin.presets import Budget
from stillwatch.transport.thin.receiver_log import ReceiverLog
from stillwatch.transport.thin.records import ThinAlert

AGENT = 7
KEY = b"a key of thirty-two bytes, shared"[:32]
BUDGET = Budget(256, 8, 0.03)  # far faster than a modem, so that hundreds of alerts cross between two kills
_READY = "ready\n"


def run_vehicle(folder: pathlib.Path, link_port: int) -> None:
    """Make alerts for ever; note each one in `returned` once its outbox write returned; end when told and empty."""
    clock = RealClock()
    outbox = Outbox(folder / "outbox", clock=clock)
    sender = ThinSender(BUDGET, ThinCodec(AGENT, KEY), outbox, now_ns=clock.monotonic_ns())
    port = ThinPort(("127.0.0.1", 0), ("127.0.0.1", link_port))
    journal = os.open(folder / "returned", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    _say_ready()
    event = 0
    while True:
        now_ns = clock.monotonic_ns()
        if not (folder / "stop").exists():
            number = sender.alert(ThinAlert(event, "novel", clock.wall_ns(), severity=event % 8), now_ns)
            os.write(journal, f"{number.incarnation} {number.delivery}\n".encode())
            event += 1
        elif not len(sender.outbox):
            return
        port.send(sender.poll(now_ns))
        select.select([port], [], [], 0.004)
        for frame in port.receive():
            sender.feed(frame, now_ns)


def run_ground(folder: pathlib.Path, ground_port: int) -> None:
    """Keep what arrives in a receiver's log and acknowledge it, until killed."""
    clock = RealClock()
    log = ReceiverLog(folder / "received", clock=clock)
    receiver = ThinReceiver(BUDGET, ThinCodec(AGENT, KEY), log, now_ns=clock.monotonic_ns())
    port = ThinPort(("127.0.0.1", ground_port))
    _say_ready()
    while True:
        select.select([port], [], [], 0.02)
        now_ns = clock.monotonic_ns()
        for frame in port.receive():
            receiver.feed(frame, now_ns)
        port.send(receiver.poll(now_ns))


def run_link(folder: pathlib.Path, link_port: int, ground_port: int, seed: int) -> None:
    """Run `stillwatch linksim` with half of the frames lost, doubles and reordering."""
    parser = argparse.ArgumentParser()
    linksim.add_arguments(parser)
    options = ["--loss", "0.5", "--duplicate", "0.1", "--reorder", "0.1", "--delay-s", "0.01", "--seed", str(seed)]
    ends = ["--listen", f"udp://127.0.0.1:{link_port}", "--ground", f"udp://127.0.0.1:{ground_port}"]
    linksim.main(parser.parse_args(ends + options))


def start(role: str, folder: pathlib.Path, *numbers: int) -> subprocess.Popen:
    """Start one of the processes above."""
    command = [sys.executable, __file__, role, str(folder), *map(str, numbers)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def wait_ready(process: subprocess.Popen) -> None:
    """Wait until a process says that it is ready; AssertionError with its exit code if it ends before."""
    line = process.stdout.readline().decode()
    assert line, f"process ended early with {process.wait()}"


def free_ports(count: int) -> list[int]:
    """Return UDP ports that nobody has."""
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for item in sockets:
        item.bind(("127.0.0.1", 0))
    ports = [item.getsockname()[1] for item in sockets]
    for item in sockets:
        item.close()
    return ports


def end(process: subprocess.Popen, number: int = signal.SIGKILL) -> None:
    """Send a signal, wait for the end, close the pipe."""
    process.send_signal(number)
    process.wait(timeout=20)
    process.stdout.close()


def kill_at_random(folder: pathlib.Path, kills: int, seed: int) -> int:
    """Kill -9 vehicle or ground `kills` times at random moments, then let the vehicle finish; return the deaths."""
    chance = random.Random(seed)
    link_port, ground_port = free_ports(2)
    link = start("link", folder, link_port, ground_port, seed)
    wait_ready(link)
    sides = {"ground": (ground_port,), "vehicle": (link_port,)}
    running = {name: start(name, folder, *numbers) for name, numbers in sides.items()}
    deaths = 0
    try:
        for process in running.values():
            wait_ready(process)
        for _ in range(kills):
            time.sleep(chance.uniform(0.0, 0.3))
            name = chance.choice(list(sides))
            end(running[name])
            deaths += 1
            running[name] = start(name, folder, *sides[name])
            if chance.random() < 0.8:  # sometimes the next kill comes while this one is still starting
                wait_ready(running[name])
        (folder / "stop").touch()
        running["vehicle"].wait(timeout=90)
    finally:
        for process in [*running.values(), link]:
            if process.poll() is None:
                end(process)
            else:
                process.stdout.close()
    return deaths


def _say_ready() -> None:
    sys.stdout.write(_READY)
    sys.stdout.flush()


def _main() -> None:
    role, folder, numbers = sys.argv[1], pathlib.Path(sys.argv[2]), [int(text) for text in sys.argv[3:]]
    {"vehicle": run_vehicle, "ground": run_ground, "link": run_link}[role](folder, *numbers)


if __name__ == "__main__":
    _main()
