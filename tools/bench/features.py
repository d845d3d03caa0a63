"""Measure the descriptor kernels beside OpenCV's own, in one run.

A command of the console script, and what the speed figures in the documents come from. It must not use a
setting that the agent would not.
"""

import os
import pathlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np

from stillwatch.base import UsageError
from stillwatch.features import BlockHog, DenseSift
from stillwatch.tools.shared import add_data_argument, find_data_or_none, print_json

SIZES = ((320, 240), (640, 480), (1360, 1024))  # width, height
STEP_PX, BIN_PX, CELL_PX = 8, 4, 8
SECONDS_EACH = 1.0


def add_arguments(parser) -> None:
    """Add the command's options."""
    add_data_argument(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seconds", type=float, default=SECONDS_EACH, metavar="S", help="for each pair of kernels")


def main(args) -> int:
    """Print a row for each size, number of threads and kernel."""
    threads = sorted({1, os.cpu_count() or 1})
    rows = []
    for width, height in SIZES:
        image = bench_image(args.data, width, height)
        for n_threads in threads:
            cv2.setNumThreads(n_threads)
            with ThreadPoolExecutor(n_threads) as pool:
                rows += pair("sift", sift_pair(image, n_threads, pool), image, n_threads, args.seconds)
                rows += pair("hog", hog_pair(image, n_threads, pool), image, n_threads, args.seconds)
    if args.json:
        print_json({"rows": rows, "opencv": cv2.__version__})
    else:
        print_table(rows)
    return 0


def bench_image(data: str | None, width: int, height: int) -> np.ndarray:
    """Return a reef photo at this size, or blurred noise where there is no data: (height, width) uint8."""
    root = find_data_or_none(data)
    photos = sorted(pathlib.Path(root, "underwater", "reef").glob("*.jpg")) if root else []
    if photos:
        photo = cv2.imdecode(np.frombuffer(photos[0].read_bytes(), np.uint8), cv2.IMREAD_GRAYSCALE)
        if photo is None:
            raise UsageError(f"{photos[0]}: not a picture; give a JPEG or PNG")
        return cv2.resize(photo, (width, height), interpolation=cv2.INTER_AREA)
    noise = np.random.default_rng(0).integers(0, 256, (height, width)).astype(np.uint8)
    return cv2.GaussianBlur(noise, (0, 0), 2)


Pair = tuple[Callable[[], object], Callable[[], object] | None, int]  # ours, OpenCV's or None, descriptors


def sift_pair(image: np.ndarray, n_threads: int, pool: ThreadPoolExecutor) -> Pair:
    """Return our dense SIFT and OpenCV's on the same grid; ours in threads by bands of grid rows."""
    dense = DenseSift(*image.shape, step_px=STEP_PX, bin_px=[BIN_PX])
    edges = np.linspace(0, len(dense.rows), n_threads + 1).astype(int)
    workspaces = [dense.new_workspace() for _ in range(n_threads)]

    def ours():
        parts = zip(edges[:-1], edges[1:], workspaces, strict=True)
        list(pool.map(lambda part: dense.compute_rows(image, 0, int(part[0]), int(part[1]), part[2]), parts))

    size = 2.0 / 3.0 * BIN_PX  # of a keypoint whose bins are BIN_PX wide: 3 * size / 2
    keypoints = [cv2.KeyPoint(float(x), float(y), size, 0, 0, 0) for y in dense.rows for x in dense.columns]
    sift = cv2.SIFT.create()
    one = (lambda: dense.compute(image)) if n_threads == 1 else ours
    return one, lambda: sift.compute(image, keypoints), len(keypoints)


def hog_pair(image: np.ndarray, n_threads: int, pool: ThreadPoolExecutor) -> Pair:
    """Return our HOG and OpenCV 4's of the whole image, None for the latter where OpenCV has none (5.0)."""
    height, width = (side // CELL_PX * CELL_PX for side in image.shape)
    image = np.ascontiguousarray(image[:height, :width])
    blocks = BlockHog(height, width, CELL_PX)
    edges = np.linspace(0, blocks.grid_shape[0], n_threads + 1).astype(int)
    workspaces = [blocks.new_workspace() for _ in range(n_threads)]

    def ours():
        parts = zip(edges[:-1], edges[1:], workspaces, strict=True)
        list(pool.map(lambda part: blocks.compute_rows(image, int(part[0]), int(part[1]), part[2]), parts))

    theirs: Callable[[], object] | None = None
    if hasattr(cv2, "HOGDescriptor"):
        block, cell = (2 * CELL_PX, 2 * CELL_PX), (CELL_PX, CELL_PX)
        descriptor = cv2.HOGDescriptor((width, height), block, cell, cell, 9, 1, -1, 0, 0.2, True)

        def theirs():
            return descriptor.compute(image)

    one = (lambda: blocks.compute(image)) if n_threads == 1 else ours
    return one, theirs, len(blocks.out)


def pair(kernel: str, functions: Pair, image: np.ndarray, n_threads: int, seconds: float) -> list[dict]:
    """Return the rows of our kernel and OpenCV's, measured turn by turn so that both see the same machine."""
    ours, theirs, descriptors = functions
    clock = time.thread_time if n_threads == 1 else time.perf_counter
    times = measure_in_turn([f for f in (ours, theirs) if f], clock, seconds)
    size = f"{image.shape[1]}x{image.shape[0]}"
    common = {"size": size, "threads": n_threads, "descriptors": descriptors}
    ratio = times[1] / times[0] if theirs else None
    rows = [common | {"kernel": kernel, "ms": times[0], "ratio_to_opencv": ratio}]
    if theirs:
        rows.append(common | {"kernel": f"cv2_{kernel}", "ms": times[1], "ratio_to_opencv": 1.0})
    return rows


def measure_in_turn(functions: list[Callable[[], object]], clock: Callable[[], float], seconds: float) -> list[float]:
    """Return each function's milliseconds: the least of at least 5 calls, taken in turn for about `seconds`.

    The least, as anything else on the machine only ever adds time; and where one thread is measured its own
    processor time, which does not count the turns that other programs take.
    """
    for function in functions:
        function()
    samples: list[list[float]] = [[] for _ in functions]
    end = time.perf_counter() + seconds
    while len(samples[0]) < 5 or time.perf_counter() < end:
        for function, times in zip(functions, samples, strict=True):
            start = clock()
            function()
            times.append((clock() - start) * 1e3)
    return [min(times) for times in samples]


def print_table(rows: list[dict]) -> None:
    """Print the rows for people."""
    print(f"OpenCV {cv2.__version__}; step {STEP_PX}, bins {BIN_PX} px, HOG cells {CELL_PX} px")
    print("ms: processor time on one thread, wall time on several; ratio: OpenCV's time / ours")
    print(f"{'size':>10} {'threads':>7} {'kernel':>9} {'ms':>8} {'descriptors':>11} {'ratio':>6}")
    for row in rows:
        ratio = "" if row["ratio_to_opencv"] is None else f"{row['ratio_to_opencv']:.1f}"
        print(
            f"{row['size']:>10} {row['threads']:>7} {row['kernel']:>9} {row['ms']:>8.2f} "
            f"{row['descriptors']:>11} {ratio:>6}"
        )
