"""What a subscriber concludes from sequences alone: gaps, doubles, restarts, and how late a message is."""

import tracemalloc

import pytest
from wire_examples import HEADER

from stillwatch.transport.live.tracking import AgeMeter, Gap, Tracker
from stillwatch.transport.wire import messages as m
from stillwatch.transport.wire.topics import TOPICS


def header(sequence, epoch=1, mono_ns=0, boot="b"):
    return {**HEADER, "sequence": sequence, "epoch": epoch, "mono_ns": mono_ns, "boot": boot}


def score(sequence, **more):
    return m.Score(**header(sequence, **more))


def alert(sequence, number):
    return m.Alert(**header(sequence), id=number, phase="new")


@pytest.fixture
def tracker():
    made = Tracker()
    made.is_new_epoch(1)
    return made


def gaps_of(tracker, *messages):
    return [gap for message in messages for gap in tracker.live(message).gaps]


def test_messages_in_order_have_no_gap(tracker):
    assert gaps_of(tracker, *(score(n) for n in range(5))) == []


def test_jump_is_a_gap_of_what_was_skipped(tracker):
    assert gaps_of(tracker, score(0), score(4)) == [Gap("score", 1, 3)]
    assert tracker.lost == {"score": 3}


def test_double_is_not_delivered(tracker):
    assert [tracker.live(score(0)).deliver for _ in range(3)] == [True, False, False]


def test_message_that_comes_after_its_gap_is_delivered_once_and_no_longer_lost(tracker):
    gaps_of(tracker, score(0), score(2))
    assert [tracker.live(score(1)).deliver for _ in range(2)] == [True, False]
    assert tracker.lost == {"score": 0}


def test_each_kind_has_its_own_sequence(tracker):
    assert gaps_of(tracker, score(0), alert(0, 1), score(1), alert(1, 2)) == []


def test_what_was_sent_before_we_came_is_no_gap(tracker):
    assert gaps_of(tracker, score(70)) == []
    assert tracker.baseline({"score": 69}) == []


def test_first_messages_missed_between_snapshot_and_subscription_are_a_gap(tracker):
    tracker.live(score(75))
    assert tracker.baseline({"score": 69}) == [Gap("score", 70, 74)]


def test_kind_never_sent_at_the_snapshot_is_expected_from_zero(tracker):
    tracker.baseline({})
    assert gaps_of(tracker, score(2)) == [Gap("score", 0, 1)]


def test_a_jump_of_last_values_is_a_gap_once_a_snapshot_made_since_has_not_brought_them(tracker):
    assert gaps_of(tracker, alert(0, 1), alert(4, 5)) == []
    asked_for = tracker.suspects
    assert asked_for == {"alert": 3}
    gaps_of(tracker, alert(6, 7))
    tracker.snapshot(alert(2, 3))
    assert tracker.settle(asked_for) == [Gap("alert", 1, 1), Gap("alert", 3, 3)]
    assert tracker.suspects == {"alert": 5}, "which may have been made after the snapshot"
    assert tracker.lost == {"alert": 2}


def test_last_values_that_come_after_all_are_never_told_as_lost(tracker):
    gaps_of(tracker, alert(0, 1), alert(3, 4))
    assert tracker.live(alert(1, 2)).deliver
    assert tracker.snapshot(alert(2, 3))
    assert tracker.settle() == []
    assert tracker.lost == {}


def test_what_is_told_as_gaps_is_what_is_counted_as_lost_however_much_is_missing(tracker):
    told = gaps_of(tracker, alert(0, 1), alert(3_000, 2), score(0), score(50), alert(3_002, 3)) + tracker.settle()
    count = {kind: sum(gap.count for gap in told if gap.kind == kind) for kind in ("alert", "score")}
    assert count == tracker.lost == {"alert": 3_000, "score": 49}


