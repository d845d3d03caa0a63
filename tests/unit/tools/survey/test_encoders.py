"""Runs of different encoders: the directions that they share, what is lost outside them, and who is refused."""

import json

import numpy as np
import pytest
from fleet_runs import make_run

from stillwatch.features import Encoder, Projection, save_encoder
from stillwatch.restart import checkpoint
from stillwatch.tools.cli import main
from stillwatch.tools.survey.encoders import Frames, Shared, encoder_of

N_RAW = 8
LOW = np.tril_indices(4)


def axes(*kept):
    """Return an orthonormal basis of some raw axes, turned within their span."""
    basis = np.zeros((N_RAW, len(kept)))
    basis[kept, range(len(kept))] = 1.0
    return basis @ np.linalg.qr(np.random.default_rng(len(kept) + kept[0]).normal(size=(len(kept), len(kept))))[0]


def coded(raw, basis, mean):
    return (raw - mean) @ basis


def test_one_frame_has_one_place_whatever_encoder_saw_it():
    rng = np.random.default_rng(0)
    mean = rng.normal(size=N_RAW)
    first, second = axes(0, 1, 2, 3), axes(1, 2, 3, 4) * 2.5
    shared = Shared([Frames(basis, -mean @ basis) for basis in (first, second)])
    raw = mean + rng.normal(size=(30, N_RAW))
    places = [
        shared.project(Frames(b, -mean @ b), np.ones(30), coded(raw, b, mean), np.zeros((30, 10)))[0]
        for b in (first, second)
    ]
    assert shared.directions.shape == (N_RAW, 3)
    np.testing.assert_allclose(places[0], places[1], atol=1e-9)
    distances = np.linalg.norm(places[0][1:] - places[0][0], axis=1)
    np.testing.assert_allclose(distances, np.linalg.norm((raw[1:] - raw[0])[:, 1:4], axis=1), atol=1e-9)


def test_what_is_lost_is_the_variance_outside_the_shared_directions():
    first, second = axes(0, 1, 2, 3), axes(1, 2, 3, 4)
    shared = Shared([Frames(first, np.zeros(4)), Frames(second, np.zeros(4))])
    covariance = first.T @ np.diag([4.0, 3.0, 2.0, 1.0, 0, 0, 0, 0]) @ first
    _, inside, lost = shared.project(
        Frames(first, np.zeros(4)), np.full(5, 20.0), np.zeros((5, 4)), np.tile(covariance[LOW], (5, 1))
    )
    assert lost == pytest.approx(4.0 / 10.0)
    trace = inside[0][[0, 2, 5]].sum()  # the diagonal of a packed 3 x 3 triangle
    assert trace == pytest.approx(6.0)


def test_encoders_of_one_span_lose_nothing():
    basis = axes(0, 1, 2, 3)
    shared = Shared([Frames(basis, np.ones(4)), Frames(basis, np.zeros(4))])
    _, _, lost = shared.project(Frames(basis, np.ones(4)), np.ones(9), np.eye(9, 4), np.zeros((9, 10)))
    assert lost == pytest.approx(0.0, abs=1e-12)


def encoder(basis):
    """Return an encoder with this frame basis."""
    as_float32 = Projection(basis.astype(np.float32), np.zeros(basis.shape[1], np.float32))
    return Encoder(Projection(np.eye(2, dtype=np.float32), np.zeros(2, np.float32)), as_float32, {}, "pca+pca")


def test_an_encoder_is_read_from_the_newest_checkpoint(tmp_path):
    made = encoder(axes(0, 1, 2, 3))
    state = {f"features.{name}": array for name, array in made.state().items()}
    checkpoint.save(tmp_path / "checkpoints", state, {"at_end": True})
    assert encoder_of(str(tmp_path)).hash == made.hash
    assert encoder_of(str(tmp_path / "nowhere")) is None


def runs_with(tmp_path, *bases):
    """Return the command's arguments: a run for each encoder, and the encoders' files."""
    runs, files = [], []
    for i, basis in enumerate(bases):
        made = encoder(basis)
        runs.append(make_run(tmp_path / "ab"[i], ["sand", "reef"], seed=i, encoder=made.hash))
        files.append(str(tmp_path / f"{i}.swenc"))
        save_encoder(made, files[-1])
    return [*runs, "--out", str(tmp_path / "out"), "--encoders", *files]


def test_runs_of_encoders_that_share_directions_are_merged_and_the_loss_told(tmp_path):
    assert main(["survey", *runs_with(tmp_path, axes(0, 1, 2, 3), axes(0, 1, 2, 3) @ np.diag([1.0, 2, 2, 1]))]) == 0
    note = json.loads((tmp_path / "out" / "survey.json").read_text())["notes"][0]
    assert "in the 4 directions that they share" in note
    assert "a 0%, b 0%" in note


def test_encoders_that_share_too_little_are_refused(tmp_path, capsys):
    assert main(["survey", *runs_with(tmp_path, axes(0, 1, 2, 3), axes(2, 3, 4, 5))]) == 2
    assert "they share 2 directions, 3 are needed" in capsys.readouterr().err


def test_a_file_that_is_no_encoder_is_refused(tmp_path, capsys):
    (tmp_path / "0.swenc").write_bytes(b"none")
    runs = [make_run(tmp_path / name, ["sand"], encoder=name) for name in "ab"]
    assert main(["survey", *runs, "--out", str(tmp_path / "out"), "--encoders", str(tmp_path / "0.swenc")]) == 2
    assert "0.swenc: not an encoder file" in capsys.readouterr().err
