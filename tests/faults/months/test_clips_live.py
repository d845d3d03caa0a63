"""Clips of a real RTSP stream: its own packets, from before the event, also after the camera was lost and is back."""

import time
from types import SimpleNamespace

import av
import pytest
from rtsp_server import RtspServer, encode_h264

from stillwatch.base import RealClock
from stillwatch.clips import Clips
from stillwatch.settings import ClipsConfig, SourceConfig
from stillwatch.sources import Capture, open_source
from stillwatch.tools.checks.corpus import clip

RATE_HZ = 50.0


class Watched:
    """A capture of a camera whose packets a collector of clips hears; the steps of its frames are made here."""

    def __init__(self, url, folder):
        config, clock = SourceConfig(stall_timeout_s=1.0, reconnect_cap_s=0.5), RealClock()
        self.clips = Clips(ClipsConfig(ring_bytes=8_000_000, before_s=0.4, after_s=0.3), folder, 25.0, waits=False)
        self.capture = Capture(lambda: self.clips.tap(open_source(url, config, clock)), config, clock)

    def __enter__(self):
        self.capture.start()
        return self

    def __exit__(self, *_):
        self.capture.stop()

    def see(self, count, alert=None):
        """Take so many frames; with `alert` its event begins with the first and goes on to the last."""
        end = time.monotonic() + 30.0
        for at in range(count):
            while (frame := self.capture.next(0.2)) is None:
                assert time.monotonic() < end, self.capture.counters()
            began = [SimpleNamespace(id=alert, phase="new", start_t_ns=frame.t_ns)] * (alert is not None and at == 0)
            self.clips.see(SimpleNamespace(frame=frame, events=began, open_event=-1 if alert is None else alert))


@pytest.mark.slow
def test_an_alert_of_a_camera_has_a_clip_of_its_packets_and_again_after_its_return(tmp_path):
    units = encode_h264(clip(60), rate=25)
    with RtspServer(units, rate_hz=RATE_HZ) as server, Watched(server.url(), tmp_path) as watched:
        watched.see(60)
        watched.see(10, alert=1)
        watched.see(60)
        server.kill()
        server.start()
        watched.see(60)
        watched.see(10, alert=2)
        watched.see(60)
        watched.clips.close()
        assert watched.clips.counters() == {"written": 2, "lost": 0, "missed": 0}
    for number in (1, 2):
        with av.open(str(tmp_path / f"{number}.mp4")) as file:
            stream = file.streams.video[0]
            packets = [packet for packet in file.demux(stream) if packet.size]
            assert stream.codec_context.name == "h264"
            assert packets[0].is_keyframe
            assert len(packets) > 10 + 0.4 * RATE_HZ
        with av.open(str(tmp_path / f"{number}.mp4")) as file:
            assert sum(1 for _ in file.decode(video=0)) == len(packets)
