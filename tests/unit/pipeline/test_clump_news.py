"""When clumps are told again: when what was learnt since is worth their bytes."""

from types import SimpleNamespace

import numpy as np
import pytest

from stillwatch.epochs.report import EpochModel, HeldClumps
from stillwatch.learn import MemoryBoundedMixture
from stillwatch.pipeline.clump_news import PATIENCE, ClumpNews

SECOND = 1_000_000_000


def learnt(model: MemoryBoundedMixture, name: str = "patches") -> EpochModel:
    held = HeldClumps(model.clumps_, model.epoch_, model.memory, model.clump_points_, model.rows_per_epoch)
    of_no_matter = dict.fromkeys(("most_sent", "horizon", "splits", "merges", "clumps", "singlets"), 0)
    return EpochModel(
        name=name, mixture=model.predictive(), free_energy=0.0, born=[], died=[], seconds=0.0, held=held, **of_no_matter
    )


@pytest.fixture
def stream():
    """Return a learner of a cluster, and rows of it and of another one."""
    rng = np.random.default_rng(0)
    model = MemoryBoundedMixture(memory=100).fit(rng.normal(size=(1000, 3)))
    return SimpleNamespace(model=model, same=rng.normal(size=(200, 3)), other=rng.normal(40.0, 1.0, (1000, 3)))


def test_first_clumps_are_told(stream):
    news = ClumpNews()
    assert news.tell(learnt(stream.model), t_ns=0)
    assert not news.tell(learnt(stream.model), t_ns=SECOND)


def test_clumps_that_say_nothing_new_are_never_told(stream):
    news = ClumpNews()
    news.tell(learnt(stream.model), t_ns=0)
    stream.model.partial_fit(stream.same).flush()
    assert not news.tell(learnt(stream.model), t_ns=100_000 * SECOND)


def test_more_news_are_told_sooner(stream):
    news = ClumpNews()
    before = learnt(stream.model)
    news.tell(before, t_ns=0)
    stream.model.partial_fit(stream.other).flush()
    now = learnt(stream.model)
    share = 0.5  # half of all rows are of the new cluster
    rows = now.held.clumps["mean"][now.held.clumps["mean"][:, 0] > 20.0]
    worth = share * float((now.mixture.score_samples(rows) - before.mixture.score_samples(rows)).mean())
    due_s = PATIENCE / worth
    assert not news.tell(now, t_ns=round(0.9 * due_s * SECOND))
    assert news.tell(now, t_ns=round(1.1 * due_s * SECOND))


def test_last_clumps_of_a_run_are_told_unless_they_were(stream):
    news = ClumpNews()
    news.tell(learnt(stream.model), t_ns=0)
    stream.model.partial_fit(stream.same).flush()
    assert news.tell(learnt(stream.model), t_ns=SECOND, at_once=True)
    assert not news.tell(learnt(stream.model), t_ns=2 * SECOND, at_once=True)


def test_mixtures_are_told_apart_and_forgotten_ones_are_told_again(stream):
    news = ClumpNews()
    assert all(news.tell(learnt(stream.model, name), t_ns=0) for name in ("patches", "scenes"))
    news.forget()
    assert news.tell(learnt(stream.model), t_ns=0)


def test_time_that_begins_anew_tells_them(stream):
    news = ClumpNews()
    news.tell(learnt(stream.model), t_ns=50 * SECOND)
    assert news.tell(learnt(stream.model), t_ns=0)
