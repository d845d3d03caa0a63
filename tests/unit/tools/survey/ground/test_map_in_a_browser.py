"""The map as a person uses it, in a real browser without a network: look, point at, hide, zoom, follow."""

import numpy as np
import pytest
from browser import started

from stillwatch.tools.survey.ground import map_html

DEGREE_M = 6_371_000.0 * np.pi / 180.0
SIZES = {"desk": (1440, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def browser():
    yield from started()


@pytest.fixture(params=SIZES)
def page(browser, request, tmp_path):
    """Return the page of two dives of 20 pictures each, a metre apart; it must load nothing and complain of nothing."""
    north = np.r_[np.arange(20.0), np.arange(20.0)] / DEGREE_M
    positions = np.column_stack([10.0 + north, np.repeat([20.0, 20.0 + 15.0 / DEGREE_M], 20)])
    dives, clusters = np.repeat([0, 1], 20), np.arange(40) % 2
    names = [f"dive/<b>{i}</b>.png" for i in range(40)]
    body = map_html(clusters, dives, ["one", "two"], positions, names, lambda k: ("red", "blue")[k], {3})
    (tmp_path / "map.html").write_text(f"<!doctype html><meta charset=utf-8>{body}<figure id=item-3>x</figure>")
    width, height = SIZES[request.param]
    context = browser.new_context(viewport={"width": width, "height": height}, offline=True)
    page, wrong = context.new_page(), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda told: wrong.append(told.text) if told.type == "error" else None)
    page.on("request", lambda asked: wrong.append(asked.url) if not asked.url.endswith("map.html") else None)
    page.goto((tmp_path / "map.html").as_uri())
    yield page
    assert not [text for text in wrong if not text.endswith("#item-3")]
    context.close()


def place_of(page, item):
    """Return where a point of the map stands on the page, pixels."""
    return page.evaluate(
        """item => { const data = JSON.parse(document.getElementById('map-data').textContent);
        const box = document.getElementById('map').getBoundingClientRect();
        const at = stillwatchMap.latLngToContainerPoint([data.y[item], data.x[item]]);
        return [box.x + at.x, box.y + at.y]; }""",
        item,
    )


def scale_bar(page):
    return page.locator(".leaflet-control-scale-line").inner_text()


def test_the_whole_survey_is_in_view_with_a_scale_and_names(page):
    box = page.locator("#map").bounding_box()
    for item in (0, 19, 20, 39):
        x, y = place_of(page, item)
        assert box["x"] < x < box["x"] + box["width"]
        assert box["y"] < y < box["y"] + box["height"]
    assert scale_bar(page).endswith(" m")
    assert page.locator(".leaflet-tooltip.dive").all_inner_texts() == ["one", "two"]
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


def test_what_is_pointed_at_is_named_as_text_and_leads_to_its_picture(page):
    page.mouse.move(*place_of(page, 3))
    page.wait_for_selector(".leaflet-tooltip:not(.dive)")
    assert page.locator(".leaflet-tooltip:not(.dive)").inner_text() == "dive/<b>3</b>.png: cluster 1"
    assert page.locator(".where").inner_text().startswith("10.00002")
    page.mouse.click(*place_of(page, 3))
    page.locator(".leaflet-popup a", has_text="dive").click()
    assert page.url.endswith("#item-3")


def test_a_cluster_and_a_dive_are_hidden_and_shown(page):
    def named(item):
        page.mouse.move(5, 5)
        page.wait_for_timeout(400)  # a name fades away in a fifth of a second
        page.mouse.move(*place_of(page, item))
        page.wait_for_timeout(150)
        return page.locator(".leaflet-tooltip:not(.dive)").count()

    boxes = page.locator("#shown input")
    assert boxes.count() == 4
    boxes.nth(1).uncheck()
    assert (named(3), named(4), named(25)) == (0, 1, 0)
    boxes.nth(1).check()
    boxes.nth(2).uncheck()
    assert (named(3), named(25)) == (0, 1)
    assert page.locator(".leaflet-tooltip.dive").all_inner_texts() == ["two"]


def test_zooming_changes_the_scale_and_one_button_shows_all_again(page):
    before, place = scale_bar(page), place_of(page, 0)
    for _ in range(3):
        page.locator(".leaflet-control-zoom-in").click()
        page.wait_for_timeout(350)
    assert scale_bar(page) != before
    page.locator("[title='the whole survey']").click()
    page.wait_for_timeout(350)
    assert scale_bar(page) == before
    assert place_of(page, 0) == pytest.approx(place, abs=1.0)
