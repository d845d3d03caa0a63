"""The features stage as the pipeline sees it: descriptors, masks, warm-up, files, state."""

import tracemalloc

import cv2
import numpy as np
import pytest

from stillwatch.base.errors import SnapshotError
from stillwatch.base.frame import Frame
from stillwatch.features.encoder import save_encoder
from stillwatch.features.extractor import FeatureExtractor
from stillwatch.settings.config import Config, EncoderConfig, FeaturesConfig, SourceConfig

HEIGHT, WIDTH = 96, 128
RANDOM = {"kind": "random", "frame_kind": "random"}
LEFT_HALF = [(0.0, 0.0), (0.5, 0.0), (0.5, 1.0), (0.0, 1.0)]


def config(*, encoder: dict | None = None, **features) -> Config:
    return Config(
        source=SourceConfig(width=WIDTH, height=HEIGHT),
        features=FeaturesConfig(**features),
        encoder=EncoderConfig(**({"warmup_frames": 3} | (encoder or {}))),
    )


def frame(number: int = 0, height: int = HEIGHT, width: int = WIDTH) -> Frame:
    colour = np.random.default_rng(number).integers(0, 256, (height, width, 3)).astype(np.uint8)
    colour = cv2.GaussianBlur(colour, (0, 0), 2)
    return of(colour, number)


def of(colour: np.ndarray, number: int = 0) -> Frame:
    grey = cv2.cvtColor(colour, cv2.COLOR_BGR2GRAY)
    return Frame(grey, colour, None, number * 10**8, 0, 0, number)


def warmed_up(settings: Config) -> FeatureExtractor:
    extractor = FeatureExtractor(settings)
    number = 0
    while not extractor.ready:
        extractor.observe(extractor.extract(frame(number)))
        number += 1
    return extractor


def test_shapes_are_those_of_the_grid_and_the_config():
    extractor = FeatureExtractor(config())
    features = extractor.extract(frame())
    n = 11 * 15
    assert features.grid_shape == extractor.grid_shape == (11, 15)
    assert extractor.capacity_patches == n
    assert features.raw_patches.shape == (n, 130)
    assert features.patches.shape == (n, 16) == (n, extractor.n_patch_dims)
    assert features.frame.shape == (20,) == (extractor.n_frame_dims,)
    for array, dtype in ((features.raw_patches, "f4"), (features.valid, "?"), (features.flat, "?")):
        assert array.dtype == dtype


def test_centres_are_normalised_and_go_row_by_row():
    features = FeatureExtractor(config()).extract(frame())
    np.testing.assert_allclose(features.centres[0], [8.5 / WIDTH, 8.5 / HEIGHT])
    np.testing.assert_allclose(features.centres[1], [16.5 / WIDTH, 8.5 / HEIGHT])
    np.testing.assert_allclose(features.centres[-1], [120.5 / WIDTH, 88.5 / HEIGHT])


def test_gated_descriptors_are_sift_scaled_by_contrast_then_contrast_and_brightness():
    plain, gated = FeatureExtractor(config(patch="sift")), FeatureExtractor(config(gate_level=20.0))
    raw = plain.extract(frame()).raw_patches.copy()
    out = gated.extract(frame()).raw_patches
    contrast = out[:, 128]
    assert raw.shape[1] == 128
    np.testing.assert_allclose(out[:, :128], raw * np.minimum(contrast, 1)[:, None], atol=1e-6)
    assert 1.5 < out[:, 129].mean() < 2.5  # mid grey


def test_flat_patches_stay_valid_and_lie_near_zero():
    colour = np.full((HEIGHT, WIDTH, 3), 128, np.uint8)
    features = FeatureExtractor(config()).extract(of(colour))
    assert features.flat.all()
    assert features.valid.all()
    np.testing.assert_allclose(features.raw_patches[:, :129], 0, atol=1e-3)
    np.testing.assert_allclose(features.raw_patches[:, 129], 2, atol=1e-5)


def test_patches_are_zeros_until_the_encoder_is_ready():
    extractor = FeatureExtractor(config())
    for number in range(2):
        features = extractor.extract(frame(number))
        assert not features.ready
        assert not features.patches.any()
        assert not features.frame.any()
        assert not extractor.observe(features)
        assert extractor.encoder_hash == ""
    features = extractor.extract(frame(2))
    assert extractor.observe(features)
    assert extractor.ready
    assert features.ready
    assert features.patches.any()


