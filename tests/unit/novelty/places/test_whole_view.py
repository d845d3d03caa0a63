"""A picture that is another nearly everywhere is weather, whatever stands out in it; people change few blocks."""

import math

import numpy as np
import pytest

from stillwatch.base import FIXED
from stillwatch.features import Rows
from stillwatch.novelty.places.whole_view import WholeView
from stillwatch.novelty.rules import VIEW_APART_S, VIEW_LIKE_SHARE, VIEW_UNCHANGED_SHARE, VIEWS, VIEWS_S

NS, DIMS, HALFLIFE_S = 1_000_000_000, 6, 3600.0
GRID = (16, 24)
N = GRID[0] * GRID[1]
PLACES = np.random.default_rng(5).normal(0.0, 0.4, (N, DIMS)).astype(np.float32)
SNOW = np.linspace(0.2, 0.6, DIMS, dtype=np.float32)  # what it does to every row
EVERYWHERE = (slice(0, 16), slice(0, 24))


COLOURS = np.random.default_rng(6).normal(0.0, 0.3, (N, 3)).astype(np.float32)


def rows_of(t_s: float, patches=None, by=0.0, valid=None, light=(0.0, 0.0)) -> Rows:
    """Rows of a place under noise; those of `patches`, slices of the grid, are changed by `by`.

    light : logarithms of blue and of red over green that the camera's white balance adds, one for all or a place each
    """
    plain = PLACES + np.random.default_rng(round(t_s * 1000)).normal(0.0, 0.05, (N, DIMS)).astype(np.float32)
    if patches is not None:
        plain.reshape(*GRID, DIMS)[patches] += by
    valid, blank = np.ones(N, bool) if valid is None else valid, np.zeros((N, 3), np.float32)
    colours = COLOURS + np.random.default_rng(round(t_s * 999)).normal(0.0, 0.02, (N, 3)).astype(np.float32)
    colours[:, 1:] += light
    return Rows(
        patches=plain, plain=plain, valid=valid, centres=blank[:, :2], grid_shape=GRID, colours=colours,
        frame=blank[0], rule=FIXED, ready=True, words=blank, word_valid=valid, word_shape=GRID,
    )  # fmt: skip


def made() -> WholeView:
    return WholeView(DIMS, HALFLIFE_S, seed=0)


def watch(view: WholeView, seconds: float, begin_s=0.0, **shown) -> float:
    """Show it a place for some seconds, five frames each; return when that ends."""
    for i in range(round(seconds / VIEWS_S)):
        t_s = begin_s + i * VIEWS_S
        view.learn(rows_of(t_s, **shown), round(t_s * NS), follows=False)
    return begin_s + seconds


def weight(view: WholeView, t_s: float, **shown) -> float:
    return view.weights(rows_of(t_s, **shown), round(t_s * NS))[0]


def weight_of_names(view: WholeView, t_s: float, **shown) -> float:
    return view.weights(rows_of(t_s, **shown), round(t_s * NS))[1]


def test_before_anything_is_known_every_frame_is_judged():
    assert weight(made(), 0.0, patches=EVERYWHERE, by=5.0) == 1.0


def test_a_calm_frame_is_judged_and_one_that_is_another_everywhere_is_not():
    view = made()
    end = watch(view, 60)
    assert weight(view, end) == weight_of_names(view, end) == 1.0
    assert weight(view, end, patches=EVERYWHERE, by=SNOW) == 0.0
    assert weight_of_names(view, end, patches=EVERYWHERE, by=SNOW) == 0.0


@pytest.mark.parametrize("patches", [(slice(0, 16), slice(0, 12)), (slice(4, 10), slice(6, 12))])
@pytest.mark.parametrize("colour", [(0.0, 0.0), (-0.3, 0.5), (0.15, -0.25)])
def test_a_thing_that_fills_half_of_the_picture_is_judged_however_unlike_it_is(patches, colour):
    view, light = made(), np.zeros((*GRID, 2))
    light[patches] = colour
    end = watch(view, 60)
    assert weight(view, end, patches=patches, by=5.0, light=light.reshape(N, 2)) == 1.0


