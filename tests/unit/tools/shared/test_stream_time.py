"""How far into its stream a message is, for who heard of its first frame."""

from types import SimpleNamespace

from stillwatch.tools.shared import StreamTime


def message(run, frame, seconds):
    return SimpleNamespace(run=run, frame=frame, t_ns=round((100.0 + seconds) * 1e9))


def test_time_counts_from_the_first_frame_of_the_run():
    time = StreamTime()
    for frame in (-1, 0, 0, 40):
        time.hear(message("a", frame, max(frame, 0) / 10))
    assert time.of(message("a", 125, 12.5)) == 12.5


def test_who_came_late_and_a_run_that_began_anew_know_no_beginning():
    time = StreamTime()
    time.hear(message("a", 7, 0.7))
    assert time.of(message("a", 8, 0.8)) is None
    time.hear(message("a", 0, 0.0))
    time.hear(message("b", 3, 50.0))
    assert time.of(message("b", 4, 50.1)) is None
    time.hear(message("b", 0, 49.0))
    assert time.of(message("b", 4, 50.0)) == 1.0
