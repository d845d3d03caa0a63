"""Live sources against real sockets: RTSP over TCP, UDP and TLS, MJPEG over HTTP; killed, changed, silent, dead."""

import contextlib
import http.server
import logging
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time

import cv2
import pytest
from capture_sources import wait_until
from rtsp_server import RtspServer, encode_h264

from stillwatch.base.clock import RealClock
from stillwatch.base.errors import SourceError
from stillwatch.base.source_state import SourceState
from stillwatch.settings.config import SourceConfig
from stillwatch.sources.capture import Capture
from stillwatch.sources.registry import open_source
from stillwatch.tools.checks.corpus import clip, picture

QUICK = {"stall_timeout_s": 1.0, "open_timeout_s": 10.0, "reconnect_cap_s": 1.0}


@pytest.fixture(scope="module")
def large():
    return encode_h264(clip(30))


@pytest.fixture(scope="module")
def small():
    return encode_h264(frame[:96, :128].copy() for frame in clip(30))


@contextlib.contextmanager
def capturing(url, **settings):
    config = SourceConfig(**{**QUICK, **settings})
    clock = RealClock()
    capture = Capture(lambda: open_source(url, config, clock), config, clock)
    capture.start()
    try:
        yield capture
    finally:
        capture.stop()


def take(capture, count, timeout_s=10.0):
    frames, end = [], time.monotonic() + timeout_s
    while len(frames) < count:
        assert time.monotonic() < end, f"{len(frames)} of {count} frames, {capture.state}, {capture.counters()}"
        if (frame := capture.next(0.2)) is not None:
            frames.append(frame)
    return frames


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_rtsp_plays_and_time_increases(large, transport):
    with RtspServer(large) as server, capturing(server.url(), rtsp_transport=transport) as capture:
        frames = take(capture, 12)
        assert capture.state is SourceState.LIVE
    assert frames[0].colour.shape == (144, 192, 3)
    assert all(b.t_ns > a.t_ns for a, b in zip(frames, frames[1:], strict=False))
    assert cv2.norm(frames[0].colour, picture(0), cv2.NORM_L1) / frames[0].colour.size < 30.0
    assert "PLAY" in server.requests


@pytest.mark.parametrize("digest", [False, True])
def test_rtsp_logs_in(large, digest):
    with RtspServer(large, user="cam", password="p@ss/w0rd", digest=digest) as server:
        with capturing(server.url(user="cam", password="p%40ss%2Fw0rd")) as capture:
            assert take(capture, 2)
        assert "p%40ss" not in capture.info.uri


def test_a_wrong_password_is_said_and_not_shown(large, caplog):
    with RtspServer(large, user="cam", password="right-one-1") as server, caplog.at_level(logging.DEBUG):
        with capturing(server.url(user="cam", password="wrong-one-1")) as capture:
            wait_until(lambda: capture.counters()["open_failures"] > 0)
    assert "refuses the user name or password (401)" in caplog.text
    assert "wrong-one-1" not in caplog.text


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_killed_camera_is_live_again_after_its_return(large, transport):
    with RtspServer(large) as server, capturing(server.url(), rtsp_transport=transport) as capture:
        last = take(capture, 3)[-1]
        server.kill()
        wait_until(lambda: capture.state is not SourceState.LIVE)
        while capture.next(0.01) is not None:
            pass
        server.start()
        back = take(capture, 3)
        assert back[0].sequence > last.sequence
        assert back[0].epoch == last.epoch
        assert capture.counters()["reconnects"] >= 1


def test_a_change_of_resolution_is_a_new_epoch(large, small):
    with RtspServer(large) as server, capturing(server.url()) as capture:
        assert take(capture, 3)[-1].epoch == 0
        server.publish(small)
        end = time.monotonic() + 10.0
        while (frame := take(capture, 1)[0]).epoch == 0:
            assert time.monotonic() < end
        assert frame.colour.shape == (96, 128, 3)


def test_a_camera_that_goes_silent_is_a_stall(large):
    with RtspServer(large) as server, capturing(server.url()) as capture:
        take(capture, 3)
        server.silent.set()
        wait_until(lambda: capture.counters()["stalls"] > 0, 5.0)
        wait_until(lambda: capture.counters()["reconnects"] > 0, 5.0)
        while capture.next(0.01) is not None:
            pass
        server.silent.clear()
        take(capture, 3)


def test_a_slow_start_is_waited_for(large):
    with RtspServer(large, start_delay_s=2.5) as server, capturing(server.url()) as capture:
        take(capture, 1)
        assert capture.counters()["open_failures"] == 0


def test_a_peer_that_never_answers_delays_nothing(large):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with capturing(f"rtsp://127.0.0.1:{listener.getsockname()[1]}/x") as capture:
            began = time.monotonic()
            assert capture.next(0.1) is None
            assert time.monotonic() - began < 1.0
            wait_until(lambda: capture.counters()["open_failures"] > 0)
            began = time.monotonic()
            capture.stop()
            assert time.monotonic() - began < 2.0


