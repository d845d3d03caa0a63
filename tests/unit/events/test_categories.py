"""Components as things: what became known after an event, what came back, what is gone."""

from types import SimpleNamespace

import numpy as np
import pytest

from stillwatch.epochs.models import Models
from stillwatch.events.categories import CategoryLife
from stillwatch.events.rules import LASTING_EPOCHS, SETTLED_EPOCHS
from stillwatch.settings.config import EventsConfig

RATE = 5
GRID = (13, 9)


class Story:
    """Plays frames: which components are seen, under which model."""

    def __init__(self, view_stays=True, **settings):
        self.view_stays = view_stays
        self.life = CategoryLife(EventsConfig(**{"min_frames": 2, "vanish_s": 5.0} | settings))
        self.frame = self.epoch = 0
        self.ids = np.array([0, 1])
        self.happened = []

    def play(self, seconds, seen, in_event=False, every=15, was_named=True, share_like=None, unlike=True):
        for _ in range(round(seconds * RATE)):
            if self.frame % every == 0:
                self.epoch += 1
            labels = np.full(GRID, -1)
            for i in seen:  # each has a row of the picture to itself
                labels[i] = np.flatnonzero(self.ids == i)[0]
            models = Models({"patches": SimpleNamespace(ids=self.ids)}, epoch=self.epoch, activated_frame=0)
            t_ns = (self.frame + 1) * 1_000_000_000 // RATE
            judgement = SimpleNamespace(stands_out=np.broadcast_to(unlike, GRID).ravel())
            picture = {"labels": labels.ravel(), "patch_map": np.zeros(GRID), "judgement": judgement}
            score = SimpleNamespace(**picture, was_named=was_named, view_stays=self.view_stays)
            told = self.life.update(t_ns, score, models, in_event, share_like)
            self.happened += [(kind, component, round(self.frame / RATE, 1)) for kind, component in told]
            self.frame += 1
        return self

    def learn(self, component):
        self.ids = np.append(self.ids, component)
        return self


def settled(**settings):
    return Story(**settings).play(3.0 * SETTLED_EPOCHS + 10, [0, 1])


def test_an_ordinary_life_is_no_news():
    assert settled().play(300, [0, 1]).happened == []


def test_of_a_model_without_components_nothing_is_told():
    story = Story()
    story.ids = np.zeros(0, np.int64)
    assert story.play(60, []).happened == []


def test_a_component_learnt_from_an_event_is_told_once_when_it_lasts():
    story = settled().play(3, [0, 1], in_event=True).learn(5).play(60, [0, 1, 5])
    assert [(kind, component) for kind, component, _ in story.happened] == [("new_category", 5)]
    assert story.happened[0][2] >= 37.0 + 3.0 * (LASTING_EPOCHS - 2)


@pytest.mark.parametrize(("view_stays", "kinds"), [(True, []), (False, ["new_category"])])
def test_who_passed_in_an_event_and_was_learnt_stays_nowhere_but_where_the_camera_passes_him(view_stays, kinds):
    story = settled(view_stays=view_stays).play(3, [0, 1], in_event=True).learn(5)
    story.play(4, [0, 1, 5]).play(60, [0, 1])
    assert [kind for kind, _, _ in story.happened] == kinds


def test_who_came_went_and_came_to_stay_is_told_when_he_stays():
    story = settled().play(3, [0, 1], in_event=True).learn(5).play(4, [0, 1, 5]).play(40, [0, 1])
    assert story.happened == []
    told = story.play(90, [0, 1, 5]).happened
    assert [(kind, component) for kind, component, _ in told] == [("new_category", 5)]


