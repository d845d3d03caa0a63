"""The words a topic model still holds: what a mixture's items are, and which documents each is of.

Filled by agent/learn/topics/topics.py. It must not know a model.
"""

import numpy as np

from stillwatch.learn.mixture.items import Items


class Words(Items):
    """Clumps of words, then single words.

    Attributes
    ----------
    group : ndarray of shape (capacity,), int64
        Document group of a single word; what clumps have there means nothing.
    spread : ndarray of shape (clump_capacity, n_groups), uint16
        Words of a clump by document group, N_cs / N_c, in parts of 65,535.
    """

    def __init__(self, n_dims: int, n_second: int, capacity: int, clump_capacity: int, n_groups: int, n_codes: int = 0):
        super().__init__(n_dims, n_second, capacity, clump_capacity, n_codes)
        self.group = np.zeros(capacity, np.int64)
        self.spread = np.zeros((clump_capacity, n_groups), np.uint16)

    def append_words(self, points: np.ndarray, groups: np.ndarray) -> None:
        """Add normalised words of shape (n, n_dims) and the document group of each."""
        first = self.n_items
        self.append(points)
        self.group[first : self.n_items] = groups

    def arrays(self) -> list[np.ndarray]:
        """Return every array held, for the account of memory."""
        return [*super().arrays(), self.group, self.spread]


def as_words(items: Items) -> Words:
    """Return items as the words that a topic model's are: what it shares with the mixture speaks of items."""
    assert isinstance(items, Words), "a topic model was given items without documents"
    return items
