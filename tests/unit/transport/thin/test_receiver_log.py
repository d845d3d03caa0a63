"""The ground's log: each alert once, known again after a restart, whatever was torn."""

import dataclasses

import pytest
from thin_records import read_received

from stillwatch.base.clock import VirtualClock
from stillwatch.transport.disk.record_format import log_files
from stillwatch.transport.thin.outbox import Number
from stillwatch.transport.thin.receiver_log import ReceiverLog
from stillwatch.transport.thin.records import ThinAlert

CLOCK = VirtualClock(0, 1_795_824_000_000_000_000)


def alert(delivery, incarnation=1):
    return ThinAlert(delivery % 65536, "novel", 0, incarnation=incarnation, delivery=delivery)


def deliveries(folder):
    return [found.delivery for _, _, found in read_received(folder)]


def test_the_same_alert_is_written_once(tmp_path):
    log = ReceiverLog(tmp_path, clock=CLOCK)
    assert [log.append(1, alert(5)), log.append(1, alert(5)), log.append(2, alert(5))] == [True, False, True]
    assert log.append(1, alert(5, incarnation=2)) is True
    assert log.duplicates == 1
    assert deliveries(tmp_path) == [5, 5, 5]


def test_a_new_process_knows_what_the_killed_one_wrote(tmp_path):
    first = ReceiverLog(tmp_path, clock=CLOCK)
    first.append(1, alert(5))
    second = ReceiverLog(tmp_path, clock=CLOCK)  # the first was never closed
    assert second.arrived_lately(1, Number(1, 5))
    assert second.append(1, alert(5)) is False
    assert second.continued
    assert not first.continued


def test_a_number_of_another_alert_is_not_taken_for_a_double(tmp_path):
    log = ReceiverLog(tmp_path, clock=CLOCK)
    log.append(1, alert(5))
    other = dataclasses.replace(alert(5), kind="vanished")
    assert [log.append(1, other), log.append(1, other), log.append(1, alert(5))] == [True, False, False]
    assert log.renumbered == 1


def test_it_remembers_over_files_and_restarts(tmp_path, monkeypatch):
    monkeypatch.setattr("stillwatch.transport.thin.receiver_log._FILE_BYTES", 700)
    monkeypatch.setattr("stillwatch.transport.thin.receiver_log.REMEMBERED", 8)
    log = ReceiverLog(tmp_path, clock=CLOCK)
    for delivery in range(60):
        assert log.append(1, alert(delivery)) is True
    assert len(log_files(tmp_path)) > 3
    again = ReceiverLog(tmp_path, clock=CLOCK)
    assert [again.append(1, alert(delivery)) for delivery in range(52, 60)] == [False] * 8
    assert deliveries(tmp_path) == list(range(60))


def test_what_arrived_long_ago_is_not_lately(tmp_path):
    clock = VirtualClock(0, 1_795_824_000_000_000_000)
    log = ReceiverLog(tmp_path, clock=clock)
    log.append(1, alert(5))
    clock.advance_ns(3601 * 1_000_000_000)
    assert not log.arrived_lately(1, Number(1, 5))
    assert log.append(1, alert(5)) is False
    assert log.arrived_lately(1, Number(1, 5)), "a repeat is acknowledged again"


def test_a_torn_end_is_not_taken_for_an_alert(tmp_path):
    log = ReceiverLog(tmp_path, clock=CLOCK)
    log.append(1, alert(5))
    log.append(1, alert(6))
    ((_, path),) = log_files(tmp_path)
    path.write_bytes(path.read_bytes()[:-3])
    again = ReceiverLog(tmp_path, clock=CLOCK)
    assert again.append(1, alert(6)) is True
    assert deliveries(tmp_path) == [5, 6]


def test_what_the_disk_does_not_take_is_not_known(tmp_path, monkeypatch):
    log = ReceiverLog(tmp_path, clock=CLOCK)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.writev", full)
    assert log.append(1, alert(5)) is None
    assert not log.arrived_lately(1, Number(1, 5))
    assert log.state == "disk_full"


def test_a_write_whose_sync_failed_is_not_written_twice(tmp_path, monkeypatch):
    clock = VirtualClock(0, 1_795_824_000_000_000_000)
    log = ReceiverLog(tmp_path, clock=clock)

    def fail(*_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("os.fdatasync", fail)
        assert log.append(1, alert(5)) is None
    clock.advance_ns(10_000_000_000)
    assert log.append(1, alert(5)) is False
    assert log.append(1, alert(6)) is True
    assert deliveries(tmp_path) == [5, 6]


def test_arrival_times_are_kept(tmp_path):
    log = ReceiverLog(tmp_path, clock=CLOCK)
    log.append(9, alert(1))
    ((agent, wall_ns, found),) = read_received(tmp_path)
    assert (agent, wall_ns) == (9, CLOCK.wall_ns())
    assert found.delivery == 1


@pytest.mark.parametrize("n_agents", [3])
def test_agents_do_not_mix(tmp_path, n_agents):
    log = ReceiverLog(tmp_path, clock=CLOCK)
    for agent in range(n_agents):
        log.append(agent, alert(agent))
    assert [(agent, found.delivery) for agent, _, found in read_received(tmp_path)] == [(0, 0), (1, 1), (2, 2)]
