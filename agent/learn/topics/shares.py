"""The predictive of a topic model: densities of topics, shares of new documents, words given the shares of theirs.

Made by agent/learn/topics/topics.py after each epoch. It must never learn.
"""

from collections.abc import Iterable

import numpy as np

from stillwatch.base import SnapshotError
from stillwatch.kernels import topics as kernels
from stillwatch.learn.mixture.predictive import StudentMixture

UPDATES = 100  # of a new document's q(pi) at most
BEST = 12  # topics of a word that a search looks at: those of highest density


class TopicPredictive:
    """Student t densities of the topics, and what a document's words say of its shares.

    Attributes
    ----------
    corpus : StudentMixture
        Of a word of any document; its components are the topics, largest first.
    alpha : ndarray of shape (K,), float64

    Examples
    --------
    >>> import numpy as np
    >>> from stillwatch.learn import MemoryBoundedTopics, TopicPredictive
    >>> rng = np.random.default_rng(0)
    >>> sand, rock = rng.normal(-4.0, 1.0, (300, 2)), rng.normal(4.0, 1.0, (300, 2))
    >>> learner = MemoryBoundedTopics(memory=700).fit(np.concatenate([sand, rock]), groups=np.repeat([0, 1], 300))
    >>> told = TopicPredictive.from_summary(learner.summary())
    >>> shares, topics = told.segment(np.concatenate([sand[:90], rock[:10]]))
    >>> (shares / shares.sum()).round(1).tolist(), np.bincount(topics).tolist()
    ([0.9, 0.1], [90, 10])
    """

    def __init__(self, summary: dict[str, np.ndarray]):
        self.alpha = np.array(summary["alpha"], np.float64)
        self.corpus = StudentMixture({name: array for name, array in summary.items() if name != "alpha"})
        self._log_weights = np.log(self.corpus.weights)

    @classmethod
    def from_summary(cls, summary: dict[str, np.ndarray]) -> "TopicPredictive":
        """Rebuild what `MemoryBoundedTopics.summary` describes; SnapshotError where it does not fit."""
        corpus = StudentMixture.from_summary(summary)
        alpha = np.asarray(summary.get("alpha", ()), np.float64)
        if alpha.shape != (corpus.n_components,) or not (np.isfinite(alpha) & (alpha > 0.0)).all():
            raise SnapshotError(f"topics summary: alpha of shape {alpha.shape} is not above 0 for each topic")
        return cls(summary)

    def log_densities(self, x: np.ndarray) -> np.ndarray:
        """Return log St(x | k), (n, K + 1) float64; the last column is the prior predictive: no topic seen so far."""
        found = np.empty((len(x), self.corpus.n_components + 1))
        return self.corpus.log_joint(x, found) - self._log_weights

    def places(self, x: np.ndarray) -> np.ndarray:
        """Return the place of each word's likeliest topic, as a word of any document, (n,) int64."""
        return (self.log_densities(x) + self._log_weights)[:, :-1].argmax(axis=1)

    def posterior_of(
        self, x: np.ndarray, documents: Iterable[tuple[int, int, int]], updates: int = UPDATES
    ) -> np.ndarray:
        """Return zeta (3.20) of each document, (n_documents, K).

        documents : of (first row, row after the last, label)
        updates : of q(pi) at most; one takes each word for one of any document
        """
        densities, k = self.log_densities(x)[:, :-1], len(self.alpha)
        found, expected, logits = [], np.zeros(k), np.zeros(k)
        for low, high, _ in documents:
            zeta = np.zeros(k)
            kernels.infer_document(
                np.ascontiguousarray(densities[low:high]), self.alpha, updates, zeta, expected, logits
            )
            found.append(zeta)
        return np.array(found).reshape(-1, k)

    def segment(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return zeta (3.20) of one document, (K,), and the place of each word's likeliest topic in it, (n,) int64.

        x : ndarray of shape (n, n_features), n and K at least 1
        """
        densities, k = np.ascontiguousarray(self.log_densities(x)[:, :-1]), len(self.alpha)
        zeta, expected, logits = np.zeros(k), np.zeros(k), np.zeros(k)
        kernels.infer_document(densities, self.alpha, UPDATES, zeta, expected, logits)
        kernels.digammas(zeta, expected)
        return zeta, (densities + expected).argmax(axis=1)

    def similarity(self, x: np.ndarray, zeta: np.ndarray) -> np.ndarray:
        """Return the score (3.28) of a document's words in each of some others, (n_documents,) nats.

        zeta : ndarray of shape (n_documents, K), as `posterior_of` gives it
        """
        zeta = self._checked("zeta", zeta, 0.0, "0")
        expected = np.array(zeta)
        kernels.expected_weights(zeta, np.ones(len(zeta)), np.zeros(len(self.alpha)), len(zeta), expected)
        densities = np.ascontiguousarray(self.log_densities(x)[:, :-1])
        n_best, score = min(BEST, len(self.alpha)), np.zeros(len(zeta))
        kernels.similarity(densities, expected, n_best, np.zeros(n_best, np.int64), score)
        return score

    def likeness(self, asked: np.ndarray, zeta: np.ndarray) -> np.ndarray:
        """Return how much likelier two documents are with one q(pi) than with two, (n_asked, n_documents) nats.

        What 3.29 gains where the documents are tied, their words' topics as they are. Where 3.28 takes each word of the
        document that is asked for as if there were no other, here they say together what its shares are.

        asked, zeta : ndarrays of shape (n_asked, K) and (n_documents, K), as `posterior_of` gives them
        """
        asked, zeta = (
            self._checked(name, one, self.alpha, "alpha") for name, one in (("asked", asked), ("zeta", zeta))
        )
        score = np.zeros((len(asked), len(zeta)))
        kernels.likeness(asked, zeta, self.alpha, np.zeros(len(zeta)), score)
        return score

    def _checked(self, name: str, zeta: np.ndarray, low: np.ndarray | float, what: str) -> np.ndarray:
        """Return parameters of documents as float64, or raise ValueError where they are not above or at `low`."""
        zeta = np.ascontiguousarray(zeta, np.float64)
        fits = zeta.ndim == 2 and zeta.shape[1] == len(self.alpha)
        if not fits or not (np.isfinite(zeta) & (zeta >= low) & (zeta > 0.0)).all():
            raise ValueError(
                f"{name}: shape {zeta.shape}, must be (n, {len(self.alpha)}), finite, above 0, no less than {what}"
            )
        return zeta

    def _log_joint(self, x: np.ndarray, shares: np.ndarray | None) -> np.ndarray:
        if shares is None:
            return self.corpus.log_joint(x, np.empty((len(x), self.corpus.n_components + 1)))
        shares, k = np.asarray(shares, np.float64), len(self.alpha)
        if shares.shape not in {(k,), (len(x), k)} or not (shares >= 0.0).all():
            raise ValueError(f"shares: shape {shares.shape} of at least 0, must be ({k},) or ({len(x)}, {k})")
        left = self.corpus.weights[-1]
        with np.errstate(divide="ignore"):
            weights = np.log(np.broadcast_to(shares * (1.0 - left), (len(x), k)))
        return self.log_densities(x) + np.hstack([weights, np.full((len(x), 1), np.log(left))])

    def score_samples(self, x: np.ndarray, shares: np.ndarray | None) -> np.ndarray:
        """Return log densities (n,), given the shares of the words' documents."""
        if shares is None:
            return self.corpus.score_samples(x)
        joint = self._log_joint(x, shares)
        best = joint.max(axis=1, keepdims=True)
        return best[:, 0] + np.log(np.exp(joint - best).sum(axis=1))

    def predict(self, x: np.ndarray, shares: np.ndarray | None) -> np.ndarray:
        """Return ids (n,) of the likeliest topics."""
        if shares is None:
            return self.corpus.predict(x)
        return self.corpus.ids[self._log_joint(x, shares)[:, :-1].argmax(axis=1)]

    def predict_proba(self, x: np.ndarray, shares: np.ndarray | None) -> np.ndarray:
        """Return probabilities (n, K) of topics, given that a word is of one of them."""
        joint = self._log_joint(x, shares)[:, :-1]
        found = np.exp(joint - joint.max(axis=1, keepdims=True))
        return found / found.sum(axis=1, keepdims=True)