def test_what_the_snapshot_overtook_on_its_way_is_delivered_with_what_follows_it(tracker):
    """Snapshot and stream come on two connections: the page may say 49 while 45 is still on the way."""
    tracker.baseline({"score": 49})
    verdicts = [tracker.live(score(n)) for n in (45, 46, 48)]
    assert [verdict.deliver for verdict in verdicts] == [True, True, True]
    assert all(verdict.is_fresh for verdict in verdicts)
    assert [verdict.gaps for verdict in verdicts] == [[], [], [Gap("score", 47, 47)]]
    assert not tracker.live(score(46)).deliver


def test_last_value_sent_again_for_another_joiner_is_not_taken_for_one_on_the_way(tracker):
    tracker.baseline({"gate": 9})
    tracker.snapshot(m.GateChange(**header(9), state="live", previous="frozen"))
    again = tracker.live(m.GateChange(**header(9), state="live", previous="frozen"))
    assert (again.deliver, again.is_fresh) == (False, False)


def test_what_the_snapshot_brought_is_no_gap_when_the_heartbeat_counts_it(tracker):
    tracker.baseline({})
    tracker.snapshot(alert(1, 7))
    status = m.Status(**header(0), state="live", sequences={"alert": 4})
    assert tracker.live(status).gaps == []
    assert tracker.settle() == [Gap("alert", 0, 0), Gap("alert", 2, 3)]
    assert tracker.lost == {"alert": 3}


def test_heartbeat_reveals_lost_last_messages(tracker):
    gaps_of(tracker, score(0), alert(0, 1))
    status = m.Status(**header(0), state="live", sequences={"score": 3, "alert": 2, "status": 1, "gossip": 7})
    assert tracker.live(status).gaps == [Gap("score", 1, 2)]
    assert tracker.settle() == [Gap("alert", 1, 1)]


def test_snapshot_delivers_the_newest_of_each_key_once(tracker):
    tracker.live(alert(5, number=1))
    assert not tracker.snapshot(alert(3, number=1))
    assert tracker.snapshot(alert(4, number=2))
    assert not tracker.snapshot(alert(4, number=2))


def test_live_message_that_the_snapshot_brought_already_is_not_delivered_again(tracker):
    tracker.snapshot(alert(4, number=2))
    assert not tracker.live(alert(4, number=2)).deliver


def test_alert_is_delivered_once_however_many_exemplars_came_since(tracker):
    tracker.live(alert(5, number=1))
    for i in range(TOPICS["exemplar"].keep):
        tracker.live(m.Exemplar(**header(i), id=i))
    assert not tracker.snapshot(alert(5, number=1))


def test_restart_begins_anew_and_the_old_epoch_is_ignored(tracker):
    gaps_of(tracker, score(9))
    assert tracker.is_new_epoch(2)
    assert not tracker.is_new_epoch(2)
    assert gaps_of(tracker, score(0, epoch=2)) == []
    assert not tracker.live(score(10, epoch=1)).deliver


def test_age_is_what_a_message_took_beyond_the_fastest():
    meter = AgeMeter()
    second = 10**9
    assert meter.age_s(score(0, mono_ns=5 * second), 1005 * second) == 0.0
    assert meter.age_s(score(1, mono_ns=6 * second), 1009 * second) == 3.0
    assert meter.age_s(score(2, mono_ns=7 * second), 1006 * second) == 0.0
    assert meter.age_s(score(3, mono_ns=8 * second), 1009 * second) == 2.0


def test_age_begins_anew_when_the_sender_has_booted():
    meter = AgeMeter()
    meter.age_s(score(0, mono_ns=10**15), 5)
    assert meter.age_s(score(0, mono_ns=7, boot="other"), 10**9) == 0.0


def test_of_alerts_only_those_are_remembered_that_a_snapshot_can_bring_again(tracker):
    for number in range(100):
        assert tracker.live(alert(number, number)).deliver
    tracemalloc.start()
    for number in range(100, 5000):
        assert tracker.live(alert(number, number)).deliver
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert grown < 20_000
    kept = TOPICS["alert"].keep
    assert not any(tracker.snapshot(alert(number, number)) for number in range(5000 - kept, 5000))
