"""What every learner promises: the contract of the common verbs, over each learner of the library."""

import contextlib
import inspect
import io
import re
import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest
from learner_cases import ALL_LEARNERS, N_DIMS, rows

from stillwatch.base import NotFittedError, state_hash
from stillwatch.epochs.registry import make_learners
from stillwatch.learn import ComponentExemplars
from stillwatch.settings import Config


@pytest.fixture(params=ALL_LEARNERS, ids=lambda case: case.name)
def case(request):
    return request.param


def test_every_learner_of_the_agents_table_is_under_the_contract():
    used = {
        type(learner) for learner in make_learners(Config(), n_patch_dims=4, n_word_dims=3, n_frame_dims=5).values()
    }
    assert used - {ComponentExemplars} <= {type(case.make()) for case in ALL_LEARNERS}


def public(learner: Any) -> dict[str, str]:
    """Return the settings of a learner: what its constructor was given."""
    names = [name for name in inspect.signature(type(learner)).parameters if hasattr(learner, name)]
    return {name: repr(getattr(learner, name)) for name in names}


# -- learning --------------------------------------------------------------------------------------------------


def test_the_input_is_not_touched_and_may_be_read_only(case):
    X = rows(200)
    X.setflags(write=False)
    copy = X.copy()
    learner = case.taught(X)
    case.answers(learner, X)
    np.testing.assert_array_equal(X, copy)


def test_rows_given_are_not_held_by_reference(case):
    X = rows(200)
    learner = case.taught(X)
    before = state_hash(learner.state())
    X[:] = 0.0
    assert state_hash(learner.state()) == before


def test_same_seed_same_bits(case):
    X = rows(500)
    assert state_hash(case.taught(X).state()) == state_hash(case.taught(X).state())


def test_same_bits_in_another_thread_beside_a_second_learner(case):
    X, found = rows(500), {}

    def work(name: str) -> None:
        found[name] = state_hash(case.taught(X).state())

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found.values()) == {state_hash(case.taught(X).state())}


def test_how_the_calls_are_cut_does_not_matter(case):
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


def test_float32_and_float64_of_the_same_numbers_teach_the_same(case):
    X = rows(300).astype(np.float32)
    assert state_hash(case.taught(X).state()) == state_hash(case.taught(X.astype(np.float64)).state())


def test_settings_are_not_changed_by_learning(case):
    learner = case.make()
    before = public(learner)
    case.answers(case.teach(learner, rows(400)).flush(), rows(10))
    assert public(learner) == before


def test_verbs_return_the_learner(case):
    learner = case.make()
    assert case.teach(learner, rows(10)) is learner
    assert learner.flush() is learner


def test_no_mutable_default_is_shared(case):
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


def test_invalid_rows_are_refused_and_teach_nothing(case):
    learner = case.prepared(rows(200))
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


def test_one_invalid_row_among_good_ones_refuses_the_whole_call(case):
    learner = case.prepared(rows(200))
    before = state_hash(learner.state())
    X = rows(100)
    X[77, 1] = np.nan
    with pytest.raises(ValueError, match="77"):
        case.teach(learner, X)
    assert state_hash(learner.state()) == before


def test_no_rows_teach_nothing(case):
    learner = case.prepared(rows(200))
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
    "a thousand identical rows": np.repeat(rows(1), 1_000, axis=0),
    "identical rows, then others": np.concatenate([np.repeat(rows(1), 300, axis=0), rows(200)]),
    "mean of 1e4 deviations": (1e4 + np.random.default_rng(0).normal(size=(300, N_DIMS))).astype(np.float32),
    "two values": np.where(rows(300) > 0.0, 1.0, -1.0),
    "zeros": np.zeros((300, N_DIMS)),
    "tiny": rows(300) * 1e-30,
    "huge": rows(300) * 1e13,
    "integers": (rows(300) * 10).astype(np.int64),
}


@pytest.fixture(
    params=[
        pytest.param(FINITE, id="short"),
        pytest.param({"identical": np.repeat(rows(1), 10_000, axis=0)}, id="long", marks=pytest.mark.soak),
    ]
)
def finite(request):
    return request.param


def test_state_and_answers_are_finite_after_any_finite_input(case, finite):
    for name, X in finite.items():
        learner = case.prepared(X).flush()
        for key, array in learner.state().items():
            assert np.isfinite(array).all(), f"{name}: {key}"
        for array in case.answers(learner, np.concatenate([X[:20], rows(20)])):
            assert np.isfinite(array).all(), name


def test_it_goes_on_learning_after_any_finite_input(case, finite):
    for name, X in finite.items():
        learner = case.prepared(X)
        before = state_hash(learner.state())
        case.teach(learner, rows(300, seed=5))
        assert state_hash(learner.state()) != before, name
        assert all(np.isfinite(array).all() for array in case.answers(learner, rows(50))), name


# -- asking ----------------------------------------------------------------------------------------------------


def test_asking_changes_nothing(case):
    X = rows(300)
    learner = case.prepared(X)
    before = state_hash(learner.state())
    first = case.answers(learner, X)
    for again, wanted in zip(case.answers(learner, X), first, strict=True):
        np.testing.assert_array_equal(again, wanted)
    assert state_hash(learner.state()) == before


def test_asking_between_rows_does_not_change_what_is_learnt(case):
    X, curious, silent = rows(400), case.make(), case.make()
    for first in range(0, 400, 40):
        case.teach(curious, X[first : first + 40])
        case.teach(silent, X[first : first + 40])
        if first >= 80:
            case.answers(curious, rows(7, seed=9))
            _ = curious.state(), curious.memory_bytes()
    assert state_hash(curious.state()) == state_hash(silent.state())


