"""Histograms of oriented gradients: Dalal-Triggs blocks as OpenCV 4 has them, and Felzenszwalb's 31 values a cell.

Called by agent/features/hog.py, which plans the tables and owns the buffers. It must not allocate or change the image.
Rows are kept sorted by phase (column modulo cell), as in kernels/sift.py, so that pooling is contiguous.
"""

import math
from collections import namedtuple

import numpy as np
from numba import types

from stillwatch.kernels._jit import kernel, reduction_kernel
from stillwatch.kernels._types import b1, f4, i8, matrix, read_matrix, read_vector, vector
from stillwatch.kernels.orientations import EIGHT, FOUR, ONE, ZERO, polar_gradients, spread_over_orientations
from stillwatch.kernels.sift import image_types, mirror, weighted_sum

UNSIGNED, SIGNED = 9, 18  # orientations: Dalal and Triggs 2005, section 6.3; Felzenszwalb et al. 2010, section 6
GROUP = UNSIGNED  # orientations pooled at a time: their planes stay in the core's own cache
BLOCK = 4 * UNSIGNED
CELL = SIGNED + UNSIGNED + 4
HALF = np.float32(0.5)
CLIP = np.float32(0.2)
TEXTURE = np.float32(0.2357)  # 1 / sqrt(18), as in the authors' features.cc


# Read-only tables for one image shape and cell size; made by agent/features/hog.py. `n`: places a phase has.
HogPlan = namedtuple(
    "HogPlan",
    (
        "columns",  # ((cell + 2) * n,) int64: image column of each place; phases -1 .. cell
        "inside",  # (cell, n) float32: 1 where a place is in the image
        "starts",  # (n_bins, n_taps) int64: taps of each bin column in the orientation planes
        "offsets",  # (n_bins, n_taps) int64: taps of each bin row, in pixels from the row of output's start
        "weights",  # (n_bins, n_taps) float32, of columns and of rows
        "shape",  # (5,) int64: output rows, output columns, ring slots, first and last offset in use
    ),
)

# Scratch of one thread; K = 9 or 18 orientations.
HogWorkspace = namedtuple(
    "HogWorkspace",
    (
        "phased",  # (3 * (cell + 2) * n,) float32: ring of rows sorted by phase
        "angle",  # (cell * n,) float32: of the gradient, in orientations
        "magnitude",  # (cell * n,) float32
        "planes",  # (cell * GROUP * n,) float32: phase, orientation, place
        "pooled",  # (n_slots * n_bins * K * n,) float32: ring of rows pooled along x
        "starts",  # (n_taps,) int64
        "used",  # (n_taps,) float32
        "bins",  # (n_bins * n_bins * K * n,) float32: bin row, bin column, orientation, place
        "sums",  # (4, n) float32
        "done",  # (2,) int64: rows loaded and rows pooled so far
    ),
)

plan_type = types.NamedTuple(
    (read_vector(i8), read_matrix(f4), read_matrix(i8), read_matrix(i8), read_matrix(f4), read_vector(i8)), HogPlan
)
workspace_type = types.NamedTuple(
    (vector(f4),) * 5 + (vector(i8), vector(f4), vector(f4), matrix(f4), vector(i8)), HogWorkspace
)


@kernel([(image, i8, b1, plan_type, workspace_type) for image in image_types])
def load_row(image, y, gamma, plan, workspace):
    """Write image row y, its square root where `gamma`, into its slot of the ring `phased`."""
    size = plan.columns.shape[0]
    out = workspace.phased[(y % 3) * size : (y % 3 + 1) * size]
    for j in range(size):
        out[j] = np.float32(image[y, plan.columns[j]])
    if gamma:
        for j in range(size):
            out[j] = math.sqrt(out[j])


