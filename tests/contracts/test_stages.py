"""What every stage with state promises: it goes on with the same bits, and a refused state changes nothing.

A stage is a row of STAGES: how a fresh one is made, and how one is played for some frames. All tests run over all rows.
"""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from capture_sources import frame_of
from place_players import (
    DIMS,
    PLACES,
    noise_rows,
    places,
    play_coherence,
    play_discriminants,
    play_habituation,
    play_level,
    play_light,
    play_places,
    play_traffic,
    play_whole_view,
    traffic,
)  # fmt: skip
from stage_players import NS, RATE, play_certainty, play_contents, play_kinds, play_repeats, play_view, t_of

from stillwatch.base import FIXED, CameraRule, SnapshotError, State, VirtualClock, state_hash
from stillwatch.contents import ViewContents
from stillwatch.epochs import Models
from stillwatch.events.categories import CategoryLife
from stillwatch.events.certainty import Certainty
from stillwatch.events.life import EventLife, TokenBucket
from stillwatch.events.repeats import Repeats
from stillwatch.features.extractor import FeatureExtractor
from stillwatch.gate.gate import Gate
from stillwatch.gate.global_change import GlobalChange
from stillwatch.gate.measures import measure
from stillwatch.novelty.calibration import RarityCalibration, RunningSpread
from stillwatch.novelty.motion import CameraMotion
from stillwatch.novelty.patch_memory import PatchMemory
from stillwatch.novelty.places.coherence import Coherence
from stillwatch.novelty.places.level import FrameLevel
from stillwatch.novelty.places.light import UsualLight
from stillwatch.novelty.places.whole_view import WholeView
from stillwatch.novelty.regions import Region
from stillwatch.novelty.registry import STRATEGIES
from stillwatch.novelty.score import Novelty, Score
from stillwatch.novelty.strategy import Sizes
from stillwatch.novelty.usual_distances import UsualDistances
from stillwatch.novelty.viewpoint import Viewpoints
from stillwatch.novelty.visits.discriminants import Discriminants
from stillwatch.novelty.visits.habituation import Habituation
from stillwatch.pipeline.best_view import BestView
from stillwatch.pipeline.kind_pictures import KindPictures
from stillwatch.pipeline.pipeline import Pipeline
from stillwatch.settings.config import Config, EncoderConfig, EventsConfig, ExemplarsConfig, GateConfig, SourceConfig
from stillwatch.settings.reader import load_config
from stillwatch.tools.checks.corpus import HEIGHT, WIDTH, picture
from stillwatch.worlds.catalogue import make_world

# -- how each stage is made and played ------------------------------------------------------------------------


def play_gate(gate: Gate, frames: range) -> list:
    images = ((i, picture(i) * (i % 17 > 2)) for i in frames)  # dark in between, and now and then frozen
    return [repr(gate.judge(frame_of(image, i / RATE, sequence=i), FIXED)) for i, image in images]


