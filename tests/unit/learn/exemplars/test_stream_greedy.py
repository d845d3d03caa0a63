"""StreamGreedy as users meet it: what it holds, what it refuses, what it remembers, and that its memory is fixed."""

import numpy as np
import pytest
from reference_kernels_exemplars import DISSIMILARITIES

from stillwatch.base.errors import NotFittedError, SnapshotError
from stillwatch.base.state import state_hash
from stillwatch.learn.exemplars.stream_greedy import StreamGreedy


def rows(n, d=4, seed=0, scale=1.0):
    return (scale * np.random.default_rng(seed).normal(size=(n, d))).astype(np.float32)


def learner(d=4, **given):
    return StreamGreedy(**({"k": 5, "block": 20, "validation": 50} | given)).allocate(d)


def tags(n, first=0):
    return [f"row {first + i}".encode() for i in range(n)]


# -- what it holds ---------------------------------------------------------------------------------------------


def test_exemplars_are_rows_of_the_stream_where_they_say_they_were():
    X = rows(200)
    found = learner().partial_fit(X)
    assert found.exemplars_.shape == (5, 4)
    assert np.array_equal(found.exemplars_, X[found.exemplar_rows_])


def test_payloads_travel_with_their_rows():
    found = learner(payload_bytes=12).partial_fit(rows(200), payload=tags(200))
    assert found.payloads() == [f"row {i}".encode() for i in found.exemplar_rows_]


def test_a_row_without_payload_has_an_empty_one():
    X = rows(40)
    assert learner(payload_bytes=4).partial_fit(X).payloads() == [b""] * 5
    given = [b"abc" if i % 2 else None for i in range(40)]
    found = learner(payload_bytes=4).partial_fit(X, payload=given)
    assert found.payloads() == [b"abc" if i % 2 else b"" for i in found.exemplar_rows_]


def test_a_matrix_of_bytes_is_taken_as_payloads():
    numbers = np.arange(100, dtype="<i8").view(np.uint8).reshape(100, 8)
    found = learner(payload_bytes=8).partial_fit(rows(100), payload=numbers)
    assert [int.from_bytes(p, "little") for p in found.payloads()] == found.exemplar_rows_.tolist()


def test_ids_stay_with_a_row_and_are_never_used_again():
    found, seen = learner(), {}
    for i in range(30):
        found.partial_fit(rows(20, seed=i, scale=1.0 + i))
        newest = max(seen, default=-1)
        for key, row in zip(found.exemplar_ids_.tolist(), found.exemplar_rows_.tolist(), strict=True):
            assert key in seen or key > newest
            assert seen.setdefault(key, row) == row
    assert len(seen) > 5


def test_changed_ids_are_those_of_the_last_call():
    found = learner().partial_fit(rows(60))
    before = set(found.exemplar_ids_.tolist())
    assert set(found.changed_ids_.tolist()) == before
    found.partial_fit(rows(40, seed=9, scale=5.0))
    assert set(found.changed_ids_.tolist()) == set(found.exemplar_ids_.tolist()) - before
    version = found.version_
    found.partial_fit(rows(1))  # fills no block
    assert found.changed_ids_.size == 0
    assert found.version_ == version


@pytest.mark.parametrize("dissimilarity", ["sqeuclidean", "cosine", "chi_square", "hellinger"])
def test_no_two_exemplars_are_equal(dissimilarity):
    few = np.abs(rows(3))
    found = learner(dissimilarity=dissimilarity).partial_fit(few[np.random.default_rng(0).integers(0, 3, 200)])
    assert len(np.unique(found.exemplars_, axis=0)) == found.n_held_ <= 3


def test_negative_zero_and_zero_are_the_same_row():
    X = np.array([[0.0, 1.0], [-0.0, 1.0]] * 10, np.float32)
    assert learner(2).partial_fit(X).n_held_ == 1


def test_more_exemplars_than_rows_holds_what_there_is():
    found = learner(k=50, block=100).partial_fit(rows(7)).flush()
    assert found.n_held_ == 7
    assert found.loss_ == pytest.approx(0.0, abs=1e-6)