def test_who_came_into_a_judged_picture_is_judged_until_he_has_gone():
    view = made()
    end = watch(view, 60)
    for follows, judged in ((True, 1.0), (False, 0.0)):
        view.learn(rows_of(end), round(end * NS), follows=follows)
        assert weight(view, end, patches=EVERYWHERE, by=SNOW) == judged


def test_a_spell_is_not_usual_because_it_lasts_and_what_stays_is_in_the_end():
    view = made()
    begin = watch(view, 600)
    during = watch(view, 60, begin, patches=EVERYWHERE, by=SNOW)
    assert weight(view, during, patches=EVERYWHERE, by=SNOW) == 0.0
    later = watch(view, 600, during, patches=EVERYWHERE, by=SNOW)
    assert weight(view, later, patches=EVERYWHERE, by=SNOW) == 1.0


def test_weather_that_fills_a_quarter_of_the_time_is_usual_and_other_weather_is_not():
    view, t_s = made(), 0.0
    for _ in range(20):
        t_s = watch(view, 45, t_s)
        t_s = watch(view, 15, t_s, patches=EVERYWHERE, by=SNOW)
    t_s = watch(view, VIEW_APART_S, t_s)
    assert weight(view, t_s, patches=EVERYWHERE, by=SNOW) == 1.0
    assert weight(view, t_s, patches=EVERYWHERE, by=-SNOW) == 0.0


def test_a_white_balance_that_is_set_anew_leaves_everything_judged_and_colours_that_change_place_by_place_nothing():
    """Who came after such a step was not seen for as long as had been watched before it, at most two minutes."""
    view = made()
    end = watch(view, 60)
    patchwork = np.random.default_rng(7).choice([-0.5, 0.5], (4, 4, 2)).repeat(4, axis=0).repeat(6, axis=1)
    assert weight(view, end, light=(-0.13, 0.11)) == 1.0
    assert weight_of_names(view, end, light=(-0.13, 0.11)) == 0.0
    assert weight(view, end, light=(-0.13, 0.11), patches=EVERYWHERE, by=SNOW) == 0.0
    assert weight(view, end, light=patchwork.reshape(N, 2)) == 0.0


def test_names_are_looked_at_with_each_candidate_whatever_stands_out():
    view = made()
    end = watch(view, 60)
    assert view.named == 1.0
    end = watch(view, VIEWS_S, end, light=(-0.13, 0.11))
    assert view.named == 0.0
    watch(view, VIEWS_S, end)
    assert view.named == 1.0


def test_while_an_event_goes_on_names_are_believed_as_before_it():
    view = made()
    end = watch(view, VIEWS_S, watch(view, 60), light=(-0.13, 0.11))
    for i in range(5):
        view.learn(rows_of(end + i * VIEWS_S, light=(-0.13, 0.11)), round((end + i * VIEWS_S) * NS), follows=True)
        assert view.weights(rows_of(end, light=(-0.13, 0.11)), round(end * NS)) == (1.0, 0.0)


def test_a_frame_that_was_judged_teaches_the_same_as_one_that_was_not():
    judged, other = made(), made()
    for i in range(150):
        t_s, by = i * VIEWS_S, (0.0, SNOW)[i % 9 == 8]
        rows = rows_of(t_s, EVERYWHERE, by)
        judged.weights(rows_of(t_s, EVERYWHERE, -5.0), round(t_s * NS))  # another one, that is not learnt
        judged.weights(rows, round(t_s * NS))
        for view in (judged, other):
            view.learn(rows, round(t_s * NS), follows=i % 7 == 3)
        assert judged.weights(rows, round(t_s * NS)) == other.weights(rows, round(t_s * NS))
    theirs = other.state()
    for name, array in judged.state().items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)


def test_masked_blocks_have_no_part_in_what_all_share():
    view = made()
    valid = np.zeros(GRID, bool)
    valid[:, :6] = True
    end = watch(view, 60, valid=valid.ravel())
    assert weight(view, end, valid=valid.ravel(), light=(-0.13, 0.11)) == 1.0