def play_global_change(change: GlobalChange, frames: range) -> list:
    measured = ((i, picture(i) // (1 + i // 25 % 2)) for i in frames)
    return [change.update(measure(image.mean(axis=2).astype(np.uint8), image), t_of(i), FIXED) for i, image in measured]


def features_of(warmup_frames: int) -> FeatureExtractor:
    source = SourceConfig(width=WIDTH, height=HEIGHT)
    return FeatureExtractor(Config(source=source, encoder=EncoderConfig(warmup_frames=warmup_frames)))


def play_features(extractor: FeatureExtractor, frames: range) -> list:
    told = []
    for i in frames:
        features = extractor.extract(frame_of(picture(i), i / RATE, sequence=i))
        extractor.observe(features)
        told.append((features.ready, features.patches.tobytes(), features.frame.tobytes()))
    return told


@functools.cache
def moving_world() -> Any:
    return make_world("transect", seed=5)


@functools.cache
def moving_view(i: int) -> np.ndarray:
    view = moving_world().render(i).mean(axis=2).astype(np.uint8)
    view.setflags(write=False)
    return view


def play_motion(motion: CameraMotion, frames: range) -> list:
    told = []
    for i in frames:
        motion.observe(moving_view(i), t_of(i))
        told.append(motion.rule)
    return told


@functools.cache
def bricks(view: int) -> np.ndarray:
    wall = np.random.default_rng(view).integers(40, 220, (12, 10)).astype(np.uint8)
    return np.ascontiguousarray(np.kron(wall, np.ones((10, 16), np.uint8)))


def play_viewpoint(camera: Viewpoints, frames: range) -> list:
    """The camera is pushed aside now and then; two seconds a frame."""
    return [camera.observe(np.roll(bricks(i // 60), 12 * (i // 8 % 2), axis=1), i * 2 * NS, FIXED) for i in frames]


class OneNormal:
    """A model of one component: a normal around zero."""

    ids = np.array([41])
    n_components = 1

    def label_samples(self, x: np.ndarray, label: np.ndarray) -> None:
        label[:] = 0


def play_patches(memory: PatchMemory, frames: range) -> list:
    told = []
    for i in frames:
        rows = np.random.default_rng(i).normal(size=(PLACES, DIMS)).astype(np.float32)
        near = np.zeros(PLACES, np.float32)
        memory.distances(rows, near)
        memory.learn(rows, t_of(i))
        told.append(near.tobytes())
    return told


def play_distances(usual: UsualDistances, frames: range) -> list:
    told = []
    for i in frames:
        near = np.random.default_rng(i).gamma(2.0, size=(5, 7)).astype(np.float32)
        out = np.zeros((5, 7), np.float32)
        usual.deviations(near, out)
        usual.learn(near, near < 5.0)
        told.append(out.tobytes())
    return told


def play_numbers(stage: RarityCalibration | RunningSpread, frames: range) -> list:
    told = []
    for i in frames:
        value = float(np.random.default_rng(i).normal() + 5 * (i % 13 > 10))
        told.append(stage.rarity(value) if isinstance(stage, RarityCalibration) else stage.standardise(value))
        stage.learn(value, t_of(i))
    return told


def novelty() -> Novelty:
    return Novelty(Config(), Sizes(capacity_patches=PLACES, n_patch_dims=DIMS - 2, n_row_dims=DIMS))


def player_of_novelty(rule: CameraRule) -> Callable[[Novelty, range], list]:
    def play(novelty: Novelty, frames: range) -> list:
        told = []
        for i in frames:
            models = Models({"patches": OneNormal()}, epoch=i // 20, activated_frame=0) if i >= 5 else None
            score = novelty.score(
                frame_of(np.zeros((48, 64, 3)), t_of(i) / NS, sequence=i), noise_rows(i, rule), models
            )
            told.append((score.value, score.rarity, score.patch_map.tobytes(), score.progress))
            novelty.settle(score, in_event=i % 11 == 0)
        return told

    return play


def play_tokens(bucket: TokenBucket, frames: range) -> list:
    told = []
    for i in frames:
        bucket.refill(t_of(60 * i))
        told.append(bucket.take())
    return told


def play_categories(life: CategoryLife, frames: range) -> list:
    told = []
    for i in frames:
        ids = np.array([0, 1, *range(5, 5 + i // 200)])
        seen = [k for k in range(len(ids)) if (i + k) % (3 + k) == 0 or k == 0]
        picture = {"labels": np.repeat(seen, 6), "patch_map": np.zeros((len(seen), 6))}
        judgement = SimpleNamespace(stands_out=np.arange(6 * len(seen)) % 5 < i // 50 % 3)
        score = SimpleNamespace(**picture, judgement=judgement, was_named=i % 90 < 70, view_stays=True)
        models = Models({"patches": SimpleNamespace(ids=ids)}, epoch=i // 20, activated_frame=0)
        told.append(life.update(t_of(i), score, models, i % 200 > 180, lambda patches: (0.1, 0.9)))
    return told


EVENTS = EventsConfig(
    raise_rarity=100.0, clear_rarity=10.0, min_frames=3, gap_s=0.5, cooldown_s=2.0, update_s=1.0, burst=2,
    alerts_per_hour=60.0,
)  # fmt: skip


def play_events(life: EventLife, frames: range) -> list:
    told = []
    for i in frames:
        rng = np.random.default_rng(i // 5)
        rarity = float(np.exp(min(max(rng.normal(3.5, 2.5), 0.0), 12.0)))
        x = 0.6 * float(rng.random())
        box = (x, 0.1, x + 0.3, 0.4)
        regions = [Region(box, (x + 0.15, 0.25), 30.0, 6, 0)] if rng.random() < 0.8 else []
        labels, grid = np.repeat([0, i // 40 % 2], 6), np.zeros((2, 6), np.float32)
        score = Score(float(np.log(rarity)), rarity, 0.0, grid, labels, False, 1.0, regions, 7, t_of(i))
        models = Models({"patches": SimpleNamespace(ids=np.array([0, 1]))}, epoch=i // 20, activated_frame=0)
        frame = SimpleNamespace(sequence=i, t_ns=t_of(i))
        verdict = SimpleNamespace(scene_change=i % 97 == 96, known_scene=i % 2 == 0)
        told.append(repr(life.update(frame, score, verdict, models)))
    return [*told, dict(life.suppressed), life.open_id]


class Silent:
    """Takes messages and forgets them."""

    def send(self, message: object) -> None:
        pass


SMALL = ["source.width=160", "source.height=120", "patches.memory=600", "scenes.memory=60"]


@functools.cache
def small_world() -> Any:
    return make_world("transect", seed=1, n_frames=400, width=160, height=120)


def play_pipeline(pipeline: Pipeline, frames: range) -> list:
    told, world = [], small_world()
    for i in frames:
        colour = world.render(i)
        step = pipeline.step(frame_of(colour * (i % 20 != 19), i / RATE, sequence=i))
        told.append((step.verdict, None if step.score is None else (step.score.value, step.score.rarity)))
    return told


@dataclass(frozen=True)
class Case:
    """A stage: how it is made, how it is played, and how many frames make it a used one."""

    make: Callable[[], Any]
    play: Callable[[Any, range], list]
    n_frames: int = 60


STAGES = {
    "gate": Case(lambda: Gate(GateConfig(), height=HEIGHT, width=WIDTH), play_gate),
    "global change": Case(lambda: GlobalChange(2 * NS), play_global_change),
    "features, warming up": Case(lambda: features_of(8), play_features, 4),
    "features, frozen": Case(lambda: features_of(3), play_features, 4),
    "camera motion": Case(lambda: CameraMotion("auto"), play_motion, 6),
    "viewpoint": Case(Viewpoints, play_viewpoint, 30),
    "place memory": Case(places, play_places),
    "usual light": Case(lambda: UsualLight(PLACES, DIMS - 2, 60.0), play_light),
    "traffic": Case(traffic, play_traffic),
    "coherence": Case(lambda: Coherence(PLACES), play_coherence),
    "whole view": Case(lambda: WholeView(DIMS, 600.0, seed=4), play_whole_view, 120),
    "discriminants": Case(lambda: Discriminants(DIMS), play_discriminants),
    "habituation": Case(lambda: Habituation(DIMS, 600.0, seed=2), play_habituation, 640),
    "frame level": Case(lambda: FrameLevel(600.0), play_level),
    "usual distances": Case(lambda: UsualDistances(40), play_distances),
    "patch memory": Case(lambda: PatchMemory(DIMS, horizon_s=600.0, seed=3), play_patches),
    "calibration": Case(lambda: RarityCalibration(60.0), play_numbers),
    "spread": Case(lambda: RunningSpread(60.0, 0.7, 0.7), play_numbers),
    **{f"novelty, {name}": Case(novelty, player_of_novelty(replace(FIXED, novelty=name))) for name in STRATEGIES},
    "alert budget": Case(lambda: TokenBucket(3, 60.0), play_tokens, 10),
    "categories": Case(lambda: CategoryLife(EVENTS), play_categories, 1000),
    "events": Case(lambda: EventLife(EVENTS), play_events, 150),
    "certainty": Case(Certainty, play_certainty),
    "repeats": Case(lambda: Repeats(EVENTS), play_repeats),
    "pictures of kinds": Case(KindPictures, play_kinds),
    "view of the event": Case(lambda: BestView(ExemplarsConfig(), 8), play_view),
    "contents": Case(lambda: ViewContents(Config()), play_contents, 130),
    "pipeline": Case(lambda: Pipeline(load_config(None, SMALL), Silent(), VirtualClock()), play_pipeline, 41),
}
NAN_ALLOWED = ("peak.box", "position", "pipeline.nav.")  # where NaN says: not known

# (stage, name in its state, value): each a little outside of what the number can be.
OUTSIDE = [
    ("gate", "seen.usual_grey_fill", 1.5),
    ("gate", "seen.usual_sharpness", -0.5),
    ("gate", "seen.previous", 256.0),
    ("gate", "seen.picture", 99),
    ("global change", "previous_chroma", -1.0),
    ("camera motion", "dissent", 4),
    ("viewpoint", "seen.went", 4),
    ("viewpoint", "picture", 256.0),
    ("events", "camera.view", -2),
    ("novelty, places", "places.views.now", 2),
    ("frame level", "levels_s", -0.1),
    ("novelty, places", "places.visits.kinds.lately", -2),
    ("novelty, places", "places.visits.tracks.known", 1.1),
    ("place memory", "unit", -0.1),
    ("traffic", "watched.seconds", -1.0),
    ("usual distances", "variance", -0.1),
    ("calibration", "weights", -1.0),
    ("calibration", "run", 33),
    ("spread", "variance", -0.1),
    ("traffic", "watched.grid_rows", 1000),
    ("coherence", "last.places", 1000),
    ("whole view", "held", 49),
    ("coherence", "last.t_ns", -2),
    ("place memory", "counts.held", 1000),
    ("patch memory", "counts.kept", 4000),
    ("patch memory", "sizes", 65),
    ("novelty, patches", "patches.usual.view.middle", -0.1),
    ("novelty, places", "counts.scored", -1),
    ("alert budget", "left", -0.5),
    ("alert budget", "per_hour", 0.0),
    ("alert budget", "per_hour", 4000.0),
    ("categories", "presence", 1.01),
    ("events", "open.cause", 5),
    ("events", "open.last_box", 1.5),
    ("events", "peak.rarity", 0.5),
    ("events", "peak.precedents.alike", -2),
    ("certainty", "why", 4),
    ("pictures of kinds", "kind_size", 4097),
    ("certainty", "last", 256),
    ("view of the event", "numbers", -1.0),
    ("view of the event", "kept.boxes", 1.5),
    ("view of the event", "start", -2),
    ("events", "news.left", -1.0),
    ("contents", "looked.frames", -1),
    ("contents", "spread.variance", -0.1),
    ("pipeline", "pipeline.height", 121),
    ("pipeline", "events.open.history", -1.0),
]


@pytest.fixture(params=STAGES, scope="module")
def name(request) -> str:
    return request.param


@pytest.fixture
def used(name) -> Iterator[Any]:
    stage = STAGES[name].make()
    STAGES[name].play(stage, range(STAGES[name].n_frames))
    yield stage
    close(stage)


@pytest.fixture(scope="module")
def unchanged(name) -> Iterator[Any]:
    """A used stage for tests that hold that it stays, bit for bit, as it was: played once for all of them."""
    stage = STAGES[name].make()
    STAGES[name].play(stage, range(STAGES[name].n_frames))
    before = state_hash(stage.state())
    yield stage
    assert state_hash(stage.state()) == before
    close(stage)


def close(stage: Any) -> None:
    if isinstance(stage, Pipeline):
        stage.close()


def saved_names(state: State) -> list[str]:
    """Return the names that the suite tampers with; the learners' own have a suite of their own."""
    return [name for name in state if not name.startswith("learners.")]


def own_hash(stage: Any) -> str:
    """Return the hash of a stage's state without the learners': rooms they left in their buffer may hold old bytes."""
    state = stage.state()
    return state_hash({name: state[name] for name in saved_names(state)})


def assert_refused(stage: Any, damaged: dict[str, State]) -> None:
    """Every damaged state is refused, and the stage's state is the one before, bit for bit."""
    before = state_hash(stage.state())
    taken = []
    for what, state in damaged.items():
        try:
            stage.restore(state)
        except SnapshotError:
            continue
        taken.append(what)
    assert not taken, f"taken: {', '.join(taken)}"
    assert state_hash(stage.state()) == before, f"refused, and changed by one of: {', '.join(damaged)}"


def test_a_restored_stage_has_the_same_bits_and_the_same_future(name, used):
    case = STAGES[name]
    resumed = case.make()
    resumed.restore(used.state())
    assert state_hash(resumed.state()) == state_hash(used.state())
    later = range(case.n_frames, case.n_frames + max(case.n_frames, 30))
    assert case.play(resumed, later) == case.play(used, later)
    assert own_hash(resumed) == own_hash(used)
    close(resumed)


def test_a_state_is_a_copy(name, used):
    case = STAGES[name]
    saved = used.state()
    before = state_hash(saved)
    case.play(used, range(case.n_frames, case.n_frames + 5))
    assert state_hash(saved) == before


def test_memory_is_named_in_bytes(name, unchanged):
    held = dict(unchanged.memory()) if isinstance(unchanged, Pipeline) else unchanged.memory_bytes()
    assert held
    assert all(isinstance(what, str) and isinstance(n, int) and n > 0 for what, n in held.items())


def test_a_missing_name_is_refused(unchanged):
    state = unchanged.state()
    damaged = {name: {n: array for n, array in state.items() if n != name} for name in saved_names(state)}
    assert_refused(unchanged, damaged)


def test_an_extra_name_is_refused(unchanged):
    state = unchanged.state()
    first = saved_names(state)[0].rpartition(".")[0]
    assert_refused(unchanged, {name: state | {name: np.zeros(1)} for name in ("stranger", f"{first}.stranger")})


def test_a_wrong_shape_is_refused(unchanged):
    state = unchanged.state()
    damaged = {
        name: state | {name: np.zeros((*state[name].shape, 2), state[name].dtype)} for name in saved_names(state)
    }
    assert_refused(unchanged, damaged)


def test_a_wrong_dtype_is_refused(unchanged):
    state = unchanged.state()
    damaged = {name: state | {name: np.zeros(state[name].shape, np.complex64)} for name in saved_names(state)}
    assert_refused(unchanged, damaged)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(unchanged, value):
    state, damaged = unchanged.state(), {}
    for name in saved_names(state):
        allowed = np.isnan(value) and any(part in name for part in NAN_ALLOWED)
        if state[name].dtype.kind == "f" and state[name].size and not allowed:
            array = state[name].copy()
            array.reshape(-1)[-1] = value
            damaged[name] = state | {name: array}
    assert_refused(unchanged, damaged)


def test_counts_times_and_ids_below_what_they_can_be_are_refused(unchanged):
    """None is below -1, which says: there is none."""
    state, damaged = unchanged.state(), {}
    for name in saved_names(state):
        if state[name].dtype in (np.int32, np.int64) and state[name].size:  # 16 bits hold samples of patches
            damaged[name] = state | {name: np.full_like(state[name], -2)}
    assert_refused(unchanged, damaged)


@pytest.mark.parametrize(("stage", "saved", "value"), OUTSIDE, ids=lambda part: str(part))
def test_a_value_out_of_range_is_refused(stage, saved, value):
    case = STAGES[stage]
    used = case.make()
    case.play(used, range(min(case.n_frames, 20)))
    state = used.state()
    assert_refused(used, {saved: state | {saved: np.full_like(state[saved], value)}})
    close(used)
