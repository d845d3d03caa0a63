"""Figures of an evaluation, worked out by hand; ground truth as the shared files have it; baselines on small worlds."""

import json
from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from stillwatch.base.errors import UsageError
from stillwatch.settings.config import Config, SourceConfig
from stillwatch.tools.evaluate.baselines import BASELINES, KCentre, baseline_scores
from stillwatch.tools.evaluate.command import checked_ends, chosen_baselines, row_of
from stillwatch.tools.evaluate.metrics import event_auc, match, median_delay_s, roc_auc
from stillwatch.tools.evaluate.run import Run, frames_of
from stillwatch.tools.evaluate.truth import Truth, merged, read_truths, truth_for


def test_auc_counts_pairs_and_ties_half():
    score = np.array([1.0, 2.0, 2.0, 3.0])
    assert roc_auc(score, np.array([False, False, True, True])) == pytest.approx((1 + 0.5 + 1 + 1) / 4)
    assert roc_auc(score, np.array([True, True, True, True])) is None


@pytest.mark.parametrize("seed", range(5))
def test_auc_equals_the_share_of_pairs_in_order(seed):
    rng = np.random.default_rng(seed)
    score, positive = rng.integers(0, 6, 60).astype(float), rng.random(60) < 0.3
    pairs = [(a > b) + 0.5 * (a == b) for a in score[positive] for b in score[~positive]]
    assert roc_auc(score, positive) == pytest.approx(np.mean(pairs))


def test_overlapping_events_are_one():
    assert merged([(187, 238), (54, 108), (181, 228)]) == ((54, 108), (181, 238))


def test_an_alert_may_come_eight_frames_early_and_the_tolerance_late():
    truth = Truth(((100, 120), (200, 220)), 2)
    for alert, hit in ((91, False), (92, True), (122, True), (123, False)):
        found = match([alert], truth)
        assert (found.n_found, len(found.false_alerts)) == ((1, 0) if hit else (0, 1))


def test_delay_is_of_the_first_alert_and_never_negative():
    truth = Truth(((100, 120), (200, 220)), 2)
    t_ns = np.arange(300) * 100_000_000
    found = match([95, 110, 206], truth)
    assert found.first_alert == (95, 206)
    assert found.false_alerts == ()
    assert median_delay_s(found, truth, np.arange(300), t_ns) == pytest.approx(0.3)


def test_event_auc_compares_whole_events_with_normal_stretches_of_their_length():
    score = np.zeros(100)
    truth = Truth(((20, 29), (60, 69)), 2)
    score[25], score[65], score[85] = 5.0, 3.0, 4.0
    # Normal stretches of ten frames: 0-9, 10-19; 30-39, 40-49, 50-59; 70-79, 80-89 (holds 4.0), 90-99.
    assert event_auc(score, truth, np.arange(100)) == pytest.approx((8 + 7) / 16)


def run_of(score, alerts):
    n = len(score)
    return Run(
        number=np.arange(n),
        score=score,
        rarity=np.ones(n),
        t_ns=np.arange(n) * 100_000_000,
        scored_from=10,
        alerts=alerts,
        other=[],
        suppressed={},
        moving=False,
        fps=50.0,
        peak_rss_mb=100.0,
        kinds=[],
        warnings=[],
    )


def test_a_row_has_the_bound_names_and_counts_from_the_first_scored_frame():
    score = np.full(100, np.nan)
    score[10:] = 0.0
    score[40:50] = 1.0
    row = row_of(run_of(score, [41, 80]), "a.mp4", Truth(((2, 5), (40, 49)), 2), {"mog2": score.copy()})
    names = {
        "clip",
        "frames",
        "scored_from",
        "auc",
        "events_total",
        "events_found",
        "false_alerts",
        "median_delay_s",
        "fps",
        "peak_rss_mb",
        "baselines",
        "precision",
        "recall",
        "auc_event",
        "false_alerts_per_hour",
        "kinds",
        "warnings",
    }
    assert names <= set(row)
    assert (row["auc"], row["events_found"], row["false_alerts"]) == (1.0, 1, 1)
    assert (row["precision"], row["recall"], row["median_delay_s"]) == (0.5, 0.5, 0.1)
    assert row["false_alerts_per_hour"] == pytest.approx(3600 / 9.9, abs=0.1)
    assert row["baselines"]["mog2"]["auc"] == 1.0
    json.dumps(row, allow_nan=False)


def test_both_forms_of_ground_truth_are_read(tmp_path):
    events = {"tolerance_frames": 3, "files": {"a.mp4": {"events": [{"start": 5, "end": 9}]}}}
    segments = {
        "b.mp4": {
            "segments": [
                {"start": 0, "end": 79, "first_time": True},
                {"start": 80, "end": 139, "first_time": True},
                {"start": 140, "end": 189, "first_time": False},
                {"start": 190, "end": 200, "first_time": True},
            ]
        }
    }
    for name, content in (("e.json", events), ("s.json", segments)):
        (tmp_path / name).write_text(json.dumps(content))
    assert read_truths(str(tmp_path / "e.json"))["a.mp4"] == Truth(((5, 9),), 3)
    assert read_truths(str(tmp_path / "s.json"))["b.mp4"] == Truth(((80, 103), (190, 200)), 2)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"files": {"a": {"events": [{"start": "x"}]}}}', '{"a": {}}'])