def test_a_frozen_encoder_never_changes():
    extractor = warmed_up(config())
    before = extractor.encoder_hash
    for number in range(5, 10):
        assert not extractor.observe(extractor.extract(frame(number)))
    assert extractor.encoder_hash == before


def test_the_warm_up_encoder_is_the_pca_of_what_was_seen():
    settings = config(encoder={"warmup_frames": 2, "patch_dims": 5})
    extractor = FeatureExtractor(settings)
    seen = []
    for number in range(2):
        features = extractor.extract(frame(number))
        seen.append(features.raw_patches.copy())
        extractor.observe(features)
    samples = np.concatenate(seen).astype(np.float64)
    values = np.linalg.svd(samples - samples.mean(0), compute_uv=False)[:5] ** 2 / len(samples)
    encoded = np.concatenate([extractor.extract(frame(number)).patches.copy() for number in range(2)])
    np.testing.assert_allclose(encoded.var(0), values, rtol=1e-3)


def test_the_warm_ups_memory_is_given_back_once_the_encoder_is_fitted():
    tracemalloc.start()
    try:
        extractor = FeatureExtractor(config())
        held = tracemalloc.get_traced_memory()[0]
        for number in range(3):
            extractor.observe(extractor.extract(frame(number)))
        assert extractor.ready
        assert tracemalloc.get_traced_memory()[0] < held - 1_000_000  # of the 2 MB that 4,096 samples take
    finally:
        tracemalloc.stop()


def test_frames_are_encoded_at_random_around_their_warm_up_mean_or_by_pca():
    for kind in ("random", "pca"):
        extractor = warmed_up(config(encoder={"frame_kind": kind}))
        encoded = np.mean([extractor.extract(frame(number)).frame.copy() for number in range(3)], axis=0)
        np.testing.assert_allclose(encoded, 0, atol=1e-4)
        assert extractor.encoder.kind == f"pca+{kind}"


def test_a_random_encoder_is_ready_at_once_and_follows_the_seed():
    extractor = FeatureExtractor(config(encoder=RANDOM))
    assert extractor.ready
    assert extractor.extract(frame()).patches.any()
    assert extractor.encoder_hash == FeatureExtractor(config(encoder=RANDOM)).encoder_hash


def test_an_encoder_file_gives_the_same_descriptors_and_is_ready_at_once(tmp_path):
    first = warmed_up(config())
    path = tmp_path / "e.swenc"
    save_encoder(first.encoder, path)
    second = FeatureExtractor(config(encoder={"file": str(path)}))
    assert second.ready
    assert second.encoder_hash == first.encoder_hash
    np.testing.assert_array_equal(second.extract(frame(9)).patches, first.extract(frame(9)).patches)


@pytest.mark.parametrize(
    ("features", "encoder", "message"),
    [
        ({"bin_px": [8]}, {}, r"bin_px is \[4\] in the encoder, \[8\] in the config"),
        ({"root_sift": True}, {}, "root_sift is False in the encoder, True in the config"),
        ({"patch": "sift"}, {}, "patch is 'gated_sift' in the encoder, 'sift' in the config"),
        ({}, {"patch_dims": 8}, "its patch projection is 130 to 16 dimensions, the config needs 130 to 8"),
        ({}, {"frame_dims": 8}, "its frame projection is"),
    ],
)
def test_an_encoder_file_of_other_settings_is_refused_with_the_difference(tmp_path, features, encoder, message):
    path = tmp_path / "e.swenc"
    save_encoder(warmed_up(config()).encoder, path)
    with pytest.raises(SnapshotError, match=message):
        FeatureExtractor(config(encoder={"file": str(path)} | encoder, **features))


def test_grid_step_and_source_size_do_not_bind_an_encoder_file(tmp_path):
    path = tmp_path / "e.swenc"
    save_encoder(warmed_up(config()).encoder, path)
    assert FeatureExtractor(config(encoder={"file": str(path)}, step_px=16)).ready


def test_nothing_masked_reaches_a_valid_patch_or_the_frame_descriptor():
    settings = config(mask=[LEFT_HALF], colour_constancy=True)
    first, second = frame(1), frame(1)
    changed = second.colour.copy()
    changed[:, :60] = np.random.default_rng(5).integers(0, 256, (HEIGHT, 60, 3))
    a, b = FeatureExtractor(settings), FeatureExtractor(settings)
    one, other = a.extract(first), b.extract(of(changed))
    assert 0 < one.valid.sum() < len(one.valid)
    np.testing.assert_array_equal(one.raw_patches[one.valid], other.raw_patches[other.valid])
    np.testing.assert_array_equal(one.raw_frame, other.raw_frame)


