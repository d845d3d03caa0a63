"""How often somebody may do something: token buckets in bounded memory.

Used by access/gate.py for logins, acts and reads. It must not sleep: who is over the limit is told when to come again.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable

MOST_KEYS = 10_000


class RateLimit:
    """A bucket of `burst` tokens a key, filled again at `per_minute`.

    The keys that were used last are remembered, 10,000 of them; who is forgotten begins with a full bucket.
    """

    def __init__(self, per_minute: float, burst: int, monotonic: Callable[[], float]):
        self._rate, self._burst, self._now = per_minute / 60.0, burst, monotonic
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait_s(self, key: str) -> float:
        """Take one token; return 0, or the seconds until there is one again."""
        with self._lock:
            now = self._now()
            tokens, at = self._buckets.pop(key, (float(self._burst), now))
            tokens = min(self._burst, tokens + (now - at) * self._rate)
            is_allowed = tokens >= 1.0
            self._buckets[key] = (tokens - 1.0 if is_allowed else tokens, now)
            while len(self._buckets) > MOST_KEYS:
                self._buckets.popitem(last=False)
            return 0.0 if is_allowed else (1.0 - tokens) / self._rate
