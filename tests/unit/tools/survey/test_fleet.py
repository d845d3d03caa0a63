"""Runs merged by what they sent: shared clusters, what one has alone, exemplars as pictures, and refusals."""

import json

import numpy as np
import pytest
from fleet_runs import PLACES, make_run
from run_folders import RunMaker

from stillwatch.learn import MemoryBoundedMixture
from stillwatch.tools.cli import main
from stillwatch.tools.survey.fleet import one_a_component, read_run
from stillwatch.transport.wire import clump_fields
from stillwatch.transport.wire import messages as m


def survey(out, *runs):
    assert main(["survey", *runs, "--out", str(out)]) == 0
    return json.loads((out / "survey.json").read_text())


def test_runs_share_clusters_and_what_one_has_alone_is_told(tmp_path):
    north = make_run(tmp_path / "north", ["sand", "reef"], seed=1)
    south = make_run(tmp_path / "south", ["sand", "kelp"], seed=2)
    summary = survey(tmp_path / "out", north, south)
    assert len(summary["clusters"]) == 3
    first, second = summary["groups"]
    assert (first["name"], second["name"]) == ("north", "south")
    assert len(first["own_clusters"]) == len(second["own_clusters"]) == 1
    assert first["own_clusters"] != second["own_clusters"]
    reef = summary["clusters"][first["own_clusters"][0]]
    assert reef["exemplars"] == ["north/frame 11"]


def test_each_component_is_shown_by_its_most_typical_exemplar(tmp_path):
    run = make_run(tmp_path / "a", ["sand", "reef"])
    assert [exemplar.exemplar_frame for exemplar in one_a_component(read_run(run))] == [10, 11]


def test_the_page_shows_exemplars_and_the_table_every_clump(tmp_path):
    runs = [make_run(tmp_path / name, ["sand", "reef"], seed=seed) for seed, name in enumerate("ab")]
    survey(tmp_path / "out", *runs)
    assert (tmp_path / "out" / "survey.html").read_text().count("data:image/jpeg") >= 4
    assert len((tmp_path / "out" / "clumps.csv").read_text().splitlines()) == 1 + 80


def test_a_run_without_clumps_takes_part_by_its_model_and_is_named(tmp_path):
    runs = [make_run(tmp_path / "a", ["sand", "reef"]), make_run(tmp_path / "b", ["sand", "reef"], has_clumps=False)]
    summary = survey(tmp_path / "out", *runs)
    assert summary["notes"] == ["b: no clumps were sent, its model's 2 components stand for its frames"]
    assert summary["groups"][1]["items"] == pytest.approx(600.0)


def test_clumps_of_a_full_mixture_come_with_their_covariances(tmp_path):
    """As agents send them: what a grouped mixture of the fleet is learnt from is what the learner held."""
    rng = np.random.default_rng(3)
    runs = []
    for name in ("a", "b"):
        rows = np.concatenate([PLACES[ground] + rng.normal(size=(300, 4)) for ground in ("sand", "reef")])
        learner = MemoryBoundedMixture(covariance="full", memory=200).fit(rng.permutation(rows))
        maker = RunMaker(tmp_path / name)
        maker.send(m.Status, state="live", encoder_hash="e1")
        maker.send(m.Clumps, which="scenes", model_epoch=1, **clump_fields(learner.clumps_))
        maker.folder.close()
        runs.append(str(tmp_path / name))
        sent, held = read_run(runs[-1]), learner.clumps_
        assert sent.is_clumps
        np.testing.assert_allclose(sent.means, held["mean"], atol=0.01)
        diagonal = [0, 2, 5, 9]
        np.testing.assert_allclose(sent.spreads[:, diagonal], held["covariance"][:, diagonal], rtol=0.05)
    summary = survey(tmp_path / "out", *runs)
    assert summary["notes"] == []
    assert len(summary["clusters"]) == 2
    assert [group["items"] for group in summary["groups"]] == pytest.approx([600.0, 600.0])


def test_two_runs_of_one_name_stay_apart(tmp_path):
    runs = [make_run(tmp_path / place / "run", ["sand", "reef"]) for place in "ab"]
    assert [group["name"] for group in survey(tmp_path / "out", *runs)["groups"]] == ["run", "run-2"]


def test_other_encoders_are_refused_by_name(tmp_path, capsys):
    runs = [make_run(tmp_path / "a", ["sand"]), make_run(tmp_path / "b", ["sand"], encoder="e2")]
    assert main(["survey", *runs, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "encoders differ (e1, 4 values: a; e2, 4 values: b)" in said
    assert "fit-encoder" in said


def test_a_run_that_learnt_nothing_is_refused(tmp_path, capsys):
    maker = RunMaker(tmp_path / "empty")
    maker.send(m.Status, state="live")
    maker.folder.close()
    assert main(["survey", str(tmp_path / "empty"), "--out", str(tmp_path / "out")]) == 2
    assert "neither scene clumps nor a scene model" in capsys.readouterr().err


def test_runs_and_pictures_are_not_mixed(tmp_path, capsys):
    run = make_run(tmp_path / "a", ["sand"])
    (tmp_path / "pictures").mkdir()
    assert main(["survey", run, str(tmp_path / "pictures"), "--out", str(tmp_path / "out")]) == 2
    assert "run folders are surveyed by themselves" in capsys.readouterr().err