def test_valid_patches_are_those_whose_square_is_clear_of_the_mask():
    features = FeatureExtractor(config(mask=[LEFT_HALF])).extract(frame())
    left_edge = features.centres[:, 0] * WIDTH - 0.5 - 8
    assert not features.valid[left_edge < 63].any()
    assert features.valid[left_edge > 65].all()


def test_a_frame_that_is_wholly_masked_teaches_nothing():
    everything = [[(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]]
    extractor = FeatureExtractor(config(mask=everything))
    for number in range(5):
        assert not extractor.observe(extractor.extract(frame(number)))
    assert not extractor.ready


@pytest.mark.parametrize("shape", [(1, 1), (1, 100), (96, 1), (96, 16), (17, 13), (50, 128)])
@pytest.mark.parametrize("value", [None, 0, 255])
def test_any_frame_in_the_box_is_described_with_finite_values(shape, value):
    extractor = warmed_up(config())
    odd = frame(3, *shape) if value is None else of(np.full((*shape, 3), value, np.uint8))
    features = extractor.extract(odd)
    assert len(features.patches) == features.grid_shape[0] * features.grid_shape[1] >= 1
    for array in (features.raw_patches, features.patches, features.frame, features.centres):
        assert np.isfinite(array).all()
    back = extractor.extract(frame(4))
    assert back.grid_shape == (11, 15)


def test_a_frame_larger_than_the_box_is_refused_and_changes_nothing():
    extractor = FeatureExtractor(config())
    with pytest.raises(ValueError, match="97 x 128 does not fit in the box of 96 x 128"):
        extractor.extract(frame(0, 97, 128))
    assert extractor.extract(frame()).grid_shape == (11, 15)


@pytest.mark.parametrize("frames", [0, 2, 3])
def test_restored_state_continues_to_the_same_bits(frames):
    first, second = FeatureExtractor(config()), FeatureExtractor(config())
    for number in range(frames):
        first.observe(first.extract(frame(number)))
    second.restore(first.state())
    for number in range(frames, 6):
        for extractor in (first, second):
            extractor.observe(extractor.extract(frame(number)))
    assert first.encoder_hash == second.encoder_hash != ""
    np.testing.assert_array_equal(first.extract(frame(8)).patches, second.extract(frame(8)).patches)


def test_state_of_other_dimensions_is_refused_and_changes_nothing():
    other = warmed_up(config(encoder={"patch_dims": 8}))
    extractor = warmed_up(config())
    before = extractor.encoder_hash
    for state in (
        other.state(),
        {},
        {"warmup_patches": np.zeros((4, 130), np.float32)},
        {"warmup_patches": np.zeros((10**5, 130), np.float32), "warmup_frames": np.zeros((1, 696), np.float32)},
        extractor.state() | {"patch_basis": np.full((130, 16), np.nan, np.float32)},
    ):
        with pytest.raises(SnapshotError):
            extractor.restore(state)
        assert extractor.encoder_hash == before


def test_an_extractor_with_a_fixed_encoder_refuses_a_state_without_one():
    extractor = FeatureExtractor(config(encoder=RANDOM))
    with pytest.raises(SnapshotError, match="has no encoder"):
        extractor.restore(FeatureExtractor(config()).state())
    assert extractor.ready


def test_memory_is_counted_at_the_box_and_grows_with_it():
    small, large = FeatureExtractor(config()), FeatureExtractor(Config(source=SourceConfig(width=640, height=480)))
    before = small.memory_bytes()
    small.extract(frame(0, 40, 40))
    assert small.memory_bytes() == before
    assert before["features"] > small.capacity_patches * (130 + 16) * 4
    assert large.memory_bytes()["features"] > 2 * before["features"]


def test_features_do_not_depend_on_the_frame_before():
    settings = config(encoder=RANDOM)
    used, fresh = FeatureExtractor(settings), FeatureExtractor(settings)
    used.extract(frame(1))
    one, other = used.extract(frame(2)), fresh.extract(frame(2))
    np.testing.assert_array_equal(one.patches, other.patches)
    np.testing.assert_array_equal(one.frame, other.frame)
