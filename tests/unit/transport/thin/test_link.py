"""The ends of a thin link and the agent's side of it: what messages become, what is acknowledged, what is not."""

import math

import cv2
import numpy as np
import pytest
from thin_world import START_WALL_NS, World, make_model, make_vehicle

from stillwatch.base.clock import VirtualClock
from stillwatch.transport.mirror.ground import ModelMirror
from stillwatch.transport.mirror.vehicle import ModelEncoder
from stillwatch.transport.thin.codec import ThinCodec
from stillwatch.transport.thin.component import decode_component, encode_component
from stillwatch.transport.thin.link import MOST_CLUMPS_BYTES, ThinReceiver
from stillwatch.transport.thin.linksim import LinkModel
from stillwatch.transport.thin.port import ThinPort
from stillwatch.transport.thin.presets import PRESETS
from stillwatch.transport.thin.receiver_log import (
    AlertArrived,
    ClumpsArrived,
    ComponentArrived,
    HeartbeatArrived,
    PacketArrived,
    ReceiverLog,
    ThumbnailArrived,
)
from stillwatch.transport.thin.records import ThinAlert, ThinHeartbeat
from stillwatch.transport.thin.vehicle import alert_from_message
from stillwatch.transport.wire import MODEL_NUMBERS, clump_arrays, clump_fields, decode, encode, messages

HEAD = {"agent": "cam1", "run": "r", "boot": "b", "epoch": 0, "sequence": 0, "t_ns": 0, "mono_ns": 0}
SECOND = 1_000_000_000
KINDS_ARRIVED = (AlertArrived, PacketArrived, ClumpsArrived)


def alert_message(**fields):
    return messages.Alert(**HEAD, wall_ns=START_WALL_NS, **({"id": 70_000, "phase": "new"} | fields))


def test_an_alert_message_becomes_what_32_bytes_can_say():
    boxes = np.array([[0.0, 0.0, 0.1, 0.1], [0.4, 0.2, 0.8, 0.6]], np.float32)
    nav = messages.Position(latitude=10.0, longitude=20.0, depth_m=30.0)
    message = alert_message(alert_kind="novelty", severity=1.0, rarity=500.0, x=0.5, y=0.5, boxes=boxes, nav=nav)
    alert = alert_from_message(message)
    assert (alert.event, alert.kind, alert.life, alert.severity, alert.rarity) == (70_000, "novel", "new", 7, 500.0)
    assert alert.box == pytest.approx((0.6, 0.4, 0.4, 0.4))
    assert (alert.latitude, alert.longitude, alert.depth_m) == (10.0, 20.0, 30.0)
    assert math.isnan(alert.altitude_m)


@pytest.mark.parametrize(
    ("fields", "box"),
    [({}, None), ({"x": 0.5, "y": 0.25}, (0.5, 0.25, 0.0, 0.0)),
     ({"boxes": np.array([[0.0, 0.0, 0.2, 0.2], [0.6, 0.8, 1.0, 1.0]], np.float32)}, (0.5, 0.5, 1.0, 1.0))],
)  # fmt: skip
def test_the_place_is_told_from_what_is_known(fields, box):
    assert alert_from_message(alert_message(**fields)).box == (None if box is None else pytest.approx(box))


def test_kinds_without_a_number_become_other():
    assert alert_from_message(alert_message(alert_kind="something_else")).kind == "other"


def test_an_alert_that_the_grounds_disk_does_not_take_is_not_acknowledged_and_comes_again(tmp_path, monkeypatch):
    world = World(tmp_path, PRESETS["micromodem-0"], LinkModel(), seed=0)
    world.vehicle.alert(ThinAlert(1, "novel", 0), 0)
    real = world.log.append
    monkeypatch.setattr(world.log, "append", lambda agent, alert: None)
    for _ in range(40):
        world.step()
    assert world.ground.counters["unstored"] >= 2
    assert len(world.outbox) == 1
    monkeypatch.setattr(world.log, "append", real)
    for _ in range(60):
        world.step()
    assert len(world.outbox) == 0
    assert sum(world.received.values()) == 1


