"""Names for the array types in kernel signatures: inputs read only, outputs and workspaces writable.

Imported by the modules of kernels/. It must not hold a kernel or any value but types.
"""

from numba import types

f4, f8, i1, i2, i4, i8 = (types.float32, types.float64, types.int8, types.int16, types.int32, types.int64)
u1, u2, u4, b1 = types.uint8, types.uint16, types.uint32, types.boolean


def vector(dtype):
    """Return the type of a C-contiguous writable array of one dimension."""
    return types.Array(dtype, 1, "C")


def matrix(dtype):
    """Return the type of a C-contiguous writable array of two dimensions."""
    return types.Array(dtype, 2, "C")


def read_vector(dtype):
    """Return the type of a C-contiguous array of one dimension that the kernel only reads."""
    return types.Array(dtype, 1, "C", readonly=True)


def read_matrix(dtype):
    """Return the type of a C-contiguous array of two dimensions that the kernel only reads."""
    return types.Array(dtype, 2, "C", readonly=True)


def cube(dtype):
    """Return the type of a C-contiguous writable array of three dimensions."""
    return types.Array(dtype, 3, "C")


def read_cube(dtype):
    """Return the type of a C-contiguous array of three dimensions that the kernel only reads."""
    return types.Array(dtype, 3, "C", readonly=True)
