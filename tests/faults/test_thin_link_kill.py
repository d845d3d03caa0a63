"""Either side of a thin link is killed at random: every alert that was stored arrives, exactly once."""

from collections import Counter

import pytest
from thin_processes import AGENT, kill_at_random
from thin_records import read_received


def check_exactly_once(folder, kills, seed):
    deaths = kill_at_random(folder, kills, seed)
    returned = [tuple(map(int, line.split())) for line in (folder / "returned").read_text().split("\n") if " " in line]
    received = Counter(
        (alert.incarnation, alert.delivery) for agent, _, alert in read_received(folder / "received") if agent == AGENT
    )
    assert deaths == kills
    assert len(returned) > 10 * kills
    assert set(returned) - set(received) == set(), "stored but never arrived"
    assert [number for number, times in received.items() if times != 1] == [], "arrived twice"
    assert len(set(returned)) == len(returned), "a number was given twice"
    # An alert may be on the disk although its process was killed before the write returned: at most one a kill.
    assert len(set(received) - set(returned)) <= kills


@pytest.mark.slow
def test_every_stored_alert_arrives_exactly_once_across_kills(tmp_path):
    check_exactly_once(tmp_path, kills=10, seed=1)