@pytest.mark.parametrize(
    ("past", "recent", "is_told"),
    [(0.1, 0.9, True), (0.8, 0.9, False), (0.1, 0.3, False), (0.8, 0.3, False)],
    ids=["came and stays", "was always there", "passes", "sways"],
)
def test_what_came_is_told_where_its_places_look_as_lately_and_not_as_before(past, recent, is_told):
    asked = []

    def share_like(patches):
        asked.append(patches.tolist())
        return past, recent

    story = settled().play(3, [0, 1], in_event=True).learn(5).play(60, [0, 1, 5], share_like=share_like)
    assert [kind for kind, _, _ in story.happened] == ["new_category"] * is_told
    assert asked == [list(range(45, 54))]  # its own patches, those of row 5, once


def test_what_is_not_in_view_is_judged_when_it_is():
    story = settled().play(3, [0, 1], in_event=True).learn(5).play(4, [0, 1, 5])
    hidden = story.play(9, [0, 1, 5], share_like=lambda patches: (np.nan, np.nan))
    assert hidden.happened == []
    assert len(story.play(9, [0, 1, 5], share_like=lambda patches: (0.0, 1.0)).happened) == 1


def test_a_component_that_splits_off_without_an_event_is_no_news():
    assert settled().play(200, [0, 1]).learn(5).play(60, [0, 1, 5]).happened == []


def test_a_component_that_splits_off_long_after_an_event_is_no_news():
    story = settled().play(3, [0, 1], in_event=True).play(15, [0, 1]).learn(5).play(60, [0, 1, 5])
    assert story.happened == []


def test_a_rare_category_that_was_away_returns():
    story = settled().play(3, [0, 1], in_event=True).learn(5).play(20, [0, 1, 5]).play(900, [0, 1])
    before = len(story.happened)
    story.play(5, [0, 1, 5])
    assert [(kind, component) for kind, component, _ in story.happened[before:]] == [("returned", 5)]


@pytest.mark.parametrize(("past", "view_stays", "is_told"), [(0.1, True, True), (1.0, True, False), (1.0, False, True)])
def test_where_all_looks_as_always_a_patch_got_another_name_and_nobody_returned(past, view_stays, is_told):
    story = settled(view_stays=view_stays).play(3, [0, 1], in_event=True).learn(5).play(20, [0, 1, 5])
    story.play(900, [0, 1])
    before = len(story.happened)
    story.play(5, [0, 1, 5], share_like=lambda patches: (past, 1.0))
    assert [kind for kind, _, _ in story.happened[before:]] == ["returned"] * is_told


def test_where_nothing_stands_out_nobody_returned():
    for unlike, kinds in (([5], ["returned"]), ([0, 1], [])):
        story = settled().play(3, [0, 1], in_event=True).learn(5).play(20, [0, 1, 5]).play(900, [0, 1])
        before, out = len(story.happened), np.zeros(GRID, bool)
        out[unlike] = True
        story.play(5, [0, 1, 5], share_like=places_known, unlike=out)
        assert [kind for kind, _, _ in story.happened[before:]] == kinds


def test_a_name_that_came_back_without_anybody_does_not_make_the_next_return_old():
    story = settled().play(3, [0, 1], in_event=True).learn(5).play(20, [0, 1, 5]).play(900, [0, 1])
    story.play(5, [0, 1, 5], share_like=lambda patches: (1.0, 1.0)).play(300, [0, 1])
    before = len(story.happened)
    story.play(5, [0, 1, 5], share_like=lambda patches: (0.1, 0.3))
    assert [kind for kind, _, _ in story.happened[before:]] == ["returned"]


def returns_of(tell, absences):
    """Return after which of the absences, in seconds, a rare category's return is told."""
    story, told = settled(tell=tell).play(3, [0, 1], in_event=True).learn(5).play(20, [0, 1, 5]), []
    for seconds in absences:
        before = len(story.happened)
        story.play(seconds, [0, 1]).play(2, [0, 1, 5])
        told += [seconds] * any(kind == "returned" for kind, _, _ in story.happened[before:])
    return told


def test_what_comes_again_and_again_is_told_once_and_then_after_it_was_away_for_much_longer():
    assert returns_of("rare", [900, 901, 600, 902, 1500]) == [900, 1500]


