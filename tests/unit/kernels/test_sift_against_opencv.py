"""Dense SIFT against cv2.SIFT.compute on real images: the same descriptors, matched at least as well."""

import os
import pathlib

import cv2
import numpy as np
import pytest
from data_location import data_dir

from stillwatch.features.dense_sift import DenseSift

pytestmark = pytest.mark.skipif(
    bool(os.environ.get("NUMBA_DISABLE_JIT")), reason="whole photos take minutes without the JIT"
)
GOLDEN = pathlib.Path(__file__).parents[2] / "golden" / "sift.npz"
PHOTOS = ("reef/P1000361.jpg", "reef/P1000394.jpg", "habcam/crab.jpg")


def photo(name: str) -> np.ndarray:
    image = cv2.imread(str(data_dir("underwater", *name.split("/"))), cv2.IMREAD_GRAYSCALE)
    return np.ascontiguousarray(cv2.resize(image, (320, 240), interpolation=cv2.INTER_AREA))


def opencv_sift(image, rows, columns, bin_px=4):
    """cv2's descriptors as unit vectors; a keypoint's bins are 3/2 of its size wide, octave 0."""
    keypoints = [cv2.KeyPoint(float(x), float(y), 2 / 3 * bin_px, 0, 0, 0) for y in rows for x in columns]
    _, out = cv2.SIFT_create().compute(image, keypoints)
    return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-9)


def our_sift(image, step_px=8, bin_px=4):
    dense = DenseSift(*image.shape, step_px=step_px, bin_px=[bin_px])
    return dense.compute(image).copy(), dense


def test_stored_descriptors_of_a_real_image_come_out_again():
    with np.load(GOLDEN) as golden:
        dense = DenseSift(*golden["image"].shape, step_px=16)
        np.testing.assert_allclose(dense.compute(golden["image"]), golden["ours"], atol=2e-3)
        np.testing.assert_allclose(dense.energy, golden["energy"], rtol=1e-3)
        np.testing.assert_allclose(dense.brightness, golden["brightness"], rtol=1e-3)
        cosine = (dense.out * golden["opencv"]).sum(1) / np.linalg.norm(golden["opencv"].astype(float), axis=1)
        assert cosine.min() > 0.999


@pytest.mark.parametrize("name", PHOTOS)
@pytest.mark.parametrize("bin_px", [4, 6])
def test_median_cosine_to_opencv_is_above_098(name, bin_px):
    image = photo(name)
    ours, dense = our_sift(image, bin_px=bin_px)
    theirs = opencv_sift(image, dense.rows, dense.columns, bin_px)
    cosine = (ours * theirs).sum(1)[~dense.flat]
    assert np.median(cosine) >= 0.9995
    assert np.percentile(cosine, 1) >= 0.98


def shifted(image):
    return np.roll(image, (1, 2), axis=(0, 1))  # less than a bin: the grid stays, the patches move


CHANGES = {
    "shift": shifted,
    "blur": lambda image: cv2.GaussianBlur(image, (0, 0), 1.2),
    "noise": lambda image: np.clip(image + np.random.default_rng(0).normal(0, 8, image.shape), 0, 255).astype(np.uint8),
    "gain -20 %": lambda image: np.clip(image * 0.8, 0, 255).astype(np.uint8),
    "gain +20 %": lambda image: np.clip(image * 1.2, 0, 255).astype(np.uint8),
}


def share_matched(before, after, keep):
    """Share of patches whose nearest neighbour among all patches of the changed image is the same place."""
    nearest = (before[keep] @ after[keep].T).argmax(axis=1)
    return (nearest == np.arange(keep.sum())).mean()


@pytest.mark.parametrize("change", CHANGES)
def test_matching_under_changes_is_as_good_as_opencvs(change):
    ours_matched, theirs_matched = [], []
    for name in PHOTOS:
        image = photo(name)
        changed = CHANGES[change](image)
        before, dense = our_sift(image, step_px=16)
        after, other = our_sift(changed, step_px=16)
        keep = ~dense.flat & ~other.flat
        ours_matched.append(share_matched(before, after, keep))
        theirs = [opencv_sift(each, dense.rows, dense.columns) for each in (image, changed)]
        theirs_matched.append(share_matched(*theirs, keep))
    assert np.mean(ours_matched) >= np.mean(theirs_matched) - 0.002  # one patch of 600 may fall either way
    assert np.mean(ours_matched) > 0.5
