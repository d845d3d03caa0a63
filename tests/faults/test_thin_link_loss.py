"""Half of the frames lost and the link dead for 30 s of every 2 minutes: everything arrives in the end, once."""

import numpy as np
import pytest
from thin_records import read_received
from thin_world import BAD_LINK, World, make_model

from stillwatch.transport.mirror.ground import ModelMirror
from stillwatch.transport.mirror.model import posterior_gaussians, summary_of
from stillwatch.transport.mirror.values import divergence
from stillwatch.transport.mirror.vehicle import ModelEncoder
from stillwatch.transport.thin.link import ThinReceiver
from stillwatch.transport.thin.linksim import LinkModel
from stillwatch.transport.thin.presets import PRESETS
from stillwatch.transport.thin.receiver_log import AlertArrived, PacketArrived, ReceiverLog, ThumbnailArrived
from stillwatch.transport.thin.records import ThinAlert
from stillwatch.transport.thin.thumbnails import encode_thumbnail

ACOUSTIC = ["micromodem-0", "micromodem-1", "micromodem-3", "micromodem-5"]


def run_dive(world, hours, seed, alerts_per_hour=12.0, thumbnail=b""):
    """Raise alerts for some hours, then let the link catch up; return {number: second raised}."""
    random = np.random.default_rng(seed)
    raised = {}
    for _ in range(int(hours * 3600)):
        if random.random() < alerts_per_hour / 3600:
            alert = ThinAlert(len(raised), "novel", world.clock.wall_ns(), severity=int(random.integers(8)))
            raised[world.vehicle.alert(alert, world.clock.monotonic_ns(), thumbnail)] = world.second
        world.step()
    for _ in range(7200):
        if not len(world.outbox):
            break
        world.step()
    return raised


