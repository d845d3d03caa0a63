"""The learners as the contract suites use them: how each is made, taught and asked.

Used by tests/contracts/test_learners.py and test_learner_states.py. A learner of the library's door that has no case
here joins with its default settings; what only one learner promises is in its own tests.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stillwatch import learn
from stillwatch.learn import GaussianProcessActiveSet, MemoryBoundedMixture, MemoryBoundedTopics, StreamGreedy
from stillwatch.learn.base import Estimator

N_DIMS = 4
_prepared: dict[tuple, Any] = {}


@dataclass(frozen=True)
class Case:
    """One learner as the checks use it.

    make : () -> a new learner, always with the same settings
    answers : (learner, X) -> what it can be asked about rows, as arrays
    is_supervised : whether `partial_fit` takes targets too: then they are a fixed function of the rows
    """

    name: str
    make: Callable[[], Any]
    answers: Callable[[Any, np.ndarray], list[np.ndarray]]
    is_supervised: bool = False

    def teach(self, learner: Any, X: np.ndarray) -> Any:
        if not self.is_supervised:
            return learner.partial_fit(X)
        targets = np.sin(np.asarray(X, np.float64)[:, 0]) if np.ndim(X) == 2 and np.shape(X)[1] else np.zeros(len(X))
        return learner.partial_fit(X, np.nan_to_num(targets))

    def taught(self, X: np.ndarray) -> Any:
        return self.teach(self.make(), X)

    def prepared(self, X: np.ndarray) -> Any:
        """Return a copy of one learner that was taught X: for tests of what comes after learning."""
        key = (self.name, X.dtype, X.shape, X.tobytes())
        if key not in _prepared:
            _prepared[key] = self.taught(X)
        return copy.deepcopy(_prepared[key])


def _mixture(covariance: str, **given) -> Case:
    def make():
        return MemoryBoundedMixture(
            covariance=covariance, memory=120, horizon=5000, max_components=8, **given
        ).allocate(N_DIMS)

    def answers(learner, X):
        return [learner.score_samples(X), learner.predict(X), learner.predict_proba(X)]

    return Case(f"MemoryBoundedMixture-{covariance}" + "".join(f"-{name}" for name in given), make, answers)


def _topics(covariance: str) -> Case:
    def make():
        return MemoryBoundedTopics(
            covariance=covariance, memory=240, document_groups=6, max_components=8, halflife=5000
        ).allocate(N_DIMS)

    def answers(learner, X):
        return [learner.score_samples(X), learner.predict(X), learner.predict_proba(X)]

    return Case(f"MemoryBoundedTopics-{covariance}", make, answers)


def _greedy(name: str, **given) -> Case:
    def make():
        return StreamGreedy(**({"k": 5, "block": 30, "validation": 60, "seed": 3} | given)).allocate(N_DIMS)

    def answers(learner, X):
        held = [learner.exemplars_, np.array(learner.utility_)]
        return [learner.predict(X), *held] if learner.n_held_ else held  # zeros gain nothing over the phantom

    return Case(f"StreamGreedy-{name}", make, answers)


def _process(objective: str) -> Case:
    def make():
        return GaussianProcessActiveSet(
            k=6, lengthscales=np.full(N_DIMS, 2.0), objective=objective, block=30, validation=60, seed=3
        ).allocate(N_DIMS)

    return Case(
        f"GaussianProcessActiveSet-{objective}",
        make,
        lambda learner, X: list(learner.predict(X, return_std=True)),
        True,
    )


def _by_default(kind: type[Estimator]) -> Case:
    return Case(kind.__name__, lambda: kind().allocate(N_DIMS), lambda learner, X: [learner.predict(X)])


def learners_of_the_door() -> list[type[Estimator]]:
    """Return the classes of the library's door that are learners of rows."""
    found = [getattr(learn, name) for name in learn.__all__]
    return [thing for thing in found if isinstance(thing, type) and issubclass(thing, Estimator)]


WRITTEN = [
    _mixture("diagonal"),
    _mixture("full"),
    _mixture("full", warm_start=False, clump_moments="exact"),
    _topics("diagonal"),
    _topics("full"),
    _greedy("squared"),
    _greedy("cosine", dissimilarity="cosine"),
    _greedy("racing", racing=0.1),
    _process("variance"),
    _process("entropy"),
]
ALL_LEARNERS = WRITTEN + [
    _by_default(kind) for kind in learners_of_the_door() if kind not in {type(case.make()) for case in WRITTEN}
]


def rows(n: int, seed: int = 0) -> np.ndarray:
    """Return rows of three clusters, float64."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(3, N_DIMS))[rng.integers(3, size=n)] * 4.0 + rng.normal(size=(n, N_DIMS))
