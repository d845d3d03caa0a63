"""KIN40K for the Gaussian-process experiment, what an experiment's run cost, and how its rows are told.

Called by the experiment commands. It must not write into the data folder; the other data sets are in mixture_data.
"""

import gzip
import pathlib
import resource
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from stillwatch.tools.shared import print_json


def kin40k(data: pathlib.Path) -> tuple[np.ndarray, np.ndarray]:
    """Return KIN40K's inputs (40,000 x 8) and targets (40,000,), standardised, in the file's order."""
    with gzip.open(data / "kin40k" / "kin40k.csv.gz", "rt") as file:
        table = np.loadtxt(file, delimiter=",")
    return table[:, :8], table[:, 8]


class Cost(NamedTuple):
    """What one call took: wall and processor seconds, and the most memory the process had meanwhile."""

    seconds: float
    cpu_seconds: float
    peak_rss_mb: float

    def times(self) -> dict[str, float]:
        """Return the seconds as a row has them: a peer's memory is not its own, the libraries' are in it."""
        return {"seconds": self.seconds, "cpu_seconds": self.cpu_seconds}


def measure(function: Callable[[], Any]) -> tuple[Any, Cost]:
    """Call `function` and return its result with its cost."""
    clear = pathlib.Path("/proc/self/clear_refs")
    try:
        clear.write_text("5")  # resets the peak that VmHWM tells
    except OSError:
        pass  # the peak is then that of the whole process so far
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    return result, Cost(time.perf_counter() - wall, time.process_time() - cpu, peak_rss_mb())


def peak_rss_mb() -> float:
    """Return the process's peak resident memory since the last `measure` began, in MB."""
    try:
        for line in pathlib.Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024.0
    except OSError:
        pass  # no /proc: not Linux
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def tell_rows(rows: Iterable[dict[str, Any]], names: Sequence[str], *, as_json: bool, digits: int = 5) -> None:
    """Print rows as they come, a line each without what is None, or all of them as one JSON object.

    names : of columns that every row of the JSON has, null where a row has none
    """
    told = []
    for row in rows:
        told.append(dict.fromkeys(names) | row)
        if not as_json:
            held = {name: value for name, value in row.items() if value is not None}
            texts = [f"{k}={v:.{digits}g}" if isinstance(v, float) else f"{k}={v}" for k, v in held.items()]
            print("  ".join(texts), flush=True)
    if as_json:
        print_json({"rows": told})
