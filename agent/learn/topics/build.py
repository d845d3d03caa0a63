"""Model building of the topic model (thesis 3.5.1): the mixture's updates and moves, with weights by document.

Called by agent/learn/topics/topics.py once an epoch. It must not change the words, and keeps a move only if the bound
rises.
"""

import numpy as np

from stillwatch.kernels import mixture_common, topics_narrow
from stillwatch.kernels import topics as kernels
from stillwatch.kernels.mixture_common import EVIDENCE
from stillwatch.learn.mixture.build import LEAST_GAIN, SPLIT_UPDATES, ModelBuilder, Saved
from stillwatch.learn.mixture.families import Family
from stillwatch.learn.mixture.families.narrow import NarrowFamily
from stillwatch.learn.mixture.families.places import SETTLED, SplitTask
from stillwatch.learn.mixture.items import Items
from stillwatch.learn.mixture.posterior import BuildReport
from stillwatch.learn.topics.documents import FIRST_ALPHA, Documents
from stillwatch.learn.topics.words import as_words

BY_AGE = -2  # in place of a word that a split begins from: it begins between fresh words and older ones
REFINEMENTS = 4  # restricted updates with the documents' weights, after those of the mixture's split


class TopicBuilder(ModelBuilder):
    """The topics' posterior: a mixture's, whose sticks give way to a Dirichlet for each document group.

    `log_weight` stays zero: what a topic weighs depends on the word's documents (3.21). `weight` and the order are a
    mixture's over the whole corpus, for summaries.
    """

    def __init__(
        self, family: Family, n_words: int, max_iterations: int, documents: Documents, least_gain: float = 0.0
    ):
        super().__init__(family, n_words, 1.0, max_iterations)
        self.documents = documents
        self._least_gain = least_gain
        n_groups = len(documents.size)
        self._side = np.zeros((2, n_groups))  # words by group of the children of the last split
        self._odds = np.zeros(n_groups)
        self._apart = np.zeros(family.capacity)  # of each topic, the documents' evidence
        self._no_weight = np.zeros(family.capacity)
        self._saved_words = np.zeros_like(documents.words)
        self._saved_alpha = np.zeros_like(documents.alpha)

    # The updates

    def update_sticks(self) -> None:
        """Update alpha and q(pi) of all document groups from the words by topic."""
        self.documents.update(self.n_components)
        self.weigh_corpus()

    def weigh_corpus(self) -> None:
        """Update what topics weigh over all documents, as a mixture's sticks have it."""
        n = self.n_components
        mixture_common.sticks_expectation(self.counts(), self.order(), self.alpha, self._no_weight[:n], self.weight[:n])

    def maximise(self, items: Items) -> None:
        """Update q(eta), alpha and q(pi) from the responsibilities (3.18-3.22)."""
        self.documents.count(as_words(items), self.candidates, self.shares)
        super().maximise(items)

    def _weights_evidence(self) -> float:
        return self.documents.evidence(self.n_components)

    def _weights_expected(self) -> float:
        return self.documents.expected_likelihood(self.n_components)

    def _log_joints(self, items: Items, first: int, n_rows: int) -> None:
        super()._log_joints(items, first, n_rows)
        words, expected = as_words(items), self.documents.expected
        kernels.add_expected_block(
            first, n_rows, self.n_components, words.n_clumps, words.group, words.spread, expected, self._block
        )

    def _add_weights(self, items: Items) -> None:
        words, kept = as_words(items), self.kept
        kernels.add_expected_kept(
            self.candidates, words.n_items, words.n_clumps, self.n_components, words.group, words.spread,
            self.documents.expected, self._odds, kept.shares,
        )  # fmt: skip

    # The moves

    def _split(self, items: Items, k: int, seed: int = -1) -> tuple[float, np.ndarray]:
        """Split one topic into the trial places; return the gain, -inf where there is no split, and both counts.

        The gain is what is above `least_gain` for each word of the smaller child: see there.

        The mixture's split proposes, or the words' age; restricted updates with the documents' weights (3.5.1) refine
        it. Alpha is divided as the words are, which bounds what the best division would give.
        """
        family, docs = self.family, self.documents
        rows, weights = self.kept.weigh(k, items.counts)
        if len(rows) < 2:
            return -np.inf, np.zeros(2)
        self.report.splits_tried += 1
        share = family.share[: len(rows)]
        if seed == BY_AGE:
            self._split_by_age(items, rows, weights, k, share)
        else:
            task = SplitTask(0.0, self.alpha, True, SPLIT_UPDATES, seed=seed)
            family.split(items, rows, weights, (family.moments, k), task)
        alphas = self._refine(items, rows, weights, k, share)
        parts = family.moments.count[[family.child_a, family.child_b]]
        if not parts.min() > 0.0:
            return -np.inf, parts
        gain = family.split_score(mixture_common.split_entropy(share, weights)) - family.fits[k, EVIDENCE]
        gain += sum(docs.topic_evidence(self._side[side], alphas[side]) for side in (0, 1))
        gain -= docs.topic_evidence(np.ascontiguousarray(docs.words[:, k]), docs.alpha[k])
        return float(gain) - self._least_gain * float(parts.min()), parts

    def _split_by_age(self, items: Items, rows: np.ndarray, weights: np.ndarray, k: int, share: np.ndarray) -> None:
        """Write a split that begins with this epoch's words on one side, the older ones on the other.

        New documents may show what lies in the middle of a wide topic, where no plane cuts it out.
        """
        np.less(rows, self._fresh, out=share)
        self.family.settle_by_mass(items, rows, weights, self.family.moments.mean[k].copy(), SPLIT_UPDATES)

    def try_births(self, items: Items) -> int:
        """Try to split topics by the age of their words, then by what is strange to them; return the splits kept."""
        by_age = self._try_splits_by_age(items)
        if by_age:
            self._reassign(items)
            self.settle(items, 3)
        return by_age + super().try_births(items)

    def _try_splits_by_age(self, items: Items) -> int:
        if not 0 < self._fresh < items.n_items or self.documents.n_groups == 1:
            return 0
        kept = 0
        for k in range(min(self.n_components, self.family.capacity - self.n_components)):
            gain, parts = self._split(items, k, BY_AGE)
            if gain > LEAST_GAIN:
                self._keep_split(k, parts)
                kept += 1
        self.report.splits_kept += kept
        return kept

    def _refine(self, items: Items, rows: np.ndarray, weights: np.ndarray, k: int, share: np.ndarray) -> np.ndarray:
        """Iterate the restricted updates; return alpha of the two children."""
        family, docs, n = self.family, self.documents, len(rows)
        children, centre = (family.child_a, family.child_b), family.moments.mean[k].copy()
        parts, logits = family.sides[:2, :n], family.sides[2:, :n]
        alphas, words = np.zeros(2), as_words(items)
        if isinstance(family, NarrowFamily):
            topics_narrow.refine(
                *family.asked(items, rows, weights, centre), REFINEMENTS, SETTLED, *family.tried(n), words.group,
                words.spread, docs.size[: docs.n_groups], docs.alpha[k], self._side, self._odds, alphas,
            )  # fmt: skip
            return alphas
        for update in range(REFINEMENTS + 1):
            np.multiply(weights, share, out=parts[0])
            np.subtract(weights, parts[0], out=parts[1])
            for side in (0, 1):
                kernels.words_of_list(rows, parts[side], words.group, words.spread, words.n_clumps, self._side[side])
            masses = parts.sum(axis=1)
            alphas[:] = np.maximum(docs.alpha[k] * masses / max(masses.sum(), 1e-300), kernels.LEAST_ALPHA)
            if update:
                for side, child in enumerate(children):
                    family.collect(items, rows, parts[side], centre, family.moments, child)
                    family.fit(child)
            if update == REFINEMENTS or not masses.min() > 0.0:
                break
            for side, child in enumerate(children):
                family.log_joint(items, rows, child, 0.0, logits[side])
                self._expect_side(side, alphas[side])
                kernels.add_expected_list(rows, words.n_clumps, words.group, words.spread, self._odds, logits[side])
            if mixture_common.update_share(logits[0], logits[1], 0.0, 1, share) < SETTLED:
                break
        return alphas

    def _expect_side(self, side: int, alpha: float) -> None:
        """Write psi(zeta) of a child for each document group; what both children have in common is left out."""
        docs, n = self.documents, self.documents.n_groups
        kernels.digammas(alpha + self._side[side, :n] / docs.size[:n], self._odds[:n])

    def _keep_split(self, k: int, parts: np.ndarray, free: int = -1) -> None:
        docs, new = self.documents, self.n_components if free < 0 else free
        sides = (1, 0) if parts[1] > parts[0] else (0, 1)
        whole, mass = docs.alpha[k], max(float(parts.sum()), 1e-300)
        for place, side in zip((k, new), sides, strict=True):
            docs.words[:, place] = self._side[side]
            docs.alpha[place] = max(whole * parts[side] / mass, kernels.LEAST_ALPHA)
        super()._keep_split(k, parts, free)

    def _add_weights_gains(self, n_pairs: int) -> None:
        docs, n = self.documents, self.documents.n_groups
        kernels.add_merge_gains(
            docs.words, docs.size[:n], docs.alpha[: self.n_components], n, self._pairs, n_pairs, self._odds,
            self._apart, self._gains,
        )  # fmt: skip

    def _join(self, a: int, b: int, into: int) -> None:
        docs = self.documents
        docs.words[:, into] = docs.words[:, a] + docs.words[:, b]
        docs.alpha[into] = docs.alpha[a] + docs.alpha[b]
        super()._join(a, b, into)

    def _remove(self, k: int) -> None:
        last = self.n_components - 1
        docs = self.documents
        docs.words[:, k], docs.alpha[k] = docs.words[:, last], docs.alpha[last]
        docs.words[:, last], docs.alpha[last] = 0.0, 0.0
        super()._remove(k)

    def _save(self) -> Saved:
        self._saved_words[:], self._saved_alpha[:] = self.documents.words, self.documents.alpha
        return super()._save()

    def _undo(self, saved: Saved) -> None:
        self.documents.words[:], self.documents.alpha[:] = self._saved_words, self._saved_alpha
        super()._undo(saved)

    def _start(self, items: Items, label: np.ndarray, n_components: int) -> None:
        self.documents.alpha[:n_components] = FIRST_ALPHA
        super()._start(items, label, n_components)

    def build(self, items: Items, *, warm: bool, merges: bool, fresh: int = 0) -> BuildReport:
        """Improve the model on all words; those from `fresh` on are new, and so may their documents be."""
        if self.n_components:
            self.documents.begin(as_words(items), fresh, self.n_components)
        return super().build(items, warm=warm, merges=merges, fresh=fresh)

    def arrays(self) -> list[np.ndarray]:
        """Return every array held, for the account of memory."""
        own = [self._side, self._odds, self._apart, self._no_weight]
        return [*super().arrays(), *own, self._saved_words, self._saved_alpha, *self.documents.arrays()]