def test_a_peer_that_hangs_after_its_first_answer_does_not_delay_the_end(large):
    """OPTIONS is answered, DESCRIBE never: libav waits inside its call, and stop must not wait for it."""
    with RtspServer(large) as server:
        answer = server.silent.set
        with capturing(server.url(), open_timeout_s=60.0) as capture:
            wait_until(lambda: len(server.requests) >= 1)
            answer()
            time.sleep(0.5)
            began = time.monotonic()
            capture.stop()
            assert time.monotonic() - began < 3.0


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl program to make a certificate")
def test_rtsp_over_tls(large, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*command, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with RtspServer(large, tls=context) as server:
        with capturing(server.url()) as capture:
            assert take(capture, 2)
        with capturing(server.url(), tls_verify=True) as capture:  # signed by itself: refused
            wait_until(lambda: capture.counters()["open_failures"] > 0)


class _Mjpeg(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=frame")
        self.end_headers()
        with contextlib.suppress(OSError):
            for index in range(500):
                jpeg = cv2.imencode(".jpg", picture(index))[1].tobytes()
                head = f"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: {len(jpeg)}\r\n\r\n"
                self.wfile.write(head.encode() + jpeg + b"\r\n")
                time.sleep(0.04)

    def log_message(self, *_):
        pass


def test_mjpeg_over_http():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Mjpeg) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with capturing(f"http://127.0.0.1:{server.server_port}/video.mjpg") as capture:
            frames = take(capture, 5)
        server.shutdown()
    assert frames[0].colour.shape == (144, 192, 3)


@pytest.mark.parametrize(("uri", "text"), [
    ("v4l2:/dev/v4l/by-id/no-such-camera", "No such file.*plugged in"),
    ("v4l2:/dev/null", "cannot be opened|not a camera|in use|denied"),
    ("rtsp://127.0.0.1:9/x", "cannot connect to 127.0.0.1:9: Connection refused"),
    ("rtsp://no-such-host.invalid/x", "cannot connect to no-such-host.invalid:554"),
])  # fmt: skip
def test_what_cannot_be_opened_says_why_in_one_line(uri, text):
    source = open_source(uri, SourceConfig(), RealClock())
    with pytest.raises(SourceError, match=text) as caught:
        source.open()
    assert "\n" not in str(caught.value)


GSTREAMER = """
import gi
gi.require_version("Gst", "1.0"); gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer
Gst.init(None)
server = GstRtspServer.RTSPServer()
server.set_service("0")
factory = GstRtspServer.RTSPMediaFactory()
factory.set_launch("( videotestsrc is-live=true ! video/x-raw,width=320,height=240,framerate=25/1 ! "
                   "x264enc tune=zerolatency key-int-max=25 ! rtph264pay name=pay0 pt=96 )")
factory.set_shared(True)
server.get_mount_points().add_factory("/cam", factory)
server.attach(None)
print(server.get_bound_port(), flush=True)
GLib.MainLoop().run()
"""


def _system_python_with_gstreamer():
    for python in ("/usr/bin/python3", sys.executable):
        code = "import gi; gi.require_version('GstRtspServer', '1.0'); from gi.repository import GstRtspServer"
        if shutil.which(python) and subprocess.run([python, "-c", code], capture_output=True).returncode == 0:
            return python
    return None


@pytest.mark.parametrize("transport", ["tcp", "udp"])
@pytest.mark.slow
def test_a_real_server_gstreamers(transport):
    python = _system_python_with_gstreamer()
    if python is None:
        pytest.skip("needs Debian's gir1.2-gst-rtsp-server-1.0, python3-gi and gstreamer1.0-plugins-ugly")
    with subprocess.Popen([python, "-c", GSTREAMER], stdout=subprocess.PIPE, text=True) as process:
        try:
            port = int(process.stdout.readline())
            with capturing(f"rtsp://127.0.0.1:{port}/cam", rtsp_transport=transport) as capture:
                assert take(capture, 10, 20.0)[0].colour.shape == (240, 320, 3)
        finally:
            process.kill()


@pytest.mark.soak
def test_a_camera_away_for_two_minutes_is_live_within_ten_seconds_of_its_return(large):
    config = SourceConfig()
    clock = RealClock()
    with RtspServer(large) as server:
        capture = Capture(lambda: open_source(server.url(), config, clock), config, clock)
        capture.start()
        take(capture, 3, 20.0)
        server.kill()
        end = time.monotonic() + 120.0
        while time.monotonic() < end:
            capture.next(0.5)
        assert capture.state is SourceState.FAILED
        server.start()
        take(capture, 1, 10.0)
        capture.stop()
