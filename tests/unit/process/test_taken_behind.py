"""An agent whose frames are taken some behind shows what each led to: at a checkpoint, in a pause, at the end."""

from collections import deque

import pytest

from stillwatch.clips import Clips
from stillwatch.process import RunOptions, app, run_agent
from stillwatch.settings import load_config

N_FRAMES, BEHIND = 30, 4
SETTINGS = [
    'source.uri="synthetic:room?n_frames=30&seed=3"', "source.width=160", "source.height=120", 'publish.endpoint=""',
    "clips.ring_bytes=1000000",
]  # fmt: skip


class Behind:
    """Stands for a `Lookahead`: takes each frame BEHIND later, as frames that another process describes are."""

    def __init__(self, pipeline, *_):
        self.pipeline, self.waiting = pipeline, deque()

    def step(self, frame):
        self.waiting.append(frame)
        return self.take(BEHIND)

    def drain(self):
        return self.take(0)

    def settle(self):
        return self.take(0)

    def close(self):
        pass

    def take(self, left):
        return [self.pipeline.step(self.waiting.popleft()) for _ in range(len(self.waiting) - left)]


@pytest.mark.parametrize("every_s", [0.001, 3600.0], ids=["checkpoints all the time", "none but the last"])
def test_clips_see_every_frame_once_and_in_order(tmp_path, monkeypatch, every_s):
    seen = []
    monkeypatch.setattr(Clips, "see", lambda self, step: seen.append(step.frame.sequence))
    monkeypatch.setattr(app, "Lookahead", Behind)
    config = load_config(None, [*SETTINGS, f"storage.checkpoint_every_s={every_s}"])
    assert run_agent(config, RunOptions(out=tmp_path / "run")).exit_code == 0
    assert seen == list(range(N_FRAMES))
