"""More memory than the limit is told once, with what it is, what it may be and what to do."""

from recordings import make_video

from stillwatch.outlet import health
from stillwatch.process import RunOptions, run_agent
from stillwatch.settings import load_config


def test_memory_over_its_limit_is_told_once_in_megabytes_with_a_remedy(tmp_path, monkeypatch, caplog):
    clip = make_video(tmp_path / "clip.mp4", frames=30, rate=10)  # three seconds; it is looked at each second
    small = ["source.width=160", "source.height=120", 'publish.endpoint=""', "patches.memory=600"]
    config = load_config(None, [f'source.uri="{clip}?pace=1"', *small])
    monkeypatch.setattr(health, "rss_bytes", lambda: 437_825_536)
    assert run_agent(config, RunOptions(out=tmp_path / "run")).counts.frames == 30
    told = [record.message for record in caplog.records if "limits.memory_bytes" in record.message]
    assert told == [
        "438 MB of memory in use, over limits.memory_bytes (400 MB); the run goes on; "
        "large pictures need much while they are decoded: a smaller stream, or a higher limit"
    ]