def test_a_component_arrives_coarse_and_is_refined(tmp_path):
    world = World(tmp_path, PRESETS["micromodem-0"], LinkModel(loss=0.3), seed=1)
    mean, std = np.linspace(-1, 1, 20), np.full(20, 0.5)
    world.vehicle.component(encode_component(4, 1, 100.0, mean, std, n_stages=3), 0)
    while world.vehicle.scheduler.count("component"):
        world.step()
        assert world.second < 3600
    parts = {item.part.stage: item.part.data for _, item in world.arrivals if isinstance(item, ComponentArrived)}
    assert np.abs(decode_component([parts[k] for k in range(3)]).mean - mean).max() < 1e-3
    assert len([item for _, item in world.arrivals if isinstance(item, ComponentArrived)]) == 3


def test_a_newer_revision_of_a_component_takes_the_place_of_the_older(tmp_path):
    world = World(tmp_path, PRESETS["micromodem-0"], LinkModel(), seed=1)
    for revision in (1, 2):
        world.vehicle.component(encode_component(4, revision, 100.0, np.zeros(20), np.ones(20), n_stages=2), 0)
    assert {key[1] for key in world.vehicle.scheduler.keys("component")} == {2}


def test_heartbeats_replace_each_other_and_keep_their_distance(tmp_path):
    world = World(tmp_path, PRESETS["micromodem-0"], LinkModel(), seed=1)
    for second in range(1200):
        beat = ThinHeartbeat(world.clock.wall_ns(), "live", float(second))
        world.vehicle.heartbeat(beat, world.clock.monotonic_ns())
        world.step()
    seconds = [second for second, item in world.arrivals if isinstance(item, HeartbeatArrived)]
    assert len(seconds) == 4
    assert min(np.diff(seconds)) >= 300


def test_model_packets_given_up_are_told_to_the_mirror(tmp_path):
    class Source:
        lost = ()

        def next_packet(self, budget_bytes):
            return (1, bytes(budget_bytes)) if not self.lost else None

        def acknowledge(self, number):
            raise AssertionError("nothing arrived")

        def lose(self, number):
            self.lost += (number,)

        def refresh(self):
            raise AssertionError("nobody asked")

    dead = LinkModel(loss=1.0)
    world = World(tmp_path, PRESETS["micromodem-0"], dead, seed=0)
    source = Source()
    world.vehicle.mirror(0, source)
    for _ in range(3700):
        world.step()
    assert source.lost


class Ground:
    """A ground station behind a real UDP port on a virtual clock."""

    def __init__(self, folder, clock, preset, agent):
        self.port = ThinPort(("127.0.0.1", 0))
        self.clock = clock
        log = ReceiverLog(folder, clock=clock)
        self.receiver = ThinReceiver(PRESETS[preset].down, ThinCodec(agent), log, now_ns=clock.monotonic_ns())

    def step(self):
        now_ns = self.clock.monotonic_ns()
        arrived = [item for frame in self.port.receive() for item in self.receiver.feed(frame, now_ns)]
        self.port.send(self.receiver.poll(now_ns))
        return arrived


@pytest.fixture
def both_ends(tmp_path):
    clock = VirtualClock(0, START_WALL_NS)
    ground = Ground(tmp_path / "received", clock, "micromodem-3", agent=9)
    vehicle = make_vehicle(tmp_path, clock, PRESETS["micromodem-3"], ground.port.address[1], ThinCodec(9))
    yield vehicle, ground, clock
    vehicle.close()
    ground.port.close()


def run(both_ends, slots):
    vehicle, ground, clock = both_ends
    arrived = []
    for _ in range(slots * 15):
        clock.advance_ns(SECOND)
        vehicle.step()
        arrived += ground.step()
    return arrived


