"""Views that are rare as a whole are told once, after as many looks as an alert needs frames."""

from types import SimpleNamespace

from stillwatch.events.views import UnusualViews
from stillwatch.settings import EventsConfig

CONFIG = EventsConfig(raise_rarity=500.0, clear_rarity=100.0, min_frames=2)


def told(views, *rarities, in_event=False):
    return [views.update(SimpleNamespace(rarity=rarity), in_event=in_event) for rarity in rarities]


def test_a_rare_view_is_told_once_when_it_lasts():
    assert told(UnusualViews(CONFIG), 1.0, 600.0, 700.0, 900.0, 800.0) == [False, False, True, False, False]


def test_one_rare_look_is_not_told():
    assert told(UnusualViews(CONFIG), 600.0, 1.0, 600.0, 1.0) == [False] * 4


def test_the_next_is_told_after_a_usual_one_alone():
    assert told(UnusualViews(CONFIG), 600.0, 600.0, 200.0, 600.0, 600.0) == [False, True, False, False, False]
    assert told(UnusualViews(CONFIG), 600.0, 600.0, 50.0, 600.0, 600.0) == [False, True, False, False, True]


def test_while_an_event_is_open_it_waits():
    views = UnusualViews(CONFIG)
    assert told(views, 600.0, 600.0, in_event=True) == [False, False]
    assert told(views, 600.0) == [True]
