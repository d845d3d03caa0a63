"""The topic model's experiments: known topics, joint segmentation and retrieval of thesis chapter 3, beside peers.

Called by the command line as `experiment topics-...`. It must not tune itself to what it measures.
"""

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from stillwatch.base import UsageError
from stillwatch.learn import MemoryBoundedMixture, MemoryBoundedTopics
from stillwatch.tools.experiments.data import measure, tell_rows
from stillwatch.tools.experiments.topics import ground, peers
from stillwatch.tools.experiments.topics.corpora import (
    HALF,
    Corpus,
    caltech,
    motorbike_pixels,
    sorted_by_topic,
    synthetic,
)
from stillwatch.tools.shared import add_data_argument, find_data

NAMES = (
    "method", "memory", "groups", "documents", "topics", "log_likelihood", "free_energy_ratio", "ari", "accuracy",
    "accuracy_3_28", "seconds", "cpu_seconds", "state_bytes", "peak_rss_mb",
)  # fmt: skip
HELD_OUT = 0.25  # of the synthetic documents
EPOCH_DOCUMENTS = {"topics-segmentation": 10, "topics-retrieval": 60}  # as in the thesis
CLUMP_COST = 20  # values of a full clump of five columns, and what its documents add is on top
VOCABULARY = 500  # words of k-means, and topics and components at most: all methods have as many
UPDATES = 1  # of a document's shares where documents are compared (DECISIONS.md)
PRIOR_SCALE = 0.05  # of the learner, unless told otherwise


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that all topic experiments share."""
    add_data_argument(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--memory", nargs="+", type=int, metavar="WORDS", help="memories to try")
    parser.add_argument("--groups", nargs="+", type=int, metavar="S", help="numbers of document groups to try")
    parser.add_argument(
        "--documents", type=int, metavar="N", help="only so many pictures, frames or synthetic documents"
    )
    parser.add_argument("--classes", type=int, default=98, metavar="N", help="retrieval: only the first N classes")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn at random (default: 0)")
    parser.add_argument("--no-batch", action="store_true", help="segmentation: leave out the batch run")
    parser.add_argument("--no-peers", action="store_true", help="leave out the peers")


def main(args: argparse.Namespace) -> int:
    """Run one experiment on one BLAS thread and print its rows."""
    for name in ("memory", "groups"):
        if min(getattr(args, name) or [1]) < 1:
            raise UsageError(f"--{name}: {min(getattr(args, name))} is below 1")
    if args.classes < 2 or (args.documents is not None and args.documents < 4):
        raise UsageError(f"--classes {args.classes}, --documents {args.documents}: at least 2 classes, 4 documents")
    with threadpool_limits(1):
        tell_rows(EXPERIMENTS[args.experiment](args), NAMES, as_json=args.json)
    return 0


def _taught(corpus: Corpus, **settings: Any) -> tuple[MemoryBoundedTopics, dict[str, Any]]:
    """Return topics of a corpus, and what of a row every run of ours has."""
    model = MemoryBoundedTopics(**settings).allocate(corpus.words.shape[1])
    _, cost = measure(lambda: model.partial_fit(corpus.words, groups=corpus.documents).flush())
    row = {
        "memory": settings["memory"],
        "groups": len(model.documents_["size"]),
        "documents": corpus.n_documents,
        "topics": model.n_components_,
        **cost.times(),
        "state_bytes": sum(model.memory_bytes().values()),
        "peak_rss_mb": cost.peak_rss_mb,
    }
    return model, row


def _batch(corpus: Corpus, **settings: Any) -> tuple[MemoryBoundedTopics, dict[str, Any]]:
    """The model's own limit: all documents in one epoch, none tied, nothing clumped."""
    n = len(corpus.words)
    room = {"memory": 2 * n + corpus.n_documents, "epoch_size": n, "document_groups": corpus.n_documents}
    model, row = _taught(corpus, **settings, **room, max_iterations=100)
    return model, {"method": "batch"} | row


def _halves(corpus: Corpus) -> tuple[Corpus, Corpus]:
    """Return every second word of each document, and the others."""
    given = np.arange(len(corpus.words)) % HALF == 0
    topics = corpus.topics
    first, second = (
        Corpus(corpus.words[part], corpus.documents[part], None if topics is None else topics[part])
        for part in (given, ~given)
    )
    return first, second


