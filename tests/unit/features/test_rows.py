"""Rows: one width for every camera, the place or the colour as context, brightness out where the view stays."""

import numpy as np
import pytest
from capture_sources import frame_of

from stillwatch.base.camera import FIXED, MOVING, UNDECIDED
from stillwatch.features.extractor import Features, GateAxes
from stillwatch.features.rows import CONTEXT_DIMS, RowMaker

N, DIMS, RAW = 12, 6, 9
GRID = (3, 4)
STEP_PX = 16
RULES = [pytest.param(FIXED, id="fixed"), pytest.param(MOVING, id="moving")]


def features(ready=True, gate=None):
    rng = np.random.default_rng(0)
    y, x = (np.indices(GRID).reshape(2, -1) + 0.5) / np.array(GRID)[:, None]
    return Features(
        raw_patches=rng.normal(size=(N, RAW)).astype(np.float32),
        patches=rng.normal(size=(N, DIMS)).astype(np.float32),
        valid=np.arange(N) != 5,
        flat=np.zeros(N, bool),
        centres=np.stack([x, y], axis=1).astype(np.float32),
        grid_shape=GRID,
        raw_frame=np.zeros(7, np.float32),
        frame=rng.normal(size=4).astype(np.float32),
        ready=ready,
        gate=gate,
    )


def painted(bgr):
    return frame_of(np.full((48, 64, 3), bgr, np.uint8), 0.0)


def rows_of(rule, bgr=(90, 100, 110), **of):
    return RowMaker(20, DIMS, STEP_PX).rows_of(painted(bgr), features(**of), rule)


@pytest.mark.parametrize("rule", RULES)
def test_a_row_is_the_encoded_patch_and_its_context(rule):
    rows, given = rows_of(rule), features()
    assert rows.patches.shape == (N, DIMS + CONTEXT_DIMS)
    assert rows.patches.dtype == np.float32
    assert np.array_equal(rows.patches[:, :DIMS], given.patches)
    assert np.array_equal(rows.plain, given.patches)
    assert rows.plain.flags.c_contiguous
    assert np.array_equal(rows.valid, given.valid)
    assert np.array_equal(rows.frame, given.frame)
    assert rows.grid_shape == GRID


def test_a_fixed_cameras_context_is_the_place():
    assert np.array_equal(rows_of(FIXED).patches[:, DIMS:], features().centres)


def test_brightness_is_taken_out_under_a_fixed_camera_alone():
    axis = np.arange(DIMS, dtype=np.float32)
    gate = GateAxes(contrast=np.ones(DIMS, np.float32), brightness=axis, origin=np.zeros(DIMS, np.float32))
    given = features()
    without = given.patches - np.outer(given.raw_patches[:, -1], axis)
    fixed, moving = rows_of(FIXED, gate=gate), rows_of(MOVING, gate=gate)
    assert np.allclose(fixed.plain, without, atol=1e-6)
    assert np.array_equal(fixed.patches[:, :DIMS], fixed.plain)
    assert np.array_equal(moving.plain, given.patches)


def test_a_fixed_cameras_rows_tell_how_light_acts_on_them():
    gate = GateAxes(*np.random.default_rng(1).normal(size=(3, DIMS)).astype(np.float32))
    rows, raw = rows_of(FIXED, gate=gate), features().raw_patches
    assert np.array_equal(rows.lighting.contrast, raw[:, -2])
    assert np.allclose(rows.lighting.brightness, 64.0 * raw[:, -1])
    assert np.array_equal(rows.lighting.axis, gate.contrast)
    assert np.array_equal(rows.lighting.origin, gate.origin)
    out = np.zeros((N, DIMS), np.float32)
    rows.relit(np.ones(N, np.float32), out)
    assert np.allclose(out, rows.plain, atol=1e-5)
    assert rows_of(MOVING, gate=gate).lighting is None
    assert rows_of(FIXED).lighting is None


def test_a_moving_cameras_context_is_colour_that_no_exposure_moves():
    green, bright, red = (
        rows_of(MOVING, bgr).patches[0, DIMS:] for bgr in ((40, 80, 40), (80, 160, 80), (40, 40, 120))
    )
    assert np.abs(green - bright).max() < 0.15
    assert np.abs(green - red).max() > 0.8


def test_colour_is_that_of_the_patchs_own_square():
    picture = np.full((48, 64, 3), 80, np.uint8)
    picture[16:32, 32:48] = (40, 80, 160)
    rows = RowMaker(20, DIMS, STEP_PX).rows_of(frame_of(picture, 0.0), features(), MOVING)
    coloured = np.flatnonzero(np.abs(rows.patches[:, DIMS:]).max(axis=1) > 0.1)
    assert list(coloured) == [1 * 4 + 2]
    assert rows.patches[6, DIMS:] == pytest.approx([np.log(48 / 88), np.log(168 / 88)], abs=1e-5)


@pytest.mark.parametrize(
    ("rule", "ready", "means_something"), [(FIXED, True, True), (FIXED, False, False), (UNDECIDED, True, False)]
)
def test_rows_are_ready_when_the_encoder_is_and_the_camera_is_known(rule, ready, means_something):
    assert rows_of(rule, ready=ready).ready is means_something


def test_words_are_means_over_neighbours_of_every_second_patch():
    rows = rows_of(MOVING)
    assert rows.word_shape == (2, 2)
    assert rows.word_valid.tolist() == [True, True, True, True]  # patch 5 is between them
    assert rows.words.shape == (4, DIMS + CONTEXT_DIMS)
    # Five patches across, mirrored with the border, the masked one left out: of the third patch of the first row.
    near = np.array([4 * row + column for row in (1, 0, 0, 1, 2) for column in (0, 1, 2, 3, 3)])
    expected = features().patches[near[near != 5]].mean(axis=0)
    assert np.allclose(rows.words[1, :DIMS], expected, atol=1e-5)


def test_colours_of_words_are_of_any_exposure():
    dark, bright = (rows_of(MOVING, bgr).words[0, DIMS:] for bgr in ((40, 80, 40), (80, 160, 80)))
    assert np.abs(dark - bright).max() < 0.3
    assert np.abs(dark - rows_of(MOVING, (40, 40, 120)).words[0, DIMS:]).max() > 1.6


def test_a_words_centre_is_that_of_its_patch():
    rows = rows_of(FIXED)
    assert [rows.word_centre(word) for word in range(4)] == [tuple(rows.centres[i].tolist()) for i in (0, 2, 8, 10)]