def test_messages_of_the_live_plane_cross_a_thin_link_over_udp(both_ends):
    vehicle, _, _ = both_ends
    picture = np.random.default_rng(0).integers(0, 255, (60, 80, 3), np.uint8)
    vehicle.publish(alert_message(severity=0.5, thumbnail=cv2.imencode(".jpg", picture)[1].tobytes()))
    vehicle.publish(make_model(3))
    vehicle.publish(messages.Status(**HEAD, wall_ns=START_WALL_NS, state="live"))
    vehicle.publish(messages.Score(**HEAD, wall_ns=START_WALL_NS))
    arrived = run(both_ends, 40)
    assert [type(item) for item in arrived].count(AlertArrived) == 1
    assert any(isinstance(item, ThumbnailArrived) and item.is_complete for item in arrived)
    assert any(isinstance(item, HeartbeatArrived) and item.heartbeat.state == "live" for item in arrived)
    mirror = ModelMirror()
    for item in arrived:
        if isinstance(item, PacketArrived):
            assert item.channel == 0
            mirror.take_packet(item.data)
    assert mirror.n_components == 12
    assert len(mirror.summary().ids) == 12
    assert vehicle.backlog == 0
    assert vehicle.tx_bytes > 500


def test_the_nearest_component_of_an_alert_follows_it_coarsely(both_ends):
    vehicle, _, _ = both_ends
    model = make_model(3)
    vehicle.publish(model)
    vehicle.publish(alert_message(component=4))
    vehicle.publish(alert_message(id=2, component=99))
    parts = [item.part for item in run(both_ends, 6) if isinstance(item, ComponentArrived)]
    assert {part.component for part in parts} == {4}
    known = decode_component([part.data for part in sorted(parts, key=lambda part: part.stage)])
    assert np.abs(known.mean - model.means[4]).max() < 0.01
    assert np.abs(known.std - np.sqrt(model.variances[4])).max() < 0.01


def test_updates_are_sent_only_when_more_severe(both_ends):
    vehicle, _, _ = both_ends
    for phase, severity in (("new", 0.3), ("update", 0.3), ("update", 0.9), ("update", 0.5), ("end", 0.9)):
        vehicle.publish(alert_message(phase=phase, severity=severity))
    alerts = [item.alert for item in run(both_ends, 6) if isinstance(item, AlertArrived)]
    assert [(alert.life, alert.severity) for alert in alerts] == [("new", 2), ("update", 6), ("end", 6)]


def test_what_cannot_be_said_is_counted_not_raised(both_ends):
    vehicle, _, _ = both_ends
    vehicle.publish(make_model(3, n_dims=6))
    vehicle.publish(make_model(3, n_dims=7))
    assert vehicle.refused == {"model": 1}


def test_a_thumbnail_that_is_no_picture_does_not_stop_its_alert(both_ends):
    vehicle, _, _ = both_ends
    vehicle.publish(alert_message(thumbnail=b"no jpeg"))
    assert [type(item) for item in run(both_ends, 4)] == [AlertArrived]


def test_a_heartbeat_of_an_unknown_state_goes_every_so_often(both_ends):
    vehicle, ground, clock = both_ends
    beats = []
    for _ in range(1500):
        clock.advance_ns(SECOND)
        vehicle.publish(messages.Status(**HEAD, wall_ns=START_WALL_NS, state="strange"))
        vehicle.step()
        beats += [item.heartbeat.state for item in ground.step() if isinstance(item, HeartbeatArrived)]
    assert beats == ["unknown"] * 5


# Clumps, by request


def clumps_message(n: int = 20, which: str = "scenes") -> messages.Clumps:
    rng = np.random.default_rng(n)
    held = {"count": rng.integers(2, 999, n).astype(float), "mean": rng.normal(size=(n, 4))}
    held |= {"variance": rng.uniform(0.5, 2.0, (n, 4)), "component": np.arange(n)}
    units = {"shift": np.zeros(4), "scale": np.ones(4)}
    head = HEAD | {"wall_ns": START_WALL_NS}
    return messages.Clumps(**head, which=which, model_epoch=3, **clump_fields(held | units))


