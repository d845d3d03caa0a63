"""Compression of words into clumps within the budget (3.26), their document groups carried along.

Called by agent/learn/topics/topics.py after model building and the merging of documents.
"""

import numpy as np

from stillwatch.learn.mixture.compress import Compressor
from stillwatch.learn.mixture.items import Items
from stillwatch.learn.topics.build import TopicBuilder
from stillwatch.learn.topics.words import as_words


def clump_cost(family_cost: int, n_groups: int) -> int:
    """Return the values of one clump: the mixture's, and its words by document group, two to a value (3.26)."""
    return family_cost + -(-n_groups // 2)


class WordCompressor(Compressor):
    """The mixture's compression of words; which document a word is of does not draw it to a clump.

    budget : values that clumps and single words may take;  n_groups : document groups that are kept
    """

    def __init__(self, builder: TopicBuilder, budget: int, n_groups: int):
        cost = clump_cost(builder.family.clump_cost(builder.family.n_dims), n_groups)
        super().__init__(builder, budget, cost=cost, sweeps=0)  # most of the memory holds words: a clump takes many
        self._documents = builder.documents
        self._spread = np.zeros((budget // self.clump_cost, n_groups), np.uint16)
        self._groups = np.zeros(len(builder.candidates), np.int64)

    def _carry(self, items: Items, order: np.ndarray, groups: np.ndarray, single: np.ndarray) -> None:
        words = as_words(items)
        self._documents.spread_of(words, order, self.bounds, groups, self._spread)
        kept = words.group[: words.n_items][single]
        self._groups[: len(kept)] = kept

    def _summarise(self, items: Items, groups: np.ndarray | None = None) -> None:
        super()._summarise(items, groups)
        words = as_words(items)
        words.spread[: words.n_clumps] = self._spread[: words.n_clumps]
        words.group[words.n_clumps : words.n_items] = self._groups[: words.n_items - words.n_clumps]

    def arrays(self) -> list[np.ndarray]:
        """Return every array held, for the account of memory."""
        return [*super().arrays(), self._spread, self._groups]
