"""What every learner promises, as checks that run over ALL_LEARNERS: the contract of the common verbs.

Used by tests/unit/agent/test_learner_contract.py. A new learner joins by one line in ALL_LEARNERS; what only one
learner promises is in its own tests.
"""

import contextlib
import inspect
import io
import sys
import threading
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from stillwatch.base.state import state_hash
from stillwatch.learn.exemplars.gaussian_process import GaussianProcessActiveSet
from stillwatch.learn.exemplars.stream_greedy import StreamGreedy
from stillwatch.learn.mixture.mixture import MemoryBoundedMixture

N_DIMS = 4


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


def _mixture(covariance: str, **given) -> Case:
    def make():
        return MemoryBoundedMixture(
            covariance=covariance, memory=120, horizon=5000, max_components=8, **given
        ).allocate(N_DIMS)

    def answers(learner, X):
        return [learner.score_samples(X), learner.predict(X), learner.predict_proba(X)]

    return Case(f"MemoryBoundedMixture-{covariance}" + "".join(f"-{name}" for name in given), make, answers)


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


ALL_LEARNERS = [
    _mixture("diagonal"),
    _mixture("full"),
    _mixture("full", warm_start=False, clump_moments="exact"),
    _greedy("squared"),
    _greedy("cosine", dissimilarity="cosine"),
    _greedy("racing", racing=0.1),
    _process("variance"),
    _process("entropy"),
]


