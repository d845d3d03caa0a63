"""Counts what a kernel allocates: rule K3 says nothing beyond one descriptor for each array argument."""

import numba
import numpy as np
import pytest


def assert_no_allocation(kernel, *arguments) -> None:
    """Call a compiled kernel and fail if it allocates memory of its own; skip where the JIT is off.

    Arguments may be tuples of arrays.
    """
    if numba.config.DISABLE_JIT:
        pytest.skip("without the JIT kernels are plain functions")
    from numba.core.runtime import _nrt_python, rtsys

    _nrt_python.memsys_enable_stats()
    kernel(*arguments)
    before = rtsys.get_allocation_stats().alloc
    kernel(*arguments)
    made = rtsys.get_allocation_stats().alloc - before
    flat = [part for given in arguments for part in (given if isinstance(given, tuple) else (given,))]
    assert made <= sum(isinstance(part, np.ndarray) for part in flat)
