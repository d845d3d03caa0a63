"""Run folders and recordings that were dropped are read into the store, however often, also into a new one."""

import threading

import pytest
from agent_doubles import AgentDouble, jpeg
from hearing import hearing, limits, until

from stillwatch.base import RealClock
from stillwatch.tools.station.bulletin import Bulletin
from stillwatch.tools.station.ingest.folders import FolderEar
from stillwatch.tools.station.ingest.scribe import Scribe
from stillwatch.tools.station.store import open_store
from stillwatch.tools.station.tell import Router
from stillwatch.transport.disk import RunFolder
from stillwatch.transport.wire import encode, kind_of


class Written(AgentDouble):
    """An agent double that writes a run folder as well."""

    def __init__(self, agent, tmp_path, folder):
        super().__init__(agent, f"ipc://{tmp_path}/{agent}")
        self.folder = RunFolder(folder, self.clock)

    def send(self, kind, **fields):
        message = super().send(kind, **fields)
        self.folder.write(kind_of(message), encode(message))
        return message


@pytest.fixture
def agent(tmp_path):
    made = Written("cam1", tmp_path, tmp_path / "runs" / "one").serve()
    yield made
    made.folder.close()
    made.close()


def ear_of(store, place):
    bulletin, clock = Bulletin(), RealClock()
    return FolderEar([str(place)], store, Scribe(store, bulletin, Router({}), clock), clock, pause_s=0.0)


def test_a_folder_is_read_once_and_again_when_it_grew(tmp_path, agent, store):
    agent.scores(30)
    agent.alert(1, thumbnail=jpeg())
    agent.folder.close()
    ear = ear_of(store, tmp_path / "runs")
    assert ear.read_changed(threading.Event()) == 1
    assert ear_of(store, tmp_path / "runs").read_changed(threading.Event()) == 0
    agent.folder = RunFolder(tmp_path / "runs" / "one", agent.clock)
    agent.scores(30)
    agent.alert(1, "end", duration_s=2.0)
    agent.folder.close()
    assert ear_of(store, tmp_path / "runs").read_changed(threading.Event()) == 1
    (alert,) = store.alerts()
    assert (alert["phase"], alert["planes"], alert["has_picture"]) == ("end", "folder", True)
    assert [row["frame"] for row in store.scores("cam1", 0, 2**62)] == list(range(1, 61))
    (folder,) = store.folders()
    assert (folder["agent"], folder["unreadable"]) == ("cam1", 0)


def test_the_clips_of_a_run_folder_are_those_of_its_alerts(tmp_path, agent, sqlite_store):
    agent.alert(1, thumbnail=jpeg())
    agent.alert(2, thumbnail=jpeg())
    agent.folder.close()
    clips = tmp_path / "runs" / "one" / "clips"
    clips.mkdir()
    secret = tmp_path / "secret.mp4"
    for file in (clips / "1.mp4", clips / "x.mp4", clips / "99.mp4", secret):
        file.write_bytes(b"video")
    (clips / "2.mp4").symlink_to(secret)
    assert ear_of(sqlite_store, tmp_path / "runs").read_changed(threading.Event()) == 1
    assert {row["event"]: row["clip"] for row in sqlite_store.alerts()} == {1: str(clips / "1.mp4"), 2: ""}


def test_a_folder_of_an_agent_that_is_heard_live_tells_nothing_twice(tmp_path, agent):
    places = limits(folders=[str(tmp_path / "runs")])
    with hearing(tmp_path / "s.db", agent) as station:
        until(lambda: agent.status() and station.store.agent("cam1"))
        agent.scores(40)
        agent.alert(1)
        until(station.alerts)
    agent.folder.close()
    with hearing(tmp_path / "s.db", **places) as station:
        until(station.store.folders)
        assert len(station.alerts()) == 1
        assert len(station.store.scores("cam1", 0, 2**62)) == 40


def test_a_damaged_store_is_filled_again_from_the_folders(tmp_path, agent):
    agent.alert(1)
    agent.folder.close()
    places = limits(folders=[str(tmp_path / "runs")])
    with hearing(tmp_path / "s.db", **places) as station:
        until(station.alerts)
    (tmp_path / "s.db").write_bytes(b"no database any more" * 500)
    with hearing(tmp_path / "s.db", **places) as station:
        assert "set aside" in station.said
        until(station.alerts)


def test_clips_of_a_run_belong_to_its_alerts_but_for_links(tmp_path, agent, store):
    agent.alert(1)
    agent.alert(2)
    agent.folder.close()
    clips = tmp_path / "runs" / "one" / "clips"
    clips.mkdir()
    (clips / "1.mp4").write_bytes(b"video")
    (clips / "2.mp4").symlink_to("/etc/hostname")
    ear_of(store, tmp_path / "runs").read_changed(threading.Event())
    assert {row["event"]: row["clip"] for row in store.alerts()} == {1: str(clips / "1.mp4"), 2: ""}


def test_a_folder_that_cannot_be_read_is_said_to_be_so(tmp_path):
    folder = tmp_path / "runs" / "bad"
    folder.mkdir(parents=True)
    (folder / "messages-0.swlog").write_bytes(b"\x00" * 5000)
    store, _ = open_store(str(tmp_path / "other.db"))
    ear_of(store, tmp_path / "runs").read_changed(threading.Event())
    assert store.folders()[0]["messages"] == 0
    store.close()
