"""A run folder, a ground station's folder or a recording, read as tables and arrays: what a program does with a run.

Owns: the names of the columns that every export has.
In: a folder. Out: `RunTables`, `Table`, rows of plain values.
Imports: base, transport.wire, transport.disk.
"""

from stillwatch.runs.rows import alert_row, utc_text
from stillwatch.runs.run import RunTables, open_run
from stillwatch.runs.table import Table

__all__ = ["RunTables", "Table", "alert_row", "open_run", "utc_text"]
