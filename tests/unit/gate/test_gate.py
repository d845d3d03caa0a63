"""The gate: what it refuses, what it must let pass, and the life of its states and events."""

from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from capture_sources import frame_of

from stillwatch.base.camera import FIXED, MOVING, UNDECIDED
from stillwatch.base.frame import Frame, FrameFlag
from stillwatch.base.source_state import SourceState
from stillwatch.gate.gate import Gate
from stillwatch.gate.global_change import KNOWN_VIEWS, GlobalChange
from stillwatch.settings.config import GateConfig
from stillwatch.tools.checks.corpus import HEIGHT, WIDTH, picture

RATE = 10
NOISE = np.random.default_rng(0).normal(0.0, 2.0, (64, HEIGHT, WIDTH, 3)).astype(np.float32)


def noisy(image, index):
    return np.clip(image + NOISE[index % 64], 0, 255).astype(np.uint8)


RULES = [pytest.param(FIXED, id="fixed"), pytest.param(MOVING, id="moving")]


def gate(**settings):
    return Gate(GateConfig(**settings), height=HEIGHT, width=WIDTH)


def play(judge, pictures, *, rule=FIXED, start=0, rate=RATE, flags=lambda i: FrameFlag.NONE):
    """Judge pictures at `rate`; return the verdicts."""
    return [
        judge.judge(frame_of(image, (start + i) / rate, flags=flags(start + i), sequence=start + i), rule)
        for i, image in enumerate(pictures)
    ]


def scene(count, start=0, **options):
    return [picture(i, **options) for i in range(start, start + count)]


def scene_changes(verdicts):
    return sum(verdict.scene_change for verdict in verdicts)


def first_second_of(state, verdicts, start):
    return next(i for i, verdict in enumerate(verdicts) if verdict.state is state) / RATE + start / RATE


@pytest.mark.parametrize("rule", RULES)
def test_a_usual_scene_passes_whole(rule):
    assert all(verdict.accepted for verdict in play(gate(), scene(100), rule=rule))


@pytest.mark.parametrize(("image", "reason", "state"), [
    (np.zeros((HEIGHT, WIDTH, 3)), "dark", SourceState.DARK),
    (np.full((HEIGHT, WIDTH, 3), 255.0), "overexposed", SourceState.OVEREXPOSED),
    (np.full((HEIGHT, WIDTH, 3), 70.0), "obstructed", SourceState.OBSTRUCTED),
])  # fmt: skip
@pytest.mark.parametrize("rule", RULES)
def test_a_bad_view_teaches_nothing_from_its_first_frame_and_is_a_state_within_ten_seconds(image, reason, state, rule):
    judge = gate()
    play(judge, scene(30), rule=rule)
    verdicts = play(judge, [noisy(image, i) for i in range(100)], rule=rule, start=30)
    assert {verdict.reason for verdict in verdicts} == {reason}
    assert first_second_of(state, verdicts, 0) <= 10.0
    assert [event.kind for verdict in verdicts for event in verdict.events] == [reason]
    assert judge.counters()[reason] == 100


def test_a_state_ends_with_one_event_after_a_good_second():
    judge = gate()
    play(judge, scene(20))
    play(judge, [np.zeros((HEIGHT, WIDTH, 3), np.uint8)] * 30, start=20)
    verdicts = play(judge, scene(30, 50), start=50)
    assert all(verdict.accepted for verdict in verdicts)
    assert [verdict.state for verdict in verdicts] == [SourceState.DARK] * 9 + [SourceState.LIVE] * 21
    ends = [event for verdict in verdicts for event in verdict.events]
    assert [(event.kind, event.phase, event.frames) for event in ends] == [("dark", "end", 30)]
    assert [i for i, verdict in enumerate(verdicts) if verdict.changed] == [9]


def test_the_same_picture_again_and_again_is_frozen():
    judge = gate()
    play(judge, scene(20))
    verdicts = play(judge, [picture(19)] * 100, start=20)
    assert sum(verdict.accepted for verdict in verdicts) <= 10
    assert first_second_of(SourceState.FROZEN, verdicts, 0) <= 10.0
    assert play(judge, scene(1, 120), start=120)[0].accepted


