"""What everybody can read, see and reach: contrast, texts of pictures, the keyboard, a phone's width, on every page.

In a real browser, on a station in trouble: what is seldom shown (a full disk, a dead letter, a refusal, a login) is
looked at too. Ratios are those of WCAG 2.2, AA: 4.5 for text, 3 for large text. Screenshots are left in build/screens.
"""

import time

import pytest
from filled_station import Station, served
from places import ROOT

from stillwatch.tools.station.page import Control
from stillwatch.tools.station.page.app import WAYS

NOW_NS = time.time_ns()
PAGES = {
    "/": "/",
    "/?q=nobody": "/?q=nobody",
    "/alerts": "/alerts",
    "/alerts, none": "/alerts?label=nothing",
    "/alerts/{id}": "/alerts/1",
    "/alerts/{id}, handled": "/alerts/11",
    "/agents/{agent}": "/agents/harbour-north?span=3600",
    "/agents/{agent}, in trouble": "/agents/dive-7",
    "/agents/{agent}/day": "/agents/dive-7/day",
    "/agents/{agent}/day, empty": "/agents/dive-7/day?date=2001-01-01",
    "/agents/{agent}/commands": "/agents/harbour-north/commands",
    "/map": "/map",
    "/notifications": "/notifications",
    "/api": "/api",
    "/audit": "/audit",
    "/login": "/login",
    "not found": "/nothing",
}
MOST_CONTROLS = ("/", "/alerts", "/alerts/{id}", "/agents/{agent}", "/agents/{agent}/day", "/notifications", "/login")
OTHERS = [name for name in PAGES if name not in MOST_CONTROLS]
SCREENS = ROOT / "build" / "screens"
LOOKS = [("desk", "light"), ("phone", "dark")]
MORE_LOOKS = [pytest.param(*look, marks=pytest.mark.soak) for look in (("desk", "dark"), ("phone", "light"))]

FAINT_TEXTS = """() => {
  const rgba = text => {
    const n = text.match(/[\\d.]+(e-?\\d+)?/g).map(Number);
    const unit = text.startsWith('color(') ? 1 : 255;
    return [n[0] / unit, n[1] / unit, n[2] / unit, n.length > 3 ? n[3] : 1];
  };
  const over = (top, under) => [0, 1, 2].map(i => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
  const light = c => c.slice(0, 3).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  const found = [];
  const judge = (element, style, text) => {
    let ground = [1, 1, 1, 1], strength = 1;
    const above = [];
    for (let e = element; e; e = e.parentElement) above.unshift(e);
    for (const e of above) {
      ground = over(rgba(getComputedStyle(e).backgroundColor), ground);
      strength *= Number(getComputedStyle(e).opacity);
    }
    const ink = rgba(element instanceof SVGElement ? style.fill : style.color);
    const size = parseFloat(style.fontSize), isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const r = ratio(over([ink[0], ink[1], ink[2], ink[3] * strength], ground), ground);
    if (r < (isLarge ? 3 : 4.5)) found.push([text.trim().slice(0, 40), element.className.baseVal ?? element.className,
      Number(r.toFixed(2))]);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const e = node.parentElement;
    if (!node.data.trim() || e.closest('title,script,option,datalist,[disabled],.skip,.hidden')) continue;
    if (e.checkVisibility({visibilityProperty: true})) judge(e, getComputedStyle(e), node.data);
  }
  for (const e of document.querySelectorAll('input,select,textarea')) if (e.checkVisibility()) {
    judge(e, getComputedStyle(e), 'in ' + e.name);
    if (e.placeholder) judge(e, getComputedStyle(e, '::placeholder'), e.placeholder);
  }
  return found;
}"""

WITHOUT_TEXT = """() => [
  ...[...document.querySelectorAll('img')].filter(e => !e.alt.trim()).map(e => e.outerHTML),
  ...[...document.querySelectorAll('svg:not([aria-hidden]), section, nav, video, dialog, aside')]
    .filter(e => !e.closest('[aria-hidden]') && !(e.ariaLabel || '').trim() && !e.querySelector(':scope > h2'))
    .map(e => e.outerHTML.slice(0, 120)),
  ...[...document.querySelectorAll('input:not([type=hidden]),select,textarea')]
    .filter(e => !e.labels.length && !e.ariaLabel).map(e => e.outerHTML),
  ...[...document.querySelectorAll('a[href],button,summary')]
    .filter(e => !((e.ariaLabel || '') + e.textContent).trim() && !e.querySelector('img[alt]'))
    .map(e => e.outerHTML.slice(0, 120)),
]"""

