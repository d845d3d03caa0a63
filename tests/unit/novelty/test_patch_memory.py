"""What a moving camera remembers of patches: near is what was seen often enough to be kept, wherever it was."""

import numpy as np
import pytest

from stillwatch.base.errors import SnapshotError
from stillwatch.novelty.patch_memory import PatchMemory
from stillwatch.novelty.rules import KEPT_ROWS, KEPT_ROWS_PER_FRAME

PATCHES, DIMS, NS = 200, 18, 1_000_000_000


def ground(seed):
    return np.random.default_rng(seed).normal(0.0, 0.1, (PATCHES, DIMS)).astype(np.float32)


def memory(**settings) -> PatchMemory:
    return PatchMemory(DIMS, **({"horizon_s": 3600.0, "seed": 3} | settings))


def deviations(of: PatchMemory, rows) -> np.ndarray:
    near, out = np.zeros(len(rows), np.float32), np.zeros(len(rows), np.float32)
    of.distances(rows, near)
    of.deviations(near, out)
    return out


def watch(of: PatchMemory, frames, begin_s=0.0, every_s=0.25):
    for i, rows in enumerate(frames):
        near = np.zeros(len(rows), np.float32)
        of.distances(rows, near)
        of.learn(rows, near, round((begin_s + i * every_s) * NS))


def test_more_of_the_same_ground_is_usual_and_a_thing_is_not():
    seen = memory()
    watch(seen, (ground(i) for i in range(100)))
    rows = ground(999)
    rows[7] += 1.0
    told = deviations(seen, rows)
    assert told[7] > 10.0
    assert abs(float(np.median(np.delete(told, 7)))) < 1.0


def test_distance_is_to_the_nearest_row_that_is_kept():
    seen = memory()
    rows = ground(1)[:KEPT_ROWS_PER_FRAME]  # so few are all kept
    seen.learn(rows, None, 0)
    near = np.zeros(PATCHES, np.float32)
    seen.distances(ground(2), near)
    wanted = np.linalg.norm(ground(2)[:, None] - rows[None], axis=2).min(axis=1)
    np.testing.assert_allclose(near, wanted, rtol=1e-5)


def test_nothing_is_said_before_anything_was_seen():
    assert not deviations(memory(), ground(1)).any()


def test_frames_in_quick_succession_teach_no_more_than_a_few_a_second():
    seen = memory()
    watch(seen, (ground(i) for i in range(100)), every_s=0.01)
    assert len(seen.state()["rows"]) == 5 * KEPT_ROWS_PER_FRAME


def test_the_sample_is_of_the_whole_past_in_fixed_room():
    seen = memory()
    before = seen.memory_bytes()
    for i in range(400):
        seen.learn(np.full((PATCHES, DIMS), i, np.float32), None, i * NS)
    ages = seen.state()["rows"][:, 0]
    assert len(ages) == KEPT_ROWS
    assert seen.memory_bytes() == before
    assert ages.mean() == pytest.approx(199.5, abs=10)


def test_beyond_the_horizon_old_rows_give_way():
    seen = memory(horizon_s=20.0)  # a hundred frames
    for i in range(2000):
        seen.learn(np.full((PATCHES, DIMS), i, np.float32), None, i * NS)
    assert seen.state()["rows"][:, 0].mean() > 1700


def test_rows_that_do_not_fit_their_count_are_refused():
    state = memory().state()
    with pytest.raises(SnapshotError, match="rows"):
        memory().restore(state | {"counts.kept": np.array(5, np.int64), "counts.seen": np.array(9, np.int64)})
