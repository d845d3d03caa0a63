"""Whether what was there before is news when it comes, or goes, again: one rule for everything that is told twice.

Called by agent/events/categories.py and views.py. It must not know what it is that came.
"""

import numpy as np

from stillwatch.events.rules import LONGER_AWAY


def is_news(tell: str, away_ns: np.ndarray, longest_ns: np.ndarray) -> np.ndarray:
    """Return which absences are news, bool, given the longest before each; of any shape, int64.

    tell : of the config: "every" one; "first_of_kind", the one before which there was none (0); "rare", that one and
    each that is longer than ever by LONGER_AWAY
    """
    match tell:
        case "every":
            return np.ones(np.shape(away_ns), bool)
        case "first_of_kind":
            return np.equal(longest_ns, 0)
        case _:
            return np.greater(away_ns, LONGER_AWAY * longest_ns)
