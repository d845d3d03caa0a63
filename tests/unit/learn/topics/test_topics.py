"""What the topic model promises: topics and shares of known corpora, in either order, and one document is a mixture."""

import numpy as np
import pytest
from mixture_cases import clusters
from sklearn.metrics import adjusted_rand_score
from topic_cases import corpus

from stillwatch.base import NotFittedError, state_hash
from stillwatch.learn import MemoryBoundedMixture, MemoryBoundedTopics

SEED = 3


@pytest.fixture(scope="module")
def world():
    """150 documents to learn from, 50 held out, of ten topics."""
    words, topics, documents = corpus(SEED)
    return words, topics, documents, documents < 150


def taught(world, order=None, **settings):
    words, _, documents, known = world
    order = np.arange(int(known.sum())) if order is None else order
    return MemoryBoundedTopics(**settings).fit(words[known][order], groups=documents[known][order])


def by_topic(world):
    """Return the order of the known words in which documents of the same main topic follow each other."""
    _, topics, documents, known = world
    main = [np.bincount(topics[documents == j]).argmax() for j in range(150)]
    return np.concatenate([np.flatnonzero(documents[known] == j) for j in np.argsort(main, kind="stable")])


def held_out(model, world):
    """Return density and ARI of every second word of held-out documents, given the others."""
    words, topics, documents, known = world
    words, topics, documents = words[~known], topics[~known], documents[~known]
    given = np.arange(len(words)) % 2 == 0
    shares = model.shares_of(words[given], documents[given])[documents[~given] - 150]
    rest = words[~given]
    return model.score_samples(rest, shares).mean(), adjusted_rand_score(topics[~given], model.predict(rest, shares))


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_topics_of_an_hdp_corpus_are_found_in_any_order_of_its_documents(world, covariance):
    words, _, _, known = world
    n = int(known.sum())
    batch = taught(world, covariance=covariance, memory=2 * n, epoch_size=n, document_groups=150)
    wanted, _ = held_out(batch, world)
    mixture = MemoryBoundedMixture(covariance=covariance, memory=2000).fit(words[known])
    for order in (None, by_topic(world)):
        model = taught(world, order, covariance=covariance, memory=2000)
        density, ari = held_out(model, world)
        assert 9 <= model.n_components_ <= 11
        assert ari >= 0.95
        assert density >= wanted - 0.05
        assert density > mixture.score(words[~known]) + 0.1  # documents tell which topics to expect


def test_documents_are_tied_to_so_many_groups_and_none_is_lost(world):
    model = taught(world, memory=2000, document_groups=20)
    held = model.documents_
    assert len(held["size"]) <= 20
    np.testing.assert_allclose(held["size"].sum(), 150)
    np.testing.assert_allclose(held["words"].sum(), model.n_seen_, rtol=1e-3)


def test_documents_with_the_same_topics_are_tied(world):
    rng = np.random.default_rng(0)
    topics = np.array([[-8.0, 0.0], [8.0, 0.0], [0.0, 8.0]])
    mixes = ([0.9, 0.1, 0.0], [0.0, 0.1, 0.9])
    drawn = [rng.choice(3, 60, p=mixes[j % 2]) for j in range(12)]
    words = topics[np.concatenate(drawn)] + rng.normal(size=(720, 2))
    model = MemoryBoundedTopics(memory=1600, document_groups=2, epoch_size=60).fit(
        words, groups=np.repeat(np.arange(12), 60)
    )
    held = model.documents_
    np.testing.assert_array_equal(held["size"], [6.0, 6.0])
    shares = np.sort(held["words"] / held["words"].sum(axis=1, keepdims=True), axis=1)
    np.testing.assert_allclose(shares, [[0.0, 0.1, 0.9]] * 2, atol=0.05)


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_one_document_is_a_mixture(covariance):
    rows, labels = clusters(4, n_rows=1200, gap=5.0)
    topics = MemoryBoundedTopics(covariance=covariance, memory=1500, document_groups=1).fit(rows)
    mixture = MemoryBoundedMixture(covariance=covariance, memory=1500).fit(rows)
    assert topics.n_components_ == mixture.n_components_
    np.testing.assert_allclose(topics.means_, mixture.means_, atol=0.05)
    np.testing.assert_allclose(topics.score(rows), mixture.score(rows), atol=0.01)
    assert adjusted_rand_score(topics.predict(rows), mixture.predict(rows)) > 0.99


