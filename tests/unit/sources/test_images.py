"""Image sources: natural order, faults named and survived, a folder that is being filled."""

import cv2
import numpy as np
import pytest
from capture_sources import FastClock

from stillwatch.base.errors import SourceError
from stillwatch.base.frame import FrameFlag
from stillwatch.settings.config import SourceConfig
from stillwatch.sources.base import NOTHING_YET, RawFrame
from stillwatch.sources.images import FolderSource, ImagesSource, natural_key
from stillwatch.tools.checks.corpus import with_exif_orientation, write_png_1bit

CONFIG = SourceConfig()


def write(folder, name, level):
    cv2.imwrite(str(folder / name), np.full((40, 60, 3), level, np.uint8))


def folder_source(path, *, config=CONFIG, **options):
    source = FolderSource(str(path), config, FastClock(1000.0), **options)
    source.open()
    return source


def levels(source):
    return [int(frame.colour[0, 0, 0]) for frame in iter(source.read, None)]


def test_natural_order():
    assert sorted(["img10", "img2", "b", "img1"], key=natural_key) == ["b", "img1", "img2", "img10"]


def test_a_folder_is_read_in_natural_order_and_foreign_files_are_passed_over(tmp_path):
    for number in (1, 2, 10, 9):
        write(tmp_path, f"f{number}.png", number)
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "sub.png").mkdir()
    assert levels(folder_source(tmp_path)) == [1, 2, 9, 10]
    assert levels(folder_source(tmp_path, loop=2)) == [1, 2, 9, 10] * 2


def test_one_bad_file_does_not_end_the_others_and_is_named_at_the_end(tmp_path):
    for number in (1, 2, 3):
        write(tmp_path, f"f{number}.png", number)
    (tmp_path / "f2.png").write_bytes(b"\x89PNG\r\n\x1a\nrubbish")
    source = folder_source(tmp_path)
    assert source.read().colour[0, 0, 0] == 1
    assert source.read().colour[0, 0, 0] == 3
    with pytest.raises(SourceError, match=r"2 of 3 images read; first fault: .*f2\.png") as caught:
        source.read()
    assert caught.value.partial
    assert source.counters() == {"undecodable": 1}


def test_an_empty_folder_is_an_error(tmp_path):
    with pytest.raises(SourceError, match="holds no image"):
        folder_source(tmp_path)


def read_one(path, config=CONFIG):
    return ImagesSource(str(path), [str(path)], config).read()


def test_size_is_refused_from_the_header(tmp_path):
    bomb = write_png_1bit(tmp_path / "bomb.png", 10_000, 10_000)
    with pytest.raises(SourceError, match="10000x10000 pixels are outside"):
        read_one(bomb)


def test_exif_orientation_is_applied_or_ignored_as_configured(tmp_path):
    jpeg = cv2.imencode(".jpg", np.zeros((40, 60, 3), np.uint8))[1].tobytes()
    (tmp_path / "a.jpg").write_bytes(with_exif_orientation(jpeg, 6))
    assert read_one(tmp_path / "a.jpg").colour.shape == (60, 40, 3)
    assert read_one(tmp_path / "a.jpg", SourceConfig(auto_rotate=False)).colour.shape == (40, 60, 3)


def test_a_jpeg_without_its_end_is_not_taken_for_whole(tmp_path):
    noise = np.random.default_rng(0).integers(0, 255, (200, 200, 3), np.uint8)
    jpeg = cv2.imencode(".jpg", noise)[1].tobytes()
    (tmp_path / "a.jpg").write_bytes(jpeg[: len(jpeg) // 2])
    try:
        flags = read_one(tmp_path / "a.jpg").flags
    except SourceError:  # some versions of the decoder refuse it, others fill it with grey
        flags = FrameFlag.DAMAGED
    assert flags & FrameFlag.DAMAGED


def poll(source, times=10):
    """Return what a live folder gives over some polls, and let no poll be wrong."""
    frames = []
    for _ in range(times):
        found = source.read()
        if isinstance(found, RawFrame):
            frames.append(int(found.colour[0, 0, 0]))
        else:
            assert found is NOTHING_YET
    return frames


def test_a_live_folder_gives_what_it_holds_and_what_comes(tmp_path):
    write(tmp_path, "f1.png", 1)
    source = folder_source(tmp_path, live=True)
    assert poll(source) == [1]
    write(tmp_path, "f2.png", 2)
    write(tmp_path, "f10.png", 10)
    assert poll(source) == [2, 10]
    assert poll(source) == []


def test_a_file_that_still_grows_is_not_read_and_keeps_its_turn(tmp_path):
    write(tmp_path, "whole.png", 7)
    data = (tmp_path / "whole.png").read_bytes()
    (tmp_path / "whole.png").unlink()
    source = folder_source(tmp_path, live=True)
    growing = tmp_path / "a1.png"
    write(tmp_path, "a2.png", 2)
    for end in (10, 20, 30, len(data)):
        growing.write_bytes(data[:end])
        assert source.read() is NOTHING_YET
    assert poll(source) == [7, 2]
