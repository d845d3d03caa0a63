"""The forms in which a table leaves: CSV, Parquet, CMX 3600 edit list, time codes.

Called by tools/tables/command.py. Every form is of one table, as agent/runs gives it.
"""

import csv
import io
import json
import pathlib
from collections.abc import Iterator
from typing import Any

from stillwatch.base import UsageError
from stillwatch.runs import Table
from stillwatch.tools.shared import result_stream, words

LEAST_CLIP_S = 1.0  # an event of one moment is still something to look at
MOST_EDITS = 999  # an edit list numbers them with three digits


def csv_lines(table: Table) -> Iterator[str]:
    """Yield the table as CSV (RFC 4180, UTF-8): a heading, then the rows; lists as JSON, None as nothing."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(table.columns)
    for row in table:
        writer.writerow([_cell(row[name]) for name in table.columns])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list) else value


def write_parquet(table: Table, path: pathlib.Path, remedy: str = "with --parquet") -> None:
    """Write the table as Parquet; lists stay lists. UsageError where it cannot be written there."""
    import pyarrow
    import pyarrow.parquet

    columns = {name: [row[name] for row in table] for name in table.columns}
    with result_stream(path, remedy) as stream:
        pyarrow.parquet.write_table(pyarrow.table(columns), stream)


def spans(table: Table) -> list[tuple[float, float, dict[str, Any]]]:
    """Return (start, end, row) of every event in seconds into the stream, none shorter than LEAST_CLIP_S."""
    return [
        (row["stream_s"], max(row["stream_s"] + row["duration_s"], row["stream_s"] + LEAST_CLIP_S), row)
        for row in table
    ]


def time_codes(table: Table) -> list[str]:
    """Return start and end of every event as HH:MM:SS.mmm, one behind the other: the form that DVR-Scan prints."""
    return [_time_code(seconds) for start, end, _ in spans(table) for seconds in (start, end)]


def _time_code(seconds: float) -> str:
    thousandths = round(max(seconds, 0.0) * 1000)
    minutes, rest = divmod(thousandths, 60_000)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{rest // 1000:02d}.{rest % 1000:03d}"


def edit_list(table: Table, fps: float, clip: str) -> Iterator[str]:
    """Yield a CMX 3600 edit list: one cut an event, in their order, recorded one behind the other.

    Raises
    ------
    UsageError
        More events than an edit list can number.
    """
    if len(table) > MOST_EDITS:
        raise UsageError(f"{len(table)} events: an edit list numbers {MOST_EDITS} at most; use --csv")
    yield f"TITLE: STILLWATCH {clip}\nFCM: NON-DROP FRAME\n"
    recorded = 0
    rate = round(fps)
    for i, (start, end, row) in enumerate(spans(table), 1):
        first, last = round(start * fps), round(end * fps)
        codes = (first, last, recorded, recorded + last - first)
        recorded = codes[3]
        yield f"\n{i:03d}  AX       V     C        {' '.join(_frame_code(code, rate) for code in codes)}\n"
        yield f"* FROM CLIP NAME: {clip}\n* EVENT {row['id']}: {words.title_of(row['kind']).lower()}\n"


def _frame_code(frames: int, rate: int) -> str:
    seconds, frame = divmod(max(frames, 0), rate)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}:{frame:02d}"
