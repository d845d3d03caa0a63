"""The full family's small loops: gathering, packed moments, Cholesky factors. Its matrix products are the owner's.

Called by agent/learn/mixture/families. It must not multiply large matrices: np.matmul in the owner is the faster.
"""

import math

from numba import types

from stillwatch.kernels._jit import kernel, reduction_kernel
from stillwatch.kernels._types import f4, f8, i8, matrix, read_matrix, read_vector, vector
from stillwatch.kernels.mixture_common import CONSTANT, EVIDENCE, EXPECTED, SCALE, SHAPE, STRENGTH, digamma

LOG_2PI = math.log(2.0 * math.pi)
LOG_2 = math.log(2.0)
LOG_PI = math.log(math.pi)


@kernel(f8(read_matrix(f4), read_vector(i8), read_vector(f8), read_vector(f8), vector(f8), matrix(f8)))
def gather_weighted(x, rows, weights, centre, first_moment, out):
    """Write sqrt(w) (x - centre) of some items, add w (x - centre) to `first_moment`, return the sum of weights.

    x : ndarray of shape (n_items, n_dims), float32;  rows : (n,), int64;  weights : (n,), float64
    first_moment : ndarray of shape (n_dims,), float64, added to;  out : (>= n, n_dims), float64, written
    """
    count = 0.0
    for i in range(rows.shape[0]):
        weight = weights[i]
        root = math.sqrt(weight)
        count += weight
        for d in range(centre.shape[0]):
            difference = x[rows[i], d] - centre[d]
            first_moment[d] += weight * difference
            out[i, d] = root * difference
    return count


@kernel(types.void(read_matrix(f4), read_vector(i8), read_vector(f8), matrix(f8)))
def gather_centred(x, rows, centre, out):
    """Write x - centre of some items.

    out : ndarray of shape (>= n, n_dims), float64, written
    """
    for i in range(rows.shape[0]):
        for d in range(centre.shape[0]):
            out[i, d] = x[rows[i], d] - centre[d]


@kernel(types.void(read_matrix(f4), read_vector(i8), read_vector(f8), i8, vector(f8)))
def add_packed_moments(second, rows, weights, n_clumps, packed):
    """Add the weighted packed second moments of the clumps in a list.

    second : ndarray of shape (n_clumps, n_packed), float32;  packed : ndarray of shape (n_packed,), added to
    """
    for i in range(rows.shape[0]):
        if rows[i] < n_clumps:
            for p in range(packed.shape[0]):
                packed[p] += weights[i] * second[rows[i], p]


@kernel(types.void(read_matrix(f8), f8, read_vector(f8), vector(f8)))
def add_packed_square(square, count, offset, packed):
    """Add the lower triangle of `square` - count offset offset^T to a packed symmetric matrix, diagonal >= 0.

    square : ndarray of shape (n_dims, n_dims), float64;  packed : ndarray of shape (n_dims (n_dims + 1) / 2,)
    """
    p = 0
    for i in range(square.shape[0]):
        for j in range(i + 1):
            packed[p] += square[i, j] - count * offset[i] * offset[j]
            p += 1
        packed[p - 1] = max(packed[p - 1], 0.0)


@kernel(types.void(read_vector(f8), f8, read_vector(f8), f8, matrix(f8)))
def posterior_scale(packed, pull, mean, diagonal, out):
    """Write the posterior scale matrix S_0 + scatter + kappa_0 N / kappa mean mean^T, lower triangle.

    packed : ndarray of shape (n_packed,), float64, scatter about `mean`;  diagonal : float64, S_0 = diagonal * I
    """
    p = 0
    for i in range(out.shape[0]):
        for j in range(i + 1):
            out[i, j] = packed[p] + pull * mean[i] * mean[j]
            p += 1
        out[i, i] += diagonal


@reduction_kernel(f8(matrix(f8)))
def _factor(a):
    """Replace the lower triangle by its Cholesky factor; return the least squared pivot, or what stopped it."""
    n = a.shape[0]
    least = a[0, 0]
    for i in range(n):
        for j in range(i):
            total = a[i, j]
            for m in range(j):
                total -= a[i, m] * a[j, m]
            a[i, j] = total / a[j, j]
        total = a[i, i]
        for m in range(i):
            total -= a[i, m] * a[i, m]
        least = min(least, total)
        if not total > 0.0:
            return total
        a[i, i] = math.sqrt(total)
    return least


