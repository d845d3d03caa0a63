"""Thin links: alerts and thumbnails reach the same store, and are one with the live plane's."""

import pytest
from agent_doubles import AgentDouble, jpeg
from hearing import hearing, until
from thin_processes import free_ports
from thin_world import make_vehicle

from stillwatch.base import RealClock
from stillwatch.tools.station.settings import ThinSection
from stillwatch.tools.station.store import FULL, StoreError
from stillwatch.transport.thin import PRESETS, ThinCodec


def thin(port):
    return {"thin": {"auv": ThinSection(listen=f"udp://127.0.0.1:{port}", preset="lte", agent_number=3)}}


@pytest.fixture
def vehicle(tmp_path):
    (port,) = free_ports(1)
    made = make_vehicle(tmp_path, RealClock(), PRESETS["lte"], port, ThinCodec(3, b""))
    made.port = port
    yield made
    made.close()


def stepped(vehicle, true):
    """Move the vehicle on until something is true."""

    def look():
        vehicle.step()
        return true()

    return until(look)


def test_a_thin_alert_its_thumbnail_and_the_later_full_message_are_one(tmp_path, vehicle):
    double = AgentDouble("auv", f"ipc://{tmp_path}/auv").serve()
    try:
        message = double.alert(9, thumbnail=jpeg(96, 72), x=0.5, y=0.5)
        with hearing(tmp_path / "s.db", **thin(vehicle.port)) as station:
            vehicle.publish(message)
            stepped(vehicle, lambda: vehicle.backlog == 0 and station.alerts() and station.alerts()[0]["has_picture"])
            (alert,) = station.alerts()
            assert (alert["agent"], alert["planes"], alert["exemplar"]) == ("auv", "thin", -1)
            assert station.agent("auv")["link"] == "thin"
        with hearing(tmp_path / "s.db", double, **thin(vehicle.port)) as station:
            until(lambda: "live" in station.alerts()[0]["planes"])
            (again,) = station.alerts()
        assert (again["id"], again["uid"]) == (alert["id"], "run1:1:9")
    finally:
        double.close()


def test_an_alert_is_acknowledged_only_after_the_store_took_it(tmp_path, vehicle, monkeypatch):
    double = AgentDouble("auv", f"ipc://{tmp_path}/auv")
    message = double.alert(9)
    double.close()
    with hearing(tmp_path / "s.db", **thin(vehicle.port)) as station:
        take = station.store.take_alert
        refused = []

        def full(connection, heard):
            refused.append(heard)
            raise StoreError("store: database or disk is full", FULL)

        monkeypatch.setattr(station.store, "take_alert", full)
        vehicle.publish(message)
        stepped(vehicle, lambda: refused)
        assert vehicle.backlog == 1
        until(lambda: any("disk is full" in text for text in station.ingest.troubles()))
        monkeypatch.setattr(station.store, "take_alert", take)
        stepped(vehicle, lambda: vehicle.backlog == 0)
        assert len(station.alerts()) == 1
        assert station.ingest.troubles() == []


def test_a_port_that_is_taken_is_said(tmp_path, vehicle):
    with hearing(tmp_path / "a.db", **thin(vehicle.port)) as first:
        until(lambda: first.ingest.thin.modems)
        with hearing(tmp_path / "b.db", **thin(vehicle.port)) as second:
            until(lambda: any(text.startswith("thin.auv: ") for text in second.ingest.troubles()))
