"""Power: kill -9, full, read-only and vanished disks, stepped clocks; real processes on real file systems."""

import json
import pathlib
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest
from power_processes import (
    agent_command,
    check_after_kill,
    frame_records,
    kill_at_random,
    log_bytes,
    mount_tmpfs,
    recorder_command,
    small_disk,
    start,
    wait_for,
)
from recordings import make_video

from stillwatch.base import ExitCode
from stillwatch.restart import checkpoint
from stillwatch.transport.disk.record_format import KIND_GAP
from stillwatch.transport.disk.record_log import read_records
from stillwatch.transport.disk.run_folder import open_run

pytestmark = pytest.mark.slow

KILLS_OF_RECORDER = 2  # hundreds in tests/soak
KILLS_OF_AGENT = 1


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    return make_video(tmp_path_factory.mktemp("video") / "v.mkv", frames=60)


def test_a_recorder_killed_at_random_moments_loses_less_than_a_second(video, tmp_path):
    rng = np.random.default_rng(0)
    taken = 0
    for _ in range(KILLS_OF_RECORDER):
        killed_ns = kill_at_random(recorder_command(video, tmp_path / "rec"), tmp_path / "rec", rng)
        frames = check_after_kill(tmp_path / "rec", killed_ns)
        assert len(frames) > taken
        taken = len(frames)
    sequences = [record.sequence for record in read_records(tmp_path / "rec")]
    assert sequences == list(range(len(sequences)))


def test_an_agent_killed_at_random_moments_goes_on_by_itself_and_replays_equal(video, tmp_path):
    rng = np.random.default_rng(1)
    folder = tmp_path / "rec"
    command = agent_command("record", f"{video}?loop=1000", folder)
    for _ in range(KILLS_OF_AGENT):
        killed_ns = kill_at_random(command, folder, rng)
        check_after_kill(folder, killed_ns)
    process = start(command)
    before = log_bytes(folder)
    wait_for(lambda: log_bytes(folder) > before + 20_000)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["frames"] == frame_records(folder)[-1].sequence + 1
    done = subprocess.run(agent_command("replay", folder, "--json")[:6], check=False, capture_output=True, text=True)
    report = json.loads(done.stdout)
    assert (report["hash"], report["equal"]) == (summary["hash"], True), report


def _run_with_bad_disk(video, good, bad, break_it, mend_it):
    """Run an agent that records on `bad`; return (stderr, frames while it was bad, frames at the end)."""
    source = f"{video}?loop=100000&pace=1"  # ten frames a second, as of a camera: the disk is what is tried
    process = start(agent_command("run", "--source", source, "--out", good, "--record", bad))
    lines = []

    def frames():
        try:
            return sum(1 for _ in open_run(good).messages({"score"}))
        except Exception:  # noqa: BLE001 - the folder may not be there yet
            return 0

    try:
        wait_for(lambda: process.poll() is not None or frames() > 5, every_s=0.2)
        break_it()
        start_count = frames()
        time.sleep(2.5)
        wait_for(lambda: frames() > start_count + 20, every_s=0.2)
        during = frames() - start_count
        mend_it()
        before = log_bytes(bad)
        wait_for(lambda: log_bytes(bad) > before + 5_000)
        wait_for(lambda: frame_records(bad), every_s=0.5)  # a new file begins with models and clumps
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        lines = errors.splitlines()
        assert process.returncode == ExitCode.NOT_KEPT, errors  # of a file's run: frames of it are not on the disk
        assert sum("NOT kept" in line and "records of the recording" in line for line in lines) == 1, errors
    finally:
        process.kill()
        process.communicate()
    return lines, during


def _fill(disk: pathlib.Path):
    with open(disk / "filler", "wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(4096))
        except OSError:
            pass


def test_a_full_disk_stops_the_recording_not_the_watching(video, tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        bad = disk / "rec"
        lines, during = _run_with_bad_disk(
            video, tmp_path / "run", bad, lambda: _fill(disk), lambda: (disk / "filler").unlink()
        )
        assert during > 20
        said = [line for line in lines if "recording is not written" in line]
        assert len(said) == 1, lines
        assert "No space left" in said[0]
        assert sum("recording is written again" in line for line in lines) == 1
        notices = [m.code for _, m in open_run(tmp_path / "run").messages({"log"}) if m.code.startswith("disk")]
        assert notices == ["disk_full", "disk_ok"]
        gaps = [record for record in read_records(bad) if record.kind == KIND_GAP]
        assert len(gaps) == 1
        damage = []
        assert len(list(read_records(bad, damage=damage))) > 20
        assert damage == []


def test_a_disk_that_is_read_only_at_the_start_is_used_once_it_is_not(video, tmp_path):
    with small_disk(tmp_path / "disk", options="ro") as disk:
        bad = disk / "rec"
        lines, during = _run_with_bad_disk(
            video,
            tmp_path / "run",
            bad,
            lambda: None,
            lambda: subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True),
        )
        assert during > 20
        assert sum("Read-only file system" in line and "recording" in line for line in lines) == 1, lines
        assert frame_records(bad)


def test_a_disk_that_vanishes_is_noticed_and_used_again_when_it_is_back(video, tmp_path):
    with small_disk(tmp_path / "disk", megabytes=16) as disk:
        bad = disk / "rec"

        def mend():
            mount_tmpfs(disk, 16)

        lines, during = _run_with_bad_disk(
            video, tmp_path / "run", bad, lambda: subprocess.run(["umount", "-l", str(disk)], check=True), mend
        )
        assert during > 20
        assert sum("recording is not written" in line for line in lines) == 1, lines
        assert frame_records(bad)
    assert not (tmp_path / "disk" / "rec").exists(), "written to the disk below the mount point"


def test_a_checkpoint_cut_short_by_a_power_cut_falls_back_to_the_one_before(video, tmp_path):
    folder = tmp_path / "run"
    command = agent_command("run", "--source", video, "--out", folder)
    subprocess.run(command, check=True, capture_output=True)
    good = checkpoint.files(folder / "checkpoints")[-1]
    torn = good.with_name("checkpoint-00000099.swck")
    torn.write_bytes(good.read_bytes()[:5000])
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0
    assert "checkpoint-00000099" in done.stderr
    assert torn.with_name(f"{torn.name}.damaged").exists()
    assert json.loads((folder / "summary.json").read_text())["frames"] == 120
    shutil.rmtree(folder)
