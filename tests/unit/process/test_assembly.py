"""What a config that cannot be carried out is refused with, before anything is opened."""

import pytest

from stillwatch.base import ConfigError
from stillwatch.base.clock import VirtualClock
from stillwatch.process.assembly import make_thin_carrier
from stillwatch.settings import Config, LinkConfig


def config(tmp_path, **link):
    usual = {"preset": "lte", "endpoint": "udp://127.0.0.1:9", "outbox_dir": str(tmp_path)}
    return Config(link=LinkConfig(**usual | link))


def test_no_preset_is_no_thin_link(tmp_path):
    assert make_thin_carrier(config(tmp_path, preset=""), VirtualClock(), beside=tmp_path / "run") is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"preset": "smoke"}, "smoke"),
        ({"endpoint": "x"}, "link.endpoint"),
        ({"listen": "y"}, "link.listen"),
        ({"key_file": "/nowhere/link.key"}, "link.key_file"),
    ],
)
def test_a_link_that_cannot_be_used_is_refused(tmp_path, change, message):
    with pytest.raises(ConfigError, match=message):
        make_thin_carrier(config(tmp_path, **change), VirtualClock(), beside=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_link_opens_its_outbox_on_the_thread_that_uses_it_and_no_earlier(tmp_path):
    carrier = make_thin_carrier(config(tmp_path, listen="udp://127.0.0.1:0"), VirtualClock(), beside=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []
    carrier.open()
    carrier.close()
    assert [path.name for path in tmp_path.iterdir()] == [Config().agent.id]
