"""Replay and restart: the same bits live, replayed at any speed, and after a stop at any accepted frame."""

import json
import os
import subprocess
import sys

import msgspec
import numpy as np
import pytest
from recordings import make_video

from stillwatch.base.clock import RealClock, VirtualClock
from stillwatch.pipeline.pipeline import Pipeline
from stillwatch.process.app import RunOptions, run_agent
from stillwatch.restart import checkpoint
from stillwatch.restart.replay import Replay, config_of
from stillwatch.settings.reader import load_config
from stillwatch.sources.capture import Capture
from stillwatch.sources.registry import open_source
from stillwatch.tools.cli import main
from stillwatch.transport.disk import recording as r
from stillwatch.transport.disk.record_format import log_files
from stillwatch.transport.disk.record_log import RecordWriter, read_records
from stillwatch.transport.disk.recording import Journal, encode_body, first_session, read_recording

SMALL = [
    "source.width=160",
    "source.height=120",
    'publish.endpoint=""',
    "storage.min_free_bytes=0",
    "learning.patch_share=1.0",
    "patches.memory=1200",
    "learning.first_epoch_frames=6",
    "encoder.warmup_frames=6",
    "features.step_px=12",
]
FRAMES = 60


class Nowhere:
    """A sink that keeps alerts only."""

    def __init__(self):
        self.alerts = []

    def send(self, message):
        if type(message).__name__ == "Alert":
            self.alerts.append((message.id, message.phase, message.start_frame, message.frame))


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    return make_video(tmp_path_factory.mktemp("video") / "v.mkv", frames=FRAMES, crf=12)


@pytest.fixture(scope="module")
def small(video):
    return load_config(None, [*SMALL, f'source.uri="{video}"'])


def _run(config, out, record=None, **options):
    return run_agent(config, RunOptions(out=out, record=record, **options))


@pytest.fixture(scope="module")
def recorded(small, tmp_path_factory):
    """One run with its recording: (recording, how it ended)."""
    folder = tmp_path_factory.mktemp("recorded")
    result = _run(small, folder / "run", folder / "rec")
    return folder / "rec", result


def _replay(path, **options):
    replay = Replay(path, Nowhere(), **options)
    for _ in replay.steps():
        pass
    return replay.result


def test_a_replay_learns_the_same_bits_and_decides_the_same(recorded):
    path, run = recorded
    result = _replay(path)
    assert result.frames == run.counts.frames == FRAMES
    assert result.hash == result.recorded_hash == run.hash
    assert result.equal is True
    assert result.ended
    assert result.activations >= 2
    assert (result.activation_differences, result.decision_differences, result.pixel_differences) == (0, 0, 0)


@pytest.mark.parametrize("mode", ["jpeg", "lossless"])
def test_every_way_of_keeping_frames_replays_equal(small, tmp_path, mode):
    storage = msgspec.structs.replace(small.storage, record_frames=mode)
    run = _run(msgspec.structs.replace(small, storage=storage), tmp_path / "rec", tmp_path / "rec")
    result = _replay(tmp_path / "rec")
    assert (result.hash, result.equal, result.decision_differences) == (run.hash, True, 0)


