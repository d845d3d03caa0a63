"""Where the vehicle was when a frame was taken: a time-stamped CSV, interpolated at the frame's time.

Made by agent/process/app.py from `source.nav_csv` and handed to agent/sources/capture.py, which asks once a frame.
Never extrapolates, and never bridges a gap that a vehicle could have used to go anywhere.
"""

import csv
import logging
import math
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from stillwatch.base import NO_NAV, ConfigError, Nav, shown
from stillwatch.sources.timestamps import NS

logger = logging.getLogger(__name__)

FIELDS = {  # column: (least, most)
    "latitude": (-90.0, 90.0),
    "longitude": (-180.0, 360.0),
    "depth_m": (-500.0, 12_000.0),
    "altitude_m": (-500.0, 12_000.0),
    "heading_deg": (-360.0, 720.0),
}
CIRCULAR = {"longitude": 360.0, "heading_deg": 360.0}
LONGEST_GAP_NS = 10 * NS
MOST_ROWS = 2_000_000
MOST_PROBLEMS = 20


class NavTrack:
    """Rows of a CSV with a header: `t_s` (seconds of stream time) or `time` (ISO 8601, UTC if it says nothing), and
    any of latitude, longitude, depth_m, altitude_m, heading_deg; empty cells are unknown.

    Parameters
    ----------
    path : str
    live : bool
        ISO times are compared with the wall clock of live frames; for files they count from `start`.
    start : str
        ISO time of a file's first frame; empty: that of the first row.

    Raises
    ------
    ConfigError
        Every fault of the file, at most 20, each with its line.
    """

    def __init__(self, path: str, *, live: bool, start: str = ""):
        self._path = path
        times, values, self._is_absolute = self._read()
        self._by_wall_clock = self._is_absolute and live
        if self._is_absolute and not live:
            times = times - (_iso_ns(start) if start else times[0])
        self._times = times
        self._values = values
        self._warn_of_gaps()

    def _warn_of_gaps(self) -> None:
        steps = np.diff(self._times)
        wide = int(np.count_nonzero(steps > LONGEST_GAP_NS))
        if wide:
            logger.warning(
                "source.nav_csv: %s: %d of %d rows come more than %d s after the one before (the longest %.0f s): "
                "no position is given between them, for none is known",
                shown(self._path), wide, len(self._times), LONGEST_GAP_NS // NS, float(steps.max()) / NS,
            )  # fmt: skip

    def _read(self) -> tuple[np.ndarray, np.ndarray, bool]:
        try:
            with Path(self._path).open(newline="", encoding="utf-8-sig") as file:
                rows = csv.reader(file)
                return self._parse(next(rows, []), rows)
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise ConfigError(
                [f"source.nav_csv: {self._path}: {getattr(error, 'strerror', None) or error}; give a CSV file"]
            ) from None

    def _parse(self, header: list[str], rows) -> tuple[np.ndarray, np.ndarray, bool]:
        names = [name.strip().lower() for name in header]
        time_name = next((name for name in ("t_s", "time") if name in names), None)
        known = [name for name in names if name in FIELDS]
        if time_name is None or not known or len(set(known)) < len(known):
            raise ConfigError([f"source.nav_csv: {self._path}:1: needs t_s or time, and one of {', '.join(FIELDS)}"])
        times: list[int] = []
        values: list[tuple[float, ...]] = []
        problems: list[str] = []
        for line, row in enumerate(rows, 2):
            if not any(cell.strip() for cell in row):
                continue
            if len(problems) >= MOST_PROBLEMS or len(times) >= MOST_ROWS:
                break
            try:
                t_ns, position = _row(dict(zip(names, row, strict=False)), time_name)
                if times and t_ns <= times[-1]:
                    raise ValueError(f"{time_name} does not increase")
            except ValueError as error:
                problems.append(f"source.nav_csv: {self._path}:{line}: {error}")
                continue
            times.append(t_ns)
            values.append(position)
        if not times and not problems:
            problems.append(f"source.nav_csv: {self._path}: holds no row")
        if len(times) >= MOST_ROWS:
            problems.append(f"source.nav_csv: {self._path}: more than {MOST_ROWS} rows")
        if problems:
            raise ConfigError(problems)
        return np.array(times, np.int64), np.array(values, np.float64), time_name == "time"

    def at(self, t_ns: int, wall_ns: int) -> Nav:
        """Return the position at a frame's stream time, or at its wall time (see `live`); NaN where unknown."""
        now = wall_ns if self._by_wall_clock else t_ns
        after = int(np.searchsorted(self._times, now))
        if after < len(self._times) and self._times[after] == now:
            return Nav(*(float(value) for value in self._values[after]))
        if after in (0, len(self._times)) or self._times[after] - self._times[after - 1] > LONGEST_GAP_NS:
            return NO_NAV
        share = (now - int(self._times[after - 1])) / int(self._times[after] - self._times[after - 1])
        pairs = zip(FIELDS, self._values[after - 1], self._values[after], strict=True)
        return Nav(*(_between(name, float(a), float(b), share) for name, a, b in pairs))

    def memory_bytes(self) -> int:
        return self._times.nbytes + self._values.nbytes


def _row(cells: dict[str, str], time_name: str) -> tuple[int, tuple[float, ...]]:
    """Return (ns, values in the order of FIELDS); ValueError says which cell is wrong."""
    text = cells.get(time_name, "").strip()
    t_ns = _iso_ns(text) if time_name == "time" else round(_number(time_name, text, -1e9, 1e9) * NS)
    return t_ns, tuple(
        _number(name, cells.get(name, "").strip(), *limits) if cells.get(name, "").strip() else math.nan
        for name, limits in FIELDS.items()
    )


def _number(name: str, text: str, least: float, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{name} {text!r} is not a number") from None
    if not least <= value <= most:  # NaN fails this too
        raise ValueError(f"{name} {value:g} is outside [{least:g}, {most:g}]")
    return value


def _iso_ns(text: str) -> int:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"time {text!r} is not ISO 8601") from None
    when = when.replace(tzinfo=UTC) if when.tzinfo is None else when
    span = when - datetime(1970, 1, 1, tzinfo=UTC)
    return (span.days * 86_400 + span.seconds) * NS + span.microseconds * 1000


def _between(name: str, a: float, b: float, share: float) -> float:
    """Interpolate; around the circle by the shorter way."""
    turn = CIRCULAR.get(name)
    if turn is None:
        return a + share * (b - a)
    step = (b - a + turn / 2.0) % turn - turn / 2.0
    value = a + share * step
    if name == "heading_deg":
        return value % turn
    return (value + 180.0) % turn - 180.0