def test_every_return_or_only_the_first_is_told_to_who_wants_that():
    assert returns_of("every", [900, 901, 600]) == [900, 901, 600]
    assert returns_of("first_of_kind", [900, 901, 1500]) == [900]


def test_nothing_returns_while_an_event_is_open():
    story = settled().play(3, [0, 1], in_event=True).learn(5).play(20, [0, 1, 5]).play(900, [0, 1])
    before = len(story.happened)
    story.play(5, [0, 1, 5], in_event=True).play(5, [0, 1, 5])
    assert story.happened[before:] == []


def test_what_is_missed_and_what_became_known_while_an_event_is_open_is_told_after_it():
    story = settled().play(120, [0, 1]).play(20, [0], in_event=True)
    assert story.happened == []
    assert [kind for kind, _, _ in story.play(3, [0]).happened] == ["vanished"]
    story = settled().play(3, [0, 1], in_event=True).learn(5).play(40, [0, 1, 5], in_event=True)
    assert story.happened == []
    assert [kind for kind, _, _ in story.play(3, [0, 1, 5]).happened] == ["new_category"]


def test_frames_whose_patches_were_not_named_tell_nothing_of_who_is_there():
    story = settled().play(120, [0, 1])
    models = Models({"patches": SimpleNamespace(ids=story.ids)}, epoch=story.epoch, activated_frame=0)
    t_ns = story.frame * 1_000_000_000 // RATE
    unnamed = SimpleNamespace(labels=None, was_named=True)
    later = [story.life.update(t_ns + k * 200_000_000, unnamed, models, False) for k in range(50)]
    assert later == [[]] * 50
    assert story.play(20, [0, 1]).happened == []


def test_what_is_often_seen_does_not_return():
    story = settled()
    for _ in range(30):
        story.play(10, [0, 1]).play(10, [0])
    assert [kind for kind, _, _ in story.happened] == []


def test_what_was_always_there_is_missed_once_after_a_while():
    story = settled().play(120, [0, 1]).play(60, [0])
    assert [(kind, component) for kind, component, _ in story.happened] == [("vanished", 1)]
    last_seen_s = 34 + 120 - 1 / RATE
    assert story.happened[0][2] >= last_seen_s + 5.0


def places_known(patches):
    return 0.1, 0.3


@pytest.mark.parametrize(
    ("unlike", "view_stays", "kinds"), [(0, True, []), (1, True, ["vanished"]), (0, False, ["vanished"])]
)
def test_where_no_place_is_unlike_itself_a_patch_got_another_name_and_nothing_is_gone(unlike, view_stays, kinds):
    story = settled(view_stays=view_stays).play(120, [0, 1])
    story.play(60, [0], share_like=places_known, unlike=bool(unlike))
    assert [kind for kind, _, _ in story.happened] == kinds


@pytest.mark.parametrize(("row", "kinds"), [(1, ["vanished"]), (3, []), (5, [])])
def test_a_gap_is_looked_for_where_it_was(row, kinds):
    unlike = np.zeros(GRID, bool)
    unlike[row] = True
    story = settled().play(120, [0, 1]).play(60, [0], share_like=places_known, unlike=unlike)
    assert [kind for kind, _, _ in story.happened] == kinds


def test_a_gap_is_looked_for_when_it_goes_an_absence_soon_looks_usual():
    story = settled().play(120, [0, 1]).play(3, [0], in_event=True, share_like=places_known)
    story.play(60, [0], share_like=places_known, unlike=False)
    assert [kind for kind, _, _ in story.happened] == ["vanished"]
    story = settled().play(120, [0, 1]).play(3, [0], share_like=places_known, unlike=False)
    assert story.play(60, [0], share_like=places_known).happened == []  # somebody stands before it, later


