"""A camera tells by itself whether it moves: still scenes with much going on are fixed, panning ones are moving."""

import numpy as np
import pytest

from stillwatch.base.camera import FIXED, MOVING
from stillwatch.novelty.motion import CameraMotion
from stillwatch.novelty.rules import DECISION_FRAMES
from stillwatch.worlds.catalogue import make_world


def decided(frames, camera="auto"):
    motion = CameraMotion(camera)
    for frame in frames:
        motion.observe(frame.mean(axis=2).astype(np.uint8) if frame.ndim == 3 else frame)
    return motion


def scene_frames(name, n=DECISION_FRAMES, first=0, **params):
    scene = make_world(name, **params)
    return [scene.render(first + i) for i in range(n)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("params", [{}, {"shake": 1.0}, {"drift": 0.4}, {"noise": 8.0}, {"weather": "rain"}])
@pytest.mark.parametrize("name", ["road", "room"])
def test_a_fixed_camera_is_fixed_in_shake_drift_noise_and_rain(name, params, seed):
    motion = decided(scene_frames(name, seed=seed, **params))
    assert motion.rule is FIXED


def test_someone_walking_through_does_not_move_the_camera():
    event = make_world("room", 1).truth()["events"][0]
    assert decided(scene_frames("room", seed=1, first=event["start"] + 20)).rule is FIXED


@pytest.mark.parametrize("seed", range(3))
def test_a_vehicle_above_the_sea_floor_moves(seed):
    assert decided(scene_frames("transect", seed=seed)).rule is MOVING


def test_a_slow_vehicle_moves_too():
    ground = make_world("transect", 0, width=320, height=480).render(100).mean(axis=2).astype(np.uint8)
    frames = [np.ascontiguousarray(ground[2 * i : 2 * i + 240]) for i in range(DECISION_FRAMES)]
    assert decided(frames).rule is MOVING


def test_nothing_is_decided_before_enough_frames():
    assert not decided(scene_frames("road", n=DECISION_FRAMES - 1)).rule.decided


def test_without_texture_the_camera_counts_as_fixed():
    assert decided([np.full((240, 320), 90, np.uint8)] * DECISION_FRAMES).rule is FIXED


@pytest.mark.parametrize(("camera", "rule"), [("fixed", FIXED), ("moving", MOVING)])
def test_a_setting_decides_at_once(camera, rule):
    assert CameraMotion(camera).rule is rule


def test_a_saved_observation_goes_on_to_the_same_answer():
    frames = scene_frames("transect", seed=5)
    half = decided(frames[:6])
    resumed = CameraMotion("auto")
    resumed.restore(half.state())
    for frame in frames[6:]:
        resumed.observe(frame.mean(axis=2).astype(np.uint8))
    whole = decided(frames)
    assert all(np.array_equal(a, b) for a, b in zip(whole.state().values(), resumed.state().values(), strict=True))
