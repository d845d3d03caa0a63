"""Where a frame's time goes."""

from stillwatch.base import Laps, VirtualClock


def test_each_stage_gets_the_time_since_the_one_before_and_frames_add_up():
    clock, seconds = VirtualClock(), {}
    for gate_ns in (2, 3):
        passed = Laps(seconds, clock)
        clock.advance_ns(gate_ns * 10**9)
        passed.stage("gate")
        clock.advance_ns(10**9)
        passed.stage("features")
    assert seconds == {"gate": 5.0, "features": 2.0}