def test_a_name_that_went_without_a_gap_does_not_make_the_next_absence_old():
    story = settled().play(120, [0, 1]).play(60, [0], share_like=places_known, unlike=False).play(300, [0, 1])
    story.play(20, [0], share_like=places_known)
    assert [kind for kind, _, _ in story.happened] == ["vanished"]


def absences_of(tell, absences):
    """Return which of the absences, in seconds, of something that is always there are told."""
    story, told = settled(tell=tell).play(120, [0, 1]), []
    for seconds in absences:
        before = len(story.happened)
        story.play(seconds, [0]).play(300, [0, 1])
        told += [seconds] * any(kind == "vanished" for kind, _, _ in story.happened[before:])
    return told


def test_what_goes_again_and_again_is_missed_as_returns_are_told():
    assert absences_of("rare", [8, 9, 10, 20, 21]) == [8, 20]
    assert absences_of("every", [8, 9, 10]) == [8, 9, 10]
    assert absences_of("first_of_kind", [8, 9, 20]) == [8]


def test_what_was_learnt_of_an_event_is_told_once_however_often_it_comes_back():
    story = settled().play(3, [0, 1], in_event=True).learn(5)
    for _ in range(10):
        story.play(20, [0, 1, 5]).play(20, [0, 1])
    assert [kind for kind, _, _ in story.happened] == ["new_category"]


def test_an_absence_is_told_however_many_frames_it_takes_to_be_sure():
    story = settled(vanish_s=60.0).play(120, [0, 1])
    assert story.play(59, [0]).happened == []
    assert [kind for kind, _, _ in story.play(3, [0]).happened] == ["vanished"]


def test_a_component_that_the_model_merged_away_is_not_missed():
    story = settled().play(120, [0, 1])
    story.ids = np.array([0])
    assert story.play(60, [0]).happened == []


def test_in_weather_nothing_is_missed_nothing_returns_and_nothing_new_becomes_known():
    story = settled().play(120, [0, 1]).play(60, [0], was_named=False).play(30, [0, 1])
    assert story.happened == []
    story = settled().play(3, [0, 1], in_event=True).learn(5).play(20, [0, 1, 5]).play(900, [0, 1])
    before = len(story.happened)
    assert story.play(5, [0, 1, 5], was_named=False).happened[before:] == []
    story = settled().play(3, [0, 1], in_event=True).learn(5).play(60, [0, 1, 5], was_named=False).play(60, [0, 1, 5])
    assert story.happened == []


def test_time_that_went_by_in_weather_is_no_absence():
    story = settled(vanish_s=20.0).play(120, [0, 1]).play(10, [0]).play(300, [0], was_named=False).play(9, [0])
    assert story.happened == []
    assert [kind for kind, _, _ in story.play(3, [0]).happened] == ["vanished"]


def test_where_most_of_what_is_always_there_is_missing_the_picture_is_another_and_no_thing_went():
    story = Story()
    story.ids = np.arange(10)
    story.play(3.0 * SETTLED_EPOCHS + 130, range(10)).play(60, range(6))  # four of ten
    assert story.happened == []
    assert story.play(300, range(10)).happened == []
    assert [kind for kind, _, _ in story.play(60, range(7)).happened] == ["vanished"]  # three of ten


def test_nobody_returns_into_another_picture():
    story = Story()
    story.ids = np.arange(10)
    story.play(3.0 * SETTLED_EPOCHS + 10, range(10)).play(3, range(10), in_event=True).learn(12)
    story.play(20, [*range(10), 12]).play(900, range(10))
    before = len(story.happened)
    assert story.play(4, [0, 1, 2, 12]).happened[before:] == []


def test_a_restart_remembers():
    story = settled().play(120, [0, 1])
    resumed = CategoryLife(EventsConfig(min_frames=2, vanish_s=5.0))
    resumed.restore(story.life.state())
    story.life = resumed
    assert [kind for kind, _, _ in story.play(60, [0]).happened] == ["vanished"]
