"""The simulated link: the shares it is told, the same for the same seed, on the caller's clock."""

import pytest

from stillwatch.transport.thin.linksim import LinkModel, LinkSimulator
from stillwatch.transport.wire.errors import LinkError

SECOND = 1_000_000_000


def carried(model, n=4000, seed=1, every_ns=SECOND, size=32, direction=0):
    """Return (arrival second, frame number) of n frames sent one each `every_ns`."""
    link = LinkSimulator(seed, model)
    arrived = []
    for k in range(n):
        link.send(k.to_bytes(4, "big") + bytes(size - 4), k * every_ns, direction)
        arrived += [(k, int.from_bytes(frame[:4], "big")) for frame in link.receive(k * every_ns, direction)]
    arrived += [(n, int.from_bytes(frame[:4], "big")) for frame in link.receive(10**18, direction)]
    return arrived, link


def test_a_perfect_link_delivers_all_at_once_and_in_order():
    arrived, _ = carried(LinkModel(), n=100)
    assert arrived == [(k, k) for k in range(100)]


def test_loss_is_the_share_it_is_told():
    arrived, link = carried(LinkModel(loss=0.5))
    assert len(arrived) == pytest.approx(2000, abs=130)
    assert link.counters["lost"] == 4000 - len(arrived)


def test_duplicates_arrive_twice():
    arrived, link = carried(LinkModel(duplicate=0.2))
    assert len(arrived) - len({number for _, number in arrived}) == link.counters["duplicated"]
    assert link.counters["duplicated"] == pytest.approx(800, abs=100)


def test_reordered_frames_arrive_after_later_ones():
    arrived, _ = carried(LinkModel(reorder=0.2, delay_s=1.0))
    order = [number for _, number in arrived]
    assert order != sorted(order)
    assert sorted(order) == list(range(4000))


def test_delay_is_kept():
    arrived, _ = carried(LinkModel(delay_s=3.0), n=100)
    assert all(second == number + 3 for second, number in arrived if second < 100)


def test_nothing_is_sent_during_an_outage():
    arrived, _ = carried(LinkModel(outage_every_s=120.0, outage_s=30.0), n=1200)
    assert {number for _, number in arrived} == {k for k in range(1200) if k % 120 < 90}


def test_half_of_the_frames_are_lost_at_the_half_range_and_all_at_twice_it():
    near, half, far = (LinkModel(range_m=r, half_range_m=1000.0).range_loss for r in (500.0, 1000.0, 2000.0))
    assert near < 0.06
    assert half == 0.5
    assert far > 0.99
    arrived, _ = carried(LinkModel(range_m=1000.0, half_range_m=1000.0))
    assert len(arrived) == pytest.approx(2000, abs=130)


def test_a_byte_limit_makes_frames_wait_and_loses_what_the_buffer_cannot_hold():
    arrived, link = carried(LinkModel(bytes_per_s=10.0, buffer_bytes=320), n=100, size=32)
    assert link.counters["overrun"] > 50
    assert len(arrived) == 100 - link.counters["overrun"]
    gaps = [b[0] - a[0] for a, b in zip(arrived, arrived[1:], strict=False) if b[0] < 100]
    assert min(gaps) >= 3, "32 bytes take 3.2 s at 10 bytes a second"


def test_a_damaged_frame_differs_in_one_bit():
    link = LinkSimulator(0, LinkModel(damage=1.0))
    link.send(bytes(32), 0)
    (frame,) = link.receive(0)
    assert sum(byte.bit_count() for byte in frame) == 1


def test_the_same_seed_gives_the_same_link_and_directions_differ():
    model = LinkModel(loss=0.3, duplicate=0.1, reorder=0.1, jitter_s=1.0)
    assert carried(model, n=500)[0] == carried(model, n=500)[0]
    assert carried(model, n=500)[0] != carried(model, n=500, seed=2)[0]
    assert carried(model, n=500)[0] != carried(model, n=500, direction=1)[0]


def test_one_setting_does_not_change_the_luck_of_another():
    lost_alone = {k for k in range(500)} - {number for _, number in carried(LinkModel(loss=0.3), n=500)[0]}
    both = carried(LinkModel(loss=0.3, duplicate=0.5, jitter_s=2.0), n=500)[0]
    assert {k for k in range(500)} - {number for _, number in both} == lost_alone


def test_the_next_arrival_is_known():
    link = LinkSimulator(0, LinkModel(delay_s=2.0))
    assert link.next_ns() is None
    link.send(b"x", 5 * SECOND, 1)
    assert link.next_ns() == 7 * SECOND


@pytest.mark.parametrize(
    "fields",
    [{"loss": 1.1}, {"duplicate": -0.1}, {"delay_s": -1.0}, {"jitter_s": float("nan")},
     {"outage_s": 30.0}, {"outage_s": 30.0, "outage_every_s": 30.0}],
)  # fmt: skip
def test_an_impossible_link_is_refused(fields):
    with pytest.raises(LinkError, match="linksim"):
        LinkModel(**fields)