def rows(n: int, seed: int = 0) -> np.ndarray:
    """Return rows of three clusters, float64."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(3, N_DIMS))[rng.integers(3, size=n)] * 4.0 + rng.normal(size=(n, N_DIMS))


def public(learner: Any) -> dict[str, str]:
    """Return the settings of a learner: what its constructor was given."""
    names = [name for name in inspect.signature(type(learner)).parameters if hasattr(learner, name)]
    return {name: repr(getattr(learner, name)) for name in names}


# -- learning --------------------------------------------------------------------------------------------------


def check_the_input_is_not_touched_and_may_be_read_only(case: Case) -> None:
    X = rows(200)
    X.setflags(write=False)
    copy = X.copy()
    learner = case.taught(X)
    case.answers(learner, X)
    np.testing.assert_array_equal(X, copy)


def check_rows_given_are_not_held_by_reference(case: Case) -> None:
    X = rows(200)
    learner = case.taught(X)
    before = state_hash(learner.state())
    X[:] = 0.0
    assert state_hash(learner.state()) == before


def check_same_seed_same_bits(case: Case) -> None:
    X = rows(500)
    assert state_hash(case.taught(X).state()) == state_hash(case.taught(X).state())


def check_same_bits_in_another_thread_beside_a_second_learner(case: Case) -> None:
    X, found = rows(500), {}

    def work(name: str) -> None:
        found[name] = state_hash(case.taught(X).state())

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found.values()) == {state_hash(case.taught(X).state())}


def check_how_the_calls_are_cut_does_not_matter(case: Case) -> None:
    X = rows(400)
    whole, parts = case.taught(X), case.make()
    cuts = np.random.default_rng(1).choice(np.arange(1, 400), 25, replace=False)
    for part in np.split(X, np.sort(cuts)):
        case.teach(parts, part)
    for a, b in zip(case.answers(whole, X[:50]), case.answers(parts, X[:50]), strict=True):
        np.testing.assert_array_equal(a, b)
    ours, theirs = whole.state(), parts.state()
    # StreamGreedy's note of where the last call began is of the calls by its nature (changed_ids_).
    for state in (ours, theirs):
        state.pop("version_before", None)
    assert state_hash(ours) == state_hash(theirs)


def check_float32_and_float64_of_the_same_numbers_teach_the_same(case: Case) -> None:
    X = rows(300).astype(np.float32)
    assert state_hash(case.taught(X).state()) == state_hash(case.taught(X.astype(np.float64)).state())


def check_settings_are_not_changed_by_learning(case: Case) -> None:
    learner = case.make()
    before = public(learner)
    case.answers(case.teach(learner, rows(400)).flush(), rows(10))
    assert public(learner) == before


def check_verbs_return_the_learner(case: Case) -> None:
    learner = case.make()
    assert case.teach(learner, rows(10)) is learner
    assert learner.flush() is learner


def check_no_mutable_default_is_shared(case: Case) -> None:
    for parameter in inspect.signature(type(case.make())).parameters.values():
        default = parameter.default
        assert default is inspect.Parameter.empty or isinstance(default, (int, float, str, bool, type(None), tuple))


# -- bad input -------------------------------------------------------------------------------------------------

INVALID = {
    "nan": np.where(np.arange(12).reshape(3, 4) == 6, np.nan, 1.0),
    "inf": np.where(np.arange(12).reshape(3, 4) == 6, np.inf, 1.0),
    "minus inf": np.where(np.arange(12).reshape(3, 4) == 6, -np.inf, 1.0),
    "too narrow": np.ones((3, 3)),
    "too wide": np.ones((3, 5)),
    "one row without its axis": np.ones(4),
    "three axes": np.ones((2, 3, 4)),
    "text": np.full((3, 4), "a"),
    "complex": np.full((3, 4), 1j),
    "objects": np.full((3, 4), None),
}


def check_invalid_rows_are_refused_and_teach_nothing(case: Case) -> None:
    learner = case.taught(rows(200))
    before = state_hash(learner.state())
    for name, X in INVALID.items():
        for verb in (
            learner.partial_fit,
            *(getattr(learner, v) for v in ("predict", "score_samples", "predict_proba") if hasattr(learner, v)),
        ):
            given = (X, np.zeros(len(X))) if case.is_supervised and verb == learner.partial_fit else (X,)
            with pytest.raises(ValueError, match="X"):
                verb(*given)
            assert state_hash(learner.state()) == before, name


def check_one_invalid_row_among_good_ones_refuses_the_whole_call(case: Case) -> None:
    learner = case.taught(rows(200))
    before = state_hash(learner.state())
    X = rows(100)
    X[77, 1] = np.nan
    with pytest.raises(ValueError, match="77"):
        case.teach(learner, X)
    assert state_hash(learner.state()) == before


def check_no_rows_teach_nothing(case: Case) -> None:
    learner = case.taught(rows(200))
    before = state_hash(learner.state())
    with contextlib.suppress(ValueError):  # refused or not, as the learner likes
        case.teach(learner, np.zeros((0, N_DIMS)))
    assert state_hash(learner.state()) == before


# -- any finite input ------------------------------------------------------------------------------------------

FINITE = {
    "one row of 1e12": np.insert(rows(300), 150, 1e12, axis=0),
    "first row 1e12": np.insert(rows(300), 0, 1e12, axis=0),
    "a constant column": np.where(np.arange(N_DIMS) == 2, 1.5, rows(300)),
    "all columns constant but one": np.where(np.arange(N_DIMS) == 2, rows(300), 7.0),
    "ten thousand identical rows": np.repeat(rows(1), 10_000, axis=0),
    "identical rows, then others": np.concatenate([np.repeat(rows(1), 300, axis=0), rows(200)]),
    "mean of 1e4 deviations": (1e4 + np.random.default_rng(0).normal(size=(300, N_DIMS))).astype(np.float32),
    "two values": np.where(rows(300) > 0.0, 1.0, -1.0),
    "zeros": np.zeros((300, N_DIMS)),
    "tiny": rows(300) * 1e-30,
    "huge": rows(300) * 1e13,
    "integers": (rows(300) * 10).astype(np.int64),
}


def check_state_and_answers_are_finite_after_any_finite_input(case: Case) -> None:
    for name, X in FINITE.items():
        learner = case.taught(X).flush()
        for key, array in learner.state().items():
            assert np.isfinite(array).all(), f"{name}: {key}"
        for array in case.answers(learner, np.concatenate([X[:20], rows(20)])):
            assert np.isfinite(array).all(), name


def check_it_goes_on_learning_after_any_finite_input(case: Case) -> None:
    for name, X in FINITE.items():
        learner = case.taught(X)
        before = state_hash(learner.state())
        case.teach(learner, rows(300, seed=5))
        assert state_hash(learner.state()) != before, name
        assert all(np.isfinite(array).all() for array in case.answers(learner, rows(50))), name


# -- asking ----------------------------------------------------------------------------------------------------


def check_asking_changes_nothing(case: Case) -> None:
    X = rows(300)
    learner = case.taught(X)
    before = state_hash(learner.state())
    first = case.answers(learner, X)
    for again, wanted in zip(case.answers(learner, X), first, strict=True):
        np.testing.assert_array_equal(again, wanted)
    assert state_hash(learner.state()) == before


def check_asking_between_rows_does_not_change_what_is_learnt(case: Case) -> None:
    X, curious, silent = rows(400), case.make(), case.make()
    for first in range(0, 400, 40):
        case.teach(curious, X[first : first + 40])
        case.teach(silent, X[first : first + 40])
        if first >= 80:
            case.answers(curious, rows(7, seed=9))
            _ = curious.state(), curious.memory_bytes()
    assert state_hash(curious.state()) == state_hash(silent.state())


def check_a_row_is_answered_alike_alone_and_among_others(case: Case) -> None:
    X = rows(150)
    learner = case.taught(rows(300))
    together = case.answers(learner, X)
    alone = [case.answers(learner, X[i : i + 1]) for i in range(0, 150, 29)]
    for a, whole in enumerate(together):
        if whole.shape[:1] != (150,):
            continue  # not about rows
        for j, i in enumerate(range(0, 150, 29)):
            np.testing.assert_allclose(alone[j][a][0], whole[i], rtol=1e-10, atol=1e-10)


# -- state and memory ------------------------------------------------------------------------------------------


def check_a_restored_learner_continues_identically(case: Case) -> None:
    X = rows(600)
    for n_before in (0, 17, 130, 333):
        first, second = case.make(), case.make()
        if n_before:
            case.teach(first, X[:n_before])
        second.restore(first.state())
        assert state_hash(second.state()) == state_hash(first.state())
        for learner in (first, second):
            case.teach(learner, X[n_before:]).flush()
        assert state_hash(second.state()) == state_hash(first.state())
        for a, b in zip(case.answers(first, X), case.answers(second, X), strict=True):
            np.testing.assert_array_equal(a, b)


def check_state_goes_through_a_file_without_pickle(case: Case) -> None:
    X = rows(200)
    first, second, file = case.taught(X), case.make(), io.BytesIO()
    np.savez(file, **first.state())
    file.seek(0)
    with np.load(file, allow_pickle=False) as saved:
        second.restore(dict(saved))
    assert state_hash(case.teach(second, X).state()) == state_hash(case.teach(first, X).state())


def check_state_is_a_copy(case: Case) -> None:
    learner = case.taught(rows(200))
    before = state_hash(learner.state())
    for array in learner.state().values():
        if array.flags.writeable:
            array[...] = np.zeros((), array.dtype)
    assert state_hash(learner.state()) == before


def check_memory_is_the_same_from_the_first_row_to_the_last(case: Case) -> None:
    learner = case.make()
    before = learner.memory_bytes()
    for i in range(8):
        case.teach(learner, rows(300, seed=i))
        assert learner.memory_bytes() == before
        assert sum(array.nbytes for array in learner.state().values()) <= sum(before.values())


def check_a_long_call_takes_little_more_than_its_rows(case: Case) -> None:
    X = rows(3_000)
    learner = case.taught(rows(200))  # what is made lazily is made
    tracemalloc.start()
    try:
        case.teach(learner, X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A copy in float64, masks and temporaries of one block; a matrix of n x n would take 72 MB.
    assert peak <= 3 * X.nbytes + 2 * sum(learner.memory_bytes().values()) + 1_000_000


# -- documentation ---------------------------------------------------------------------------------------------


def check_docstring_names_its_parameters_and_a_reference(case: Case) -> None:
    kind = type(case.make())
    text = inspect.getdoc(kind) or ""
    assert "Gomes" in text
    for name in inspect.signature(kind).parameters:
        assert name in text, f"{kind.__name__}: {name} is not described"


ALL_CHECKS = {
    name.removeprefix("check_"): check
    for name, check in vars(sys.modules[__name__]).items()
    if name.startswith("check_")
}
