"""The logarithm of the gamma function and its derivative, over arrays, without SciPy.

Called by agent/learn/groups/weights.py and gaussian.py. It must not be given zero or less.
"""

import math

import numpy as np

# The asymptotic series below are exact to 1e-13 from here on; smaller arguments are raised by the recurrence.
_RAISED = 8
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


def log_gamma(x: np.ndarray) -> np.ndarray:
    """Return ln Gamma(x) of positive values: Stirling's series at x + 8, brought down by the recurrence."""
    x = np.asarray(x, np.float64)
    z = x + _RAISED
    below = np.zeros_like(x)
    for step in range(_RAISED):
        below += np.log(x + step)
    i, s = 1.0 / z, 1.0 / (z * z)
    tail = i * (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s * (1 / 1188 - s * 691 / 360360)))))
    return (z - 0.5) * np.log(z) - z + _HALF_LOG_2PI + tail - below


def digamma(x: np.ndarray) -> np.ndarray:
    """Return the derivative of `log_gamma` at positive values, by the same two steps."""
    x = np.asarray(x, np.float64)
    z = x + _RAISED
    below = np.zeros_like(x)
    for step in range(_RAISED):
        below += 1.0 / (x + step)
    s = 1.0 / (z * z)
    tail = s * (1 / 12 - s * (1 / 120 - s * (1 / 252 - s * (1 / 240 - s * (1 / 132 - s * 691 / 32760)))))
    return np.log(z) - 0.5 / z - tail - below
