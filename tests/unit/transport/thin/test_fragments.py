"""Fragments: any order, doubles, losses and reused numbers end in the same bytes or in nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stillwatch.transport.thin.fragments import Reassembler, acknowledged, split
from stillwatch.transport.thin.records import Fragment
from stillwatch.transport.wire.errors import EncodeError, LinkError


@given(st.binary(min_size=1, max_size=600), st.integers(1, 255), st.randoms(use_true_random=False))
def test_any_order_with_doubles_gives_the_bytes_back_once(data, piece_bytes, random):
    fragments = split(9, data, piece_bytes) * 2
    random.shuffle(fragments)
    receiver = Reassembler()
    progress = [done for fragment in fragments if (done := receiver.feed(fragment)) is not None]
    assert [done.prefix for done in progress if done.is_complete] == [data]
    assert receiver.acknowledgement(9).is_complete


def test_the_prefix_grows_as_holes_are_filled():
    a, b, c = split(0, b"0123456789abcdef", 8)  # 16 bytes and a seal of 4
    receiver = Reassembler()
    assert receiver.feed(b) is None
    assert receiver.feed(a).prefix == b"0123456789abcdef"
    assert receiver.feed(c).is_complete


def test_the_acknowledgement_says_what_is_missing():
    fragments = split(3, bytes(range(100)), 10)
    receiver = Reassembler()
    for k in (0, 1, 3, 6):
        receiver.feed(fragments[k])
    ack = receiver.acknowledgement(3)
    assert (ack.upto, ack.unit, ack.pieces, ack.is_complete) == (20, 10, 0b10010, False)
    in_flight = [(fragment.offset, len(fragment.data)) for fragment in fragments]
    assert acknowledged(ack, in_flight) == [0, 10, 30, 60]


def test_a_complete_stream_acknowledges_all_of_its_fragments():
    fragments = split(3, bytes(30), 10)
    receiver = Reassembler()
    for fragment in fragments:
        receiver.feed(fragment)
    assert acknowledged(receiver.acknowledgement(3), [(0, 10), (30, 4)]) == [0, 30]


def test_a_number_used_again_begins_a_new_stream_even_after_the_old_one_was_complete():
    receiver = Reassembler()
    for fragment in split(3, b"first stream of all", 10):
        receiver.feed(fragment)
    second = split(3, b"another stream", 10)
    assert receiver.feed(second[1]) is None
    assert not receiver.acknowledgement(3).is_complete
    assert receiver.feed(second[0]).prefix == b"another stream"
    assert receiver.restarted == 1


def test_mixed_streams_are_noticed_by_their_seal():
    old, new = split(3, b"A" * 25, 10), split(3, b"A" * 10 + b"B" * 15, 10)
    receiver = Reassembler()
    receiver.feed(old[0])
    receiver.feed(new[1])
    assert receiver.feed(old[2]) is None
    assert receiver.broken == 1
    assert receiver.acknowledgement(3) is None


def test_memory_is_bounded_and_quiet_streams_go_first():
    receiver = Reassembler(max_streams=4)
    for stream in range(20):
        receiver.feed(Fragment(stream, 0, bytes(255), False))
    assert receiver.memory_bytes() == 4 * 255
    assert receiver.evicted == 16
    assert receiver.acknowledgement(0) is None
    assert receiver.acknowledgement(19) is not None


def test_random_fragments_never_break_it():
    random = np.random.default_rng(0)
    receiver = Reassembler(max_streams=3)
    for _ in range(20_000):
        size, offset = int(random.integers(1, 12)), int(random.integers(0, 40))
        fragment = Fragment(int(random.integers(5)), offset, random.bytes(size), bool(random.integers(2)))
        receiver.feed(fragment)
        receiver.acknowledgement(fragment.stream)
    assert receiver.memory_bytes() < 3 * 8192


@pytest.mark.parametrize(("data", "piece"), [(b"", 10), (bytes(8188), 10), (b"x", 0), (b"x", 256)])
def test_what_cannot_be_cut_is_refused(data, piece):
    with pytest.raises(EncodeError):
        split(0, data, piece)


def test_a_reassembler_without_room_is_refused():
    with pytest.raises(LinkError):
        Reassembler(max_streams=0)
