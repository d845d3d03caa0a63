"""Clumps as a run sends them: a model learnt from them alone is the agent's own, on frames that neither has learnt."""

from types import SimpleNamespace

import numpy as np
import pytest

from stillwatch.base import RealClock
from stillwatch.learn import MemoryBoundedMixture
from stillwatch.pipeline import Pipeline
from stillwatch.settings import Config, SourceConfig
from stillwatch.tools.evaluate.run import frames_of
from stillwatch.tools.shared import find_data_or_none
from stillwatch.transport.wire import Clumps, Model, clump_arrays, decode, encode

WITHIN = 0.05  # nats a row


def run_on(uri: str, n_learnt: int) -> SimpleNamespace:
    """Run an agent with its defaults on the first frames of a source.

    Returns what it learnt, by mixture; what it sent, as bytes; and rows of the frames that follow, by mixture.
    """
    config, sent = Config(source=SourceConfig(uri=uri)), []
    held_out: dict[str, list] = {"patches": [], "scenes": []}
    pipeline = Pipeline(config, SimpleNamespace(send=lambda message: sent.append(encode(message))), RealClock())
    for number, frame in enumerate(frames_of(config)):
        if number == n_learnt:
            pipeline.finish()
        if number < n_learnt:
            pipeline.step(frame)
        elif (rows := pipeline.describe(frame).rows) is not None and rows.ready:
            held_out["patches"].append(rows.patches[rows.valid][::5].copy())
            held_out["scenes"].append(rows.frame[None].copy())
    pipeline.close()
    rows = {name: np.concatenate(parts).astype(np.float64) for name, parts in held_out.items()}
    return SimpleNamespace(learners=pipeline.learners, sent=sent, held_out=rows)


@pytest.fixture(scope="module")
def room() -> SimpleNamespace:
    return run_on("synthetic:room?quiet=1&n_frames=260", 220)


def last_clumps(run: SimpleNamespace, which: str) -> Clumps:
    found = [message for message in map(decode, run.sent) if isinstance(message, Clumps) and message.which == which]
    return found[-1]


def difference(run: SimpleNamespace, which: str) -> float:
    """Return how much worse held-out rows are under a model of the clumps received, nats a row."""
    own = run.learners[which]
    settings = {name: value for name, value in own.get_params().items() if name not in ("memory", "epoch_size")}
    received = MemoryBoundedMixture.from_clumps(clump_arrays(last_clumps(run, which)), **settings)
    rows = run.held_out[which]
    return own.score(rows) - received.score(rows)


@pytest.mark.parametrize("which", ["patches", "scenes"])
def test_a_model_of_the_clumps_received_is_the_agents_own(room, which):
    assert abs(difference(room, which)) < WITHIN


def test_the_clumps_of_the_last_epoch_are_told_after_the_models_with_what_they_take_of_memory(room):
    messages = [message for message in map(decode, room.sent) if isinstance(message, Clumps | Model)]
    assert isinstance(messages[-1], Clumps)
    for which in ("patches", "scenes"):
        told, learner = last_clumps(room, which), room.learners[which]
        assert told.model_epoch == room.learners.epoch
        assert told.n_clumps + told.n_singlets == len(learner.clumps_["count"])
        assert told.total == pytest.approx(learner.n_seen_)
        assert told.memory == learner.memory
        assert told.clump_points + told.n_singlets <= told.memory - told.epoch_size


@pytest.mark.soak
@pytest.mark.parametrize(
    ("clip", "n_learnt"),
    [
        ("surveillance/vtest_384x288", 600),
        ("surveillance/bottle_table", 500),
        ("surveillance/car_overhead", 250),
        ("underwater/habcam_transect", 300),
    ],
)  # the first half to two thirds
def test_both_mixtures_of_real_clips(clip, n_learnt):
    data = find_data_or_none(None)
    if data is None:
        pytest.skip("no shared data")
    run = run_on(str(data / f"{clip}.mp4"), n_learnt)
    assert abs(difference(run, "patches")) < WITHIN
    assert abs(difference(run, "scenes")) < WITHIN
