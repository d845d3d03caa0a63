"""The first half of a frame's way by itself: what it has in hand before the first frame comes."""

import cv2
import numpy as np
import pytest
from capture_sources import frame_of

from stillwatch.base import MOVING, RealClock, prepare_parts, state_of_parts
from stillwatch.base.frame import Frame
from stillwatch.describing import Describer
from stillwatch.settings import load_config
from stillwatch.worlds.catalogue import make_world


def describer(width=320, height=240):
    return Describer(load_config(None, [f"source.width={width}", f"source.height={height}"]), RealClock())


@pytest.mark.parametrize("size", [(640, 480), (384, 288), (96, 64)])
def test_the_made_picture_that_loads_kernels_is_described_whole(size):
    made = describer(*size)
    assert made.load_kernels()
    assert made.stage_seconds == {}


def test_kernels_that_were_loaded_before_a_state_is_given_change_no_bit():
    rng, fresh, loaded = np.random.default_rng(0), describer(), describer()
    loaded.load_kernels()
    prepare_parts(loaded.stages(), state_of_parts(fresh.stages()), "a test")()
    for number in range(14):  # the camera's kind is decided after twelve
        colour = np.kron(rng.integers(0, 256, (15, 20, 3)), np.ones((16, 16, 1))).astype(
            np.uint8
        )  # detail for the gate
        frame = Frame(colour[..., 1].copy(), colour, None, number * 10**8, 0, 0, number)
        one, other = fresh.describe(frame), loaded.describe(frame)
        assert one.verdict == other.verdict
        states = [state_of_parts(described.stages()) for described in (fresh, loaded)]
        assert all(np.array_equal(array, states[1][name]) for name, array in states[0].items())
        if one.rows is not None:
            assert np.array_equal(one.rows.patches, other.rows.patches)
            assert np.array_equal(one.rows.frame, other.rows.frame)
            assert one.rows.rule == other.rows.rule


def test_a_vehicle_whose_first_second_shows_another_ground_is_known_to_move():
    world, made = make_world("transect", 0, width=320, height=240), describer()
    # A step between the fourth frame and the fifth, as where a vehicle comes over a rim: deeper ground is darker.
    shown = [*map(world.render, range(4)), *(cv2.convertScaleAbs(world.render(i), alpha=0.5) for i in range(500, 540))]
    verdicts = []
    for number, colour in enumerate(shown):
        verdicts.append(made.describe(frame_of(colour, number / 10, sequence=number)).verdict)
    assert all(verdict.accepted for verdict in verdicts)
    assert made.camera.rule is MOVING