# -- known topics -------------------------------------------------------------------------------------------------


def _synthetic(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Ten topics: density and topics of held-out words given their document, in both orders of the documents."""
    whole = synthetic(args.seed, args.documents or 200)
    n_train = round((1.0 - HELD_OUT) * whole.n_documents)
    train, test = whole.part(np.arange(n_train)), whole.part(np.arange(n_train, whole.n_documents))
    given, asked = _halves(test)
    for order, corpus in (("drawn", train), ("by topic", sorted_by_topic(train))):
        for memory in args.memory or [2000]:
            for groups in args.groups or [64]:
                model, row = _taught(corpus, memory=memory, document_groups=groups)
                yield {"method": f"stillwatch, {order}"} | row | _of_topics(model, given, asked)
    model, row = _batch(train)
    yield row | _of_topics(model, given, asked)
    if not args.no_peers:
        yield from _synthetic_peers(train, given, asked)


def _of_topics(model: MemoryBoundedTopics, given: Corpus, asked: Corpus) -> dict[str, Any]:
    from sklearn.metrics import adjusted_rand_score

    shares = model.shares_of(given.words, given.documents)[asked.documents]
    found = {"log_likelihood": float(model.score_samples(asked.words, shares).mean())}
    return found | {"ari": float(adjusted_rand_score(asked.topics, model.predict(asked.words, shares)))}


def _synthetic_peers(train: Corpus, given: Corpus, asked: Corpus) -> Iterator[dict[str, Any]]:
    from sklearn.metrics import adjusted_rand_score

    mixture = MemoryBoundedMixture(memory=2000)
    _, cost = measure(lambda: mixture.fit(train.words))
    yield {
        "method": "mixture",
        "topics": mixture.n_components_,
        "log_likelihood": mixture.score(asked.words),
        "ari": float(adjusted_rand_score(asked.topics, mixture.predict(asked.words))),
        **cost.times(),
    }
    words = peers.QuantisedWords(train.words, 200)
    model, cost = measure(lambda: peers.lda(words.histograms(train), 10))
    density = peers.lda_density(model, words, given, asked)
    yield {"method": "lda on words", "topics": 10, "log_likelihood": density, **cost.times()}


def _ground(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A made transect, whose ground is known: the whole agent's labels of patches."""
    yield from ground.rows_of(args.seed, args.documents or 600)


# -- joint segmentation -------------------------------------------------------------------------------------------


def _segmentation(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Pixels of motorbikes as words: what clumps and document groups cost of the bound (figure 3.2)."""
    n_pictures, n_pixels = args.documents or 435, 200
    corpus = motorbike_pixels(find_data(args.data), n_pictures, n_pixels, args.seed)
    settings = {"covariance": "full", "max_components": 200}
    epoch = EPOCH_DOCUMENTS[args.experiment] * n_pixels
    bound = None
    if not args.no_batch:
        # A prior is in units of the first epoch's spread, and the batch has one epoch: bounds under two priors differ
        # by more than clumps cost.
        units = corpus.words[:epoch].var(axis=0).mean() / corpus.words.var(axis=0).mean()
        model, row = _batch(corpus, **settings, prior_scale=PRIOR_SCALE * units)
        bound = model.free_energy_
        yield row | {"free_energy_ratio": 1.0}
    for groups in args.groups or [n_pictures]:
        for memory in args.memory or [epoch + _room_of(1000, groups)]:
            model, row = _taught(corpus, **settings, memory=memory, epoch_size=epoch, document_groups=groups)
            ratio = None if bound is None else 1.0 - (bound - model.free_energy_) / abs(bound)
            yield {"method": "stillwatch"} | row | {"free_energy_ratio": ratio}


def _room_of(clumps: int, groups: int) -> int:
    """Return the words of five values whose room so many full clumps take."""
    return -(-clumps * (CLUMP_COST + 1 + -(-groups // 2)) // 5)


# -- retrieval ----------------------------------------------------------------------------------------------------


def _retrieval(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Caltech: the class of the training picture that a test picture is likest (figures 3.6, 3.7)."""
    train, test = caltech(find_data(args.data), args.classes, args.seed)
    shuffled = np.random.default_rng(args.seed).permutation(train.n_documents)
    train = train.part(shuffled[: args.documents])
    epoch = EPOCH_DOCUMENTS[args.experiment] * 500
    for groups in args.groups or [120]:
        for memory in args.memory or [epoch + 10_000]:
            model, row = _taught(
                train,
                memory=memory,
                epoch_size=min(epoch, memory // 2),
                document_groups=groups,
                max_components=VOCABULARY,
            )
            yield {"method": "stillwatch"} | row | _one_nn(model, train, test)
    if not args.no_peers:
        yield from _retrieval_peers(train, test)


def _one_nn(model: MemoryBoundedTopics, train: Corpus, test: Corpus) -> dict[str, Any]:
    """Return how often the likest training picture is of the test picture's class.

    Likest are two pictures that gain most by one q(pi); `accuracy_3_28` is by the chapter's own score.
    """
    zeta, asked = (model.posterior_of(part.words, part.documents, UPDATES) for part in (train, test))
    bounds = np.searchsorted(test.documents, np.arange(test.n_documents + 1))
    found = np.array(
        [model.similarity(test.words[low:high], zeta).argmax() for low, high in zip(bounds, bounds[1:], strict=False)]
    )
    return {
        "accuracy": _share_right(train, test, model.likeness(asked, zeta).argmax(axis=1)),
        "accuracy_3_28": _share_right(train, test, found),
        "log_likelihood": _density_given(model, test),
    }


def _density_given(model: MemoryBoundedTopics, test: Corpus) -> float:
    given, asked = _halves(test)
    shares = model.shares_of(given.words, given.documents)
    return float(model.score_samples(asked.words, shares[asked.documents]).mean())


def _share_right(train: Corpus, test: Corpus, found: np.ndarray) -> float:
    assert train.labels is not None
    assert test.labels is not None
    return float((train.labels[found] == test.labels).mean())


def _retrieval_peers(train: Corpus, test: Corpus) -> Iterator[dict[str, Any]]:
    words, cost = measure(lambda: peers.QuantisedWords(train.words, VOCABULARY))
    counts = [words.histograms(corpus) for corpus in (train, test)]
    accuracy = _share_right(train, test, peers.nearest(*counts))
    yield {"method": "k-means histograms", "topics": VOCABULARY, "accuracy": accuracy, **cost.times()}
    model, cost = measure(lambda: peers.lda(counts[0], 100))
    accuracy = _share_right(train, test, peers.nearest(model.transform(counts[0]), model.transform(counts[1])))
    yield {"method": "lda on words", "topics": 100, "accuracy": accuracy, **cost.times()}
    shares, cost = measure(lambda: peers.hdp(counts[0]))
    if shares is not None:
        accuracy = _share_right(train, test, peers.nearest(shares(counts[0]), shares(counts[1])))
        yield {"method": "gensim hdp", "accuracy": accuracy, **cost.times()}
    mixture = MemoryBoundedMixture(memory=40_000, max_components=VOCABULARY)
    _, cost = measure(lambda: mixture.fit(train.words))
    mixed = [_component_shares(mixture, corpus) for corpus in (train, test)]
    accuracy = _share_right(train, test, peers.nearest(*mixed))
    yield {"method": "mixture", "topics": mixture.n_components_, "accuracy": accuracy, **cost.times()}


def _component_shares(mixture: MemoryBoundedMixture, corpus: Corpus) -> np.ndarray:
    """Return how much of each document each component has, by its posterior probabilities."""
    found = np.zeros((corpus.n_documents, mixture.n_components_))
    for low in range(0, len(corpus.words), 50_000):
        part = slice(low, low + 50_000)
        np.add.at(found, corpus.documents[part], mixture.predict_proba(corpus.words[part]))
    return found


EXPERIMENTS: dict[str, Callable[[argparse.Namespace], Iterator[dict[str, Any]]]] = {
    "topics-synthetic": _synthetic,
    "topics-ground": _ground,
    "topics-segmentation": _segmentation,
    "topics-retrieval": _retrieval,
}
