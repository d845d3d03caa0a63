"""Frames described ahead of their turn in another process: the same bits, in the same order, whatever becomes of it."""

import errno
import functools
import itertools
import os
import pathlib
import signal
import time

import msgspec
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from stillwatch.base import Frame, VirtualClock
from stillwatch.describing import Apart
from stillwatch.pipeline import Pipeline
from stillwatch.process import lookahead
from stillwatch.process.lookahead import Lookahead
from stillwatch.settings import load_config
from stillwatch.transport.wire import Model, encode
from stillwatch.worlds import make_world

SMALL = ["source.width=160", "source.height=120", "patches.memory=600", "scenes.memory=60"]
N_FRAMES, FIRST_APART, FIRST_SMALLER = 66, 16, 40
AHEAD = 8  # less than in a run: filled three times, between what happens here
pytestmark = pytest.mark.usefixtures("two_cores")


class Sink(list):
    """Keeps what is sent, as bytes: all but what an epoch cost."""

    def send(self, message):
        self.append(encode(msgspec.structs.replace(message, seconds=0.0) if isinstance(message, Model) else message))


@functools.cache
def world():
    return make_world("transect", seed=1, n_frames=400, width=160, height=120)


def frames(n=N_FRAMES):
    """Some are refused, and from FIRST_SMALLER on they are of another size."""
    for i in range(n):
        colour = world().render(i) * (i % 20 != 19)
        if i >= FIRST_SMALLER:
            colour = np.ascontiguousarray(colour[:96, :128])
        yield Frame(colour.mean(axis=2).astype(np.uint8), colour, i * 10**8, i * 10**8, 0, 0, i)


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    """As in a run, and in the process beside it: sums of two threads are others on some processors."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    monkeypatch.setattr(lookahead, "LONG", 4)


class Beside:
    """A pipeline whose frames another process describes, as soon as it can and FIRST_APART have come."""

    def __init__(self, ahead=AHEAD):
        self.sent = Sink()
        self.pipeline = Pipeline(load_config(None, SMALL), self.sent, VirtualClock())
        self.processes: list[Apart] = []
        self.fails, self.harm, self.n_taught = False, None, 0
        self.lookahead = Lookahead(self.pipeline, ahead, make=self.make)

    def make(self, config, most):
        if self.fails:
            raise OSError("no processes")
        self.processes.append(Apart(config, most))
        self.watch(self.processes[-1].tutor)
        return self.processes[-1]

    def watch(self, tutor):
        """Count the groups of learners that come back from the other process; stop it as one is asked for at `harm`."""
        ask, hear = tutor.ask, tutor.hear

        def asked(*lesson):
            if self.harm is not None:
                self.processes[-1].answer_within(0.3)
                self.harm(self.processes[-1])
            return ask(*lesson)

        def heard():
            taught = hear()
            self.n_taught += taught is not None
            return taught

        tutor.ask, tutor.hear = asked, heard

    def step(self, frame):
        if self.processes and frame.sequence == FIRST_APART:
            self.wait()
        return [told(step) for step in self.lookahead.step(frame)]

    def wait(self):
        until = time.monotonic() + 60.0
        while not self.processes[-1].is_ready() and time.monotonic() < until:
            time.sleep(0.02)

    def rest(self):
        return [told(step) for step in self.lookahead.settle()]

    def close(self):
        self.lookahead.close()
        self.pipeline.close()


@pytest.fixture
def beside():
    made = Beside()
    yield made
    made.close()


@functools.cache
def alone():
    """All on one thread but the learners: (what was told frame by frame, sent, learner hash, state)."""
    sent = Sink()
    pipeline = Pipeline(load_config(None, SMALL), sent, VirtualClock())
    pipeline.learners.side_by_side = False
    seen = [told(pipeline.step(frame)) for frame in frames()]
    kept = seen, sent, pipeline.learner_hash(), pipeline.state()
    pipeline.close()
    return kept


def told(step):
    score = step.score
    return step.frame.sequence, step.verdict.reason, None if score is None else (score.value, score.rarity)


def check_the_same(beside, seen):
    plain_seen, plain_sent, plain_hash, plain_state = alone()
    assert seen == plain_seen
    assert beside.pipeline.learner_hash() == plain_hash
    assert beside.sent == plain_sent
    assert len(plain_sent) > 5
    state = beside.pipeline.state()
    for name, array in plain_state.items():
        if not name.startswith("learners."):  # rooms that learners left in their buffer may hold old bytes
            np.testing.assert_array_equal(array, state[name], err_msg=name)


def test_another_process_changes_no_bit_and_no_order(beside):
    """Refused frames and a new size are among them; a checkpoint is due in the middle."""
    held, seen = 0, []
    for frame in frames():
        now = beside.step(frame)
        held += not now
        seen += now
        if frame.sequence == 30:
            seen += beside.rest()
    seen += beside.rest()
    assert held == 3 * AHEAD  # at its beginning, after the checkpoint and at the new size
    assert beside.n_taught >= 2  # patches and topics of an epoch at least
    check_the_same(beside, seen)


def end(process):
    os.kill(process.pid, signal.SIGKILL)


def stop(process):
    os.kill(process.pid, signal.SIGSTOP)


@pytest.mark.parametrize("at", [17, 29, 38])
@pytest.mark.parametrize("harm", [end, stop])
def test_a_process_that_is_lost_costs_nothing_but_time(beside, caplog, harm, at):
    seen = []
    for frame in frames():
        if frame.sequence == at:
            beside.processes[0].answer_within(0.3)
            harm(beside.processes[0])
        seen += beside.step(frame)
    seen += beside.rest()
    check_the_same(beside, seen)
    assert "going on without it" in caplog.text
    assert len(beside.processes) == 1


@pytest.mark.parametrize("harm", [end, stop])
def test_a_process_that_is_lost_while_it_teaches_leaves_what_was_learnt_before(beside, harm):
    beside.harm = harm
    seen = [told for frame in frames() for told in beside.step(frame)]
    check_the_same(beside, seen + beside.rest())
    assert beside.n_taught == 0


def test_a_process_that_is_lost_while_two_states_are_on_their_way_costs_nothing_but_time():
    """As far ahead as in a run the state behind a frame is taken when that behind a later one is there already."""
    made = Beside(lookahead.AHEAD)
    seen = []
    for frame in frames():
        if frame.sequence == N_FRAMES - 3:
            time.sleep(1.0)  # so that all that waits is described
            end(made.processes[0])
        seen += made.step(frame)
    check_the_same(made, seen + made.rest())
    made.close()


def is_gone(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"


@pytest.mark.parametrize("at", [FIRST_APART, FIRST_SMALLER + 1])
def test_a_process_that_has_ended_before_frames_begin_to_go_there_loses_none(beside, at):
    seen = []
    for frame in frames():
        if frame.sequence == at:
            beside.wait()
            end(beside.processes[0])
            while not is_gone(beside.processes[0].pid):
                time.sleep(0.02)
        seen += beside.step(frame)
    check_the_same(beside, seen + beside.rest())


@pytest.mark.parametrize(("at", "goes_on"), [(FIRST_APART, False), (FIRST_APART + 1, True)], ids=["frames", "lessons"])
def test_a_limit_on_the_size_of_files_that_refuses_shared_memory_is_done_without(beside, monkeypatch, at, goes_on):
    def refuse(descriptor, n_bytes):
        raise OSError(errno.EFBIG, "File too large")

    seen = []
    for frame in frames():
        if frame.sequence == at:
            beside.wait()
            monkeypatch.setattr("os.ftruncate", refuse)
        seen += beside.step(frame)
        if frame.sequence == FIRST_SMALLER - 1:
            assert (beside.pipeline.frames == FIRST_SMALLER - AHEAD) is goes_on
            monkeypatch.undo()
            monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    check_the_same(beside, seen + beside.rest())


def test_a_process_that_never_starts_is_done_without(beside, caplog):
    beside.fails = True
    seen = [told for frame in frames() for told in beside.step(frame)]
    check_the_same(beside, seen + beside.rest())
    assert "no processes" in caplog.text


def test_after_settling_all_frames_are_in_the_state(beside):
    for frame in frames(35):
        beside.step(frame)
    assert beside.pipeline.frames == 35 - AHEAD
    beside.rest()
    assert beside.pipeline.frames == 35
    assert beside.rest() == []


@pytest.mark.parametrize("short_of", ["ahead", "frames", "cores"])
def test_where_it_gives_nothing_each_frame_is_taken_at_once(short_of, monkeypatch):
    if short_of == "cores":
        monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0})
    if short_of == "frames":
        monkeypatch.setattr(lookahead, "LONG", 300)
    made = Beside(0 if short_of == "ahead" else AHEAD)
    assert [len(made.step(frame)) for frame in itertools.islice(frames(), 30)] == [1] * 30
    assert not made.processes
    made.close()
