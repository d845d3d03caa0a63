"""The memory-bounded topic model: buffers words by document, learns an epoch at a time.

Used by experiments and by whoever asks what a document is made of. It must not read a clock, and never holds more
than its bytes.
"""

from typing import Any, Literal, Self

import numpy as np

from stillwatch.base import Commit, State
from stillwatch.learn.mixture import views
from stillwatch.learn.mixture.families import make_family
from stillwatch.learn.mixture.predictive import COVARIANCES, StudentMixture
from stillwatch.learn.mixture.priors import prior_parameters
from stillwatch.learn.mixture.saved import Room
from stillwatch.learn.mixture.streamed import StreamedModel
from stillwatch.learn.topics import saved
from stillwatch.learn.topics.build import TopicBuilder
from stillwatch.learn.topics.compress import WordCompressor, clump_cost
from stillwatch.learn.topics.documents import Documents
from stillwatch.learn.topics.shares import UPDATES, TopicPredictive
from stillwatch.learn.topics.words import Words

FORMS = {"diagonal": "diagonal", "full": "rounded"}


class MemoryBoundedTopics(StreamedModel[TopicPredictive]):
    """Incremental topic model with Gaussian topics in a fixed amount of memory: documents share topics and mix them.

    Words are rows; a document is a run of rows with the same number in `groups`. Without numbers all rows are of one
    document, and the model is a mixture. Clumps hold words of many documents with the same q(z); document groups hold
    documents with the same q(pi). Both are tied where memory asks for it: documents where the bound loses least,
    words where they are nearest.

    Parameters
    ----------
    covariance : {"diagonal", "full"}
        Normal-gamma prior per dimension, or Normal-inverse-Wishart.
    memory : int
        Words of `n_features_in_` values that clumps, single words and the epoch may take together (3.26). A clump
        takes half a value for each document group beside its mean and second moment.
    epoch_size : int or None
        Words learned at a time; half of the memory by default.
    document_groups : int
        |S|: document groups that are kept; as many new documents fit into an epoch, which ends early for more.
    prior_strength : float
        kappa_0: how many words the prior mean is worth.
    prior_scale : float
        The covariance that a topic is expected to have, in units of the data's own spread in the first epoch.
    least_gain : float
        What a split must gain, in nats, for each word of the smaller topic that it makes (3.4.2 asks for a share of
        the bound). Words that are no draws of a Gaussian gain a little by every further topic, and the more of them
        there are, the more topics the bound alone would have. Trials of several splits at a time answer to the bound.
    max_components, max_iterations : int
        K_max, topics at most, and full updates an epoch at most.
    halflife : int or None
        Words after which what was learnt counts half. None forgets nothing.
    seed : int
        Kept for the learners' common interface: this learner draws nothing at random.

    Attributes
    ----------
    n_features_in_ : int
        Width of the rows: that of the first ones, or what `allocate` was given.
    means_, covariances_, weights_, component_ids_, alpha_
        The topics, largest first, in the units of the data.
    documents_ : dict of ndarray
        Document groups: words (n_groups, K) by topic, size (n_groups,) in documents.
    free_energy_ : float
        The bound on log p(data) after the last epoch, in nats and in the units of the data: 3.29 with its sign turned.
    epoch_, n_seen_, n_components_, refused_, widened_ : int
        As a mixture has them (`MemoryBoundedMixture`), of words and topics.
    report_ : dict
        The last epoch, as a mixture tells it, and `document_groups`.

    References
    ----------
    .. [1] R. Gomes, thesis, 2011, chapter 3: equation numbers here are the thesis's.

    Examples
    --------
    >>> import numpy as np
    >>> from stillwatch.learn import MemoryBoundedTopics
    >>> rng = np.random.default_rng(0)
    >>> sand, rock = rng.normal(-4.0, 1.0, (300, 2)), rng.normal(4.0, 1.0, (300, 2))
    >>> X = np.concatenate([sand[:280], rock[:20], sand[280:], rock[20:]])  # one document of sand, one of rock
    >>> model = MemoryBoundedTopics(memory=700).fit(X, groups=np.repeat([0, 1], 300))
    >>> model.n_components_
    2
    >>> sorted(model.shares_of(np.concatenate([sand[:90], rock[:10]]))[0].round(1).tolist())
    [0.1, 0.9]
    """

    _estimator_kind = "density_estimator"
    _rows_are = _items_are = "words"
    _builder: TopicBuilder

    def __init__(
        self,
        *,
        covariance: Literal["diagonal", "full"] = "diagonal",
        memory: int = 4000,
        epoch_size: int | None = None,
        document_groups: int = 64,
        prior_strength: float = 0.01,
        prior_scale: float = 0.05,
        least_gain: float = 0.0,
        max_components: int = 80,
        max_iterations: int = 30,
        halflife: int | None = None,
        seed: int = 0,
    ):
        self.covariance = covariance
        self.memory = memory
        self.epoch_size = epoch_size
        self.document_groups = document_groups
        self.prior_strength = prior_strength
        self.prior_scale = prior_scale
        self.least_gain = least_gain
        self.max_components = max_components
        self.max_iterations = max_iterations
        self.halflife = halflife
        self.seed = seed

    def _allocate(self) -> None:
        views.check_numbers(self.get_params(), least_one=("document_groups",), positive=())
        d, n_epoch, n_groups = self.n_features_in_, self.rows_per_epoch, self.document_groups
        if self.covariance not in COVARIANCES:
            raise ValueError(f"covariance: {self.covariance!r} is none of {', '.join(COVARIANCES)}")
        family = make_family(FORMS[self.covariance], d, self.max_components, self.memory)
        budget, cost = (self.memory - n_epoch) * d, clump_cost(family.clump_cost(d), n_groups)
        if budget < cost:
            raise ValueError(
                f"memory: {self.memory} words of {d} values less an epoch of {n_epoch} leave {budget} values, "
                f"and one clump of {n_groups} document groups takes {cost}"
            )
        family.prior[:] = prior_parameters(self.covariance, d, self.prior_strength, self.prior_scale)
        self._items = self._words = Words(d, family.n_second, self.memory, budget // cost, n_groups, family.n_codes)
        self._documents = Documents(2 * n_groups, self.max_components)
        self._builder = TopicBuilder(family, self.memory, self.max_iterations, self._documents, self.least_gain)
        self._compressor = WordCompressor(self._builder, budget, n_groups)
        self._begin()
        self._pending_group = np.zeros(n_epoch, np.int64)
        self._open = saved.NOTHING_OPEN

    # Learning

    def fit(self, X: np.ndarray, y: Any = None, groups: np.ndarray | None = None) -> Self:
        """Forget everything and learn these words: `partial_fit` and `flush` of a new learner."""
        return self._fit_anew(X, y, groups=groups)

    def partial_fit(self, X: np.ndarray, y: Any = None, groups: np.ndarray | None = None) -> Self:
        """Take words; learn whenever an epoch is full. The result does not depend on how the calls are cut.

        X : array-like of shape (n, n_features), n >= 0; copied as float64, never changed;  y : ignored
        groups : array-like of shape (n,) of int, or None
            The document of each word: it goes on while the number stays, over calls too, and another number begins
            the next one. None goes on with the document that is open.

        Raises
        ------
        ValueError
            Where a shape is wrong, a value is not finite, or its square would not be or would vanish: nothing of X is
        taken.
        """
        if not self._is_allocated:
            self._become(self._fresh(self._rows(X).shape[1]).partial_fit(X, groups=groups))
            return self
        rows = self._rows_to_learn(X)
        views.check_sizes(rows)
        for low, high, label in saved.runs_of(groups, len(rows), self._open.label):
            self._enter(label)
            self._take(rows[low:high])
        return self

    def _enter(self, label: int) -> None:
        """Go on with the open document where the label is its own, else begin another."""
        if label == self._open.label and self._open.group >= 0:
            return
        if not self._documents.room:
            self.flush()
        self._open = saved.Open(label, self._documents.open())

    def _waiting(self) -> list[np.ndarray]:
        return [*super()._waiting(), self._pending_group]

    def _keep(self, first: int, rows: np.ndarray) -> None:
        super()._keep(first, rows)
        self._pending_group[first : first + len(rows)] = self._open.group

    def _learn(self) -> None:
        """One round of the algorithm: model building on all words, then documents are tied and words clumped."""
        normaliser, (rows, groups) = self._drain()
        words, builder, docs = self._words, self._builder, self._documents
        if self.halflife is not None:
            factor = 0.5 ** (len(rows) / self.halflife)
            views.fade(words, factor)
            docs.size[: docs.n_groups] *= factor
            docs.words[: docs.n_groups] *= factor
        words.append_words(normaliser.apply(rows), groups)
        self.n_seen_ += len(rows)
        self.epoch_ += 1
        built = builder.build(words, warm=True, merges=True, fresh=words.n_items - len(rows))
        self.free_energy_ = built.free_energy - words.total * normaliser.log_volume
        place = docs.merge(self.document_groups, builder.n_components, words)
        if self._open.group >= 0:
            self._open = saved.Open(self._open.label, int(place[self._open.group]))
        squeezed = self._compressor.compress(words, builder.candidates, builder.n_components, 1.0)
        self._predict_anew()
        told = {"epoch": self.epoch_, "free_energy": self.free_energy_, "components": self.n_components_}
        told |= {"widened": self.widened_, "document_groups": docs.n_groups}
        self.report_ = told | views.report_of(words, built, squeezed, builder.identities.settle_events())

    def _predict_anew(self) -> None:
        self._predictive = TopicPredictive(self.summary())

    # What was learned

    @property
    def weights_(self) -> np.ndarray:
        """(K,) float64: the topics' shares of all words, largest first."""
        count = self.summary()["count"]
        return count / count.sum()

    @property
    def alpha_(self) -> np.ndarray:
        """(K,) float64: the Dirichlet prior of a document's shares (3.22), largest topic first."""
        return self.summary()["alpha"]

    @property
    def documents_(self) -> dict[str, np.ndarray]:
        """Document groups: words (n_groups, K) by topic, largest topic first, and size (n_groups,) in documents."""
        self._require_memory()
        docs, order = self._documents, self._builder.order()
        return {"words": docs.words[: docs.n_groups][:, order], "size": docs.size[: docs.n_groups].copy()}

    def predictive(self) -> StudentMixture | None:
        """Return the immutable predictive of words of any document after the last epoch, or None before the first."""
        self._require_memory()
        return None if self._predictive is None else self._predictive.corpus

    def shares_model(self) -> TopicPredictive | None:
        """Return the immutable model of shares and words after the last epoch, or None before the first."""
        self._require_memory()
        return self._predictive

    def shares_of(self, X: np.ndarray, groups: np.ndarray | None = None) -> np.ndarray:
        """Return E[pi] of documents, learnt or not, (n_documents, K) float64, largest topic first.

        X : array-like of shape (n, n_features), words;  groups : as `partial_fit` takes them, None for one document
        """
        zeta = self.posterior_of(X, groups)
        return zeta / zeta.sum(axis=1, keepdims=True)

    def posterior_of(self, X: np.ndarray, groups: np.ndarray | None = None, updates: int = UPDATES) -> np.ndarray:
        """Return zeta (3.20) of documents, (n_documents, K): how many of their words are of each topic, and alpha.

        updates : of q(pi) at most. Words of one picture overlap and are no independent draws, so that each update
            makes a document's few main topics more certain than they are: to compare documents, one is best.
        """
        model, rows = self._ask(X)
        return model.posterior_of(rows, saved.runs_of(groups, len(rows), 0), updates)

    def similarity(self, X: np.ndarray, zeta: np.ndarray) -> np.ndarray:
        """Return how likely the words of one document are in each of some others (3.28), (n_documents,) nats.

        zeta : ndarray of shape (n_documents, K), as `posterior_of` gives it
        """
        model, rows = self._ask(X)
        return model.similarity(rows, zeta)

    def likeness(self, asked: np.ndarray, zeta: np.ndarray) -> np.ndarray:
        """Return how much likelier two documents are with the same shares than with their own, (n_asked, n) nats.

        asked, zeta : ndarrays of shape (n_asked, K) and (n, K), as `posterior_of` gives them
        """
        model = self.shares_model()
        if model is None:
            raise self._no_model()
        return model.likeness(asked, zeta)

    def score_samples(self, X: np.ndarray, shares: np.ndarray | None = None) -> np.ndarray:
        """Return the log predictive density of each word, nats, float64; changes nothing.

        shares : ndarray of shape (K,) or (n, K), or None
            Of the words' documents (`shares_of`); None takes words for those of any document.
        """
        model, rows = self._ask(X)
        return model.score_samples(rows, shares)

    def predict(self, X: np.ndarray, shares: np.ndarray | None = None) -> np.ndarray:
        """Return the id of the likeliest topic of each word, int64; `shares` as `score_samples` takes them."""
        model, rows = self._ask(X)
        return model.predict(rows, shares)

    def predict_proba(self, X: np.ndarray, shares: np.ndarray | None = None) -> np.ndarray:
        """Return posterior probabilities (n, K) of topics, columns as in `component_ids_`; rows sum to one."""
        model, rows = self._ask(X)
        return model.predict_proba(rows, shares)

    def summary(self) -> dict[str, np.ndarray]:
        """Return the topics as arrays, as a mixture's `summary` does, and alpha (K,)."""
        normaliser = self._units()
        told = {"kind": np.array(COVARIANCES.index(self.covariance)), "epoch": np.array(self.epoch_)}
        told["alpha"] = self._documents.alpha[self._builder.order()]
        return told | views.summary_of(self._builder, normaliser)

    # State

    def _predictive_bytes(self) -> int:
        return super()._predictive_bytes() + 16 * self.max_components

    def _config(self) -> np.ndarray:
        """What a state must agree with to be restored here: the settings and the width, in a fixed order."""
        settings: list[float] = [self.n_features_in_, self.memory, self.rows_per_epoch, self.document_groups]
        settings += [COVARIANCES.index(self.covariance), self.prior_strength, self.prior_scale, self.least_gain]
        settings += [self.max_components, self.max_iterations, self.halflife or 0]
        return np.array(settings, np.float64)

    def state(self) -> State:
        """Return everything learned and buffered as a flat set of arrays; a restored learner continues bit for bit."""
        self._require_memory()
        n, far = self._n_pending, len(self._pending) - self._n_far
        own = {
            "config": self._config(),
            "pending_group": self._pending_group[:n].copy(),
            "far_group": self._pending_group[far:].copy(),
            "open": np.array(self._open, np.int64),
        }
        return own | self._counted() | saved.arrays_of(self._words, self._documents, self._builder)

    def _prepare(self, state: State) -> Commit:
        clumps, waiting = len(self._words.second), len(self._pending)
        room = Room(self.n_features_in_, self.memory, clumps, self.max_components, waiting)
        saved.check_state(state, self._config(), self._builder.family, room, self.document_groups)
        held = {name: np.array(array) for name, array in state.items()}
        return lambda: self._take_over(held)

    def _take_over(self, state: State) -> None:
        builder = self._builder
        self._take_counted(state)
        self._pending_group[: self._n_pending] = state["pending_group"]
        self._pending_group[len(self._pending) - self._n_far :] = state["far_group"]
        self._open = saved.Open(*(int(value) for value in state["open"]))
        saved.take_arrays(state, self._words, self._documents, builder)
        if builder.n_components:
            builder.weigh_corpus()
            self._predict_anew()
