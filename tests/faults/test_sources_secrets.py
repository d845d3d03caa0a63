"""A password planted in a source's URI, and a search for it everywhere a person or a peer can look."""

import logging
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
from rtsp_server import RtspServer, encode_h264

from stillwatch.base.clock import RealClock
from stillwatch.settings.config import SourceConfig
from stillwatch.sources.capture import Capture
from stillwatch.sources.registry import open_source
from stillwatch.tools.checks.corpus import clip

TOKEN = "Zx9!planted/7Q"
IN_URI = "Zx9%21planted%2F7Q"


def found_in(text):
    return [spelling for spelling in (TOKEN, IN_URI, "planted") if spelling in text]


@pytest.fixture
def server():
    with RtspServer(encode_h264(clip(20)), user="cam", password="something else") as made:
        yield made


@pytest.mark.parametrize("host", ["wrong-password", "127.0.0.1:9", "no-such-host.invalid"])
def test_no_error_log_or_status_of_capture_shows_it(server, host, caplog):
    where = f"127.0.0.1:{server.port}" if host == "wrong-password" else host
    uri = f"rtsp://cam:{IN_URI}@{where}/x?token={IN_URI}"
    config, clock = SourceConfig(), RealClock()
    with caplog.at_level(logging.DEBUG):
        capture = Capture(lambda: open_source(uri, config, clock), config, clock)
        capture.start()
        end = time.monotonic() + 5.0
        while not capture.counters()["open_failures"] and time.monotonic() < end:
            time.sleep(0.02)
        shown = [repr(capture.info), repr(capture.counters()), str(capture.error), repr(capture.state)]
        capture.stop()
    assert "trying again" in caplog.text
    assert found_in(caplog.text + "".join(shown)) == []


def read_all(folder):
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()).decode("latin-1")


def recorded_bytes(folder):
    return sum(path.stat().st_size for path in folder.glob("recording-*"))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("place", ["command line", "config file", "environment"])
def test_a_whole_run_shows_it_nowhere(tmp_path, place):
    with RtspServer(encode_h264(clip(40)), user="cam", password=TOKEN) as server:
        login = {"environment": "${env:CAMERA_PASSWORD}"}.get(place, IN_URI)
        uri = f"rtsp://cam:{login}@127.0.0.1:{server.port}/x"
        config = tmp_path / "c.toml"
        config.write_text(
            '[publish]\nendpoint = ""\n' + ("" if place == "command line" else f'[source]\nuri = "{uri}"\n')
        )
        out, record = tmp_path / "run", tmp_path / "recording"
        command = [sys.executable, "-m", "stillwatch.tools.cli", "run", str(config), "--out", str(out)]
        command += ["--record", str(record)]
        command += ["--source", uri] if place == "command line" else []
        environment = {**os.environ, "CAMERA_PASSWORD": IN_URI}
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        try:
            end = time.monotonic() + 40.0
            while recorded_bytes(record) < 20_000 and process.poll() is None and time.monotonic() < end:
                time.sleep(0.1)
            shown_by_ps = pathlib.Path(f"/proc/{process.pid}/cmdline").read_bytes().decode("latin-1")
            server.kill()
            time.sleep(1.0)
            process.send_signal(signal.SIGTERM)
            began = time.monotonic()
            output, _ = process.communicate(timeout=20.0)
            assert time.monotonic() - began < 5.0 or os.getloadavg()[0] > 4.0
        finally:
            process.kill()
            process.wait()
    assert server.plays >= 1, output
    assert "Traceback" not in output
    assert found_in(shown_by_ps) == []
    assert found_in(output) == []
    for folder in (out, record):
        written = read_all(folder)
        assert len(written) > 1000
        assert found_in(written) == []
