"""Thumbnails: any prefix is a picture, more bytes a better one, a few hundred bytes tell what it is."""

import cv2
import numpy as np
import pytest
from data_location import data_dir
from hypothesis import given, settings
from hypothesis import strategies as st

from stillwatch.transport.thin import thumbnails
from stillwatch.transport.thin.thumbnails import HEADER_BYTES, decode_thumbnail, encode_thumbnail
from stillwatch.transport.wire.errors import DecodeError, EncodeError


def smooth_picture(width=120, height=90, colour=True):
    rows, columns = np.mgrid[0:height, 0:width].astype(np.float64)
    planes = [128 + 90 * np.sin(columns / 17 + k) * np.cos(rows / 13 - k) for k in range(3)]
    picture = np.stack(planes, axis=-1).clip(0, 255).astype(np.uint8)
    return picture if colour else np.ascontiguousarray(picture[:, :, 0])


def psnr(a, b):
    return 10 * np.log10(255.0**2 / max(np.mean((a.astype(float) - b.astype(float)) ** 2), 1e-9))


def real_pictures():
    """Return all real underwater photographs at thumbnail size, and their names."""
    files = sorted(data_dir("underwater").rglob("*.jpg"))
    pictures = [cv2.imread(str(file)) for file in files]
    return [cv2.resize(picture, (96, 72), interpolation=cv2.INTER_AREA) for picture in pictures]


@pytest.mark.parametrize("colour", [True, False])
def test_every_prefix_is_a_picture_of_the_same_size(colour):
    picture = smooth_picture(64, 48, colour)
    code = encode_thumbnail(picture, max_bytes=400)
    for n in range(HEADER_BYTES, len(code) + 1):
        assert decode_thumbnail(code[:n]).shape == picture.shape


def test_more_bytes_make_a_better_picture():
    picture = smooth_picture()
    code = encode_thumbnail(picture, max_bytes=3000)
    quality = [psnr(decode_thumbnail(code[:n]), picture) for n in (3, 50, 100, 200, 400, 800, 1600)]
    assert quality == sorted(quality)
    assert quality[-1] > 35.0


def test_a_smaller_budget_gives_the_prefix_of_a_larger_one():
    picture = smooth_picture()
    assert encode_thumbnail(picture, max_bytes=1000)[:300] == encode_thumbnail(picture, max_bytes=300)


def test_all_bits_give_the_picture_back_but_for_rounding():
    picture = smooth_picture(32, 32, colour=False)
    assert np.abs(decode_thumbnail(encode_thumbnail(picture, max_bytes=8000)).astype(int) - picture).max() <= 2


@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 50), (50, 1), (2, 3), (7, 250, 3), (9, 9, 3), (33, 65), (1, 1, 3), (256, 256, 3)]
)
def test_any_shape_comes_back(shape):
    picture = np.random.default_rng(0).integers(0, 255, shape, np.uint8)
    decoded = decode_thumbnail(encode_thumbnail(picture, max_side_px=256, max_bytes=500))
    assert decoded.shape == shape


def test_a_large_picture_keeps_its_shape():
    assert decode_thumbnail(encode_thumbnail(smooth_picture(640, 480), max_side_px=96)).shape == (72, 96, 3)


def test_a_flat_picture_takes_a_handful_of_bytes():
    code = encode_thumbnail(np.full((72, 96, 3), 200, np.uint8), max_bytes=1500)
    assert len(code) < 100
    assert np.abs(decode_thumbnail(code).astype(int) - 200).max() <= 2


def test_the_wavelet_is_undone_exactly():
    plane = thumbnails.trees_of(61, 47, False).planes[0]
    values = np.random.default_rng(1).normal(0.0, 50.0, (47, 61)).astype(np.float32)
    back = thumbnails.inverse(thumbnails.forward(values, plane), plane)
    assert np.abs(back - values).max() < 1e-3


def test_the_wavelet_keeps_energy_so_that_bit_planes_mean_the_same_everywhere():
    plane = thumbnails.trees_of(128, 128, False).planes[0]
    noise = np.random.default_rng(2).normal(0.0, 1.0, (128, 128)).astype(np.float32)
    assert np.sum(thumbnails.forward(noise, plane) ** 2) == pytest.approx(np.sum(noise**2), rel=0.1)


def test_each_coefficient_has_one_parent_and_all_descend_from_the_roots():
    trees = thumbnails.trees_of(40, 24, True)
    children = [child for family in trees.children for child in family]
    assert sorted(children + trees.roots) == list(range(trees.n_coefficients))


@pytest.mark.slow
def test_300_bytes_tell_which_of_all_real_photographs_it_is():
    pictures = real_pictures()
    assert len(pictures) >= 30
    for i, picture in enumerate(pictures):
        seen = decode_thumbnail(encode_thumbnail(picture, max_side_px=96, max_bytes=300))
        distances = [np.mean((seen.astype(float) - other) ** 2) for other in pictures]
        assert int(np.argmin(distances)) == i


@pytest.mark.slow
def test_it_is_as_good_as_webp_and_far_better_than_jpeg_at_1000_bytes():
    ours, webp, jpeg = [], [], []
    for picture in real_pictures()[::3]:
        ours.append(psnr(decode_thumbnail(encode_thumbnail(picture, max_side_px=96, max_bytes=1000)), picture))
        for qualities, extension, flag in (
            (webp, ".webp", cv2.IMWRITE_WEBP_QUALITY),
            (jpeg, ".jpg", cv2.IMWRITE_JPEG_QUALITY),
        ):
            codes = [cv2.imencode(extension, picture, [flag, quality])[1] for quality in range(1, 100, 3)]
            fitting = [code for code in codes if len(code) <= 1000]
            best = [psnr(cv2.imdecode(code, cv2.IMREAD_COLOR), picture) for code in fitting]
            qualities.append(max(best, default=psnr(np.full_like(picture, 128), picture)))
    assert np.mean(ours) > np.mean(webp) - 0.3
    assert np.mean(ours) > np.mean(jpeg) + 3.0


@settings(max_examples=60)
@given(st.binary(min_size=0, max_size=120))
def test_random_bytes_are_a_picture_or_a_decode_error(data):
    try:
        picture = decode_thumbnail(data)
    except DecodeError:
        return
    assert picture.dtype == np.uint8
    assert max(picture.shape[:2]) <= 256


@pytest.mark.parametrize(
    ("picture", "limits"),
    [(np.zeros((4, 4), np.float32), {}), (np.zeros((4, 4, 4), np.uint8), {}), (np.zeros((0, 4), np.uint8), {}),
     (np.zeros((4, 4), np.uint8), {"max_side_px": 7}), (np.zeros((4, 4), np.uint8), {"max_side_px": 257}),
     (np.zeros((4, 4), np.uint8), {"max_bytes": 3}), (np.zeros((4, 4), np.uint8), {"max_bytes": 8001})],
)  # fmt: skip
def test_what_is_no_picture_is_refused(picture, limits):
    with pytest.raises(EncodeError, match="thumbnail"):
        encode_thumbnail(picture, **limits)