def test_later_blocks_go_on_filling():
    found = learner(k=30, block=10)
    found.partial_fit(rows(10))
    assert found.n_held_ <= 10
    found.partial_fit(rows(50, seed=1))
    assert found.n_held_ == 30


def test_one_exemplar_is_near_the_middle_of_one_cluster():
    X = 10.0 + rows(400)
    found = learner(k=1).partial_fit(X)
    assert np.linalg.norm(found.exemplars_[0] - X.mean(axis=0)) < 1.0


def test_zero_rows_are_learnt_without_a_phantom_gain():
    found = learner().partial_fit(np.zeros((40, 4)))
    assert found.n_held_ == 0  # the phantom at the origin says it all
    assert found.utility_ == 0.0


@pytest.mark.parametrize("dissimilarity", ["sqeuclidean", "cosine", "chi_square", "hellinger"])
def test_ten_thousand_identical_rows_give_one_exemplar(dissimilarity):
    found = learner(dissimilarity=dissimilarity).partial_fit(np.full((10_000, 4), 3.25))
    assert found.n_held_ == 1
    assert found.loss_ == pytest.approx(0.0, abs=1e-6)
    assert found.n_swaps_ == 0


def test_sorted_and_shuffled_streams_give_nearly_the_same_loss():
    centres = rows(10, scale=4.0)
    X = np.repeat(centres, 200, axis=0) + rows(2000, seed=1, scale=0.5)
    losses = []
    for given in (X, X[np.random.default_rng(2).permutation(2000)]):
        found = learner(k=10, block=50, validation=500).partial_fit(given)
        losses.append(((X[:, None] - found.exemplars_) ** 2).sum(axis=2).min(axis=1).mean())
    assert max(losses) < 1.1 * min(losses)


def test_data_far_from_the_origin_loses_no_digits():
    X = rows(300, seed=3)
    near = learner(phantom=np.full(4, -9.0, np.float32)).partial_fit(X)
    far = learner(phantom=np.full(4, 9991.0, np.float32)).partial_fit(X + 1e4)
    assert far.loss_ == pytest.approx(near.loss_, rel=0.02)


def test_a_huge_row_is_one_exemplar_and_the_rest_is_still_represented():
    X = np.vstack([rows(50), np.full((1, 4), 1e12), rows(100, seed=1)])
    found = learner(k=6).partial_fit(X).flush()
    assert np.isfinite(found.loss_)
    assert np.sort(np.abs(found.exemplars_).max(axis=1))[:-1].max() < 10.0


def test_a_random_phantom_is_drawn_from_the_first_block_by_the_seed():
    X = 50.0 + rows(100)
    found = [learner(phantom="random", seed=s).partial_fit(X) for s in (1, 1, 2)]
    phantoms = [f.state()["objective.phantom"] for f in found]
    assert np.array_equal(phantoms[0], phantoms[1])
    assert not np.array_equal(phantoms[0], phantoms[2])
    assert np.abs(phantoms[0] - 50.0).max() < 6.0


def test_a_given_phantom_keeps_exemplars_away_from_itself():
    X = np.vstack([rows(100, scale=0.1), 10.0 + rows(100, seed=1, scale=0.1)])
    found = learner(k=1, phantom=np.full(4, 10.0)).partial_fit(X)
    assert np.abs(found.exemplars_).max() < 1.0


def test_weights_are_shares_of_the_validation_set():
    X = np.vstack([5.0 + rows(150, scale=0.1), -5.0 + rows(50, seed=1, scale=0.1)])
    found = learner(k=2, validation=200).partial_fit(X[np.random.default_rng(0).permutation(200)])
    assert sorted(found.exemplar_weights_) == pytest.approx([0.25, 0.75])


# -- how it learns ---------------------------------------------------------------------------------------------


def test_however_the_calls_are_cut_the_state_is_the_same():
    X, payload = rows(205), tags(205)
    whole = learner(payload_bytes=8).partial_fit(X, payload=payload)
    cut = learner(payload_bytes=8)
    for start, end in ((0, 1), (1, 20), (20, 21), (21, 111), (111, 205)):
        cut.partial_fit(X[start:end], payload=payload[start:end])
    one, other = cut.state(), whole.state()
    del one["version_before"], other["version_before"]  # the one thing that is about calls
    assert state_hash(one) == state_hash(other)


