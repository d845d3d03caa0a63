"""Scales descriptors by their contrast, so that nearly flat patches lie together near zero.

Called by agent/features/extractor.py. It must not allocate.
"""

import numpy as np

from stillwatch.kernels._jit import kernel
from stillwatch.kernels._types import f4, i8, matrix, read_vector


@kernel([(read_vector(f4), read_vector(f4), f4, f4, i8, matrix(f4))])
def gate_descriptors(energy, brightness, gate, scale, n_dims, out):
    """Multiply each descriptor by min(energy * gate, 1); write contrast and brightness behind it.

    Parameters
    ----------
    energy, brightness : ndarray of shape (n,), float32, read only
    gate : float
        1 / the mean gradient magnitude at which a descriptor has full length.
    scale : float
        Of brightness, in 1 / grey levels.
    n_dims : int
        Values of the descriptor at the start of each row; the two after it are written.
    out : ndarray of shape (n, n_dims + 2), float32, updated in place
    """
    for i in range(out.shape[0]):
        contrast = energy[i] * gate
        factor = min(contrast, np.float32(1.0))
        row = out[i]
        for d in range(n_dims):
            row[d] *= factor
        row[n_dims] = contrast
        row[n_dims + 1] = brightness[i] * scale
