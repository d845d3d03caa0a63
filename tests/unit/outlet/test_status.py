"""Heartbeats: at once where people would act on them, seldom where other messages say that the agent lives."""

from types import SimpleNamespace

import pytest

from stillwatch.base import SourceState
from stillwatch.base.clock import VirtualClock
from stillwatch.outlet.status import StatusReporter
from stillwatch.transport.wire.messages import Headers

S = 1_000_000_000


class Agent:
    """What a reporter asks, and two seconds a beat."""

    def __init__(self, folder):
        self.clock = VirtualClock(0, 0)
        self.extra = {"drops": {}, "endpoints": {}, "not_kept": {}, "sequences": {}, "tx_bytes": {}}
        counts = SimpleNamespace(frames=0, as_dict=lambda: {"frames": 0})
        self.pipeline = SimpleNamespace(
            gate_state=SourceState.LIVE, progress=1.0, model_hash="", last_frame=None, frames=0,
            certainty=SimpleNamespace(why=SimpleNamespace(value=""), busy=0.0),
            events=SimpleNamespace(suppressed={}), learners=SimpleNamespace(models=None),
            features=SimpleNamespace(encoder_hash=""), counts=lambda dropped: counts,
        )  # fmt: skip
        self.capture = SimpleNamespace(
            state=SourceState.LIVE, counters=lambda: {"dropped": 0}, last_frame_age_s=lambda: 0.0,
            info=SimpleNamespace(kind="video", uri="x.mp4"),
        )  # fmt: skip
        self.reporter = StatusReporter(
            Headers("cam1", "run", "boot", 1), self.clock, self.pipeline, self.capture, folder=folder, config_hash="",
            memory_bytes=0, extra=lambda: self.extra,
        )  # fmt: skip

    def beats(self, n, *, was_heard=True):
        """Return the sequences told at `n` beats, None where none was."""
        found = []
        for _ in range(n):
            status = self.reporter(was_heard)
            found.append(None if status is None else status.sequence)
            self.clock.advance_ns(2 * S)
        return found


@pytest.fixture
def agent(tmp_path):
    return Agent(tmp_path)


def test_with_nothing_new_one_comes_every_ten_seconds_and_none_is_missing(agent):
    assert agent.beats(11) == [0, None, None, None, None, 1, None, None, None, None, 2]


def test_while_nothing_else_is_heard_every_one_comes(agent):
    assert agent.beats(3, was_heard=False) == [0, 1, 2]


@pytest.mark.parametrize(
    "change",
    [
        lambda agent: setattr(agent.capture, "state", SourceState.STALLED),
        lambda agent: setattr(agent.pipeline, "progress", 0.5),
        lambda agent: agent.pipeline.events.suppressed.update(budget=1),
        lambda agent: agent.extra.update(drops={"score": 1}),
        lambda agent: agent.extra.update(not_kept={"messages": 1}),
    ],
    ids=["state", "learning", "suppressed", "drops", "disk"],
)
def test_what_people_act_on_is_told_at_the_next_beat(agent, change):
    agent.beats(2)
    change(agent)
    assert agent.beats(2) == [1, None]
