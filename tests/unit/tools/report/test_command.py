"""The report: complete, self-contained, honest about what is missing, and safe to open."""

import json
import re

import numpy as np
import pytest
from run_folders import EVENTS, RunMaker, make_run, thumbnail

from stillwatch.base.errors import UsageError
from stillwatch.tools.cli import main
from stillwatch.tools.report import charts as c
from stillwatch.tools.report.command import write_report
from stillwatch.tools.report.compare import as_json, compare_folders
from stillwatch.tools.report.data import Curve, Thinned, read_report
from stillwatch.tools.report.in_view import topic_layer
from stillwatch.tools.report.messages import message_sections
from stillwatch.tools.report.model import components_section
from stillwatch.tools.report.page import render
from stillwatch.transport.disk.record_format import log_files
from stillwatch.transport.wire import messages as m


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def page(run):
    return write_report(run).read_text("utf-8")


def test_the_command_writes_a_file_and_names_it(run, tmp_path, capsys):
    out = tmp_path / "page.html"
    assert main(["report", str(run), "--out", str(out)]) == 0
    assert capsys.readouterr().out.strip() == str(out)
    assert out.stat().st_size > 10_000


def test_the_page_needs_nothing_from_outside(page):
    assert "Content-Security-Policy" in page
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", page)
    assert "@import" not in page
    assert "url(http" not in page


def test_every_event_has_its_picture_its_outlines_and_its_place_on_the_curve(page):
    for n in range(len(EVENTS)):  # the agent's own numbers
        assert f"id='event-{n}'" in page
        assert f"href='#event-{n}'" in page
    assert page.count("<article class='event'") == len(EVENTS)
    assert page.count("<rect x='0.2000' y='0.4000' width='0.2500'") == 2 * len(EVENTS)


def test_the_numbers_are_those_of_the_summary(page):
    assert "3 events looked new" in page
    assert "900 frames" in page
    assert "95.6%" in page  # 860 of 900 accepted
    assert "40 refused" in page
    assert "0123456789abcdef" in page  # the model's hash
    assert "c0ffee0123456789" in page  # the config's hash


def test_exemplars_components_and_reasons_are_shown(page):
    assert page.count("<figure>") == 9
    assert "<title>kind 3</title>" in page
    assert ">dark<" in page


def test_kinds_of_scene_show_their_share_and_examples(tmp_path):
    make_run(tmp_path, n_frames=250, finish=False)
    maker = RunMaker(tmp_path)
    for i, role in enumerate(("most_typical", "least_typical", "newest")):
        maker.tick()
        maker.send(m.Exemplar, i, id=2**32 + i, component=0, role=role, label="sand <1>", thumbnail=thumbnail(i, False))
    maker.folder.close()
    data = read_report(tmp_path)
    assert set(data.scene_pictures) == {(0, "most_typical"), (0, "least_typical"), (0, "newest")}
    assert {role: len(held) for role, held in data.galleries.items()} == {"frame": 2}
    page = write_report(tmp_path).read_text("utf-8")
    assert "Kinds of scene" in page
    assert "sand &lt;1&gt;" in page


def test_what_a_learner_without_a_section_of_its_own_chose_is_shown(tmp_path):
    make_run(tmp_path, n_frames=250, finish=False)
    maker = RunMaker(tmp_path)
    for i in range(3):
        maker.tick()
        removed = np.array([2**33]) if i == 2 else None
        picture = thumbnail(i, False)
        maker.send(m.Exemplar, i, id=2**33 + i, role="rare_<ground>", share=0.3, removed=removed, thumbnail=picture)
    maker.folder.close()
    assert set(read_report(tmp_path).galleries["rare_<ground>"]) == {2**33 + 1, 2**33 + 2}
    page = write_report(tmp_path).read_text("utf-8")
    assert page.index("What is normal here") < page.index("<h2>Rare &lt;ground&gt;</h2>")
    assert page.count("<figure>") == 4
    assert page.count("30% of samples") == 2


def test_a_message_without_a_section_of_its_own_is_shown_with_its_newest_values(run):
    data = read_report(run)
    assert data.others == {}
    (_, status), label = data.statuses.last, lambda x: "then"
    data.others = {"weather_<1>": (0, status)}
    html = message_sections(data, label)
    assert html.count("<h2>") == 1
    assert "<h2>Weather &lt;1&gt;</h2>" in html
    assert f"<td>frames</td><td>{status.frames}</td>" in html


