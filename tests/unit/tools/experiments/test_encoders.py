"""The measures of the experiment on encoders, by values worked out by hand."""

import json

import numpy as np
import pytest

from stillwatch.features.encoder import fit_pca
from stillwatch.tools.experiments import encoders as experiment


def scene(seed: int, n_frames: int = 30, event: int = 28) -> experiment.Scene:
    """Twenty places with a descriptor of their own and noise; in the event's frames two places look different."""
    rng = np.random.default_rng(seed)
    places = rng.standard_normal((20, 10))
    patches = (places + 0.05 * rng.standard_normal((n_frames, 20, 10))).astype(np.float32)
    is_event = np.arange(n_frames) >= event
    patches[event:, :2] += 3
    centres = rng.uniform(0, 1, (20, 2)).astype(np.float32)
    return experiment.Scene(patches, patches.mean(1), centres, is_event, True)


def test_area_under_curve_counts_ties_half():
    scores = np.array([1.0, 2.0, 2.0, 3.0])
    assert experiment.area_under_curve(scores, np.array([False, False, True, True])) == pytest.approx(3.5 / 4)


def test_an_encoder_of_all_dimensions_keeps_every_neighbour_and_finds_the_event():
    one = scene(0)
    projection = fit_pca(one.patches.reshape(-1, 10), 10)
    assert experiment.neighbours_kept(projection, one.patches.reshape(-1, 10)) == 1
    assert experiment.novelty_auc(projection, one, "patch") > 0.95


@pytest.mark.parametrize("encoder", experiment.ENCODERS)
def test_every_encoder_gives_a_row_with_shares_between_0_and_1(encoder):
    scenes = {"a": scene(1), "b": scene(2)}
    for part in ("patch", "frame"):
        row = experiment.compare(scenes, "a", part, encoder, 4)
        assert row["scene"] == "a"
        assert all(0 <= row[name] <= 1 + 1e-9 for name in ("variance_kept", "neighbours_kept", "auc"))


def test_other_scenes_encoders_never_see_the_scene_itself():
    scenes = {"a": scene(1), "b": scene(2)}
    changed = {"a": scene(3), "b": scenes["b"]}
    for first, second in zip(
        *(experiment.make_projection(each, "a", "patch", "others", 3).basis for each in (scenes, changed)), strict=True
    ):
        np.testing.assert_array_equal(first, second)


def test_event_spans_come_from_the_ground_truth_files(tmp_path):
    (tmp_path / "surveillance").mkdir()
    (tmp_path / "underwater").mkdir()
    events = {"files": {"x.mp4": {"events": [{"start": 3, "end": 5}]}}}
    segments = [{"start": s, "end": s + 9, "first_time": f} for s, f in ((0, True), (10, True), (20, False))]
    (tmp_path / "surveillance" / "events.json").write_text(json.dumps(events))
    (tmp_path / "underwater" / "segments.json").write_text(json.dumps({"y.mp4": {"segments": segments}}))
    assert experiment.event_spans(tmp_path, "surveillance/x.mp4") == [(3, 5)]
    assert experiment.event_spans(tmp_path, "underwater/y.mp4") == [(10, 19)]
