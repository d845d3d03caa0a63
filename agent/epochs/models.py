"""The models that score frames now, by the learner's name: immutable snapshots of one finished epoch.

Made by agent/epochs/schedule.py; read by novelty, events and messages, on any thread.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from stillwatch.base import Array, SnapshotError, State, check_arrays, with_prefix, without_prefix
from stillwatch.learn import COVARIANCES, StudentMixture, TopicPredictive


class Models(Mapping[str, StudentMixture]):
    """Densities by name: `models["patches"]`. One that has had too few samples is not there: `models.get("scenes")`.

    Parameters
    ----------
    by_name : mapping of str to StudentMixture or TopicPredictive
        Of a topic model the density of any word is what its name gives.
    epoch : int
        Epochs learnt when they were taken.
    activated_frame : int
        Accepted frames seen when they became active.

    Attributes
    ----------
    topics : TopicPredictive or None
        What says the shares of topics in a frame; None before there is one.
    """

    def __init__(self, by_name: Mapping[str, StudentMixture | TopicPredictive], *, epoch: int, activated_frame: int):
        self._by_name = MappingProxyType(
            {name: model.corpus if isinstance(model, TopicPredictive) else model for name, model in by_name.items()}
        )
        self._alphas = {name: model.alpha for name, model in by_name.items() if isinstance(model, TopicPredictive)}
        self.topics = next((model for model in by_name.values() if isinstance(model, TopicPredictive)), None)
        self.epoch = epoch
        self.activated_frame = activated_frame

    def __getitem__(self, name: str) -> StudentMixture:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def state(self) -> State:
        """Return the summaries that `from_state` rebuilds the densities from, bit for bit."""
        state: State = {"epoch": np.array(self.epoch), "activated_frame": np.array(self.activated_frame)}
        for name, model in self._by_name.items():
            wanted = _summary_of(Form(model.kind, model.n_dims))
            state.update(with_prefix(name, {key: model.summary[key] for key in wanted}))
            if name in self._alphas:
                state[f"{name}.alpha"] = self._alphas[name].copy()
        return state

    @classmethod
    def from_state(cls, state: State, forms: Mapping[str, "Form"], required: tuple[str, ...]) -> "Models | None":
        """Rebuild models of these forms by name; None for the state before the first model.

        Raises SnapshotError where a summary does not fit, a required one is missing or one is there of no learner.
        """
        if not state:
            return None
        own = {name: array for name, array in state.items() if "." not in name}
        count = Array(np.int64, (), low=0)
        check_arrays(own, {"epoch": count, "activated_frame": count}, "active models")
        held = {name.partition(".")[0] for name in state if "." in name}
        wrong = sorted(held - set(forms)) + sorted(set(required) - held)
        if wrong:
            raise SnapshotError(f"active models: those of {', '.join(wrong)} are missing or too many")
        models: dict[str, StudentMixture | TopicPredictive] = {}
        for name in (name for name in forms if name in held):
            summary = without_prefix(name, state)
            check_arrays(summary, _summary_of(forms[name]), f"active models: {name}")
            models[name] = (TopicPredictive if forms[name].is_topics else StudentMixture).from_summary(summary)
        return cls(models, epoch=int(state["epoch"]), activated_frame=int(state["activated_frame"]))


class Form(NamedTuple):
    """What all models of one learner have in common."""

    covariance: str  # one of COVARIANCES
    n_dims: int
    is_topics: bool = False


def _summary_of(form: Form) -> dict[str, Array]:
    """Return what a saved summary of this form must hold; its numbers of components must agree besides."""
    kind, d, least = COVARIANCES.index(form.covariance), form.n_dims, float(np.finfo(np.float64).tiny)
    diagonal = form.covariance == "diagonal"
    own = {"alpha": Array(np.float64, (None,), low=least)} if form.is_topics else {}
    return own | {
        "kind": Array(np.int64, (), low=kind, high=kind),
        "epoch": Array(np.int64, (), low=0),
        "id": Array(np.int64, (None,), low=0),
        "count": Array(np.float64, (None,), low=0),
        "mean": Array(np.float64, (None, d)),
        "variance" if diagonal else "covariance": Array(np.float64, (None, d if diagonal else d * (d + 1) // 2)),
        "prior": Array(np.float64, (3,), low=least),
        "shift": Array(np.float64, (d,)),
        "scale": Array(np.float64, (d,), low=least),
        "concentration": Array(np.float64, (), low=least),
    }