def test_a_document_goes_on_over_calls_and_epochs(world):
    words, _, documents, known = world
    whole = MemoryBoundedTopics(memory=600, document_groups=10)
    parts = MemoryBoundedTopics(memory=600, document_groups=10)
    whole.partial_fit(words[:3000], groups=documents[:3000])
    for start in range(0, 3000, 37):
        parts.partial_fit(words[start : min(start + 37, 3000)], groups=documents[start : min(start + 37, 3000)])
    assert state_hash(whole.state()) == state_hash(parts.state())


def test_a_state_goes_on_with_the_open_document(world):
    words, _, documents, _ = world
    model = MemoryBoundedTopics(memory=600, document_groups=10).partial_fit(words[:1450], groups=documents[:1450])
    other = MemoryBoundedTopics(memory=600, document_groups=10)
    other.restore(model.state())
    for learner in (model, other):
        learner.partial_fit(words[1450:3000], groups=documents[1450:3000])
    assert state_hash(model.state()) == state_hash(other.state())


@pytest.mark.parametrize("groups", [[0, 1], [0.5, 1.0, 2.0], ["a", "b", "c"], [[0, 1, 2]]])
def test_groups_that_are_no_whole_number_a_row_are_refused_and_nothing_is_taken(groups):
    model = MemoryBoundedTopics(memory=200, document_groups=4).partial_fit(np.zeros((5, 2)))
    before = state_hash(model.state())
    with pytest.raises(ValueError, match="groups: shape .* must be a whole number for each of 3 rows"):
        model.partial_fit(np.ones((3, 2)), groups=np.array(groups))
    assert state_hash(model.state()) == before


def test_a_memory_without_room_for_one_clump_is_refused():
    with pytest.raises(ValueError, match="memory: 40 words of 2 values .* one clump of 64 document groups takes 37"):
        MemoryBoundedTopics(memory=40, epoch_size=30).allocate(2)


def test_shares_of_another_shape_are_refused(world):
    model = taught(world, memory=2000)
    with pytest.raises(ValueError, match="shares: shape"):
        model.score_samples(world[0][:4], np.ones(3))


def test_more_documents_than_there_is_room_for_end_an_epoch_early():
    rng = np.random.default_rng(1)
    model = MemoryBoundedTopics(memory=2000, document_groups=8)
    model.partial_fit(rng.normal(size=(100, 2)), groups=np.arange(100))
    assert model.epoch_ > 3
    assert len(model.documents_["size"]) <= 16


def test_probabilities_given_shares_leave_out_topics_that_the_document_has_not(world):
    model = taught(world, memory=2000)
    shares = np.zeros(model.n_components_)
    shares[2] = 1.0
    np.testing.assert_allclose(model.predict_proba(world[0][:5], shares)[:, 2], 1.0)
    assert (model.predict(world[0][:5], shares) == model.component_ids_[2]).all()


def test_a_document_is_most_similar_to_those_with_its_topics(world):
    words, topics, documents, known = world
    model = taught(world, memory=2000)
    zeta = model.posterior_of(words[known], documents[known])
    counts = np.array([np.bincount(topics[documents == j], minlength=10) for j in range(200)])
    log_shares = np.log((counts[:150] + 0.3) / 103.0)  # of the true topics, a little of each
    for asked in range(150, 160):
        likelihood = log_shares @ counts[asked]
        found = int(model.similarity(words[documents == asked], zeta).argmax())
        assert (likelihood > likelihood[found]).sum() < 4  # of 150


def test_documents_of_the_same_shares_are_likelier_together_and_no_order_matters(world):
    words, topics, documents, known = world
    model = taught(world, memory=2000)
    zeta = model.posterior_of(words[known], documents[known], updates=1)
    counts = np.array([np.bincount(topics[documents == j], minlength=10) for j in range(150)]) / 100.0
    score = model.likeness(zeta[:20], zeta)
    np.testing.assert_allclose(score[:, :20], score[:, :20].T, atol=1e-9)
    for asked in range(20):
        apart = np.abs(counts - counts[asked]).sum(axis=1)
        order = np.argsort(-score[asked])
        assert apart[order[:6]].mean() < 0.7 * apart.mean()
        assert apart[order[-6:]].mean() > apart.mean()


def test_one_update_takes_each_word_for_one_of_any_document(world):
    words, _, documents, known = world
    model = taught(world, memory=2000)
    one = model.posterior_of(words[known], documents[known], updates=1) - model.alpha_
    settled = model.posterior_of(words[known], documents[known]) - model.alpha_
    assert np.allclose(one.sum(axis=1), settled.sum(axis=1))
    assert (one > 0.5).sum() > (settled > 0.5).sum()  # further updates leave a document fewer topics