@pytest.mark.parametrize("seed", range(3))
def test_utility_never_falls_while_the_validation_set_is_fixed(seed):
    X = rows(300, seed=seed)
    found = learner(validation=100).partial_fit(X[:100])
    found.fix_validation()
    utility = found.utility_
    for start in range(100, 300, 20):
        found.partial_fit(X[start : start + 20])
        assert found.utility_ >= utility - 1e-12
        utility = found.utility_


@pytest.mark.parametrize("dissimilarity", ["sqeuclidean", "cosine", "chi_square", "hellinger"])
def test_bookkeeping_is_exact_after_many_blocks_and_changes_of_the_validation_set(dissimilarity):
    found = learner(dissimilarity=dissimilarity, phantom=np.full(4, 0.2)).partial_fit(np.abs(rows(400)))
    state, points = found.state(), found.reservoir_.rows[: found.reservoir_.count]
    d = DISSIMILARITIES[dissimilarity]
    near = 1e-3 if dissimilarity == "hellinger" else 1e-5  # a root makes much of the rounding of equal rows
    np.testing.assert_allclose(state["objective.e"], [[d(x, c) for c in found.exemplars_] for x in points], atol=near)
    np.testing.assert_allclose(state["objective.p"], [d(x, np.full(4, 0.2)) for x in points], atol=near)
    # What is nearest and what is next is not saved but made anew: one that goes on from the state makes the same swaps.
    again = learner(dissimilarity=dissimilarity, phantom=np.full(4, 0.2))
    again.restore(state)
    assert again.loss_ == found.loss_
    assert np.array_equal(again.exemplar_weights_, found.exemplar_weights_)
    more = np.abs(rows(200, seed=1))
    assert state_hash(again.partial_fit(more).state()) == state_hash(found.partial_fit(more).state())


def test_a_minimum_gain_makes_fewer_swaps():
    X = rows(600)
    assert learner(minimum_gain=0.05).partial_fit(X).n_swaps_ < learner().partial_fit(X).n_swaps_


def test_it_stops_after_blocks_without_gain_and_counts_on():
    X = np.repeat(rows(5), 100, axis=0)
    found = learner(stop_after=3).partial_fit(X)
    assert found.converged_
    learnt = found.n_learnt_
    before = found.exemplar_ids_
    found.partial_fit(rows(100, scale=50.0))
    assert found.n_seen_ == 600
    assert found.n_learnt_ == learnt
    assert np.array_equal(found.exemplar_ids_, before)


def test_without_a_stop_rule_it_follows_the_stream():
    found = learner(k=2, validation=40).partial_fit(5.0 + rows(100, scale=0.1))
    found.partial_fit(np.tile(-5.0 + rows(100, seed=1, scale=0.1), (20, 1)))
    assert (found.exemplars_[:, 0] < 0.0).any()


def test_a_short_first_block_is_learnt_by_flush():
    found = learner(block=100)
    found.partial_fit(rows(10))
    assert found.n_held_ == 0
    assert found.flush().n_held_ == 5
    assert found.flush().n_blocks_ == 1


def test_predict_names_the_nearest_exemplar():
    X = rows(100)
    found = learner().partial_fit(X)
    wanted = ((X[:, None] - found.exemplars_) ** 2).sum(axis=2).argmin(axis=1)
    assert np.array_equal(found.predict(X), wanted)
    assert found.predict(found.exemplars_).tolist() == list(range(5))


def test_a_users_own_dissimilarity_is_used():
    import numba

    @numba.njit
    def first_only(point, exemplar):
        return abs(point[0] - exemplar[0])

    X = rows(200)
    found = learner(dissimilarity=first_only).partial_fit(X)
    nearest = np.abs(X[:, :1] - found.exemplars_[:, 0]).argmin(axis=1)
    assert np.array_equal(found.predict(X), nearest)
    gaps = np.abs(found.reservoir_.rows[:, :1] - found.exemplars_[:, 0]).min(axis=1)
    assert found.loss_ == pytest.approx(np.minimum(gaps, np.abs(found.reservoir_.rows[:, 0])).mean(), rel=1e-5)


