"""The bench of the whole pipeline: one short row measured for real, and its arithmetic."""

import pytest

from stillwatch.tools.bench.pipeline import Stopwatch, measured, memory_slope, write_clip


def test_memory_slope_is_of_the_later_half_in_mb_per_100_000_frames():
    rising = [(i, 100_000_000 + (i > 500) * (i - 500) * 1000) for i in range(0, 1000, 10)]
    assert memory_slope(rising) == pytest.approx(100.0, rel=0.01)
    assert memory_slope([(0, 5), (1, 5)]) == 0.0


def test_a_stopwatch_adds_up_by_stage_and_passes_results_on():
    class Stage:
        def work(self, value):
            return value + 1

    stage, watch = Stage(), Stopwatch()
    watch.watch(stage, "work", "working")
    assert [stage.work(i) for i in range(3)] == [1, 2, 3]
    assert set(watch.seconds) == {"working"}
    assert watch.seconds["working"] >= 0.0


def test_a_stage_that_calls_itself_is_counted_once_by_a_clock_of_its_own():
    ticks = iter(range(100))

    class Stage:
        def work(self):
            return self.inner()

        def inner(self):
            return next(ticks)  # a second goes by

    stage, watch = Stage(), Stopwatch(lambda: float(next(ticks)))
    watch.watch(stage, "work", "working")
    watch.watch(stage, "inner", "working")
    stage.work()
    stage.inner()
    assert watch.seconds["working"] == 4.0


@pytest.mark.slow
def test_a_short_row_has_the_bound_names(tmp_path):
    write_clip(tmp_path / "road.mp4", 160, 120)
    row = measured(f"{tmp_path / 'road.mp4'}?loop=2", 160, 120, "1", 40)
    names = {"size", "cores", "fps", "p50_ms", "p99_ms", "stages", "rss_mb", "rss_slope_mb_per_1e5"}
    assert names <= set(row)
    assert row["size"] == "160x120"
    assert row["fps"] > 0
    assert {"features", "novelty", "gate", "events", "publishing", "learning (worker)"} <= set(row["stages"])
    assert {"learning", "words", "looks", "sampling and crops"} <= set(row["topics_cpu_ms"])
    assert row["topics_cpu_ms_per_frame"] == pytest.approx(sum(row["topics_cpu_ms"].values()), abs=0.01)
    assert 0.0 < row["topics_cpu_ms_per_frame"] < row["cpu_ms_per_frame"]
