"""The one place where numba is configured: every kernel is decorated by `kernel` or `reduction_kernel`.

Called by each module of kernels/. It must not hold a kernel itself, nor any state but the cache folder.
"""

import functools
import hashlib
import os
import pathlib

import numba


def _cache_dir() -> str | None:
    """Return a writable cache folder keyed by every kernel source, numba and BOUNDSCHECK, or None.

    numba notices edits to the file of the kernel only, not to the helpers it calls, and does not know
    whether cached code was compiled with bounds checks: both are part of the folder's name instead.
    """
    here = pathlib.Path(__file__).parent
    key = hashlib.sha256(f"{numba.__version__}|{vars(numba.config)['BOUNDSCHECK']}".encode())
    for path in sorted(here.glob("*.py")):
        key.update(path.read_bytes())
    base = os.environ.get("STILLWATCH_CACHE_DIR") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "stillwatch"
    )
    path = pathlib.Path(base) / key.hexdigest()[:16]
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return str(path) if os.access(path, os.W_OK) else None


CACHE_DIR = _cache_dir()
if CACHE_DIR:
    numba.config.CACHE_DIR = CACHE_DIR  # type: ignore[attr-defined]

kernel = functools.partial(numba.njit, nogil=True, error_model="numpy", cache=CACHE_DIR is not None)
# The five flags keep NaN and inf tests true, unlike fastmath=True. Only for dot, distance and histogram sums
# over data already known finite; never for running moments, compensated sums or validity checks.
reduction_kernel = functools.partial(kernel, fastmath={"nsz", "arcp", "contract", "afn", "reassoc"})
