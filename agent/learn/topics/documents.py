"""Documents and document groups: their words by topic, how many they are, and alpha (thesis 3.12-3.22).

Used by agent/learn/topics/build.py and topics.py. It must not look at words themselves.
"""

import numpy as np

from stillwatch.kernels import topics as kernels
from stillwatch.learn.topics.words import Words

# Of alpha's gamma prior (3.4.2): with a = 1 a topic that no document uses has alpha 0, and truncated ones cost nothing.
SHAPE, RATE = 1.0, 0.5
FIRST_ALPHA = 1.0  # of a first topic: any share of any document is as likely as another
ALPHA_UPDATES = 3  # of the fixed point (3.22) for each update of the topics


class Documents:
    """Document groups: some are one document, some are several whose q(pi) is tied.

    Attributes
    ----------
    words : ndarray of shape (n_groups_capacity, topic_capacity), float64
        N_ks, words by topic (3.15).
    size : ndarray of shape (n_groups_capacity,), float64
        D_s, documents in a group.
    alpha : ndarray of shape (topic_capacity,), float64
    expected : ndarray of shape (n_groups_capacity, topic_capacity), float64
        E[log pi_sk].
    n_groups : int
    """

    def __init__(self, n_groups: int, n_topics: int):
        self.words = np.zeros((n_groups, n_topics))
        self.size = np.zeros(n_groups)
        self.alpha = np.zeros(n_topics)
        self.expected = np.zeros((n_groups, n_topics))
        self.n_groups = 0
        self._place, self._alive = np.zeros(n_groups, np.int64), np.zeros(n_groups, np.int64)
        self._own, self._joined = np.zeros(n_groups), np.zeros(n_topics)
        self._loss = np.zeros((n_groups, n_groups))
        self._parts = np.zeros(n_groups)

    @property
    def room(self) -> int:
        """Document groups that can still be opened."""
        return len(self.size) - self.n_groups

    def open(self) -> int:
        """Begin a document and return its group."""
        group = self.n_groups
        self.words[group], self.size[group] = 0.0, 1.0
        self.n_groups += 1
        return group

    def begin(self, words: Words, first: int, n_topics: int) -> None:
        """Take documents without topics for average ones: psi(alpha) alone would bar small topics from them."""
        alpha = self.alpha[:n_topics]
        totals = np.bincount(words.group[first : words.n_items], minlength=self.n_groups)[: self.n_groups]
        new = np.flatnonzero((totals > 0) & (self.words[: self.n_groups].sum(axis=1) == 0.0))
        self.words[new, :n_topics] = totals[new, None] * (alpha / alpha.sum())
        self.expect(n_topics)

    def count(self, words: Words, candidates: np.ndarray, shares: np.ndarray) -> None:
        """Count words by document group and topic (3.15)."""
        kernels.words_by_topic(
            candidates, shares, words.counts, words.group, words.spread, words.n_clumps, words.n_items, self.words
        )

    def update(self, n_topics: int) -> None:
        """Update alpha (3.22) and q(pi) (3.20)."""
        kernels.update_alpha(self.words, self.size, self.n_groups, SHAPE, RATE, ALPHA_UPDATES, self.alpha[:n_topics])
        self.expect(n_topics)

    def expect(self, n_topics: int) -> None:
        """Write E[log pi_sk]."""
        kernels.expected_weights(self.words, self.size, self.alpha[:n_topics], self.n_groups, self.expected)

    def evidence(self, n_topics: int) -> float:
        """Return log evidence of the words' topics and log density of alpha, without what all alphas share (3.29)."""
        alpha = self.alpha[:n_topics]
        return kernels.documents_evidence(self.words, self.size, alpha, self.n_groups) - RATE * float(alpha.sum())

    def expected_likelihood(self, n_topics: int) -> float:
        """Return the expected log likelihood of the words' topics under q(pi)."""
        n = self.n_groups
        return float((self.words[:n, :n_topics] * self.expected[:n, :n_topics]).sum())

    def topic_evidence(self, of_topic: np.ndarray, alpha: float) -> float:
        """Return the part of the evidence that one topic has: `of_topic` (n_groups_capacity,) words of it."""
        return kernels.topic_evidence(of_topic[: self.n_groups], self.size[: self.n_groups], alpha)

    def merge(self, n_kept: int, n_topics: int, words: Words) -> np.ndarray:
        """Tie documents until `n_kept` groups are left, those first that lose least; return where groups are now.

        The bound's own loss decides, not the angle between their shares (3.27).
        """
        n = self.n_groups
        if n <= n_kept:
            return np.arange(len(self.size))
        kernels.merge_documents(
            self.words, self.size, self.alpha[:n_topics], n, n_kept,
            self._place, self._own, self._joined, self._alive, self._loss,
        )  # fmt: skip
        kernels.move_documents(words.group, words.n_clumps, words.n_items, words.spread, n, self._place, self._parts)
        self.n_groups = n_kept
        return self._place

    def spread_of(
        self, words: Words, order: np.ndarray, bounds: np.ndarray, groups: np.ndarray, out: np.ndarray
    ) -> None:
        """Write the document groups of new clumps to the first rows of `out`."""
        kernels.spread_of_clumps(
            order, bounds, groups, self.n_groups, words.counts, words.group, words.spread, words.n_clumps,
            self._parts, out,
        )  # fmt: skip

    def arrays(self) -> list[np.ndarray]:
        """Return every array held, for the account of memory."""
        own = [self.words, self.size, self.alpha, self.expected]
        return [*own, self._place, self._alive, self._own, self._joined, self._loss, self._parts]