@pytest.mark.slow
@pytest.mark.parametrize("preset", ACOUSTIC)
def test_no_alert_is_lost_or_doubled_and_the_budget_holds(tmp_path, preset):
    world = World(tmp_path, PRESETS[preset], BAD_LINK, seed=1)
    thumbnail = encode_thumbnail(np.random.default_rng(0).integers(0, 255, (60, 80), np.uint8), max_bytes=600)
    raised = run_dive(world, hours=1.0, seed=2, thumbnail=thumbnail)
    assert len(raised) > 5
    assert world.received == dict.fromkeys(raised, 1)
    assert sorted(alert.event for _, _, alert in read_received(tmp_path / "received")) == list(range(len(raised)))
    assert world.most_bytes_in_10_minutes() <= PRESETS[preset].up.window_bytes


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["micromodem-1", "micromodem-3"])
def test_the_grounds_model_equals_the_vehicles_after_catch_up(tmp_path, preset):
    world = World(tmp_path, PRESETS[preset], BAD_LINK, seed=3)
    encoder, mirror = ModelEncoder(incarnation=1), ModelMirror()
    world.vehicle.mirror(0, encoder)
    model = None
    idle = 0
    for second in range(6 * 3600):
        if second % 600 == 0 and second < 3600:
            model = make_model(7, epoch=1 + second // 600, drift=0.02 * second / 600)
            encoder.update(model)
        for item in world.step():
            if isinstance(item, PacketArrived):
                mirror.take_packet(item.data)
        idle = 0 if world.vehicle.scheduler.count("model") else idle + 1
        if second > 3600 and idle > 30:
            break
    theirs, ours = summary_of(model), mirror.summary()
    assert encoder.next_packet(64) is None, "there was still something to tell"
    assert ours.model_epoch == theirs.model_epoch
    assert sorted(ours.ids) == sorted(theirs.ids)
    order = [list(ours.ids).index(key) for key in theirs.ids]
    assert ours.counts[order] == pytest.approx(theirs.counts, rel=0.05)
    known = posterior_gaussians(ours)
    for k, target in enumerate(posterior_gaussians(theirs)):
        assert divergence(target, known[order[k]]) < 0.01


@pytest.mark.slow
def test_a_ground_station_that_lost_everything_gets_the_model_again(tmp_path):
    world = World(tmp_path, PRESETS["micromodem-1"], BAD_LINK, seed=6)
    encoder, model = ModelEncoder(incarnation=1), make_model(7)
    encoder.update(model)
    world.vehicle.mirror(0, encoder)
    for _ in range(1800):
        world.step()
    now_ns = world.clock.monotonic_ns()
    log = ReceiverLog(tmp_path / "another_disk", clock=world.clock)
    world.ground = ThinReceiver(PRESETS["micromodem-1"].down, world.codec, log, now_ns=now_ns)
    encoder.update(make_model(7, epoch=2, drift=0.2))
    mirror = ModelMirror()
    for _ in range(2 * 3600):
        for item in world.step():
            if isinstance(item, PacketArrived):
                mirror.take_packet(item.data)
    assert world.vehicle.counters["model_requests"] == 1
    assert world.ground.scheduler.count("request") == 0
    assert sorted(mirror.summary().ids) == list(range(12))
    drifted = summary_of(make_model(7, epoch=2, drift=0.2))
    found = mirror.summary()
    assert np.abs(found.means[np.argsort(found.ids)] - drifted.means[np.argsort(drifted.ids)]).max() < 0.1


def test_an_alert_is_in_the_next_slot_ahead_of_all_else(tmp_path):
    world = World(tmp_path, PRESETS["micromodem-0"], LinkModel(), seed=0)
    encoder = ModelEncoder()
    encoder.update(make_model(1, n_components=40))
    world.vehicle.mirror(0, encoder)
    random = np.random.default_rng(4)
    for _ in range(30):
        for _ in range(int(random.integers(30, 150))):
            world.step()
        number = world.vehicle.alert(ThinAlert(1, "novel", 0), world.clock.monotonic_ns())
        slot = world.second // 15
        while world.received[number] == 0:
            world.step()
        assert world.second // 15 <= slot + 1, "not in the next slot"


def test_an_alert_is_repeated_until_acknowledged_through_a_long_outage(tmp_path):
    dead = LinkModel(outage_every_s=10_000.0, outage_s=9_000.0)
    world = World(tmp_path, PRESETS["micromodem-0"], dead, seed=0)
    for _ in range(1100):
        world.step()
    number = world.vehicle.alert(ThinAlert(1, "novel", 0), world.clock.monotonic_ns())
    while world.second < 10_000:
        world.step()
    assert world.received[number] == 0
    n_tries = world.vehicle.scheduler.counters["repeated.alert"]
    assert n_tries > 60
    while world.received[number] == 0:
        world.step()
    assert world.second < 10_000 + 8 * 15 + 1, "a repeat waits at most 8 slots"
    for _ in range(60):
        world.step()
    assert len(world.outbox) == 0
    assert world.received[number] == 1


def test_thumbnails_get_better_with_every_fragment_and_complete(tmp_path):
    world = World(tmp_path, PRESETS["micromodem-1"], BAD_LINK, seed=5)
    image = np.random.default_rng(0).integers(0, 255, (48, 64, 3), np.uint8)
    code = encode_thumbnail(image, max_bytes=900)
    number = world.vehicle.alert(ThinAlert(1, "novel", 0, severity=7), 0, code)
    while not any(isinstance(item, ThumbnailArrived) and item.is_complete for _, item in world.arrivals):
        world.step()
        assert world.second < 3600
    parts = [item for _, item in world.arrivals if isinstance(item, ThumbnailArrived)]
    assert all(part.number == number for part in parts)
    assert [len(part.code) for part in parts] == sorted({len(part.code) for part in parts})
    assert all(code.startswith(part.code) for part in parts[:-1])
    assert parts[-1].code == code


def test_strangers_are_not_heard(tmp_path):
    world = World(tmp_path, PRESETS["micromodem-0"], LinkModel(), seed=0)
    stranger = World(tmp_path / "stranger", PRESETS["micromodem-0"], LinkModel(), seed=0, key=b"another")
    stranger.vehicle.alert(ThinAlert(1, "novel", 0), 0)
    for _ in range(60):
        stranger.step()
    for _, frame in stranger.frames:
        assert world.ground.feed(frame, 0) == []
    assert world.ground.counters["rejected"] == len(stranger.frames) > 0


def test_the_grounds_own_frames_are_not_taken_for_the_vehicles(tmp_path):
    world = World(tmp_path, PRESETS["micromodem-0"], LinkModel(), seed=0)
    world.vehicle.alert(ThinAlert(1, "novel", 0), 0)
    while not world.frames:
        world.step()
    world.vehicle.feed(world.frames[0][1], 0)
    assert world.vehicle.counters["rejected"] == 1


def test_alerts_arrive_over_a_perfect_link_within_two_slots(tmp_path):
    world = World(tmp_path, PRESETS["micromodem-0"], LinkModel(delay_s=1.0), seed=0)
    raised = run_dive(world, hours=0.5, seed=1)
    seconds = {item.alert.event: second for second, item in world.arrivals if isinstance(item, AlertArrived)}
    assert all(seconds[event] - second <= 30 for event, second in enumerate(raised.values()))
