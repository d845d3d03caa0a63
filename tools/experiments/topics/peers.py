"""What topics are compared with: words by k-means under LDA, an HDP of gensim, histograms.

Called by tools/experiments/topics/command.py. It must not tune a peer worse than its defaults.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from stillwatch.tools.experiments.topics.corpora import Corpus


class QuantisedWords:
    """k-means words; each is a diagonal Gaussian of its members, so that a word's density can be told.

    Parameters
    ----------
    words : ndarray of shape (n, n_dims)
    n_words : int
        Of the vocabulary.
    """

    def __init__(self, words: np.ndarray, n_words: int):
        from sklearn.cluster import MiniBatchKMeans

        self._kmeans = MiniBatchKMeans(n_words, random_state=0, n_init=3).fit(words)
        label = self._kmeans.predict(words)
        floor = 1e-3 * words.var(axis=0)
        self.variance = np.array(
            [words[label == k].var(axis=0) + floor if (label == k).any() else words.var(axis=0) for k in range(n_words)]
        )
        self.mean = self._kmeans.cluster_centers_
        self.n_words = n_words

    def histograms(self, corpus: Corpus) -> np.ndarray:
        """Return how often each word is in each document, (n_documents, n_words)."""
        found = np.zeros((corpus.n_documents, self.n_words))
        np.add.at(found, (corpus.documents, self._kmeans.predict(corpus.words)), 1.0)
        return found

    def log_densities(self, words: np.ndarray) -> np.ndarray:
        """Return log N(x | word) for each word of the vocabulary, (n, n_words)."""
        constant = -0.5 * np.log(2.0 * np.pi * self.variance).sum(axis=1)
        out = np.empty((len(words), self.n_words))
        for k in range(self.n_words):
            out[:, k] = constant[k] - 0.5 * ((words - self.mean[k]) ** 2 / self.variance[k]).sum(axis=1)
        return out


def lda(histograms: np.ndarray, n_topics: int) -> Any:
    """Return scikit-learn's LDA fitted to word counts."""
    from sklearn.decomposition import LatentDirichletAllocation

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LatentDirichletAllocation(n_topics, random_state=0, max_iter=20).fit(histograms)


def lda_density(model: Any, words: QuantisedWords, given: Corpus, asked: Corpus) -> float:
    """Return the mean log density of words of documents whose other words are given."""
    topic_words = model.components_ / model.components_.sum(axis=1, keepdims=True)
    shares = model.transform(words.histograms(given)) @ topic_words
    joint = words.log_densities(asked.words) + np.log(np.maximum(shares[asked.documents], 1e-300))
    best = joint.max(axis=1)
    return float((best + np.log(np.exp(joint - best[:, None]).sum(axis=1))).mean())


def hdp(histograms: np.ndarray) -> Callable[[np.ndarray], np.ndarray] | None:
    """Return a function from word counts to topic shares, learnt by gensim's HdpModel; None where gensim is not."""
    try:
        from gensim.models import HdpModel
    except ImportError:
        return None

    def bags(counts: np.ndarray) -> list[list[tuple[int, int]]]:
        return [[(int(k), int(row[k])) for k in np.flatnonzero(row)] for row in counts]

    names = {k: str(k) for k in range(histograms.shape[1])}
    model = HdpModel(bags(histograms), names, random_state=0)

    def shares(counts: np.ndarray) -> np.ndarray:
        found = np.zeros((len(counts), model.m_T))
        for j, bag in enumerate(bags(counts)):
            for k, share in model[bag]:
                found[j, k] = share
        return found

    return shares


def nearest(train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Return the place of the nearest training row by Hellinger distance: rows are shares or counts of documents."""
    roots = [np.sqrt(rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-12)) for rows in (train, test)]
    return (roots[1] @ roots[0].T).argmax(axis=1)