def test_clumps_come_when_they_are_asked_for_and_say_their_bytes_first(both_ends):
    vehicle, ground, clock = both_ends
    vehicle.publish(messages.Status(**HEAD, wall_ns=START_WALL_NS, state="live"))  # the vehicle speaks first
    vehicle.publish(clumps_message())
    assert not any(isinstance(item, ClumpsArrived) for item in run(both_ends, 8))
    ground.receiver.ask_for_clumps(MODEL_NUMBERS["scenes"], 7, clock.monotonic_ns())
    arrived = [item for item in run(both_ends, 60) if isinstance(item, ClumpsArrived)]
    sent = encode(clumps_message())
    assert {(item.channel, item.n_bytes) for item in arrived} == {(1, len(sent))}
    assert [item.is_complete for item in arrived].count(True) == 1
    assert arrived[-1].payload == sent
    assert vehicle.sender.counters["clumps_requests"] == 1  # though the request was repeated until they came
    assert ground.receiver.scheduler.count("request") == 0


def test_as_many_of_the_largest_clumps_cross_as_a_stream_holds(both_ends):
    vehicle, ground, clock = both_ends
    whole = clumps_message(1000)
    vehicle.publish(messages.Status(**HEAD, wall_ns=START_WALL_NS, state="live"))
    vehicle.publish(whole)
    ground.receiver.ask_for_clumps(1, 7, clock.monotonic_ns())
    payload = [item for item in run(both_ends, 120) if isinstance(item, ClumpsArrived)][-1].payload
    assert 7000 < len(payload) <= MOST_CLUMPS_BYTES
    cut = decode(payload)
    n = len(cut.counts)
    assert cut.counts.min() >= np.sort(whole.counts)[-n]
    assert (cut.n_clumps, cut.total) == (1000, whole.total)
    received, held = clump_arrays(cut), clump_arrays(whole)
    np.testing.assert_array_equal(received["mean"], held["mean"][received["component"]])
    np.testing.assert_array_equal(received["variance"], held["variance"][received["component"]])


def test_models_and_alerts_come_as_if_nobody_had_asked_for_clumps(tmp_path):
    seconds = {}
    for is_asked in (False, True):
        world = World(tmp_path / str(is_asked), PRESETS["micromodem-0"], LinkModel())
        world.vehicle.clumps(0, bytes(range(256)) * 8)
        encoder = ModelEncoder()
        encoder.update(make_model(1, n_components=30))
        world.vehicle.mirror(0, encoder)
        if is_asked:
            world.ground.ask_for_clumps(0, 1, 0)
        while world.second < 5000:
            if world.second in (1000, 4000):  # while models, and while clumps are under way
                world.vehicle.alert(ThinAlert(1, "novel", START_WALL_NS), world.second * SECOND)
            world.step()
        kinds = {kind: [at for at, item in world.arrivals if isinstance(item, kind)] for kind in KINDS_ARRIVED}
        assert bool(kinds[ClumpsArrived]) == is_asked
        seconds[is_asked] = kinds[AlertArrived] + kinds[PacketArrived][-1:]
    slot_s = PRESETS["micromodem-0"].up.slot_s
    assert np.abs(np.subtract(seconds[True], seconds[False])).max() <= 2 * slot_s


def test_a_request_before_there_are_clumps_is_answered_once_there_are(tmp_path):
    world = World(tmp_path, PRESETS["micromodem-3"], LinkModel())
    world.ground.ask_for_clumps(1, 4, 0)
    for _ in range(200):
        assert not any(isinstance(item, ClumpsArrived) for item in world.step())
    world.vehicle.clumps(1, b"clumps")
    assert any(isinstance(item, ClumpsArrived) for _ in range(300) for item in world.step())