@kernel(types.void(read_matrix(f8), matrix(f8)))
def invert_lower(factor, inverse):
    """Write the inverse of a lower triangular matrix, zeros above the diagonal; rows are read along memory."""
    n = factor.shape[0]
    for i in range(n):
        inverse[i, :] = 0.0
        for m in range(i):
            weight = factor[i, m]
            for j in range(m + 1):
                inverse[i, j] -= weight * inverse[m, j]
        pivot = 1.0 / factor[i, i]
        for j in range(i):
            inverse[i, j] *= pivot
        inverse[i, i] = pivot


@kernel(i8(read_vector(f8), f8, read_vector(f8), f8, matrix(f8), vector(f8)))
def factor_scale(packed, pull, mean, diagonal, factor, log_det):
    """Factor the posterior scale matrix; bounded jitter where rounding made it indefinite, then its diagonal alone.

    factor : ndarray of shape (n_dims, n_dims), float64, written: lower Cholesky factor
    log_det : ndarray of shape (1,), float64, written

    Returns 0, or 1 where jitter was needed, or 2 where the component was reduced to its diagonal.
    """
    n = factor.shape[0]
    trace = 0.0
    for attempt in range(5):
        posterior_scale(packed, pull, mean, diagonal, factor)
        if attempt == 0:
            for i in range(n):
                trace += factor[i, i]
        else:
            for i in range(n):
                factor[i, i] += trace / n * 10.0 ** (2 * attempt - 16)
        status = min(attempt, 1)
        if attempt == 4:
            status = 2
            for i in range(n):
                factor[i, :i] = 0.0
        if _factor(factor) > 0.0:
            break
    log_det[0] = 0.0
    for i in range(n):
        log_det[0] += 2.0 * math.log(factor[i, i])
    return status


@kernel(f8(f8, i8, read_vector(f8), f8))
def evidence(count, n_dims, prior, log_det):
    """Return the log marginal likelihood of `count` (fractional, magnified) points from the determinant of S."""
    total = 0.5 * (
        prior[SHAPE] * n_dims * math.log(prior[SCALE])
        - (prior[SHAPE] + count) * log_det
        + n_dims * (math.log(prior[STRENGTH] / (prior[STRENGTH] + count)) - count * LOG_PI)
    )
    for i in range(n_dims):
        total += math.lgamma(0.5 * (prior[SHAPE] + count - i)) - math.lgamma(0.5 * (prior[SHAPE] - i))
    return total


@kernel(types.void(f8, read_vector(f8), read_vector(f8), f8, read_matrix(f8), matrix(f8), vector(f8), vector(f8)))
def posterior(count, mean, prior, log_det, factor, whiten, post_mean, out):
    """Write the Normal-inverse-Wishart posterior of a component from its statistics (thesis 2.8).

    prior : ndarray of shape (3,), float64: kappa_0, nu_0, s_0 with S_0 = s_0 I; the prior mean is the origin
    factor, log_det : of the posterior scale S
    whiten : ndarray of shape (n_dims, n_dims), float64, written: sqrt(nu) L^-1, so that E[Lambda] = whiten^T whiten
    post_mean : ndarray of shape (n_dims,), float64, written
    out : ndarray of shape (3,), float64, written: constant of E[log N], log evidence (E[log lik] - KL), E[log lik]
    """
    n = mean.shape[0]
    kappa = prior[STRENGTH] + count
    nu = prior[SHAPE] + count
    invert_lower(factor, whiten)
    norm = 0.0
    bend = 0.0
    for i in range(n):
        along = 0.0
        for j in range(i + 1):
            norm += whiten[i, j] * whiten[i, j]
            along += whiten[i, j] * mean[j]
            whiten[i, j] *= math.sqrt(nu)
        bend += along * along
        post_mean[i] = count * mean[i] / kappa
    expected = n * LOG_2 - log_det
    for i in range(n):
        expected += digamma(0.5 * (nu - i))
    out[CONSTANT] = 0.5 * (expected - n * LOG_2PI - n / kappa)
    out[EVIDENCE] = evidence(count, n, prior, log_det)
    # tr(S^-1 scatter) + N d^T S^-1 d, with scatter = S - S_0 - kappa_0 N / kappa mean mean^T and d = kappa_0/kappa mean
    shrink = prior[STRENGTH] / kappa
    fit = n - prior[SCALE] * norm - shrink * count * bend + count * shrink * shrink * bend
    out[EXPECTED] = count * out[CONSTANT] - 0.5 * nu * fit