@kernel([(i8, i8, i8, plan_type, workspace_type)])
def pool_row(y, height, n_orientations, plan, workspace):
    """Pool image row y along x into every bin column of every output column, in its slot of the ring `pooled`.

    Orientations turn from +x towards +y, down in the picture: 18 signed ones, k at k * 20 degrees, or 9 unsigned, k at
    (k + 0.5) * 20.
    """
    cell, n = plan.inside.shape
    n_bins, size, all_phases = plan.starts.shape[0], (cell + 2) * n, cell * n
    slot = (y % plan.shape[2]) * n_bins * n_orientations * n
    phased, angle, magnitude = workspace.phased, workspace.angle, workspace.magnitude
    here = (y % 3) * size
    above, below = (mirror(y - 1, height) % 3) * size + n, (mirror(y + 1, height) % 3) * size + n
    is_signed = n_orientations == SIGNED
    polar_gradients(
        phased[here : here + all_phases],
        phased[here + 2 * n : here + 2 * n + all_phases],
        phased[above : above + all_phases],
        phased[below : below + all_phases],
        plan.inside.reshape(all_phases),
        is_signed,
        np.float32(n_orientations) / (EIGHT if is_signed else FOUR),
        ZERO if is_signed else HALF,
        angle,
        magnitude,
    )
    length = (GROUP - 1) * n + plan.shape[1]
    for first in range(0, n_orientations, GROUP):
        spread_over_orientations(angle, magnitude, n, n_orientations, first, first + GROUP, workspace.planes)
        for b in range(n_bins):
            at = slot + (b * n_orientations + first) * n
            weighted_sum(workspace.planes, plan.starts[b], plan.weights[b], length, at, workspace.pooled)


@kernel([(image, i8, i8, b1, plan_type, workspace_type) for image in image_types])
def pool_output_row(image, r, n_orientations, gamma, plan, workspace):
    """Pool everything under output row r into `bins`; called for rising r, with `done` zero at first."""
    height, cell, n = image.shape[0], plan.inside.shape[0], plan.inside.shape[1]
    w, n_bins, slots = workspace, plan.starts.shape[0], plan.shape[2]
    size = n_bins * n_orientations * n
    first, last = r * cell + plan.shape[3], r * cell + plan.shape[4]
    for y in range(max(w.done[1], first), min(last, height - 1) + 1):
        for v in range(max(w.done[0], y - 1), min(y + 2, height)):
            load_row(image, v, gamma, plan, w)
        w.done[0] = min(y + 2, height)
        pool_row(y, height, n_orientations, plan, w)
    w.done[1] = min(last, height - 1) + 1
    for b in range(n_bins):
        for t in range(plan.offsets.shape[1]):
            y = r * cell + plan.offsets[b, t]
            row = min(max(y, 0), height - 1)
            w.starts[t] = (row % slots) * size
            w.used[t] = plan.weights[b, t] if row == y else ZERO
        weighted_sum(w.pooled, w.starts, w.used, size, b * size, w.bins)


@reduction_kernel([(vector(f4), matrix(f4))])
def clip_blocks(bins, sums):
    """Normalise and clip the 36 bins of a row of blocks: L2-Hys up to its last division.

    `sums` (4, n): row 0 becomes the factor that finishes it. The two constants are OpenCV's, in hog.cpp.
    """
    n = sums.shape[1]
    squares, clipped = sums[0], sums[1]
    for j in range(n):
        squares[j] = clipped[j] = ZERO
    for d in range(BLOCK):
        row = bins[d * n : (d + 1) * n]
        for j in range(n):
            squares[j] += row[j] * row[j]
    for j in range(n):
        squares[j] = ONE / (math.sqrt(squares[j]) + np.float32(0.1 * BLOCK))
    for d in range(BLOCK):
        row = bins[d * n : (d + 1) * n]
        for j in range(n):
            row[j] = min(row[j] * squares[j], CLIP)
            clipped[j] += row[j] * row[j]
    for j in range(n):
        squares[j] = ONE / (math.sqrt(clipped[j]) + np.float32(1e-3))


@kernel([(image, i8, i8, b1, plan_type, matrix(f4), workspace_type) for image in image_types])
def hog_blocks(image, first, last, gamma, plan, out, workspace):
    """Compute Dalal-Triggs descriptors of the block rows first to last - 1: blocks of 2 x 2 cells, one cell apart.

    Parameters
    ----------
    image : ndarray of shape (height, width), uint8, uint16 or float32 (finite), read only
    gamma : bool
        Take the square root of grey levels first.
    out : ndarray of shape (n_block_rows * n_block_columns, 36), float32
        Cell column, cell row, orientation: OpenCV's order inside a block. Blocks go row by row, where OpenCV
        goes column by column.

    Notes
    -----
    Dalal and Triggs, CVPR 2005, section 6: unsigned orientations, interpolation over space and orientation,
    Gaussian window of a quarter of the block, L2-Hys. A block's Gaussian times its triangular bins is
    separable, so the window costs nothing. Equal to cv2.HOGDescriptor to 1e-3 but for its arctan.
    """
    workspace.done[:] = 0
    n, n_columns = plan.inside.shape[1], plan.shape[1]
    for r in range(first, last):
        pool_output_row(image, r, UNSIGNED, gamma, plan, workspace)
        clip_blocks(workspace.bins, workspace.sums)
        for c in range(n_columns):
            o = out[r * n_columns + c]
            factor = workspace.sums[0, c]
            for row in range(2):
                for column in range(2):
                    source, target = (row * 2 + column) * UNSIGNED, (column * 2 + row) * UNSIGNED
                    for k in range(UNSIGNED):
                        o[target + k] = workspace.bins[(source + k) * n + c] * factor