def test_a_comparison_tells_of_each_model_whether_it_came_or_not(run):
    facts = as_json(compare_folders(run, run))["a"]
    told = [name for name in facts if name.endswith(("components", "energy"))]
    assert told == ["patch components", "patch free energy", "scene components", "topic components"]


def test_a_model_without_a_section_of_its_own_is_shown(run):
    data = read_report(run)
    data.models["sounds"], data.last_model["sounds"] = data.models["scenes"], data.last_model["scenes"]
    html = components_section(data, lambda x: "then")
    places = [html.index(f"<h3>{title}") for title in ("Patches: ", "Scenes: ", "Sounds<")]
    assert places == sorted(places)


def test_times_are_utc_for_what_ran_as_fast_as_the_clock(run):
    data = read_report(run)
    assert data.is_live
    assert data.span_ns == pytest.approx(90e9, rel=0.02)


def test_a_file_that_took_as_long_as_it_lasts_is_still_a_file(tmp_path):
    path = make_run(tmp_path, n_frames=120)
    about = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps(about | {"live": False}))
    assert not read_report(path).is_live


def test_a_ground_folder_with_gaps_says_what_did_not_arrive(tmp_path):
    def lossy(kind, sequence):
        return (kind == "score" and 300 < sequence < 400) or (kind == "alert" and sequence == 1)

    data = read_report(make_run(tmp_path, lossy=lossy, finish=False))
    assert data.missed == {"score": 99, "alert": 1}
    page = write_report(tmp_path).read_text("utf-8")
    assert "100 messages" in page
    assert "99 of score" in page
    assert "no end received" in page
    assert "class='hatch'" in page


def test_a_ground_stations_own_summary_does_not_hide_the_agents(tmp_path):
    maker = RunMaker(tmp_path)
    maker.tick()
    maker.send(m.Score, 0, value=1.0)
    maker.send(m.Summary, frames=600, accepted=590, events=4, alerts=3)
    maker.folder.finish({"role": "ground", "received": {"score": 1}, "gaps": {}, "alerts": 3})
    assert read_report(tmp_path).summary["frames"] == 600
    assert "600 frames" in write_report(tmp_path).read_text("utf-8")


def test_a_stretch_without_any_message_is_a_gap(tmp_path):
    maker = RunMaker(tmp_path)
    for i in range(100):
        maker.tick()
        maker.send(m.Score, i, value=1.0)
        if i == 50:
            maker.t_ns += 60 * 10**9
    maker.folder.close()
    assert [round((b - a) / 1e9) for a, b in read_report(tmp_path).gaps] == [60]


def test_a_slow_camera_is_not_called_silent(tmp_path):
    maker = RunMaker(tmp_path)
    for i in range(50):
        maker.t_ns += 30 * 10**9
        maker.send(m.Score, i, value=1.0)
    maker.folder.close()
    assert read_report(tmp_path).gaps == []


def test_a_restart_is_laid_after_the_run_before_it(tmp_path):
    for epoch in (1, 2):
        maker = RunMaker(tmp_path, epoch=epoch, run=f"run-{epoch}")
        for i in range(20):
            maker.tick()
            maker.send(m.Score, i, value=float(i))
        maker.folder.close()
    data = read_report(tmp_path)
    assert len(data.restarts) == 1
    assert sum(item.count for _, item in data.curve.items()) == 40
    assert data.missed == {}


def test_nothing_new_is_said_in_words(tmp_path):
    maker = RunMaker(tmp_path)
    for i in range(50):
        maker.tick()
        maker.send(m.Score, i, value=0.5, rarity=2.0)
    maker.folder.finish({"frames": 50, "accepted": 50, "alerts": 0})
    page = write_report(tmp_path).read_text("utf-8")
    assert "Nothing was out of the ordinary" in page
    assert "All 50 scored frames stayed within what this camera had learnt" in page
    assert "No exemplar was received" in page
    assert "no epoch had ended" in page


def test_a_run_that_has_just_begun_has_a_report_too(tmp_path):
    maker = RunMaker(tmp_path)
    maker.send(m.SourceChange, state="connecting")
    maker.folder.close()
    page = write_report(tmp_path).read_text("utf-8")
    assert "No frame has been seen yet" in page
    assert "No score was received" in page


