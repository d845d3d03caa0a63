"""Dense upright SIFT on a grid: one pass over the image, row by row, pooled at grid positions only.

Called by agent/features/dense_sift.py, which plans the tables and owns the buffers. It must not allocate, change the
image, or know about masks. Columns are kept sorted by phase (column modulo step): pooling then reads and
writes whole contiguous rows of the grid, which is what makes it faster than gathering patch by patch.
"""

import math
from collections import namedtuple

import numpy as np
from numba import types

from stillwatch.kernels._jit import kernel, reduction_kernel
from stillwatch.kernels._types import b1, f4, i8, matrix, read_matrix, read_vector, u1, vector
from stillwatch.kernels.orientations import ONE, ZERO, polar_gradients, spread_over_orientations

TAPS = 8  # summed at a time; tables of taps are padded to a multiple of it, with weight 0
BINS = 4  # spatial bins along each side (Lowe 2004, section 6.1)
ORIENTATIONS = 8
CHANNELS = BINS * ORIENTATIONS  # of one pooled row, before the rows are pooled

CLIP = np.float32(0.2)  # Lowe 2004, section 6.1


@kernel("int64(int64, int64)")
def mirror(index, length):
    """Return `index` reflected into [0, length) without repeating the edge (BORDER_REFLECT_101); length >= 1."""
    if length == 1:
        return 0
    period = 2 * length - 2
    folded = abs(index) % period
    return period - folded if folded >= length else folded


@reduction_kernel([(read_vector(f4), read_vector(i8), read_vector(f4), i8, i8, vector(f4))])
def weighted_sum(source, starts, weights, length, out_start, out):
    """Set out[out_start + j] = sum over t of weights[t] * source[starts[t] + j], for j < length.

    Parameters
    ----------
    source : ndarray of shape (n,), float32, read only
    starts, weights : ndarray of shape (n_taps,), int64 and float32, read only; n_taps a multiple of TAPS
    out : ndarray of shape (m,), float32, updated in place; must not overlap `source`

    Notes
    -----
    Eight taps at once: one load of `out` pays for eight products, and the compiler vectorises over j.
    """
    o = out[out_start : out_start + length]
    for c in range(0, starts.shape[0], TAPS):
        s0 = source[starts[c] : starts[c] + length]
        s1 = source[starts[c + 1] : starts[c + 1] + length]
        s2 = source[starts[c + 2] : starts[c + 2] + length]
        s3 = source[starts[c + 3] : starts[c + 3] + length]
        s4 = source[starts[c + 4] : starts[c + 4] + length]
        s5 = source[starts[c + 5] : starts[c + 5] + length]
        s6 = source[starts[c + 6] : starts[c + 6] + length]
        s7 = source[starts[c + 7] : starts[c + 7] + length]
        w0, w1, w2, w3 = weights[c], weights[c + 1], weights[c + 2], weights[c + 3]
        w4, w5, w6, w7 = weights[c + 4], weights[c + 5], weights[c + 6], weights[c + 7]
        if c == 0:
            for j in range(length):
                low = w0 * s0[j] + w1 * s1[j] + w2 * s2[j] + w3 * s3[j]
                o[j] = low + (w4 * s4[j] + w5 * s5[j] + w6 * s6[j] + w7 * s7[j])
        else:
            for j in range(length):
                low = w0 * s0[j] + w1 * s1[j] + w2 * s2[j] + w3 * s3[j]
                o[j] += low + (w4 * s4[j] + w5 * s5[j] + w6 * s6[j] + w7 * s7[j])


# Read-only tables for one image shape, step and bin size; made by agent/features/dense_sift.py. `n` is the number of
# places a phase has: grid columns, the reach on both sides, padding.
SiftPlan = namedtuple(
    "SiftPlan",
    (
        "rows",  # (n_rows,) int64: image row of each grid row
        "smoothing_taps",  # (n_taps,) int64: 0, 1, 2, ...
        "smoothing_weights",  # (n_taps,) float32: Gaussian, padded to TAPS with 0
        "columns",  # ((step + 2) * n,) int64: image column of each place; phases -1 .. step
        "inside",  # (step, n) float32: 1 where a place is in the image and not on its edge
        "bin_starts",  # (4, n_taps) int64: taps of each bin column in the orientation planes
        "bin_offsets",  # (4, n_taps) int64: the same taps as pixels from the patch's centre
        "bin_weights",  # (4, n_taps) float32
        "window_starts",  # (n_taps,) int64: taps of the whole window in a phase-sorted row
        "window_offsets",  # (n_taps,) int64
        "window_weights",  # (n_taps,) float32, sum 1
        "shape",  # (3,) int64: grid columns, reach in pixels, smoothing radius
        "mass",  # (1,) float32: sum of all bin weights over the patch
    ),
)

