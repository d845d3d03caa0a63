"""Learners taught elsewhere, by what a lesson brings: the same bits as here, wherever and as often as it is lost."""

import msgspec
import numpy as np
import pytest
from epoch_cases import FRAME_DIMS, PATCH_DIMS, SETTINGS, WORD_DIMS, feed_noise, small_learners

from stillwatch.base import RealClock
from stillwatch.describing.room import room_of
from stillwatch.epochs import Guests, Taught
from stillwatch.epochs.buffer import FrameWords
from stillwatch.settings import load_config

WIDTHS = {"n_patch_dims": PATCH_DIMS, "n_word_dims": WORD_DIMS, "n_frame_dims": FRAME_DIMS}
N_FRAMES = 80
GROUPS = [["patches"], ["topics", "topic_examples"]]


class Elsewhere:
    """A tutor whose guests share nothing with the learners: arrays travel as copies, reports as messages.

    `present`: whether it is there, lesson by lesson; `comes`: groups of a lesson that come back.
    """

    def __init__(self, present=lambda lesson: True, comes=2):
        self.guests = Guests(load_config(None, SETTINGS), RealClock(), WIDTHS)
        self.present, self.comes = present, comes
        self.lessons, self.heard = 0, 0

    def ask(self, groups, epoch, arrays):
        assert groups == GROUPS
        self.lessons += 1
        if not self.present(self.lessons):
            return False
        copies = {name: np.array(array) for name, array in arrays.items()}
        self.answers, self.left = self.guests.teach(groups, epoch, copies), self.comes
        return True

    def hear(self):
        if not self.left:
            return None
        self.left -= 1
        self.heard += 1
        taught = next(self.answers)
        reports = msgspec.msgpack.decode(msgspec.msgpack.encode(taught.reports, enc_hook=np.generic.item))
        return Taught(taught.state, reports, taught.seconds)


def told(reports):
    """What of each epoch is the same wherever it was learnt."""
    return [
        (
            report.learner_hash,
            [
                (model.name, model.free_energy, model.splits, model.merges, model.born, model.died, model.clumps)
                for model in report.learnt
            ],
            report.exemplars,
        )
        for report in reports
    ]


def fed(tutor):
    learners = small_learners()
    learners.tutor = tutor
    reports = feed_noise(learners, 0, N_FRAMES)
    kept = told(reports), learners.learner_hash(), learners.state()
    learners.close()
    return kept


@pytest.mark.parametrize(
    ("tutor", "heard"),
    [
        (Elsewhere(), 12),
        (Elsewhere(present=lambda lesson: lesson % 2 == 0), 6),
        (Elsewhere(comes=1), 6),
        (Elsewhere(comes=0), 0),
    ],
    ids=["always there", "every second epoch", "half a lesson comes back", "lost while it teaches"],
)
def test_what_is_learnt_elsewhere_is_what_is_learnt_here(tutor, heard):
    reports, learnt, state = fed(tutor)
    here_reports, here_learnt, here_state = fed(None)
    assert (tutor.lessons, tutor.heard) == (6, heard)
    assert reports == here_reports
    assert any(born for _, models, _ in reports for _, _, _, _, born, _, _ in models)
    assert learnt == here_learnt
    for name, array in here_state.items():
        np.testing.assert_array_equal(state[name], array, err_msg=name)


def test_a_learner_that_has_nothing_to_learn_tells_the_same_wherever_it_is_asked():
    """No word is cut out of a bare wall for an epoch or two: what its topics' last epoch did is told once more."""

    def bare(tutor):
        learners = small_learners()
        reports = feed_noise(learners, 0, 4)  # the first epoch, here
        learners.tutor = tutor
        for i in range(4, 60):
            reports.append(learners.activate())
            rows = np.random.default_rng([5, i]).normal(size=(40, PATCH_DIMS)).astype(np.float32)
            none = FrameWords(np.zeros((0, WORD_DIMS), np.float32), np.zeros(0, bool), lambda word: b"")
            learners.offer(i, i * 10**8, rows, np.ones(40, bool), none, rows[0, :FRAME_DIMS], b"jpeg")
        learners.close()
        return told(report for report in reports if report is not None)

    tutor = Elsewhere()
    assert bare(tutor) == bare(None)
    assert tutor.heard >= 4  # of two groups each


def test_what_goes_there_and_comes_back_is_planned():
    tutor, taken = Elsewhere(), []
    learners = small_learners()
    ask, hear = tutor.ask, tutor.hear

    def asked(groups, epoch, arrays):
        taken.append(room_of(arrays))
        return ask(groups, epoch, arrays)

    def heard():
        taught = hear()
        taken[-1] += room_of(taught.state)
        return taught

    tutor.ask, tutor.hear = asked, heard
    learners.tutor = tutor
    feed_noise(learners, 0, N_FRAMES)
    learners.close()
    assert 0 < max(taken) <= learners.lesson_bytes(), (max(taken), learners.lesson_bytes())


def test_what_each_learner_took_there_is_told():
    tutor = Elsewhere()
    learners = small_learners()
    learners.tutor = tutor
    (report, *_) = feed_noise(learners, 0, 12)
    learners.close()
    assert min(model.seconds for model in report.learnt if model.name in ("patches", "topics")) > 0.0


def test_the_hash_is_of_what_was_taken_over_last():
    """It is made once an epoch, by whoever learnt it; a state that is restored has another one."""
    learners = small_learners()
    feed_noise(learners, 0, 12)
    early, state = learners.learner_hash(), learners.state()
    feed_noise(learners, 12, N_FRAMES)
    assert learners.learner_hash() != early
    learners.restore(state)
    assert learners.learner_hash() == early
    learners.close()
