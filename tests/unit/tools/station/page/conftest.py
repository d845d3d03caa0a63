"""A real browser that looks at a station's pages; skipped where there is none."""

import pytest
from browser import started

NO_PAGE = "status of 404"  # asked for on purpose, where a refusal is looked at
SIZES = {"desk": (1440, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def browser():
    yield from started()


@pytest.fixture
def visit(browser, address):
    """Open a page as a visitor of his own; what the browser complains of fails the test."""
    contexts, complaints = [], []

    def open_page(path, *, size="desk", scheme="light", at=address, is_live=True):
        width, height = SIZES[size]
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, timezone_id="Asia/Kolkata"
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: complaints.append(m.text) if m.type == "error" and NO_PAGE not in m.text else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(at + path)
        if is_live:
            page.wait_for_selector("#feed:text-is('live')")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not complaints
