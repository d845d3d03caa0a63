"""What a moving camera remembers of patches: near is what was seen often enough to be kept, wherever it was."""

import numpy as np
import pytest

from stillwatch.base.errors import SnapshotError
from stillwatch.novelty.patch_memory import PatchMemory
from stillwatch.novelty.rules import KEPT_ROWS, KEPT_ROWS_PER_FRAME, KNOWN_AFTER_S, SAMPLE_S

PATCHES, DIMS, NS = 200, 18, 1_000_000_000


def ground(seed):
    return np.random.default_rng(seed).normal(0.0, 0.1, (PATCHES, DIMS)).astype(np.float32)


def memory(**settings) -> PatchMemory:
    return PatchMemory(DIMS, **({"horizon_s": 3600.0, "seed": 3} | settings))


def watch(of: PatchMemory, frames, begin_s=0.0, every_s=0.25):
    for i, rows in enumerate(frames):
        of.learn(rows, round((begin_s + i * every_s) * NS))


def near(of: PatchMemory, rows) -> np.ndarray:
    out = np.zeros(len(rows), np.float32)
    of.distances(rows, out)
    return out


def test_distance_is_to_the_nearest_row_that_is_kept():
    seen = memory()
    rows = ground(1)[:KEPT_ROWS_PER_FRAME]  # so few are all kept
    watch(seen, [rows, ground(5)], every_s=KNOWN_AFTER_S)
    wanted = np.linalg.norm(ground(2)[:, None] - rows[None], axis=2).min(axis=1)
    np.testing.assert_allclose(near(seen, ground(2)), wanted, rtol=1e-5)


def test_nothing_is_near_before_anything_is_kept():
    assert not near(memory(), ground(1)).any()
    assert not memory().knows


def test_what_is_in_view_is_not_near_to_itself_until_it_was_there_for_a_while():
    seen = memory()
    watch(seen, (ground(0) for _ in range(20)))
    thing = ground(0) + 1.0
    found = []
    for i in range(20):
        found.append(float(near(seen, thing).min()))
        watch(seen, [thing], begin_s=5.0 + 0.25 * i)
    known = round(KNOWN_AFTER_S / 0.25) + 1
    assert min(found[:known]) > 1.0
    assert max(found[known:]) < 0.1


def test_a_slow_camera_waits_for_no_longer():
    seen = memory()
    watch(seen, (ground(i) for i in range(4)), every_s=3.0)
    assert len(seen.state()["rows"]) == 3 * KEPT_ROWS_PER_FRAME


def test_frames_in_quick_succession_teach_no_more_than_a_few_a_second():
    seen = memory()
    watch(seen, (ground(i) for i in range(500)), every_s=0.01)
    waiting = len(seen.state()["waiting"])
    assert len(seen.state()["rows"]) + waiting * KEPT_ROWS_PER_FRAME == 25 * KEPT_ROWS_PER_FRAME
    assert waiting == round(KNOWN_AFTER_S / SAMPLE_S)


def test_frames_of_fewer_rows_are_kept_whole():
    seen = memory()
    watch(seen, [ground(1)[:3], ground(2)[:5], ground(3)[:0], ground(4)[:7]], every_s=KNOWN_AFTER_S)
    assert len(seen.state()["rows"]) == 8  # an empty frame is none
    np.testing.assert_allclose(near(seen, ground(2)[:5]), 0.0, atol=1e-6)


def test_the_sample_is_of_the_whole_past_in_fixed_room():
    seen = memory()
    before = seen.memory_bytes()
    for i in range(400):
        seen.learn(np.full((PATCHES, DIMS), i, np.float32), i * NS)
    ages = seen.state()["rows"][:, 0]
    assert len(ages) == KEPT_ROWS
    assert seen.memory_bytes() == before
    assert ages.mean() == pytest.approx(199.5, abs=10)


def test_beyond_the_horizon_old_rows_give_way():
    seen = memory(horizon_s=20.0)  # a hundred frames
    for i in range(2000):
        seen.learn(np.full((PATCHES, DIMS), i, np.float32), i * NS)
    assert seen.state()["rows"][:, 0].mean() > 1700


@pytest.mark.parametrize(
    "changed",
    [
        {"counts.kept": np.array(5, np.int64), "counts.seen": np.array(9, np.int64)},
        {"counts.waiting": np.array(1, np.int64)},
        {"sizes": np.array([KEPT_ROWS_PER_FRAME + 1, 1], np.int64)},
    ],
)
def test_a_state_that_does_not_fit_its_counts_is_refused(changed):
    seen = memory()
    watch(seen, [ground(1), ground(2)])
    with pytest.raises(SnapshotError, match="patch memory"):
        memory().restore(seen.state() | changed)


def test_what_waits_has_the_same_bits_after_a_restart_whatever_waited_there_before():
    seen, again = memory(), memory()
    watch(seen, (ground(i)[:60] for i in range(6)))
    again.restore(seen.state())
    for one in (seen, again):
        watch(one, (ground(i)[:30] for i in range(6)), begin_s=20.0)
    for name, array in seen.state().items():
        np.testing.assert_array_equal(array, again.state()[name], name)


def test_a_memory_of_a_few_seconds_takes_its_own_state():
    seen = memory(horizon_s=2.0)
    watch(seen, (ground(i) for i in range(60)))
    memory(horizon_s=2.0).restore(seen.state())
