"""Whether what was there before is news when it comes, or goes, again: one rule for everything that is told twice.

Called by agent/events/categories.py, repeats.py and views.py. It must not know what it is that came.
"""

import numpy as np
import numpy.typing as npt

from stillwatch.events.rules import LONGER_AWAY


def is_news(tell: str, away_ns: npt.ArrayLike, longest_ns: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Return which absences are news, given the longest before each; of any shape, integers.

    tell : of the config: "every" one; "first_of_kind", the one before which there was none (0); "rare", that one and
    each that is longer than ever by LONGER_AWAY
    """
    away, longest = np.asarray(away_ns), np.asarray(longest_ns)
    match tell:
        case "every":
            return np.ones(away.shape, np.bool_)
        case "first_of_kind":
            return np.asarray(longest == 0)
        case _:
            return np.asarray(away > LONGER_AWAY * longest)