def test_masked_blocks_say_nothing():
    view = made()
    valid = np.zeros(GRID, bool)
    valid[:, :12] = True
    end = watch(view, 60, valid=valid.ravel())
    half = (slice(0, 16), slice(0, 12))
    assert weight(view, end, valid=valid.ravel()) == 1.0
    assert weight(view, end, valid=valid.ravel(), patches=half, by=SNOW) == 0.0


def test_where_a_mask_is_taken_away_the_blocks_that_were_seen_decide():
    view = made()
    corner = np.zeros(GRID, bool)
    corner[:4, :12] = True
    end = watch(view, 60, valid=corner.ravel())
    assert weight(view, end) == 1.0
    assert weight(view, end, patches=EVERYWHERE, by=SNOW) == 0.0


def test_a_picture_that_is_masked_whole_is_judged_as_ever():
    view = made()
    end = watch(view, 10, valid=np.zeros(N, bool))
    assert weight(view, end, valid=np.zeros(N, bool)) == 1.0


def test_a_grid_of_three_rows_is_looked_at_in_fewer_blocks():
    view, grid = made(), (3, 5)
    plain = np.zeros((15, DIMS), np.float32)
    blank = np.zeros((15, 3), np.float32)

    def rows(by):
        return Rows(
            patches=plain + by, plain=plain + by, valid=np.ones(15, bool), centres=blank[:, :2], grid_shape=grid,
            colours=blank, frame=blank[0], rule=FIXED, ready=True, words=blank, word_valid=blank[:, 0] > 0,
            word_shape=grid,
        )  # fmt: skip

    for i in range(60):
        view.learn(rows(0.0), round(i * VIEWS_S * NS), follows=False)
    assert view.weights(rows(0.0), 13 * NS) == (1.0, 1.0)
    assert view.weights(rows(1.0), 13 * NS) == (0.0, 0.0)


def test_change_is_the_distance_that_its_definition_says():
    """Of all kept looks that are old enough, block by block, without any of the class's own arithmetic."""
    view, seconds = made(), 9.0
    n = round(seconds / VIEWS_S)
    assert n < VIEWS, "none is left to chance"
    watch(view, seconds)
    shown = {"patches": (slice(0, 16), slice(0, 20)), "by": 0.05, "light": (-0.05, 0.02)}

    def look(rows):
        values = np.hstack([rows.plain, rows.colours[:, 1:]]).astype(float)
        return values.reshape(4, 4, 4, 6, DIMS + 2).transpose(0, 2, 1, 3, 4).reshape(16, 24, DIMS + 2).mean(axis=1)

    def change(steps):
        far = [sorted(np.sqrt(((step / unit) ** 2).mean(axis=1)))[int(16 * VIEW_UNCHANGED_SHARE)] for step in steps]
        return sorted(far)[math.ceil(VIEW_LIKE_SHARE * len(steps)) - 1]

    kept = np.array([look(rows_of(i * VIEWS_S)) for i in range(n)])
    apart = np.sort(np.abs(kept - np.median(kept, axis=0)), axis=0)[int(0.3 * (n - 1))]
    unit = np.maximum(apart, 0.5 * np.median(apart))
    now = look(rows_of(seconds, **shown))
    steps = [k - now for i, k in enumerate(kept) if i * VIEWS_S <= seconds / 2]
    shared = [np.append(np.zeros(DIMS), np.sort(step[:, DIMS:], axis=0)[7]) for step in steps]  # the eighth of sixteen
    same_white = [step - all_share for step, all_share in zip(steps, shared, strict=True)]
    told = view.changes(rows_of(seconds, **shown), round(seconds * NS))
    assert told == pytest.approx((change(same_white), change(steps)), rel=1e-3)
    assert told[1] > 1.1 * told[0]


def test_memory_is_what_it_says_whatever_was_watched():
    view = made()
    before = view.memory_bytes()
    watch(view, 30)
    assert view.memory_bytes() == before
