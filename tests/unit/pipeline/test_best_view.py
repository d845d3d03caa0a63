"""The picture of an alert: picture, outlines and time are of one frame, the one that shows the event best so far."""

from types import SimpleNamespace

import cv2
import numpy as np
import pytest

from stillwatch.events import EventRecord
from stillwatch.novelty.regions import Region
from stillwatch.pipeline.best_view import MAX_BOXES, BestView, sharpness_of, things_of
from stillwatch.settings.config import ExemplarsConfig
from stillwatch.transport.wire import EventKind

STEP = 8
WIDTH, HEIGHT = 320, 240
REACH = (STEP / WIDTH, STEP / HEIGHT)


def region(x0, y0, x1, y1, weight):
    return Region((x0, y0, x1, y1), ((x0 + x1) / 2, (y0 + y1) / 2), weight, 4, 0)


def frame(number, grey=100):
    colour = np.full((HEIGHT, WIDTH, 3), grey, np.uint8)
    return SimpleNamespace(sequence=number, t_ns=number * 10**8, colour=colour, grey=colour[:, :, 0].copy())


def record(phase="update", start=1, kind=EventKind.NOVEL):
    return EventRecord(0, kind, phase, 0.5, start, start * 10**8, 1.0, 9.0, 500.0, 3, np.zeros(0))


def seen(*regions):
    return SimpleNamespace(regions=list(regions))


def grey_of(jpeg):
    return int(cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_GRAYSCALE).mean().round())


@pytest.fixture
def view():
    return BestView(ExemplarsConfig(), STEP)


def test_picture_boxes_and_time_are_of_the_frame_with_the_largest_thing(view):
    view.tell([], frame(1, 10), seen(region(0.1, 0.1, 0.2, 0.2, 5.0)), 1)
    view.tell([], frame(2, 50), seen(region(0.3, 0.3, 0.6, 0.6, 40.0)), 1)
    (told,) = view.tell([record()], frame(3, 90), seen(region(0.7, 0.1, 0.8, 0.2, 6.0)), 1)
    assert (told.sequence, told.t_ns) == (2, 2 * 10**8)
    assert told.boxes == ((0.3, 0.3, 0.6, 0.6),)
    assert told.position == pytest.approx((0.45, 0.45))
    assert grey_of(told.jpeg) == 50


def test_of_frames_that_show_it_as_large_the_sharpest_is_kept(view):
    shown = seen(region(0.2, 0.2, 0.8, 0.8, 40.0))
    sharp, blurred = frame(2), frame(3)
    sharp.grey[:] = np.random.default_rng(0).integers(0, 256, sharp.grey.shape)
    blurred.grey[:] = cv2.blur(sharp.grey, (5, 5))
    for item in (frame(1), sharp, blurred):
        (told,) = view.tell([record()], item, shown, 1)
    assert told.sequence == 2


def test_a_sharper_frame_that_shows_less_is_not_taken(view):
    view.tell([], frame(1), seen(region(0.2, 0.2, 0.8, 0.8, 40.0)), 1)
    sharp = frame(2)
    sharp.grey[:] = np.random.default_rng(0).integers(0, 256, sharp.grey.shape)
    (told,) = view.tell([record()], sharp, seen(region(0.2, 0.2, 0.3, 0.3, 31.0)), 1)
    assert told.sequence == 1


def test_the_next_event_begins_without_the_last_ones_picture(view):
    view.tell([], frame(1, 10), seen(region(0.2, 0.2, 0.8, 0.8, 90.0)), 1)
    end, new = view.tell([record("end", 1), record("new", 5)], frame(5, 60), seen(region(0.1, 0.1, 0.2, 0.2, 4.0)), 5)
    assert (end.sequence, new.sequence) == (1, 5)
    assert (grey_of(end.jpeg), grey_of(new.jpeg)) == (10, 60)