@reduction_kernel(types.void(read_matrix(f8), i8, f8, vector(f8)))
def log_joint_rows(whitened, n_rows, constant, out):
    """Write constant - |y|^2 / 2 of whitened differences.

    whitened : ndarray of shape (>= n_rows, n_dims), float64;  out : ndarray of shape (>= n_rows,), written
    """
    for i in range(n_rows):
        distance = 0.0
        for d in range(whitened.shape[1]):
            distance += whitened[i, d] * whitened[i, d]
        out[i] = constant - 0.5 * distance


@reduction_kernel(types.void(read_matrix(f8), read_vector(f8), i8, f8, i8, matrix(f8)))
def log_joint_column(whitened, offset, n_rows, constant, k, out):
    """Write constant - |y - offset|^2 / 2 to column k of a block of log joints.

    whitened : ndarray of shape (>= n_rows, n_dims), float64, W x;  offset : (n_dims,), W m
    """
    for i in range(n_rows):
        distance = 0.0
        for d in range(whitened.shape[1]):
            difference = whitened[i, d] - offset[d]
            distance += difference * difference
        out[i, k] = constant - 0.5 * distance


@kernel(types.void(read_matrix(f8), vector(f8)))
def pack_doubled(square, packed):
    """Pack a symmetric matrix with its off-diagonal entries doubled, so that tr(A C) = packed(A) . packed(C)."""
    p = 0
    for i in range(square.shape[0]):
        for j in range(i):
            packed[p] = 2.0 * square[i, j]
            p += 1
        packed[p] = square[i, i]
        p += 1


@reduction_kernel(f8(read_vector(f8), read_matrix(f4), i8))
def trace_product(precision, second, clump):
    """Return tr(E[Lambda] C) of one clump from packed matrices, the first with its off-diagonal entries doubled."""
    total = 0.0
    for p in range(precision.shape[0]):
        total += precision[p] * second[clump, p]
    return total


@kernel(types.void(read_vector(f8), read_matrix(f4), read_vector(i8), i8, vector(f8)))
def subtract_traces(precision, second, rows, n_clumps, out):
    """Subtract tr(E[Lambda] C) / 2 from the log joints of the clumps in a list (the average of F(x), 2.10)."""
    for i in range(rows.shape[0]):
        if rows[i] < n_clumps:
            out[i] -= 0.5 * trace_product(precision, second, rows[i])


@kernel(types.void(read_vector(f8), read_matrix(f4), i8, i8, i8, i8, matrix(f8)))
def subtract_traces_block(precision, second, first, n_rows, n_clumps, k, out):
    """As `subtract_traces`, for column k of a block of items from `first`."""
    for row in range(min(n_rows, n_clumps - first)):
        out[row, k] -= 0.5 * trace_product(precision, second, first + row)


@kernel(types.void(read_vector(f8), vector(f8), vector(f8)))
def packed_direction(packed, direction, workspace):
    """Improve `direction` to the leading eigenvector of a packed symmetric matrix by power iterations.

    direction : ndarray of shape (n_dims,), float64: a start of unit length in, a unit vector out
    """
    n = direction.shape[0]
    for _ in range(20):
        workspace[:] = 0.0
        p = 0
        for i in range(n):
            for j in range(i):
                workspace[i] += packed[p] * direction[j]
                workspace[j] += packed[p] * direction[i]
                p += 1
            workspace[i] += packed[p] * direction[i]
            p += 1
        length = 0.0
        for d in range(n):
            length += workspace[d] * workspace[d]
        if not length > 0.0:
            return
        for d in range(n):
            direction[d] = workspace[d] / math.sqrt(length)
