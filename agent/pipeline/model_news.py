"""Decides when a model is told again, and how much of it: what it says that stations do not know yet.

Called by agent/pipeline/summaries.py for each finished epoch. Counted in stream time and decided by the models alone: a
replay tells the same. It must not change a model.
"""

from dataclasses import dataclass

import numpy as np

from stillwatch.transport.mirror import divergence, posterior_gaussians, summary_of
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


@dataclass(slots=True)
class _Told:
    model: m.Model  # whole, as stations have it
    t_ns: int


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
        return is_worth_telling(float(_costs(told.model, model).sum()), model.t_ns - told.t_ns, PATIENCE)

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
        change = model_change(told.model, model, _moved(told.model, model))
        self._told[model.which] = _Told(changed_model(told.model, change), model.t_ns)
        return change


def _costs(known: m.Model, model: m.Model) -> np.ndarray:
    """Return each component's part, (k,) nats a sample, of a bound on the divergence of `model` from what is known.

    By the log-sum inequality KL(sum w f || sum v g) <= sum w (log w / v + KL(f || g)): Do, Fast approximation of
    Kullback-Leibler distance for dependence trees and hidden Markov models (2003). A component that is not known is
    compared with its nearest known one, which it then shares.
    """
    now, before = summary_of(model), summary_of(known)
    shares, old_shares = now.shares, before.shares
    targets, places = posterior_gaussians(now), posterior_gaussians(before)
    row_of = {int(who): row for row, who in enumerate(before.ids)}
    costs = np.zeros(len(targets))
    for k, (who, target) in enumerate(zip(now.ids.tolist(), targets, strict=True)):
        rows = [row_of[who]] if who in row_of else range(len(places))
        costs[k] = min(
            (divergence(target, places[row]) + float(np.log(shares[k] / old_shares[row])) for row in rows),
            default=np.inf,
        )
    found = np.zeros(len(model.ids))
    order = {int(who): k for k, who in enumerate(now.ids)}
    for row, who in enumerate(model.ids.tolist()):
        found[row] = shares[order[who]] * costs[order[who]]
    return found


def _moved(known: m.Model, model: m.Model) -> list[int]:
    """Return the ids whose rows must be told: the dearest first, until what is left is a small part, and all new."""
    costs = _costs(known, model)
    before = set(known.ids.tolist())
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
