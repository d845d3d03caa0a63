"""fit-encoder: from sources to a file that the agent takes."""

import argparse

import cv2
import numpy as np
import pytest
from printed import of_schema

from stillwatch.base.errors import SourceError, UsageError
from stillwatch.features.extractor import FeatureExtractor
from stillwatch.settings.config import Config, EncoderConfig, SourceConfig
from stillwatch.tools.encoders import fit as fit_encoder
from stillwatch.tools.encoders.fit import Reservoir, variance_kept

SMALL = ["--set", "source.width=96", "--set", "source.height=64", "--set", "encoder.frame_dims=4"]


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(6):
        picture = np.random.default_rng(number).integers(0, 256, (64, 96, 3)).astype(np.uint8)
        cv2.imwrite(str(folder / f"{number}.png"), cv2.GaussianBlur(picture, (0, 0), 2))
    return folder


def run(*words) -> int:
    parser = argparse.ArgumentParser()
    fit_encoder.add_arguments(parser)
    return fit_encoder.main(parser.parse_args([str(word) for word in words]))


def test_a_fitted_file_makes_an_extractor_ready_at_once(photos, tmp_path, capsys):
    out = tmp_path / "sea.swenc"
    assert run(photos, "--out", out, *SMALL, "--json") == 0
    report = of_schema("fit-encoder", capsys.readouterr().out)
    config = Config(source=SourceConfig(width=96, height=64), encoder=EncoderConfig(file=str(out), frame_dims=4))
    extractor = FeatureExtractor(config)
    assert extractor.ready
    assert extractor.encoder_hash == report["hash"]
    assert report["frames"] == 6
    assert report["patches"] == 6 * 7 * 11
    assert 0.5 < report["patch_variance_kept"] <= 1


def test_the_same_sources_give_the_same_encoder(photos, tmp_path, capsys):
    for name in ("a", "b"):
        run(photos, photos, "--out", tmp_path / name, *SMALL, "--patches", 200)
    first, second = (line.split()[2] for line in capsys.readouterr().out.splitlines()[::2])
    assert first == second


def test_sources_that_give_nothing_are_errors(tmp_path):
    with pytest.raises(SourceError, match="absent"):
        run(tmp_path / "absent.mp4", "--out", tmp_path / "e", *SMALL)


@pytest.mark.parametrize(
    ("words", "message"), [(["--patches", "1"], "at least 2 of each"), (["--frames", "0"], "at least 2 of each")]
)
def test_what_cannot_be_fitted_is_said(photos, tmp_path, words, message):
    with pytest.raises(UsageError, match=message):
        run(photos, "--out", tmp_path / "e", *SMALL, *words)


def test_a_folder_that_cannot_be_written_to_is_said(photos, tmp_path):
    with pytest.raises(UsageError, match="--out .*nowhere/e: not written: No such file"):
        run(photos, "--out", tmp_path / "nowhere" / "e", *SMALL)


def test_a_reservoir_keeps_every_row_with_the_same_probability():
    hits = np.zeros(60)
    for seed in range(400):
        reservoir = Reservoir(12, seed)
        for start in range(0, 60, 15):
            reservoir.offer(np.arange(start, start + 15, dtype=np.float32)[:, None])
        hits[reservoir.rows()[:, 0].astype(int)] += 1
    assert hits.sum() == 400 * 12
    np.testing.assert_allclose(hits, 80, atol=45)  # five standard deviations


def test_a_reservoir_that_is_not_full_keeps_all():
    reservoir = Reservoir(10, 0)
    reservoir.offer(np.ones((4, 3), np.float32))
    assert reservoir.rows().shape == (4, 3)
    reservoir.clear()
    assert not len(reservoir.rows())


def test_variance_kept_is_that_inside_the_span():
    samples = np.random.default_rng(0).standard_normal((2000, 4)).astype(np.float32) * [3, 2, 1, 1]
    from stillwatch.features.encoder import fit_pca

    for whiten in (False, True):
        kept = variance_kept(fit_pca(samples, 2, whiten), samples)
        assert kept == pytest.approx(13 / 15, abs=0.02)
    assert variance_kept(fit_pca(samples, 2), np.ones((5, 4))) == 1