def test_a_posterior_of_other_topics_is_refused(world):
    model = taught(world, memory=2000)
    with pytest.raises(ValueError, match="zeta: shape"):
        model.similarity(world[0][:4], np.ones((2, 3)))
    k = model.n_components_
    for asked, match in (
        (np.ones((2, k - 1)), "asked: shape"),
        (np.full((2, k), np.nan), "asked: shape"),
        (model.alpha_[None] * 0.5, "no less than alpha"),
    ):
        with pytest.raises(ValueError, match=match):
            model.likeness(asked, model.alpha_[None])
    with pytest.raises(NotFittedError):
        MemoryBoundedTopics(memory=700).allocate(2).likeness(np.ones((1, 1)), np.ones((1, 1)))


def test_a_tight_topic_in_the_middle_of_a_wide_one_is_told_apart_by_the_documents_that_show_it():
    """No plane cuts it out, and to the wide topic none of its words is strange."""
    rng = np.random.default_rng(5)
    wide, tight = rng.normal(0.0, 3.0, (2000, 6)), rng.normal(0.0, 0.6, (300, 6))
    model = MemoryBoundedTopics(covariance="full", memory=2000, epoch_size=500, prior_scale=0.2)
    model.partial_fit(wide, groups=np.repeat(np.arange(40), 50)).flush()
    assert model.n_components_ == 1
    model.partial_fit(
        np.concatenate([tight, rng.normal(0.0, 3.0, (200, 6))]), groups=100 + np.repeat(np.arange(10), 50)
    ).flush()
    assert model.n_components_ == 2
    assert adjusted_rand_score(np.repeat([0, 1], 300), model.predict(np.concatenate([tight, wide[300:600]]))) > 0.8


def test_a_split_that_gains_a_word_too_little_is_not_made():
    """A ground whose look drifts is no draw of a Gaussian: the bound cuts it, the more so the more there is."""
    rng = np.random.default_rng(6)
    when = np.arange(6000) / 6000
    rows = rng.normal(size=(6000, 3)) + 5.0 * np.column_stack([np.sin(3 * when), np.cos(3 * when), 0 * when])
    rows = np.concatenate([rows, rng.normal(40.0, 1.0, (600, 3))])
    settings = {"covariance": "full", "memory": 2000, "prior_scale": 0.2}
    groups = np.repeat(np.arange(132), 50)
    free = MemoryBoundedTopics(**settings).fit(rows, groups=groups)
    held = MemoryBoundedTopics(**settings, least_gain=3.0).fit(rows, groups=groups)
    assert free.n_components_ > held.n_components_ == 2
    assert len(np.unique(held.predict(rows[-600:]))) == 1


def rods(seed: int, n_documents: int = 60, n_words: int = 60, n_rods: int = 12):
    """Return words on thin rods in space that cross each other, a few rods to a document, and their documents."""
    rng = np.random.default_rng(seed)
    middle, way = rng.uniform(-3.0, 3.0, (n_rods, 3)), rng.normal(size=(n_rods, 3))
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    shares = rng.dirichlet(np.full(n_rods, 0.3), n_documents)
    rod = np.concatenate([rng.choice(n_rods, n_words, p=share) for share in shares])
    along = rng.normal(0.0, 1.5, (len(rod), 1))
    return middle[rod] + along * way[rod] + rng.normal(0.0, 0.05, (len(rod), 3)), np.repeat(range(n_documents), n_words)


def test_where_clumps_are_dear_thin_topics_stay_apart_in_a_memory_of_a_third():
    words, documents = rods(seed=3)
    room = {"memory": 2 * len(words) + 60, "epoch_size": len(words)}
    settings = {"covariance": "full", "document_groups": 60, "prior_scale": 0.002}
    batch = MemoryBoundedTopics(**settings, **room).fit(words, groups=documents)
    model = MemoryBoundedTopics(**settings, memory=1400, epoch_size=600).fit(words, groups=documents)
    assert abs(model.n_components_ - batch.n_components_) <= 2
    assert model.free_energy_ >= batch.free_energy_ - 0.05 * len(words)
    assert model.score(words) >= batch.score(words) - 0.05
    held = model.documents_
    np.testing.assert_allclose(held["words"].sum(), len(words), rtol=1e-3)  # clumps and single words, none is lost
