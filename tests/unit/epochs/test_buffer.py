"""The epoch buffer: words of a frame are one document, and some of them are cut out."""

import numpy as np
import pytest

from stillwatch.base import SnapshotError, state_hash
from stillwatch.epochs.buffer import (
    CROPS,
    NOTE_BYTES,
    WORD_RESOLUTION,
    EpochBuffer,
    FrameWords,
    note_of,
    pack_payload,
    unpack_payload,
)


def buffer(words=20, frames=6):
    return EpochBuffer(
        patch_capacity=500, word_capacity=words, frame_capacity=frames, n_patch_dims=3, n_word_dims=2, n_frame_dims=4,
        payload_bytes=64, crop_bytes=40,
    )  # fmt: skip


def fill(held, sequence, n=8):
    rows = np.arange(2 * n, dtype=np.float32).reshape(n, 2) + 100 * sequence
    words = FrameWords(rows, np.ones(n, bool), lambda word: b"word %d" % word)
    held.add(sequence, sequence * 10, np.zeros((2, 3), np.float32), np.zeros(4, np.float32), b"jpeg")
    held.add_words(sequence, sequence * 10, words, np.arange(1, n), np.random.default_rng(sequence))
    return rows


def test_words_carry_the_number_of_their_frame():
    held = buffer()
    first, second = fill(held, 7), fill(held, 9)
    moved = (held.words() - np.concatenate([first[1:], second[1:]])) / WORD_RESOLUTION
    assert np.abs(moved).max() < 5
    assert 0.5 < moved.std() < 1.5  # what differs by less than the resolution is the same to who learns
    assert held.documents().tolist() == [7] * 7 + [9] * 7


def test_a_word_of_each_part_of_a_frame_is_cut_out():
    held = buffer()
    fill(held, 7)
    fill(held, 9)
    places = held.cropped()
    assert len(places) == 2 * CROPS
    assert ((places - [0, 0, 7, 7]) // 3.5).tolist() == [0, 1, 0, 1]
    first = 1 + int(places[0])  # word 0 is not of those that are learnt
    assert unpack_payload(held.crops()[0]) == (7, 70, f"word {first}".encode())


def test_any_word_of_a_frame_may_be_cut_out():
    held = buffer(words=700, frames=100)
    for i in range(100):
        fill(held, i)
    assert set(held.cropped() % 7) == set(range(7))


def test_words_that_find_no_room_are_left_out_and_patches_go_on():
    held = buffer(words=10)
    for i in range(4):
        fill(held, i)
    assert held.n_words == 10
    assert held.documents().tolist() == [0] * 7 + [1] * 3
    assert (held.n_frames, held.n_patches) == (4, 8)


def test_a_restored_buffer_is_the_same_and_a_torn_one_is_refused():
    held, other = buffer(), buffer()
    fill(held, 3)
    state = held.state()
    other.restore(state)
    assert state_hash(other.state()) == state_hash(state)
    for name, torn in (("documents", state["documents"][:-1]), ("cropped", state["cropped"] + 20)):
        with pytest.raises(SnapshotError, match="epoch buffer"):
            other.restore(state | {name: torn})
    assert state_hash(other.state()) == state_hash(state)


def test_a_note_travels_behind_the_picture_where_it_has_room():
    payload = pack_payload(7, 70, b"jpeg", b"note")
    assert unpack_payload(payload) == (7, 70, b"jpeg")
    assert note_of(payload) == b"note"
    assert note_of(pack_payload(7, 70, b"jpeg", b"x" * (NOTE_BYTES + 1))) == b""
    assert unpack_payload(b"") == (-1, 0, b"")
    assert note_of(b"") == b""