# Scratch of one thread. `n` and `step` as in the plan, `slot` = (4 * 8 + 1) * n.
SiftWorkspace = namedtuple(
    "SiftWorkspace",
    (
        "padded",  # (width + 2 * radius,) float32
        "smoothed",  # ((2 * radius + 1) * width,) float32: ring of rows smoothed along x
        "row",  # (width,) float32
        "phased",  # (3 * (step + 2) * n,) float32: ring of smoothed rows sorted by phase
        "angle",  # (step * n,) float32: of the gradient, in orientations
        "magnitude",  # (step * n,) float32
        "planes",  # (step * 8 * n,) float32: phase, orientation, place
        "pooled",  # ((2 * reach + 1) * slot,) float32: ring of rows pooled along x
        "starts",  # (max of n_taps,) int64
        "used",  # (max of n_taps,) float32
        "bins",  # (128 * n,) float32
        "grey",  # (n,) float32
        "sums",  # (4, n) float32
    ),
)

plan_type = types.NamedTuple(
    (read_vector(i8), read_vector(i8), read_vector(f4), read_vector(i8), read_matrix(f4))
    + (read_matrix(i8), read_matrix(i8), read_matrix(f4), read_vector(i8), read_vector(i8), read_vector(f4))
    + (read_vector(i8), read_vector(f4)),
    SiftPlan,
)
workspace_type = types.NamedTuple(
    (vector(f4),) * 8 + (vector(i8), vector(f4), vector(f4), vector(f4), matrix(f4)), SiftWorkspace
)
image_types = (read_matrix(u1), read_matrix(f4))  # each costs the agent about 10 MB of loaded code


@kernel([(image, i8, plan_type, workspace_type) for image in image_types])
def smooth_along_row(image, y, plan, workspace):
    """Smooth image row y along x into its slot of the ring `smoothed`."""
    width, radius, padded = image.shape[1], plan.shape[2], workspace.padded
    for x in range(width):
        padded[radius + x] = np.float32(image[y, x])
    for k in range(1, radius + 1):
        padded[radius - k] = padded[radius + mirror(-k, width)]
        padded[radius + width - 1 + k] = padded[radius + mirror(width - 1 + k, width)]
    slot = y % (2 * radius + 1)
    weighted_sum(padded, plan.smoothing_taps, plan.smoothing_weights, width, slot * width, workspace.smoothed)


@kernel([(i8, i8, plan_type, workspace_type)])
def phase_row(y, height, plan, workspace):
    """Finish the smoothing of row y along y, and write it sorted by phase into its slot of the ring `phased`."""
    row, weights, starts = workspace.row, plan.smoothing_weights, workspace.starts
    width, radius, size = row.shape[0], plan.shape[2], plan.columns.shape[0]
    slots = 2 * radius + 1
    for k in range(weights.shape[0]):
        starts[k] = (mirror(y + min(k, slots - 1) - radius, height) % slots) * width
    weighted_sum(workspace.smoothed, starts[: weights.shape[0]], weights, width, 0, row)
    out = workspace.phased[(y % 3) * size : (y % 3 + 1) * size]
    for j in range(size):
        out[j] = row[plan.columns[j]]


