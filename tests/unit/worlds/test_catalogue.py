"""The synthetic worlds: repeatable from any frame, true to their own ground truth, quiet when asked to be."""

import functools

import numpy as np
import pytest

from stillwatch.base.errors import UsageError
from stillwatch.worlds.catalogue import WEATHERS, WORLDS, make_world
from stillwatch.worlds.transect import ANIMAL, HABITATS

SMALL = {"width": 160, "height": 120}
ALL = pytest.mark.parametrize("name", WORLDS)
FEW_SEEDS = [0, pytest.param(1, marks=pytest.mark.soak), pytest.param(2, marks=pytest.mark.soak)]


@functools.cache
def world(name, seed, **params):
    """Return a small world that tests share: what it shows depends on the number of the frame only."""
    return make_world(name, seed, **SMALL, **params)


@ALL
def test_frames_depend_on_seed_and_number_only(name):
    first, second = world(name, 3), make_world(name, 3, **SMALL)
    for i in (200, 0, 131, 200):
        first.render(7)
        assert np.array_equal(first.render(i), second.render(i))


@ALL
def test_other_seeds_give_other_worlds(name):
    assert not np.array_equal(world(name, 0).render(0), world(name, 3).render(0))


@ALL
@pytest.mark.parametrize("size", [(320, 240), (64, 64), (178, 100)])
def test_frames_have_the_size_and_type_asked_for(name, size):
    frame = make_world(name, 0, width=size[0], height=size[1]).render(5)
    assert frame.shape == (size[1], size[0], 3)
    assert frame.dtype == np.uint8


@ALL
@pytest.mark.parametrize("weather", WEATHERS)
def test_every_weather_can_be_rendered_with_shake(name, weather):
    clear = world(name, 0, noise=0).render(10)
    other = make_world(name, 0, noise=0, weather=weather, shake=1.5, **SMALL).render(10)
    assert not np.array_equal(clear, other)


@ALL
@pytest.mark.parametrize("seed", [*FEW_SEEDS, 3])
def test_events_are_inside_the_stream_and_in_order(name, seed):
    scene = world(name, seed)
    events = scene.truth()["events"]
    assert len(events) >= 3
    assert all(0 < event["start"] <= event["end"] < scene.n_frames for event in events)
    assert [event["start"] for event in events] == sorted(event["start"] for event in events)


@pytest.mark.parametrize("name", ["road", "room"])
def test_what_enters_a_fixed_scene_is_seen_from_the_first_to_the_last_frame_of_its_event(name):
    still = {"noise": 0, "drift": 0, "n_frames": 400}
    scene, empty = make_world(name, 2, **still), make_world(name, 2, quiet=True, **still)
    event = scene.truth()["events"][0]
    for i in (event["start"], event["end"]):
        difference = np.abs(scene.render(i).astype(int) - empty.render(i))
        assert (difference.max(axis=2) > 10).sum() >= 5
    for i in (event["start"] - 1, event["end"] + 1):
        if not scene.truth()["segments"]:
            assert (np.abs(scene.render(i).astype(int) - empty.render(i)).max(axis=2) > 10).sum() < 5


@pytest.mark.parametrize("seed", FEW_SEEDS)
def test_new_ground_enters_the_transect_at_the_top_within_its_event(seed):
    scene = make_world("transect", seed, noise=0, drift=0, **SMALL)
    quiet = make_world("transect", seed, noise=0, drift=0, quiet=True, **SMALL)
    for event in scene.truth()["events"]:
        middle = (event["start"] + event["end"]) // 2
        difference = np.abs(scene.render(middle).astype(int) - quiet.render(middle)).max(axis=2)
        assert difference.max() > 25


def test_new_ground_is_an_event_until_it_fills_the_view():
    events = world("transect", 0).truth()["events"]
    grounds = [event for event in events if event["what"].split()[0] in ("gravel", "shell_hash", "cobble")]
    speed = 2  # pixels a frame at 120 rows
    assert [event["end"] - event["start"] + 1 for event in grounds] == [120 // speed] * 3


@ALL
def test_a_quiet_scene_has_no_events(name):
    assert world(name, 0, quiet=True, n_frames=5000).truth()["events"] == []


def test_a_long_transect_shows_nothing_for_the_first_time_after_every_species_was_seen():
    events = world("transect", 0, n_frames=20_000).truth()["events"]
    whats = [event["what"] for event in events]
    assert len(whats) == len(set(whats)) == 7  # three habitats besides sand, four animals


@ALL
def test_a_frame_far_into_a_long_stream_can_be_rendered(name):
    assert world(name, 0, n_frames=20_000).render(19_999).any()


def test_parameters_may_come_as_text_from_a_uri():
    scene = make_world("road", "4", width="160", height="120", quiet="true", noise="0", weather="rain")
    assert (scene.seed, scene.width, scene.quiet, scene.weather) == (4, 160, True, "rain")


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("moon", {}, "no such world"),
        ("road", {"wether": "rain"}, "unknown parameter 'wether'"),
        ("road", {"weather": "hail"}, "not one of clear"),
        ("road", {"noise": "loud"}, "is not a number"),
        ("road", {"noise": float("nan")}, "outside"),
        ("room", {"width": 10}, "width 10 is outside"),
        ("room", {"quiet": "perhaps"}, "is not true"),
    ],
)
def test_wrong_parameters_are_named_in_one_line(name, params, message):
    with pytest.raises(UsageError, match=message) as caught:
        make_world(name, **params)
    assert "\n" not in str(caught.value)


def test_frames_outside_the_stream_are_refused():
    with pytest.raises(IndexError, match="outside"):
        make_world("road", n_frames=10).render(10)


def test_the_ground_of_a_transect_is_what_its_truth_says_and_animals_are_none():
    scene = world("transect", 0)
    for segment in scene.truth()["segments"]:
        i = min(segment["start"] + 12, segment["end"])
        ground = scene.ground(i)
        assert ground.shape == (120, 160)
        if segment["kind"] == "substrate":  # it enters at the top
            assert (ground[:4] == HABITATS.index(segment["scene"])).mean() > 0.7
        else:
            assert (ground == ANIMAL).any()
    assert (scene.ground(0) == HABITATS.index("sand")).all()


def test_where_the_ground_of_a_transect_differs_from_sand_its_pictures_do():
    plain = {"noise": 0, "drift": 0}
    scene, sand = world("transect", 3, **plain), world("transect", 3, quiet=True, **plain)  # in another play of light
    for i in (175, 330, 520):
        differs = np.abs(scene.render(i).astype(int) - sand.render(i)).max(axis=2)
        elsewhere = scene.ground(i) != HABITATS.index("sand")
        assert 0.05 < elsewhere.mean() < 0.95
        assert differs[elsewhere].mean() > 2 * differs[~elsewhere].mean()
