"""Sums over blocks of the picture: what is asked of its parts, not of its patches.

Called by agent/novelty/places/whole_view.py and agent/events/repeats.py. It must not know what is summed.
"""

import numpy as np


def block_sums(values: np.ndarray, n: int) -> np.ndarray:
    """Return sums over n x n blocks as even as whole rows and columns allow; fewer where there are fewer of these.

    values : (rows, columns, ...), any numbers;  returns (min(n, rows), min(n, columns), ...), of their dtype
    """
    for axis, length in enumerate(values.shape[:2]):
        n_blocks = min(n, length)
        values = np.add.reduceat(values, np.arange(n_blocks) * length // n_blocks, axis=axis)
    return values
