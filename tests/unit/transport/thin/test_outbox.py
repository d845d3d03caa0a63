"""The outbox: durable before it returns, in order, bounded, acknowledged first to go, numbers never given twice."""

import logging

import pytest
from printed import of_schema

from stillwatch.base.clock import VirtualClock
from stillwatch.tools.cli import main
from stillwatch.transport.disk.record_format import log_files
from stillwatch.transport.thin.outbox import Number, Outbox, count_outbox
from stillwatch.transport.wire.errors import LogError

DAY_NS = 86_400 * 1_000_000_000
WALL_NS = 1_795_824_000_000_000_000


@pytest.fixture(autouse=True)
def _fast_disk(monkeypatch):
    """Thousands of puts are tested for what they do, not for how long a disk takes to sync."""
    monkeypatch.setattr("os.fdatasync", lambda descriptor: None)


@pytest.fixture
def clock():
    return VirtualClock(0, WALL_NS)


def opened(folder, clock, **options):
    return Outbox(folder / "outbox", clock=clock, **({"min_free_bytes": 0} | options))


def payloads(outbox):
    return [payload for _, payload in outbox.pending()]


def total_bytes(folder):
    return sum(path.stat().st_size for path in (folder / "outbox").iterdir())


def test_what_was_put_waits_in_order_until_acknowledged(tmp_path, clock):
    outbox = opened(tmp_path, clock)
    numbers = [outbox.put(b"payload %d" % k) for k in range(5)]
    assert payloads(outbox) == [b"payload %d" % k for k in range(5)]
    assert outbox.acknowledge([numbers[1], numbers[3], numbers[3], Number(1, 999)]) == 2
    assert payloads(outbox) == [b"payload 0", b"payload 2", b"payload 4"]


def test_a_new_process_goes_on_where_the_killed_one_was(tmp_path, clock):
    first = opened(tmp_path, clock)
    numbers = [first.put(b"%d" % k) for k in range(4)]
    first.acknowledge(numbers[:2])
    second = opened(tmp_path, clock)  # the first was never closed
    assert list(second.pending()) == [(numbers[2], b"2"), (numbers[3], b"3")]
    assert second.continued
    assert not first.continued
    assert second.generation > first.generation


def test_its_files_tell_what_was_put_acknowledged_and_waits(tmp_path, clock):
    box = opened(tmp_path, clock)
    numbers = [box.put(bytes([i]) * 10) for i in range(5)]
    box.acknowledge(numbers[:2])
    box.close()
    damage = []
    counts = count_outbox([path for _, path in log_files(tmp_path / "outbox")], damage)
    assert counts == {"put": 5, "acknowledged": 2, "dropped": 0, "waiting": 3}
    assert damage == []
    assert main(["inspect", str(tmp_path / "outbox")]) == 0


