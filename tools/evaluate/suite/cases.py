"""Every case of the suite by group, and the stream of each: real clips, starts, transforms, made worlds, voyages.

Called by tools/evaluate/suite/runner.py and command.py. A case is a few words, so that it travels to another process;
its stream is made where it is watched.

Groups
------
real
    The four shared clips from frame 0, every frame.
start
    `CLIP@FRAME`: a clip from another frame to its end, every frame. Events that begin at least `SETTLE_S` after the
    start count; those before, and one in view at the start, are not judged. What habcam_transect shows for the first
    time is what it shows for the first time from that frame on.
    `CLIP@FRAME loop`: the clip from that frame, over and over, for `LOOP_S` at about `LOOP_HZ`. Every showing of an
    event that begins from `LEARN_S` on counts as one event; showings before that are not judged, so that telling one
    late costs nothing; any other alert is false, from the first frame on. AUC is of frames from `LEARN_S` on. One
    second after a seam is not judged. habcam_transect is not looped: its second lap shows nothing new.
transform
    `CLIP NAME`: a clip from frame 0 at about 10 Hz under one transform; the truth is the clip's.
made
    `world SEED`: a made world (worlds.py), from its first frame.
settled
    `settled SEED`: the made world of a seed for `SETTLED_FRAMES`; what comes before `SETTLED_S` is for learning alone.
    Worlds of a fixed camera.
knocked
    `knocked SEED`: the same worlds; from `KNOCKED_S` to `RIGHTED_S` the camera is pushed aside by a tenth of its view.
    What comes before, and within `FOUND_AGAIN_S` of either, is for learning alone; alerts there are not judged.
moving
    `voyage SEED`: a made world of a camera that moves over ground (voyages.py), from its first frame.
ahead
    `ahead SEED`: a made world of a camera that looks ahead (ahead.py), from its first frame.
quiet
    `quiet SEED`: a still place under one nuisance after the other (quiet.py); every alert is false.
long
    `long SEED`: the same with a stranger every few minutes (watches.py), for as many hours.
"""

import pathlib
from dataclasses import dataclass, replace

import numpy as np

from stillwatch.tools.evaluate.suite.ahead import Ahead
from stillwatch.tools.evaluate.suite.clips import CLIPS, Clip, Stream, clip, stamp_ns
from stillwatch.tools.evaluate.suite.quiet import QuietHours
from stillwatch.tools.evaluate.suite.transforms import TRANSFORMS, transformed, views_changed
from stillwatch.tools.evaluate.suite.voyages import make_voyage
from stillwatch.tools.evaluate.suite.watches import LongWatch
from stillwatch.tools.evaluate.suite.worlds import RATE_HZ, is_panned, make_world
from stillwatch.tools.evaluate.truth import Truth, merged, truth_of