# -- what it refuses -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.full((3, 4), np.nan), "3 of 3 rows hold NaN or infinity, first row 0"),
        (np.array([[0.0] * 4, [0, 0, np.inf, 0]]), "1 of 2 rows hold NaN or infinity, first row 1"),
        (np.full((1, 4), 1e16), "within \\+-1e\\+15"),
        (np.zeros((3, 5)), "X has 5 features, but StreamGreedy is expecting 4"),
        (np.zeros(4), "shape \\(4,\\)"),
        (np.zeros((0, 4)), "0 sample"),
        (np.full((2, 4), "a"), "not a real number"),
        (np.full((2, 4), 1j), "not a real number"),
    ],
)
def test_bad_rows_are_refused_whole_and_change_nothing(X, message):
    found = learner().partial_fit(rows(30))
    before = state_hash(found.state())
    with pytest.raises(ValueError, match=message):
        found.partial_fit(X)
    with pytest.raises(ValueError, match=message):
        found.predict(X)
    assert state_hash(found.state()) == before


def test_negative_rows_are_refused_where_histograms_are_wanted():
    with pytest.raises(ValueError, match="-1 is negative, and chi_square takes histograms"):
        learner(dissimilarity="chi_square").partial_fit(-np.ones((2, 4)))
    with pytest.raises(ValueError, match="hellinger takes histograms"):
        learner(dissimilarity="hellinger", phantom=-np.ones(4))


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ([b"too long for it"] * 3, "15 bytes are more than payload_bytes = 8"),
        ([b"a"] * 2, "2 given for 3 rows"),
        (np.zeros((3, 9), np.uint8), "9 bytes are more"),
        (np.zeros((3, 2)), "must be uint8"),
    ],
)
def test_bad_payloads_are_refused_and_change_nothing(payload, message):
    found = learner(payload_bytes=8).partial_fit(rows(30))
    before = state_hash(found.state())
    with pytest.raises(ValueError, match=message):
        found.partial_fit(rows(3), payload=payload)
    assert state_hash(found.state()) == before


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"k": 0}, "k: 0 is less than 1"),
        ({"block": 0}, "block: 0"),
        ({"validation": 1}, "validation: 1"),
        ({"minimum_gain": -0.1}, "minimum_gain"),
        ({"minimum_gain": float("nan")}, "minimum_gain"),
        ({"racing": 1.0}, "racing: failure probability 1.0"),
        ({"stop_after": -1}, "stop_after"),
        ({"phantom": np.zeros(3)}, "phantom: shape \\(3,\\)"),
        ({"phantom": "centre"}, "phantom: 'centre'"),
        ({"dissimilarity": "l2"}, "dissimilarity: 'l2'"),
        ({"dissimilarity": 2}, "dissimilarity: 2 is none of"),
        ({"objective": "medoids"}, "objective: 'medoids'"),
        ({"objective": "variance"}, "needs lengthscales"),
    ],
)
def test_bad_settings_are_named(given, message):
    with pytest.raises(ValueError, match=message):
        learner(**given)


def test_predict_before_the_first_exemplar_says_so():
    with pytest.raises(NotFittedError, match="no exemplar yet"):
        learner().predict(rows(2))


def test_the_input_is_not_touched_and_integers_and_strides_are_taken():
    X = np.arange(400, dtype=np.int16).reshape(50, 8)[:, ::2]
    copy = X.copy()
    found = learner().partial_fit(X)
    assert np.array_equal(X, copy)
    assert found.n_seen_ == 50


# -- state and memory ------------------------------------------------------------------------------------------

SETTINGS = [
    {}, {"payload_bytes": 8}, {"racing": 0.1}, {"dissimilarity": "chi_square", "phantom": "random"},
    {"objective": "variance", "lengthscales": np.ones(4)}, {"objective": "entropy", "lengthscales": np.ones(4)},
]  # fmt: skip


