"""`stillwatch linksim` as a process: carries frames both ways, loses its share, counts in JSON."""

import argparse
import select
import signal
import subprocess
import sys
import time

import pytest
from printed import of_schema
from thin_processes import free_ports

from stillwatch.base.errors import UsageError
from stillwatch.tools import linksim
from stillwatch.transport.thin.port import ThinPort

RUN = (
    "import argparse; from stillwatch.tools import linksim as t; p = argparse.ArgumentParser(); t.add_arguments(p); "
    "raise SystemExit(t.main(p.parse_args()))"
)


def parsed(*options):
    parser = argparse.ArgumentParser()
    linksim.add_arguments(parser)
    return parser.parse_args(options)


def collect(port, enough, timeout_s=10.0):
    frames = []
    deadline = time.monotonic() + timeout_s
    while len(frames) < enough and time.monotonic() < deadline:
        select.select([port], [], [], 0.1)
        frames += port.receive()
    return frames


@pytest.mark.slow
def test_it_carries_frames_both_ways_and_counts_what_it_lost():
    listen, ground_port = free_ports(2)
    options = ["--listen", f"udp://127.0.0.1:{listen}", "--ground", f"udp://127.0.0.1:{ground_port}"]
    command = [sys.executable, "-c", RUN, *options, "--loss", "0.5", "--seed", "3", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    ground, vehicle = ThinPort(("127.0.0.1", ground_port)), ThinPort(("127.0.0.1", 0), ("127.0.0.1", listen))
    try:
        deadline = time.monotonic() + 20
        arrived = []
        while not arrived and time.monotonic() < deadline:  # until the process is there
            vehicle.send([b"hello"])
            arrived = collect(ground, 1, timeout_s=0.2)
        for k in range(100):
            vehicle.send([b"up%d" % k])
        up = [frame for frame in collect(ground, 70, timeout_s=1.0) if frame.startswith(b"up")]
        ground.send([b"down%d" % k for k in range(20)])
        down = collect(vehicle, 18, timeout_s=1.0)
        process.send_signal(signal.SIGTERM)
        counters = of_schema("linksim", process.communicate(timeout=20)[0].decode())
    finally:
        process.kill()
        process.wait()
        ground.close()
        vehicle.close()
    assert 25 < len(up) < 75
    assert 2 < len(down) < 18
    assert counters["sent"] >= 121
    assert counters["lost"] + counters["delivered"] == counters["sent"]
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--loss", "2"], "loss: 2.0 is outside"), (["--listen", "tcp://x:1"], "--listen: 'tcp://x:1' is not udp"),
     (["--outage-s", "5"], "leaves no link")],
)  # fmt: skip
def test_an_impossible_link_is_one_clear_line(options, message):
    with pytest.raises(UsageError, match=message):
        linksim.main(parsed(*options))
