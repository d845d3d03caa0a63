"""Videos, made worlds and recordings as dives: which frames are taken, where they were, what is found again."""

import csv
import json

import numpy as np
import pytest
from recordings import make_video, record, storage_config

from stillwatch.base import SourceError, UsageError
from stillwatch.sources import RawFrame
from stillwatch.tools.cli import main
from stillwatch.tools.survey.frames import NAV_COLUMNS, NOTE_NAME, is_source, known_places, take_frames
from stillwatch.tools.survey.pictures import dives_of


def quiet(text):
    pass


def test_a_video_gives_one_frame_in_n_once(tmp_path):
    video = str(make_video(tmp_path / "clip.mp4", frames=20))
    told = []
    taken = take_frames(video, tmp_path / "out", 6, told.append)
    assert sorted(path.name for path in taken.glob("*.jpg")) == [f"{n:08d}.jpg" for n in (0, 6, 12, 18)]
    assert taken.name == "clip"
    assert take_frames(video, tmp_path / "out", 6, lambda text: pytest.fail("read again")) == taken
    assert told[-1] == "clip: 4 frames taken"


def test_two_videos_of_one_name_stay_apart(tmp_path):
    clips = []
    for place in "ab":
        (tmp_path / place).mkdir()
        clips.append(str(make_video(tmp_path / place / "clip.mp4", frames=8, seed=ord(place))))
    folders = [str(take_frames(clip, tmp_path / "out", 4, quiet)) for clip in clips]
    assert [dive.name for dive in dives_of(folders)] == ["clip", "clip-2"]


def test_made_worlds_are_dives(tmp_path, capsys):
    worlds = [f"synthetic:transect?seed={seed}&n_frames=6&width=96&height=64" for seed in (1, 2)]
    assert main(["survey", *worlds, "--every", "2", "--out", str(tmp_path / "out"), "--json"]) == 0
    assert [group["items"] for group in json.loads(capsys.readouterr().out)["groups"]] == [3.0, 3.0]


def test_a_recording_is_a_dive_where_frames_are_asked_for(tmp_path):
    """Recorded through a capture, as the agent does it, without the agent."""
    config = storage_config()
    uri = "synthetic:transect?seed=1&n_frames=8&width=96&height=64"
    recording = str(tmp_path / "rec")
    record(uri, recording, config)
    assert is_source(recording, 2)
    assert not is_source(recording, None)
    assert len(list(take_frames(recording, tmp_path / "out", 2, quiet).glob("*.jpg"))) == 4


def test_positions_of_frames_are_those_of_their_own_source(tmp_path):
    folders = []
    for latitude, name in ((10.0, "a"), (20.0, "b")):
        taken = take_frames(str(make_video(tmp_path / f"{name}.mp4", frames=4)), tmp_path / "out", 2, quiet)
        with (taken / "nav.csv").open("w", newline="") as file:
            csv.writer(file).writerows([NAV_COLUMNS, ("00000002.jpg", latitude, 5.0, 2.5)])
        folders.append(str(taken))
    bare = str(take_frames(str(make_video(tmp_path / "c.mp4", frames=4)), tmp_path / "out", 2, quiet))
    positions = known_places([*folders, bare], dives_of([*folders, bare]))
    assert positions[1:4:2].tolist() == [[10.0, 5.0, 2.5], [20.0, 5.0, 2.5]]
    assert np.isnan(positions[[0, 2, 4, 5]]).all()


def test_a_source_that_ends_early_is_surveyed_with_what_it_gave_and_told(tmp_path, monkeypatch):
    class CutShort:
        left = 3

        def open(self):
            pass

        def close(self):
            pass

        def read(self):
            if not self.left:
                raise SourceError("its data ended early", partial=True)
            self.left -= 1
            return RawFrame(np.zeros((48, 64, 3), np.uint8), None)

    monkeypatch.setattr("stillwatch.tools.survey.frames.open_source", lambda *given: CutShort())
    taken = take_frames("synthetic:anything", tmp_path, 1, quiet)
    assert len(list(taken.glob("*.jpg"))) == 3
    assert (taken / NOTE_NAME).read_text() == "synthetic:anything: its data ended early"


def test_a_file_without_frames_is_refused(tmp_path):
    (tmp_path / "clip.mp4").write_bytes(b"none")
    with pytest.raises(UsageError, match="clip.mp4"):
        take_frames(str(tmp_path / "clip.mp4"), tmp_path / "out", 1, quiet)
