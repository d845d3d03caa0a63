"""The run folder: every message, its config and summary, readable whatever happened to it."""

import json

import msgspec
import pytest
from run_folders import make_run
from wire_examples import examples

from stillwatch.base.clock import VirtualClock
from stillwatch.transport.disk import run_folder
from stillwatch.transport.disk.record_format import log_files
from stillwatch.transport.disk.run_folder import RunFolder, open_run, pack_message, unpack_message
from stillwatch.transport.wire import encode, model_change
from stillwatch.transport.wire.errors import DecodeError, LogError


@pytest.fixture
def clock():
    return VirtualClock(wall_ns=1_700_000_000 * 10**9)


def test_messages_come_back_decoded_in_order(tmp_path):
    run = open_run(make_run(tmp_path, n_frames=150))
    kinds = [kind for kind, _ in run.messages()]
    assert kinds.count("score") == 150
    assert kinds[0] == "source"
    assert kinds[-1] == "summary"
    frames = [message.frame for _, message in run.messages({"score"})]
    assert frames == list(range(150))
    assert (run.damage, run.unreadable, run.gaps) == ([], 0, [])


def test_config_and_summary_are_files_that_people_can_read(tmp_path):
    path = make_run(tmp_path, n_frames=20)
    assert (path / "config.toml").read_text() == "[agent]\nid = 'cam1'\n"
    assert json.loads((path / "run.json").read_text())["config_hash"] == "c0ffee0123456789"
    assert json.loads((path / "summary.json").read_text())["frames"] == 20
    assert open_run(path).summary["frames"] == 20


def test_a_log_alone_still_tells_its_config(tmp_path):
    path = make_run(tmp_path, n_frames=20)
    for name in ("config.toml", "run.json", "summary.json"):
        (path / name).unlink()
    run = open_run(path)
    assert run.config_text == "[agent]\nid = 'cam1'\n"
    assert run.config_hash == "c0ffee0123456789"
    assert run.summary is None


def test_a_run_that_is_still_going_on_has_no_summary(tmp_path):
    run = open_run(make_run(tmp_path, n_frames=20, finish=False))
    assert run.summary is None
    assert sum(1 for _ in run.messages()) > 20


def test_a_half_written_summary_is_no_summary(tmp_path):
    path = make_run(tmp_path, n_frames=5)
    (path / "summary.json").write_text('{"frames": ')
    assert open_run(path).summary is None


def test_damage_costs_what_it_hit_and_is_reported(tmp_path):
    path = make_run(tmp_path, n_frames=50)
    log = log_files(path)[0][1]
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    run = open_run(path)
    assert sum(1 for _ in run.messages()) >= 50
    assert len(run.damage) == 1


def test_payloads_of_another_version_are_counted_not_fatal(tmp_path, clock):
    folder = RunFolder(tmp_path, clock)
    folder.write("score", b"\x81\xa6schema\x63")
    folder.write("unheard_of", b"")
    folder.close()
    run = open_run(tmp_path)
    assert list(run.messages()) == []
    assert run.unreadable == 2


def test_a_continued_run_keeps_what_was_there(tmp_path, clock):
    make_run(tmp_path, n_frames=10)
    before = sum(1 for _ in open_run(tmp_path).messages())
    make_run(tmp_path, n_frames=10)
    assert sum(1 for _ in open_run(tmp_path).messages()) == 2 * before


def test_every_file_of_the_log_begins_with_the_config(tmp_path, clock):
    folder = RunFolder(tmp_path, clock, max_file_bytes=2000)
    folder.write_config("[a]\n", "h")
    for _ in range(40):
        folder.write("score", bytes(100))
    folder.close()
    files = log_files(tmp_path)
    assert len(files) > 2
    for _, path in files:
        path.rename(tmp_path / "only-000000000000.swlog.keep")
    for name in ("config.toml", "run.json"):
        (tmp_path / name).unlink()
    last = files[-1][1]
    (tmp_path / "only-000000000000.swlog.keep").rename(last)
    assert open_run(tmp_path).config_text == "[a]\n"


def test_each_file_can_be_read_alone_though_models_travel_as_changes(tmp_path, clock):
    folder = RunFolder(tmp_path, clock, max_file_bytes=4000)
    whole = examples()["model"]
    sent = [whole]
    folder.write("model", encode(whole))
    folder.write("clumps", encode(examples()["clumps"]))
    for k in range(1, 40):
        model = msgspec.structs.replace(whole, sequence=whole.sequence + k, free_energy=float(k))
        folder.write("model", encode(model_change(sent[-1], model, [])))
        sent.append(model)
    folder.close()
    files = log_files(tmp_path)
    assert len(files) > 2
    run = open_run(tmp_path)
    read = [message for _, message in run.messages()]
    assert [m.sequence for m in read if m.which == "patches"] == [model.sequence for model in sent]  # none twice
    assert len(read) == len(sent) + 1
    for _, path in files[:-1]:
        path.unlink()  # as retention does
    run = open_run(tmp_path)
    rest = [message for kind, message in run.messages()]
    assert run.unreadable == 0
    assert [type(message).__name__ for message in rest[:2]] == ["Model", "Clumps"]
    assert [m.free_energy for m in rest if m.which == "patches"] == [m.free_energy for m in sent][-len(rest) + 1 :]


def test_small_files_are_written_when_the_disk_works_again(tmp_path, clock, monkeypatch):
    folder = RunFolder(tmp_path, clock)

    def refuse(path, data):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(run_folder, "write_durably", refuse)
        folder.write_config("[a]\n", "h")
        assert not (tmp_path / "config.toml").exists()
    folder.write("score", b"x")
    assert (tmp_path / "config.toml").read_text() == "[a]\n"
    assert (tmp_path / "run.json").exists()
    folder.close()


def test_finish_says_whether_the_summary_is_on_the_disk(tmp_path, clock, monkeypatch):
    folder = RunFolder(tmp_path, clock)
    monkeypatch.setattr(run_folder, "write_durably", lambda *_: (_ for _ in ()).throw(OSError(30, "read-only")))
    assert not folder.finish({"frames": 1})


@pytest.mark.parametrize("place", ["absent", "empty", "file"])
def test_what_is_no_run_folder_is_said_in_one_line(tmp_path, place):
    path = tmp_path / "x"
    if place == "empty":
        path.mkdir()
    elif place == "file":
        path.write_text("")
    with pytest.raises(LogError, match="no such folder|holds no messages"):
        open_run(path)


def test_a_message_record_names_its_kind():
    assert unpack_message(pack_message("alert", b"payload")) == ("alert", b"payload")
    for body in (b"", b"\x05abc"):
        with pytest.raises(DecodeError):
            unpack_message(body)
