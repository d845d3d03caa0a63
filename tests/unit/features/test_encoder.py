"""Frozen encoders: projections worked out independently, and files that refuse what is not theirs."""

import hashlib

import numpy as np
import pytest

from stillwatch.base.errors import SnapshotError
from stillwatch.features.encoder import (
    MAGIC,
    Encoder,
    check_settings,
    encoder_from_state,
    fit_pca,
    load_encoder,
    random_projection,
    save_encoder,
)


def cloud(n: int = 500, seed: int = 0) -> np.ndarray:
    """Three directions with deviations 5, 2, 1, and five of 0.1, turned at random."""
    rng = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(rng.standard_normal((8, 8)))
    return (rng.standard_normal((n, 8)) * [5, 2, 1, 0.1, 0.1, 0.1, 0.1, 0.1] @ turn + 3).astype(np.float32)


def encoded(projection, samples):
    return projection.apply(samples, np.zeros((len(samples), projection.basis.shape[1]), np.float32))


def an_encoder() -> Encoder:
    return Encoder(fit_pca(cloud(), 3), fit_pca(cloud(seed=1), 2), {"patch": "sift", "bin_px": [4]}, "pca")


def test_pca_gives_the_singular_values_in_order_and_uncorrelated():
    samples = cloud()
    values = np.linalg.svd(samples - samples.mean(0), compute_uv=False)
    out = encoded(fit_pca(samples, 4), samples).astype(np.float64)
    np.testing.assert_allclose(out.mean(0), 0, atol=1e-4)
    np.testing.assert_allclose(np.sqrt((out**2).sum(0)), values[:4], rtol=1e-4)
    np.testing.assert_allclose(np.corrcoef(out.T), np.eye(4), atol=1e-3)


def test_whitened_pca_has_unit_variance_in_every_direction_that_moved():
    samples = cloud()
    np.testing.assert_allclose(encoded(fit_pca(samples, 3, whiten=True), samples).std(0), 1, rtol=1e-4)


def test_whitening_does_not_blow_up_directions_that_never_moved():
    samples = np.zeros((50, 4), np.float32)
    samples[:, 0] = np.arange(50)
    basis = fit_pca(samples, 4, whiten=True).basis
    assert np.isfinite(basis).all()
    assert np.abs(basis).max() < 10


def test_signs_are_fixed_by_the_largest_entry():
    basis = fit_pca(cloud(), 8).basis
    assert (basis[np.abs(basis).argmax(0), np.arange(8)] > 0).all()


@pytest.mark.parametrize("n", [1, 2, 5])
def test_fewer_samples_than_dimensions_keep_their_span_and_complete_it_orthogonally(n):
    samples = cloud(n)
    projection = fit_pca(samples, 6)
    np.testing.assert_allclose(projection.basis.T @ projection.basis, np.eye(6), atol=1e-5)
    centred = samples - samples.mean(0)
    kept = encoded(projection, samples)
    np.testing.assert_allclose(kept @ kept.T, centred @ centred.T, atol=1e-3)


def test_samples_that_are_all_equal_give_a_finite_projection():
    projection = fit_pca(np.full((20, 8), 7.0, np.float32), 3, whiten=True)
    np.testing.assert_allclose(encoded(projection, np.full((1, 8), 7.0, np.float32)), 0, atol=1e-3)


def test_the_same_samples_give_the_same_bits_and_the_result_cannot_be_written():
    first, second = fit_pca(cloud(), 3), fit_pca(cloud(), 3)
    np.testing.assert_array_equal(first.basis, second.basis)
    with pytest.raises(ValueError, match="read-only"):
        first.basis[0, 0] = 1


def test_random_projections_keep_distances_on_average_and_follow_the_seed():
    samples = np.random.default_rng(0).standard_normal((200, 100)).astype(np.float32)
    out = encoded(random_projection(100, 64, seed=3), samples)
    np.testing.assert_allclose((out**2).sum(1).mean(), (samples**2).sum(1).mean(), rtol=0.1)
    np.testing.assert_array_equal(random_projection(100, 64, 3).basis, random_projection(100, 64, 3).basis)
    assert not np.array_equal(random_projection(100, 64, 4).basis, random_projection(100, 64, 3).basis)


def test_a_file_gives_back_the_same_encoder(tmp_path):
    encoder, path = an_encoder(), tmp_path / "e.swenc"
    save_encoder(encoder, path, source="reef")
    loaded = load_encoder(path)
    assert (loaded.hash, loaded.kind, loaded.settings) == (encoder.hash, "pca", encoder.settings)
    np.testing.assert_array_equal(loaded.frame.offset, encoder.frame.offset)
    assert [p.name for p in tmp_path.iterdir()] == ["e.swenc"]


def test_every_single_damaged_byte_is_noticed(tmp_path):
    path = tmp_path / "e.swenc"
    save_encoder(an_encoder(), path)
    good = path.read_bytes()
    for at in range(0, len(good), 7):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1 :])
        with pytest.raises(SnapshotError):
            load_encoder(path)


@pytest.mark.parametrize("length", [0, 3, 8, 40, 200])
def test_a_truncated_file_is_refused(tmp_path, length):
    path = tmp_path / "e.swenc"
    save_encoder(an_encoder(), path)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(SnapshotError, match="e.swenc"):
        load_encoder(path)


@pytest.mark.parametrize("header", [b"{", b"[]", b'{"arrays": 3}', b'{"arrays": [{"name": "x", "shape": [-1]}]}'])
def test_a_header_with_a_right_checksum_and_wrong_content_is_refused(tmp_path, header):
    path = tmp_path / "e.swenc"
    body = MAGIC + (1).to_bytes(4, "little") + len(header).to_bytes(4, "little") + header
    path.write_bytes(body + hashlib.sha256(body).digest())
    with pytest.raises(SnapshotError, match="header cannot be read"):
        load_encoder(path)


def test_another_version_and_an_absent_file_are_refused_with_their_cause(tmp_path):
    path = tmp_path / "e.swenc"
    save_encoder(an_encoder(), path)
    data = bytearray(path.read_bytes())
    data[len(MAGIC)] = 9
    path.write_bytes(data)
    with pytest.raises(SnapshotError, match="format version 9, this program reads 1"):
        load_encoder(path)
    with pytest.raises(SnapshotError, match="absent.swenc: No such file"):
        load_encoder(tmp_path / "absent.swenc")


def test_settings_that_differ_are_all_named():
    with pytest.raises(SnapshotError, match=r"bin_px is \[4\] in the encoder, \[8\] in the config; root_sift is None"):
        check_settings({"patch": "sift", "bin_px": [4]}, {"patch": "sift", "bin_px": [8], "root_sift": True}, "file")


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("patch_basis", np.zeros((8, 3))),
        ("patch_offset", np.zeros(4, np.float32)),
        ("frame_basis", np.full((8, 2), np.nan, np.float32)),
    ],
)
def test_state_that_is_not_an_encoders_is_refused(name, array):
    state = an_encoder().state() | {name: array}
    with pytest.raises(SnapshotError, match="features"):
        encoder_from_state(state, {}, "pca", "features")
