"""Recordings and checkpoints written by earlier versions open in this one, with everything they held."""

import json
import pathlib

import numpy as np
import pytest
from recordings import stamp

from stillwatch.base.clock import VirtualClock
from stillwatch.base.environment import versions
from stillwatch.restart import checkpoint
from stillwatch.settings.config import SourceConfig
from stillwatch.sources.capture import FrameMaker
from stillwatch.sources.recording import RecordingSource
from stillwatch.transport.disk import recording as r
from stillwatch.transport.disk.recording import read_recording

GOLDEN = pathlib.Path(__file__).parent / "recording_v1"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text())
MODES = ("packets", "packets_mjpeg", "jpeg", "lossless")
DECODERS = ("av", "opencv-python-headless", "machine")


def _frames(mode):
    source = RecordingSource(str(GOLDEN / mode), SourceConfig())
    source.open()
    maker = FrameMaker(SourceConfig(), VirtualClock(), False, 0, None)
    frames = []
    while (raw := source.read()) is not None:
        frames.append(list(stamp(maker.make(raw))))
    assert source.damage == []
    assert source.missing == 0
    return frames


@pytest.mark.parametrize("mode", MODES)
def test_every_frame_opens_with_its_times(mode):
    frames = _frames(mode)
    assert [frame[:7] for frame in frames] == [frame[:7] for frame in EXPECTED[mode]]
    assert len(frames) == 22


@pytest.mark.parametrize("mode", MODES)
def test_pixels_are_those_of_then(mode):
    same_decoders = all(EXPECTED["versions"].get(name) == versions().get(name) for name in DECODERS)
    if mode != "lossless" and not same_decoders:
        pytest.skip("other decoder versions may round differently")
    assert [frame[7:] for frame in _frames(mode)] == [frame[7:] for frame in EXPECTED[mode]]


@pytest.mark.parametrize("mode", MODES)
def test_everything_decided_is_there(mode):
    bodies = [body for _, body in read_recording(GOLDEN / mode) if body is not None]
    of = {kind: [b for b in bodies if isinstance(b, kind)] for kind in r.KIND_OF}
    session = of[r.Session][0]
    assert (session.agent, session.run, session.config_hash, session.format) == ("cam1", "golden", "0" * 16, 1)
    assert session.config_text == '[agent]\nid = "cam1"\n'
    assert session.versions == EXPECTED["versions"]
    assert [d.sequence for d in of[r.Decision] if not d.accepted] == [9]
    assert [d.value for d in of[r.Decision]] == [0.5 * frame[0] for frame in EXPECTED[mode]]
    assert [(d.count, d.before_sequence) for d in of[r.Drop]] == [(2, 7)]
    assert [(a.sequence, a.hash, a.model_epoch) for a in of[r.Activation]] == [(12, "0123456789abcdef", 1)]
    assert [(j.before_sequence, j.command, j.arguments) for j in of[r.Journal]] == [(13, "set_share", {"share": 0.5})]
    assert [(c.sequence, c.accepted, c.file) for c in of[r.Checkpoint]] == [(12, 10, "checkpoint-00000001.swck")]
    assert [(e.frames, e.hash, e.reason) for e in of[r.End]] == [(22, "fedcba9876543210", "source ended")]


def test_a_checkpoint_of_another_states_meaning_is_refused_with_both_versions():
    with pytest.raises(
        checkpoint.VersionError, match=f"state version 1, this stillwatch reads {checkpoint.STATE_VERSION}"
    ):
        checkpoint.read(GOLDEN / "checkpoint-00000001.swck")


def test_a_checkpoints_container_opens_with_its_arrays(monkeypatch):
    for version in range(1, checkpoint.STATE_VERSION):  # the file's form is the same, whatever its arrays mean
        monkeypatch.setitem(checkpoint.MIGRATIONS, version, lambda state, meta: (state, meta))
    state, meta = checkpoint.read(GOLDEN / "checkpoint-00000001.swck")
    assert meta == {"next_sequence": 24, "config_hash": "0" * 16}
    assert state["a.mean"].dtype == np.float32
    np.testing.assert_array_equal(state["a.mean"], np.arange(6, dtype=np.float32).reshape(2, 3) / 3)
    assert int(state["a.count"]) == -7
    assert state["b.names"].tolist() == ["dark", "frozen"]
    assert state["b.flags"].tolist() == [True, False]
    assert state["c"].shape == (0, 4)
