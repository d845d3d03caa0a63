"""inspect, recover, compare, export and import: what they say of recordings, whole and damaged."""

import json
import re

import cv2
import numpy as np
import pytest
from recordings import frames_of, make_video, record, stamp, storage_config
from run_folders import RunMaker, make_run

from stillwatch.base.clock import VirtualClock
from stillwatch.base.errors import UsageError
from stillwatch.learn import MemoryBoundedMixture
from stillwatch.restart import checkpoint
from stillwatch.sources.capture import FrameMaker
from stillwatch.sources.recording import RecordingSource
from stillwatch.tools.cli import main
from stillwatch.tools.recordings import mcap_formats as f
from stillwatch.tools.recordings.import_frames import read_times
from stillwatch.tools.report.compare import compare_folders
from stillwatch.transport.disk import recording as r
from stillwatch.transport.disk.record_format import KIND_GAP, log_files
from stillwatch.transport.disk.record_log import read_records
from stillwatch.transport.disk.recording import read_recording
from stillwatch.transport.wire import Clumps, clump_fields


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    return make_video(tmp_path_factory.mktemp("video") / "v.mkv", frames=30)


@pytest.fixture
def recording(video, tmp_path):
    record(str(video), tmp_path / "rec", storage_config(), dropped={5})
    return tmp_path / "rec"


def _json(capsys, *arguments):
    code = main([*map(str, arguments), "--json"])
    return code, json.loads(capsys.readouterr().out)


def _damage(folder, at, cut=0):
    path = log_files(folder)[0][1]
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data[: len(data) - cut])


def test_inspect_tells_a_recordings_story(recording, capsys):
    code, report = _json(capsys, "inspect", recording)
    assert code == 0
    assert report["whole"]
    assert report["frames"]["count"] == 29
    assert (report["frames"]["first"], report["frames"]["last"]) == (0, 29)
    assert report["dropped"] == 1
    assert report["streams"] == [{"stream": 0, "codec": "h264", "size": "160x120", "pixel_format": "yuv420p"}]
    assert report["records"]["packet"] == 31  # 30 and the flush
    assert report["sessions"][0]["versions"]["av"]


def test_inspect_tells_what_mixtures_keep_and_what_of_it_was_sent(tmp_path, capsys):
    rows = np.random.default_rng(0).normal(size=(2000, 3))
    learner = MemoryBoundedMixture(memory=200).fit(rows)
    maker = RunMaker(tmp_path)
    fields = clump_fields(learner.clumps_) | {"memory": 200, "epoch_size": 100, "clump_points": learner.clump_points_}
    maker.send(Clumps, which="patches", model_epoch=20, **fields)
    maker.folder.close()
    code, report = _json(capsys, "inspect", tmp_path)
    found = report["clumps"]["patches"]
    assert (code, found["total"], found["sent_total"]) == (0, 2000.0, 2000.0)
    assert found["n_clumps"] + found["n_singlets"] == found["sent"]
    assert found["clump_points"] == pytest.approx(found["n_clumps"] * 7 / 3)  # count, mean, variance: 7 values
    main(["inspect", str(tmp_path)])
    words = capsys.readouterr().out
    assert f"patches, epoch 20: {found['n_clumps']} clumps (" in words
    assert "the epoch 100 samples (50%); sent:" in words