SEEDED = {
    "made": "world",
    "settled": "settled",
    "knocked": "knocked",
    "moving": "voyage",
    "ahead": "ahead",
    "quiet": "quiet",
    "long": "long",
}  # group -> name of its cases
GROUPS = ("real", "start", "transform", "made", "settled", "knocked", "moving", "ahead", "quiet", "long")
START_STEP_S = 2.0  # between two starts of a clip
SETTLE_S = 8.0  # after an un-looped start an event may begin
LEARN_S = 120.0  # after a looped start
LOOP_S = 185.0
LOOP_HZ = 5.0
SEAM_S = 1.0
QUIET_PLACES = 3
SETTLED_FRAMES = 2400  # eight minutes
SETTLED_S = 300.0
KNOCKED_S, RIGHTED_S = 200.0, 350.0
FOUND_AGAIN_S = 30.0  # in which it is seen that the view is another, and what is usual in it
SETTLED_EVERY = 3  # made worlds: one of so many is shown for so long as well


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the suite: its group, and what to show. start: first frame of the clip; transform: by name; hours: of
    stream, of a quiet one.
    """

    group: str
    clip: str
    start: int = 0
    looped: bool = False
    transform: str = ""
    seed: int = 0
    hours: float = 0.0

    @property
    def name(self) -> str:
        if self.group in SEEDED:
            return f"{SEEDED[self.group]} {self.seed}"
        if self.group == "transform":
            return f"{self.clip} {self.transform}"
        return f"{self.clip}@{self.start}{' loop' if self.looped else ''}" if self.group == "start" else self.clip


def cases_of(
    data: pathlib.Path,
    groups: tuple[str, ...],
    seeds: range,
    starts: int,
    loops: int,
    clips_each: int,
    quiet_hours: float = 0.0,
) -> list[Case]:
    """Return every case of the groups.

    starts, loops: how many of a clip's starts, every `START_STEP_S` of it, are taken, evenly; 0: all of them.
    clips_each: on how many of the clips each transform is shown.
    quiet_hours: of stream, shared out among `QUIET_PLACES`, in each of the groups quiet and long.
    """
    cases: list[Case] = []
    if "real" in groups:
        cases += [Case("real", name) for name in CLIPS]
    if "start" in groups:
        for name in CLIPS:
            every = starts_of(clip(data, name))
            cases += [Case("start", name, start) for start in thinned(every, starts)]
            if name != "habcam_transect":
                cases += [Case("start", name, start, looped=True) for start in thinned(every, loops)]
    if "transform" in groups:
        for place, (name, rule) in enumerate(TRANSFORMS.items()):
            turned = [rule.clips[(place + k) % len(rule.clips)] for k in range(min(clips_each, len(rule.clips)))]
            cases += [Case("transform", shown, transform=name) for shown in turned]
    if "made" in groups:
        cases += [Case("made", "", seed=seed) for seed in seeds]
    for lasting in ("settled", "knocked"):
        if lasting in groups:
            cases += [Case(lasting, "", seed=seed) for seed in seeds[::SETTLED_EVERY] if not is_panned(seed)]
    for moving in ("moving", "ahead"):
        if moving in groups:
            cases += [Case(moving, "", seed=seed) for seed in seeds]
    for lasting in ("quiet", "long"):
        if lasting in groups and quiet_hours > 0.0:
            places = range(seeds.start, seeds.start + QUIET_PLACES)
            cases += [Case(lasting, "", seed=seed, hours=quiet_hours / QUIET_PLACES) for seed in places]
    return cases


def starts_of(source: Clip) -> list[int]:
    """Return the first frames of the starts of a clip: every 2 s but 0, while an event can still begin and count."""
    last = max(first for first, _ in truth_from(source, 0).spans)
    step, settle = START_STEP_S * source.rate_hz, round(SETTLE_S * source.rate_hz)
    return [round(k * step) for k in range(1, int((last - settle) / step) + 1)]


def thinned(values: list[int], n: int) -> list[int]:
    """Return n of the values, evenly spread, with the first and the last; all of them for n = 0."""
    if not n or n >= len(values):
        return values
    return [values[place] for place in np.linspace(0, len(values) - 1, n).round().astype(int)]


def truth_from(source: Clip, start: int) -> Truth:
    """Return a clip's truth when it is watched from frame `start`: what is first shown depends on it."""
    entry = source.entry
    if entry.get("events"):
        return truth_of(entry)
    seen: set[str] = set()
    segments = []
    for segment in entry["segments"]:
        if segment["end"] >= start:
            segments.append({**segment, "first_time": segment["scene"] not in seen and segment["start"] > start})
            seen.add(segment["scene"])
    return truth_of({**entry, "segments": segments})


def stream_of(case: Case, data: pathlib.Path) -> Stream:
    """Return what the case shows, with its truth."""
    if case.group == "made":
        return make_world(case.seed, data).stream()
    if case.group == "settled":
        return _settled(case, data)
    if case.group == "knocked":
        return _knocked(case, data)
    if case.group == "moving":
        return make_voyage(case.seed, data).stream()
    if case.group == "ahead":
        return Ahead(case.seed, data).stream()
    if case.group == "quiet":
        return QuietHours(case.seed, case.hours, data).stream()
    if case.group == "long":
        return LongWatch(case.seed, case.hours, data).stream()
    source = clip(data, case.clip)
    if case.group == "transform":
        return _transform(case, source)
    if case.looped:
        return _looped(case, source)
    truth = truth_from(source, case.start)
    if case.group == "start":
        truth = after_start(truth, case.start, round(SETTLE_S * source.rate_hz))
    rate = source.rate_hz

    def pictures():
        for number in range(case.start, len(source.pictures)):
            yield number, source.pictures[number], stamp_ns(number - case.start, rate)

    return Stream(case.name, rate, truth, pictures)


