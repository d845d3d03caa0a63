"""`stillwatch` ground station for thin links: prints and keeps what arrives, as a process beside a real vehicle end."""

import contextlib
import json
import signal
import subprocess
import sys
import time

import cv2
import numpy as np
import pytest
from power_processes import small_disk
from printed import of_schema
from thin_processes import free_ports
from thin_records import read_received
from thin_world import make_model, make_vehicle

from stillwatch.base.clock import RealClock
from stillwatch.learn import MemoryBoundedMixture
from stillwatch.runs import open_run
from stillwatch.tools import ground_thin
from stillwatch.tools.report import write_report
from stillwatch.tools.survey.fleet import read_run
from stillwatch.transport.mirror.vehicle import ModelEncoder
from stillwatch.transport.thin.codec import ThinCodec
from stillwatch.transport.thin.port import read_link_key
from stillwatch.transport.thin.presets import PRESETS
from stillwatch.transport.wire import clump_fields, encode, messages

RUN = (
    "import argparse; from stillwatch.tools import ground_thin as t; p = argparse.ArgumentParser(); "
    "t.add_arguments(p); raise SystemExit(t.main(p.parse_args()))"
)
HEAD = {"agent": "cam1", "run": "r", "boot": "b", "epoch": 0, "sequence": 0, "t_ns": 0, "mono_ns": 0}


