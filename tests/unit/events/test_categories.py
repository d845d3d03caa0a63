"""Components as things: what became known after an event, what came back, what is gone."""

from types import SimpleNamespace

import numpy as np

from stillwatch.epochs.models import Models
from stillwatch.events.categories import CategoryLife
from stillwatch.events.rules import LASTING_EPOCHS, SETTLED_EPOCHS
from stillwatch.settings.config import EventsConfig

RATE = 10


class Story:
    """Plays frames: which components are seen, under which model."""

    def __init__(self):
        self.life = CategoryLife(EventsConfig(min_frames=2, vanish_s=5.0))
        self.frame = self.epoch = 0
        self.ids = np.array([0, 1])
        self.happened = []

    def play(self, seconds, seen, in_event=False, every=30):
        for _ in range(round(seconds * RATE)):
            if self.frame % every == 0:
                self.epoch += 1
            labels = np.concatenate([np.full(9, int(np.flatnonzero(self.ids == i)[0])) for i in seen])
            models = Models({"patches": SimpleNamespace(ids=self.ids)}, epoch=self.epoch, activated_frame=0)
            t_ns = (self.frame + 1) * 1_000_000_000 // RATE
            told = self.life.update(t_ns, SimpleNamespace(labels=labels), models, in_event)
            self.happened += [(kind, component, round(self.frame / RATE, 1)) for kind, component in told]
            self.frame += 1
        return self

    def learn(self, component):
        self.ids = np.append(self.ids, component)
        return self


def settled():
    return Story().play(3.0 * SETTLED_EPOCHS + 10, [0, 1])


def test_an_ordinary_life_is_no_news():
    assert settled().play(300, [0, 1]).happened == []


def test_a_component_learnt_from_an_event_is_told_once_when_it_lasts():
    story = settled().play(3, [0, 1], in_event=True).learn(5).play(60, [0, 1, 5])
    assert [(kind, component) for kind, component, _ in story.happened] == [("new_category", 5)]
    assert story.happened[0][2] >= 37.0 + 3.0 * (LASTING_EPOCHS - 2)


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


def test_what_is_often_seen_does_not_return():
    story = settled()
    for _ in range(30):
        story.play(10, [0, 1]).play(10, [0])
    assert [kind for kind, _, _ in story.happened] == []


def test_what_was_always_there_is_missed_once_after_a_while():
    story = settled().play(120, [0, 1]).play(60, [0])
    assert [(kind, component) for kind, component, _ in story.happened] == [("vanished", 1)]
    assert story.happened[0][2] - (34 + 120) >= 4.9


def test_a_component_that_the_model_merged_away_is_not_missed():
    story = settled().play(120, [0, 1])
    story.ids = np.array([0])
    assert story.play(60, [0]).happened == []


def test_a_restart_remembers():
    story = settled().play(120, [0, 1])
    resumed = CategoryLife(EventsConfig(min_frames=2, vanish_s=5.0))
    resumed.restore(story.life.state())
    story.life = resumed
    assert [kind for kind, _, _ in story.play(60, [0]).happened] == ["vanished"]
