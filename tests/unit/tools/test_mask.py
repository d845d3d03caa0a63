"""Masks by mouse: what the page saves is checked, and only the mask's line of a config changes."""

import json
import threading
import tomllib
import urllib.error
import urllib.request

import cv2
import numpy as np
import pytest
from browser import started
from capture_sources import frame_of

from stillwatch.base import AgentError, UsageError
from stillwatch.settings import load_config
from stillwatch.tools.mask import MaskServer, checked_polygons, with_mask, write_mask
from stillwatch.tools.mask import frame_of as frame_of_source
from stillwatch.tools.mask_page import page

TRIANGLE = [[0.1, 0.1], [0.9, 0.1], [0.5, 0.9]]
LINE = f"mask = {json.dumps([TRIANGLE])}"
CONFIG = """# my camera
[source]
width = 160  # small

[features]
step_px = 8
mask = [
  [[0.0, 0.0], [1.0, 0.0], [1.0, 0.2]],  # the clock
]
mask_png = ""

[events]
burst = 3
"""


@pytest.fixture
def server():
    done = threading.Event()
    frame = frame_of(np.full((48, 64, 3), 90, np.uint8), 0.0)
    with MaskServer(frame, [TRIANGLE], 0, done) as running:
        yield running, done


def post(address, value):
    request = urllib.request.Request(address, data=json.dumps(value).encode(), method="POST")
    return urllib.request.urlopen(request, timeout=10).read()


def test_the_page_shows_the_frame_and_the_mask_that_there_is(server):
    text = urllib.request.urlopen(server[0].address, timeout=10).read().decode()
    assert "64 by 48 pixels" in text
    assert json.dumps([TRIANGLE]) in text
    assert "http://" not in text.replace("http://www.w3.org", "")


def test_saving_ends_the_command_with_the_polygons(server):
    running, done = server
    assert post(running.address, [TRIANGLE, TRIANGLE]) == b"saved"
    assert done.wait(10)
    assert running.saved == [TRIANGLE, TRIANGLE]


def test_an_address_without_the_token_shows_and_takes_nothing(server):
    running, done = server
    other = running.address.rpartition("/")[0] + "/"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        post(other, [TRIANGLE])
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(other, timeout=10)
    assert not done.is_set()


def test_what_is_no_mask_is_refused_with_words(server):
    running, done = server
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(running.address, [[[0, 0], [1, 1]]])
    assert refused.value.code == 400
    assert b"polygon 0: 3 to 1000 corners" in refused.value.read()
    assert not done.is_set()


@pytest.mark.parametrize("given", [{}, [1], [[[0, 0], [1, 0], [2, 1]]], [[[0, 0], [1, 0], ["a", 1]]], [TRIANGLE] * 101])
def test_polygons_are_checked(given):
    with pytest.raises(ValueError, match=r"polygon|mask"):
        checked_polygons(given)


def test_only_the_masks_lines_change():
    text = with_mask(CONFIG, LINE)
    assert tomllib.loads(text)["features"] == {"step_px": 8, "mask": [TRIANGLE], "mask_png": ""}
    before, _, rest = CONFIG.partition("mask = [")
    assert text == f"{before}{LINE}\nmask_png{rest.partition('mask_png')[2]}"


@pytest.mark.parametrize("text", ["", "[features]", "[features]\nstep_px = 8\n", "[events]\nburst = 3\n", "x = 1\n"])
def test_a_config_without_a_mask_gets_one_in_its_features(text):
    assert tomllib.loads(with_mask(text, LINE))["features"]["mask"] == [TRIANGLE]


def test_a_written_mask_is_the_configs(tmp_path):
    path = tmp_path / "door.toml"
    path.write_text(CONFIG)
    write_mask(path, LINE)
    assert load_config(path).features.mask == [[tuple(corner) for corner in TRIANGLE]] or load_config(
        path
    ).features.mask == [TRIANGLE]


def test_a_frame_behind_the_end_is_named_with_how_many_there_are():
    config = load_config(None, ["source.width=160", "source.height=120"])
    uri = "synthetic:road?n_frames=3&width=160&height=120"
    assert frame_of_source(uri, config, 2).sequence == 2
    with pytest.raises(AgentError, match="has 3 frames, --frame 3 is none of them: give 0 to 2"):
        frame_of_source(uri, config, 3)


def test_a_port_that_is_taken_is_named(server):
    running, done = server
    port = int(running.address.split(":")[2].split("/")[0])
    with pytest.raises(UsageError, match=f"--port: {port} cannot be used"):
        MaskServer(frame_of(np.zeros((48, 64, 3), np.uint8), 0.0), [], port, done)


@pytest.mark.slow
@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)])
def test_an_upright_frame_and_the_button_that_saves_stand_on_one_screen(tmp_path, width, height):
    for browser in started():
        (tmp_path / "mask.html").write_text(page(cv2.imencode(".jpg", np.zeros((288, 162), np.uint8))[1], 162, 288, []))
        tab = browser.new_page(viewport={"width": width, "height": height})
        tab.goto((tmp_path / "mask.html").as_uri())
        save = tab.locator("#save").bounding_box()
        assert save["y"] + save["height"] <= height
        drawn = tab.locator("#view svg").bounding_box()
        assert drawn["height"] / drawn["width"] == pytest.approx(288 / 162, rel=0.02)


@pytest.mark.slow
def test_areas_drawn_by_clicks_in_a_browser_are_the_ones_that_are_saved(server):
    running, done = server
    for tab in cleared(running.address, 900, 700):
        for corner in [(0.1, 0.1), (0.4, 0.1), (0.4, 0.5)]:
            click(tab, corner)
        tab.keyboard.press("Enter")
        for corner in [(0.6, 0.6), (0.9, 0.6), (0.75, 0.9), (0.6, 0.6)]:  # the first corner again closes it
            click(tab, corner)
        tab.locator("#save").click()
        tab.get_by_text("Saved.").wait_for()
        assert done.wait(5)
    drawn = [[(0.1, 0.1), (0.4, 0.1), (0.4, 0.5)], [(0.6, 0.6), (0.9, 0.6), (0.75, 0.9)]]
    assert [len(area) for area in running.saved] == [3, 3]
    assert np.array(running.saved) == pytest.approx(np.array(drawn), abs=0.01)  # clicks are whole pixels


@pytest.mark.slow
def test_each_corner_shows_as_soon_as_it_is_clicked_and_undo_takes_back_the_last_then_the_last_area(server):
    running, _ = server
    for tab in cleared(running.address, 390, 844):
        shown = []
        for corner in [(0.2, 0.2), (0.6, 0.2), (0.6, 0.6)]:
            click(tab, corner)
            shown.append(tab.locator("#view .corner").count())
        assert shown == [1, 2, 3]
        click(tab, (0.2, 0.2))
        assert tab.locator("#view polygon").count() == 1
        click(tab, (0.8, 0.8))
        tab.locator("#back").click()
        assert (tab.locator("#view .corner").count(), tab.locator("#view polygon").count()) == (0, 1)
        tab.locator("#back").click()
        assert tab.locator("#view polygon").count() == 0


def cleared(address, width, height):
    """Yield the page in a browser, without the areas that it came with."""
    for browser in started():
        tab = browser.new_page(viewport={"width": width, "height": height})
        tab.goto(address)
        tab.locator("#clear").click()
        yield tab


def click(tab, corner):
    """Click at shares of the picture's width and height."""
    box = tab.locator("#view svg").bounding_box()
    tab.mouse.click(box["x"] + corner[0] * box["width"], box["y"] + corner[1] * box["height"])
