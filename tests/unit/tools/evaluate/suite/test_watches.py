"""Long watches: quiet hours with a stranger now and then."""

import numpy as np
import pytest
from data_location import data_dir

from stillwatch.tools.evaluate.suite.cases import Case, cases_of, stream_of
from stillwatch.tools.evaluate.suite.quiet import RATE_HZ, QuietHours
from stillwatch.tools.evaluate.suite.watches import EVERY_S, FIRST_S, LongWatch


@pytest.fixture(scope="module")
def data():
    data_dir("caltech")
    data_dir("underwater")
    return data_dir("surveillance").parent


@pytest.fixture(scope="module")
def watch(data):
    return LongWatch(0, 8.0, data)


def test_strangers_come_every_few_minutes_once_all_weather_was_seen(watch):
    first = np.array([visit.first for visit in watch.visits]) / RATE_HZ
    assert first[0] == FIRST_S
    assert 0.5 * EVERY_S <= np.diff(first).min() <= np.diff(first).max() <= 1.5 * EVERY_S + 1.0
    assert abs(np.diff(first).mean() / EVERY_S - 1.0) < 0.15


def test_a_kind_comes_again_when_all_others_were_there(watch):
    kinds = [visit.kind for visit in watch.visits]
    assert len(kinds) > 45
    assert len(set(kinds[:45])) == 45


def test_events_are_the_frames_in_which_somebody_is_in_view(data):
    watch, quiet = LongWatch(1, 0.4, data), QuietHours(1, 0.4, data)
    spans = watch.truth().spans
    assert spans[0][0] == round(FIRST_S * RATE_HZ)
    middle = sum(spans[0]) // 2
    assert (watch.render(middle) != quiet.render(middle)).any()
    np.testing.assert_array_equal(watch.render(spans[0][0] - 1), quiet.render(spans[0][0] - 1))
    np.testing.assert_array_equal(watch.render(spans[0][1] + 1), quiet.render(spans[0][1] + 1))


def test_nobody_is_left_in_the_place_itself(watch):
    before = watch.scene(0).copy()
    watch.scene((watch.visits[0].first + watch.visits[0].last) // 2)
    np.testing.assert_array_equal(watch.scene(0), before)


def test_a_visit_that_the_hours_cut_off_ends_with_them(data):
    hours = (FIRST_S + 2.0) / 3600.0
    assert LongWatch(0, hours, data).truth().spans[-1][1] == round((FIRST_S + 2.0) * RATE_HZ) - 1


def test_long_watches_share_the_hours_as_quiet_ones_do(data):
    cases = cases_of(data, ("quiet", "long"), range(5, 6), 0, 0, 1, quiet_hours=1.5)
    assert [case.name for case in cases] == [f"{kind} {seed}" for kind in ("quiet", "long") for seed in (5, 6, 7)]
    assert all(case.hours == 0.5 for case in cases)
    assert len(stream_of(Case("long", "", seed=5, hours=0.5), data).truth.spans) >= 1
