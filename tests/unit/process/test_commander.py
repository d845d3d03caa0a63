"""Commands between two frames: the newest frame as a picture, for whoever asks."""

import cv2
import numpy as np
import pytest

from stillwatch.base import Frame
from stillwatch.outlet import CommandBox
from stillwatch.process import Commander
from stillwatch.transport.live import COMMANDS, Command


def frame_of(sequence, width=320, height=200):
    rng = np.random.default_rng(sequence)
    colour = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Frame(
        grey=colour[:, :, 0], colour=colour, source_ns=None, t_ns=7, mono_ns=8, wall_ns=9, sequence=sequence, epoch=0
    )


@pytest.fixture
def box():
    return CommandBox()


@pytest.fixture
def commander(box):
    return Commander(None, box, journal=lambda *_: None, status=dict, now_ns=lambda: 1000)


def ask(box, *, expires=2000, **arguments):
    box.put(Command("id", "request_picture", COMMANDS["request_picture"](**arguments), expires))


def test_the_frame_just_taken_is_sent_no_wider_and_no_longer_than_asked(box, commander):
    ask(box, width_px=160, max_bytes=4000)
    commander.run(frame_of(41))
    [(_, told, error, jpeg)] = box.answers()
    assert (told, error) == ({"frame": 41, "t_ns": 7, "wall_ns": 9}, "")
    assert 0 < len(jpeg) <= 4000
    height, width = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR).shape[:2]
    assert (width, height) <= (160, 100)
    assert width / height == pytest.approx(1.6, abs=0.05)


def test_without_a_frame_the_answer_waits_for_the_next(box, commander):
    ask(box)
    commander.run(None)
    assert not box.answers()
    commander.run(frame_of(42))
    assert [answer[1]["frame"] for answer in box.answers()] == [42]
    commander.run(frame_of(43))
    assert not box.answers(), "each is answered once"


def test_nobody_is_answered_who_has_stopped_waiting(box, commander):
    ask(box, expires=500)
    commander.run(frame_of(44))
    assert not box.answers()


def test_a_source_that_gives_no_frames_makes_no_heap_of_questions(box, commander):
    for _ in range(3):
        for _ in range(16):
            ask(box)
        commander.run(None)
    commander.run(frame_of(45))
    assert len(box.answers()) == 16
