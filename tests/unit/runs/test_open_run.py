"""A run folder in a program: events, scores, models, exemplars and pictures as tables and arrays."""

import numpy as np
import pytest
from run_folders import EVENTS, make_run

import stillwatch
from stillwatch.runs import Table
from stillwatch.transport.wire import TransportError


def as_html(shown):
    """Return what a notebook asks an object for."""
    ask = "_repr_html_"
    return getattr(shown, ask)()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return stillwatch.open_run(make_run(tmp_path_factory.mktemp("run")))


def test_events_are_one_row_each_as_they_ended(run):
    events = run.events()
    assert [row["id"] for row in events] == [0, 1, 2]
    assert [row["frame"] for row in events] == [begin for begin, _ in EVENTS]
    assert [row["end_frame"] for row in events] == [end for _, end in EVENTS]
    # frame 0 comes at 0.1 s of the maker's time, which is 0 of the stream; an event begins with its first frame
    assert events["stream_s"] == pytest.approx([begin / 10 for begin, _ in EVENTS])
    assert events["duration_s"] == pytest.approx([(end - begin) / 10 for begin, end in EVENTS])
    assert events["end_s"] == pytest.approx([end / 10 for _, end in EVENTS])
    assert events["rarity"].tolist() == [4000.0, 8000.0, 12000.0]
    assert events.rows[0]["boxes"][0] == [0.2, 0.4, 0.45, 0.62]


def test_scores_are_one_row_a_frame_and_say_why_there_is_none(run):
    scores = run.scores()
    assert len(scores) == 900
    assert scores.rows[0]["state"] == "learning"
    assert scores.rows[550]["state"] == "dark"
    assert np.isnan(scores["score"][:100]).all()
    assert np.isfinite(scores["score"][100:540]).all()
    assert {row["event"] for row in scores.rows[420:470]} == {1}


def test_an_event_without_an_end_says_so(tmp_path):
    last = stillwatch.open_run(make_run(tmp_path, n_frames=280, finish=False)).events().rows[-1]
    assert (last["phase"], last["end_s"], last["end_frame"]) == ("new", None, None)


def test_models_exemplars_and_pictures_are_the_newest(run):
    models = run.models()
    assert set(models) == {"patches", "scenes"}
    assert models["patches"].model_epoch == 9
    assert [item.id for item in run.exemplars()] == list(range(9))
    assert set(run.pictures()) == {0, 1, 2}
    assert all(jpeg.startswith(b"\xff\xd8") for jpeg in run.pictures().values())


def test_it_shows_itself_in_a_notebook(run):
    assert "<td>novelty</td>" in as_html(run)
    assert "900 frames" in repr(run)


def test_a_table_shows_few_rows_and_says_how_many_more():
    html = as_html(Table("events", ["what"], [{"what": "<b>"}] * 30))
    assert html.count("&lt;b&gt;") == 20
    assert "10 more" in html


def test_a_column_that_is_not_there_is_named_with_those_that_are(run):
    with pytest.raises(KeyError, match=r"events have no column 'colour'; they have id, kind"):
        run.events()["colour"]


def test_a_folder_that_holds_no_run_is_refused(tmp_path):
    with pytest.raises(TransportError, match="holds no messages"):
        stillwatch.open_run(tmp_path)
