"""The files of a survey beside its page: survey.json, tables, survey.geojson.

Called by tools/survey/command.py. Each file is written whole or not at all.
"""

import json
import pathlib
from typing import Any

import numpy as np

from stillwatch.base import UsageError
from stillwatch.runs import Table
from stillwatch.tools.shared import json_text, write_result
from stillwatch.tools.tables import csv_lines, write_parquet


def make_folder(given: str) -> pathlib.Path:
    """Return the folder of the results, made; UsageError where it cannot be."""
    path = pathlib.Path(given)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {given}: cannot be made: {error.strerror}; name another folder") from None
    return path


def write_table(folder: pathlib.Path, name: str, columns: dict[str, list[Any]], with_parquet: bool) -> None:
    """Write columns of one length as NAME.csv, and as NAME.parquet where asked; NaN is an empty cell."""
    rows = [
        {key: None if value != value else value for key, value in zip(columns, row, strict=True)}
        for row in zip(*columns.values(), strict=True)
    ]
    table = Table(name, list(columns), rows)
    write_result(folder / f"{name}.csv", "".join(csv_lines(table)))
    if with_parquet:
        write_parquet(table, folder / f"{name}.parquet", "with --out")  # there --parquet is no place


def geojson(captions: list[str], dives: list[str], clusters: np.ndarray, positions: np.ndarray) -> str:
    """Return the items that have a position as GeoJSON points (RFC 7946: longitude first)."""
    features = [
        {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": [float(positions[i, 1]), float(positions[i, 0])]},
            "properties": {"picture": captions[i], "dive": dives[i], "cluster": int(clusters[i])},
        }
        for i in np.flatnonzero(np.isfinite(positions).all(axis=1))
    ]
    return json.dumps({"type": "FeatureCollection", "features": features})


def write_summary(path: pathlib.Path, summary: dict[str, Any]) -> None:
    write_result(path, json_text(summary) + "\n")
