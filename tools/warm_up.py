"""Compiles every kernel into the cache, so that no later start waits for the compiler.

Called by `make setup`, service files and image builds, and by commands that run for long before their first start. It
ends, so that the compiler's memory goes with it.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import time

from stillwatch.kernels import _jit
from stillwatch.kernels.warm_up import load_all
from stillwatch.tools.shared import print_json


def cache_folder() -> pathlib.Path | None:
    """Return where compiled kernels are kept; None where no folder can be written."""
    return None if _jit.CACHE_DIR is None else pathlib.Path(_jit.CACHE_DIR)


def compile_apart() -> None:
    """Compile in a process of its own where the cache is not complete: 200 MB of compiler would stay in ours.

    What goes wrong there is left to the caller's own start, which compiles what is missing and can say why it cannot.
    """
    folder = cache_folder()
    if folder is None or os.environ.get("NUMBA_DISABLE_JIT", "0") != "0" or (folder / _jit.COMPLETE).exists():
        return
    subprocess.run([sys.executable, "-m", "stillwatch.tools.cli", "warm-up"], capture_output=True, check=False)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def main(args: argparse.Namespace) -> int:
    started = time.perf_counter()
    kernels = load_all()
    seconds = time.perf_counter() - started
    folder = cache_folder()
    if folder is not None:
        (folder / _jit.COMPLETE).touch()
    if args.json:
        print_json({"kernels": len(kernels), "seconds": round(seconds, 3), "cache": folder and str(folder)})
    elif folder is None:
        print(
            f"{len(kernels)} kernels compiled in {seconds:.1f} s, but no cache folder can be written: set "
            "STILLWATCH_CACHE_DIR, or every start will compile again"
        )
    else:
        print(f"{len(kernels)} kernels ready in {seconds:.1f} s, cached in {folder}")
    return 0