@pytest.mark.slow
def test_an_alert_its_thumbnail_and_the_model_end_in_the_folder(tmp_path):
    (port,) = free_ports(1)
    key = tmp_path / "link.key"
    key.write_text("5a" * 32)
    key.chmod(0o600)
    options = ["--listen", f"udp://127.0.0.1:{port}", "--preset", "lte", "--out", str(tmp_path / "ground"), "--json"]
    command = [sys.executable, "-c", RUN, *options, "--agent-number", "3", "--key-file", str(key)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    clock = RealClock()
    vehicle = make_vehicle(tmp_path, clock, PRESETS["lte"], port, ThinCodec(3, read_link_key(str(key))))
    picture = np.random.default_rng(0).integers(0, 255, (72, 96, 3), np.uint8)
    try:
        vehicle.publish(make_model(2))
        vehicle.publish(
            messages.Alert(
                **HEAD,
                wall_ns=clock.wall_ns(),
                id=1,
                component=3,
                phase="new",
                severity=1.0,
                x=0.5,
                y=0.5,
                thumbnail=cv2.imencode(".jpg", picture)[1].tobytes(),
            )
        )
        deadline = time.monotonic() + 30
        quiet_since = None
        while time.monotonic() < deadline and (quiet_since is None or time.monotonic() - quiet_since < 1.5):
            vehicle.step()
            waiting = vehicle.backlog + sum(vehicle.sender.scheduler.count(kind) for kind in ("thumbnail", "model"))
            quiet_since = (quiet_since or time.monotonic()) if not waiting else None
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        lines = [of_schema("ground-thin", line) for line in process.communicate(timeout=20)[0].splitlines()]
    finally:
        process.kill()
        process.wait()
        vehicle.close()
    assert [line["what"] for line in lines].count("alert") == 1
    components = [line for line in lines if line["what"] == "component"]
    assert {line["component"] for line in components} == {3}
    assert components[-1]["mean"] == pytest.approx(make_model(2).means[3].tolist(), abs=0.01)
    assert [alert.severity for _, _, alert in read_received(tmp_path / "ground" / "received")] == [7]
    (thumbnail,) = (tmp_path / "ground" / "thumbnails").iterdir()
    assert cv2.imread(str(thumbnail)).shape == (72, 96, 3)
    run = open_run(tmp_path / "ground")
    (event,) = run.events().rows
    assert (event["id"], event["kind"], event["severity"], event["x"]) == (
        1,
        "novel",
        1.0,
        pytest.approx(0.5, abs=0.01),
    )
    assert run.pictures()[1].startswith(b"\xff\xd8")
    assert run.models()["patches"].n_dims == 6
    assert run.info["agent"] == "thin-3"
    assert "<article class='event'" in write_report(tmp_path / "ground").read_text("utf-8")
    with np.load(tmp_path / "ground" / "model-patches.npz") as model:
        assert model["means"].shape == (12, 6)
    models = [line for line in lines if line["what"] == "model"]
    counts = make_model(2).counts
    assert (models[-1]["model"], models[-1]["n_components"]) == ("patches", 12)
    assert [component for component, _ in models[-1]["largest"]] == np.argsort(-counts, kind="stable")[:3].tolist()
    assert lines[-1]["what"] == "counts"
    assert lines[-1]["alert"] == 1
    assert lines[-1].get("rejected", 0) == 0
    assert process.returncode == 0


@pytest.mark.parametrize("incarnation", [1, 40])
def test_a_vehicle_that_began_anew_is_mirrored_whatever_its_number(tmp_path, incarnation):
    station = ground_thin.ThinStation(tmp_path, ThinCodec(1), "micromodem-0", agent="auv", as_json=True)
    for number, seed in ((0, 5), (incarnation, 6)):
        encoder = ModelEncoder(incarnation=number)
        encoder.update(make_model(seed))
        while (packet := encoder.next_packet(23)) is not None:
            station.take_packet(0, packet[1])
            encoder.acknowledge(packet[0])
    found = station.mirrors[0].summary()
    station.close()
    assert found is not None
    assert np.abs(found.means[np.argsort(found.ids)] - make_model(6).means).max() < 0.1


def test_a_full_disk_keeps_the_earlier_model_and_the_newer_one_once_there_is_room(tmp_path, capsys):
    clumps = clump_fields(MemoryBoundedMixture(memory=100).fit(np.random.default_rng(0).normal(size=(500, 3))).clumps_)
    payload = encode(messages.Clumps(**HEAD, wall_ns=0, which="scenes", model_epoch=1, **clumps))
    with small_disk(tmp_path / "disk", megabytes=1) as disk:
        station = ground_thin.ThinStation(disk, ThinCodec(1), "micromodem-0", agent="auv", as_json=True)
        encoder = ModelEncoder(incarnation=0)

        def send(seed):
            encoder.update(make_model(seed))
            while (packet := encoder.next_packet(23)) is not None:
                station.take_packet(0, packet[1])
                encoder.acknowledge(packet[0])
            station.save_models()
            with np.load(disk / "model-patches.npz") as held:
                return np.abs(held["means"][np.argsort(held["ids"])] - make_model(seed).means).max() < 0.1

        assert send(5)
        fill(disk)
        assert not send(6)
        for _ in range(3):  # as it does every ten seconds
            station.save_models()
        station.take_clumps("scenes", payload, len(payload), is_complete=True)
        (disk / "filler").unlink()
        station.save_models()
        with np.load(disk / "model-patches.npz") as held:
            assert np.abs(held["means"][np.argsort(held["ids"])] - make_model(6).means).max() < 0.1
        station.close()
        assert not list(disk.glob("*.tmp"))
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    refused = [line for line in told if line["what"] == "refused"]
    assert [(line.get("model"), line["reason"]) for line in refused] == [("patches", "no room"), (None, "no room")]
    assert len([line for line in told if line["what"] == "model"]) == 2  # each change once


def fill(disk):
    with open(disk / "filler", "wb", buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(bytes(1000))


def test_clumps_that_arrived_are_kept_as_a_learner_takes_them_with_their_bytes_told(tmp_path, capsys):
    rows = np.random.default_rng(0).normal(size=(500, 3))
    learner = MemoryBoundedMixture(memory=100).fit(rows)
    fields = clump_fields(learner.clumps_)
    payload = encode(messages.Clumps(**HEAD, wall_ns=0, which="scenes", model_epoch=1, **fields))
    station = ground_thin.ThinStation(tmp_path, ThinCodec(1), "micromodem-0", agent="auv", as_json=True)
    station.take_clumps("scenes", payload[:50], len(payload), is_complete=False)
    station.take_clumps("scenes", payload, len(payload), is_complete=True)
    station.take_clumps("scenes", payload[:50], len(payload), is_complete=True)
    station.close()
    come, whole, refused = [json.loads(line) for line in capsys.readouterr().out.splitlines()][:3]
    assert (come["what"], come["received"], come["bytes"]) == ("clumps_come", 50, len(payload))
    assert (whole["what"], whole["bytes"], whole["clumps"]) == ("clumps", len(payload), len(fields["counts"]))
    assert refused["what"] == "refused"
    assert read_run(str(tmp_path)).is_clumps  # a survey merges runs by them
    with np.load(tmp_path / "clumps-scenes.npz") as held:
        again = MemoryBoundedMixture.from_clumps(dict(held))
    assert abs(again.score(rows) - learner.score(rows)) < 0.05
