"""Clumps on the wire: small, and a learner can take them back."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_examples import HEADER

from stillwatch.transport.wire import DecodeError, clump_arrays, clump_fields, decode, encode
from stillwatch.transport.wire import messages as m

LOW = np.tril_indices(4)


def packed(full: np.ndarray) -> np.ndarray:
    return full[:, LOW[0], LOW[1]]


def unpacked(rows: np.ndarray) -> np.ndarray:
    full = np.zeros((len(rows), 4, 4))
    full[:, LOW[0], LOW[1]] = full[:, LOW[1], LOW[0]] = rows
    return full


def clumps(n_clumps=6, n_singlets=3, *, full=False, seed=0, spread=1.0):
    """Return clumps of a learner in 4 dimensions, as `clumps_` has them."""
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(n_clumps, 4, 6)) * spread * rng.uniform(0.1, 3.0, (n_clumps, 4, 1))
    second = roots @ roots.transpose(0, 2, 1) / 6
    counts = np.append(rng.integers(2, 10**6, n_clumps), np.ones(n_singlets)).astype(float)
    return {
        "count": counts,
        "mean": rng.normal(0.0, 30.0, (n_clumps + n_singlets, 4)),
        **({"covariance": packed(second)} if full else {"variance": np.einsum("nii->ni", second)}),
        "component": rng.integers(0, 300, n_clumps + n_singlets),
        "shift": rng.normal(size=4),
        "scale": rng.uniform(1.0, 2.0, 4),
    }


def components(k=5, *, full=False, seed=1):
    """Return components as `clumps_` has them beside clumps."""
    made = clumps(k, 0, full=full, seed=seed)
    second = "covariance" if full else "variance"
    parts = {f"component_{name}": made[name] for name in ("count", "mean", second)}
    return parts | {"component_id": np.arange(k)[::-1] * 7}


def sent(held, **fields) -> m.Clumps:
    made = m.Clumps(**HEADER, which="patches", model_epoch=1, **clump_fields(held) | fields)
    back = decode(encode(made))
    assert isinstance(back, m.Clumps)
    return back


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 12), st.integers(0, 12), st.booleans(), st.integers(0, 1000), st.floats(1e-3, 1e3))
def test_what_is_sent_comes_back_as_it_was_to_the_precision_of_its_form(n_clumps, n_singlets, full, seed, spread):
    if n_clumps + n_singlets == 0:
        return
    held = clumps(n_clumps, n_singlets, full=full, seed=seed, spread=spread)
    found = clump_arrays(sent(held))
    for name in ("count", "component"):
        np.testing.assert_array_equal(found[name], held[name])
    for name in ("shift", "scale"):
        np.testing.assert_allclose(found[name], held[name], rtol=1e-6)
    reach = np.ptp(held["mean"], axis=0)
    assert (np.abs(found["mean"] - held["mean"]) <= reach / 2048 + 1e-4).all()  # half floats, about the middle
    second = "covariance" if full else "variance"
    assert found[second].shape == held[second].shape
    if full and n_clumps:
        theirs, ours = unpacked(held[second]), unpacked(found[second])
        np.testing.assert_allclose(np.einsum("nii->ni", ours), np.einsum("nii->ni", theirs), rtol=0.05)
        deviations = np.sqrt(np.einsum("nii->ni", theirs))
        apart = np.abs(ours - theirs) / deviations[:, :, None] / deviations[:, None, :]
        assert apart.max() < 0.08
        assert (np.linalg.eigvalsh(ours) > 0.0).all()
    else:
        np.testing.assert_allclose(found[second], held[second], rtol=0.05)


@pytest.mark.parametrize("full", [False, True])
def test_components_come_back_as_the_clumps_do(full):
    held = clumps(full=full) | components(full=full)
    found = clump_arrays(sent(held))
    assert set(found) == set(held)
    np.testing.assert_array_equal(found["component_id"], held["component_id"])
    np.testing.assert_array_equal(found["component_count"], held["component_count"])
    reach = np.ptp(np.concatenate([held["mean"], held["component_mean"]]), axis=0)
    for name, steps in (("mean", 2048), ("component_mean", 60_000)):
        assert (np.abs(found[name] - held[name]) <= reach / steps + 1e-4).all()
    if full:
        for name in ("covariance", "component_covariance"):
            theirs, ours = unpacked(held[name]), unpacked(found[name])
            np.testing.assert_allclose(np.einsum("nii->ni", ours), np.einsum("nii->ni", theirs), rtol=0.05)
            assert (np.linalg.eigvalsh(ours) > 0.0).all()
    else:
        for name in ("variance", "component_variance"):
            np.testing.assert_allclose(found[name], held[name], rtol=0.05)


def test_components_that_would_take_more_than_half_of_a_message_stay_out():
    held = clumps(100) | components(200)
    assert "component_id" in clump_arrays(sent(held))
    cut = m.Clumps(**HEADER, which="patches", model_epoch=1, **clump_fields(held, most_bytes=10_000))
    assert len(encode(cut)) <= 10_000
    found = clump_arrays(cut)
    assert "component_id" not in found
    assert len(found["count"]) > 50


@pytest.mark.parametrize("name", ["component_ids", "component_counts", "component_means", "component_variance_logs"])
def test_components_of_which_a_part_is_missing_are_not_told(name):
    broken = msgspec.structs.replace(sent(clumps() | components()), **{name: None})
    assert not [part for part in clump_arrays(broken) if part.startswith("component_")]


def test_a_clump_of_fewer_points_than_dimensions_comes_back_positive_definite():
    rng = np.random.default_rng(1)
    line = rng.normal(size=(5, 4))
    held = clumps(5, 0, full=True) | {"covariance": packed(line[:, :, None] * line[:, None, :])}
    assert (np.linalg.eigvalsh(unpacked(clump_arrays(sent(held))["covariance"])) > 0.0).all()


def test_a_column_without_any_spread_is_sent():
    held = clumps(4, 1)
    held["mean"][:, 2] = 7.5
    held["variance"][:, 2] = 0.0
    found = clump_arrays(sent(held))
    np.testing.assert_array_equal(found["mean"][:, 2], 7.5)
    assert (found["variance"][:, 2] < 1e-20).all()


@pytest.mark.parametrize("full", [False, True])
def test_as_many_of_the_largest_are_sent_as_fit_in_their_order_and_the_message_says_of_how_many(full):
    held = clumps(900, 100, full=full)
    fields = clump_fields(held, most_bytes=20_000)
    message = sent(held, **fields)
    n = len(message.counts)
    assert 100 < n < 900
    largest = np.sort(np.argsort(-held["count"], kind="stable")[:n])
    np.testing.assert_array_equal(message.components, held["component"][largest])
    assert (message.n_clumps, message.n_singlets) == (900, 100)
    assert message.total == pytest.approx(held["count"].sum())
    assert len(encode(message)) <= 20_000


def test_the_largest_message_fits_its_topic():
    held = clumps(20_000, 20_000)
    assert len(sent(held).counts) > 5000


def test_the_form_of_earlier_senders_is_read():
    old = m.Clumps(
        **HEADER,
        which="scenes",
        model_epoch=4,
        n_clumps=2,
        counts=np.array([3.0, 4.0], np.float32),
        means=np.array([[10, -20], [0, 1]], np.int8),
        variances=np.array([[1, 2], [3, 4]], np.int8),
        mean_scale=np.array([0.5, 2.0], np.float32),
        mean_offset=np.array([1.0, 0.0], np.float32),
        variance_scale=np.array([0.25, 1.0], np.float32),
    )
    found = clump_arrays(decode(encode(old)))
    np.testing.assert_array_equal(found["mean"], [[6.0, -40.0], [1.0, 2.0]])
    np.testing.assert_array_equal(found["variance"], [[0.25, 2.0], [0.75, 4.0]])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"counts": np.ones(2, np.float32), "means": np.zeros((2, 4), np.float16), "components": None}, "6 rows"),
        ({"correlations": np.zeros((6, 5), np.int8)}, r"shape \(6, 5\), must be \(6, 6\)"),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(fields, message):
    broken = msgspec.structs.replace(sent(clumps(full=True)), **fields)
    with pytest.raises(DecodeError, match=f"clumps: .*{message}"):
        clump_arrays(broken)
