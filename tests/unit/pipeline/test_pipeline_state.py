"""What a restart keeps and refuses: whole states go on, others are named and change nothing."""

import functools
import pathlib

import numpy as np
import pytest

from stillwatch.base.clock import VirtualClock
from stillwatch.base.errors import SnapshotError, UsageError
from stillwatch.base.frame import Frame, Nav
from stillwatch.base.state import state_hash
from stillwatch.pipeline.pipeline import Pipeline
from stillwatch.restart.resume import SEAM_NS, position_of
from stillwatch.settings.reader import load_config
from stillwatch.transport.wire import Model
from stillwatch.worlds.catalogue import make_world

SMALL = ["source.width=160", "source.height=120", "patches.memory=600", "scenes.memory=60"]


class Kept(list):
    def send(self, message):
        self.append(message)


def pipeline_of(*settings):
    sink = Kept()
    made = Pipeline(load_config(None, [*SMALL, *settings]), sink, VirtualClock())
    made.sent = sink
    return made


@pytest.fixture
def make():
    made = []

    def make(*settings):
        made.append(pipeline_of(*settings))
        return made[-1]

    yield make
    for pipeline in made:
        pipeline.close()


@functools.cache
def world():
    """The one world of these tests: to build one takes as long as sixty steps through it."""
    return make_world("transect", seed=1, n_frames=400, width=160, height=120)


def frames(n, start=0):
    for i in range(start, start + n):
        colour = world().render(i)
        grey = colour.mean(axis=2).astype(np.uint8)
        yield Frame(grey, colour, i * 10**8, i * 10**8, 0, 0, i)


def test_a_restored_pipeline_goes_on_with_the_same_bits(make):
    whole, first, second = make(), make(), make()
    for frame in frames(60):
        whole.step(frame)
    for frame in frames(41):
        first.step(frame)
    second.restore(first.state())
    for frame in frames(19, start=41):
        second.step(frame)
    assert second.learner_hash() == whole.learner_hash()
    assert (second.frames, second.accepted, second.alerts) == (whole.frames, whole.accepted, whole.alerts)


def test_a_topics_name_and_shares_are_kept_over_restarts_and_models(make):
    first, second = make("topics.share_every_s=0.5"), make("topics.share_every_s=0.5")
    for frame in frames(60):
        first.step(frame)
    topic = int(first.learners.models["topics"].ids[0])
    first.label("topics", topic, "sand")
    second.restore(first.state())
    epoch = second.learners.models.epoch
    said = [pipeline.step(frame).contents for frame in frames(60, start=60) for pipeline in (first, second)]
    assert second.learners.models.epoch > epoch
    one, same = said[::2], said[1::2]
    assert [c is None for c in one] == [c is None for c in same]
    assert all(np.array_equal(a.shares, b.shares) for a, b in zip(one, same, strict=True) if a is not None)
    second.publish_all()
    told = [message for message in second.sent if isinstance(message, Model) and message.which == "topics"]
    assert told[-1].labels == {str(topic): "sand"}
    assert topic in told[-1].ids


@pytest.fixture(scope="module")
def at_work():
    """A pipeline after 30 frames, for tests that hold that it stays as it was."""
    pipeline = pipeline_of()
    for frame in frames(30):
        pipeline.step(frame)
    yield pipeline
    pipeline.close()


@pytest.mark.parametrize(
    "missing", ["pipeline.frames", "pipeline.labels", "learners.schedule.", "learners.nearest.ids", "gate."]
)
def test_a_state_without_a_part_is_refused_and_changes_nothing(at_work, missing):
    pipeline = at_work
    state = {name: array for name, array in pipeline.state().items() if not name.startswith(missing)}
    before = state_hash(pipeline.state())
    with pytest.raises(SnapshotError):
        pipeline.restore(state)
    assert state_hash(pipeline.state()) == before


def test_a_state_of_larger_frames_than_the_box_is_refused(make):
    large = make("source.width=320", "source.height=240")
    with pytest.raises(SnapshotError, match="320x240, larger than the config's 160x120"):
        make().restore(large.state())


def test_labels_and_position_survive_a_restart(make):
    first, second = make(), make()
    for frame in frames(40):
        first.step(frame)
    component = int(first.learners.models["patches"].ids[0])
    first.label("patches", component, "sand = soft")
    first.nav = Nav(latitude=1.5, depth_m=30.0)
    second.restore(first.state())
    assert second.labels == {f"patches/{component}": "sand = soft"}
    assert (second.nav.latitude, second.nav.depth_m) == (1.5, 30.0)


def test_a_label_of_a_component_that_is_not_there_is_refused(make):
    with pytest.raises(UsageError, match="patches has no component 3"):
        make().label("patches", 3, "sand")


META = {"next_sequence": 500, "t_ns": 60 * 10**9, "source": "clip.mp4", "live": False, "finished": False}


@pytest.mark.parametrize(
    ("uri", "changes", "expected"),
    [
        ("clip.mp4", {}, (0, 500, 0, False)),  # interrupted: the same file again, its first 500 frames skipped
        ("clip.mp4", {"finished": True, "at_end": True}, (500, 500, 60 * 10**9 + SEAM_NS, False)),  # seen to its end
        ("next.mp4", {"at_end": True}, (500, 500, 60 * 10**9 + SEAM_NS, False)),  # another clip of the same place
        ("clip.mp4", {"live": True, "at_end": True}, (500, 500, 60 * 10**9 + SEAM_NS, False)),
        ("clip.mp4", {"live": True}, (500, 500, 60 * 10**9 + SEAM_NS, True)),  # a camera, after a crash
    ],
)
def test_where_a_stream_goes_on(uri, changes, expected):
    config = load_config(None, [f'source.uri="{uri}"'])
    resumed = position_of(config, {**META, **changes}, pathlib.Path("checkpoint"))
    assert (resumed.first_sequence, resumed.skip_before, resumed.t_offset_ns, resumed.after_crash) == expected


def test_ids_left_out_after_a_crash_are_no_events(make):
    pipeline = make()
    pipeline.events.skip_ids(100)
    assert pipeline.events.n_events == 0
    assert int(pipeline.events.state()["open.next_id"]) == 100