@kernel([(i8, i8, plan_type, workspace_type)])
def pool_row(y, height, plan, workspace):
    """Pool image row y along x: 4 bin columns, 8 orientations and the grey level of every grid column.

    Written to the row's slot of the ring `pooled`. Rows on the image's edge have no gradient, as in OpenCV.
    """
    phased, pooled, angle, magnitude = workspace.phased, workspace.pooled, workspace.angle, workspace.magnitude
    n_columns, reach, step, n = plan.shape[0], plan.shape[1], plan.inside.shape[0], plan.inside.shape[1]
    size, slot = (step + 2) * n, (y % (2 * reach + 1)) * (CHANNELS + 1) * n
    here, all_phases = (y % 3) * size, step * n
    grey = phased[here : here + size]
    weighted_sum(grey, plan.window_starts, plan.window_weights, n_columns, slot + CHANNELS * n, pooled)
    if y == 0 or y == height - 1:
        for j in range(slot, slot + CHANNELS * n):
            pooled[j] = ZERO
        return
    above, below = ((y - 1) % 3) * size + n, ((y + 1) % 3) * size + n
    polar_gradients(  # orientation 0 is +x, they turn towards -y: up in the picture
        phased[here : here + all_phases],
        phased[here + 2 * n : here + 2 * n + all_phases],
        phased[below : below + all_phases],
        phased[above : above + all_phases],
        plan.inside.reshape(all_phases),
        True,
        ONE,
        ZERO,
        angle,
        magnitude,
    )
    spread_over_orientations(angle, magnitude, n, ORIENTATIONS, 0, ORIENTATIONS, workspace.planes)
    length = (ORIENTATIONS - 1) * n + n_columns
    for b in range(BINS):
        at = slot + b * ORIENTATIONS * n
        weighted_sum(workspace.planes, plan.bin_starts[b], plan.bin_weights[b], length, at, pooled)


@kernel([(i8, i8, read_vector(i8), read_vector(f4), b1, i8, plan_type, workspace_type)])
def row_taps(centre, height, offsets, weights, clamp, begin, plan, workspace):
    """Fill `starts` and `used` with the ring places and weights of the rows at centre + offsets.

    Rows outside the image count as the nearest row where `clamp`, else weigh nothing.
    """
    slots, size = 2 * plan.shape[1] + 1, (CHANNELS + 1) * plan.inside.shape[1]
    for t in range(offsets.shape[0]):
        y = centre + offsets[t]
        row = min(max(y, 0), height - 1)
        workspace.starts[t] = (row % slots) * size + begin
        workspace.used[t] = weights[t] if clamp or row == y else ZERO


@kernel([(i8, i8, plan_type, workspace_type)])
def pool_columns(centre, height, plan, workspace):
    """Pool the rows around a grid row along y into `bins` (bin row, bin column, orientation) and `grey`."""
    n, starts, used = plan.inside.shape[1], workspace.starts, workspace.used
    taps = plan.bin_offsets.shape[1]
    for b in range(BINS):
        row_taps(centre, height, plan.bin_offsets[b], plan.bin_weights[b], False, 0, plan, workspace)
        weighted_sum(workspace.pooled, starts[:taps], used[:taps], CHANNELS * n, b * CHANNELS * n, workspace.bins)
    taps = plan.window_offsets.shape[0]
    row_taps(centre, height, plan.window_offsets, plan.window_weights, True, CHANNELS * n, plan, workspace)
    weighted_sum(workspace.pooled, starts[:taps], used[:taps], n, 0, workspace.grey)


@reduction_kernel([(vector(f4), matrix(f4))])
def clip_and_measure(bins, sums):
    """Clip the pooled bins of one grid row at 0.2 of their norm, and measure them before and after.

    Parameters
    ----------
    bins : ndarray of shape (128 * n,), float32, updated in place
    sums : ndarray of shape (4, n), float32, output
        Sum before, clip level, sum after, sum of squares after.

    Notes
    -----
    Four bins at a time, as loading and storing the sums for each took twice as long.
    """
    n = sums.shape[1]
    before, clip, after, squares = sums[0], sums[1], sums[2], sums[3]
    for j in range(n):
        before[j] = clip[j] = after[j] = squares[j] = ZERO
    for d in range(0, BINS * CHANNELS, 4):
        r0, r1 = bins[d * n : (d + 1) * n], bins[(d + 1) * n : (d + 2) * n]
        r2, r3 = bins[(d + 2) * n : (d + 3) * n], bins[(d + 3) * n : (d + 4) * n]
        for j in range(n):
            before[j] += (r0[j] + r1[j]) + (r2[j] + r3[j])
            clip[j] += (r0[j] * r0[j] + r1[j] * r1[j]) + (r2[j] * r2[j] + r3[j] * r3[j])
    for j in range(n):
        clip[j] = CLIP * math.sqrt(clip[j])
    for d in range(0, BINS * CHANNELS, 4):
        r0, r1 = bins[d * n : (d + 1) * n], bins[(d + 1) * n : (d + 2) * n]
        r2, r3 = bins[(d + 2) * n : (d + 3) * n], bins[(d + 3) * n : (d + 4) * n]
        for j in range(n):
            c0, c1, c2, c3 = min(r0[j], clip[j]), min(r1[j], clip[j]), min(r2[j], clip[j]), min(r3[j], clip[j])
            r0[j], r1[j], r2[j], r3[j] = c0, c1, c2, c3
            after[j] += (c0 + c1) + (c2 + c3)
            squares[j] += (c0 * c0 + c1 * c1) + (c2 * c2 + c3 * c3)


