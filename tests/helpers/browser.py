"""A real browser for tests that look at pages; they are skipped where there is none."""

import os
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

CHROMIUM = os.environ.get("STILLWATCH_CHROMIUM", "/usr/bin/chromium")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()


def started() -> Iterator[Any]:
    """Yield one browser for a module: while it lives, nobody else in the process can run an event loop."""
    if not pathlib.Path(CHROMIUM).exists():
        pytest.skip(f"no browser at {CHROMIUM}")
    api = pytest.importorskip("playwright.sync_api", reason="no playwright")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()