@pytest.mark.parametrize("given", SETTINGS)
@pytest.mark.parametrize("n_before", [0, 7, 130])
def test_a_restored_learner_goes_on_bit_for_bit(given, n_before):
    X = np.abs(rows(300))
    first = learner(**given)
    if n_before:
        first.partial_fit(X[:n_before])
    second = learner(**given)
    second.restore(first.state())
    assert state_hash(second.state()) == state_hash(first.state())
    for found in (first, second):
        found.partial_fit(X[n_before:]).flush()
    assert state_hash(second.state()) == state_hash(first.state())
    assert first.utility_ == second.utility_


def test_whole_numbers_with_many_ties_are_restored_bit_for_bit():
    X = np.random.default_rng(0).integers(0, 3, (400, 4))
    first, second = learner(), learner()
    first.partial_fit(X[:200])
    second.restore(first.state())
    for found in (first, second):
        found.partial_fit(X[200:])
    assert state_hash(second.state()) == state_hash(first.state())


def test_results_are_copies_and_asking_for_them_changes_nothing():
    found = learner(payload_bytes=8).partial_fit(rows(90), payload=tags(90))
    before = state_hash(found.state())
    found.exemplars_[:] = 0.0
    found.exemplar_ids_[:] = 0
    found.predict(rows(10))
    found.payloads()
    for array in found.state().values():
        if array.flags.writeable:
            array[...] = 0
    assert state_hash(found.state()) == before


@pytest.mark.parametrize("given", SETTINGS)
def test_memory_is_the_same_from_the_first_row_to_the_last(given):
    found = learner(**given)
    before = found.memory_bytes()
    sizes = []
    for i in range(6):
        found.partial_fit(np.abs(rows(100, seed=i)))
        sizes.append(sum(a.nbytes for a in found.state().values()))
    assert found.memory_bytes() == before
    assert sizes[-1] <= sum(before.values())
    assert sizes[1:] == sizes[:-1] or "payload_bytes" in given or given.get("objective")


FLOATS = ["exemplars", "reservoir.rows", "objective.e", "buffer"]


@pytest.mark.parametrize(
    ("name", "damage"),
    [(name, damage) for name in [*FLOATS, "ids", "n_seen"] for damage in ("missing", "shape", "dtype")]
    + [(name, "nan") for name in FLOATS],
)
def test_a_damaged_state_is_refused_and_changes_nothing(name, damage):
    found = learner().partial_fit(rows(90))
    state = learner().partial_fit(rows(130, seed=1)).state()
    if damage == "missing":
        del state[name]
    elif damage == "shape":
        state[name] = np.zeros((3, *state[name].shape), state[name].dtype)
    elif damage == "dtype":
        state[name] = state[name].astype(np.complex128)
    else:
        state[name] = np.full_like(state[name], np.nan)
    before = state_hash(found.state())
    with pytest.raises(SnapshotError):
        found.restore(state)
    assert state_hash(found.state()) == before


@pytest.mark.parametrize("given", [{"k": 6}, {"validation": 51}, {"dissimilarity": "cosine"}, {"payload_bytes": 3}])
def test_a_state_of_other_settings_is_refused(given):
    with pytest.raises(SnapshotError, match="other settings"):
        learner().restore(learner(**given).partial_fit(rows(90)).state())


def test_two_equal_exemplars_in_a_state_are_refused():
    state = learner().partial_fit(rows(90)).state()
    state["exemplars"][1] = state["exemplars"][0]
    with pytest.raises(SnapshotError, match="two exemplars are equal"):
        learner().restore(state)


@pytest.mark.parametrize(
    ("name", "value", "given"),
    [
        ("n_blocks", -1, {}),
        ("ids", 7, {}),
        ("objective.e", -1.0, {}),
        ("objective.order", 0, {"objective": "entropy", "lengthscales": np.ones(4)}),
        ("objective.factor", 0.0, {"objective": "entropy", "lengthscales": np.ones(4)}),
    ],
)
def test_values_that_cannot_be_are_refused(name, value, given):
    state = learner(**given).partial_fit(rows(90)).state()
    state[name] = np.full_like(state[name], value)
    with pytest.raises(SnapshotError):
        learner(**given).restore(state)
