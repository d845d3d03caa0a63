"""In what light a place usually is, and what a frame would be in it: shadows, clouds and exposure make nothing new."""

import cv2
import numpy as np
import pytest
from capture_sources import frame_of

from stillwatch.base import SnapshotError
from stillwatch.base.camera import FIXED, MOVING
from stillwatch.features import FeatureExtractor, Lighting, RowMaker, Rows
from stillwatch.novelty.places.light import UsualLight
from stillwatch.novelty.rules import MOST_LIGHT
from stillwatch.settings.config import Config

GRID, DIMS, NS = (10, 12), 4, 1_000_000_000
N = GRID[0] * GRID[1]


def rows_of(brightness, contrast=0.5, rule=FIXED) -> Rows:
    """Return rows whose first value is their contrast and whose second is their descriptor's, of half a unit."""
    level = np.broadcast_to(np.float32(brightness), GRID).ravel().copy()
    plain = np.zeros((N, DIMS), np.float32)
    plain[:, 0], plain[:, 1] = contrast, 0.5 * min(contrast, 1.0)
    axis, nothing, flags = np.eye(DIMS, dtype=np.float32)[0], np.zeros((0, 2), np.float32), np.ones(N, bool)
    lighting = Lighting(np.full(N, contrast, np.float32), level, axis, np.zeros(DIMS, np.float32))
    return Rows(
        plain, plain, flags, nothing, GRID, np.zeros((N, 3), np.float32), nothing, rule, True, nothing, flags, (0, 0),
        lighting=lighting if rule is FIXED else None,
    )  # fmt: skip


def light(halflife_s=3600.0) -> UsualLight:
    made = UsualLight(N, DIMS, halflife_s)
    made.reset(GRID)
    return made


def watched(*levels, every_s=0.2, **settings) -> UsualLight:
    seen = light(**settings)
    for i, level in enumerate(levels):
        seen.learn(rows_of(level), round(i * every_s * NS))
    return seen


def test_before_anything_is_known_and_where_rows_tell_nothing_of_light_there_is_no_usual_one():
    assert light().relit(rows_of(100.0)) is None
    assert watched(100.0).relit(rows_of(100.0, rule=MOVING)) is None
    seen = light()
    seen.learn(rows_of(100.0, rule=MOVING), 0)
    assert seen.relit(rows_of(100.0)) is None


def test_in_the_usual_light_rows_are_as_they_are():
    rows = rows_of(100.0)
    np.testing.assert_allclose(watched(*[100.0] * 20).relit(rows), rows.plain, atol=1e-6)


@pytest.mark.parametrize("share", [0.6, 0.8, 1.25, 1.6])
def test_a_place_in_other_light_has_its_usual_contrast_and_descriptor(share):
    usual = rows_of(120.0, contrast=0.5)
    lit = rows_of(
        136.0 * share - 16.0, contrast=0.5 * share
    )  # 16 grey levels are added: where it is dark, noise speaks
    np.testing.assert_allclose(watched(*[120.0] * 9).relit(lit), usual.plain, atol=1e-5)


def test_light_is_believed_to_change_so_far_and_no_farther():
    gain = watched(*[200.0] * 9).relit(rows_of(2.0))[0, 0] / 0.5
    assert gain == pytest.approx(MOST_LIGHT, rel=1e-5)
    assert watched(*[2.0] * 9).relit(rows_of(200.0))[0, 0] / 0.5 == pytest.approx(1.0 / MOST_LIGHT, rel=1e-5)


def test_a_small_thing_says_little_of_the_light():
    level = np.full(GRID, 100.0)
    level[4, 5] = 250.0
    gain = watched(*[100.0] * 9).relit(rows_of(level)).reshape(*GRID, DIMS)[..., 0] / 0.5
    assert gain.min() > (116.0 / 266.0) ** 0.05  # one of 25 patches, by logarithms
    assert gain[0, 0] == pytest.approx(1.0)


def test_the_usual_light_is_a_mean_of_all_and_follows_by_half_lives():
    gain = watched(60.0, 100.0, 140.0).relit(rows_of(100.0))[0, 0] / 0.5
    assert gain == pytest.approx(1.0, abs=1e-5)
    slow, fast = (
        watched(*[100.0] * 50, *[140.0] * 50, halflife_s=s).relit(rows_of(140.0))[0, 0] for s in (3600.0, 1.0)
    )
    assert slow / 0.5 == pytest.approx(136.0 / 156.0, abs=0.01)  # the mean of both
    assert fast / 0.5 == pytest.approx(1.0, abs=0.01)


def test_another_view_has_another_light():
    seen = watched(*[100.0] * 9)
    seen.reset(GRID)
    assert seen.relit(rows_of(50.0)) is None


def test_a_saved_light_is_the_same_and_a_damaged_one_changes_nothing():
    seen, again = watched(90.0, 100.0, 130.0), light()
    again.prepare(seen.state())()
    np.testing.assert_array_equal(seen.relit(rows_of(50.0)), again.relit(rows_of(50.0)))
    with pytest.raises(SnapshotError, match="light"):
        again.prepare(seen.state() | {"usual": np.full(N, np.nan, np.float32)})
    np.testing.assert_array_equal(seen.relit(rows_of(50.0)), again.relit(rows_of(50.0)))


@pytest.mark.parametrize("share", [0.7, 1.2])
def test_a_picture_in_other_light_is_nearly_the_same_once_the_light_is_taken_off(share):
    rng = np.random.default_rng(0)
    large = cv2.GaussianBlur(rng.normal(0.0, 1.0, (120, 160)).astype(np.float32), (0, 0), 3.0)
    picture = np.clip(110.0 + 25.0 * large / large.std(), 20, 205).astype(np.float32)
    config = Config()
    extractor = FeatureExtractor(config)
    maker = RowMaker(extractor.capacity_patches, extractor.n_patch_dims, config.features.step_px)

    def rows(gain):
        noise = rng.normal(0.0, 1.0, picture.shape)
        frame = frame_of(np.repeat(np.clip(gain * picture + noise, 0, 255).astype(np.uint8)[..., None], 3, 2), 0.0)
        features = extractor.extract(frame)
        extractor.observe(features)
        return maker.rows_of(frame, features, FIXED)

    while not extractor.ready:
        rows(1.0)
    seen = UsualLight(extractor.capacity_patches, extractor.n_patch_dims, 3600.0)
    seen.reset(extractor.grid_shape)
    usual = np.zeros((extractor.grid_shape[0] * extractor.grid_shape[1], extractor.n_patch_dims))
    for i in range(8):
        made = rows(1.0)
        seen.learn(made, i * NS // 5)
        usual += made.plain / 8
    lit = rows(share)
    before = np.linalg.norm(lit.plain - usual, axis=1).mean()
    after = np.linalg.norm(seen.relit(lit) - usual, axis=1).mean()
    assert after < 0.5 * before
