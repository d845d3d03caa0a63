"""Compiles every kernel into the cache, so that no later start waits for the compiler.

Called by `make setup`, service files and image builds. It ends, so that the compiler's memory goes with it.
"""

import argparse
import time

from stillwatch.kernels import _jit
from stillwatch.kernels.warm_up import load_all
from stillwatch.tools.shared import print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def main(args: argparse.Namespace) -> int:
    started = time.perf_counter()
    kernels = load_all()
    seconds = time.perf_counter() - started
    if args.json:
        print_json({"kernels": len(kernels), "seconds": round(seconds, 3), "cache": _jit.CACHE_DIR})
    elif _jit.CACHE_DIR is None:
        print(
            f"{len(kernels)} kernels compiled in {seconds:.1f} s, but no cache folder can be written: set "
            "STILLWATCH_CACHE_DIR, or every start will compile again"
        )
    else:
        print(f"{len(kernels)} kernels ready in {seconds:.1f} s, cached in {_jit.CACHE_DIR}")
    return 0