def test_a_row_is_answered_alike_alone_and_among_others(case):
    X = rows(150)
    learner = case.prepared(rows(300))
    together = case.answers(learner, X)
    alone = [case.answers(learner, X[i : i + 1]) for i in range(0, 150, 29)]
    for a, whole in enumerate(together):
        if whole.shape[:1] != (150,):
            continue  # not about rows
        for j, i in enumerate(range(0, 150, 29)):
            np.testing.assert_allclose(alone[j][a][0], whole[i], rtol=1e-10, atol=1e-10)


# -- state and memory ------------------------------------------------------------------------------------------


def test_a_restored_learner_continues_identically(case):
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


def test_state_goes_through_a_file_without_pickle(case):
    X = rows(200)
    first, second, file = case.prepared(X), case.make(), io.BytesIO()
    np.savez(file, **first.state())
    file.seek(0)
    with np.load(file, allow_pickle=False) as saved:
        second.restore(dict(saved))
    assert state_hash(case.teach(second, X).state()) == state_hash(case.teach(first, X).state())


def test_state_is_a_copy(case):
    learner = case.prepared(rows(200))
    before = state_hash(learner.state())
    for array in learner.state().values():
        if array.flags.writeable:
            array[...] = np.zeros((), array.dtype)
    assert state_hash(learner.state()) == before


def test_memory_is_the_same_from_the_first_row_to_the_last(case):
    learner = case.make()
    before = learner.memory_bytes()
    for i in range(8):
        case.teach(learner, rows(300, seed=i))
        assert learner.memory_bytes() == before
        assert sum(array.nbytes for array in learner.state().values()) <= sum(before.values())


def test_a_long_call_takes_little_more_than_its_rows(case):
    X = rows(1_200)
    learner = case.prepared(rows(200))  # what is made lazily is made
    tracemalloc.start()
    try:
        case.teach(learner, X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A copy in float64, masks and temporaries of one block; a matrix of n x n would take 12 MB.
    assert peak <= 3 * X.nbytes + 2 * sum(learner.memory_bytes().values()) + 1_000_000


# -- documentation ---------------------------------------------------------------------------------------------


def test_docstring_names_its_parameters_and_a_reference(case):
    kind = type(case.make())
    text = inspect.getdoc(kind) or ""
    assert re.search(r"Gomes|\b(19|20)\d\d\b", text)  # an author and year, or a chapter of the thesis
    for name in inspect.signature(kind).parameters:
        assert name in text, f"{kind.__name__}: {name} is not described"


# -- settings --------------------------------------------------------------------------------------------------


def setting_of(learner: Any, *wanted: str) -> str:
    """Return the first of the wanted settings that a learner has; else its first that is a whole number."""
    params = learner.get_params()
    numbers = [name for name, value in params.items() if type(value) is int]
    return next(name for name in (*wanted, *numbers) if name in params)


def test_a_constructor_only_assigns(case):
    kind = type(case.make())
    wrong = {name: object() for name in inspect.signature(kind).parameters}
    assert vars(kind(**wrong)) == wrong


def test_settings_changed_after_memory_was_taken_are_refused_until_it_is_taken_anew(case):
    learner = case.prepared(rows(100))
    before = state_hash(learner.state())
    name = setting_of(learner, "seed")
    learner.set_params(**{name: getattr(learner, name) + 17})
    with pytest.raises(ValueError, match=f"{name}: changed after memory was taken"):
        case.teach(learner, rows(10))
    assert state_hash(learner.state()) == before
    case.teach(learner.allocate(N_DIMS), rows(10))


def test_settings_that_cannot_work_are_refused_by_allocate_and_change_nothing(case):
    learner = case.prepared(rows(100))
    before = state_hash(learner.state())
    for width in (0, -1):
        with pytest.raises(ValueError, match=f"n_features: {width} is below 1"):
            learner.allocate(width)
    size = setting_of(learner, "horizon", "k")
    works = getattr(learner, size)
    learner.set_params(**{size: 0 if size in ("horizon", "k") else -1})
    with pytest.raises(ValueError, match=size):
        learner.allocate(N_DIMS)
    learner.set_params(**{size: works})
    assert state_hash(learner.state()) == before


def test_a_setting_that_does_not_exist_is_named(case):
    with pytest.raises(ValueError, match="Invalid parameter 'clumps'"):
        case.make().set_params(clumps=3)


def test_a_learner_without_rows_says_so_whatever_is_asked(case):
    learner = type(case.make())(**case.make().get_params())
    for ask in (learner.state, learner.summary, learner.memory_bytes, lambda: learner.predict(rows(3))):
        with pytest.raises(NotFittedError, match="no rows yet"):
            ask()
    assert learner.flush() is learner


def test_fit_is_a_new_learners_partial_fit_and_flush(case):
    X, learner = rows(300), case.prepared(rows(100, seed=8))
    learner.fit(X, np.sin(X[:, 0]))
    assert state_hash(learner.state()) == state_hash(case.taught(X).flush().state())


def test_a_summary_is_made_of_copies_with_names(case):
    learner = case.prepared(rows(300))
    before = state_hash(learner.state())
    for name, array in learner.summary().items():
        assert isinstance(array, np.ndarray), name
        array[...] = 0
    assert state_hash(learner.state()) == before