@kernel([(image, plan_type, matrix(f4), matrix(f4), workspace_type) for image in image_types])
def hog_cells(image, plan, cells, energy, workspace):
    """Fill the signed histograms of all cells, and each cell's energy over unsigned orientations.

    cells (n_rows, 18 * n) float32: orientation, cell column; energy (n_rows, n) float32.
    """
    workspace.done[:] = 0
    n = plan.inside.shape[1]
    for r in range(plan.shape[0]):
        pool_output_row(image, r, SIGNED, False, plan, workspace)
        for j in range(SIGNED * n):
            cells[r, j] = workspace.bins[j]
        for j in range(n):
            energy[r, j] = ZERO
        for k in range(UNSIGNED):
            for j in range(n):
                both = cells[r, k * n + j] + cells[r, (k + UNSIGNED) * n + j]
                energy[r, j] += both * both


@reduction_kernel([(read_vector(f4), read_vector(f4), read_vector(f4), i8, f4, matrix(f4))])
def cell_norms(above, here, below, n_columns, epsilon, norms):
    """Fill the four inverse norms of each cell of a row: over the 2 x 2 cells up-left, up-right, down-left, down-right.

    Cells outside the image count as the nearest inside.
    """
    for c in range(n_columns):
        left, right = max(c - 1, 0), min(c + 1, n_columns - 1)
        up_here, down_here = above[c] + here[c], below[c] + here[c]
        norms[0, c] = ONE / math.sqrt(up_here + above[left] + here[left] + epsilon)
        norms[1, c] = ONE / math.sqrt(up_here + above[right] + here[right] + epsilon)
        norms[2, c] = ONE / math.sqrt(down_here + below[left] + here[left] + epsilon)
        norms[3, c] = ONE / math.sqrt(down_here + below[right] + here[right] + epsilon)


@reduction_kernel([(read_matrix(f4), read_matrix(f4), i8, f4, matrix(f4), matrix(f4), matrix(f4))])
def felzenszwalb(cells, energy, n_columns, epsilon, norms, planes, out):
    """Turn cell histograms into 31 values a cell: 18 signed, 9 unsigned orientations, 4 texture energies.

    Parameters
    ----------
    cells, energy : as `hog_cells` leaves them
    epsilon : float
        Added under each root: (grey levels * pixels) squared.
    norms : ndarray of shape (4, n), planes : ndarray of shape (31, n), float32, workspaces
    out : ndarray of shape (n_rows * n_columns, 31), float32

    Notes
    -----
    Felzenszwalb, Girshick, McAllester and Ramanan, PAMI 32(9), 2010, section 6.2, as in their features.cc; the
    cells at the image's edge are kept, their missing neighbours being themselves.
    """
    n = norms.shape[1]
    n_rows = energy.shape[0]
    for r in range(n_rows):
        cell_norms(energy[max(r - 1, 0)], energy[r], energy[min(r + 1, n_rows - 1)], n_columns, epsilon, norms)
        for q in range(4):
            for j in range(n):
                planes[SIGNED + UNSIGNED + q, j] = ZERO
        for k in range(SIGNED):
            h = cells[r, k * n : (k + 1) * n]
            for j in range(n_columns):
                a, b = min(h[j] * norms[0, j], CLIP), min(h[j] * norms[1, j], CLIP)
                c, d = min(h[j] * norms[2, j], CLIP), min(h[j] * norms[3, j], CLIP)
                planes[k, j] = HALF * (a + b + c + d)
                planes[27, j] += TEXTURE * a
                planes[28, j] += TEXTURE * b
                planes[29, j] += TEXTURE * c
                planes[30, j] += TEXTURE * d
        for k in range(UNSIGNED):
            h, g = cells[r, k * n : (k + 1) * n], cells[r, (k + UNSIGNED) * n : (k + UNSIGNED + 1) * n]
            for j in range(n_columns):
                both = h[j] + g[j]
                a, b = min(both * norms[0, j], CLIP), min(both * norms[1, j], CLIP)
                c, d = min(both * norms[2, j], CLIP), min(both * norms[3, j], CLIP)
                planes[SIGNED + k, j] = HALF * (a + b + c + d)
        for c in range(n_columns):
            for d in range(CELL):
                out[r * n_columns + c, d] = planes[d, c]
