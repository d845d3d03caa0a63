"""Where the checkout and its golden files lie, for tests at any depth."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
