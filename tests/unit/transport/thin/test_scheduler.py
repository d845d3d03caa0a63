"""The scheduler: never over budget, alerts first, value, age, time to live, blackout and order by class."""

from collections import deque

import numpy as np
import pytest

from stillwatch.transport.thin.codec import ThinCodec, encode_record
from stillwatch.transport.thin.presets import PRESETS, Budget
from stillwatch.transport.thin.records import Packet
from stillwatch.transport.thin.scheduler import STEADY_TRIES, ClassRule, Item, Scheduler
from stillwatch.transport.wire.errors import LinkError

SECOND = 1_000_000_000
SLOT = 15 * SECOND
CODEC = ThinCodec(1)
SMALL = Budget(32, 1, 15.0)


def record(number, size=23):
    return encode_record(Packet(number, bytes(size)), rest=True)


def numbers(frames):
    return [part.number for frame in frames for part in CODEC.decode(frame).records]


def whole(kind, number, **options):
    """Return an item that fills a 32-byte frame, known by its number."""
    return Item(kind, number, record(number), ends_frame=True, **options)


def scheduler(budget=SMALL, **rules):
    return Scheduler(budget, CODEC, rules={name: rule for name, rule in rules.items()} or None)


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("seed", range(2))
def test_no_closed_window_of_ten_minutes_is_ever_over_budget(name, seed):
    budget = PRESETS[name].up
    random = np.random.default_rng(seed)
    link = Scheduler(budget, CODEC)
    window, total = deque(), 0
    now_ns = 0
    for step in range(400 if name == "lte" else 1000):
        now_ns += int(random.exponential(budget.slot_s / 3) * SECOND)
        for _ in range(int(random.integers(4))):
            size = int(random.integers(1, min(budget.frame_bytes - 9, 255)))
            kind = str(random.choice(["alert", "model", "thumbnail"]))
            link.offer(
                Item(
                    kind,
                    int(random.integers(300)),
                    encode_record(Packet(step, bytes(size)), rest=True),
                    ends_frame=True,
                ),
                now_ns,
            )
        frames = link.next_slot(now_ns)
        assert len(frames) <= budget.frames_per_slot
        assert all(len(frame) <= budget.frame_bytes for frame in frames)
        sent = sum(map(len, frames))
        window.append((now_ns, sent))
        total += sent
        while window[0][0] < now_ns - 600 * SECOND:
            total -= window.popleft()[1]
        assert total <= budget.window_bytes
    assert link.counters["frames"] > 100


@pytest.mark.parametrize("seed", range(3))
def test_a_restart_at_any_moment_never_breaks_the_budget(seed):
    random = np.random.default_rng(seed)
    window, total, now_ns = deque(), 0, 0
    link = Scheduler(SMALL, CODEC)
    for step in range(3000):
        now_ns += int(random.uniform(0.0, 1.0) * SLOT)
        if random.random() < 0.05:
            link = Scheduler(SMALL, CODEC, now_ns=now_ns, restarted=True)
        link.offer(whole("alert", step % 4000), now_ns)
        sent = sum(map(len, link.next_slot(now_ns)))
        window.append((now_ns, sent))
        total += sent
        while window[0][0] < now_ns - 600 * SECOND:
            total -= window.popleft()[1]
        assert total <= SMALL.window_bytes


def test_one_slot_is_used_once():
    link = scheduler()
    link.offer(whole("alert", 1), 0)
    link.offer(whole("alert", 2), 0)
    assert numbers(link.next_slot(0)) == [1]
    assert link.next_slot(SLOT - 1) == []
    assert numbers(link.next_slot(SLOT)) == [2]


def test_after_a_restart_the_link_is_used_again_within_three_slots():
    link = Scheduler(SMALL, CODEC, now_ns=1000 * SLOT + 5, restarted=True)
    link.offer(whole("alert", 1), 1000 * SLOT)
    used = [slot for slot in range(1000, 1005) if link.next_slot(slot * SLOT + 6)]
    assert used
    assert used[0] <= 1002


def test_an_alert_goes_in_the_next_slot_though_the_link_was_always_full():
    link = scheduler()
    for slot in range(400):
        for number in range(5):
            link.offer(whole("model", 10 * slot + number), slot * SLOT)
        late_ns = slot * SLOT + (slot * 7919) % SLOT
        if slot % 13 == 0:
            link.offer(whole("alert", 4095), late_ns)
            assert numbers(link.next_slot(late_ns)) == [4095]
            link.acknowledge("alert", [4095])
        else:
            link.next_slot(late_ns)


