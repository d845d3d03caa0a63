"""A camera tells by itself whether it moves, and again when that changes: weather and passers-by do not move it."""

import functools

import numpy as np
import pytest

from stillwatch.base.camera import FIXED, MOVING, UNDECIDED
from stillwatch.novelty.motion import CameraMotion
from stillwatch.novelty.rules import DECISION_FRAMES
from stillwatch.tools.evaluate.suite.transforms import TRANSFORMS
from stillwatch.worlds.catalogue import make_world

RATE_HZ = 10


def decided(frames, camera="auto", motion=None, begin=0):
    motion = motion or CameraMotion(camera)
    for i, frame in enumerate(frames, start=begin):
        grey = frame.mean(axis=2).astype(np.uint8) if frame.ndim == 3 else frame
        motion.observe(grey, i * 1_000_000_000 // RATE_HZ)
    return motion


def scene_frames(name, n=DECISION_FRAMES, first=0, **params):
    scene = make_world(name, **params)
    return [scene.render(first + i) for i in range(n)]


@functools.cache
def sea_floor(height):
    """Return ground to move over, (height, 320) uint8."""
    return make_world("transect", 0, width=320, height=height).render(100).mean(axis=2).astype(np.uint8)


SEEDS = [0, pytest.param(1, marks=pytest.mark.soak), pytest.param(2, marks=pytest.mark.soak)]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("params", [{}, {"shake": 1.0}, {"drift": 0.4}, {"noise": 8.0}, {"weather": "rain"}])
@pytest.mark.parametrize("name", ["road", "room"])
def test_a_fixed_camera_is_fixed_in_shake_drift_noise_and_rain(name, params, seed):
    motion = decided(scene_frames(name, seed=seed, **params))
    assert motion.rule is FIXED


def test_someone_walking_through_does_not_move_the_camera():
    event = make_world("room", 1).truth()["events"][0]
    assert decided(scene_frames("room", seed=1, first=event["start"] + 20)).rule is FIXED


@pytest.mark.parametrize("seed", SEEDS)
def test_a_vehicle_above_the_sea_floor_moves(seed):
    assert decided(scene_frames("transect", seed=seed)).rule is MOVING


def test_a_slow_vehicle_moves_too():
    ground = sea_floor(480)
    frames = [np.ascontiguousarray(ground[2 * i : 2 * i + 240]) for i in range(DECISION_FRAMES)]
    assert decided(frames).rule is MOVING


def test_nothing_is_decided_before_enough_frames():
    assert not decided(scene_frames("road", n=DECISION_FRAMES - 1)).rule.decided


def test_without_texture_the_camera_counts_as_fixed():
    assert decided([np.full((240, 320), 90, np.uint8)] * DECISION_FRAMES).rule is FIXED


@pytest.mark.parametrize(("camera", "rule"), [("fixed", FIXED), ("moving", MOVING)])
def test_a_setting_decides_at_once(camera, rule):
    assert CameraMotion(camera).rule is rule


@pytest.mark.parametrize("weather", ["snow", "rain", "night_noise", "marine_snow"])
@pytest.mark.parametrize("name", ["road", "room"])
def test_what_falls_before_the_lens_moves_no_camera(name, weather):
    rule = TRANSFORMS[weather].rule
    frames = [rule(frame, i, np.random.default_rng(i)) for i, frame in enumerate(scene_frames(name, n=40, seed=2))]
    assert decided(frames).rule is FIXED


def test_a_camera_that_moves_off_is_a_moving_one_soon_after_and_one_that_stops_a_fixed_one():
    way = [*[0] * 40, *range(0, 600, 6), *[594] * 350]
    ground = sea_floor(1000)
    frames = [np.ascontiguousarray(ground[y : y + 240]) for y in way]
    motion = decided(frames[:40])
    assert motion.rule is FIXED
    decided(frames[40:140], motion=motion, begin=40)
    assert motion.rule is MOVING
    decided(frames[140:], motion=motion, begin=140)
    assert motion.rule is FIXED


def test_the_longer_a_camera_stood_still_the_longer_it_must_move_to_be_a_moving_one():
    ground = sea_floor(1000)
    still, moves = [ground[:240]], [ground[y : y + 240] for y in range(0, 720, 6)]  # twelve seconds: six windows
    young, old = decided(still * 100), decided(still * 2800)
    for motion, rule, begin in ((young, MOVING, 100), (old, FIXED, 2800)):
        assert decided(moves, motion=motion, begin=begin).rule is rule
    assert decided(moves * 2, motion=old, begin=2920).rule is MOVING


def test_windows_that_say_so_by_chance_move_no_camera():
    ground = sea_floor(1000)
    still, moves = [ground[:240]] * 80, [ground[y : y + 240] for y in range(0, 240, 6)]  # four windows, and two
    motion = decided([*still, *moves] * 20)
    assert motion.rule is FIXED


def test_a_fixed_camera_that_was_taken_for_a_vehicle_for_moments_is_soon_a_fixed_one_again():
    ground = sea_floor(1000)
    way = [*[0] * 40, *range(0, 480, 6), *[480] * 90]  # eight seconds of motion, known after some six
    motion = decided([np.ascontiguousarray(ground[y : y + 240]) for y in way[:120]])
    assert motion.rule is MOVING
    decided([np.ascontiguousarray(ground[y : y + 240]) for y in way[120:]], motion=motion, begin=120)
    assert motion.rule is FIXED


@pytest.mark.parametrize(("went", "stop_s"), [(300, 3), (2100, 25)])  # five seconds; 35
def test_a_vehicle_that_stops_for_less_than_it_went_and_half_a_minute_goes_on_as_one(went, stop_s):
    ground = sea_floor(3000)
    way = [*range(0, went, 6), *[went] * (stop_s * RATE_HZ), *range(went, went + 300, 6)]
    frames = [np.ascontiguousarray(ground[y : y + 240]) for y in way]
    motion = CameraMotion("auto")
    kinds = {decided([frame], motion=motion, begin=i).rule for i, frame in enumerate(frames)}
    assert kinds == {UNDECIDED, MOVING}


def test_a_saved_observation_goes_on_to_the_same_answer():
    frames = scene_frames("transect", n=60, seed=5)
    half = decided(frames[:31])
    resumed = CameraMotion("auto")
    resumed.restore(half.state())
    resumed = decided(frames[31:], motion=resumed, begin=31)
    whole = decided(frames)
    assert all(np.array_equal(a, b) for a, b in zip(whole.state().values(), resumed.state().values(), strict=True))
