"""One component in 32 bytes, coarse, and finer with each further part."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stillwatch.transport.thin.codec import ThinCodec, encode_record
from stillwatch.transport.thin.component import decode_component, encode_component
from stillwatch.transport.wire.errors import DecodeError, EncodeError


def component_of(seed, n_dims=20):
    random = np.random.default_rng(seed)
    return random.normal(0.0, 3.0, n_dims), random.uniform(0.2, 1.5, n_dims)


@pytest.mark.parametrize("n_dims", [1, 16, 20, 64])
def test_every_part_is_at_most_32_bytes_on_the_wire(n_dims):
    mean, std = component_of(0, n_dims)
    for part in encode_component(3, 1, 500.0, mean, std, n_stages=8):
        assert len(ThinCodec().frame([encode_record(part, rest=True)])) <= 32


@pytest.mark.parametrize("seed", range(5))
def test_the_first_part_says_20_means_to_5_bits_and_spreads_to_2(seed):
    mean, std = component_of(seed)
    part = encode_component(3, 1, 500.0, mean, std)[0]
    coarse = decode_component([part.data])
    bound = 2.0 ** np.ceil(np.log2(np.abs(mean).max()))
    assert np.abs(coarse.mean - mean).max() <= bound / 32
    assert np.abs(np.log2(coarse.std / std)).max() <= 4.0 / 8
    assert coarse.count == pytest.approx(500.0, rel=0.02)


@pytest.mark.parametrize("seed", range(5))
def test_each_part_makes_it_better(seed):
    mean, std = component_of(seed)
    parts = encode_component(3, 1, 500.0, mean, std, n_stages=4)
    errors = [
        np.abs(decode_component([part.data for part in parts[:n]]).mean - mean).max() for n in range(1, len(parts) + 1)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-3


@given(
    st.integers(1, 64).flatmap(
        lambda n: st.tuples(
            st.lists(st.floats(-1e6, 1e6), min_size=n, max_size=n),
            st.lists(st.floats(1e-6, 1e6), min_size=n, max_size=n),
        )
    ),
    st.floats(0.1, 1e12),
)
def test_any_component_comes_back_within_the_last_bit(values, count):
    mean, std = map(np.array, values)
    parts = encode_component(65535, 15, count, mean, std, n_stages=8)
    whole = decode_component([part.data for part in parts])
    n_bits = 8 * sum(len(part.data) for part in parts)
    if n_bits >= 34 + 30 * len(mean):
        bound = 2.0 ** max(np.ceil(np.log2(max(np.abs(mean).max(), 2.0**-31))), -31)
        assert np.abs(whole.mean - mean).max() <= bound * 2.0**-14
        assert np.abs(np.log2(whole.std / std)).max() <= 64 * 2.0**-14


@pytest.mark.parametrize(
    ("mean", "std", "count"),
    [([np.nan], [1.0], 1.0), ([0.0], [0.0], 1.0), ([0.0], [1.0], 0.0), ([0.0, 1.0], [1.0], 1.0), ([], [], 1.0),
     (np.zeros(65), np.ones(65), 1.0)],
)  # fmt: skip
def test_a_component_that_cannot_be_said_is_refused(mean, std, count):
    with pytest.raises(EncodeError):
        encode_component(0, 0, count, mean, std)


def test_too_few_bytes_are_a_decode_error():
    with pytest.raises(DecodeError):
        decode_component([b"\x00\x01"])
