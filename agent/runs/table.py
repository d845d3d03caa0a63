"""A table of rows with named columns: as plain rows, as NumPy arrays, as a pandas frame where pandas is installed.

Made by agent/runs/run.py. It must not need pandas.
"""

import html
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

SHOWN_ROWS = 20  # in a notebook


class Table:
    """Rows in order, each with a value or None for every column.

    Parameters
    ----------
    name : str
        Of what the rows are: events, scores.
    columns : sequence of str
    rows : sequence of dict
    """

    def __init__(self, name: str, columns: Sequence[str], rows: Sequence[dict[str, Any]]):
        self.name, self.columns, self.rows = name, tuple(columns), list(rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __getitem__(self, column: str) -> np.ndarray:
        """Return one column: float64 with NaN for None if all are numbers, else objects. KeyError for another name."""
        if column not in self.columns:
            raise KeyError(f"{self.name} have no column {column!r}; they have {', '.join(self.columns)}")
        values = [row[column] for row in self.rows]
        if all(value is None or isinstance(value, int | float) for value in values):
            return np.array([np.nan if value is None else value for value in values], np.float64)
        column_of = np.empty(len(values), object)
        column_of[:] = values
        return column_of

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame; ImportError where pandas is not installed."""
        import pandas

        return pandas.DataFrame(self.rows, columns=list(self.columns))

    def __repr__(self) -> str:
        return f"<{len(self)} {self.name}: {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            f"<tr>{''.join(f'<td>{html.escape(_shown(row[name]))}</td>' for name in self.columns)}</tr>"
            for row in self.rows[:SHOWN_ROWS]
        )
        more = len(self) - SHOWN_ROWS
        rest = f"<p>and {more} more</p>" if more > 0 else ""
        return f"<div style='overflow-x:auto'><table><tr>{head}</tr>{body}</table></div>{rest}"


def _shown(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
