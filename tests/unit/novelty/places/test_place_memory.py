"""What a fixed camera remembers of each place: shares of what was seen, whatever the start was."""

import numpy as np
import pytest

from stillwatch.base import SnapshotError
from stillwatch.kernels import place_memory as kernels
from stillwatch.novelty.places.place_memory import PlaceMemory
from stillwatch.novelty.rules import FIXED_POINT, LIKE_SHARE, MOST_UNLIKE, RECENT_SHARE, SAMPLES

PLACES, DIMS, NS = 60, 16, 1_000_000_000
ALL = np.ones(PLACES, bool)


def scene(seed, spread=0.05):
    """Return what the places look like, and a function of one more look at them under the camera's noise."""
    rng = np.random.default_rng(seed)
    looks = rng.normal(size=(PLACES, DIMS)).astype(np.float32)
    return looks, lambda: looks + rng.normal(0.0, spread, (PLACES, DIMS)).astype(np.float32)


def memory() -> PlaceMemory:
    made = PlaceMemory(PLACES, DIMS, horizon_s=3600.0, usual_per_hour=144.0, seed=3)
    made.reset(PLACES)
    return made


def unlikeness(of: PlaceMemory, rows, valid=ALL) -> np.ndarray:
    out, news = np.zeros(PLACES, np.float32), np.zeros(PLACES, np.float32)
    of.unlikeness(rows, valid, out, news)
    assert (news <= out).all()
    return out


def news_of(of: PlaceMemory, rows) -> np.ndarray:
    out, news = np.zeros(PLACES, np.float32), np.zeros(PLACES, np.float32)
    of.unlikeness(rows, ALL, out, news)
    return news


def watch(of: PlaceMemory, frames, begin_s=0.0, every_s=0.25):
    for i, rows in enumerate(frames):
        of.learn(rows, ALL, round((begin_s + i * every_s) * NS))


def test_what_a_place_always_shows_is_usual_and_something_else_is_not():
    looks, look = scene(1)
    seen = memory()
    watch(seen, (look() for _ in range(200)))
    rows = look()
    rows[7] = looks[8]  # what stands elsewhere every day
    told = unlikeness(seen, rows)
    assert told[7] > 2.0
    assert np.delete(told, 7).max() < 0.7


def test_an_edge_of_one_grey_level_on_a_wall_that_never_changed_is_nothing():
    """A codec rounds noise away until a wall repeats itself exactly, then moves the edges between its levels."""
    wall = np.zeros((PLACES, DIMS), np.float32)
    seen = memory()
    watch(seen, (wall for _ in range(200)))
    edge, thing = wall.copy(), wall.copy()
    edge[:20, 0] = 0.005  # a descriptor's length, as rows of a flat patch have it from a step of one level of 256
    thing[:20, 0] = 0.05
    assert unlikeness(seen, edge).max() < 0.25
    assert unlikeness(seen, thing)[:20].min() > 2.0


def test_what_is_like_its_place_in_other_light_is_so_and_nothing_is_less_like_it():
    looks, look = scene(1)
    seen = memory()
    watch(seen, (look() for _ in range(200)))
    rows, relit = look(), look()
    rows[:20] += 0.8  # in other light
    relit[10:] = looks[::-1][10:]  # a guess that is wrong
    told, news, plain = np.zeros((3, PLACES), np.float32)
    seen.unlikeness(rows, ALL, told, news, relit)
    seen.unlikeness(rows, ALL, plain, np.zeros(PLACES, np.float32))
    assert told[:10].max() < 0.7 < 2.0 < plain[:20].min()
    assert (told <= plain).all()
    np.testing.assert_array_equal(told[10:], plain[10:])
    assert (news <= told).all()


