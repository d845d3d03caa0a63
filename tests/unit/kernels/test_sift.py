"""Dense SIFT against its plain version, and the laws that a descriptor of gradients has to obey."""

import math

import numpy as np
import pytest
from reference_kernels_features import blurred, patch_sift

from stillwatch.features.dense_sift import DenseSift, grid_positions
from stillwatch.kernels import sift

SIGMA = math.sqrt(1.6**2 - 0.5**2)


def textured(height: int, width: int, seed: int) -> np.ndarray:
    """Blobs of several sizes: an image with gradients in all directions."""
    rng = np.random.default_rng(seed)
    image = sum(blurred(rng.standard_normal((height, width)), s) * s for s in (1.0, 2.5))
    return np.clip(128 + 40 * image / image.std(), 0, 255).astype(np.uint8)


@pytest.mark.parametrize(
    ("height", "width", "step", "bin_px", "gaussian", "root"),
    [
        (37, 45, 8, 4, True, False),
        (33, 40, 5, 3, True, True),
        (40, 37, 16, 4, False, False),
        (30, 31, 2, 5, True, False),
    ],
)
def test_every_patch_is_that_of_the_plain_version(height, width, step, bin_px, gaussian, root):
    image = textured(height, width, seed=height)
    dense = DenseSift(
        height,
        width,
        step_px=step,
        bin_px=[bin_px],
        window="gaussian" if gaussian else "flat",
        root_sift=root,
        contrast_threshold=0.5,
    )
    dense.compute(image)
    smooth = blurred(image, SIGMA)
    places = [(r, c) for r in dense.rows for c in dense.columns]
    for i in np.linspace(0, len(places) - 1, 12).astype(int):
        wanted = patch_sift(smooth, *places[i], bin_px, gaussian=gaussian, root=root, contrast=0.5)
        np.testing.assert_allclose(dense.out[i], wanted[0], atol=2e-4)
        np.testing.assert_allclose(dense.energy[i], wanted[1], rtol=1e-4)
        np.testing.assert_allclose(dense.brightness[i], wanted[2], rtol=1e-5)
        assert dense.flat[i] == wanted[3]


@pytest.mark.parametrize("seed", range(8))
def test_random_shapes_steps_and_bins_agree_with_the_plain_version(seed):
    rng = np.random.default_rng(seed)
    height, width = (int(side) for side in rng.integers(1, 60, 2))
    step, bin_px = int(rng.integers(2, 20)), int(rng.integers(2, 7))
    image = rng.integers(0, 256, (height, width)).astype(np.uint8)
    dense = DenseSift(height, width, step_px=step, bin_px=[bin_px], smoothing_px=0.0, contrast_threshold=0.0)
    dense.compute(image)
    i = int(rng.integers(len(dense.out)))
    place = dense.rows[i // len(dense.columns)], dense.columns[i % len(dense.columns)]
    wanted = patch_sift(image.astype(np.float64), *place, bin_px)
    np.testing.assert_allclose(dense.out[i], wanted[0], atol=3e-4)
    np.testing.assert_allclose(dense.energy[i], wanted[1], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(dense.brightness[i], wanted[2], rtol=1e-5)


@pytest.mark.parametrize(
    ("index", "length", "wanted"), [(-1, 5, 1), (5, 5, 3), (-7, 3, 1), (4, 1, 0), (2, 5, 2), (-1, 2, 1)]
)
def test_mirror_reflects_without_repeating_the_edge(index, length, wanted):
    assert sift.mirror(index, length) == wanted


def test_a_shift_by_one_step_moves_the_rows_of_the_grid():
    image = textured(96, 104, seed=3)
    here, there = DenseSift(80, 88), DenseSift(80, 88)
    a = here.compute(image[:80, :88]).reshape(len(here.rows), len(here.columns), 128)
    b = there.compute(image[8:88, 8:96]).reshape(a.shape)
    inner = slice(2, -3)  # further in than window and smoothing reach: no edge is in sight
    np.testing.assert_allclose(a[1:, 1:][inner, inner], b[:-1, :-1][inner, inner], atol=1e-6)


@pytest.mark.parametrize("gain", [0.5, 0.8, 1.2, 2.0])
def test_gain_and_offset_change_nothing_but_energy_and_brightness(gain):
    image = textured(64, 64, seed=1).astype(np.float32)
    plain, changed = DenseSift(64, 64, contrast_threshold=0.1), DenseSift(64, 64, contrast_threshold=0.1)
    plain.compute(image)
    changed.compute(gain * image + np.float32(17))
    np.testing.assert_allclose(changed.out, plain.out, atol=1e-4)
    np.testing.assert_allclose(changed.energy, gain * plain.energy, rtol=1e-4)
    np.testing.assert_allclose(changed.brightness, gain * plain.brightness + 17, rtol=1e-4)


def test_rotation_by_180_degrees_permutes_bins():
    image = textured(65, 65, seed=2)  # odd: the grid's middle is the image's
    plain, turned = DenseSift(65, 65), DenseSift(65, 65)
    assert (plain.rows + plain.rows[::-1] == 64).all()
    a = plain.compute(image).reshape(-1, 4, 4, 8)
    b = turned.compute(np.ascontiguousarray(image[::-1, ::-1])).reshape(-1, 4, 4, 8)
    wanted = np.roll(a[::-1, ::-1, ::-1], 4, axis=3)
    np.testing.assert_allclose(b, wanted, atol=1e-5)


def test_mirroring_left_and_right_permutes_bins():
    image = textured(65, 65, seed=4)
    a = DenseSift(65, 65).compute(image).reshape(7, 7, 4, 4, 8)
    b = DenseSift(65, 65).compute(np.ascontiguousarray(image[:, ::-1])).reshape(7, 7, 4, 4, 8)
    order = [4, 3, 2, 1, 0, 7, 6, 5]
    np.testing.assert_allclose(b, a[:, ::-1, :, ::-1][..., order], atol=1e-5)


def test_a_ramp_votes_for_one_orientation():
    ramp = np.broadcast_to(np.arange(48, dtype=np.float32) * 2, (48, 48)).copy()
    dense = DenseSift(48, 48, step_px=8)
    bins = dense.compute(ramp)[12].reshape(4, 4, 8)
    assert bins[..., 0].min() > 0.1
    np.testing.assert_allclose(bins[..., 1:], 0, atol=1e-6)
    assert dense.energy[12] == pytest.approx(4, rel=1e-4)


def test_descriptors_have_unit_norm_or_are_flat_and_zero():
    image = textured(64, 80, seed=5)
    image[:32] = 90
    dense = DenseSift(64, 80)
    out = dense.compute(image)
    assert 0 < dense.flat.sum() < len(out)
    np.testing.assert_allclose(np.linalg.norm(out, axis=1), ~dense.flat, atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 1), (1, 100), (100, 1), (2, 2), (3, 5), (16, 16), (17, 13), (31, 64)])
