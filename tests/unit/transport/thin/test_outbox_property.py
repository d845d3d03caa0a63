"""Random lives of an outbox, with restarts at any moment, against a plain dictionary."""

import numpy as np
import pytest

from stillwatch.base.clock import VirtualClock
from stillwatch.transport.thin.outbox import Outbox


@pytest.fixture(autouse=True)
def _fast_disk(monkeypatch):
    monkeypatch.setattr("os.fdatasync", lambda descriptor: None)


@pytest.mark.parametrize("seed", range(12))
def test_it_holds_what_a_dictionary_would_whatever_happens(tmp_path, seed):
    random = np.random.default_rng(seed)
    clock = VirtualClock(0, 1_795_824_000_000_000_000)

    def opened():
        return Outbox(tmp_path, clock=clock, max_bytes=100_000, min_free_bytes=0)

    outbox, expected, given = opened(), {}, []
    for step in range(400):
        clock.advance_ns(int(random.integers(1, 10**9)))
        action = random.choice(
            ["put", "put", "acknowledge", "acknowledge", "hold", "settle", "restart"],
            p=[0.3, 0.1, 0.3, 0.1, 0.1, 0.05, 0.05],
        )
        payload = step.to_bytes(4, "big") + random.bytes(int(random.integers(0, 300)))
        if action == "put":
            given.append(outbox.put(payload))
            expected[given[-1]] = payload
        elif action == "hold":
            given.append(outbox.hold(payload))
            expected[given[-1]] = payload
        elif action == "acknowledge" and given:
            done = [given[int(i)] for i in random.integers(len(given), size=int(random.integers(1, 5)))]
            assert outbox.acknowledge(done) == len({number for number in done if number in expected})
            for number in done:
                expected.pop(number, None)
        elif action == "settle":
            assert outbox.settle() == 0
        elif action == "restart":
            outbox.settle()  # what is only held does not outlive a process
            outbox = opened()
        assert dict(outbox.pending()) == expected
        assert len(outbox) == len(expected)
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 100_000 + 8_000
    assert len(set(given)) == len(given)
    assert outbox.lost == 0
