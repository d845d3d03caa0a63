"""The command panel and the view of what an agent sees now, against an agent's own end of the control socket."""

import re
import threading

import pytest
from filled_station import Station, client_of, drawn

from stillwatch.base import RealClock
from stillwatch.tools.station.page import Control
from stillwatch.transport.live.control import ControlServer


class Agent:
    """Answers commands as an agent does, from a thread."""

    def __init__(self, endpoint):
        self.asked, self.jpeg, self.error = [], drawn(3)[0], ""
        self._stop = threading.Event()
        self._server = ControlServer(endpoint, clock=RealClock())
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._server.open()
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        self._server.close()

    def _run(self):
        while not self._stop.is_set():
            for command in self._server.poll(20):
                self.asked.append((command.name, command.arguments))
                has_picture = command.name in ("request_picture", "request_exemplar") and not self.error
                told = {"frame": 40 + len(self.asked), "wall_ns": 1_700_000_000 * 10**9, "rate": 2.5, "<b>": "<i>"}
                self._server.reply(command, told, error=self.error, attachment=self.jpeg if has_picture else b"")


@pytest.fixture
def agent(tmp_path):
    with Agent(f"ipc://{tmp_path}/control") as answering:
        yield answering


@pytest.fixture
def client(tmp_path, agent):
    control = Control(f"ipc://{tmp_path}/control")
    station = Station(tmp_path / "s.sqlite3", control_of={"car-park": control}.get)
    with station.store.writing() as connection:
        for name in ("car-park", "dive-7"):
            station.store.take_agent(connection, name, {"link": "live", "heard_ns": 1})
        exemplar = {"role": "frame", "exemplar": 7, "picture": drawn(1)[0]}
        station.store.take_exemplar(connection, "car-park", exemplar, [], 10)
    asking = client_of(station)
    asking.station = station
    yield asking
    station.store.close()


def send(client, command, **arguments):
    page = client.get("/agents/car-park/commands").text
    mark = re.search(r'name="csrf" value="([0-9a-f]{40})"', page)[1]
    return client.post("/agents/car-park/commands", data={"csrf": mark, "command": command, **arguments})


def test_the_alert_rate_is_set_and_the_answer_shown_and_written_down(client, agent):
    text = send(client, "set_alert_budget", alerts_per_hour="4.5").text
    [(name, arguments)] = agent.asked
    assert (name, arguments.alerts_per_hour) == ("set_alert_budget", 4.5)
    assert "set alert budget: done" in text
    assert "<td>2.5</td>" in text
    assert "&lt;b&gt;" in text, "what an agent answers is text"
    assert client.station.store.audit(limit=1)[0]["act"] == "command set_alert_budget"


@pytest.mark.parametrize("rate", ["0", "-1", "nan", "inf", "1e9", "", "many"])
def test_a_rate_that_is_none_is_not_sent(client, agent, rate):
    assert send(client, "set_alert_budget", alerts_per_hour=rate).status_code == 400
    assert not agent.asked


def test_a_picture_is_shown_as_the_station_encodes_it(client, agent):
    text = send(client, "request_exemplar", id="7").text
    assert agent.asked[0][1].id == 7
    assert 'src="data:image/jpeg;base64,' in text
    agent.jpeg = b"\xff\xd8" + b"<script>" * 10
    assert "data:image" not in send(client, "request_exemplar", id="7").text


def test_an_agents_refusal_is_shown_as_it_says_it(client, agent):
    agent.error = "nothing was gathered <yet>"
    text = send(client, "flush").text
    assert "flush: not done" in text
    assert "nothing was gathered &lt;yet&gt;" in text


def test_commands_that_the_page_does_not_offer_are_not_sent(client, agent):
    for name in ("set_nav", "rm", "", "request_picture"):
        assert send(client, name).status_code == 400
    assert not agent.asked


def test_an_agent_without_a_control_socket_has_no_panel(client):
    assert "control endpoint is not known" in client.get("/agents/dive-7/commands").text
    assert client.get("/agents/dive-7/view").status_code == 204


def test_many_who_look_ask_the_agent_once_a_second(client, agent):
    answers = [client.get("/agents/car-park/view") for _ in range(5)]
    assert {answer.status_code for answer in answers} == {200}
    assert [name for name, _ in agent.asked] == ["request_picture"]
    assert "frame 41" in answers[-1].text
    assert client.get("/agents/car-park/view.jpg").headers["content-type"] == "image/jpeg"


def test_an_agent_that_shows_nothing_is_left_alone_for_a_while(client, agent):
    agent.error = "unknown command"
    assert [client.get("/agents/car-park/view").status_code for _ in range(3)] == [204] * 3
    assert len(agent.asked) == 1
    assert client.get("/agents/car-park/view.jpg").status_code == 404
