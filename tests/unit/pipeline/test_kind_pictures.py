"""Each kind of visits has one picture, cut out where it was seen best, and the times at which its visits ended."""

from types import SimpleNamespace

import cv2
import numpy as np
import pytest

from stillwatch.novelty import Kind, Over, Sighting
from stillwatch.pipeline.kind_pictures import MAX_VISITS, PICTURE_BYTES, PICTURE_PX, TIMES, KindPictures

GRID, NS = (12, 16), 10**9


def frame(i, grey=90):
    """Return a frame of 320 x 240 whose right half is white."""
    colour = np.full((240, 320, 3), grey, np.uint8)
    colour[:, 160:] = 255
    return SimpleNamespace(sequence=i, t_ns=i * NS, colour=colour)


def sighting(visit, level=10.0, box=(2.0, 2.0, 6.0, 6.0), whole=True):
    return Sighting(np.arange(4), box, level, whole=whole, visit=visit)


def over(visit, kind, i):
    return Over(visit, kind, (i - 1) * NS, i * NS, 10.0)


def kind(number, count):
    return Kind(number, count, NS, count * NS)


def come(pictures, visit, number, i, **shown):
    """Let a visit be seen in frame i and be over."""
    pictures.update(frame(i), [sighting(visit, **shown)], [], GRID)
    pictures.update(frame(i + 1), [], [over(visit, number, i)], GRID)


def told(pictures, *kinds, at_once=True):
    return pictures.tell(kinds, at_once=at_once)[0]


def test_a_kind_is_shown_by_its_visit_cut_out_where_it_was():
    pictures = KindPictures()
    come(pictures, 7, 3, 5)
    (one,) = told(pictures, kind(3, 1))
    beside = 0.35 * 4
    assert one.box == pytest.approx(((2 - beside) / 16, (2 - beside) / 12, (6 + beside) / 16, (6 + beside) / 12))
    picture = cv2.imdecode(np.frombuffer(one.jpeg, np.uint8), cv2.IMREAD_COLOR)
    assert picture.shape[1] == pytest.approx((one.box[2] - one.box[0]) * 320, abs=1)
    assert np.abs(picture.astype(int) - 90).max() < 12  # nothing of the white half
    assert (one.frame, one.t_ns, one.times.tolist()) == (5, 5 * NS, [5 * NS])


def test_of_a_visit_the_frame_is_kept_that_shows_it_most_strongly():
    pictures = KindPictures()
    for i, level in enumerate([10.0, 30.0, 11.0, 31.0]):
        pictures.update(frame(i), [sighting(7, level)], [], GRID)
    pictures.update(frame(9), [sighting(7, 99.0, whole=False)], [over(7, 0, 8)], GRID)
    assert told(pictures, kind(0, 1))[0].frame == 1


def test_a_kind_without_a_picture_is_not_told():
    pictures = KindPictures()
    pictures.update(frame(1), [], [over(7, 3, 1)], GRID)
    assert told(pictures, kind(3, 1)) == []


def test_a_later_visit_takes_the_picture_each_time_that_there_are_twice_as_many():
    pictures, frames = KindPictures(), []
    for n in range(1, 9):
        come(pictures, n, 0, 10 * n)
        frames.append(told(pictures, kind(0, n))[0].frame)
    assert frames == [10, 20, 20, 40, 40, 40, 40, 80]


def test_a_kind_is_told_again_when_twice_as_many_came_or_48_more_and_at_the_end():
    pictures = KindPictures()
    come(pictures, 1, 0, 1)
    due = [n for n in range(1, 200) if told(pictures, kind(0, n), at_once=False)]
    assert due == [1, 2, 4, 8, 16, 32, 64, 112, 160]
    assert [one.kind.count for one in told(pictures, kind(0, 199))] == [199]
    assert told(pictures, kind(0, 199)) == []


def test_kinds_that_are_remembered_no_more_are_said_once_and_their_row_is_free():
    pictures = KindPictures()
    come(pictures, 1, 0, 1)
    told(pictures, kind(0, 1))
    assert pictures.tell([], at_once=True) == ([], [0])
    assert pictures.tell([], at_once=True) == ([], [])
    come(pictures, 2, 1, 9)
    assert [one.times.tolist() for one in told(pictures, kind(1, 1))] == [[9 * NS]]


def test_what_is_kept_is_bounded():
    pictures, before = KindPictures(), KindPictures().memory_bytes()
    noise = np.random.default_rng(1).integers(0, 256, (480, 640, 3), dtype=np.uint8)
    for n in range(3 * MAX_VISITS):
        shot = SimpleNamespace(sequence=n, t_ns=n * NS, colour=noise)
        pictures.update(shot, [sighting(n, box=(0.0, 0.0, 12.0, 16.0))], [over(n - 9, n % 3, n)], GRID)
    (one,) = told(pictures, kind(0, 24))
    assert len(one.jpeg) <= PICTURE_BYTES
    assert len(one.times) <= TIMES
    assert cv2.imdecode(np.frombuffer(one.jpeg, np.uint8), cv2.IMREAD_COLOR).shape[1] <= PICTURE_PX
    assert pictures.memory_bytes() == before
