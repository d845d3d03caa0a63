"""A kernel allocates nothing: one that would is refused by the compiler, so that no test has to find it."""

import os

import numba
import numpy as np
import pytest
from numba import types

from stillwatch.kernels._jit import kernel
from stillwatch.kernels._types import f8, matrix, vector

pytestmark = pytest.mark.skipif(bool(os.environ.get("NUMBA_DISABLE_JIT")), reason="plain Python compiles nothing")


def make_scratch(x, out):
    scratch = np.zeros(3)
    out[0, 0] = scratch[0] + x[0]


def compare_all(x, out):
    out[0, 0] = 1.0 if np.any(x != 0.0) else 0.0


def copy_row(x, out):
    out[0] = x


def copy_values(x, out):
    for d in range(x.shape[0]):
        out[0, d] = x[d]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (make_scratch, "Only accept returning of array passed into the function"),
        (compare_all, "NRT required but not enabled"),
        (copy_row, "NRT required but not enabled"),
    ],
)
def test_a_kernel_that_allocates_does_not_compile(function, message):
    with pytest.raises(numba.core.errors.NumbaError, match=message):
        kernel(types.void(vector(f8), matrix(f8)), cache=False)(function)


def test_a_kernel_that_takes_slices_of_its_arguments_does():
    out = np.zeros((2, 3))
    kernel(types.void(vector(f8), matrix(f8)), cache=False)(copy_values)(np.arange(3.0), out)
    assert out.tolist() == [[0.0, 1.0, 2.0], [0.0, 0.0, 0.0]]
