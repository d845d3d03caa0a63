"""Frames described ahead of their turn: the same bits, in the same order, with nothing left behind."""

import functools

import msgspec
import numpy as np
import pytest

from stillwatch.base import Frame, VirtualClock
from stillwatch.pipeline import Pipeline
from stillwatch.process.lookahead import AHEAD, Lookahead
from stillwatch.settings import load_config
from stillwatch.transport.wire import Model, encode
from stillwatch.worlds import make_world

SMALL = ["source.width=160", "source.height=120", "patches.memory=600", "scenes.memory=60"]
N_FRAMES = 60


class Sink(list):
    """Keeps what is sent, as bytes: all but what an epoch cost."""

    def send(self, message):
        self.append(encode(msgspec.structs.replace(message, seconds=0.0) if isinstance(message, Model) else message))


@functools.cache
def world():
    return make_world("transect", seed=1, n_frames=400, width=160, height=120)


def frames(n):
    """Some are refused, and the last third is of another size."""
    for i in range(n):
        colour = world().render(i) * (i % 20 != 19)
        if i >= 2 * n // 3:
            colour = np.ascontiguousarray(colour[:96, :128])
        yield Frame(colour.mean(axis=2).astype(np.uint8), colour, i * 10**8, i * 10**8, 0, 0, i)


@pytest.fixture
def make():
    made = []

    def make(ahead, sink=None):
        pipeline = Pipeline(load_config(None, SMALL), Sink() if sink is None else sink, VirtualClock(), ahead=ahead)
        made.append((Lookahead(pipeline), pipeline))
        return made[-1]

    yield make
    for lookahead, pipeline in made:
        lookahead.close()
        pipeline.close()


def told(step):
    score = step.score
    return step.frame.sequence, step.verdict.reason, None if score is None else (score.value, score.rarity)


def test_two_cores_change_no_bit_and_no_order(make, monkeypatch):
    """All on one thread but the learners, one after the other; then described ahead, learners side by side."""
    sent_quick, sent_plain = Sink(), Sink()
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    ahead, quick = make(AHEAD, sent_quick)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0})
    _, plain = make(0, sent_plain)
    seen = [told(step) for frame in frames(N_FRAMES) for step in ahead.step(frame)]
    seen += [told(step) for step in ahead.drain()]
    assert seen == [told(plain.step(frame)) for frame in frames(N_FRAMES)]
    assert quick.learner_hash() == plain.learner_hash()
    assert sent_quick == sent_plain
    assert len(sent_plain) > 5
    for name, array in plain.state().items():
        if not name.startswith("learners."):  # rooms that learners left in their buffer may hold old bytes
            np.testing.assert_array_equal(array, quick.state()[name], err_msg=name)


def test_after_draining_all_frames_are_in_the_state(make):
    ahead, pipeline = make(AHEAD)
    for frame in frames(35):
        ahead.step(frame)
    ahead.drain()
    assert pipeline.frames == 35
    assert ahead.drain() == []


def test_a_pipeline_made_for_no_lookahead_takes_each_frame_at_once(make):
    ahead, _ = make(0)
    assert [len(ahead.step(frame)) for frame in frames(30)] == [1] * 30


def test_a_fault_in_a_description_reaches_who_hands_frames_over(make, monkeypatch):
    ahead, pipeline = make(AHEAD)
    given = list(frames(30))
    for frame in given[:20]:
        ahead.step(frame)

    def fail(frame):
        raise ValueError("no such frame")

    monkeypatch.setattr(pipeline, "describe", fail)
    with pytest.raises(ValueError, match="no such frame"):
        [ahead.step(frame) for frame in given[20:]]
