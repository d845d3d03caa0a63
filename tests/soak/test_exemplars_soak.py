"""A million rows: the same bytes, the same speed, and memory that does not follow the stream."""

import time

import numpy as np
import pytest

from stillwatch.learn.exemplars.stream_greedy import StreamGreedy

N_ROWS = 1_000_000
PART = 10_000


@pytest.mark.soak
@pytest.mark.parametrize("is_drifting", [False, True])
def test_a_million_rows_take_no_more_memory_and_time_than_the_first(is_drifting):
    found = StreamGreedy(k=16, block=100, validation=500, payload_bytes=64)
    n_bytes = found.memory_bytes()
    payload = [b"x" * 64] * PART
    seconds = []
    for i in range(N_ROWS // PART):
        rows = np.random.default_rng(i).normal(size=(PART, 16))
        if is_drifting:
            rows += 0.05 * i
        start = time.process_time()
        found.partial_fit(rows, payload=payload)
        seconds.append(time.process_time() - start)
        assert found.memory_bytes() == n_bytes
        assert sum(array.nbytes for array in found.state().values()) <= n_bytes
    assert np.median(seconds[-10:]) < 1.1 * np.median(seconds[1:11])
    assert found.n_seen_ == N_ROWS
