"""A result is written whole or not at all; what stood there before a refusal stands there after it."""

import os
import threading

import pytest
from power_processes import small_disk

from stillwatch.base import UsageError
from stillwatch.tools.shared import result_stream, write_result


def test_text_and_bytes_replace_what_was_there(tmp_path):
    target = tmp_path / "page.html"
    target.write_text("a longer earlier page")
    write_result(target, "grün")
    assert target.read_bytes() == b"gr\xc3\xbcn"
    write_result(str(target), b"\x00\xff")
    assert target.read_bytes() == b"\x00\xff"
    assert os.listdir(tmp_path) == ["page.html"]


def test_a_full_disk_leaves_the_earlier_result(tmp_path):
    with small_disk(tmp_path / "disk", megabytes=1) as disk:
        target = disk / "page.html"
        write_result(target, "the earlier page")
        with pytest.raises(UsageError, match=r"page\.html: not written: No space left on device; name another place"):
            write_result(target, bytes(2_000_000))
        assert target.read_text() == "the earlier page"
        assert os.listdir(disk) == ["page.html"]


def test_a_maker_that_fails_half_way_leaves_the_earlier_result(tmp_path):
    target = tmp_path / "run.mcap"
    target.write_text("the earlier one")

    def make_half():
        with result_stream(target) as stream:
            stream.write(b"a half")
            raise ValueError("half way")

    with pytest.raises(ValueError, match="half way"):
        make_half()
    assert target.read_text() == "the earlier one"
    assert os.listdir(tmp_path) == ["run.mcap"]


def test_a_place_that_is_not_there_is_told_with_its_own_remedy(tmp_path):
    with pytest.raises(
        UsageError, match=r"absent/unit: not written: No such file or directory; name another place .*sudo"
    ):
        write_result(tmp_path / "absent" / "unit", "text", "with --units, or try sudo")


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    write_result(tmp_path / "link.csv", "1,2")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "1,2"


def test_a_pipe_takes_a_result_as_it_comes(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    taken = []
    reader = threading.Thread(target=lambda: taken.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write_result(tmp_path / "pipe", "through")
    reader.join(10.0)
    assert taken == [b"through"]
    assert (tmp_path / "pipe").is_fifo()


def test_an_open_pipe_by_its_number_as_dev_stdout_is_one():
    reader, writer = os.pipe()
    try:
        write_result(f"/dev/fd/{writer}", "through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
        os.close(writer)