@pytest.mark.parametrize("kind", ["black", "white", "noise"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_any_frame_gives_finite_descriptors(shape, kind, dtype):
    top = 255 if dtype == np.uint8 else 65535
    image = {
        "black": np.zeros(shape),
        "white": np.full(shape, top),
        "noise": np.random.default_rng(0).integers(0, top + 1, shape),
    }[kind].astype(dtype)
    dense = DenseSift(*shape)
    out = dense.compute(image)
    assert len(out) >= 1
    assert np.isfinite(out).all()
    assert np.isfinite(dense.energy).all()
    if kind != "noise":
        assert dense.flat.all()
        assert not out.any()


def test_two_scales_stand_side_by_side_on_one_grid():
    image = textured(96, 96, seed=6)
    both, small = DenseSift(96, 96, bin_px=[4, 8]), DenseSift(96, 96, bin_px=[4])
    both.compute(image)
    small.compute(image)
    at = np.searchsorted(small.rows, both.rows[1]), np.searchsorted(small.columns, both.columns[2])
    assert small.rows[at[0]] == both.rows[1]
    i, j = 1 * len(both.columns) + 2, at[0] * len(small.columns) + at[1]
    np.testing.assert_array_equal(both.out[i, :128], small.out[j])
    assert not np.allclose(both.out[i, 128:], small.out[j], atol=0.05)


def test_grid_rows_in_parts_give_the_same_bits_as_at_once():
    image = textured(90, 70, seed=7)
    whole, parts = DenseSift(90, 70), DenseSift(90, 70)
    whole.compute(image)
    for first, last in ((6, len(parts.rows)), (0, 3), (3, 6)):
        parts.compute_rows(image, 0, first, last, parts.new_workspace())
    np.testing.assert_array_equal(parts.out, whole.out)
    np.testing.assert_array_equal(parts.brightness, whole.brightness)


def test_what_was_seen_before_leaves_no_trace():
    first, second = textured(64, 64, seed=8), textured(64, 64, seed=9)
    used, fresh = DenseSift(64, 64), DenseSift(64, 64)
    used.compute(first)
    np.testing.assert_array_equal(used.compute(second), fresh.compute(second))


def test_reshaping_equals_a_new_one_and_stays_in_the_box():
    image = textured(48, 40, seed=10)
    dense = DenseSift(96, 96)
    dense.reshape(48, 40)
    np.testing.assert_array_equal(dense.compute(image), DenseSift(48, 40).compute(image))
    with pytest.raises(ValueError, match="97 x 40 does not fit in the box of 96 x 96"):
        dense.reshape(97, 40)
    assert dense.shape == (48, 40)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((4, 5), np.uint8), r"shape \(4, 5\), planned is \(64, 64\)"),
        (np.zeros((64, 64), np.float64), "dtype float64"),
        (np.where(np.eye(64) > 0, np.nan, 1).astype(np.float32), "64 values that are not finite among 4096"),
    ],
)
def test_an_image_that_cannot_be_described_is_refused_with_its_fault(image, message):
    dense = DenseSift(64, 64)
    before = dense.compute(textured(64, 64, seed=0)).copy()
    with pytest.raises(ValueError, match=message):
        dense.compute(image)
    np.testing.assert_array_equal(dense.out, before)


@pytest.mark.parametrize(
    ("length", "step", "bin_px", "first", "count"),
    [(640, 8, 4, 8, 79), (480, 8, 4, 8, 59), (17, 8, 4, 8, 1), (30, 4, 4, 9, 4), (5, 8, 4, 2, 1)],
)
def test_grid_positions_keep_the_patch_inside(length, step, bin_px, first, count):
    positions = grid_positions(length, step, bin_px)
    assert (positions[0], len(positions)) == (first, count)


def test_a_rows_result_does_not_depend_on_the_image_below_its_window():
    image = textured(120, 64, seed=11)
    other = image.copy()
    other[60:] = 255 - other[60:]
    a, b = DenseSift(120, 64), DenseSift(120, 64)
    a.compute(image)
    b.compute(other)
    above = np.repeat(a.rows + 9 + 1 + 6 < 60, len(a.columns))  # window, gradient, smoothing
    np.testing.assert_array_equal(a.out[above], b.out[above])
    assert not np.array_equal(a.out[~above], b.out[~above])
