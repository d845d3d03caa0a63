"""The ground's mixture from the vehicle's packets: how many bytes for how much truth, and what losses do to it."""

import functools

import numpy as np
import pytest
from data_location import data_dir
from mirror_models import assignments, clustered_rows, fitted_model, model_message
from threadpoolctl import threadpool_limits

from stillwatch.learn.mixture.mixture import MemoryBoundedMixture
from stillwatch.pipeline import mixture_of
from stillwatch.pipeline.model_message import model_fields
from stillwatch.transport.mirror.ground import ModelMirror
from stillwatch.transport.mirror.model import moments_of, posterior_gaussians, prior_gaussian, summary_of
from stillwatch.transport.mirror.vehicle import MAX_PACKET_BYTES, MIN_PACKET_BYTES, ModelEncoder
from stillwatch.transport.wire.codec import decode, encode
from stillwatch.transport.wire.errors import DecodeError, EncodeError
from stillwatch.transport.wire.messages import Message, Model

N_ROWS, N_DIMS = 6_000, 20
BARS = {False: (100, 5000), True: (30, 8000)}  # full covariance: components, bytes
SAME = 0.99
FRAME_BYTES = 255  # of a packet in these tests, about a modem's frame


@functools.cache
def fitted(is_full: bool):
    rows = clustered_rows(np.random.default_rng(1), N_ROWS, 60, N_DIMS)
    return rows, fitted_model(rows, BARS[is_full][0], is_full)


def small(is_full=False, k=8, d=5, seed=0, epoch=1, ids=None, shift=0.0):
    rng = np.random.default_rng(seed)
    tril = np.tril_indices(d)
    roots = rng.normal(size=(k, d, d)) * 0.3 + np.eye(d)
    covariances = roots @ roots.transpose(0, 2, 1)
    second = covariances[:, tril[0], tril[1]] if is_full else np.einsum("kii->ki", covariances)
    counts = np.sort(rng.uniform(5.0, 5000.0, k))[::-1]
    means = 3.0 * rng.normal(size=(k, d)) + shift
    prior = 0.1 * np.eye(d)[tril] if is_full else np.full(d, 0.1)
    ids = np.arange(k) if ids is None else ids
    return model_message(ids, counts, means, second, np.zeros(d), prior, is_full, epoch)


def deliver(encoder, mirror, budget=FRAME_BYTES, until_bytes=10**9):
    """Send packets until nothing is left, all arriving; return their bytes."""
    total = 0
    while total < until_bytes and (packet := encoder.next_packet(budget)) is not None:
        assert len(packet[1]) <= budget
        total += len(packet[1])
        mirror.take_packet(packet[1])
        encoder.acknowledge(packet[0])
    return total


def mirrored(model, budget=FRAME_BYTES):
    encoder, mirror = ModelEncoder(), ModelMirror()
    encoder.update(model)
    deliver(encoder, mirror, budget)
    return encoder, mirror


def same_bits(a, b):
    names = [name for name in ("ids", "counts", "means", "variances", "covariances") if getattr(a, name) is not None]
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names)


@pytest.mark.slow
@pytest.mark.parametrize("is_full", [False, True], ids=["100 diagonal", "30 full"])
def test_a_few_kilobytes_assign_as_the_vehicle_does(is_full):
    rows, model = fitted(is_full)
    encoder, mirror = ModelEncoder(), ModelMirror()
    encoder.update(model)
    assert deliver(encoder, mirror) <= BARS[is_full][1]
    truth = assignments(summary_of(model), rows)
    assert (assignments(mirror.summary(), rows) == truth).mean() >= SAME
    assert encoder.next_packet(FRAME_BYTES) is None


@pytest.mark.slow
@pytest.mark.parametrize("is_full", [False, True])
def test_the_agents_own_predictive_agrees_on_both_ends(is_full):
    rows, model = fitted(is_full)
    _, mirror = mirrored(model)
    vehicle, ground = mixture_of(model), mixture_of(mirror.summary())
    mine, theirs = vehicle.predict(rows), ground.predict(rows)
    assert (mine == theirs).mean() >= SAME
    score = vehicle.score_samples(rows)
    assert np.abs(ground.score_samples(rows) - score).mean() < 0.3  # nats


