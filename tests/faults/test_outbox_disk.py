"""The outbox on full, limited and absent disks, with real file systems: nothing stored is lost, news still go out."""

import os
import resource
import subprocess
import sys
import textwrap

import pytest
from thin_records import alert_of

from stillwatch.base.clock import VirtualClock
from stillwatch.transport.thin.codec import ThinCodec
from stillwatch.transport.thin.link import ThinSender
from stillwatch.transport.thin.outbox import Outbox
from stillwatch.transport.thin.presets import PRESETS
from stillwatch.transport.thin.records import ThinAlert
from stillwatch.transport.wire.errors import LogError

WALL_NS = 1_795_824_000_000_000_000


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 KiB of our own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount a tmpfs")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder):
    """Fill the disk to its last byte."""
    with open(folder / "ballast", "wb", buffering=0) as stream:
        try:
            while True:
                stream.write(bytes(4096))
        except OSError:
            pass


def test_a_full_disk_refuses_keeps_what_is_stored_and_recovers_by_itself(small_disk):
    clock = VirtualClock(0, WALL_NS)
    outbox = Outbox(small_disk / "outbox", clock=clock, max_bytes=1_000_000, min_free_bytes=0)
    stored = [outbox.put(b"%d" % k) for k in range(20)]
    fill(small_disk)
    for _ in range(50):  # the last page of the file may still take some
        try:
            stored.append(outbox.put(bytes(200)))
        except LogError:
            break
    with pytest.raises(LogError, match="nothing can be stored"):
        outbox.put(bytes(200))
    assert [number for number, _ in outbox.pending()] == stored
    again = Outbox(small_disk / "outbox", clock=clock, max_bytes=1_000_000, min_free_bytes=0)
    assert [number for number, _ in again.pending()] == stored
    os.unlink(small_disk / "ballast")
    clock.advance_ns(10_000_000_000)
    new = outbox.put(b"works again")
    assert new not in stored
    assert outbox.state == "ok"


def test_alerts_still_go_out_while_the_disk_is_full_and_are_stored_later(small_disk):
    clock = VirtualClock(0, WALL_NS)
    fill(small_disk)
    outbox = Outbox(small_disk / "outbox", clock=clock, min_free_bytes=10_000)
    sender = ThinSender(PRESETS["micromodem-0"].up, ThinCodec(1), outbox, now_ns=0)
    number = sender.alert(ThinAlert(7, "novel", WALL_NS), 0)
    assert sender.counters["held_alerts"] == 1
    (frame,) = sender.poll(0)
    assert alert_of(ThinCodec(1), frame).event == 7
    os.unlink(small_disk / "ballast")
    clock.advance_ns(20_000_000_000)
    sender.poll(20_000_000_000)
    assert [found for found, _ in Outbox(small_disk / "outbox", clock=clock).pending()] == [number]


def test_numbers_of_processes_that_found_no_disk_differ_from_those_of_the_folder(small_disk):
    clock = VirtualClock(0, WALL_NS)
    outbox = Outbox(small_disk / "outbox", clock=clock, min_free_bytes=0)
    given = [outbox.put(b"x") for _ in range(5)]
    fill(small_disk)
    for _ in range(5):
        given.append(Outbox(small_disk / "outbox", clock=clock, min_free_bytes=0).hold(b"x"))
    os.unlink(small_disk / "ballast")
    given += [Outbox(small_disk / "outbox", clock=clock, min_free_bytes=0).put(b"x") for _ in range(3)]
    assert len(set(given)) == len(given)


def test_a_disk_that_ends_in_the_middle_of_a_record_leaves_the_log_whole(tmp_path):
    """A limit on the file's size, at each byte of a record, as a disk that is full just there."""
    program = textwrap.dedent(
        """
        import resource, signal, sys
        from stillwatch.base.clock import VirtualClock
        from stillwatch.transport.wire.errors import LogError
        from stillwatch.transport.thin.outbox import Outbox
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        clock = VirtualClock(0, 1_795_824_000_000_000_000)
        for limit in range(400, 520, 3):
            folder = f"{sys.argv[1]}/{limit}"
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            outbox = Outbox(folder, clock=clock, min_free_bytes=0)
            stored = []
            try:
                while True:
                    stored.append(outbox.put(bytes(30)))
            except LogError:
                pass
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            again = Outbox(folder, clock=clock, min_free_bytes=0)
            assert [number for number, _ in again.pending()] == stored, limit
            assert again.counters["damaged"] == 0, limit
        """
    )
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=60)


def test_a_folder_that_cannot_be_made_is_survived(tmp_path):
    (tmp_path / "file").write_text("in the way")
    outbox = Outbox(tmp_path / "file" / "outbox", clock=VirtualClock(0, WALL_NS))
    with pytest.raises(LogError):
        outbox.put(b"x")
    number = outbox.hold(b"x")
    assert outbox.acknowledge([number]) == 1
