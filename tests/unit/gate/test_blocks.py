"""Which blocks of a small picture moved, on textures whose displacement is known."""

import cv2
import numpy as np
import pytest

from stillwatch.gate.blocks import Blocks, compare_blocks


def texture(seed, rows=90, columns=110):
    noise = np.random.default_rng(seed).normal(0.0, 30.0, (rows, columns)).astype(np.float32)
    return np.clip(cv2.GaussianBlur(noise, (0, 0), 1.5) * 4.0 + 120.0, 0, 255)


def view(picture, dx=0, dy=0):
    return np.ascontiguousarray(picture[15 + dy : 75 + dy, 15 + dx : 95 + dx])


def test_the_same_picture_is_where_it_was():
    assert compare_blocks(view(texture(1)), view(texture(1))) == Blocks(12, 0)


def test_gain_and_offset_move_nothing():
    picture = view(texture(2))
    assert compare_blocks(picture, 0.4 * picture + 30.0) == Blocks(12, 0)


@pytest.mark.parametrize(("dx", "dy"), [(5, 0), (-4, 4), (0, 7)])
def test_a_push_moves_nearly_all_blocks(dx, dy):
    assert compare_blocks(view(texture(3)), view(texture(3), dx, dy)).moved >= 9


def test_another_view_altogether_has_moved():
    assert compare_blocks(view(texture(4)), view(texture(5))).moved >= 7


def test_noise_and_flakes_take_from_blocks_and_move_none():
    picture, rng = view(texture(6)), np.random.default_rng(6)
    flaky = picture + rng.normal(0.0, 2.0 * picture.std(), picture.shape).astype(np.float32)
    assert compare_blocks(picture, flaky).moved <= 4


def test_blocks_without_texture_say_nothing():
    flat = np.full((60, 80), 90.0, np.float32)
    assert compare_blocks(flat, view(texture(7))) == Blocks(0, 0)