def test_the_folder_of_all_outboxes_is_told_agent_by_agent(tmp_path, clock, capsys):
    for number, agent in enumerate(("cam1", "cam2")):
        box = Outbox(tmp_path / "outbox" / agent, clock=clock, min_free_bytes=0)
        for _ in range(number + 1):
            box.put(b"x")
        box.close()
    assert main(["inspect", str(tmp_path / "outbox")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(";")[0].removeprefix(f"{tmp_path}/") for line in lines] == [
        "outbox/cam1: outbox of a thin link, 1 message about alerts to be acknowledged",
        "outbox/cam2: outbox of a thin link, 2 messages about alerts to be acknowledged",
    ]
    assert main(["inspect", str(tmp_path / "outbox"), "--json"]) == 0
    told = of_schema("inspect", capsys.readouterr().out)
    assert [outbox["waiting"] for outbox in told["outboxes"]] == [1, 2]


def test_one_damaged_outbox_among_many_is_a_fault(tmp_path, clock):
    for agent in ("cam1", "cam2"):
        box = Outbox(tmp_path / "outbox" / agent, clock=clock, min_free_bytes=0)
        box.put(b"x" * 100)
        box.close()
    _, file = log_files(tmp_path / "outbox" / "cam1")[0]
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    assert main(["inspect", str(tmp_path / "outbox")]) == 4


def test_no_number_is_given_twice_across_restarts_even_when_all_was_acknowledged(tmp_path, clock):
    given = []
    for _ in range(12):
        outbox = opened(tmp_path, clock)
        new = [outbox.put(b"x") for _ in range(3)] + [outbox.hold(b"y")]
        given += new
        outbox.acknowledge(new)
    assert len(set(given)) == len(given)


def test_numbers_go_on_over_more_than_one_reserved_block(tmp_path, clock):
    outbox = opened(tmp_path, clock)
    numbers = [outbox.put(b"x") for _ in range(600)]
    assert [number.delivery for number in numbers] == list(range(600))
    assert opened(tmp_path, clock).put(b"x").delivery >= 600


def test_files_are_deleted_once_all_in_them_is_acknowledged(tmp_path, clock):
    outbox = opened(tmp_path, clock, max_bytes=160_000)
    for _ in range(2000):
        outbox.acknowledge([outbox.put(bytes(100))])
    assert len(log_files(tmp_path / "outbox")) <= 2
    assert total_bytes(tmp_path) < 30_000


def test_bytes_are_bounded_and_one_old_entry_does_not_pin_acknowledged_ones(tmp_path, clock):
    outbox = opened(tmp_path, clock, max_bytes=160_000)
    old = outbox.put(b"still waiting")
    for _ in range(3000):
        outbox.acknowledge([outbox.put(bytes(100))])
        assert total_bytes(tmp_path) <= 160_000 + 12_000
    assert list(outbox.pending()) == [(old, b"still waiting")]
    assert outbox.lost == 0
    assert list(opened(tmp_path, clock).pending()) == [(old, b"still waiting")]


def test_over_its_bytes_the_oldest_unsent_go_last_of_all_and_with_a_warning(tmp_path, clock, caplog):
    outbox = opened(tmp_path, clock, max_bytes=160_000)
    with caplog.at_level(logging.WARNING):
        numbers = [outbox.put(bytes(100)) for _ in range(2000)]
    kept = [number for number, _ in outbox.pending()]
    assert kept == numbers[-len(kept) :]
    assert len(kept) > 600
    assert outbox.counters["lost_bytes"] == 2000 - len(kept) == outbox.lost
    assert "unsent dropped" in caplog.text
    assert total_bytes(tmp_path) <= 160_000 + 12_000
    again = opened(tmp_path, clock, max_bytes=160_000)
    assert [number for number, _ in again.pending()] == kept
    assert again.lost == outbox.lost


def test_entries_over_their_age_go_with_a_warning(tmp_path, clock, caplog):
    outbox = opened(tmp_path, clock, max_age_s=86_400.0)
    outbox.put(b"old")
    clock.advance_ns(DAY_NS - 1)
    outbox.put(b"young")
    clock.advance_ns(2)
    outbox.settle()
    assert payloads(outbox) == [b"young"]
    assert outbox.counters["lost_age"] == 1
    assert "lost_age" in caplog.text


def test_age_counts_across_restarts_by_the_wall_clock(tmp_path, clock):
    opened(tmp_path, clock).put(b"old")
    outbox = opened(tmp_path, VirtualClock(0, WALL_NS + 2 * DAY_NS), max_age_s=86_400.0)
    outbox.settle()
    assert payloads(outbox) == []


@pytest.mark.parametrize("step_ns", [-10 * 365 * DAY_NS, 10 * 365 * DAY_NS])
def test_a_wall_clock_that_jumps_while_running_drops_nothing(tmp_path, clock, step_ns):
    outbox = opened(tmp_path, clock, max_age_s=86_400.0)
    outbox.put(b"x")
    clock.step_wall_ns(step_ns)
    outbox.settle()
    assert payloads(outbox) == [b"x"]


def test_what_was_put_before_the_clock_was_set_is_not_taken_for_old(tmp_path):
    opened(tmp_path, VirtualClock(0, 5_000_000_000)).put(b"x")
    outbox = opened(tmp_path, VirtualClock(0, WALL_NS), max_age_s=86_400.0)
    outbox.settle()
    assert payloads(outbox) == [b"x"]


def test_a_torn_end_costs_only_the_record_that_never_returned(tmp_path, clock):
    outbox = opened(tmp_path, clock)
    for k in range(3):
        outbox.put(b"%d" % k)
    ((_, path),) = log_files(tmp_path / "outbox")
    whole = path.read_bytes()
    for cut in range(1, 50):
        path.write_bytes(whole[:-cut])
        assert payloads(opened(tmp_path, clock))[:2] == [b"0", b"1"]


def test_a_damaged_record_costs_itself_and_is_counted(tmp_path, clock):
    outbox = opened(tmp_path, clock)
    for k in range(3):
        outbox.put(b"payload %d" % k)
    ((_, path),) = log_files(tmp_path / "outbox")
    path.write_bytes(path.read_bytes().replace(b"payload 1", b"paylOad 1"))
    again = opened(tmp_path, clock)
    assert payloads(again) == [b"payload 0", b"payload 2"]
    assert again.counters["damaged"] == 1


def test_foreign_files_in_the_folder_are_left_alone(tmp_path, clock):
    (tmp_path / "outbox").mkdir()
    foreign = tmp_path / "outbox" / "notes.txt"
    foreign.write_text("mine")
    outbox = opened(tmp_path, clock, max_bytes=65_536)
    for _ in range(2000):
        outbox.put(bytes(100))
    assert foreign.read_text() == "mine"


def test_held_payloads_are_bounded_and_the_oldest_go_with_a_warning(tmp_path, clock, caplog):
    outbox = opened(tmp_path, clock)
    for k in range(300):
        outbox.hold(b"%d" % k)
    assert payloads(outbox) == [b"%d" % k for k in range(44, 300)]
    assert outbox.counters["lost_memory"] == 44
    assert "lost_memory" in caplog.text


def test_held_payloads_are_stored_when_the_disk_can(tmp_path, clock):
    outbox = opened(tmp_path, clock)
    number = outbox.hold(b"held")
    assert payloads(opened(tmp_path / "other", clock)) == []
    assert outbox.settle() == 0
    assert list(opened(tmp_path, clock).pending()) == [(number, b"held")]


def test_too_little_free_space_refuses_puts_and_says_why(tmp_path, clock):
    outbox = opened(tmp_path, clock, min_free_bytes=10**17)
    with pytest.raises(LogError, match="disk_full"):
        outbox.put(b"x")
    assert outbox.counters["refused"] == 1
    assert outbox.state == "disk_full"


@pytest.mark.parametrize("size", [0, 200_000])
def test_impossible_payloads_are_refused(tmp_path, clock, size):
    with pytest.raises(LogError, match="payload"):
        opened(tmp_path, clock).put(bytes(size))


def test_an_impossible_bound_is_refused(tmp_path, clock):
    with pytest.raises(LogError, match="65536"):
        opened(tmp_path, clock, max_bytes=100)
