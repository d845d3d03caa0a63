"""What a clip holds: from a key frame before the event to some seconds after it, and never more than it may.

One packet is a second long and has one byte; every fifth is a key frame; frame N is packet N.
"""

from fractions import Fraction

import hypothesis.strategies as st
import pytest
from hypothesis import given

from stillwatch.clips import ClipCutter, ClipPacket, PacketStream
from stillwatch.clips.cutter import LEAD_S

STREAM = PacketStream("h264", b"", Fraction(1, 1), 1.0)


class World:
    def __init__(self, before_s=3.0, after_s=4.0, max_bytes=1000):
        self.clips = []
        self.cutter = ClipCutter(before_s, after_s, max_bytes, self.clips.append)
        self.cutter.begin_stream(STREAM)
        self.now = 0

    def watch(self, seconds, key_every=5, size=1):
        for _ in range(seconds):
            self.cutter.place(self.now, float(self.now))
            self.cutter.add(ClipPacket(b"x" * size, self.now % key_every == 0, self.now, self.now, float(self.now)))
            self.now += 1

    def alert(self, number, lead_s=0.0):
        self.cutter.alert(number, self.now - 1, lead_s)

    def spans(self):
        return [(clip.alert, clip.packets[0].pts, clip.packets[-1].pts) for clip in self.clips]


def test_a_clip_goes_from_the_key_frame_before_to_some_seconds_after():
    world = World()
    world.watch(20)
    world.alert(7)  # with frame 19: 3 s before it is 16, the key frame before that 15
    world.watch(10)
    assert world.spans() == [(7, 15, 23)]


def test_what_began_earlier_than_it_was_told_is_shown_from_its_beginning():
    world = World()
    world.watch(20)
    world.alert(7, lead_s=6.0)
    world.watch(10)
    assert world.spans() == [(7, 10, 23)]


def test_a_clip_goes_on_while_its_event_does():
    world = World()
    world.watch(20)
    world.alert(7)
    for _ in range(6):
        world.watch(1)
        world.cutter.go_on(7, world.now - 1)
        world.cutter.go_on(99, world.now - 1)
    world.watch(20)
    assert world.spans() == [(7, 15, 29)]


def test_a_clip_that_grows_too_large_is_cut():
    world = World(max_bytes=12)
    world.watch(20)
    world.alert(7)
    world.watch(1)
    for _ in range(20):
        world.watch(1)
        world.cutter.go_on(7, world.now - 1)
    (clip,) = world.clips
    assert clip.is_cut
    assert clip.n_bytes == len(clip.packets) <= 12


def test_the_next_alert_ends_the_clip_before_and_shows_the_same_seconds_again():
    world = World()
    world.watch(20)
    world.alert(7)
    world.watch(2)
    world.alert(8)
    world.watch(10)
    assert world.spans() == [(7, 15, 21), (8, 15, 25)]


def test_a_new_stream_ends_a_clip_and_forgets_the_packets_before():
    world = World()
    world.watch(20)
    world.alert(7)
    world.cutter.begin_stream(STREAM)
    world.alert(8)
    assert world.spans() == [(7, 15, 19)]
    assert world.cutter.missed == 1


def test_an_alert_before_any_key_frame_has_no_clip():
    world = World()
    world.now = 1
    world.watch(3)
    world.alert(7)
    assert (world.clips, world.cutter.missed) == ([], 1)


@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=120),
    key_every=st.integers(1, 40),
    max_bytes=st.integers(1, 300),
)
def test_never_more_bytes_are_held_than_were_given(sizes, key_every, max_bytes):
    world = World(max_bytes=max_bytes)
    for at, size in enumerate(sizes):
        world.watch(1, key_every, size)
        held = world.cutter.held()
        assert sum(len(packet.data) for packet in held) <= max_bytes
        assert not held or held[0].is_key
        if at % 7 == 3:
            world.alert(at)
    world.cutter.finish()
    for clip in world.clips:
        assert sum(len(packet.data) for packet in clip.packets) == clip.n_bytes <= max_bytes
        assert clip.packets[0].is_key


@pytest.mark.parametrize("before_s", [0.0, 5.0])
def test_what_no_alert_can_reach_is_forgotten(before_s):
    world = World(before_s=before_s, max_bytes=10**6)
    world.watch(200)
    assert len(world.cutter.held()) <= before_s + LEAD_S + 10
