"""The learner's contract: fixed memory, exact state, bad input refused, the lessons of other libraries' trackers."""

import threading
import time
import tracemalloc

import numpy as np
import pytest
from mixture_cases import FORMS, clusters, covariance_of

from stillwatch.base.errors import NotFittedError, SnapshotError
from stillwatch.base.state import state_hash
from stillwatch.learn.mixture.mixture import MemoryBoundedMixture
from stillwatch.learn.mixture.predictive import StudentMixture

SETTINGS = {"memory": 200, "horizon": 5000, "max_components": 12}


def learner(form="diagonal", n_dims=4, **settings):
    moments = "exact" if form == "full" else "rounded"
    given = {"covariance": covariance_of(form), "clump_moments": moments} | SETTINGS | settings
    return MemoryBoundedMixture(**given).allocate(n_dims)


def fitted(form="diagonal", n_rows=450, seed=1, **settings):
    rows, _ = clusters(seed, n_rows=n_rows)
    return learner(form, **settings).partial_fit(rows), rows


@pytest.mark.parametrize("form", FORMS)
def test_how_the_calls_are_cut_does_not_matter(form):
    rows, _ = clusters(1, n_rows=450)
    whole = learner(form).partial_fit(rows)
    parts = learner(form)
    for first in range(0, 450, 37):
        parts.partial_fit(rows[first : first + 37])
    assert state_hash(parts.state()) == state_hash(whole.state())


@pytest.mark.parametrize("form", FORMS)
def test_a_restored_learner_continues_bit_for_bit(form):
    rows, _ = clusters(2, n_rows=900)
    straight = learner(form).partial_fit(rows)
    first = learner(form).partial_fit(rows[:430])
    second = learner(form)
    second.restore(first.state())
    assert state_hash(second.state()) == state_hash(first.state())
    np.testing.assert_array_equal(second.score_samples(rows), first.score_samples(rows))
    second.partial_fit(rows[430:])
    assert state_hash(second.state()) == state_hash(straight.state())


@pytest.mark.parametrize("form", FORMS)
def test_state_before_the_first_model_keeps_the_buffer(form):
    rows, _ = clusters(2, n_rows=300)
    first = learner(form).partial_fit(rows[:50])
    second = learner(form)
    second.restore(first.state())
    assert state_hash(second.partial_fit(rows[50:]).state()) == state_hash(first.partial_fit(rows[50:]).state())


def test_a_state_that_does_not_fit_changes_nothing():
    source, rows = fitted()
    good = source.state()
    target, _ = fitted(seed=5)
    before = state_hash(target.state())
    bad = [
        {name: value for name, value in good.items() if name != "x"},
        good | {"version": np.array(99)},
        good | {"x": good["x"][:, :2]},
        good | {"component_mean": np.full_like(good["component_mean"], np.nan)},
        good | {"pending": np.zeros((100, 4))},
        learner(max_components=13).partial_fit(rows).state(),
    ]
    for state in bad:
        with pytest.raises(SnapshotError, match="mixture state"):
            target.restore(state)
        assert state_hash(target.state()) == before


def test_rounded_and_exact_clumps_are_not_taken_for_each_other():
    source, _ = fitted("rounded")
    with pytest.raises(SnapshotError, match="other settings"):
        learner("full").restore(source.state())


