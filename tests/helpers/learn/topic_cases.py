"""Corpora and builders that the topic model's tests share."""

import numpy as np
from mixture_cases import covariance_of, family_of

from stillwatch.learn.mixture.priors import prior_parameters
from stillwatch.learn.topics.build import TopicBuilder
from stillwatch.learn.topics.documents import Documents
from stillwatch.learn.topics.words import Words
from stillwatch.tools.experiments.topics.corpora import synthetic


def corpus(seed: int, n_documents: int = 200, **sizes: int):
    """Return words, their topics and their documents: few topics in each document, all shared (an HDP's kind)."""
    made = synthetic(seed, n_documents, **sizes)
    return made.words, made.topics, made.documents


def words_of(rows: np.ndarray, groups: np.ndarray, n_groups: int, as_clumps: int = 0, form: str = "diagonal") -> Words:
    """Return words, the first `as_clumps` of them as clumps of one word each."""
    n, d = rows.shape
    n_second, n_codes = (d, 0) if form == "diagonal" else (d + 1, d * (d - 1) // 2)
    words = Words(d, n_second, n, max(as_clumps, 1), n_groups, n_codes)
    words.append_words(rows, groups)
    for row in range(as_clumps):
        words.spread[row, groups[row]] = 65535
    words.n_clumps = as_clumps
    return words


def builder_of(words: Words, n_groups: int, n_topics: int, seed: int = 0, form: str = "diagonal") -> TopicBuilder:
    """Return a builder whose topics began from a random hard partition, one document to each group."""
    n, d = words.x.shape
    family = family_of(form, d, 12, n)
    family.prior[:] = prior_parameters(covariance_of(form), d, 0.01, 0.1)
    documents = Documents(n_groups, 12)
    for _ in range(n_groups):
        documents.open()
    builder = TopicBuilder(family, n, 200, documents)
    label = np.random.default_rng(seed).integers(n_topics, size=n)
    label[:n_topics] = np.arange(n_topics)
    builder.start_from(words, label, np.arange(n_topics))
    return builder