def test_alerts_are_repeated_every_slot_then_slower_until_acknowledged():
    link = scheduler()
    link.offer(whole("alert", 1), 0)
    sent = [slot for slot in range(100) if link.next_slot(slot * SLOT)]
    assert sent[:STEADY_TRIES] == list(range(STEADY_TRIES))
    gaps = np.diff(sent[STEADY_TRIES:])
    assert gaps.max() <= 8
    assert len(gaps) > 5
    link.acknowledge("alert", [1])
    assert [slot for slot in range(100, 120) if link.next_slot(slot * SLOT)] == []


def test_a_new_alert_goes_before_the_repeat_of_an_old_one():
    link = scheduler()
    link.offer(whole("alert", 1), 0)
    link.next_slot(0)
    link.offer(whole("alert", 2), SLOT)
    assert numbers(link.next_slot(SLOT)) == [2]
    assert numbers(link.next_slot(2 * SLOT)) == [1]


def test_more_valuable_items_of_a_class_go_first():
    link = scheduler()
    for number, value in ((1, 0.5), (2, 2.0), (3, 1.0)):
        link.offer(whole("model", number, value=value), 0)
    assert [numbers(link.next_slot(slot * SLOT)) for slot in range(5)] == [[2], [3], [1], [2], [3]]


@pytest.mark.parametrize(("newest_first", "expected"), [(True, [3, 2, 1]), (False, [1, 2, 3])])
def test_order_by_age_is_by_class(newest_first, expected):
    link = scheduler(model=ClassRule(1.0, repeat_slots=0, newest_first=newest_first))
    for number in (1, 2, 3):
        link.offer(whole("model", number), 0)
    assert [numbers(link.next_slot(slot * SLOT))[0] for slot in range(3)] == expected


def test_a_class_gains_priority_with_the_time_it_waited():
    link = scheduler(
        model=ClassRule(10.0, ttl_s=3600.0, repeat_slots=0), thumbnail=ClassRule(2.0, ttl_s=3600.0, repeat_slots=0)
    )
    for number in range(40):
        link.offer(whole("model", number), 0)
        link.offer(whole("thumbnail", 100 + number), 0)
    order = [numbers(link.next_slot(slot * SLOT))[0] >= 100 for slot in range(30)]
    assert 3 <= sum(order) <= 8, "the less valuable class gets its share, and not more"


def test_items_over_their_time_to_live_are_dropped_counted_and_reported():
    dropped = []
    link = Scheduler(SMALL, CODEC, on_drop=lambda kind, key: dropped.append((kind, key)))
    link.offer(whole("model", 1, ttl_s=60.0), 0)
    link.offer(whole("alert", 2), 0)
    assert numbers(link.next_slot(60 * SECOND)) == [2]
    assert link.count("model") == 0
    assert link.counters["expired.model"] == 1
    assert dropped == [("model", 1)]


def test_a_class_keeps_silent_during_its_blackout():
    link = scheduler(heartbeat=ClassRule(5.0, ttl_s=600.0, blackout_s=60.0, repeat_slots=0))
    used = []
    for slot in range(12):
        link.offer(whole("heartbeat", slot), slot * SLOT)
        if link.next_slot(slot * SLOT):
            used.append(slot)
    assert used == [0, 4, 8]


@pytest.mark.parametrize(("newest_first", "kept"), [(True, {3, 4}), (False, {1, 2})])
def test_a_full_queue_drops_what_would_go_last(newest_first, kept):
    link = scheduler(model=ClassRule(1.0, max_queue=2, newest_first=newest_first))
    for number in (1, 2, 3, 4):
        link.offer(whole("model", number), number)
    assert set(link.keys("model")) == kept
    assert link.counters["overflow.model"] == 2


def test_the_same_key_replaces_what_was_queued():
    link = scheduler()
    link.offer(Item("heartbeat", "beat", record(1), ends_frame=True), 0)
    link.offer(Item("heartbeat", "beat", record(2), ends_frame=True), 0)
    assert numbers(link.next_slot(0)) == [2]


def test_small_records_share_a_frame_and_nothing_follows_one_without_its_length():
    link = Scheduler(Budget(256, 1, 15.0), CODEC)
    for number in range(5):
        link.offer(Item("model", number, encode_record(Packet(number, bytes(20)))), 0)
    link.offer(Item("thumbnail", 9, encode_record(Packet(9, bytes(20)), rest=True), ends_frame=True), 0)
    (frame,) = link.next_slot(0)
    assert numbers([frame])[-1] == 9
    assert sorted(numbers([frame])) == [0, 1, 2, 3, 4, 9]


def test_what_no_frame_could_hold_is_refused():
    with pytest.raises(LinkError, match="a frame of this link holds at most 26"):
        scheduler().offer(Item("alert", 1, bytes(27)), 0)
    with pytest.raises(LinkError):
        scheduler().offer(Item("nonsense", 1, bytes(2)), 0)
