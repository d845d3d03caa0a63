"""A topic's split in few dimensions: restricted updates of two children with the documents' weights, in one call.

Called by agent/learn/topics/build.py. It must not choose which split is tried or kept, nor allocate.
"""

from numba import types

from stillwatch.kernels._jit import kernel
from stillwatch.kernels._types import cube, f4, f8, i1, i8, matrix, read_matrix, read_vector, u2, vector
from stillwatch.kernels.mixture_common import CONSTANT, digamma, update_share
from stillwatch.kernels.mixture_narrow import collect, fit, hold, log_joint
from stillwatch.kernels.topics import LEAST_ALPHA, add_expected_list, words_of_list


@kernel(
    types.void(
        read_matrix(f4), read_matrix(f4), read_matrix(i1), i8, read_vector(i8), read_vector(f8), read_vector(f8),
        read_vector(f8), i8, f8, matrix(f8), matrix(f8), matrix(f8), vector(f8), vector(f8),
        matrix(f8), matrix(f8), matrix(f8), cube(f8), matrix(f8), matrix(f8), vector(f8), read_vector(i8),
        read_matrix(u2), read_vector(f8), f8, matrix(f8), vector(f8), vector(f8),
    )
)  # fmt: skip
def refine(
    x, second, codes, n_clumps, rows, weights, centre, prior, n_updates, settled, held, factor, work,
    precision, count, mean, packed, post_mean, whiten, fits, sides, share, group, spread, size, alpha, words, odds,
    alphas,
):  # fmt: skip
    """Refine the shares of a topic's two children, whose statistics and fits are given, by their documents (3.5.1).

    x to share : as `split` in kernels/mixture_narrow.py has them
    group : ndarray of shape (n_items,), int64, document group of single words
    spread : ndarray of shape (n_clumps, n), uint16, words of clumps by group
    size : ndarray of shape (n_groups,), float64, D_s;  alpha : of the topic, divided as its words are
    words : ndarray of shape (2, >= n_groups), float64, written: the children's words by group
    odds : (>= n_groups,), workspace;  alphas : (2,), written
    """
    n = rows.shape[0]
    hold(second, codes, n_clumps, rows, factor, held)
    for update in range(n_updates + 1):
        one, other = 0.0, 0.0
        for i in range(n):
            sides[0, i] = weights[i] * share[i]
            sides[1, i] = weights[i] - sides[0, i]
            one += sides[0, i]
            other += sides[1, i]
        alphas[0] = max(alpha * one / max(one + other, 1e-300), LEAST_ALPHA)
        alphas[1] = max(alpha * other / max(one + other, 1e-300), LEAST_ALPHA)
        for side in range(2):
            words_of_list(rows, sides[side, :n], group, spread, n_clumps, words[side])
            if update > 0:
                count[side] = collect(
                    x, second, codes, n_clumps, rows, sides[side, :n], centre, held, factor, work, mean[side],
                    packed[side],
                )  # fmt: skip
                fit(count[side], mean[side], packed[side], prior, factor, whiten[side], post_mean[side], fits[side])
        if update == n_updates or not (one > 0.0 and other > 0.0):
            return
        for side in range(2):
            log_joint(
                x, second, codes, n_clumps, rows, post_mean[side], whiten[side], fits[side, CONSTANT], held, factor,
                work, precision, sides[2 + side],
            )  # fmt: skip
            # What both children have in common of E[log pi] is left out.
            none = digamma(alphas[side])
            for s in range(size.shape[0]):
                of_group = words[side, s] / size[s]
                odds[s] = digamma(alphas[side] + of_group) if of_group > 0.0 else none
            add_expected_list(rows, n_clumps, group, spread, odds, sides[2 + side])
        if update_share(sides[2, :n], sides[3, :n], 0.0, 1, share) < settled:
            return