NUMBER_CONTROLS = """() => {
  const all = [...document.querySelectorAll('a[href],button,input:not([type=hidden]),select,textarea,summary,video')];
  const addresses = new Set(all.filter(e => e.tabIndex >= 0).map(e => e.getAttribute('href')));
  const hasTwin = e => e.tabIndex < 0 && e.matches('a') && addresses.has(e.getAttribute('href'));  // beside its picture
  window.controls = all.filter(e => !e.disabled && !hasTwin(e) && e.checkVisibility({visibilityProperty: true}));
  return window.controls.map(e => e.outerHTML.slice(0, 100));
}"""
FOCUSED = """() => {
  const e = document.activeElement, style = getComputedStyle(e);
  const hasRing = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0;
  return [window.controls.indexOf(e), hasRing || e.type === 'date'];  // which shows it on the part that is changed
}"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of the server's and the browser's libraries
]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Where a station is in trouble of every kind."""
    made = Station(
        tmp_path_factory.mktemp("station") / "s.sqlite3",
        troubles=lambda: ["The disk is full: no space left. What is heard stays in memory."],
        channels=lambda: [{"name": "siren", "how": "command"}],
        control_of=lambda agent: Control("tcp://127.0.0.1:9", None) if agent == "harbour-north" else None,
        add_agent=lambda endpoint, server: None,
        remove_agent=lambda agent: None,
    )
    made.fill(NOW_NS)
    row = made.store.alerts(limit=1)[0]
    with made.store.writing() as connection:
        made.store.take_agent(connection, "dive-7", {"state": "lost", "trouble": "its clock is 70 years ahead"})
        made.store.take_agent(connection, "new-one", {"added_ns": NOW_NS, "link": "connecting"})
        told = {"uid": "1", "channel": "siren", "agent": "dive-7", "alert": row["id"], "state": "dead", "tries": 12}
        made.store.enqueue(connection, told | {"fault": "exit code 3", "created_ns": NOW_NS, "phase": "new"})
    made.store.add_mute(agent=row["agent"], kind="", user="ann", now_ns=NOW_NS, until_ns=NOW_NS + 10**15)
    made.store.add_audit(time.time(), "ann", "10.0.0.9", "acknowledge", "dive-7 alert 3", "")
    with served(made.app) as found:
        yield found
    made.store.close()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """Where a station asks everybody to log in."""
    made = Station(tmp_path_factory.mktemp("guarded") / "s.sqlite3", allows_open=False)
    made.add_user("ann", "administer")
    with served(made.app) as found:
        yield found
    made.store.close()


def open_at(visit, guarded, name, **look):
    if name == "/login":
        return visit(PAGES[name], at=guarded, is_live=False, **look)
    page = visit("/", **look)
    page.goto(page.url.rstrip("/") + PAGES[name])
    return page


def test_every_page_is_among_those_looked_at():
    no_pages = ("/parts/", "/static/", "/api/v1/", ".jpg")
    parts = {"/metrics", "/healthz", "/live", "/alerts/{id}/part", "/alerts/{id}/clip"} | {
        f"/agents/{{agent}}/{name}" for name in ("now", "shot", "strip", "rest", "view")
    }
    pages = {way.path for way in WAYS if way.method == "GET" and not any(part in way.path for part in no_pages)} - parts
    assert pages <= set(PAGES)


@pytest.mark.parametrize(("size", "scheme"), [*LOOKS, *MORE_LOOKS])
def test_every_page_fits_its_window_and_all_in_it_can_be_read_and_has_a_name(visit, guarded, size, scheme):
    SCREENS.mkdir(parents=True, exist_ok=True)
    page = visit("/", size=size, scheme=scheme)
    home = page.url.rstrip("/")
    for name, path in PAGES.items():
        page.goto((guarded if name == "/login" else home) + path)
        over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert over == 0, (name, over)
        assert page.evaluate(FAINT_TEXTS) == [], name
        assert page.evaluate(WITHOUT_TEXT) == [], name
        stem = name.strip("/").replace("/", "-").translate(str.maketrans("", "", "{}?=,")).replace(" ", "_") or "fleet"
        page.screenshot(path=str(SCREENS / f"{stem}_{size}_{scheme}.png"), full_page=True)


@pytest.mark.parametrize("name", [*MOST_CONTROLS, *(pytest.param(n, marks=pytest.mark.soak) for n in OTHERS)])
def test_every_control_is_reached_by_the_tab_key_and_shows_it(visit, guarded, name):
    page = open_at(visit, guarded, name)
    controls = page.evaluate(NUMBER_CONTROLS)
    assert controls
    page.evaluate("document.activeElement.blur()")
    left = set(range(len(controls)))
    for _ in range(3 * len(controls) + 20):  # a date has a stop for each of its parts
        page.keyboard.press("Tab")
        at, is_shown = page.evaluate(FOCUSED)
        if at >= 0:
            assert is_shown, controls[at]
        left.discard(at)
        if not left:
            return
    raise AssertionError([controls[i] for i in sorted(left)])


def test_a_faint_text_and_a_picture_without_words_are_found(visit):
    page = visit("/map")
    page.evaluate("""() => {
      const main = document.querySelector('main');
      main.innerHTML += '<p id="pale">pale</p><img src="/static/icon.svg"><svg></svg><input name="x"><a href="/"></a>';
      document.getElementById('pale').style.color = '#999';
    }""")
    assert [item[0] for item in page.evaluate(FAINT_TEXTS)] == ["pale"]
    assert len(page.evaluate(WITHOUT_TEXT)) == 4