def test_text_from_peers_is_never_markup(tmp_path):
    maker = RunMaker(tmp_path)
    evil = "<script>alert(1)</script>"
    maker.tick()
    maker.send(m.GateChange, state=evil[:60], reason="'><img src=x>")
    maker.send(m.LogNotice, level="info", code="x", text=evil)
    maker.send(m.Alert, 1, id=1, phase="new", alert_kind=evil, thumbnail=b"<svg onload=alert(1)>")
    maker.folder.write_config(evil, evil)
    maker.folder.close()
    page = write_report(tmp_path).read_text("utf-8")
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "no picture received" in page


def test_damage_in_the_log_is_told_and_the_rest_is_shown(tmp_path):
    path = make_run(tmp_path, n_frames=120)
    log = log_files(path)[0][1]
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 4
    log.write_bytes(data)
    page = write_report(path).read_text("utf-8")
    assert "1 damaged place(s)" in page


def test_a_report_that_cannot_be_written_is_one_line(run, tmp_path):
    with pytest.raises(UsageError, match="not written"):
        write_report(run, tmp_path / "absent" / "page.html")


def test_the_curve_keeps_every_count_in_bounded_bins():
    curve = Curve(max_bins=64, width_ns=1000)
    rng = np.random.default_rng(0)
    times = np.sort(rng.integers(0, 10**9, 5000))
    for t in times.tolist():
        place = curve.at(t)
        place.count += 1
        place.seen += 1
        place.high = max(place.high, t)
    bins = curve.items()
    assert len(bins) <= 64
    assert sum(item.count for _, item in bins) == 5000
    assert max(item.high for _, item in bins) == times[-1]
    assert all(abs(x - item.high) <= curve.width_ns for x, item in bins)


def test_thinning_keeps_the_newest_and_an_even_rest():
    thin = Thinned(max_items=100)
    for i in range(12_345):
        thin.add(i)
    kept = thin.all()
    assert len(kept) <= 101
    assert kept[-1] == 12_344
    assert len({b - a for a, b in zip(kept[:-2], kept[1:-1], strict=True)}) == 1


@pytest.mark.parametrize(("value", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2.5e9, "2.5 GB")])
def test_bytes_have_units(value, text):
    assert c.n_bytes(value) == text


def test_a_line_breaks_where_there_is_nothing():
    points = [(0, 1.0), (10, 2.0), (100, 3.0), (110, 4.0)]
    assert c.path(c.with_breaks(points, 20)).count("M") == 2
    assert c.area(c.with_breaks(points, 20), 9).count("Z") == 2


def test_time_ticks_are_round_and_few():
    for span_s in (3, 47, 600, 5000, 90_000, 10_000_000):
        ticks = c.time_ticks(span_s * 10**9)
        assert 2 <= len(ticks) <= 12
        assert ticks[0] == 0


def test_hover_data_is_valid_json(page):
    for text in re.findall(r"<script type='application/json'>(.*?)</script>", page):
        data = json.loads(text)
        assert len(data["x"]) == len(data["t"]) > 100
    assert thumbnail(1, True)[:2] == b"\xff\xd8"


def test_what_is_normal_leaves_out_the_frames_of_events(tmp_path):
    make_run(tmp_path, n_frames=330, finish=False)  # event 0 is of frames 260 to 300
    maker = RunMaker(tmp_path)
    for i, frame in enumerate((250, 270)):
        maker.send(
            m.Exemplar, id=50 + i, exemplar_frame=frame, exemplar_t_ns=(frame + 1) * 10**8, share=0.1,
            thumbnail=thumbnail(i, False),
        )  # fmt: skip
    maker.folder.close()
    page = write_report(tmp_path).read_text("utf-8")
    usual, _, of_events = page.partition("that the agent keeps of events")
    assert "frame 250" in usual
    assert "Exemplar 51, frame 270" not in usual
    assert "Exemplar 51, frame 270" in of_events


