"""A report in a real browser, at the width of a telephone and of a desk: nothing is cut, nothing comes from outside."""

import browser as browsers
import pytest

from stillwatch.tools.cli import main

SIZES = {"desk": (1440, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    """Return the report of a made road with visitors, which has events, kinds of visits and topics."""
    out = tmp_path_factory.mktemp("road") / "run"
    source = "synthetic:road?n_frames=260&width=160&height=120"
    assert main(["run", source, "--out", str(out), "-q", "--set", 'publish.endpoint=""']) == 0
    assert main(["report", str(out)]) == 0
    return out / "report.html"


@pytest.fixture(scope="module")
def browser():
    yield from browsers.started()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_a_report_fits_the_width_and_asks_nobody(page_file, browser, size, scheme):
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page, asked, faults = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda fault: faults.append(str(fault)))
    page.goto(page_file.as_uri())
    assert page.locator(".event").count() > 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    hidden = "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth).length"
    assert page.evaluate(hidden) == 0  # no table goes on beside the page
    broken = """[...document.querySelectorAll('td.n')].filter(e => { e.textContent = '1\\u202f189';
        const text = document.createRange(); text.selectNodeContents(e); return text.getClientRects().length > 1 })"""
    assert page.evaluate(f"{broken}.length") == 0  # no number goes on in a second line
    assert page.evaluate("[...document.images].filter(image => !image.alt).length") == 0
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert faults == []
    context.close()
