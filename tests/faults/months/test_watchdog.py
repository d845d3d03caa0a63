"""The watchdog of the service manager is fed by frames that go through, not by a timer or a camera that seems live."""

import socket
import threading

import pytest
from rtsp_server import RtspServer, encode_h264

from stillwatch.process import RunOptions, run_agent
from stillwatch.settings import load_config
from stillwatch.tools.checks.corpus import clip

SMALL = ["source.width=160", "source.height=120", 'publish.endpoint=""', "features.step_px=12"]


class Manager:
    """What a service manager hears of a run in a thread of this process."""

    def __init__(self, folder, monkeypatch):
        self.channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.channel.bind(str(folder / "notify"))
        self.channel.settimeout(30.0)
        monkeypatch.setenv("NOTIFY_SOCKET", str(folder / "notify"))

    def hears(self, text, *, most=50):
        """Return what is said up to a message that holds `text`."""
        said = []
        while not said or text not in said[-1]:
            assert len(said) < most, said
            said.append(self.channel.recv(4096).decode())
        return said


@pytest.mark.slow
def test_the_watchdog_starves_where_a_live_camera_gives_no_frames(tmp_path, monkeypatch):
    manager, options = Manager(tmp_path, monkeypatch), RunOptions(out=tmp_path / "run")
    with manager.channel, RtspServer(encode_h264(clip(30), rate=25)) as server:
        config = load_config(None, [f'source.uri="{server.url()}"', "source.stall_timeout_s=100", *SMALL])
        agent = threading.Thread(target=run_agent, args=(config, options))
        agent.start()
        try:
            assert manager.hears("READY=1")
            assert "live" in manager.hears("WATCHDOG=1\nSTATUS=live")[-1]
            server.silent.set()
            starved = manager.hears("STATUS=live", most=3)
            while "WATCHDOG" in starved[-1]:  # frames that were on their way
                starved = manager.hears("STATUS=live", most=3)
            assert "WATCHDOG" not in manager.hears("STATUS=live", most=1)[-1]
            server.silent.clear()
            assert manager.hears("WATCHDOG=1\nSTATUS=live")
        finally:
            options.stop.set()
            agent.join(30.0)
        assert not agent.is_alive()
        assert manager.hears("STOPPING=1")