def test_inspect_shows_every_record_where_asked(recording, capsys):
    assert main(["inspect", str(recording), "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(" framerecord " in line for line in lines) >= 29


def test_inspect_of_damage_gives_its_place_and_a_code(recording, capsys):
    target = next(rec for rec, b in read_recording(recording) if isinstance(b, r.Packet))
    _damage(recording, target.offset + 40)
    code, report = _json(capsys, "inspect", recording)
    assert code == 4
    assert [(d["offset"], d["sequence"]) for d in report["damage"]] == [(target.offset, target.sequence)]


def test_inspect_of_a_checkpoint_lists_its_arrays(tmp_path, capsys):
    path = checkpoint.save(tmp_path, {"a": np.zeros((2, 3), np.float32)}, {"next_sequence": 4})
    code, report = _json(capsys, "inspect", path)
    assert code == 0
    assert report["arrays"] == [{"name": "a", "dtype": "<f4", "shape": [2, 3], "bytes": 24}]
    assert report["meta"] == {"next_sequence": 4}
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    assert main(["inspect", str(path)]) == 4
    assert "DAMAGED" in capsys.readouterr().out


def test_inspect_of_a_checkpoint_lists_kinds_of_visits(tmp_path, capsys):
    columns = {
        "id": [4, -1, 2],
        "count": [1, 0, 7],
        "first_ns": [5 * 10**9, 0, 10**9],
        "last_ns": [5 * 10**9, 0, 10**10],
    }
    state = {f"novelty.places.visits.kinds.{name}": np.array(column) for name, column in columns.items()}
    path = checkpoint.save(tmp_path, state, {})
    _, report = _json(capsys, "inspect", path)
    assert [(kind["id"], kind["count"]) for kind in report["kinds"]] == [(2, 7), (4, 1)]
    assert main(["inspect", str(path)]) == 0
    assert "visits of kind 2: 7, the first until 1.0 s, the last until 10.0 s" in capsys.readouterr().out


def test_inspect_of_nothing_is_one_line(tmp_path, capsys):
    assert main(["inspect", str(tmp_path / "absent")]) == 2
    assert "no such file" in capsys.readouterr().err


def test_recover_saves_all_that_is_whole_and_lists_the_rest(recording, tmp_path, capsys):
    records = list(read_records(recording))
    _damage(recording, records[20].offset + 5, cut=7)
    code, report = _json(capsys, "recover", recording, tmp_path / "out")
    assert code == 0
    assert report["records"] == len(records) - 2
    assert [d["reason"] for d in report["damage"]] == ["damaged record header", "torn end"]
    assert report["missing"] == [{"file": log_files(recording)[0][1].name, "first": 20, "last": 20}]
    damage = []
    saved = list(read_records(tmp_path / "out", damage=damage))
    assert damage == []
    assert [rec.sequence for rec in saved if rec.kind != KIND_GAP] == [*range(20), *range(21, len(records) - 1)]


def test_recover_of_a_whole_recording_loses_nothing(recording, tmp_path, capsys):
    assert main(["recover", str(recording), str(tmp_path / "out")]) == 0
    assert "nothing was lost" in capsys.readouterr().out
    assert log_files(tmp_path / "out")[0][1].read_bytes() == log_files(recording)[0][1].read_bytes()


def test_recover_never_writes_over_a_recording(recording, capsys):
    before = log_files(recording)[0][1].read_bytes()
    assert main(["recover", str(recording), str(recording)]) == 4
    assert "already holds a log" in capsys.readouterr().err
    assert log_files(recording)[0][1].read_bytes() == before


def test_recover_leaves_out_damaged_checkpoints(recording, tmp_path, capsys):
    good = checkpoint.save(recording / "checkpoints", {}, {"n": 1})
    bad = checkpoint.save(recording / "checkpoints", {}, {"n": 2})
    bad.write_bytes(b"bad")
    _, report = _json(capsys, "recover", recording, tmp_path / "out")
    assert report["damaged_checkpoints"] == [bad.name]
    assert [p.name for p in checkpoint.files(tmp_path / "out" / "checkpoints")] == [good.name]


def test_two_equal_runs_compare_equal(tmp_path, capsys):
    a, b = make_run(tmp_path / "a"), make_run(tmp_path / "b")
    _, report = _json(capsys, "compare", a, b)
    assert report["equal"]
    assert (len(report["both"]), report["only_a"], report["only_b"], report["config"]) == (3, [], [], [])
    assert report["correlation"] == pytest.approx(1.0)


def test_compare_names_the_events_and_settings_that_differ(tmp_path, capsys):
    a = make_run(tmp_path / "a", config="[events]\nraise_rarity = 200.0\n")
    b = make_run(
        tmp_path / "b",
        config="[events]\nraise_rarity = 50.0\n",
        seed=5,
        lossy=lambda kind, sequence: kind == "alert" and sequence in (2, 3),
    )
    result = compare_folders(a, b)
    assert [event.first.start_frame for event in result.only_a] == [420]
    assert result.only_b == []
    assert result.config == [("events.raise_rarity", "200.0", "50.0")]
    assert main(["compare", str(a), str(b), "--out", str(tmp_path / "page.html")]) == 0
    told = capsys.readouterr().out
    assert "2 in both, 1 only in the first" in told
    assert re.search(r"- event \d+: something new at .* \(frame 420\), for ", told)
    page = (tmp_path / "page.html").read_text("utf-8")
    assert page.count("<article class='event'") == 1
    assert "events.raise_rarity" in page


# -- MCAP and folders ----------------------------------------------------------------------------------------------


def _replayed(folder, config):
    source = RecordingSource(str(folder), config.source)
    source.open()
    maker = FrameMaker(config.source, VirtualClock(), False, 0, None)
    frames = []
    while (raw := source.read()) is not None:
        frames.append(stamp(maker.make(raw)))
    return frames


def test_a_lossless_recording_goes_through_mcap_and_back(video, tmp_path, capsys):
    pytest.importorskip("mcap")
    config = storage_config(record_frames="lossless")
    taken = record(str(video), tmp_path / "rec", config)
    assert main(["export", str(tmp_path / "rec"), str(tmp_path / "x.mcap")]) == 0
    assert main(["import", str(tmp_path / "x.mcap"), str(tmp_path / "back")]) == 0
    back = _replayed(tmp_path / "back", config)
    assert [(b[1], b[7], b[8]) for b in back] == [(t[1], t[7], t[8]) for t in taken]


def test_an_export_holds_images_novelty_events_and_outlines(tmp_path):
    pytest.importorskip("mcap")
    from mcap.reader import make_reader

    run = make_run(tmp_path / "run", n_frames=320)
    assert main(["export", str(run), str(tmp_path / "x.mcap")]) == 0
    with open(tmp_path / "x.mcap", "rb") as stream:
        found = {}
        for schema, channel, message in make_reader(stream, validate_crcs=True).iter_messages():
            found.setdefault(channel.topic, []).append((schema.name, channel.message_encoding, message.data))
    assert set(found) == {"/novelty", "/events", "/status", "/models"}
    assert len(found["/novelty"]) == 320
    scored = [json.loads(data) for _, _, data in found["/novelty"]]
    assert scored[200]["value"] > 0
    assert scored[10]["value"] is None
    assert [json.loads(data)["phase"] for _, _, data in found["/events"]] == ["new", "end"]


def test_images_in_an_export_are_what_the_recording_showed(recording, tmp_path):
    pytest.importorskip("mcap")
    from mcap.reader import make_reader

    assert main(["export", str(recording), str(tmp_path / "x.mcap"), "--width", "80"]) == 0
    with open(tmp_path / "x.mcap", "rb") as stream:
        images = [f.decode_image(c.message_encoding, msg.data) for _, c, msg in make_reader(stream).iter_messages()]
    assert len(images) == 29
    assert images[0].format == "jpeg"
    assert cv2.imdecode(np.frombuffer(images[0].data, np.uint8), 1).shape == (60, 80, 3)
    steps = np.diff([image.stamp_ns for image in images]) // 10**6
    assert sorted(set(steps.tolist())) == [100, 200]  # one frame was dropped


def _folder(tmp_path, n=5):
    folder = tmp_path / "images"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for i in range(n):
        cv2.imwrite(str(folder / f"img{i + 8}.png"), rng.integers(0, 255, (60, 80, 3), dtype=np.uint8))
    return folder


def test_a_folder_of_images_with_times_becomes_a_recording(tmp_path):
    folder = _folder(tmp_path)
    (folder / "times.csv").write_text("name,time\n" + "".join(f"img{i + 8}.png,{100 + i * 0.5}\n" for i in range(5)))
    assert main(["import", str(folder), str(tmp_path / "rec")]) == 0
    config = storage_config()
    frames = _replayed(tmp_path / "rec", config)
    assert [frame[1] for frame in frames] == [0, 5 * 10**8, 10**9, 15 * 10**8, 2 * 10**9]
    plain = frames_of(str(folder), config)
    assert [frame[7] for frame in frames] == [frame[7] for frame in plain]


def test_times_alone_follow_the_natural_order_of_names(tmp_path):
    folder = _folder(tmp_path)
    names = [f"img{i}.png" for i in range(8, 13)]
    (tmp_path / "t.txt").write_text("10\n20\n30\n40\n50\n")
    assert read_times(tmp_path / "t.txt", names, 1e6)["img12.png"] == 50 * 10**6
    assert main(["import", str(folder), str(tmp_path / "rec"), "--times", str(tmp_path / "t.txt")]) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [("a.png,yesterday\nb.png,1\nc.png,x\n", "neither a number nor an ISO 8601 time"), ("z.png,1\n", "not among"),
     ("1\n2\n3\n4\n", "4 times for 3 images")],
)  # fmt: skip
def test_a_bad_time_file_is_said_with_its_line(tmp_path, text, message):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(UsageError, match=message):
        read_times(tmp_path / "t.csv", ["a.png", "b.png", "c.png"], 1e9)


def test_iso_times_are_utc_unless_they_say_otherwise(tmp_path):
    (tmp_path / "t.csv").write_text("a.png,2026-01-01T00:00:00\nb.png,2026-01-01T02:00:00.5+02:00\n")
    times = read_times(tmp_path / "t.csv", ["a.png", "b.png"], 1e9)
    assert times["b.png"] - times["a.png"] == 5 * 10**8


def test_what_holds_no_images_is_one_line(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.mcap").write_bytes(b"no such thing")
    for source, words in (
        (tmp_path / "empty", "holds no image"),
        (tmp_path / "none", "no such file"),
        (tmp_path / "bad.mcap", "not a readable MCAP"),
    ):
        assert main(["import", str(source), str(tmp_path / "out")]) == 2
        assert words in capsys.readouterr().err


def test_images_of_other_writers_are_understood():
    jpeg = b"\xff\xd8jpeg"
    ros1 = f.encode_ros1_image(f.Image(jpeg, "jpeg", 5_000_000_007), 3, "cam")
    assert f.decode_image("ros1", ros1) == f.Image(jpeg, "jpeg", 5_000_000_007)
    text = json.dumps({"timestamp": {"sec": 5, "nsec": 7}, "data": "/9hqcGVn", "format": "jpeg"}).encode()
    assert f.decode_image("json", text) == f.Image(jpeg, "jpeg", 5_000_000_007)
    proto = b"\x0a\x04\x08\x05\x10\x07" + b"\x12\x06" + jpeg + b"\x1a\x04jpeg"
    assert f.decode_image("protobuf", proto) == f.Image(jpeg, "jpeg", 5_000_000_007)
    cdr = (
        b"\x00\x01\x00\x00"
        + b"\x05\0\0\0\x07\0\0\0"
        + b"\x04\0\0\0cam\0"
        + b"\x05\0\0\0jpeg\0"
        + b"\0\0\0"
        + b"\x06\0\0\0"
        + jpeg
    )
    assert f.decode_image("cdr", cdr) == f.Image(jpeg, "jpeg", 5_000_000_007)


@pytest.mark.parametrize("encoding", ["ros1", "cdr", "json", "protobuf", "unheard-of"])
def test_rubbish_is_no_image(encoding):
    rng = np.random.default_rng(0)
    for n in (0, 1, 3, 11, 16, 40, 200):
        image = f.decode_image(encoding, rng.bytes(n))
        assert image is None or isinstance(image, f.Image)