@pytest.mark.slow
def test_three_times_as_many_rounded_clumps_fit_at_fifty_dimensions():
    rows, _ = clusters(4, n_rows=6000, n_dims=50, n_clusters=12, gap=0.6)
    room = []
    # A second moment: 50 * 51 / 2 float32; rounded, 51 float32 and 50 * 49 / 2 codes of a byte.
    for form, bytes_of_clump in (("full", 1275 * 4), ("rounded", 51 * 4 + 1225)):
        model = learner(form, n_dims=50, memory=1500, epoch_size=750, max_components=20).partial_fit(rows)
        second = model.memory_bytes()["items"] - 1500 * (50 * 4 + 8)  # less the means, float32, and the counts, float64
        assert second <= 750 * 50 * 4
        room.append(second / bytes_of_clump)
        assert 0 < len(model.clumps_["covariance"]) <= room[-1]
    assert room == [750 * 50 // 1326, 750 * 50 // 409]


@pytest.mark.parametrize("form", FORMS)
def test_same_bits_in_another_thread(form):
    expected = state_hash(fitted(form)[0].state())
    hashes = []
    threads = [threading.Thread(target=lambda: hashes.append(state_hash(fitted(form)[0].state()))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert hashes == [expected, expected]


@pytest.mark.parametrize("form", FORMS)
def test_memory_is_exact_and_never_grows(form):
    rows, _ = clusters(1, n_rows=3000, n_clusters=9)
    learner(form, memory=1000).partial_fit(rows)  # what is loaded once is loaded
    tracemalloc.start()
    try:
        model = learner(form, memory=1000)
        taken = tracemalloc.get_traced_memory()[0]
        before = model.memory_bytes()
        model.partial_fit(rows)
        taken_after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert model.memory_bytes() == before
    largest = StudentMixture.bytes_of(covariance_of(form), 4, 12)
    assert before["predictive"] == largest
    arrays = sum(before.values()) - largest  # the snapshot for scoring is made later
    objects = 28_000  # the bytes of the objects that hold the arrays
    assert arrays <= taken <= arrays + objects
    assert taken_after <= arrays + largest + objects
    snapshot = model.predictive()
    assert snapshot.memory_bytes() == StudentMixture.bytes_of(covariance_of(form), 4, snapshot.n_components)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(3))
def test_values_kept_stay_within_the_bound_and_no_point_is_lost(seed, form):
    rows, _ = clusters(seed, n_rows=1500, n_dims=5, n_clusters=10)
    model = learner(form, n_dims=5, epoch_size=100)
    cost = {"diagonal": 11, "full": 21, "rounded": 15}[form]
    for first in range(0, 1500, 100):
        model.partial_fit(rows[first : first + 100])
        kept = model.clumps_
        n_clumps = len(kept["variance" if form == "diagonal" else "covariance"])
        assert n_clumps * cost + (len(kept["count"]) - n_clumps) * 5 <= 100 * 5
        assert kept["count"].sum() == first + 100 == model.n_seen_
        np.testing.assert_allclose(
            kept["count"] @ kept["mean"] / (first + 100), rows[: first + 100].mean(axis=0), atol=1e-4
        )


def test_a_few_dear_clumps_are_learnt_in_short_epochs_after_a_first_one_of_half_the_memory():
    rows, _ = clusters(3, n_rows=400, n_dims=20)
    model = learner("rounded", n_dims=20)
    assert model.rows_per_epoch == 20
    learnt = [model.partial_fit(rows[first : first + 10]).n_seen_ for first in range(0, 400, 10)]
    assert sorted(set(learnt)) == [0, *range(100, 401, 20)]  # units are measured in the first 100
    n_clumps = len(model.clumps_["covariance"])
    assert n_clumps * 90 + (len(model.clumps_["count"]) - n_clumps) * 20 <= 180 * 20


@pytest.mark.parametrize(
    ("form", "n_dims", "memory", "settings"),
    [
        ("diagonal", 20, 200, {}),
        ("rounded", 4, 200, {}),  # a clump costs three points
        ("rounded", 20, 700, {}),  # 155 clumps
        ("rounded", 20, 200, {"compression": "paper"}),
    ],
)
def test_other_memories_have_epochs_of_half(form, n_dims, memory, settings):
    assert learner(form, n_dims=n_dims, memory=memory, **settings).rows_per_epoch == memory // 2


def test_a_restored_learner_of_short_epochs_continues_bit_for_bit():
    rows, _ = clusters(2, n_rows=400, n_dims=20)
    straight = learner("rounded", n_dims=20).partial_fit(rows)
    for cut in (70, 215):  # within the first epoch, within a short one
        first, second = learner("rounded", n_dims=20).partial_fit(rows[:cut]), learner("rounded", n_dims=20)
        second.restore(first.state())
        assert state_hash(second.partial_fit(rows[cut:]).state()) == state_hash(straight.state())


def test_more_rows_than_a_short_epoch_do_not_wait_in_a_state():
    rows, _ = clusters(2, n_rows=110, n_dims=20)
    state = learner("rounded", n_dims=20).partial_fit(rows).state()
    with pytest.raises(SnapshotError, match="wait for an epoch of 20"):
        learner("rounded", n_dims=20).restore(state | {"pending": rows[:30]})


@pytest.mark.parametrize("form", FORMS)
def test_total_second_moment_survives_compression(form):
    model, rows = fitted(form, n_rows=1000)
    kept, total = model.clumps_, np.zeros((4, 4))
    low = np.tril_indices(4)
    for i, (count, mean) in enumerate(zip(kept["count"], kept["mean"], strict=True)):
        total += count * np.outer(mean, mean)
        spread = kept["variance" if form == "diagonal" else "covariance"]
        if i < len(spread):
            square = np.diag(spread[i]) if form == "diagonal" else np.zeros((4, 4))
            if form != "diagonal":
                square[low], square.T[low] = spread[i], spread[i]
            total += count * square
    expected = rows.T @ rows
    np.testing.assert_allclose(np.diag(total), np.diag(expected), rtol=1e-5)
    if form == "full":
        np.testing.assert_allclose(total, expected, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_refused_whole(bad):
    model, rows = fitted()
    before = state_hash(model.state())
    rows = rows.copy()
    rows[7, 2] = bad
    for verb in (model.partial_fit, model.score_samples, model.predict, model.predict_proba):
        with pytest.raises(ValueError, match=r"1 of 450 rows hold NaN or infinity, first row 7"):
            verb(rows)
    assert state_hash(model.state()) == before


@pytest.mark.parametrize("shape", [(4,), (3, 5), (2, 2, 4), ()])
def test_wrong_shapes_are_refused(shape):
    model, _ = fitted()
    with pytest.raises(ValueError, match="X"):
        model.partial_fit(np.zeros(shape))


def test_text_is_refused_and_no_rows_change_nothing():
    model, _ = fitted()
    before = state_hash(model.state())
    with pytest.raises(ValueError, match="not a real number"):
        model.partial_fit(np.full((2, 4), "a"))
    model.partial_fit(np.zeros((0, 4)))
    assert len(model.score_samples(np.zeros((0, 4)))) == 0
    assert state_hash(model.state()) == before


def test_input_is_never_changed_and_may_be_read_only_strided_or_float32():
    rows, _ = clusters(1, n_rows=900)
    rows = rows.astype(np.float32)[::2]
    rows.setflags(write=False)
    model = learner().partial_fit(rows)
    assert np.isfinite(model.score_samples(rows)).all()


def test_before_the_first_epoch_nothing_can_be_asked():
    model = learner().partial_fit(clusters(1, n_rows=20)[0])
    for verb in (model.score_samples, model.predict, model.predict_proba):
        with pytest.raises(NotFittedError, match="20 of 100 rows"):
            verb(np.zeros((1, 4)))
    assert model.predictive() is None


def test_flush_learns_what_is_there_as_a_smaller_epoch():
    rows, _ = clusters(1, n_rows=20)
    model = learner().partial_fit(rows).flush()
    assert (model.epoch_, model.n_seen_) == (1, 20)
    assert np.isfinite(model.score_samples(rows)).all()
    assert state_hash(model.flush().state()) == state_hash(model.state())
    assert model.epoch_ == 1


@pytest.mark.parametrize("form", FORMS)
def test_asking_changes_nothing(form):
    model, rows = fitted(form)
    before = state_hash(model.state())
    model.score_samples(rows)
    model.predict(rows)
    model.predict_proba(rows)
    _ = model.summary(), model.clumps_, model.predictive(), model.free_energy_
    assert state_hash(model.state()) == before


@pytest.mark.parametrize("form", FORMS)
def test_the_density_integrates_to_one(form):
    rows = np.concatenate([np.random.default_rng(0).normal(-4, 1, 120), np.random.default_rng(1).normal(5, 0.5, 80)])
    model = learner(form, n_dims=1).partial_fit(rows[:, None]).flush()
    # Heavy tails: the log of |x| is the right axis far out.
    far = np.geomspace(20, 1e7, 20_000)
    grid = np.concatenate([-far[::-1], np.linspace(-20, 20, 20_001)[1:-1], far])
    density = np.exp(model.score_samples(grid[:, None]))
    assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("form", FORMS)
def test_units_do_not_matter(form):
    rows, _ = clusters(4, n_rows=600)
    plain = learner(form).partial_fit(rows)
    moved = learner(form).partial_fit(rows * 1e6 + 3e7)
    assert moved.n_components_ == plain.n_components_
    np.testing.assert_allclose(
        moved.score_samples(rows * 1e6 + 3e7), plain.score_samples(rows) - 4 * np.log(1e6), atol=1e-2
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_mean_of_ten_thousand_deviations_does_no_harm(dtype, form):
    rows, labels = clusters(6, n_rows=600, gap=6.0)
    far = (rows + 1e4 * rows.std()).astype(dtype)
    model = learner(form).partial_fit(far)
    plain = learner(form).partial_fit(rows)
    assert model.n_components_ == plain.n_components_
    assert model.score_samples(far).mean() == pytest.approx(plain.score_samples(rows).mean(), abs=0.02)


@pytest.mark.parametrize("form", FORMS)
def test_ten_thousand_identical_rows(form):
    row = np.array([[3.0, -1.0, 0.5, 12.0]])
    model = learner(form).partial_fit(np.repeat(row, 10_000, axis=0))
    assert model.n_components_ == 1
    assert np.isfinite(model.score_samples(np.vstack([row, row + 1.0, row * 1e9]))).all()
    assert model.score_samples(row)[0] > model.score_samples(row + 1e-2)[0]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("place", [3, 250])
def test_one_absurd_row_is_refused_and_counted(place, form):
    rows, _ = clusters(1, n_rows=450)
    spoiled = np.insert(rows, place, 1e12, axis=0)
    model, clean = learner(form).partial_fit(spoiled), learner(form).partial_fit(rows)
    assert model.refused_ == 1
    assert model.score(rows) > clean.score(rows) - 0.05  # other rows in an epoch, other clumps: it may be luckier


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rows", [
    np.zeros((300, 4)), np.full((300, 4), 1e30), np.eye(4)[np.arange(300) % 4] * 1e-30,
    np.random.default_rng(0).standard_cauchy((300, 4)), np.exp(np.random.default_rng(1).normal(size=(300, 4)) * 9),
], ids=["zeros", "huge", "tiny", "cauchy", "lognormal"])  # fmt: skip
def test_any_finite_input_gives_finite_answers(rows, form):
    model = learner(form).partial_fit(rows)
    assert np.isfinite(model.free_energy_)
    assert np.isfinite(model.score_samples(rows)).all()
    assert np.isfinite(model.score_samples(np.full((1, 4), 1e300))).all()
    assert all(np.isfinite(value).all() for value in model.state().values())


def test_ids_are_stable_and_never_used_twice():
    rows, labels = clusters(8, n_rows=3000, n_clusters=6, gap=7.0)
    rows = rows[np.argsort(labels, kind="stable")]
    model, ever, last = learner(memory=300), set(), set()
    for first in range(0, 3000, 150):
        model.partial_fit(rows[first : first + 150])
        now, report = set(model.summary()["id"].tolist()), model.report_
        births, deaths = {who for who, _ in report["births"]}, {who for who, _ in report["deaths"]}
        assert births == now - last
        assert deaths == last - now
        assert not births & ever
        ever |= now
        last = now
    assert len(now) >= 6


@pytest.mark.parametrize("form", FORMS)
def test_a_cold_start_keeps_the_ids_of_what_it_finds_again(form):
    rows, _ = clusters(8, n_rows=800, n_clusters=3, gap=9.0)
    model = learner(form, warm_start=False, prior_scale=0.02).partial_fit(rows[:400])
    before = set(model.summary()["id"].tolist())
    model.partial_fit(rows[400:])
    assert before <= set(model.summary()["id"].tolist())


@pytest.mark.parametrize("form", FORMS)
def test_sorted_and_shuffled_rows_end_in_the_same_model(form):
    rows, labels = clusters(3, n_rows=3000, n_dims=6, n_clusters=6, gap=4.0)
    by_class = np.argsort(labels, kind="stable")
    found = [learner(form, n_dims=6, memory=400).partial_fit(r) for r in (rows, rows[by_class])]
    assert [model.n_components_ for model in found] == [6, 6]
    scores = [model.score_samples(rows).mean() for model in found]
    assert scores[0] == pytest.approx(scores[1], abs=0.05)


def test_components_that_cannot_be_kept_apart_are_joined_and_counted():
    rows, _ = clusters(3, n_rows=1500, n_dims=8, n_clusters=14, gap=9.0)
    model = learner("full", n_dims=8, memory=250, epoch_size=200, max_components=20, prior_scale=0.01)
    joined = 0
    for first in range(0, 1500, 50):
        model.partial_fit(rows[first : first + 50])
        joined += model.report_.get("forced_merges", 0)
        if not model.report_:
            continue
        assert len(model.clumps_["covariance"]) * 45 <= 400
    assert joined > 0


@pytest.mark.parametrize("wrong", [
    {"memory": 4}, {"max_components": 0}, {"concentration": 0.0}, {"prior_scale": np.inf}, {"epoch_size": 200},
    {"covariance": "tied"}, {"horizon": 0}, {"clump_moments": "diagonal"},
])  # fmt: skip
def test_settings_that_cannot_work_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong)) if "epoch_size" not in wrong else "memory"):
        MemoryBoundedMixture(**(SETTINGS | wrong)).allocate(4)


@pytest.mark.slow
def test_rows_a_second_do_not_fall_with_age():
    rows, _ = clusters(2, n_rows=1500)
    model = learner(memory=400)
    spent = []
    for _ in range(12):
        begin = time.process_time()
        model.partial_fit(rows)
        spent.append(time.process_time() - begin)
    assert np.median(spent[-4:]) < 2.0 * np.median(spent[1:5])
