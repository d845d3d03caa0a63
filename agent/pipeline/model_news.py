"""Decides when a model is told again, and how much of it: what it says that stations do not know yet.

Called by agent/pipeline/summaries.py for each finished epoch. Counted in stream time and decided by the models alone: a
replay tells the same. It must not change a model.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stillwatch.transport.mirror import divergences, posterior_gaussians, summary_of
from stillwatch.transport.wire import changed_model, model_change
from stillwatch.transport.wire import messages as m

LEAST_NEWS = 0.05  # nats a sample that believing what was told before costs: less is not told
PATIENCE = 15.0  # nats a sample times seconds: how long small news waits for more
SHARE_LEFT = 0.2  # of the news may stay untold in components that hardly moved


def is_worth_telling(news: float, waited_ns: int, patience: float) -> bool:
    """Return whether news, nats a sample, are enough for the time since the last: the less, the later, or never.

    patience : nats a sample times seconds
    """
    return news >= LEAST_NEWS and news * waited_ns / 1e9 >= patience


class _Said:
    """What a model says, as stations read it: components with their shares, the largest first."""

    def __init__(self, model: m.Model):
        summary = summary_of(model)
        self.ids, self.shares = summary.ids.tolist(), summary.shares
        self.gaussians = posterior_gaussians(summary)


@dataclass
class _Told:
    model: m.Model  # whole, as stations have it
    t_ns: int

    @cached_property
    def said(self) -> _Said:
        """Read once: every later epoch is compared with it."""
        return _Said(self.model)


class ModelNews:
    """What was told of each model."""

    def __init__(self) -> None:
        self._told: dict[str, _Told] = {}

    def forget(self) -> None:
        """Tell every model whole again."""
        self._told = {}

    def is_due(self, model: m.Model, *, at_once: bool = False) -> bool:
        """Return whether the model says enough that was not told, for the time since it was; `at_once`: anything."""
        told = self._told.get(model.which)
        if told is None or model.t_ns < told.t_ns or model.labels != told.model.labels:
            return True
        if at_once:
            return model.model_epoch != told.model.model_epoch
        return is_worth_telling(float(_costs(told.said, model).sum()), model.t_ns - told.t_ns, PATIENCE)

    def tell(self, model: m.Model) -> m.Model:
        """Return the message by which stations come to know the model: the whole, or what has moved of it."""
        told = self._told.get(model.which)
        is_whole = (
            told is None
            or model.t_ns < told.t_ns
            or (told.model.covariance, told.model.n_dims) != (model.covariance, model.n_dims)
        )
        if told is None or is_whole:
            self._told[model.which] = _Told(model, model.t_ns)
            return model
        change = model_change(told.model, model, _moved(told, model))
        self._told[model.which] = _Told(changed_model(told.model, change), model.t_ns)
        return change


def _costs(before: _Said, model: m.Model) -> np.ndarray:
    """Return each component's part, (k,) nats a sample, of a bound on the divergence of `model` from what was said.

    By the log-sum inequality KL(sum w f || sum v g) <= sum w (log w / v + KL(f || g)): Do, Fast approximation of
    Kullback-Leibler distance for dependence trees and hidden Markov models (2003). A component that is not known is
    compared with its nearest known one, which it then shares.
    """
    now = _Said(model)
    row_of = {who: row for row, who in enumerate(before.ids)}
    pairs = [
        (k, row)
        for k, who in enumerate(now.ids)
        for row in ([row_of[who]] if who in row_of else range(len(before.ids)))
    ]
    told = divergences([now.gaussians[k] for k, _ in pairs], [before.gaussians[row] for _, row in pairs])
    places, rows = np.array(pairs, np.int64).reshape(-1, 2).T
    costs = np.full(len(now.ids), np.inf)
    np.minimum.at(costs, places, told + np.log(now.shares[places] / before.shares[rows]))
    order = {who: k for k, who in enumerate(now.ids)}
    kept = [order[who] for who in model.ids.tolist()]
    return now.shares[kept] * costs[kept]


def _moved(told: _Told, model: m.Model) -> list[int]:
    """Return the ids whose rows must be told: the dearest first, until what is left is a small part, and all new."""
    costs = _costs(told.said, model)
    before = set(told.model.ids.tolist())
    most_left = SHARE_LEFT * max(LEAST_NEWS, float(costs[costs > 0].sum()))
    moved = [who for who in model.ids.tolist() if who not in before]
    left = float(costs[costs > 0].sum())
    for row in np.argsort(-costs, kind="stable").tolist():
        if left <= most_left:
            break
        left -= max(float(costs[row]), 0.0)
        if int(model.ids[row]) not in moved:
            moved.append(int(model.ids[row]))
    return moved
