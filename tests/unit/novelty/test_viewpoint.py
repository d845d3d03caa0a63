"""A fixed camera's view has a number: the same in all weather, another one once knocked, the old one when put right."""

import functools

import cv2
import numpy as np
import pytest

from stillwatch.base.camera import FIXED, MOVING, UNDECIDED
from stillwatch.novelty.viewpoint import Viewpoints
from stillwatch.tools.evaluate.suite.transforms import TRANSFORMS

RATE_HZ = 5
HEIGHT, WIDTH = 120, 160


@functools.cache
def place(seed: int) -> np.ndarray:
    """Return a wall of bricks, each of its own grey, larger than the picture, uint8."""
    rng = np.random.default_rng(seed)
    bricks = rng.integers(40, 220, (2 * HEIGHT // 10, 2 * WIDTH // 16)).astype(np.uint8)
    wall = cv2.resize(bricks, (2 * WIDTH, 2 * HEIGHT), interpolation=cv2.INTER_NEAREST)
    return cv2.GaussianBlur(wall, (0, 0), 1.0)


def seen(seed=0, dx=0.0, dy=0.0, turn=0.0) -> np.ndarray:
    """Return the view of a camera that is pushed and turned, (HEIGHT, WIDTH) uint8."""
    matrix = cv2.getRotationMatrix2D((WIDTH, HEIGHT), turn, 1.0)
    matrix[:, 2] -= (WIDTH / 2 + dx, HEIGHT / 2 + dy)
    return cv2.warpAffine(place(seed), matrix, (WIDTH, HEIGHT))


def play(viewpoints, picture, seconds, begin_s=0.0, rule=FIXED):
    """Return (second, number) wherever the number is another than before; `picture(i, rng)`."""
    told, before = [], viewpoints.view
    for i in range(round(seconds * RATE_HZ)):
        t_s = begin_s + i / RATE_HZ
        rng = np.random.default_rng([round(begin_s), i])
        noisy = np.clip(picture(i, rng) + rng.normal(0.0, 3.0, (HEIGHT, WIDTH)), 0, 255).astype(np.uint8)
        view = viewpoints.observe(noisy, round(t_s * 1e9), rule)
        if view != before:
            told.append((t_s - begin_s, view))
        before = view
    return told


def still(**where):
    shown = seen(**where)
    return lambda i, rng: shown


@pytest.mark.parametrize("where", [{"dx": 12.0}, {"dy": -9.0}, {"turn": 5.0}, {"dx": 5.0, "dy": 4.0}])
def test_a_knock_is_another_view_within_ten_seconds_and_the_way_back_is_the_old_one(where):
    camera = Viewpoints()
    assert play(camera, still(), 20.0) == []
    ((after_s, view),) = play(camera, still(**where), 40.0, 20.0)
    assert view == 1
    assert 4.0 <= after_s <= 10.0
    ((after_s, view),) = play(camera, still(), 40.0, 60.0)
    assert view == 0
    assert after_s <= 10.0


def test_a_place_of_which_nothing_is_left_in_view_is_another_view_after_a_minute():
    camera = Viewpoints()
    play(camera, still(), 20.0)
    ((after_s, view),) = play(camera, still(seed=1), 90.0, 20.0)
    assert view == 1
    assert 58.0 <= after_s <= 70.0
    assert play(camera, still(), 90.0, 110.0)[-1][1] == 0


def test_numbers_are_never_used_again_and_the_oldest_view_is_forgotten():
    camera = Viewpoints()
    views = [{}, {"dx": 12.0}, {"dx": 24.0}, {"dx": 36.0}, {"dx": 24.0}, {}]
    numbers = []
    for turn, where in enumerate(views):
        play(camera, still(**where), 20.0, 20.0 * turn)
        numbers.append(camera.view)
    assert numbers == [0, 1, 2, 3, 2, 4]  # the first one gave way to the third


def transformed(name):
    rule, shown = TRANSFORMS[name].rule, seen()

    def picture(i, rng):
        return rule(np.repeat(shown[..., None], 3, axis=2), 2 * i, rng).mean(axis=2)

    return picture


LAND_WEATHER = sorted(name for name, rule in TRANSFORMS.items() if "vtest" in rule.clips and name != "knocked")


@pytest.mark.parametrize("name", [name for name in LAND_WEATHER if name not in ("double_size", "half_rate", "h264")])
def test_weather_light_dirt_and_shake_leave_the_view_what_it_is(name):
    camera = Viewpoints()
    play(camera, still(), 8.0)
    assert play(camera, transformed(name), 60.0, 8.0) == []
    assert play(camera, still(), 20.0, 68.0) == []


def test_who_stands_before_most_of_the_view_for_half_a_minute_does_not_change_it():
    camera, shown = Viewpoints(), seen()
    play(camera, still(), 8.0)
    covered = shown.copy()
    covered[:, : 4 * WIDTH // 5] = seen(seed=2)[:, : 4 * WIDTH // 5]
    assert play(camera, lambda i, rng: covered, 30.0, 8.0) == []


def with_clock(picture):
    """Write a clock and a name into a picture, as cameras do."""

    def written(i, rng):
        shown = np.ascontiguousarray(picture(i, rng).astype(np.uint8))
        cv2.rectangle(shown, (0, 0), (WIDTH // 2, 11), 0, -1)
        cv2.putText(shown, f"11-29 13:{i // 300 % 60:02d}:{i // 5 % 60:02d}", (1, 9), 0, 0.3, 255)
        cv2.putText(shown, "GATE 7", (WIDTH - 40, HEIGHT - 3), 0, 0.3, 255)
        return shown

    return written


def test_a_clock_that_the_camera_writes_does_not_hold_the_view():
    camera = Viewpoints()
    play(camera, with_clock(still()), 20.0)
    assert play(camera, with_clock(still(dx=14.0)), 30.0, 20.0)[-1][1] == 1
    assert play(camera, with_clock(still(seed=3)), 90.0, 60.0)[-1][1] == 2


@pytest.mark.parametrize("level", [0, 128])
def test_the_dark_and_a_bare_wall_say_nothing(level):
    camera, bare = Viewpoints(), np.full((HEIGHT, WIDTH), level, np.uint8)
    play(camera, still(), 8.0)
    assert play(camera, lambda i, rng: bare, 120.0, 8.0) == []
    assert play(camera, still(dx=12.0), 30.0, 128.0)[-1][1] == 1  # knocked in the dark


@pytest.mark.parametrize("rule", [MOVING, UNDECIDED])
def test_where_the_view_moves_or_may_nothing_is_said(rule):
    camera = Viewpoints()
    assert play(camera, lambda i, rng: seen(dx=2.0 * i), 20.0, rule=rule) == []


def test_pictures_of_another_size_begin_anew_under_the_same_number():
    camera = Viewpoints()
    play(camera, still(), 8.0)
    play(camera, still(dx=12.0), 20.0, 8.0)
    camera.reset()
    assert play(camera, still(dx=12.0), 4.0, 30.0) == []
    assert camera.view == 1


def test_a_stream_whose_time_begins_anew_is_looked_at_as_before():
    camera = Viewpoints()
    play(camera, still(), 20.0, 1000.0)
    assert play(camera, still(dx=12.0), 30.0)[-1][1] == 1


def test_an_upright_picture_is_looked_at_whole():
    camera, wall = Viewpoints(), place(4)
    for second, left in [(s, 0 if s < 20 else 14) for s in range(50)]:
        camera.observe(np.ascontiguousarray(wall[:200, left : left + 100]), second * 10**9, FIXED)
    assert camera.view == 1


class CountingSift:
    """OpenCV's SIFT, and how often it was asked."""

    def __init__(self, create, **settings):
        self.sift, self.asked = create(**settings), 0

    def detectAndCompute(self, picture, mask):  # OpenCV's name
        self.asked += 1
        return self.sift.detectAndCompute(picture, mask)


@pytest.fixture
def sifts(monkeypatch):
    """Return a list of those that are made from here on."""
    made, create = [], cv2.SIFT.create
    monkeypatch.setattr(
        cv2.SIFT, "create", lambda **settings: made.append(CountingSift(create, **settings)) or made[-1]
    )
    return made


def test_a_look_that_finds_the_view_as_it_was_asks_for_no_features(sifts):
    camera = Viewpoints()
    play(camera, still(), 60.0)
    assert sifts[0].asked == 1  # of the view, as it is entered
    play(camera, still(dx=3.0), 60.0, 60.0)  # a mast that leans
    assert sifts[0].asked >= 10


def test_after_looks_without_features_a_knock_is_known_as_soon_as_ever(sifts):
    camera = Viewpoints()
    play(camera, still(), 400.0)
    assert sifts[0].asked == 1
    ((after_s, view),) = play(camera, still(dx=5.0, dy=4.0), 20.0, 400.0)
    assert view == 1
    assert after_s <= 10.0