def test_an_end_repeats_no_picture_that_was_told(view):
    shown = seen(region(0.2, 0.2, 0.8, 0.8, 90.0))
    view.tell([record("new")], frame(1), shown, 1)
    (end,) = view.tell([record("end")], frame(2), None, -1)
    assert (end.sequence, end.jpeg) == (1, b"")
    assert end.boxes == ((0.2, 0.2, 0.8, 0.8),)


def test_an_event_is_told_by_few_pictures_the_last_of_them_at_its_end(view):
    told = []
    for number in range(1, 9):  # it comes nearer and nearer
        shown = seen(region(0.2, 0.2, 0.8, 0.8, 10.0 * 2**number))
        told += view.tell([record("new" if number == 1 else "update")], frame(number, 10 * number), shown, 1)
    told += view.tell([record("end")], frame(9), None, -1)
    assert [item.sequence for item in told if item.jpeg] == [1, 2, 8]
    assert [item.sequence for item in told] == [1, *[2] * 7, 8]  # outlines without a picture are of the last picture


def test_a_frame_that_is_hardly_better_than_the_picture_told_is_not_told(view):
    (new,) = view.tell([record("new")], frame(1, 10), seen(region(0.2, 0.2, 0.8, 0.8, 50.0)), 1)
    view.tell([], frame(2, 20), seen(region(0.2, 0.2, 0.7, 0.8, 60.0)), 1)
    (end,) = view.tell([record("end")], frame(3), None, -1)
    assert (end.sequence, end.boxes, end.jpeg) == (1, new.boxes, b"")


def test_news_that_lasts_no_time_shows_its_own_frame(view):
    view.tell([], frame(1, 10), seen(region(0.2, 0.2, 0.8, 0.8, 90.0)), 1)
    (told,) = view.tell([record("new", 2, EventKind.SCENE_CHANGE)], frame(2, 70), None, 1)
    assert (told.sequence, told.boxes, grey_of(told.jpeg)) == (2, (), 70)


def test_regions_a_step_apart_are_one_thing_with_a_common_centre():
    (thing,) = things_of([region(0.1, 0.1, 0.2, 0.3, 30.0), region(0.22, 0.2, 0.3, 0.4, 10.0)], REACH)
    assert thing.box == (0.1, 0.1, 0.3, 0.4)
    assert thing.weight == 40.0
    assert thing.centre == pytest.approx((0.75 * 0.15 + 0.25 * 0.26, 0.75 * 0.2 + 0.25 * 0.3))


def test_things_that_touch_only_through_a_third_are_one():
    row = [region(0.1, 0.1, 0.2, 0.2, 3.0), region(0.3, 0.1, 0.4, 0.2, 2.0), region(0.2, 0.1, 0.3, 0.2, 1.0)]
    assert [thing.box for thing in things_of(row, REACH)] == [(0.1, 0.1, 0.4, 0.2)]


def test_at_most_so_many_things_the_heaviest_first_and_none_that_is_tiny_beside_it():
    many = [region(0.1 * i, 0.0, 0.1 * i + 0.02, 0.05, 10.0 + i) for i in range(8)]
    kept = things_of([*many, region(0.9, 0.9, 0.95, 0.95, 1.0)], REACH)
    assert [thing.weight for thing in kept] == [17.0, 16.0, 15.0, 14.0, 13.0][:MAX_BOXES]
    assert len(things_of([many[7], region(0.9, 0.9, 0.95, 0.95, 1.0)], REACH)) == 1


def test_sharpness_is_the_mean_square_of_the_laplacian_in_the_box():
    grey = np.zeros((10, 10), np.uint8)
    grey[5, 5] = 10  # 4-neighbour Laplacian: -40 at the dot, 10 at each of its four neighbours
    assert sharpness_of(grey, (0.3, 0.3, 0.8, 0.8)) == pytest.approx((40**2 + 4 * 10**2) / 25)
    assert sharpness_of(grey, (0.0, 0.0, 0.3, 0.3)) == 0.0
