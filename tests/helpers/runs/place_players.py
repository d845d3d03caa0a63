"""How the parts of a fixed camera's novelty are made and played for the contracts of stages."""

from types import SimpleNamespace

import numpy as np
from stage_players import t_of

from stillwatch.base import FIXED, CameraRule
from stillwatch.features.rows import Lighting, Rows
from stillwatch.novelty.places.coherence import Coherence
from stillwatch.novelty.places.level import FrameLevel
from stillwatch.novelty.places.light import UsualLight
from stillwatch.novelty.places.place_memory import PlaceMemory
from stillwatch.novelty.places.traffic import Traffic
from stillwatch.novelty.places.whole_view import WholeView
from stillwatch.novelty.visits.discriminants import Discriminants
from stillwatch.novelty.visits.habituation import Habituation
from stillwatch.novelty.visits.sightings import Sighting

PLACES, DIMS = 40, 6
GRID = (5, 8)


def places() -> PlaceMemory:
    memory = PlaceMemory(PLACES, DIMS, horizon_s=600.0, usual_per_hour=144.0, seed=1)
    memory.reset(PLACES)
    return memory


def play_places(memory: PlaceMemory, frames: range) -> list:
    told = []
    for i in frames:
        rows = np.random.default_rng(i).normal(size=(PLACES, DIMS)).astype(np.float32)
        out = np.zeros(PLACES, np.float32)
        memory.unlikeness(rows, np.ones(PLACES, bool), out, news := np.zeros(PLACES, np.float32))
        memory.learn(rows, np.ones(PLACES, bool), t_of(i))
        told += [out.tobytes(), news.tobytes()]
    return told


def traffic() -> Traffic:
    made = Traffic(PLACES, 600.0)
    made.reset(GRID)
    return made


def play_traffic(traffic: Traffic, frames: range) -> list:
    told = []
    for i in frames:
        out, there = np.zeros(PLACES, np.float32), np.random.default_rng(i).random(PLACES).astype(np.float32) * 2.0
        traffic.weights(out)
        traffic.learn(there, (i % 3 == 0) * 0.7, t_of(i))
        told.append((traffic.emptiness, out.tobytes()))
    return told


def play_coherence(coherence: Coherence, frames: range) -> list:
    told = []
    for i in frames:
        stands_out, out = np.random.default_rng(i).random(PLACES) < 0.3, np.zeros(PLACES, np.float32)
        coherence.weights(stands_out, GRID, t_of(i), out)
        coherence.learn(stands_out, t_of(i))
        told.append(out.tobytes())
    return told


def play_whole_view(view: WholeView, frames: range) -> list:
    """Five frames a second, weather in every fourth ten of them."""
    told = []
    for i in frames:
        rng = np.random.default_rng(i)
        plain = rng.normal(i // 10 % 4 == 3, 0.05, (PLACES, DIMS)).astype(np.float32)
        colours, valid = rng.normal(0.0, 0.05, (PLACES, 3)).astype(np.float32), rng.random(PLACES) < 0.9
        rows = SimpleNamespace(plain=plain, colours=colours, valid=valid, grid_shape=GRID)
        told.append((view.changes(rows, 2 * t_of(i)), view.weights(rows, 2 * t_of(i))))
        view.learn(rows, 2 * t_of(i), follows=i % 20 == 0)
    return told


def play_level(level: FrameLevel, frames: range) -> list:
    told = []
    for i in frames:
        value = float(np.random.default_rng(i).gamma(2.0, 3.0))
        told.append(level.standardise(value, 0.5, t_of(i)))
        level.learn(value, t_of(i), i % 7 == 0)
    return told


def play_discriminants(discriminants: Discriminants, frames: range) -> list:
    told = []
    for i in frames:
        rng = np.random.default_rng(i)
        discriminants.learn_visitors(rng.normal(0.0, 1.0, (9, DIMS)))
        discriminants.learn_place(rng.normal(0.0, 2.0, (9, DIMS)))
        discriminants.learn_itself(rng.normal(0.0, 0.1, (9, DIMS)))
        discriminants.find()
        told.append((discriminants.known, discriminants.along_axes(np.eye(DIMS)).tobytes()))
    return told


def play_habituation(habituation: Habituation, frames: range) -> list:
    """Four marks a frame, a frame each half second: it takes HABITUATED_S to tell anything."""
    told, patches = [], np.array([9, 10, 17, 18])
    for i in frames:
        out = np.zeros(PLACES, np.float32)
        rng = np.random.default_rng(i)
        plain, colours = (rng.normal(0.0, 0.05, (PLACES, n)).astype(np.float32) for n in (DIMS, 3))
        rows = SimpleNamespace(plain=plain, colours=colours, valid=np.ones(PLACES, bool), grid_shape=GRID)
        one = Sighting(patches, (1.0, 1.0, 3.0, 3.0), 5.0, visit=i // 20)
        seen = habituation.mark([one] if i % 5 else [], rows)
        habituation.familiar(seen, GRID, out)
        habituation.learn(seen, rows, i * 500_000_000)
        told.append(out.tobytes())
    return told


def noise_rows(i: int, rule: CameraRule) -> Rows:
    """Return rows of noise, as a maker of rows might have made them."""
    patches = np.random.default_rng(i).normal(size=(PLACES, DIMS)).astype(np.float32)
    y, x = (np.indices(GRID).reshape(2, -1) + 0.5) / np.array(GRID)[:, None]
    centres = np.stack([x, y], axis=1).astype(np.float32)
    plain = np.ascontiguousarray(patches[:, :-2])
    valid, colours, frame = np.ones(PLACES, bool), np.zeros((PLACES, 3), np.float32), np.zeros(4, np.float32)
    words = patches[::2, :4], valid[::2], (1, len(patches[::2]))
    light = np.random.default_rng([i, 1]).uniform(0.2, 2.0, (2, PLACES)).astype(np.float32)
    lighting = Lighting(light[0], 100.0 * light[1], plain[0], plain[1]) if rule.takes_out_brightness else None
    return Rows(patches, plain, valid, centres, GRID, colours, frame, rule, True, *words, lighting=lighting)


def play_light(light: UsualLight, frames: range) -> list:
    if frames.start == 0:
        light.reset(GRID)
    told = []
    for i in frames:
        rows = noise_rows(i, FIXED)
        relit = light.relit(rows)
        told.append(None if relit is None else relit.tobytes())
        light.learn(rows, t_of(i))
    return told
