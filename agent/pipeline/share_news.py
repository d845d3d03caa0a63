"""Decides when the shares of topics in view are told: when they are others than those told last, or after a while.

Called by agent/pipeline/summaries.py with each frame whose shares are known. Counted in stream time: a replay tells the
same. It must not change what is known of a frame.
"""

import numpy as np

from stillwatch.contents import Contents
from stillwatch.transport.wire import SHARES_STAND_NS

LEAST_SHARE = 0.002  # of a frame: less of a topic is a word or none
LEAST_CHANGE = 0.05  # of the frame shows something else than what was told: words of a still view come and go by less


class ShareNews:
    """What was told of the shares in view."""

    def __init__(self) -> None:
        self._told: dict[int, float] = {}
        self._t_ns: int | None = None

    def forget(self) -> None:
        """Tell the next ones whatever they are."""
        self._t_ns = None

    def tell(self, contents: Contents | None, t_ns: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return ids and shares, (k,) int64 and float32, that a frame is told by; None and None where it is not."""
        if contents is None:
            return None, None
        found = dict(zip(contents.ids.tolist(), contents.shares.tolist(), strict=True))
        if self._t_ns is not None and 0 <= t_ns - self._t_ns < SHARES_STAND_NS:
            everything = found.keys() | self._told.keys()
            apart = sum(abs(found.get(topic, 0.0) - self._told.get(topic, 0.0)) for topic in everything)
            if 0.5 * apart < LEAST_CHANGE:  # the total variation distance
                return None, None
        self._told, self._t_ns = found, t_ns
        shown = contents.shares >= LEAST_SHARE
        return contents.ids[shown], contents.shares[shown].astype(np.float32)
