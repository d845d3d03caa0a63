"""The descriptor kernels allocate nothing that grows with the image: numba's own counter says so."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(bool(os.environ.get("NUMBA_DISABLE_JIT")), reason="plain Python has no such counter")

PROGRAM = """
import numpy as np
from numba.core.runtime import rtsys
from stillwatch.features.dense_sift import DenseSift
from stillwatch.features.hog import BlockHog, CellHog

def allocations(call):
    before = rtsys.get_allocation_stats().mi_alloc
    call()
    return rtsys.get_allocation_stats().mi_alloc - before

for make in (DenseSift, BlockHog, CellHog):
    counts = []
    for height, width in ((48, 48), (240, 320)):
        owner, image = make(height, width), np.zeros((height, width), np.uint8)
        owner.compute(image)
        counts.append(allocations(lambda: owner.compute(image)))
    print(make.__name__, *counts)
"""


def test_a_large_image_takes_no_more_allocations_than_a_small_one():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"NUMBA_NRT_STATS": "1"},
        capture_output=True,
        text=True,
        timeout=280,
        check=True,
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) == 3
    for name, small, large in lines:
        assert small == large, name  # what is left is numba's box around each array argument
