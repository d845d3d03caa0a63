"""Exemplars of frames say which part of them shows which topic."""

import numpy as np
from capture_sources import frame_of

from stillwatch.base import VirtualClock
from stillwatch.pipeline import Pipeline
from stillwatch.settings import load_config
from stillwatch.transport.wire import Exemplar

WIDTH, HEIGHT = 160, 120
SETTINGS = [f"source.width={WIDTH}", f"source.height={HEIGHT}", "novelty.camera=moving", "patches.memory=600"]


class Kept(list):
    def send(self, message):
        self.append(message)


def picture(i: int) -> np.ndarray:
    """Fine green noise, and from frame 40 on a red board of coarse stripes on the left, whose border moves."""
    rng = np.random.default_rng(i)
    view = rng.normal((60, 120, 60), 12.0, (HEIGHT, WIDTH, 3))
    border = WIDTH // 2 + 30 * (i % 3 - 1) if i >= 40 else 0
    view[:, :border] = (40.0, 60.0, 170.0) + 40.0 * np.sign(np.sin(np.arange(border) / 3.0))[None, :, None]
    return np.clip(view, 0, 255).astype(np.uint8)


def test_exemplars_say_which_part_of_them_shows_which_topic():
    sent = Kept()
    pipeline = Pipeline(load_config(None, [*SETTINGS, "topics.memory=800"]), sent, VirtualClock())
    for i in range(150):
        pipeline.step(frame_of(picture(i), i / 10, sequence=i))
    pipeline.finish()
    pipeline.close()
    frames = [message for message in sent if isinstance(message, Exemplar) and message.role == "frame"]
    mapped = [message for message in frames if message.topic_map is not None]
    assert mapped
    assert all(message.thumbnail for message in mapped)
    for message in mapped[-3:]:
        shown = message.map_topics[message.topic_map]
        board = shown[:, : shown.shape[1] // 4], shown[:, -(shown.shape[1] // 8) :]
        left, right = (np.bincount(part.ravel()).argmax() for part in board)
        assert left != right
        assert (board[0] == left).mean() > 0.7
    others = [message for message in sent if isinstance(message, Exemplar) and message.role != "frame"]
    assert others
    assert all(message.topic_map is None for message in others)
