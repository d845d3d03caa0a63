"""A run folder, a ground station's folder or a recording, read as tables and arrays: what a program does with a run.

Owns: the names of the columns that every export has, the words for how rare something was.
In: a folder. Out: `RunTables`, `Table`, rows of plain values.
Imports: base, transport.wire, transport.disk.
"""

from stillwatch.runs.rareness import MOST_RARE, how_rare, most_often, span
from stillwatch.runs.rows import alert_row, counts_of, utc_text
from stillwatch.runs.run import RunTables, open_run
from stillwatch.runs.table import Table

__all__ = [
    "MOST_RARE",
    "RunTables",
    "Table",
    "alert_row",
    "counts_of",
    "how_rare",
    "most_often",
    "open_run",
    "span",
    "utc_text",
]
