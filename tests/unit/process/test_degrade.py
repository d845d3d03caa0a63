"""A slow board learns from fewer patches, step by step, and comes back only after a good minute."""

from stillwatch.process.degrade import LEAST_SHARE, SamplingLadder

SECOND = 1_000_000_000


def drive(ladder, looks):
    """Feed (frames, dropped) a look, 10 s apart; return the shares it asked for."""
    frames = dropped = 0
    asked = [ladder.step(0, 0, 0)]
    for i, (new_frames, new_dropped) in enumerate(looks, start=1):
        frames += new_frames
        dropped += new_dropped
        asked.append(ladder.step(i * 10 * SECOND, frames, dropped))
    return asked[1:]


def test_dropping_halves_the_share_again_and_again_down_to_a_floor():
    asked = drive(SamplingLadder(0.16), [(50, 50)] * 5)
    assert asked == [0.08, 0.04, LEAST_SHARE, None, None]


def test_a_few_drops_change_nothing():
    assert drive(SamplingLadder(0.25), [(100, 5)] * 20) == [None] * 20


def test_the_share_comes_back_after_six_good_looks_and_stops_at_the_configured_one():
    asked = drive(SamplingLadder(0.2), [(50, 50)] + [(100, 0)] * 14)
    assert asked == [0.1] + [None] * 5 + [0.2] + [None] * 8


def test_one_drop_starts_the_good_minute_anew():
    asked = drive(SamplingLadder(0.2), [(50, 50)] + [(100, 0)] * 5 + [(100, 1)] + [(100, 0)] * 5)
    assert asked == [0.1] + [None] * 11


def test_between_looks_nothing_is_asked():
    ladder = SamplingLadder(0.2)
    ladder.step(0, 0, 0)
    assert ladder.step(5 * SECOND, 10, 90) is None


def test_a_share_below_the_floor_is_left_alone():
    assert drive(SamplingLadder(0.01), [(10, 90)] * 3) == [None] * 3