def test_a_visitor_of_the_first_seconds_is_as_new_when_it_comes_again():
    looks, look = scene(2)
    visitor = -looks[5]
    seen = memory()
    frames = [look() for _ in range(160)]
    for rows in frames[:6]:  # a second and a half out of forty
        rows[5] = visitor
    watch(seen, frames)
    rows = look()
    rows[5] = visitor
    assert unlikeness(seen, rows)[5] > 2.0


def test_what_fills_a_place_for_a_fair_share_of_the_time_is_usual_there():
    looks, look = scene(3)
    seen = memory()
    frames = [look() for _ in range(400)]
    for i in range(0, 400, 4):
        frames[i][5] += 2.0
    watch(seen, frames)
    rows = look()
    rows[5] += 2.0
    assert unlikeness(seen, rows)[5] < 0.7


def sways(of: PlaceMemory, seconds, every, seed=11):
    """Watch place 5 come to look otherwise every so many seconds; return how far it is news each time, at its first."""
    _, look = scene(seed)
    told = []
    for i in range(round(seconds * 4)):
        rows, phase = look(), (i / 4) % every
        rows[5] += 1.0 * (phase < 0.5)
        if phase == 0.0:
            told.append(float(news_of(of, rows)[5]))
        of.learn(rows, ALL, i * NS // 4)
    return told


def test_what_comes_again_every_few_seconds_is_usual_however_small_its_share_of_the_time_is():
    told = sways(memory(), 240, 10.0)  # a twentieth of the time: below LIKE_SHARE
    assert min(told[5:10]) > 1.2
    assert max(told[10:]) < 0.7


def test_what_comes_again_every_half_minute_is_news_each_time():
    assert min(sways(memory(), 600, 30.0)[2:]) > 1.2


def test_no_return_makes_usual_where_every_visit_is_to_be_told():
    every = PlaceMemory(PLACES, DIMS, horizon_s=3600.0, usual_per_hour=np.inf, seed=3)
    every.reset(PLACES)
    assert max(sways(every, 240, 10.0)[10:]) > 1.2


def test_what_stands_still_for_some_seconds_is_news_no_longer():
    looks, look = scene(4)
    seen = memory()
    watch(seen, (look() for _ in range(200)))
    changed = [look() for _ in range(16)]
    for rows in changed:
        rows[9] = -looks[9]
    assert unlikeness(seen, changed[0])[9] > 2.0
    watch(seen, changed, begin_s=50.0)
    assert unlikeness(seen, changed[-1])[9] < 0.7


def test_a_place_that_varies_widely_may_and_one_that_never_does_may_not():
    rng = np.random.default_rng(5)
    looks, look = scene(5)
    seen = memory()
    frames = [look() for _ in range(300)]
    for rows in frames:
        rows[3] += rng.normal(0.0, 1.0, DIMS)
    watch(seen, frames)
    step = np.full(DIMS, 0.5, np.float32)
    rows = look()
    rows[3] += step
    rows[4] += step
    told = unlikeness(seen, rows)
    assert told[3] < 0.7
    assert told[4] > 1.5


def test_shares_of_all_and_of_the_last_seconds_in_which_places_looked_as_they_do():
    looks, look = scene(2)
    seen, here = memory(), np.arange(10, 20)
    assert np.isnan(seen.share_like(looks, here)).all()  # nothing is known yet
    watch(seen, (look() for _ in range(120)))
    other = looks.copy()
    other[here] = np.random.default_rng(5).normal(size=(10, DIMS))
    watch(seen, (other + look() - looks for _ in range(40)), begin_s=30.0)
    past, recent = seen.share_like(other, here)  # ten seconds of forty, the last of them
    assert past == pytest.approx(0.25, abs=0.12)
    assert recent == 1.0
    past, recent = seen.share_like(looks, here)
    assert past == pytest.approx(0.75, abs=0.12)
    assert recent == 0.0
    assert np.isnan(seen.share_like(other, here[:0])).all()


def test_what_the_whole_frame_shares_says_nothing():
    _, look = scene(6)
    seen = memory()
    watch(seen, (look() for _ in range(200)))
    assert unlikeness(seen, look() + np.float32(1.0)).mean() < 0.5


def test_masked_places_say_nothing_and_no_patch_says_more_than_the_most():
    looks, look = scene(7)
    seen = memory()
    watch(seen, (look() for _ in range(100)))
    rows = look()
    rows[[1, 2]] = 1e6
    valid = ALL.copy()
    valid[1] = False
    told = unlikeness(seen, rows, valid)
    assert told[1] == 0.0
    assert told[2] == MOST_UNLIKE


@pytest.mark.parametrize("lifted", [0.0, 0.4, 2.0])
def test_a_search_that_stops_early_says_what_a_full_one_does(lifted):
    looks, look = scene(10, spread=0.2)
    seen = memory()
    frames = [look() for _ in range(200)]
    for rows in frames[::9]:
        rows[20:40] = looks[:20]
    watch(seen, frames)
    rows = look() + np.float32(lifted)  # what most places share is taken off
    rows[10:30] = looks[20:40]
    np.testing.assert_array_equal(unlikeness(seen, rows), slow_unlikeness(seen, rows))


def slow_unlikeness(of: PlaceMemory, rows) -> np.ndarray:
    """Return what `unlikeness` must say, by all samples of all places."""
    state, exact = of.state(), np.full(PLACES, -1.0, np.float32)
    rows = np.clip(np.rint(rows * FIXED_POINT), -32767, 32767).astype(np.int16)
    distance, best = np.full(PLACES, np.inf, np.float32), np.zeros(SAMPLES, np.float32)
    for name, share in (("past", LIKE_SHARE), ("recent", RECENT_SHARE)):
        samples = np.ascontiguousarray(state[name])
        n = samples.shape[1]
        nothing_likely = np.full((PLACES, SAMPLES), -1, np.int8)
        kernels.nearest_samples(rows, samples, n, int(share * n), exact, nothing_likely, best, distance)
    told = np.log(np.maximum(distance / state["unit"], np.float32(1e-3)))
    told -= max(np.sort(told)[(PLACES - 1) // 2], np.float32(0.0))
    return np.clip(told, 0.0, MOST_UNLIKE)


def test_nothing_is_said_before_there_are_samples():
    _, look = scene(8)
    seen = memory()
    watch(seen, [look()])
    assert not seen.ready
    assert not unlikeness(seen, look() + np.float32(5.0)).any()


def test_samples_are_spread_over_all_that_was_watched():
    seen = memory()
    for i in range(4000):  # twenty minutes; each frame is told by its value
        seen.learn(np.full((PLACES, DIMS), i / 1024, np.float32), ALL, i * 300_000_000)
    kept = seen.state()["past"][0, :, 0] * (1024 / FIXED_POINT)
    assert len(kept) == SAMPLES
    assert kept.mean() == pytest.approx(2000, abs=4 * 4000 / np.sqrt(12 * SAMPLES))


def test_bytes_do_not_grow_and_a_restored_memory_goes_on_with_the_same_bits():
    _, look = scene(9)
    frames = [look() for _ in range(120)]
    whole, half, resumed = memory(), memory(), memory()
    before = whole.memory_bytes()
    watch(whole, frames)
    watch(half, frames[:70])
    resumed.restore(half.state())
    watch(resumed, frames[70:], begin_s=70 * 0.25)
    rows = look()
    np.testing.assert_array_equal(unlikeness(whole, rows), unlikeness(resumed, rows))
    assert whole.memory_bytes() == before


def test_a_memory_of_more_places_than_there_is_room_for_is_refused():
    large = PlaceMemory(2 * PLACES, DIMS, horizon_s=3600.0, usual_per_hour=144.0, seed=3)
    large.reset(2 * PLACES)
    with pytest.raises(SnapshotError, match=f"{2 * PLACES} places, there is room for {PLACES}"):
        memory().restore(large.state())
