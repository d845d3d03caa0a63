"""The process that describes: the memory that is shared with it, and that it never outlives whom it works for."""

import dataclasses
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from stillwatch.base import RealClock, state_of_parts
from stillwatch.describing import Apart, Describer, Lost, state_bytes
from stillwatch.describing.room import ALIGNED, Room, room_of
from stillwatch.describing.talk import MOST_BYTES, Learnt, say
from stillwatch.settings import load_config

SMALL = ["source.width=64", "source.height=48"]
# An agent that has started a process, says so, and then does nothing more.
AGENT = """
import sys, time
from stillwatch.describing import Apart
from stillwatch.settings import load_config
if __name__ == "__main__":
    apart = Apart(load_config(None, {settings!r}), 4)
    print(apart.pid, flush=True)
    time.sleep(60)
"""


def is_gone(pid):
    """Whether a process has ended: a zombie, which nobody waits for here, has."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def wait_until(is_so, seconds=20.0):
    until = time.monotonic() + seconds
    while not is_so() and time.monotonic() < until:
        time.sleep(0.02)
    return is_so()


@pytest.fixture
def room():
    made = Room()
    yield made
    made.close()


def test_arrays_come_back_through_the_same_descriptor(room):
    given = {
        "grey": np.arange(35, dtype=np.uint8).reshape(5, 7),
        "none": np.zeros((0, 3), np.float32),
        "one": np.array(2.5),
        "strided": np.arange(20.0, dtype=np.float32).reshape(4, 5)[:, ::2],
    }
    room.grow(128 + room_of(given))
    places = room.put(128, given, room_of(given))
    other = Room(os.dup(room.descriptor))
    other.look_again()
    found = other.get(places)
    for name, array in given.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
    assert all(place.offset % ALIGNED == 0 for place in places)
    other.put(places[0].offset, {"grey": given["grey"] + 1}, 64)
    np.testing.assert_array_equal(room.get(places)["grey"], given["grey"] + 1)
    other.close()


def test_a_room_that_grows_keeps_what_stands_in_it(room):
    room.grow(64)
    places = room.put(0, {"a": np.arange(8.0)}, 64)
    room.grow(1 << 20)
    np.testing.assert_array_equal(room.get(places)["a"], np.arange(8.0))


def test_what_has_no_room_is_refused(room):
    room.grow(4096)
    with pytest.raises((ValueError, TypeError)):
        room.put(0, {"a": np.zeros(4097, np.uint8)}, 8192)


def test_what_would_reach_into_the_next_place_is_refused(room):
    room.grow(4096)
    places = room.put(128, {"next": np.arange(8.0)}, 64)
    with pytest.raises(ValueError, match="two: 192 bytes have 128"):
        room.put(0, {"one": np.zeros(64, np.uint8), "two": np.zeros(65, np.uint8)}, 128)
    np.testing.assert_array_equal(room.get(places)["next"], np.arange(8.0))


def test_the_state_has_room_however_much_of_a_view_is_known():
    """It is small when frames begin to be described apart: the pictures of a view come seconds later."""
    describer = Describer(load_config(None, SMALL), RealClock())
    rule = dataclasses.replace(describer.camera.rule, view_stays=True, decided=True)
    early = room_of(state_of_parts(describer.running()))
    describer.viewpoint.observe(np.zeros((512, 512), np.uint8), 0, rule)
    late = room_of(state_of_parts(describer.running()))
    assert 2 * early < late <= state_bytes(describer)


def test_a_message_that_nobody_would_hear_whole_is_not_sent():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, pytest.raises(OSError, match="heard"):
        say(ours, Learnt([], {"patches": {"births": [(1, 2)] * MOST_BYTES}}, {}))


def test_files_where_it_is_started_stand_for_no_module(tmp_path, monkeypatch):
    for name in ("cv2", "numpy", "stillwatch"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path)
    apart = Apart(load_config(None, SMALL), 4)
    try:
        assert wait_until(apart.is_ready, 60.0)
    finally:
        apart.close()


def test_it_ends_when_it_is_closed():
    apart = Apart(load_config(None, SMALL), 4)
    apart.close()
    assert is_gone(apart.pid)


def test_it_ends_with_an_agent_that_is_killed():
    call = [sys.executable, "-c", AGENT.format(settings=SMALL)]
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True) as agent:
        pid = int(agent.stdout.readline())
        assert not is_gone(pid)
        agent.kill()
        assert wait_until(lambda: is_gone(pid))


def test_it_leaves_the_signals_of_a_terminal_to_the_agent():
    """Ctrl-C goes to both: the agent takes what is still being described before it ends."""
    apart = Apart(load_config(None, SMALL), 4)
    assert wait_until(apart.is_ready, 60.0)
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(apart.pid, signum)
    time.sleep(0.2)
    assert not is_gone(apart.pid)
    apart.close()


def test_one_that_cannot_start_is_lost(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")

    def start():
        apart = Apart(load_config(None, SMALL), 4)
        try:
            wait_until(apart.is_ready)
        finally:
            apart.close()

    with pytest.raises(Lost):
        start()