@pytest.mark.slow
@pytest.mark.parametrize("is_full", [False, True])
def test_each_prefix_is_useful_and_more_bytes_are_better(is_full):
    rows, model = fitted(is_full)
    truth = assignments(summary_of(model), rows)
    encoder, mirror = ModelEncoder(), ModelMirror()
    encoder.update(model)
    found = []
    for _ in range(4):
        deliver(encoder, mirror, until_bytes=BARS[is_full][1] // 5)
        found.append((assignments(mirror.summary(), rows) == truth).mean())
    assert found == sorted(found)
    assert found[0] > 0.25
    assert found[-1] > 0.9


@pytest.mark.slow
def test_mixture_learnt_from_real_digits_is_assigned_alike_within_its_bytes():
    digits = np.load(data_dir("mnist") / "mnist.npz")
    name = next(key for key in digits.files if digits[key].ndim >= 2 and len(digits[key]) >= 10_000)
    pixels = digits[name].reshape(len(digits[name]), -1)[:5000].astype(np.float32) / 255.0
    pixels -= pixels.mean(axis=0)
    with threadpool_limits(1):
        _, axes = np.linalg.eigh(pixels.T @ pixels)
        rows = np.ascontiguousarray(pixels @ axes[:, : -N_DIMS - 1 : -1])
        learner = MemoryBoundedMixture(memory=4000, max_components=100)
        vehicle = learner.partial_fit(rows).predictive()
    fields = model_fields(vehicle, 100)
    header = {name: getattr(small(), name) for name in Message.__struct_fields__}
    model = Model(**header, which="patches", n_components=len(fields["ids"]), model_epoch=1, **fields)
    encoder, mirror = ModelEncoder(), ModelMirror()
    encoder.update(model)
    assert deliver(encoder, mirror) <= 50 * len(model.ids)
    assert len(model.ids) > 20
    assert (mixture_of(mirror.summary()).predict(rows) == vehicle.predict(rows)).mean() >= SAME


@pytest.mark.parametrize("is_full", [False, True])
@pytest.mark.parametrize("n_components", [100, 30])
def test_first_64_bytes_name_the_three_largest(is_full, n_components):
    model = small(is_full, k=n_components, d=20, ids=1000 + np.random.default_rng(2).permutation(n_components))
    encoder, mirror = ModelEncoder(), ModelMirror()
    encoder.update(model)
    mirror.take_packet(encoder.next_packet(64)[1])
    named = mirror.ranking[:3]
    assert [key for key, _ in named] == model.ids[:3].tolist()
    np.testing.assert_allclose([count for _, count in named], model.counts[:3], rtol=0.022)
    assert mirror.n_components == n_components


@pytest.mark.parametrize("is_full", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exact_form_is_exact(is_full, dtype):
    model = small(is_full)
    arrays = {
        name: getattr(model, name).astype(dtype)
        for name in ("counts", "weights", "means", "variances", "covariances", "prior_mean", "prior_scale")
        if getattr(model, name) is not None
    }
    fields = {name: getattr(model, name) for name in model.__struct_fields__}
    sent = type(model)(**{**fields, **arrays})
    rows = np.random.default_rng(3).normal(size=(500, 5)) * 3.0
    ground, vehicle = mixture_of(decode(encode(sent))), mixture_of(sent)
    np.testing.assert_array_equal(ground.score_samples(rows), vehicle.score_samples(rows))


@pytest.mark.parametrize("is_full", [False, True])
@pytest.mark.parametrize("count", [0.5, 1.0, 300.0])
def test_posterior_and_data_moments_are_each_others_inverse(is_full, count):
    model = small(is_full, k=2)
    fields = {name: getattr(model, name) for name in model.__struct_fields__}
    summary = summary_of(type(model)(**{**fields, "counts": np.full(2, count)}))
    mean, second = moments_of(
        posterior_gaussians(summary)[1], count, prior_gaussian(summary), summary.prior_strength, summary.wishart_dof
    )
    np.testing.assert_allclose(mean, summary.means[1], rtol=1e-9)
    np.testing.assert_allclose(second, (summary.covariances if is_full else summary.variances)[1], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("is_full", [False, True])
@pytest.mark.parametrize("budget", [MIN_PACKET_BYTES, 23, 64, MAX_PACKET_BYTES])
def test_packets_of_any_size_end_in_the_same_model(is_full, budget):
    model = small(is_full)
    _, one = mirrored(model)
    _, other = mirrored(model, budget)
    assert same_bits(one.summary(), other.summary())


@pytest.mark.parametrize("is_full", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_lost_doubled_and_shuffled_packets_end_in_the_same_model(is_full, seed):
    rng = np.random.default_rng(seed)
    encoder, mirror = ModelEncoder(), ModelMirror()
    sure = ModelMirror()
    for epoch in range(3):
        encoder.update(small(is_full, seed=20, epoch=epoch, shift=0.3 * epoch))
        for _ in range(40):
            window = [packet for _ in range(4) if (packet := encoder.next_packet(40)) is not None]
            rng.shuffle(window)
            for number, data in window:
                if rng.random() < 0.5:
                    encoder.lose(number)
                    continue
                for _ in range(rng.integers(1, 3)):
                    mirror.take_packet(data)
                sure.take_packet(data)
                encoder.acknowledge(number)
    while (packet := encoder.next_packet(40)) is not None:
        mirror.take_packet(packet[1])
        sure.take_packet(packet[1])
        encoder.acknowledge(packet[0])
    assert same_bits(mirror.summary(), sure.summary())
    vehicle, ground = summary_of(small(is_full, seed=20, epoch=2, shift=0.6)), mirror.summary()
    np.testing.assert_array_equal(ground.ids, vehicle.ids)
    spread = np.sqrt((vehicle.variances if not is_full else vehicle.covariances[:, [0, 2, 5, 9, 14]]).min())
    np.testing.assert_allclose(ground.means, vehicle.means, atol=0.5 * spread)


def test_changes_cost_less_than_the_whole():
    encoder, mirror = ModelEncoder(), ModelMirror()
    encoder.update(small(k=30, d=20))
    whole = deliver(encoder, mirror)
    encoder.update(small(k=30, d=20, epoch=2, shift=0.1))
    assert 0 < deliver(encoder, mirror) < 0.5 * whole


def test_model_that_has_not_changed_costs_nothing():
    encoder, mirror = ModelEncoder(), ModelMirror()
    encoder.update(small())
    deliver(encoder, mirror)
    encoder.update(small(epoch=2))
    assert encoder.next_packet(FRAME_BYTES) is None


def test_components_that_died_leave_and_new_ones_come():
    encoder, mirror = ModelEncoder(), ModelMirror()
    encoder.update(small(ids=np.arange(8)))
    deliver(encoder, mirror)
    encoder.update(small(epoch=2, ids=np.array([0, 1, 2, 3, 4, 5, 6, 9])))
    deliver(encoder, mirror)
    assert sorted(mirror.summary().ids.tolist()) == [0, 1, 2, 3, 4, 5, 6, 9]
    assert mirror.n_components == 8


def test_slow_link_finishes_components_though_the_model_never_rests():
    """One packet an epoch: streams that were begun anew at each epoch would never end."""
    encoder, mirror = ModelEncoder(), ModelMirror()
    for epoch in range(60):
        encoder.update(small(is_full=True, k=3, d=20, epoch=epoch, shift=0.05 * epoch))
        number, data = encoder.next_packet(32)
        mirror.take_packet(data)
        encoder.acknowledge(number)
    newest = summary_of(small(is_full=True, k=3, d=20, epoch=59, shift=0.05 * 59))
    np.testing.assert_allclose(mirror.summary().means[0], newest.means[0], atol=3.5)


def test_restarted_vehicle_replaces_all_and_late_packets_of_before_do_nothing():
    old, mirror = ModelEncoder(incarnation=63), ModelMirror()
    old.update(small())
    late = old.next_packet(FRAME_BYTES)[1]
    mirror.take_packet(late)
    new = ModelEncoder(incarnation=64)
    new.update(small(k=2, seed=5))
    deliver(new, mirror)
    before = mirror.summary()
    mirror.take_packet(late)
    assert same_bits(mirror.summary(), before)
    assert len(before.ids) == 2


def test_ground_that_lost_its_copy_gets_it_again_after_a_refresh():
    encoder, first = ModelEncoder(), ModelMirror()
    encoder.update(small())
    deliver(encoder, first)
    encoder.refresh()
    second = ModelMirror()
    deliver(encoder, second)
    assert same_bits(first.summary(), second.summary())


@pytest.mark.parametrize("budget", [MIN_PACKET_BYTES - 1, MAX_PACKET_BYTES + 1])
def test_budget_out_of_range_is_refused(budget):
    with pytest.raises(EncodeError, match=str(budget)):
        ModelEncoder().next_packet(budget)


def test_model_of_another_shape_is_refused():
    encoder = ModelEncoder()
    encoder.update(small())
    with pytest.raises(EncodeError, match="another shape"):
        encoder.update(small(d=6))


@pytest.mark.parametrize("data", [b"", b"\x20", b"\xe0" + bytes(30), bytes(30), b"\x20" + b"\xff" * 40, bytes(2049)])
def test_packet_that_is_none_is_refused(data):
    with pytest.raises(DecodeError):
        ModelMirror().take_packet(data)