@reduction_kernel([(read_vector(f4), read_matrix(f4), i8, i8, i8, b1, f4, f4, matrix(f4), vector(f4), vector(b1))])
def write_row(bins, sums, first, n_columns, column, root, contrast, mass, out, energy, flat):
    """Scale one grid row's clipped bins to unit norm and write them patch by patch.

    Parameters
    ----------
    bins, sums : as `clip_and_measure` leaves them
    first, column : int
        Index of the row's first patch, and of the descriptor's first value in a row of `out`.
    root : bool
        RootSIFT: the square root of the L1-normalised descriptor (Arandjelovic and Zisserman 2012).
    contrast, mass : float
        Patches whose mean gradient magnitude sum / mass is below `contrast` are flat: zeros, never noise
        scaled up.
    out : ndarray of shape (n_patches, n_dims), float32
    energy, flat : ndarray of shape (n_patches,), float32 and bool
    """
    n = sums.shape[1]
    for g in range(n_columns):
        i = first + g
        energy[i] = sums[0, g] / mass
        flat[i] = energy[i] < contrast or sums[3, g] <= ZERO
        total = sums[2, g] if root else math.sqrt(sums[3, g])
        scale = ZERO if flat[i] else ONE / total
        o = out[i, column : column + BINS * CHANNELS]
        for d in range(BINS * CHANNELS):
            o[d] = bins[d * n + g] * scale
        if root:
            for d in range(BINS * CHANNELS):
                o[d] = math.sqrt(o[d])


@kernel(
    [
        (image, i8, i8, plan_type, i8, b1, f4, matrix(f4), vector(f4), vector(f4), vector(b1), workspace_type)
        for image in image_types
    ]
)
def dense_sift(image, first, last, plan, column, root, contrast, out, energy, brightness, flat, workspace):
    """Describe the grid rows first to last - 1 of one image at one scale.

    Parameters
    ----------
    image : ndarray of shape (height, width), uint8, uint16 or float32 (finite), read only
    plan : SiftPlan made for this shape, step and bin size
    column : int
        Where the 128 values start in a row of `out`; their order is bin row, bin column, orientation.
    root, contrast : bool, float
        See `write_row`; contrast in grey levels between pixels two apart.
    out : ndarray of shape (n_rows * n_columns, n_dims), float32
        Descriptors of unit norm, or zeros where flat.
    energy, brightness : ndarray of shape (n_rows * n_columns,), float32
        Mean gradient magnitude and mean grey level under the descriptor's window.
    flat : ndarray of shape (n_rows * n_columns,), bool
    workspace : SiftWorkspace, overwritten; one a thread

    Notes
    -----
    Each image row is smoothed, differentiated and pooled along x once, whatever the overlap of patches; rings
    hold the few rows that are still needed. The values do not depend on how the grid rows are split into calls.
    """
    height, n_columns, reach, radius = image.shape[0], plan.shape[0], plan.shape[1], plan.shape[2]
    smoothed = phased = pooled = 0
    for r in range(first, last):
        end = min(plan.rows[r] + reach, height - 1) + 1
        for y in range(max(pooled, plan.rows[r] - reach), end):
            for v in range(max(phased, y - 1), min(y + 2, height)):
                for u in range(max(smoothed, v - radius), min(v + radius + 1, height)):
                    smooth_along_row(image, u, plan, workspace)
                smoothed = min(v + radius + 1, height)
                phase_row(v, height, plan, workspace)
            phased = min(y + 2, height)
            pool_row(y, height, plan, workspace)
        pooled = end
        pool_columns(plan.rows[r], height, plan, workspace)
        clip_and_measure(workspace.bins, workspace.sums)
        at = r * n_columns
        mass = plan.mass[0]
        write_row(workspace.bins, workspace.sums, at, n_columns, column, root, contrast, mass, out, energy, flat)
        for g in range(n_columns):
            brightness[at + g] = workspace.grey[g]
