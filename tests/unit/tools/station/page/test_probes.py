"""Every route asked as an attacker asks: odd methods, huge and strange values, other sites, other roles, wicked agents.

No answer is a 500, none holds a text of an agent's as markup, and nobody does what his role does not allow.
"""

import functools
import html.parser
import re
import time
from urllib.parse import quote

import pytest
from filled_station import PASSWORD, Station, alert, client_of

from stillwatch.tools.station.access import Role
from stillwatch.tools.station.access.gate import new_api_token
from stillwatch.tools.station.page.app import WAYS

NOW = time.time_ns()
SCRIPT = "<script>alert(1)</script>"
STRANGE = [
    "0", "-1", "99999999999999999999", "9" * 400, "1e9", "../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%00",
    "%0d%0aX:y", "'; DROP TABLE alerts;--", "{{7*7}}", "%ff%fe", "%ed%a0%80", "\u202e\u0000", SCRIPT, "",
]  # fmt: skip
ALONE = ("/alerts", "/api/v1/alerts", "/api/v1/scores")  # whose parameters one refusal must not hide from another
METHODS = ("HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "QUERY")
GETS = [way.path for way in WAYS if way.method == "GET"] + [
    "/nothing",
    "/static/../app.py",
    "/api/v1/",
    "//",
    "/%2e%2e/",
]
POSTS = [way for way in WAYS if way.method == "POST"]


@pytest.fixture(scope="module")
def station(tmp_path_factory):
    made = Station(tmp_path_factory.mktemp("station") / "s.sqlite3", add_agent=lambda endpoint, server: None)
    made.fill(NOW)
    wicked(made)
    yield made
    made.store.close()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A station with users, one of each role, reached from outside."""
    made = Station(tmp_path_factory.mktemp("guarded") / "s.sqlite3", allows_open=False)
    made.fill(NOW)
    for role in Role:
        made.add_user(f"user-{role}", str(role))
    yield made
    made.store.close()


@pytest.fixture(autouse=True)
def _no_limits(monkeypatch):
    """These tests ask more often than a person may."""
    monkeypatch.setattr("stillwatch.tools.station.access.limits.RateLimit.wait_s", lambda self, key: 0.0)


def wicked(station):
    """An agent whose every text is an attack, whose clock stands in 2099, and whose numbers are absurd."""
    texts = {"kind": f"{SCRIPT}\x1b[2J", "run": '"><img src=x onerror=alert(1)>', "label": "{{7*7}}" + SCRIPT}
    numbers = {"rarity": 1e300, "peak": -1e300, "duration_s": 1e12, "component": 2**62, "history": "[1e308, -1e308]"}
    far = {"latitude": 90.0, "longitude": -180.0}
    station.tell(alert("wicked", 2**58, 4_070_908_800 * 10**9, **numbers, **far, **texts))
    station.tell(alert("wicked", 1, NOW, boxes='[["a"], [1e400, -1, 9, 9], null, 5]', history="{]", with_picture=False))
    with station.store.writing() as connection:
        station.store.take_agent(connection, "wicked", {
            "state": SCRIPT, "state_detail": "</td><script>", "source_uri": f"x' onload='alert(1)//{SCRIPT}",
            "source_kind": SCRIPT, "trouble": SCRIPT, "link": SCRIPT, "link_detail": SCRIPT, "heard_ns": 2**62,
            "status": '{"versions": {"<script>": "<img src=x>"}, "rate_hz": 1e308, "temperature_c": "hot"}',
            "latitude": -90.0, "longitude": 180.0, "clock_off_s": 2.3e9, "rarity": 1e308, "novelty": -1e308,
        })  # fmt: skip
        station.store.take_notice(connection, "wicked", {"at_ns": -(2**62), "received_ns": NOW, "level": "info",
                                                         "code": SCRIPT, "text": SCRIPT * 20})  # fmt: skip
        station.store.take_model(connection, "wicked", {"kind": "model", "which": "scenes", "payload": b"\xff" * 40})


def filled_in(path, value="1"):
    return re.sub(r"\{(\w+)\}", lambda m: "wicked" if m[1] == "agent" and value == "1" else value, path)


class Markup(html.parser.HTMLParser):
    """Finds what could run: scripts but ours, event handlers, javascript: addresses, frames."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "script" and not str(given.get("src", "")).startswith("/static/station.js?v="):
            self.found.append(tag)
        if tag in ("iframe", "object", "embed", "base", "style"):
            self.found.append(tag)
        for name, value in attrs:
            if name.startswith("on") or name == "style" or str(value).strip().lower().startswith("javascript:"):
                self.found.append(f"{tag} {name}={value}")


@functools.lru_cache(64)  # most answers to strange values are the same page
def what_could_run(text):
    markup = Markup()
    markup.feed(text)
    return markup.found


@pytest.mark.parametrize("path", GETS)
def test_no_strange_value_in_an_address_is_a_fault(station, path):
    client = client_of(station)
    names = ("agent", "kind", "since", "label", "useful", "open", "before", "after", "limit", "since_ns", "until_ns",
             "q", "span", "date", "back", "waiting", "f")  # fmt: skip
    for value in STRANGE:
        address = filled_in(path, quote(value, safe="%./") or "1")
        answers = [client.get(address)]
        if "{" not in path:
            answers.append(client.get(path, params=dict.fromkeys(names, value)))
        if path in ALONE:
            answers += [client.get(f"{path}?{name}={quote(value, safe='%')}") for name in names]
        for answer in answers:
            assert answer.status_code < 500, (address, value, answer.text[-300:])
            if answer.headers.get("content-type", "").startswith("text/html"):
                assert not what_could_run(answer.text)


@pytest.mark.parametrize("path", [path for path in GETS if path.startswith("/") and "jpg" not in path])
def test_what_a_wicked_agent_says_is_shown_as_text(station, path):
    answer = client_of(station).get(filled_in(path))
    if answer.headers.get("content-type", "").startswith("text/html"):
        assert not what_could_run(answer.text), path
        assert "\x1b" not in answer.text


def test_a_wicked_agents_own_pages_are_whole(station):
    client = client_of(station)
    ids = [row["id"] for row in station.store.alerts(limit=50) if row["agent"] == "wicked"]
    pages = ["/agents/wicked", "/agents/wicked/commands", "/agents/wicked/day", *(f"/alerts/{i}" for i in ids)]
    for page in [*pages, "/", "/alerts?agent=wicked", "/map"]:
        answer = client.get(page)
        assert answer.status_code == 200, page
        assert not what_could_run(answer.text)
    assert "&lt;script&gt;" in client.get("/agents/wicked").text
    assert 'id="agent-harbour-north"' in client.get("/").text, "the others are shown as ever"


@pytest.mark.parametrize("method", METHODS)
def test_odd_methods_are_refused(station, method):
    client = client_of(station)
    for path in [way.path for way in WAYS]:
        answer = client.request(method, filled_in(path))
        assert answer.status_code in (200, 204, 303, 400, 404, 405), (path, answer.status_code)
        assert answer.status_code == 405 or method == "HEAD", path


@pytest.mark.parametrize("way", POSTS, ids=lambda way: way.path)
def test_nothing_changes_without_the_mark_of_an_own_page(station, way):
    client = client_of(station)
    mark = re.search(r'name="csrf" value="([0-9a-f]{40})"', client.get("/alerts/1").text)[1]
    before = station.store.audit(limit=1)
    path = filled_in(way.path)
    form = {"name": "x", "password": "y", "label": "z", "hours": "1", "command": "flush", "endpoint": "tcp://x:1"}
    tries = [
        client.post(path, data=form),
        client.post(path, data={**form, "csrf": "0" * 40}),
        client.post(path, data={**form, "csrf": mark}, headers={"origin": "https://evil.example"}),
        client.post(path, data={**form, "csrf": mark}, headers={"sec-fetch-site": "cross-site"}),
        client_of(station).post(path, data={**form, "csrf": mark}),
        client.post(path, json={**form, "csrf": mark}),
        client.post(path, files={"csrf": mark}),
    ]
    assert {answer.status_code for answer in tries} <= {403, 415}
    assert station.store.audit(limit=1) == before


@pytest.mark.parametrize("way", POSTS, ids=lambda way: way.path)
def test_no_strange_value_in_a_form_is_a_fault(station, way):
    client = client_of(station)
    mark = re.search(r'name="csrf" value="([0-9a-f]{40})"', client.get("/alerts/1").text)[1]
    names = ("useful", "label", "note", "hours", "back", "endpoint", "server", "command", "id", "which", "name")
    for value in [*STRANGE, "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "x" * 20_000]:
        answer = client.post(filled_in(way.path), data={**dict.fromkeys(names, value), "csrf": mark})
        assert answer.status_code < 500, (value, answer.text[-300:])
        assert not what_could_run(answer.text)


def test_bodies_and_addresses_have_a_limit(station):
    client = client_of(station)
    assert client.post("/login", content=b"x" * 70_000).status_code == 413
    assert client.get("/alerts?q=" + "x" * 5000).status_code == 414
    assert client.get("/", headers={"content-length": "-5"}).status_code == 400
    many = "&".join(f"a{i}=1" for i in range(5000))
    answer = client.post("/login", content=many, headers={"content-type": "application/x-www-form-urlencoded"})
    assert answer.status_code in (400, 403)


@pytest.mark.parametrize(
    "cookie",
    ["", "x", "stillwatch=", "stillwatch=" + "x" * 3000, 'stillwatch="\\000"', "=;=;", "stillwatch=" + "A" * 43],
)
def test_no_cookie_that_was_not_given_out_lets_in(guarded, cookie):
    client = client_of(guarded, "http://station.example")
    answer = client.get("/alerts", headers={"cookie": cookie})
    assert (answer.status_code, answer.headers.get("location")) == (303, "/login?back=/alerts")
    assert client.get("/api/v1/alerts", headers={"cookie": cookie}).status_code == 401


def logged_in(station, name):
    client = client_of(station, "http://station.example")
    mark = re.search(r'name="csrf" value="([0-9a-f]{40})"', client.get("/login").text)[1]
    assert client.post("/login", data={"name": name, "password": PASSWORD, "csrf": mark}).status_code == 303
    return client


@pytest.mark.parametrize("who", ["nobody", *Role])
def test_no_route_does_more_than_the_role_allows(guarded, who):
    role = None if who == "nobody" else Role(who)
    client = client_of(guarded, "http://station.example") if role is None else logged_in(guarded, f"user-{role}")
    for way in WAYS:
        if way.role is None or way.path == "/logout":
            continue
        path = way.path.replace("{agent}", "dive-7").replace("{picture}", "1").replace("{id}", "1")
        answer = client.request(way.method, path)
        is_allowed = role is not None and role.may(way.role)
        if is_allowed and way.method == "GET":
            assert answer.status_code in (200, 204, 400, 404), (way.path, answer.status_code)
        elif is_allowed:
            assert answer.status_code in (403, 415), "allowed, but the form has no mark"
        else:
            assert answer.status_code in (303, 401, 403), (way.path, answer.status_code)
            assert not answer.headers.get("location", "/login").startswith("/alerts")


def test_a_program_reads_with_its_token_alone(guarded):
    client = client_of(guarded, "http://station.example")
    token = new_api_token(guarded.store, "user-see", time.time())
    for path in ("/api/v1/alerts", "/metrics"):
        assert client.get(path).status_code == 401
        assert client.get(path, headers={"authorization": "Bearer " + "x" * 43}).status_code == 401
        assert client.get(path, headers={"authorization": f"Bearer {token}"}).status_code == 200
    assert client.get("/audit", headers={"authorization": f"Bearer {token}"}).status_code == 403


def test_every_answer_carries_the_security_headers(station):
    client = client_of(station)
    for path in [filled_in(path) for path in GETS]:
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"


def test_an_open_station_refuses_other_hosts(station):
    assert client_of(station, "http://evil.example").get("/").status_code == 421


def test_a_fault_of_ours_is_one_page_without_our_inside(station, monkeypatch, caplog):
    monkeypatch.setattr(station.store, "alert", lambda alert: 1 / 0)
    client = client_of(station)
    with pytest.raises(ZeroDivisionError):
        client.get("/alerts/1")
    client = type(client)(station.app, base_url="http://localhost", raise_server_exceptions=False)
    answer = client.get("/alerts/1")
    assert answer.status_code == 500
    assert "ZeroDivision" not in answer.text
    assert "The station made a mistake" in answer.text
    assert "ZeroDivisionError" in caplog.text
