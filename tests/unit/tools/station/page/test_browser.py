"""The page in a real browser: first visit, an alert that arrives while one looks, acts, filters, a phone, two at once.

One server and one browser for all. What holds for every page is in test_reach.py.
"""

import datetime
import time

import pytest
from filled_station import Station, alert, served

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of the server's and the browser's libraries
]


@pytest.fixture(scope="module")
def station(tmp_path_factory):
    made = Station(tmp_path_factory.mktemp("station") / "s.sqlite3")
    made.fill(time.time_ns())
    yield made
    made.store.close()


@pytest.fixture(scope="module")
def address(station):
    with served(station.app) as found:
        yield found


def test_a_first_visit_shows_the_fleet_and_asks_nothing_of_others(browser, address, station):
    context = browser.new_context()
    page, asked = context.new_page(), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    page.wait_for_selector("article.agent >> nth=2")
    assert page.title() == "Fleet · Stillwatch"
    page.wait_for_function("document.querySelector('article.agent img').naturalWidth == 320")
    assert all(url.startswith(address) for url in asked)
    context.close()


def test_times_are_told_in_utc_and_in_the_readers_own(visit):
    told = visit("/alerts/1").locator(".when-line time").first.inner_text()
    assert " UTC · " in told
    assert "here (UTC+5:30)" in told


def test_an_alert_appears_on_open_pages_within_a_second(visit, station):
    listed, fleet = visit("/alerts"), visit("/")
    began = time.monotonic()
    number = station.tell(alert("car-park", 900, time.time_ns(), phase="new"))
    listed.wait_for_selector(f'[data-item="/alerts/{number}"].fresh', timeout=5000)
    fleet.wait_for_selector(f'#newest [data-item="/alerts/{number}"]', timeout=5000)
    print(f"both pages after {time.monotonic() - began:.2f} s")
    assert listed.locator("article.event").first.get_attribute("data-item") == f"/alerts/{number}"


def test_an_alert_is_acknowledged_labelled_and_noted_by_hand(visit, station):
    number = station.tell(alert("car-park", 901, time.time_ns()))
    page = visit(f"/alerts/{number}")
    page.click('button:text-is("Acknowledge")')
    page.wait_for_selector("text=Acknowledged by local")
    page.click('button:text-is("Not useful")')
    assert page.locator('button:text-is("Not useful")').get_attribute("aria-pressed") == "true"
    page.fill("input[name=label]", "<b>hedgehog</b>")
    page.click('button:text-is("Set")')
    page.fill("textarea[name=note]", "At the bins")
    page.click('button:text-is("Add the note")')
    page.wait_for_selector("text=noted: At the bins")
    assert page.locator(".when-line .chip >> text=<b>hedgehog</b>").count() == 1
    assert station.store.alert(number)["label"] == "<b>hedgehog</b>"


def test_a_list_is_filtered_by_label(visit, station):
    page = visit("/alerts")
    page.fill("input[name=label]", "red van")
    page.click('button:text-is("Show")')
    page.wait_for_url("**label=red+van**")
    assert page.locator("article.event").count() == 1


def test_two_people_see_each_others_acts_at_once(visit, station):
    number = station.tell(alert("car-park", 902, time.time_ns()))
    one, other = visit("/alerts?open=1"), visit(f"/alerts/{number}")
    one.wait_for_selector(f'[data-item="/alerts/{number}"]')
    other.click('button:text-is("Acknowledge")')
    one.wait_for_selector(f'[data-item="/alerts/{number}"]', state="detached", timeout=5000)


def test_the_keyboard_alone_is_enough(visit, station):
    page = visit("/alerts")
    page.keyboard.press("j")
    chosen = page.locator(".event.chosen").get_attribute("data-item")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{chosen}")
    page.keyboard.press("a")
    page.wait_for_selector("text=Acknowledged by local")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the content"


def test_a_picture_opens_large_with_its_outlines_and_closes(visit):
    page = visit("/alerts/1")
    page.locator(".large .opens").first.click()
    assert page.locator("dialog[open] svg g").count() == 2
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0


def test_a_phone_shows_every_page_in_the_bar(visit):
    page = visit("/audit", size="phone")
    boxes = page.locator(".bar nav a").evaluate_all("all => all.map(e => e.getBoundingClientRect().right)")
    assert len(boxes) == 6
    assert max(boxes) <= 390


def test_a_phone_shows_the_outlines_in_the_list_of_alerts(visit):
    page = visit("/alerts", size="phone")
    assert page.locator("#alerts .event .shot svg").first.is_visible()
    picture = page.locator("#alerts .event .shot img").first.bounding_box()
    assert abs(picture["width"] / picture["height"] - 4 / 3) < 0.02, "nothing of it is cut off"


def test_a_day_plays(visit, station):
    noon = datetime.datetime(2026, 11, 28, 12, tzinfo=datetime.UTC)  # "today" has two alerts only long after midnight
    for number in (910, 911):
        station.tell(alert("dive-7", number, int(noon.timestamp()) * 10**9 + number))
    page = visit(f"/agents/dive-7/day?date={noon.date()}")
    page.click("#play")
    page.wait_for_selector("#moments li:nth-child(2).on", timeout=5000)
    assert page.locator(".strip .cursor").get_attribute("x1").endswith("%")