def test_unusable_ground_truth_is_one_clear_line(tmp_path, content):
    (tmp_path / "e.json").write_text(content)
    with pytest.raises(UsageError, match="e.json"):
        read_truths(str(tmp_path / "e.json"))


def test_a_clip_without_truth_is_named_with_those_there_are():
    with pytest.raises(UsageError, match="there are a.mp4, b.mp4"):
        truth_for({"b.mp4": Truth((), 2), "a.mp4": Truth((), 2)}, "c.mp4", "e.json")


def test_an_unknown_baseline_is_refused():
    assert chosen_baselines("none", BASELINES) == ()
    with pytest.raises(UsageError, match="no baseline 'mog3'"):
        chosen_baselines("mog2,mog3", BASELINES)


@pytest.mark.slow
def test_every_baseline_scores_every_frame_and_most_see_a_vehicle():
    uri = "synthetic:road?seed=0&width=160&height=120&n_frames=140&noise=1"
    config = structs.replace(Config(), source=SourceConfig(uri=uri, width=160, height=120))
    scores = baseline_scores(config, run_of(np.zeros(140), []), BASELINES)
    positive = np.arange(140) >= 95
    assert set(scores) == set(BASELINES)
    for name, score in scores.items():
        assert score.shape == (140,)
        assert np.isfinite(score).all(), name
    for name in ("mog2", "difference", "reservoir_nn"):
        assert roc_auc(scores[name][50:], positive[50:]) > 0.8, name


def test_k_centre_keeps_distant_frames_and_never_more_than_k():
    summary, rng = KCentre(k=4), np.random.default_rng(0)

    class Seen:
        ready = True

    for value in (0.0, 0.0, 10.0, 0.1, 20.0, 5.0, 30.0, *rng.uniform(0, 40, 50)):
        seen = Seen()
        seen.frame = np.array([value])
        summary.score(None, seen)
        assert len(summary.kept) <= 4
    kept = sorted(float(row[0]) for row in summary.kept)
    assert kept[-1] - kept[0] > 20.0


def decimated(every, first, alerts):
    """Return a run over frames first, first + every, ... below 100 of a 10 Hz clip; score 1 in 40-49, else 0."""
    number = np.arange(first, 100, every)
    run = run_of(((number >= 40) & (number <= 49)).astype(float), alerts)
    return replace(run, number=number, t_ns=number * 100_000_000, scored_from=first)


def test_decimated_frames_keep_their_own_numbers():
    # Every third frame from 0: 0, 3, ..., 99. In 40-49 lie 42, 45 and 48; the alert at 42 comes 0.2 s after 40.
    row = row_of(decimated(3, 0, [42, 81]), "a.mp4", Truth(((40, 49),), 2), {})
    assert (row["frames"], row["auc"], row["events_found"], row["false_alert_frames"]) == (34, 1.0, 1, [81])
    assert row["median_delay_s"] == pytest.approx(0.2)


def test_a_range_leaves_out_events_that_do_not_begin_in_it():
    truth = Truth(((2, 5), (18, 25), (40, 49), (90, 95)), 2).between(20, 80)
    assert truth.spans == ((40, 49),)
    assert truth.unjudged == ((18, 25),)
    # The alert at 22 belongs to what was in view when the range began: neither found nor false.
    row = row_of(decimated(1, 20, [22, 41, 60]), "a.mp4", truth, {})
    assert (row["events_total"], row["events_found"], row["false_alert_frames"]) == (1, 1, [60])


def test_an_event_cut_by_the_end_of_the_range_ends_there():
    assert Truth(((40, 49), (60, 70)), 2).between(0, 45).spans == ((40, 45),)


def test_a_frame_that_is_not_judged_has_no_label():
    truth = Truth(((4, 5),), 2, unjudged=((5, 7),), judged_from=2)
    assert truth.judged(np.arange(9)).tolist() == [False, False, True, True, True, True, False, False, True]


@pytest.mark.parametrize(("first", "last", "text"), [(-1, None, "below 0"), (10, 9, "before --from 10")])
def test_a_range_that_holds_no_frame_is_refused(first, last, text):
    with pytest.raises(UsageError, match=text):
        checked_ends(first, last)


def test_frames_of_a_range_at_a_lower_rate_have_the_numbers_of_the_clip():
    uri = "synthetic:road?seed=0&width=64&height=64&n_frames=30&noise=1"  # 10 Hz
    config = structs.replace(Config(), source=SourceConfig(uri=uri, width=64, height=64, rate_hz=5.0))
    assert [frame.sequence for frame in frames_of(config, 7, 16)] == [8, 10, 12, 14, 16]
