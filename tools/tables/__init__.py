"""A run's events and scores as tables: CSV, JSON, Parquet, an edit list, time codes.

Owns: the formats.
In: run folders. Out: text on stdout, files.
Imports: the agent, transport, tools.shared.
"""

from stillwatch.tools.tables.formats import csv_lines, write_parquet

__all__ = ["csv_lines", "write_parquet"]
