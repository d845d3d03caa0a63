"""A source that ends goes on where it was stopped, whatever is said of it behind its path: no frame is taken twice."""

import pytest
from recordings import make_video

from stillwatch.process import RunOptions, run_agent
from stillwatch.settings import load_config
from stillwatch.transport.disk import open_run
from stillwatch.transport.wire import Score, Scores

SETTINGS = [
    "source.width=160",
    "source.height=120",
    'publish.endpoint=""',
    "features.step_px=12",
    "patches.memory=1200",
    "learning.first_epoch_frames=6",
    "encoder.warmup_frames=6",
    "storage.min_free_bytes=0",
]


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return make_video(tmp_path_factory.mktemp("clip") / "clip.mp4", frames=30)


@pytest.mark.parametrize("uri", ["synthetic:room?n_frames=300&width=160&height=120", "CLIP?loop=10"])
def test_a_source_with_options_goes_on_where_it_was_stopped(uri, clip, tmp_path):
    config = load_config(None, [f'source.uri="{uri.replace("CLIP", str(clip))}"', *SETTINGS])
    first = RunOptions(out=tmp_path / "run")
    first.on_message = lambda message: first.stop.set() if isinstance(message, Score | Scores) else None
    before = run_agent(config, first).counts.frames
    assert 0 < before < 300
    assert run_agent(config, RunOptions(out=tmp_path / "run")).counts.frames == 300
    frames = [message.frame for _, message in open_run(tmp_path / "run").messages({"score"})]
    assert frames == sorted(set(frames))