def test_a_frozen_camera_whose_stream_is_coded_again_is_frozen_despite_its_key_frames():
    judge = gate()
    first, second = picture(0), picture(0)
    second[::4] += 1  # a key frame that rounds a quarter of the picture differently: 0.25 grey levels
    verdicts = play(judge, [second if (i // 25) % 2 else first for i in range(150)])
    assert verdicts[-1].state is SourceState.FROZEN


def test_a_quiet_scene_that_changes_by_less_than_the_limit_but_goes_on_changing_is_not_frozen():
    """As a still room coded with few bits: 0.04 grey levels from frame to frame, 0.4 within a second."""
    rng = np.random.default_rng(0)
    image, images = picture(0).astype(np.float32), []
    rows = rng.permutation(HEIGHT)
    for i in range(150):
        image[rows[6 * i % HEIGHT : 6 * i % HEIGHT + 6]] += 1.0
        images.append(image.astype(np.uint8))
    verdicts = play(gate(), images)
    steps = [np.abs(b.astype(int) - a).mean() for a, b in zip(images, images[1:], strict=False)]
    assert max(steps) < 0.05
    assert all(verdict.state is SourceState.LIVE for verdict in verdicts)


def test_black_is_dark_not_frozen():
    verdicts = play(gate(), [np.zeros((HEIGHT, WIDTH, 3), np.uint8)] * 150)
    assert verdicts[-1].reason == "dark"
    assert verdicts[-1].state is SourceState.DARK


def test_a_still_but_noisy_night_is_not_frozen():
    night = picture(0, noise=0.0).astype(np.float32) / 8 + 6
    verdicts = play(gate(), [noisy(night, i) for i in range(200)])
    assert all(verdict.accepted for verdict in verdicts)


def test_decoder_damage_is_refused_and_is_one_event():
    judge = gate()
    bad = {10, 11, 30}
    verdicts = play(judge, scene(120), flags=lambda i: FrameFlag.DAMAGED if i in bad else FrameFlag.NONE)
    assert {i for i, verdict in enumerate(verdicts) if not verdict.accepted} == bad
    events = [(i, event.kind, event.phase) for i, verdict in enumerate(verdicts) for event in verdict.events]
    assert events == [(10, "damaged", "start"), (80, "damaged", "end")]


def test_a_part_that_turns_decoder_grey_is_damage_and_a_grey_wall_is_not():
    judge = gate()
    play(judge, scene(20))
    filled = picture(20)
    filled[HEIGHT // 2 :] = 128
    assert play(judge, [filled], start=20)[0].reason == "damaged"
    wall = gate()
    images = scene(60)
    for image in images:
        image[HEIGHT // 2 :] = 128
    assert all(verdict.accepted for verdict in play(wall, images))


def switched(start, alpha):
    return [cv2.convertScaleAbs(picture(i), alpha=alpha) for i in range(start, start + 100)]


@pytest.mark.parametrize("alpha", [0.35, 1.8])
def test_a_light_switch_is_one_scene_change_after_it_has_stayed(alpha):
    judge = gate(scene_change_after_s=5.0)
    play(judge, scene(30))
    verdicts = play(judge, switched(30, alpha), start=30)
    assert [verdict.reason for verdict in verdicts[:50]] == ["global_change"] * 50
    assert scene_changes(verdicts) == 1
    assert verdicts[50].scene_change
    assert all(verdict.accepted for verdict in verdicts[50:])


def test_a_light_that_goes_on_and_off_shows_pictures_that_were_known():
    judge, said = gate(), []
    play(judge, scene(30))
    for turn in range(6):
        start = 30 + 100 * turn
        images = scene(100, start) if turn % 2 else switched(start, 0.35)
        said += [(turn, verdict.known_scene) for verdict in play(judge, images, start=start) if verdict.scene_change]
    assert said == [(0, False), (1, True), (2, True), (3, True), (4, True), (5, True)]


def test_another_picture_is_not_known_and_one_forgotten_for_others_is_not_either():
    change, known = GlobalChange(stay_ns=10**9), []
    views = [0, 1, 2, 1, *range(3, 3 + KNOWN_VIEWS), 1, 2 + KNOWN_VIEWS]
    for i, seed in enumerate(np.repeat(views, 30)):
        thumb = np.random.default_rng(seed).uniform(0.0, 255.0, (30, 40)).astype(np.float32)
        held = change.update(SimpleNamespace(thumb=thumb, chroma=20.0), i * 10**8, FIXED)
        known += [held.known] if held.arrived else []
    assert known == [False, False, True] + [False] * KNOWN_VIEWS + [False, True]


def test_a_light_that_goes_back_is_no_scene_change():
    judge = gate()
    play(judge, scene(30))
    assert not any(verdict.accepted for verdict in play(judge, switched(30, 0.35)[:20], start=30))
    verdicts = play(judge, scene(100, 50), start=50)
    assert all(verdict.accepted for verdict in verdicts)
    assert scene_changes(verdicts) == 0


def test_a_day_night_filter_is_a_global_change_even_at_equal_brightness():
    judge = gate()
    play(judge, scene(30))
    grey = [cv2.merge([cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)] * 3) for image in scene(100, 30)]
    verdicts = play(judge, grey, start=30)
    assert scene_changes(verdicts) == 1
    assert verdicts[0].reason == "global_change"


def test_a_strobe_is_refused_in_its_dark_frames_only():
    images = [image * (i % 2) for i, image in enumerate(scene(100))]
    verdicts = play(gate(), images)
    assert all(verdict.accepted == bool(i % 2) for i, verdict in enumerate(verdicts))
    assert scene_changes(verdicts) == 0


def test_an_exposure_that_drifts_passes():
    images = [cv2.convertScaleAbs(picture(i), alpha=1.0 - 0.5 * min(i, 20) / 20) for i in range(60)]
    assert all(verdict.accepted for verdict in play(gate(), images))


@pytest.mark.parametrize("rule", [MOVING, UNDECIDED])
def test_a_new_view_of_a_camera_that_moves_or_may_move_is_no_fault(rule):
    images = [picture(i, seed=i // 20, speed=2.0) for i in range(100)]
    assert all(verdict.accepted for verdict in play(gate(), images, rule=rule))


def test_an_exposure_jump_of_a_moving_camera_is_refused_until_it_has_stayed():
    judge = gate()
    play(judge, scene(30, speed=1.0), rule=MOVING)
    images = [cv2.convertScaleAbs(picture(i, speed=1.0), alpha=0.4) for i in range(30, 130)]
    verdicts = play(judge, images, rule=MOVING, start=30)
    assert verdicts[0].reason == "global_change"
    assert scene_changes(verdicts) == 1
    assert verdicts[-1].accepted


def test_a_picture_that_never_calms_down_is_accepted_in_the_end():
    rng = np.random.default_rng(0)
    noise = [rng.integers(0, 2, (6, 8, 3)) * 200 + 20 for _ in range(400)]
    images = [cv2.resize(image.astype(np.uint8), (WIDTH, HEIGHT), interpolation=cv2.INTER_NEAREST) for image in noise]
    verdicts = play(gate(), images)
    assert scene_changes(verdicts) >= 1


@pytest.mark.parametrize("sigma", [2.5, 4.0, 8.0])
def test_a_lens_that_loses_focus_is_obstructed_on_a_fixed_camera(sigma):
    judge = gate()
    play(judge, scene(100))
    blurred = [noisy(cv2.GaussianBlur(picture(i, noise=0.0), (0, 0), sigma), i) for i in range(100, 200)]
    verdicts = play(judge, blurred, start=100)
    assert verdicts[-1].reason == "obstructed"
    assert first_second_of(SourceState.OBSTRUCTED, verdicts, 0) <= 10.0


def soft_scene(count, start=0, sigma=5.0, visitor=lambda i: False):
    """A murky view; whoever is in it stands near the camera, black and white."""
    images = []
    for i in range(start, start + count):
        image = cv2.GaussianBlur(picture(0, noise=0.0), (0, 0), sigma)
        if visitor(i):
            image[40:160, 60:140] = 255.0 * (np.arange(80) // 8 % 2)[None, :, None]
        images.append(noisy(image, i))
    return images


def test_a_murky_place_is_not_blurred_when_somebody_sharp_leaves_it():
    often = play(gate(), soft_scene(600, visitor=lambda i: i % 40 < 30))
    assert all(verdict.accepted for verdict in often)


def test_a_murky_place_where_somebody_sharp_often_is_still_loses_its_focus():
    judge = gate()
    play(judge, soft_scene(600, sigma=0.5, visitor=lambda i: i % 100 < 80))
    assert play(judge, soft_scene(100, start=600, sigma=4.0))[-1].reason == "obstructed"


def test_verdicts_depend_on_the_frames_alone_and_go_on_from_a_saved_state():
    images = [*scene(30), *switched(30, 0.35)[:70], *[picture(7)] * 60]
    whole, first, second = gate(), gate(), gate()
    expected = play(whole, images)
    head = play(first, images[:65])
    second.restore(first.state())
    assert head + play(second, images[65:], start=65) == expected
    for name, value in whole.state().items():
        assert np.array_equal(value, second.state()[name]), name


def test_memory_is_fixed_and_small():
    judge = gate()
    before = judge.memory_bytes()
    play(judge, scene(20))
    assert judge.memory_bytes() == before
    assert before["gate"] < 200_000


def test_another_size_is_judged_afresh_after_reshape():
    judge = gate()
    play(judge, scene(20))
    with pytest.raises(ValueError, match="call reshape first"):
        judge.judge(frame_of(picture(0)[:64, :64], 3.0), FIXED)
    judge.reshape(64, 64)
    assert judge.judge(frame_of(picture(0)[:64, :64], 3.0, epoch=1), FIXED).accepted
    assert judge.counters()["accepted"] == 21


@pytest.mark.parametrize(
    "name",
    [
        "surveillance/bottle_table.mp4",
        "surveillance/car_overhead.mp4",
        "surveillance/vtest_384x288.mp4",
        "underwater/habcam_transect.mp4",
    ],
)
@pytest.mark.parametrize("most", [150, pytest.param(100_000, marks=pytest.mark.soak, id="whole")])
@pytest.mark.slow
def test_every_frame_of_the_shared_clips_passes(name, most):
    from data_location import data_dir

    from stillwatch.settings.config import SourceConfig
    from stillwatch.sources.pixels import box_size, fit_box
    from stillwatch.sources.video import VideoFileSource

    source = VideoFileSource(str(data_dir() / name), SourceConfig())
    source.open()
    size = box_size(source.info.width, source.info.height, 384, 288)
    judge = Gate(GateConfig(), height=size[1], width=size[0])
    rule = MOVING if name.startswith("under") else FIXED
    count = 0
    while count < most and (raw := source.read()) is not None:
        grey, colour = fit_box(raw.colour, size)
        verdict = judge.judge(Frame(grey, colour, raw.source_ns, raw.source_ns, 0, 0, count, 0, raw.flags), rule)
        assert verdict.accepted, (count, verdict)
        count += 1
    source.close()
