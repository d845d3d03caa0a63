"""How the contract suite plays stages that look at pictures or at words: one told value a frame."""

from types import SimpleNamespace

import numpy as np
from capture_sources import frame_of

from stillwatch.base import FIXED
from stillwatch.contents import ViewContents
from stillwatch.epochs import Models
from stillwatch.events import Certainty
from stillwatch.events.records import EventRecord
from stillwatch.events.repeats import Repeats
from stillwatch.features.rows import Rows
from stillwatch.novelty import Kind, Over, Precedents, Sighting
from stillwatch.novelty.regions import Region
from stillwatch.novelty.score import Score
from stillwatch.pipeline.best_view import BestView
from stillwatch.pipeline.kind_pictures import KindPictures
from stillwatch.tools.checks.corpus import HEIGHT, WIDTH, picture
from stillwatch.transport.wire import EventKind

RATE = 10
NS = 10**9
WORDS = (6, 8)


def t_of(i: int) -> int:
    return (i + 1) * NS // RATE


def play_view(view: BestView, frames: range) -> list:
    told = []
    for i in frames:
        rng = np.random.default_rng(i)
        x = 0.6 * float(rng.random())
        regions = [Region((x, 0.1, x + 0.3, 0.4), (x + 0.15, 0.25), 30.0 * float(rng.random()) + 1.0, 6, 0)]
        nothing = np.zeros((1, 1), np.float32)
        score = Score(1.0, 500.0, 0.0, nothing, np.zeros(0, np.int64), False, 1.0, regions, 7, t_of(i))
        frame = frame_of(rng.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8), i / RATE, sequence=i)
        record = EventRecord(0, EventKind.NOVEL, "update", 0.5, i // 25 * 25, 0, 1.0, 1.0, 500.0, 7, np.zeros(0))
        told.append(view.tell([record] if i % 5 == 4 else [], frame, score, i // 25 * 25))
    return told


class TwoTopics:
    """A topic model that tells words by the sign of their first value."""

    alpha = np.array([6.0, 2.0])
    corpus = SimpleNamespace(ids=np.array([4, 9]))

    def segment(self, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        labels = (words[:, 0] > 0.0).astype(np.int64)
        return self.alpha + np.bincount(labels, minlength=2), labels


def play_contents(contents: ViewContents, frames: range) -> list:
    """Every seventh frame is an event's, every eleventh shows nothing; the model changes now and then."""
    told, models = [], {}
    for i in frames:
        rng = np.random.default_rng(i)
        words = rng.normal(-1.0 + 2.0 * rng.random(), 1.0, (48, 4)).astype(np.float32)
        nothing, flags = np.zeros((0, 4), np.float32), np.zeros(0, bool)
        valid = np.full(48, i % 11 != 0)
        rows = Rows(nothing, nothing, flags, nothing, (0, 0), nothing, nothing, FIXED, True, words, valid, WORDS)
        model = models.setdefault(i // 40, Models({"topics": TwoTopics()}, epoch=i // 40, activated_frame=0))
        found = contents.look(rows, model)
        told.append((contents.is_due(t_of(i)), repr(found)))
        contents.settle(found, t_of(i), view=i // 100, in_event=i % 7 == 0)
    return told


def play_certainty(certainty: Certainty, frames: range) -> list:
    told = []
    for i in frames:
        before = Precedents(watched_s=max(i - 40, 0) * 10.0, visits=i // 8)
        was_judged = not 50 <= i < 110
        score = SimpleNamespace(t_ns=t_of(i), learning=i < 40, precedents=before, was_judged=was_judged)
        said = certainty.update(picture(i).mean(axis=2).astype(np.uint8), score, FIXED)
        told.append((said, certainty.busy, certainty.why))
    return told


def play_repeats(repeats: Repeats, frames: range) -> list:
    told = []
    nothing, flags = np.zeros((0, 4), np.float32), np.zeros(0, bool)
    for i in frames:
        rng = np.random.default_rng(i // 2 % 5)
        plain, novelty = rng.normal(0.0, 0.4, (48, 4)).astype(np.float32), rng.random((6, 8)).astype(np.float32)
        colours = rng.normal(0.0, 1.0, (48, 3)).astype(np.float32)
        rows = Rows(plain, plain, flags, nothing, (6, 8), colours, nothing, FIXED, True, nothing, flags, (0, 0))
        before = Precedents(watched_s=10.0 * i)
        score = Score(6.0, 1e3, 0.0, novelty, None, False, 1.0, [], -1, t_of(i), rows, None, before)
        repeats.see(score, t_of(i))
        told.append(repeats.is_usual(t_of(i), 1))
        if i % 3 == 2:
            repeats.end((1 + i % 4) * 10**8)
    return told


def play_kinds(pictures: KindPictures, frames: range) -> list:
    told = []
    for i in frames:
        rng = np.random.default_rng(i)
        frame = frame_of(rng.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8), i / RATE, sequence=i)
        seen = Sighting(np.arange(4), (1.0, 1.0, 3.0, 4.0), 5.0 + i % 4, whole=True, visit=i // 4)
        over = [Over(i // 4, i % 3, t_of(i - 3), t_of(i), 8.0)] if i % 4 == 3 else []
        pictures.update(frame, [seen], over, (5, 8))
        kinds = [Kind(k, i // 12 + 1, t_of(0), t_of(i)) for k in range(3)]
        told.append(repr(pictures.tell(kinds, at_once=True)) if i % 10 == 9 else "")
        pictures.forget()
    return told