def test_exemplars_can_be_seen_by_their_topics_where_they_tell_them(tmp_path):
    make_run(tmp_path, n_frames=120, finish=False)
    assert "class='segmented'" not in write_report(tmp_path).read_text("utf-8")
    maker = RunMaker(tmp_path)
    maker.send(
        m.Exemplar, id=50, exemplar_frame=7, share=0.1, thumbnail=thumbnail(7, False),
        topic_map=np.array([[0, 0, 255], [0, 1, 1]], np.uint8), map_topics=np.array([4, 9]),
    )  # fmt: skip
    maker.folder.close()
    page = write_report(tmp_path).read_text("utf-8")
    gallery = page[page.index("class='segmented'") :]
    assert gallery.index("type='checkbox'") < gallery.index("Exemplar 50, frame 7") < gallery.index("class='segments'")
    layer = gallery[gallery.index("class='segments'") :].partition("</svg>")[0]
    assert layer.count("<rect") == 3  # a run of equal cells each, none of what shows nothing
    assert "topic 4" in layer
    assert "topic 9" in layer


def test_a_report_of_a_file_is_called_by_its_name(tmp_path):
    make_run(tmp_path, n_frames=20, finish=False)
    maker = RunMaker(tmp_path)
    maker.send(m.Status, state="live", source_kind="file", source_uri="/clips/yard one.mp4?loop=2")
    maker.folder.close()
    assert "<h1>yard one.mp4</h1>" in write_report(tmp_path).read_text("utf-8")


def test_what_was_held_back_says_why(tmp_path):
    make_run(tmp_path, n_frames=20, finish=False)
    maker = RunMaker(tmp_path)
    maker.send(m.Status, state="live", suppressed={"cooldown": 2, "budget": 1})
    maker.folder.close()
    assert "held back: 1 over the hour&#x27;s budget, 2 too soon after another" in write_report(tmp_path).read_text(
        "utf-8"
    )


def test_figures_for_makers_of_models_are_folded_away(page):
    card = page[page.index("id='event-1'") : page.index("id='event-2'")]
    before, _, folded = card.partition("<details>")
    assert "component" not in before
    assert "Nearest component</td><td>1<" in folded


def test_an_alert_says_which_rule_raised_it(page):
    assert page.count("frames in a row stood out further than the threshold of one in") == len(EVENTS)


def test_the_thresholds_are_named_where_they_are_drawn(page):
    assert "an alert is raised above: 1 in" in page
    assert "an open event goes on above: 1 in" in page


def test_every_picture_says_what_it_shows(page):
    assert "alt=''" not in page


def test_what_was_in_view_is_shown_with_its_pictures_and_its_track(tmp_path):
    data = read_report(make_run(tmp_path, topics=True))
    html = render(data)
    section = html[html.index("<h2>What was in view</h2>") :]
    track = section[section.index("Along the track") :].partition("</svg>")[0]
    assert 15 < track.count("<circle") == track.count("<path") < len(data.shares.places)  # a disc, a sector on it
    assert "topic 0 75%, topic 1 25%" in track
    assert "topic 1 75%, topic 0 25%" in track
    shares = data.shares.mean()
    assert shares == pytest.approx({0: 0.5, 1: 0.5})  # 40 s before the turn and 40 after it, 4 of them dark
    assert f"topic 0, {shares[0]:.0%}" in section
    assert "Kinds of scene" not in html


def test_a_layer_names_the_topic_of_each_part_of_a_picture(run):
    data = read_report(run)
    layer = topic_layer(data, np.array([[0, 0, 1], [255, 1, 1]], np.uint8), np.array([7, 9]))
    assert layer.count("<rect") == 3
    assert "x='0' y='0' width='2'" in layer
    assert "topic 7" in layer
    assert topic_layer(data, None, None) == ""


def test_a_band_is_named_as_people_know_it(page):
    """What a person reads where a colour is pointed at: a kind or a name, never a component."""
    assert re.search(r"<title>kind \d+</title>", page)
    assert "<title>component" not in page


def test_what_was_received_has_no_config_to_differ_from(tmp_path, capsys):
    """A ground station's folder knows the agent's messages alone: its config does not differ, it is not known."""
    maker = RunMaker(tmp_path / "own")
    maker.folder.write_config("[source]\nuri = 'a'\n", "hash")
    maker.send(m.LogNotice, level="info", code="note", text="x")
    maker.folder.close()
    received = RunMaker(tmp_path / "received")
    received.send(m.LogNotice, level="info", code="note", text="x")
    received.folder.close()
    assert (
        main(["compare", str(tmp_path / "own"), str(tmp_path / "received"), "--out", str(tmp_path / "page.html")]) == 0
    )
    told = capsys.readouterr().out
    assert "->" not in told
    assert "the config of received is not known" in told
