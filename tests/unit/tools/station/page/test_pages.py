"""What the pages show and what people can do there: over a real store, asked as a browser asks."""

import functools
import json
import re
import time

import msgspec
import pytest
from filled_station import AGENTS, PASSWORD, Station, alert, client_of, drawn
from wire_examples import examples

from stillwatch.tools.station.page import agents, wording
from stillwatch.tools.station.page.app import WAYS
from stillwatch.tools.station.page.description import OPERATIONS
from stillwatch.transport.wire import encode


@functools.cache
def now():
    """The time of these tests, ns: when the first of them begins, which may be minutes after they were collected."""
    return time.time_ns()


@pytest.fixture(scope="module")
def station(tmp_path_factory):
    made = Station(tmp_path_factory.mktemp("station") / "s.sqlite3")
    made.fill(now())
    yield made
    made.store.close()


@pytest.fixture
def client(station):
    return client_of(station)


def csrf_of(client, path="/alerts/1"):
    return re.search(r'name="csrf" value="([0-9a-f]{40})"', client.get(path).text)[1]


def post(client, path, **form):
    return client.post(path, data={"csrf": csrf_of(client), **form})


def first(station, **wanted):
    return next(row for row in station.store.alerts(limit=50) if all(row[k] == v for k, v in wanted.items()))


def test_the_fleet_shows_every_agent_with_its_state_picture_line_and_link(client):
    text = client.get("/").text
    for agent, (_, uri, link) in AGENTS.items():
        card = text.partition(f'id="agent-{agent}"')[2].partition("</article>")[0]
        assert uri in card
        assert f"{link} link" in card
        assert f"/agents/{agent}/picture.jpg" in card
        assert '<path class="line" d="M' in card
        assert "to look at" in card
    assert "3 agents" in text


def test_a_fleet_is_searched_by_name_and_source(client):
    text = client.get("/?q=RTSP").text
    assert 'id="agent-harbour-north"' in text
    assert 'id="agent-dive-7"' not in text
    assert "No agent's name or source holds" in client.get("/?q=nothing-such").text


def test_an_agents_page_shows_picture_strip_normal_health_and_gaps(client):
    text = client.get("/agents/dive-7?span=3600").text
    assert 'class="strip"' in text
    assert 'class="nothing"' in text, "three minutes without scores are a gap, not a line"
    assert 'class="learning"' in text
    assert text.count("/exemplars/") == 6
    assert "51 °C" in text
    assert "14</td>" in text, "the messages that were missed"
    assert "The disk took no more frames." in text


def test_kinds_of_visits_stand_with_picture_name_count_and_when(station, client):
    text = client.get("/agents/harbour-north").text.split("Kinds of visits")[1]
    assert 'alt="A visit of parked &lt;car&gt;, cut out of frame 360900"' in text
    assert "<b>Parked &lt;car&gt;</b>: 12 visits, once in 5 min 0 s<br>first <time" in text
    assert "<b>Kind 8</b>: 1 visit<br><time" in text, "one visit has no first and last"
    picture = client.get("/agents/harbour-north/kinds/3.jpg")
    assert picture.content == bytes(station.store.kind("harbour-north", 3)["picture"])
    assert client.get("/agents/harbour-north/kinds/8.jpg").status_code == 404
    assert "Kinds of visits" not in client.get("/agents/dive-7").text, "it moves"


def test_every_time_on_an_agents_page_says_its_zone(client):
    text = client.get("/agents/dive-7").text
    assert "times of the axis: UTC" in text
    assert re.search(r'of an alert, <time class="when" datetime="[^"]+">[^<]+ UTC</time>', text)


def test_an_agent_that_was_never_heard_is_not_said_to_have_told_everything(tmp_path):
    own = Station(tmp_path / "s.sqlite3")
    with own.store.writing() as connection:
        own.store.take_agent(connection, "cam1", {"link": "connecting"})
    text = client_of(own).get("/agents/cam1").text
    assert "No message of it has come yet." in text
    assert "It has not told how it is yet." in text
    own.store.close()


def test_long_numbers_are_not_broken_by_lines(station, client):
    text = client.get(f"/alerts/{first(station, agent='harbour-north', kind='novel')['id']}").text
    assert "one frame in 24\u202f000" in text


