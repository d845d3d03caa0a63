"""Where the real data is, for tests: STILLWATCH_DATA, else ../shared/data beside the checkout, else skip."""

import pathlib

import pytest

from stillwatch.tools.shared.data import find_data_or_none


def data_dir(*parts: str) -> pathlib.Path:
    """Return the data folder (or a path inside it); skip the calling test, in one line, where it is absent."""
    root = find_data_or_none(None)
    if root is None:
        pytest.skip("real data not found: set STILLWATCH_DATA")
    path = root.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"real data has no {'/'.join(parts)}")
    return path
