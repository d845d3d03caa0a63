"""Frames found by a picture: the run's topics say which of its frames look most like it."""

import cv2
import numpy as np
import pytest
from capture_sources import frame_of
from printed import of_schema

from stillwatch.base import RealClock, UsageError, VirtualClock
from stillwatch.pipeline import Pipeline
from stillwatch.settings import load_config
from stillwatch.tools.cli import main
from stillwatch.tools.find import box_of, densities, describe, find, read_run, similarities
from stillwatch.tools.ground_thin_folder import ThinFolder
from stillwatch.transport.disk import RunFolder
from stillwatch.transport.thin import ThinAlert, decode_thumbnail
from stillwatch.transport.thin.thumbnails import encode_thumbnail
from stillwatch.transport.wire import Encoder, EventKind, Headers, encode, kind_of

SIZE = (160, 120)
SETTINGS = [
    "source.width=160",
    "source.height=120",
    "topics.share_every_s=0.5",
    "patches.memory=600",
    "topics.memory=800",
]
LEARNT, CHECKED = range(30, 60), range(110, 130)  # frames that show the board: new, and when its topic is known


def picture(i: int) -> np.ndarray:
    """Fine green noise that drifts; in some frames a red board of coarse stripes takes half of it."""
    rng = np.random.default_rng(i)
    view = rng.normal((60, 120, 60), 12.0, (SIZE[1], SIZE[0], 3))
    if i in LEARNT or i in CHECKED:
        stripes = 40.0 * np.sign(np.sin(np.arange(SIZE[0] // 2) / 3.0))[None, :, None]
        view[:, : SIZE[0] // 2] = np.array((40.0, 60.0, 170.0)) + stripes
    return np.clip(view, 0, 255).astype(np.uint8)


class Recorded:
    """Writes what a pipeline sends into a run folder, and keeps it."""

    def __init__(self, folder: RunFolder):
        self.folder, self.sent = folder, []

    def send(self, message):
        self.sent.append(message)
        self.folder.write(kind_of(message), encode(message))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path, clock = tmp_path_factory.mktemp("run"), VirtualClock()
    folder = RunFolder(path, clock)
    folder.write_config("", "c0ffee", agent="cam1", run="r1", source="made")
    sink = Recorded(folder)
    config = load_config(None, [*SETTINGS, "novelty.camera=moving"])
    pipeline = Pipeline(config, sink, clock, headers=Headers("cam1", "r1", "boot", 1))
    for i in range(150):
        pipeline.step(frame_of(picture(i), i / 10, sequence=i))
    pipeline.finish()
    pipeline.close()
    folder.finish({"frames": 150})
    return path, sink.sent


def test_frames_that_show_the_thing_come_first(run):
    path, _ = run
    rows = find([path], picture(112), (0.05, 0.05, 0.45, 0.95), 2)  # the board was told twice: a view that stays, once
    shown = {*LEARNT, *CHECKED}
    assert {row["sequence"] for row in rows} <= shown
    scores = [row["score"] for row in rows]
    assert scores == sorted(scores, reverse=True)
    other = find([path], picture(5), (0.0, 0.0, 1.0, 1.0), 3)
    assert not {row["sequence"] for row in other} & set(CHECKED)


def test_words_are_those_that_the_agent_had(run):
    _, sent = run
    encoder = next(message for message in sent if isinstance(message, Encoder))
    whole = describe(picture(30), encoder, (0.0, 0.0, 1.0, 1.0))
    half = describe(picture(30), encoder, (0.0, 0.0, 0.5, 1.0))
    assert 0.4 * len(whole) < len(half) < 0.6 * len(whole)
    assert {tuple(row) for row in half.tolist()} <= {tuple(row) for row in whole.tolist()}


def test_json_has_rows_for_programs_and_a_page_for_people(run, tmp_path, capsys):
    path, _ = run
    wanted, page = tmp_path / "wanted.png", tmp_path / "found.html"
    cv2.imwrite(str(wanted), picture(112))
    assert main(["find", str(path), "--like", str(wanted), "--top", "2", "--json", "--out", str(page)]) == 0
    rows = of_schema("find", capsys.readouterr().out)["rows"]
    assert [set(row) for row in rows] == [{"run", "sequence", "t_utc", "score", "picture"}] * 2
    assert page.read_text().count("<figure>") == 3


@pytest.mark.parametrize("text", ["1,2,3", "a,b,c,d", "0.5,0,0.4,1", "0,0,1,1.5"])
def test_a_box_that_is_none_is_refused(text):
    with pytest.raises(UsageError, match="--box"):
        box_of(text)


def test_a_folder_without_topics_is_refused(tmp_path):
    folder = RunFolder(tmp_path, VirtualClock())
    folder.write_config("", "c0ffee", agent="cam1", run="r1", source="made")
    folder.finish({"frames": 0})
    with pytest.raises(UsageError, match="no shares of topics"):
        find([tmp_path], picture(0), (0.0, 0.0, 1.0, 1.0), 1)


def small(image):
    """A picture as a thin link brings it."""
    return decode_thumbnail(encode_thumbnail(image, max_side_px=96, max_bytes=1500))


@pytest.fixture(scope="module")
def thin(tmp_path_factory):
    """What a thin link told of 20 alerts: each fifth shows the board; one came without a picture."""
    path = tmp_path_factory.mktemp("thin")
    folder = ThinFolder(path, "auv1", RealClock())
    for n in range(20):
        alert = ThinAlert(event=n, kind=EventKind.NOVEL, wall_ns=1_700_000_000_000_000_000 + n * 10**9, delivery=n)
        folder.alert(alert)
        if n != 7:
            folder.thumbnail((alert.incarnation, n), small(picture(LEARNT[n % 30] if n % 5 == 0 else n)))
    folder.close({})
    return path


def test_alerts_of_a_thin_link_are_found_by_their_pictures(thin, tmp_path, capsys):
    rows = find([thin], picture(112), (0.05, 0.05, 0.45, 0.95), 8)
    assert sorted(row["t_utc"][17:19] for row in rows[:4]) == ["20", "25", "30", "35"]
    assert rows[3]["score"] > rows[4]["score"] + 2.0, [row["score"] for row in rows]
    assert all(row["sequence"] is None and row["picture"][:2] == b"\xff\xd8" for row in rows)
    wanted, shown = tmp_path / "wanted.png", tmp_path / "found.html"
    cv2.imwrite(str(wanted), picture(112))
    assert main(["find", str(thin), "--like", str(wanted), "--json", "--out", str(shown)]) == 0
    assert len(of_schema("find", capsys.readouterr().out)["rows"]) == 19
    assert "frame None" not in shown.read_text()
    assert main(["find", str(thin), "--like", str(wanted), "--top", "1"]) == 0
    assert "None" not in capsys.readouterr().out


def test_one_picture_alone_is_as_likely_as_its_run():
    assert densities([small(picture(3))], picture(3), (0.0, 0.0, 1.0, 1.0)).tolist() == pytest.approx([0.0], abs=1e-3)


def test_a_frame_with_more_of_the_things_topic_is_likelier(run):
    path, _ = run
    (held,) = read_run(path)
    found = similarities(held, picture(112), (0.05, 0.05, 0.45, 0.95))
    with_board = [i for i, score in enumerate(held.scores) if score.frame in CHECKED]
    without = [i for i, score in enumerate(held.scores) if score.frame >= LEARNT.stop and i not in with_board]
    assert found[with_board].min() > found[without].max()
