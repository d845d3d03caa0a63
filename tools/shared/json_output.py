"""The one way in which a command prints JSON.

Called by every command with --json. It must not print anything that a JSON reader refuses: NumPy's numbers become
plain ones, and what is no number (NaN, infinity) becomes null.
"""

import json
import math
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from stillwatch.base import shown


def print_json(value: Any) -> None:
    """Print one JSON value on one line of stdout, at once."""
    print(json_text(value), flush=True)


def print_rows(rows: list[dict[str, Any]], *, as_json: bool) -> None:
    """Print rows as one JSON object, or a line each of names and values, numbers with four digits."""
    if as_json:
        print_json({"rows": rows})
        return
    for row in rows:
        texts = (f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values())
        print("  ".join(f"{name} {text}" for name, text in zip(row, texts, strict=True)))


def json_text(value: Any) -> str:
    """Return a value as JSON of one line. TypeError for what has no form in JSON."""
    return json.dumps(plain(value), allow_nan=False)


def plain(value: Any) -> Any:
    """Return the value made of dict, list, str, int, float, bool and None alone."""
    match value:
        case None | bool() | int() if type(value) in (bool, int, type(None)):
            return value
        case str():
            return shown(str(value))
        case np.ndarray() | np.generic():
            return plain(value.tolist())
        case float():
            return value if math.isfinite(value) else None
        case int():
            return int(value)
        case Mapping():
            return {key if isinstance(key, str) else str(plain(key)): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case set() | frozenset():
            return [plain(item) for item in sorted(value)]
        case pathlib.PurePath():
            return shown(str(value))
    raise TypeError(f"{type(value).__name__} has no form in JSON")