def test_an_agent_that_is_not_sure_yet_says_why(station, client):
    assert "Not sure" not in client.get("/agents/dive-7").text
    with station.store.writing() as connection:
        station.store.take_agent(connection, "dive-7", {"status": '{"unsure": "busy_start"}'})
    station.services.agents.forget()
    text = client.get("/agents/dive-7").text
    assert "Not sure" in text
    assert "learning, busy start" in text


def test_outlines_are_those_of_the_frame_that_is_shown(station, client):
    row = first(station, agent="harbour-north", kind="novel")
    text = client.get(f"/alerts/{row['id']}").text
    box = json.loads(row["boxes"])[0]
    assert f'x="{box[0]:.4f}" y="{box[1]:.4f}" width="{box[2] - box[0]:.4f}"' in text
    assert f"of frame {row['picture_frame']}" in text
    shown = client.get(f"/alerts/{row['id']}/picture.jpg")
    assert shown.headers["content-type"] == "image/jpeg"
    assert shown.content == station.store.alert_picture(row["id"])["picture"]


def test_an_alert_says_why_in_words_and_what_it_is_most_like(station, client):
    text = client.get(f"/alerts/{first(station, kind='novel')['id']}").text
    assert "Like nothing that this agent knows at this place" in text
    assert "Raised because several frames in a row stood out further" in text
    assert "Nearest known: “parked car”." in text


def test_a_clip_is_played_where_there_is_one(station, client, tmp_path):
    row = first(station, agent="dive-7", kind="returned")
    assert client.get(f"/alerts/{row['id']}/clip").status_code == 404
    file = tmp_path / "4.mp4"
    file.write_bytes(b"0123456789")
    with station.store.writing() as connection:
        station.store.take_clips(connection, "dive-7", "run-1", {row["event"]: str(file)})
    text = client.get(f"/alerts/{row['id']}").text
    assert f'src="/alerts/{row["id"]}/clip" aria-label="Clip of event ' in text
    part = client.get(f"/alerts/{row['id']}/clip", headers={"range": "bytes=2-5"})
    assert (part.status_code, part.headers["content-type"], part.content) == (206, "video/mp4", b"2345")
    file.unlink()
    assert client.get(f"/alerts/{row['id']}/clip").status_code == 404


