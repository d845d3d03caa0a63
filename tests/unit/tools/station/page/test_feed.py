"""The stream of news to open pages: at once for alerts, gathered for scores, ended with the session; both databases."""

import time

import postgres_server
import pytest
from filled_station import Station, client_of, served

from stillwatch.tools.station.access.gate import new_api_token
from stillwatch.tools.station.page.app import WAYS

httpx = pytest.importorskip("httpx")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the server's library


def events(lines, n, within_s=5.0):
    """Return the next n (event, data) of a stream."""
    found, event, end = [], "", time.monotonic() + within_s
    for line in lines:
        assert time.monotonic() < end
        if line.startswith("event: "):
            event = line[7:]
        elif line.startswith("data: "):
            found.append((event, line[6:]))
            if len(found) == n:
                return found
    return found


@pytest.fixture
def station(tmp_path):
    made = Station(tmp_path / "s.sqlite3")
    yield made
    made.store.close()


def test_news_reach_an_open_page_and_many_of_one_kind_are_one(station):
    with served(station.app) as address, httpx.stream("GET", f"{address}/live", timeout=10.0) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = stream.iter_lines()
        assert "welcome" in next(line for line in lines if line.startswith(":"))
        for _ in range(50):
            station.bulletin.post("scores", "cam-1")
        [(event, data)] = events(lines, 1)
        assert (event, data) == ("news", '[["scores", "cam-1"]]')
        station.bulletin.post("alert", "cam-2", 7)
        assert events(lines, 1) == [("news", '[["alert", "cam-2"]]')]


def test_who_missed_some_is_told_so(station):
    with served(station.app) as address, httpx.stream("GET", f"{address}/live", timeout=10.0) as stream:
        lines = stream.iter_lines()
        next(line for line in lines if line.startswith(":"))
        for i in range(5000):
            station.bulletin.post("scores", f"cam-{i % 3}")
        assert [event for event, _ in events(lines, 2)] == ["missed", "news"]


def test_what_happened_between_a_page_and_its_stream_is_told(station):
    with served(station.app) as address:
        drawn = httpx.get(f"{address}/").text
        after = drawn.partition('data-feed="/live?after=')[2].partition('"')[0]
        station.bulletin.post("alert", "cam-1", 1)
        with httpx.stream("GET", f"{address}/live?after={after}", timeout=10.0) as stream:
            lines = stream.iter_lines()
            assert events(lines, 1) == [("news", '[["alert", "cam-1"]]')]
        station.bulletin.post("act", "cam-1", 1)
        with httpx.stream("GET", f"{address}/live", headers={"last-event-id": "1"}, timeout=10.0) as stream:
            lines = stream.iter_lines()
            assert events(lines, 1) == [("news", '[["act", "cam-1"]]')]


def test_a_page_of_a_station_that_was_started_again_looks_at_everything_anew(station):
    with served(station.app) as address, httpx.stream("GET", f"{address}/live?after=999", timeout=10.0) as stream:
        lines = stream.iter_lines()
        assert events(lines, 1) == [("missed", "1")]


def test_a_stream_is_for_those_who_may_look_and_ends_with_the_session(tmp_path, monkeypatch):
    monkeypatch.setattr("stillwatch.tools.station.page.feed.PING_S", 0.2)
    own = Station(tmp_path / "own.sqlite3", allows_open=False)
    own.add_user("ann", "see")
    token = new_api_token(own.store, "ann", time.time())
    with served(own.app) as address:
        assert httpx.get(f"{address}/live").status_code == 401
        headers = {"authorization": f"Bearer {token}"}
        with httpx.stream("GET", f"{address}/live", headers=headers, timeout=10.0) as stream:
            lines = stream.iter_lines()
            assert ": still here" in [next(lines) for _ in range(6)]
            own.store.remove_user("ann")
            assert [line for line in lines if line.startswith("data")] == [], "the stream ends"
    own.store.close()


def test_one_visitor_opens_only_so_many_streams(station, monkeypatch):
    monkeypatch.setattr("stillwatch.tools.station.page.feed.MOST_OF_ONE", 1)
    with served(station.app) as address, httpx.stream("GET", f"{address}/live", timeout=10.0) as stream:
        lines = stream.iter_lines()
        next(lines)
        assert httpx.get(f"{address}/live").status_code == 503


def test_every_page_is_shown_from_postgresql_too(postgres):
    own = Station(postgres_server.new_database(postgres))
    own.fill(time.time_ns())
    number = str(own.store.alerts(limit=1)[0]["id"])
    client = client_of(own)
    for way in WAYS:
        if way.method == "GET" and "{name}" not in way.path and "{picture}" not in way.path:
            path = way.path.replace("{agent}/exemplars/{id}", "dive-7/exemplars/1")
            path = path.replace("{agent}/kinds/{id}", "harbour-north/kinds/3").replace("{agent}", "dive-7")
            answer = client.get(path.replace("{id}", number) + ("?agent=dive-7" if "scores" in path else ""))
            assert answer.status_code in (200, 204, 303) or path.endswith(("/clip", "view.jpg")), way.path
    own.store.close()