@pytest.mark.slow
@pytest.mark.parametrize("speed", ["max", "10", pytest.param("1000", marks=pytest.mark.soak)])
def test_the_speed_of_a_replay_changes_nothing(recorded, capsys, speed):
    path, run = recorded
    assert main(["replay", str(path), "--speed", speed, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert {"hash", "recorded_hash", "equal", "frames", "speed"} <= report.keys()
    assert (report["hash"], report["recorded_hash"], report["equal"]) == (run.hash, run.hash, True)
    assert report["frames"] == FRAMES
    if speed == "10":
        assert report["speed"] <= 10.5


@pytest.mark.slow
@pytest.mark.parametrize("threads", ["4", pytest.param("2", marks=pytest.mark.soak)])
def test_the_number_of_threads_that_libraries_may_use_changes_nothing(recorded, threads):
    path, run = recorded
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    done = subprocess.run(
        [sys.executable, "-m", "stillwatch.tools.cli", "replay", str(path), "--json"],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **dict.fromkeys(names, threads)},
    )
    assert json.loads(done.stdout)["hash"] == run.hash


def test_frames_dropped_live_are_dropped_in_the_replay(small, tmp_path, monkeypatch):
    real = Capture.next
    dropped = {7, 8, 31, 32, 33, 50}

    def lossy(self, timeout_s):
        frame = real(self, timeout_s)
        return real(self, timeout_s) if frame is not None and frame.sequence in dropped else frame

    monkeypatch.setattr(Capture, "next", lossy)
    run = _run(small, tmp_path / "rec", tmp_path / "rec")
    monkeypatch.undo()
    taken = [b.sequence for _, b in read_recording(tmp_path / "rec") if isinstance(b, r.FrameRecord)]
    assert len(taken) < FRAMES
    result = _replay(tmp_path / "rec")
    assert (result.frames, result.hash, result.equal) == (len(taken), run.hash, True)


def test_the_journal_is_obeyed_at_the_same_frames(small, recorded, tmp_path):
    """A command that changes what is learnt is part of the recording: without it, another hash."""
    from stillwatch.process import app

    class Impatient(app.Agent):
        def look_after(self):
            super().look_after()
            if self.pipeline.frames == 30 and self.pipeline.learners.share == 1.0:
                self.commander.change("set_share", {"share": 0.02})

    agent = Impatient(small, RunOptions(out=tmp_path / "rec", record=tmp_path / "rec"), RealClock())
    agent.start()
    agent.loop()
    run = agent.finish()
    entries = [b for _, b in read_recording(tmp_path / "rec") if isinstance(b, Journal)]
    assert [(e.command, e.before_sequence) for e in entries] == [("set_share", 30)]
    result = _replay(tmp_path / "rec")
    assert (result.hash, result.equal) == (run.hash, True)
    assert result.hash != recorded[1].hash


def test_another_config_has_nothing_to_compare_with(recorded, small):
    learning = msgspec.structs.replace(small.learning, patch_share=0.02)
    result = _replay(recorded[0], config=msgspec.structs.replace(small, learning=learning))
    assert result.equal is None
    assert result.hash != recorded[1].hash


def test_what_would_have_happened_is_told_as_a_difference(recorded, tmp_path, capsys):
    path, _ = recorded
    out = tmp_path / "other"
    assert main(["replay", str(path), "--set", "learning.patch_share=0.02", "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert "nothing recorded to compare with" in told
    assert "config learning.patch_share: 1.0 -> 0.02" in told
    assert "events:" in told
    assert json.loads((out / "summary.json").read_text())["frames"] == FRAMES
    assert main(["report", str(out)]) == 0


class _SteppedClock(RealClock):
    """A wall clock that an operator or NTP steps in both directions while the agent runs."""

    STEPS_S = (3600, -3600, -10 * 86_400, 400 * 86_400)

    def __init__(self):
        self._calls = 0

    def wall_ns(self):
        self._calls += 1
        step_s = self.STEPS_S[self._calls // 200 % len(self.STEPS_S)]
        return super().wall_ns() + step_s * 10**9


def test_a_stepped_wall_clock_changes_no_bit_and_deletes_nothing(small, recorded, tmp_path):
    storage = msgspec.structs.replace(small.storage, max_age_days=1.0, max_file_bytes=100_000)
    config = msgspec.structs.replace(small, storage=storage)
    options = RunOptions(out=tmp_path / "run", record=tmp_path / "rec")
    assert run_agent(config, options, _SteppedClock()).hash == recorded[1].hash
    sequences = [record.sequence for record in read_records(tmp_path / "rec")]
    assert sequences == list(range(len(sequences)))
    assert len(log_files(tmp_path / "rec")) > 1
    assert _replay(tmp_path / "rec").equal is True


def test_a_recorded_config_of_a_later_version_is_read_as_far_as_it_is_known(recorded):
    session = first_session(recorded[0])
    later = msgspec.structs.replace(session, config_text=session.config_text + "\n[future]\nx = 1\n")
    notes = []
    assert config_of(later, notes) == config_of(session)
    assert notes == ["recorded config: future.x is unknown to this version"]


def test_a_replay_up_to_a_frame_compares_at_the_last_mark_before_it(recorded):
    result = _replay(recorded[0], last=FRAMES // 2)
    assert result.frames == FRAMES // 2 + 1
    assert result.equal is True
    assert not result.ended
    assert result.at_sequence <= FRAMES // 2


# -- restart -------------------------------------------------------------------------------------------------------


def _frames(config):
    """Return every frame of the config's source, through a capture."""
    clock = RealClock()
    capture = Capture(lambda: open_source(config.source.uri, config.source, clock), config.source, clock)
    capture.start()
    frames = []
    while (frame := capture.next(10.0)) is not None:
        frames.append(frame)
    return frames


def _pipeline(config):
    sink = Nowhere()
    return Pipeline(config, sink, VirtualClock()), sink


@pytest.fixture(scope="module")
def unbroken(small):
    """The frames, and what a pipeline that never stopped made of them: scores, alerts, hash."""
    frames = _frames(small)
    pipeline, sink = _pipeline(small)
    values = []
    for frame in frames:
        step = pipeline.step(frame)
        values.append(None if step.score is None else step.score.value)
    pipeline.finish()
    digest = pipeline.learner_hash()
    pipeline.close()
    return frames, values, sink.alerts, digest


@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(3, 20))])
def test_a_restart_at_any_frame_goes_on_with_the_same_bits(small, unbroken, tmp_path, seed):
    frames, values, alerts, digest = unbroken
    stop = int(np.random.default_rng(seed).integers(1, len(frames)))
    first, before = _pipeline(small)
    for frame in frames[:stop]:
        first.step(frame)
    checkpoint.save(tmp_path, first.state(), {"next_sequence": stop})
    first.close()
    second, after = _pipeline(small)
    second.restore(checkpoint.load_newest(tmp_path)[0])
    again = []
    for frame in frames[stop:]:
        step = second.step(frame)
        again.append(None if step.score is None else step.score.value)
    second.finish()
    assert second.learner_hash() == digest
    second.close()
    assert again == values[stop:]
    assert before.alerts + after.alerts == alerts


def test_a_run_stopped_and_started_again_ends_where_an_unbroken_one_does(small, tmp_path, recorded):
    """Through the process's own doors: stop, checkpoint, resume; the recording of both sessions replays equal."""
    path, whole = recorded
    options = RunOptions(out=tmp_path / "rec", record=tmp_path / "rec")
    options.on_message = lambda message: options.stop.set() if message.frame >= 30 else None
    first = run_agent(small, options)
    assert 0 < first.counts.frames < FRAMES
    second = _run(small, tmp_path / "rec", tmp_path / "rec")
    assert second.counts.frames == FRAMES
    assert second.hash == whole.hash
    result = _replay(tmp_path / "rec")
    assert (result.hash, result.equal) == (whole.hash, True)
    assert result.notes == []


def test_replay_from_a_frame_begins_at_the_nearest_checkpoint(small, tmp_path):
    options = RunOptions(out=tmp_path / "rec", record=tmp_path / "rec")
    options.on_message = lambda message: options.stop.set() if message.frame >= 30 else None
    stopped = run_agent(small, options).counts.frames
    whole = _run(small, tmp_path / "rec", tmp_path / "rec")
    replay = Replay(tmp_path / "rec", Nowhere(), first=stopped + 5)
    steps = [step.frame.sequence for step in replay.steps()]
    assert steps == list(range(stopped, FRAMES))
    assert replay.result.hash == whole.hash
    assert replay.result.equal is True


def test_a_recording_whose_beginning_was_deleted_is_replayed_from_a_checkpoint(small, tmp_path):
    storage = msgspec.structs.replace(small.storage, max_file_bytes=100_000)
    config = msgspec.structs.replace(small, storage=storage)
    options = RunOptions(out=tmp_path / "run", record=tmp_path / "rec")
    options.on_message = lambda message: options.stop.set() if message.frame >= 35 else None
    run_agent(config, options)
    whole = _run(config, tmp_path / "run", tmp_path / "rec")
    files = log_files(tmp_path / "rec")
    assert len(files) >= 3
    files[0][1].unlink()
    result = _replay(tmp_path / "rec")
    assert 0 < result.frames < FRAMES
    assert (result.hash, result.equal) == (whole.hash, True)
    assert "were deleted: begun at" in result.notes[0]
    for path in checkpoint.files(tmp_path / "rec" / "checkpoints"):
        path.unlink()
    orphan = _replay(tmp_path / "rec")
    assert orphan.equal is None


def test_damage_in_the_middle_is_told_and_the_rest_is_replayed(recorded, tmp_path):
    import shutil

    path, run = recorded
    shutil.copytree(path, tmp_path / "rec")
    frame = next(rec for rec, b in read_recording(path) if isinstance(b, r.FrameRecord) and b.sequence == 45)
    log = log_files(tmp_path / "rec")[0][1]
    data = bytearray(log.read_bytes())
    data[frame.offset + 50] ^= 1
    log.write_bytes(data)
    result = _replay(tmp_path / "rec")
    assert result.frames == FRAMES - 1
    assert result.equal is False
    assert f"offset {frame.offset}" in " ".join(result.notes)


def test_an_unknown_journal_command_is_a_note_not_an_end(recorded, tmp_path):
    """A recording of a later version may hold commands that this one does not know."""
    import shutil

    path, run = recorded
    (tmp_path / "rec").mkdir()
    shutil.copytree(path / "checkpoints", tmp_path / "rec" / "checkpoints")
    writer = RecordWriter(tmp_path / "rec", "recording", clock=VirtualClock())
    for record in read_records(path, name="recording"):
        body = r.decode_body(record)
        if isinstance(body, r.FrameRecord) and body.sequence == 10:
            writer.append(r.KIND_OF[Journal], encode_body(Journal(before_sequence=10, command="dance")))
        writer.append(record.kind, record.body, record.t_ns)
    writer.close()
    result = _replay(tmp_path / "rec")
    assert any("dance" in note for note in result.notes)
    assert result.hash == run.hash