def test_every_time_is_told_in_utc_with_its_frame(station, client):
    row = first(station, kind="novel")
    text = client.get(f"/alerts/{row['id']}").text
    utc = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(row["start_ns"] // 10**9))
    assert f"{utc}</time>" in text
    assert f"frame {row['start_frame']}" in text


def test_the_list_is_filtered_by_agent_kind_label_judgement_and_what_waits(client):
    def shown(query):
        return client.get(f"/alerts{query}").text.count('<article class="event')

    assert shown("") == 15
    assert shown("?agent=dive-7") == 5
    assert shown("?kind=returned") == 3
    assert shown("?label=red+van") == 1
    assert shown("?useful=1") == 1
    assert shown("?useful=0") == 0
    assert shown("?open=1") == 14
    assert shown("?since=1h&agent=dive-7") == 3, "4, 27 and 50 minutes ago"
    assert shown("?agent=%2e%2e&kind=%00") in (0, 15)


def test_lists_are_paged_and_no_alert_is_shown_twice_or_never(station, tmp_path):
    own = Station(tmp_path / "s.sqlite3")
    for i in range(120):
        own.tell(alert("many", i, now() - (i // 3) * 10**9, with_picture=False))
    client = client_of(own)
    seen, address = [], "/alerts?agent=many"
    while address:
        text = client.get(address).text
        seen += re.findall(r'data-item="/alerts/(\d+)"', text)
        found = re.search(r'rel="next" href="([^"]+)">Older', text)
        address = found[1].replace("&amp;", "&") if found else ""
    assert len(seen) == len(set(seen)) == 120
    own.store.close()


def test_acknowledging_judging_labelling_and_noting_are_kept_and_written_down(station, client):
    row = first(station, agent="car-park", kind="vanished")
    way = f"/alerts/{row['id']}"
    acts = {"acknowledge": {}, "useful": {"useful": "0"}, "label": {"label": "fox"}, "note": {"note": "Seen <b>it</b>"}}
    for act, form in acts.items():
        answer = post(client, f"{way}/{act}", **form)
        assert (answer.status_code, answer.headers["location"]) == (303, way)
    now = station.store.alert(row["id"])
    assert (now["acknowledged_by"], now["useful"], now["label"]) == ("local", False, "fox")
    text = client.get(way).text
    assert "noted: Seen &lt;b&gt;it&lt;/b&gt;" in text
    log = client.get("/audit").text
    for word in ("acknowledge", "not useful", "label", "note"):
        assert f"<td>{word}</td>" in log


def test_a_mute_holds_for_its_time_and_can_be_ended(station, client):
    row = first(station, agent="car-park", kind="returned")
    post(client, f"/alerts/{row['id']}/mute", hours="8")
    mute = station.store.mutes(time.time_ns())[-1]
    assert (mute["agent"], mute["kind"]) == ("car-park", "returned")
    assert 7.9 < (mute["until_ns"] - time.time_ns()) / 3.6e12 <= 8.0
    assert "“Something rare is back” at car-park" in client.get("/notifications").text
    post(client, f"/mutes/{mute['id']}/end")
    assert not station.store.mutes(time.time_ns())


def test_a_mute_may_be_of_the_place_and_of_everything_there(station, client):
    row = first(station, agent="car-park", kind="returned")
    assert "at its place, right" in client.get(f"/alerts/{row['id']}").text
    post(client, f"/alerts/{row['id']}/mute", hours="1", kind="any", place="here")
    mute = station.store.mutes(time.time_ns())[-1]
    assert (mute["agent"], mute["kind"], mute["place"]) == ("car-park", "", "right")
    assert "“Everything” at car-park, right" in client.get("/notifications").text
    post(client, f"/mutes/{mute['id']}/end")


def test_an_agent_is_removed_by_whoever_types_its_name_and_that_is_written_down(tmp_path):
    own = Station(tmp_path / "s.sqlite3", remove_agent=lambda agent: own.store.remove_agent(agent))
    own.fill(now())
    client = client_of(own)
    assert post(client, "/agents/dive-7/remove", name="dive-8").status_code == 400
    assert 'id="agent-dive-7"' in client.get("/").text
    assert post(client, "/agents/dive-7/remove", name="dive-7").status_code == 303
    assert 'id="agent-dive-7"' not in client.get("/").text
    assert client.get("/agents/dive-7").status_code == 404
    assert "<td>remove agent</td>" in client.get("/audit").text
    own.store.close()


def test_topics_are_shown_by_name_with_what_is_typical_of_them(station, client):
    topics = msgspec.structs.replace(examples()["model"], which="topics")  # components 19, "sand", and 4
    values = {"kind": "model", "which": "topics", "at_ns": now(), "received_ns": now(), "payload": encode(topics)}
    with station.store.writing() as connection:
        station.store.take_model(connection, "car-park", values | {"n_components": topics.n_components})
        for role, exemplar in (("topic_most_typical", 900), ("topic_newest", 901), ("most_typical", 902)):
            shown = {"role": role, "exemplar": exemplar, "component": 19, "at_ns": now(), "picture": drawn(1)[0]}
            station.store.take_exemplar(connection, "car-park", shown, [], 200)
    text = client.get("/agents/car-park/rest").text
    assert "Topics: what is in view" in text
    assert "<span>sand</span>" in text
    assert 'src="/agents/car-park/exemplars/900.jpg" alt="A typical frame of sand"' in text
    assert "/exemplars/901.jpg" not in text


def test_the_way_back_leads_to_our_own_pages_only(station, client):
    row = first(station, agent="dive-7", kind="vanished")
    for back, wanted in (
        ("/alerts?open=1", "/alerts?open=1"),
        ("//evil.example/", "/alerts"),
        ("https://evil.example/", "/alerts"),
        ("/\\evil.example", "/alerts"),
    ):
        answer = post(client, f"/alerts/{row['id']}/acknowledge", back=back)
        assert answer.headers["location"] == wanted


def test_a_day_is_shown_as_a_strip_and_its_moments(client):
    day = time.strftime("%Y-%m-%d", time.gmtime(now() // 10**9 - 600))
    text = client.get(f"/agents/harbour-north/day?date={day}").text
    assert 'class="cursor"' in text
    assert text.count('<li data-x="') >= 1
    assert "No alert was told on this day." in client.get("/agents/harbour-north/day?date=2001-01-01").text


def test_alerts_with_a_position_are_on_the_map(client):
    text = client.get("/map").text
    assert text.count('class="place"') == 5
    assert "59.30000" in text


def test_an_empty_station_says_what_to_do(tmp_path):
    own = Station(tmp_path / "s.sqlite3")
    client = client_of(own)
    assert "No agent is known yet" in client.get("/").text
    assert "No alert has come yet" in client.get("/alerts").text
    assert "No alert with a position" in client.get("/map").text
    own.store.close()


def test_the_interface_is_paged_json_as_it_is_described(client):
    described = client.get("/api/v1/openapi.json").json()["paths"]
    assert set(described) == {way.path for way in WAYS if way.path.startswith("/api/v1/")} - {"/api/v1/openapi.json"}
    for operation in OPERATIONS:
        path = operation.path.replace("{id}", "1") + ("?agent=dive-7" if "scores" in operation.path else "")
        found = client.get(path).json()
        items = found["items"] if operation.is_paged else [found]
        assert items
        for item in items:
            assert set(item) == set(operation.item)
            for name, kind in operation.item.items():
                kinds = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list}
                is_null = item[name] is None and kind.endswith("?")
                assert is_null or isinstance(item[name], kinds[kind.rstrip("?")]), (name, item[name])


def test_pages_of_the_interface_hold_everything_once(client):
    seen, address = [], "/api/v1/alerts?limit=4"
    while address:
        page = client.get(address).json()
        seen += [item["id"] for item in page["items"]]
        address = page["next"]
    assert len(seen) == len(set(seen)) == 15
    seen, address = [], "/api/v1/scores?agent=car-park&limit=500"
    while address:
        page = client.get(address).json()
        seen += [item["at_ns"] for item in page["items"]]
        address = page["next"]
    assert seen == sorted(set(seen), reverse=True)
    assert len(seen) == 3600


def test_metrics_are_in_prometheus_own_form(client):
    parser = pytest.importorskip("prometheus_client.parser")
    families = {f.name: f for f in parser.text_string_to_metric_families(client.get("/metrics").text)}
    rates = {s.labels["agent"]: s.value for s in families["stillwatch_agent_rate_hertz"].samples}
    assert rates == dict.fromkeys(AGENTS, 10.0)
    lost = {s.labels["agent"]: s.value for s in families["stillwatch_agent_messages_lost"].samples}
    assert lost["dive-7"] == 14.0


def test_a_login_lets_in_by_role_and_a_logout_out(tmp_path):
    own = Station(tmp_path / "s.sqlite3")
    own.fill(now())
    own.add_user("ann", "see")
    client = client_of(own)
    assert client.get("/alerts").headers["location"] == "/login?back=/alerts"
    form = {"name": "ann", "password": "wrong password", "back": "/alerts", "csrf": csrf_of(client, "/login")}
    assert client.post("/login", data=form).status_code == 403
    answer = client.post("/login", data={**form, "password": PASSWORD})
    assert (answer.status_code, answer.headers["location"]) == (303, "/alerts")
    assert "HttpOnly" in answer.headers["set-cookie"]
    text = client.get("/alerts/1").text
    assert "acting needs the role “act”" in text
    assert "Audit log" not in text
    assert client.get("/audit").status_code == 403
    assert client.post("/logout", data={"csrf": csrf_of(client, "/alerts/1")}).status_code == 303
    assert client.get("/alerts").status_code == 303
    own.store.close()


def test_where_nobody_counted_further_the_number_of_alerts_that_wait_is_said_to_be_a_least(client, monkeypatch):
    for module in (agents, wording):
        monkeypatch.setattr(module, "MOST_WAITING", 3)
    fleet = client.get("/").text
    assert re.search(r"At least \d+ alerts wait to be looked at", fleet)
    assert re.search(r">\d+\+ to look at<", fleet)
    assert re.search(r"\d+\+<span class=\"hidden\"> not acknowledged", client.get("/parts/waiting").text)
    monkeypatch.undo()
    assert "At least" not in client.get("/").text
