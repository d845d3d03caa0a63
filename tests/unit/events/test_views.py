"""Views that are rare as a whole are told once, after as many looks as an alert needs frames."""

from types import SimpleNamespace

import msgspec

from stillwatch.events.views import UnusualViews
from stillwatch.settings import EventsConfig

CONFIG = EventsConfig(raise_rarity=500.0, clear_rarity=100.0, min_frames=2)


def told(views, *rarities, in_event=False, topic=3, at_s=0, view_stays=True):
    looks = [SimpleNamespace(rarity=rarity, topic=topic) for rarity in rarities]
    times = [(at_s + k) * 1_000_000_000 for k in range(len(looks))]
    return [
        views.update(look, t_ns, in_event=in_event, view_stays=view_stays)
        for look, t_ns in zip(looks, times, strict=True)
    ]


def times_told(tell, at_s, view_stays=True):
    """Return at which of the times, in seconds, a view that is rare for the same topic is told."""
    views = UnusualViews(msgspec.structs.replace(CONFIG, tell=tell))
    return [t for t in at_s if any(told(views, 600.0, 600.0, 1.0, at_s=t, view_stays=view_stays))]


def test_a_view_that_is_rare_for_the_same_topic_is_told_as_returns_are():
    assert times_told("rare", [100, 1000, 1900, 2500, 4000]) == [100, 1000, 4000]
    assert times_told("first_of_kind", [100, 1000, 1900, 4000]) == [100, 1000]
    assert times_told("every", [100, 1000, 1900]) == [100, 1000, 1900]


def test_over_ground_that_a_camera_passes_each_is_told():
    assert times_told("rare", [100, 1000, 1900], view_stays=False) == [100, 1000, 1900]


def test_each_topic_is_news_of_its_own():
    views = UnusualViews(CONFIG)
    comes = [1, 2, 3, 1, 2, 3, 1, 2]
    news = [any(told(views, 600.0, 600.0, 1.0, topic=k, at_s=100 * i)) for i, k in enumerate(comes)]
    assert news == [True] * 6 + [False] * 2


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