def _settled(case: Case, data: pathlib.Path) -> Stream:
    """Return a made world that lasts, asked for what is new once it was watched for some minutes."""
    world = make_world(case.seed, data, SETTLED_FRAMES).stream()
    return replace(world, name=case.name, truth=world.truth.from_frame(round(SETTLED_S * world.rate_hz)))


def _knocked(case: Case, data: pathlib.Path) -> Stream:
    """Return a made world that lasts, under a camera that is pushed aside and put right again."""
    at, back = round(KNOCKED_S * RATE_HZ), round(RIGHTED_S * RATE_HZ)
    world = make_world(case.seed, data, SETTLED_FRAMES, range(at, back)).stream()
    settle = round(FOUND_AGAIN_S * RATE_HZ)
    before, after = world.truth.between(at + settle, back - 1), world.truth.between(back + settle, SETTLED_FRAMES)
    unjudged = merged((*before.unjudged, *after.unjudged, (0, at + settle - 1), (back, back + settle - 1)))
    truth = replace(before, spans=(*before.spans, *after.spans), unjudged=unjudged, asked_from=at + settle)
    return replace(world, name=case.name, truth=truth)


def after_start(truth: Truth, start: int, settle: int) -> Truth:
    """Return the truth of a clip watched from frame `start`: events from `settle` frames on count, sooner ones not."""
    counted = tuple(span for span in truth.spans if span[0] >= start + settle)
    sooner = tuple(span for span in truth.spans if span[1] >= start and span[0] < start + settle)
    return Truth(counted, truth.tolerance_frames, unjudged=sooner)


def _looped(case: Case, source: Clip) -> Stream:
    """Return laps of the clip. Numbers count on over the seam: lap k's frame f is k * n + f."""
    n, rate = len(source.pictures), source.rate_hz
    stride = max(1, round(rate / LOOP_HZ))
    end = case.start + round(LOOP_S * rate)
    truth = looped_truth(truth_from(source, 0), n, rate, case.start, end)

    def pictures():
        for number in range(case.start, end, stride):
            yield number, source.pictures[number % n], stamp_ns(number - case.start, rate)

    return Stream(case.name, rate, truth, pictures)


def looped_truth(truth: Truth, n: int, rate: float, start: int, end: int) -> Truth:
    """Return the truth of frames start to end - 1 of laps of a clip of n frames; see the head of this file."""
    laps = range(end // n + 1)
    showings = [(lap * n + a, min(lap * n + b, end - 1)) for lap in laps for a, b in truth.spans]
    showings = [(a, b) for a, b in showings if b >= start and a < end]
    settled = start + round(LEARN_S * rate)
    seams = [(lap * n, lap * n + round(SEAM_S * rate)) for lap in laps if start < lap * n < end]
    early = [(a, b) for a, b in showings if a < settled]
    counted = tuple((a, b) for a, b in showings if a >= settled)
    return Truth(counted, truth.tolerance_frames, unjudged=merged((*early, *seams)), judged_from=settled)


def _transform(case: Case, source: Clip) -> Stream:
    """Return a clip under a transform, at about 10 Hz (half of it under half rate)."""
    stride = CLIPS[case.clip][2] * TRANSFORMS[case.transform].stride
    rate, truth = source.rate_hz, truth_of(source.entry)
    numbers = range(0, len(source.pictures), stride)
    jumps = [numbers[place] for place in views_changed(case.transform, len(numbers))]
    after = round(2.0 * rate)
    spans = tuple(span for span in truth.spans if not any(span[0] <= jump <= span[1] for jump in jumps))
    blurred = tuple(span for span in truth.spans if span not in spans)
    unjudged = merged((*blurred, *((jump, jump + after) for jump in jumps)))

    def pictures():
        shown = transformed(case.transform, (source.pictures[number] for number in numbers), len(numbers))
        for number, picture in zip(numbers, shown, strict=True):
            yield number, picture, stamp_ns(number, rate)

    return Stream(case.name, rate, Truth(spans, truth.tolerance_frames, unjudged), pictures)
