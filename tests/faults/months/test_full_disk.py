"""A disk that is really full: what it did not take is told in the closing line, the status and the exit code."""

import json

import pytest
from power_processes import small_disk

from stillwatch.base import ExitCode
from stillwatch.tools.cli import main
from stillwatch.transport.disk import open_run

pytestmark = pytest.mark.slow

SMALL = ["source.width=160", "source.height=120", 'publish.endpoint=""', "patches.memory=1200", "features.step_px=12"]
SMALL += ["storage.min_free_bytes=0", "storage.checkpoint_every_s=0.2", "publish.heartbeat_s=0.3"]
SMALL += ["limits.memory_bytes=8000000000"]  # of the process, which held other tests before


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path / "disk", megabytes=8) as folder:
        yield folder


def run(folder, n_frames=60):
    settings = [word for setting in SMALL for word in ("--set", setting)]
    source = f"synthetic:room?n_frames={n_frames}&width=160&height=120"
    return main(["run", source, "--out", str(folder), *settings])


def left_behind(folder):
    """Files that are half-written: temporary ones, and empty ones but for the lock and a log without a record."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix not in ("", ".swlog")]
    return [path for path in files if path.stat().st_size == 0 or ".tmp" in path.name]


def fill(disk, but_for=0):
    with open(disk / "ballast", "wb", buffering=0) as ballast:
        size = 0
        try:
            while True:
                size += ballast.write(bytes(4096))
        except OSError:
            ballast.truncate(size - but_for)


@pytest.mark.parametrize("room", [0, 4096, 20_000])
def test_a_run_on_a_full_disk_watches_to_its_end_and_says_what_was_not_kept(disk, room, capsys):
    fill(disk, room)
    assert run(disk / "run") == ExitCode.NOT_KEPT
    said = capsys.readouterr().err
    assert "NOT kept" in said
    assert "messages of the run folder" in said
    assert "60 frames" in said
    assert left_behind(disk / "run") == []
    has_summary = (disk / "run" / "summary.json").exists()
    assert ("summary.json" in said) != has_summary
    assert ("see it with" in said) == has_summary


def test_what_is_not_kept_is_in_the_status_and_the_summary_while_the_rest_is_kept(disk, tmp_path, capsys):
    assert run(tmp_path / "roomy", n_frames=150) == ExitCode.DONE
    sizes = {path: path.stat().st_size for path in (tmp_path / "roomy").rglob("*") if path.is_file()}
    checkpoint = max(size for path, size in sizes.items() if "checkpoints" in path.parts)
    rest = sum(size for path, size in sizes.items() if "checkpoints" not in path.parts)
    fill(disk, but_for=rest + checkpoint // 2)  # a checkpoint does not fit beside the messages, whatever its size is
    assert run(disk / "run", n_frames=150) == ExitCode.NOT_KEPT
    assert "NOT kept" in capsys.readouterr().err
    lost = [message.not_kept for kind, message in open_run(disk / "run").messages({"status"})]
    assert lost[-1]["checkpoints"] >= 1
    summary = json.loads((disk / "run" / "summary.json").read_text())
    assert any("checkpoint" in text for text in summary["not_kept"])
    assert summary["exit_code"] == ExitCode.NOT_KEPT
    assert left_behind(disk / "run") == []
