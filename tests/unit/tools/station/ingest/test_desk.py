"""What lies on an agent's desk is bounded, and a flood of new alerts does not shut out an event that goes on."""

from stillwatch.tools.station.ingest.desk import Desk
from stillwatch.tools.station.store import LIVE, AlertHeard

SECOND_NS = 10**9
BEGAN_NS = 1_764_000_000 * SECOND_NS


def told(desk, event, phase, at_s):
    at_ns = BEGAN_NS + at_s * SECOND_NS
    return desk.take_alert(AlertHeard("cam1", LIVE, f"run:1:{event}", "1", event, phase, 0.5, *[at_ns] * 5))


def test_an_event_that_goes_on_is_told_of_through_hundreds_of_others_and_a_flood():
    desk = Desk("cam1", LIVE, 60.0)
    assert told(desk, 0, "new", 0)
    for second in range(1, 400):
        assert told(desk, second, "new", second)
        assert told(desk, 0, "update", second)
    flood = [told(desk, 1000 + i, "new", 400) for i in range(500)]
    assert not flood[-1]
    assert told(desk, 0, "update", 400)
    assert not told(desk, 5, "update", 400)  # told of last six minutes ago: as good as new


def test_what_is_over_is_not_remembered():
    desk = Desk("cam1", LIVE, 60.0)
    for event in range(3):
        assert told(desk, event, "new", 10 * event)
        assert told(desk, event, "end", 10 * event + 5)
    assert told(desk, 3, "new", 30)
    for _ in range(500):  # nothing new passes any more
        told(desk, 99, "new", 30)
    assert [told(desk, event, "update", 30) for event in range(4)] == [False, False, False, True]
