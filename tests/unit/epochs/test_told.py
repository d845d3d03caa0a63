"""What is told of examples: at once of a new component, and the more seldom the longer it is known."""

import numpy as np

from stillwatch.epochs.registry import LEARNERS
from stillwatch.epochs.report import Told
from stillwatch.learn import ComponentExemplars

PATIENCE = next(row.shown.patience for row in LEARNERS if row.name == "topic_examples")
HEADER = bytes(64)  # frame, time, and no picture


def told_of(name="topic_examples"):
    """Return what tells of one learner alone."""
    return Told(tuple(row for row in LEARNERS if row.name == name))


def learners(examples, name="topic_examples"):
    return {name: examples}


def test_examples_that_change_all_the_time_are_told_at_four_times_their_age():
    told, examples = told_of(), ComponentExemplars(1, max_components=4, payload_bytes=len(HEADER))
    epochs = []
    for epoch in range(70 * PATIENCE):
        row = np.zeros((1, 1), np.float32)
        examples.offer(row, np.array([7]), np.array([float(epoch)]), np.array([epoch]), [HEADER])  # ever more typical
        if told.news(learners(examples), epoch):
            epochs.append(epoch)
    assert epochs == [0, PATIENCE, 4 * PATIENCE, 16 * PATIENCE, 64 * PATIENCE]


def test_examples_of_a_new_component_are_told_whatever_was_told_of_others():
    told, examples = told_of(), ComponentExemplars(1, max_components=4, payload_bytes=len(HEADER))
    row, first = np.zeros((1, 1), np.float32), np.array([1])
    examples.offer(row, np.array([7]), np.zeros(1), first, [HEADER])
    assert {one.component for one in told.news(learners(examples), 0)} == {7}
    examples.offer(row, np.array([8]), np.zeros(1), first + 1, [HEADER])
    assert {one.component for one in told.news(learners(examples), 1)} == {8}
    told.forget()
    assert {one.component for one in told.news(learners(examples), 2)} == {7, 8}


def test_of_scenes_the_most_typical_picture_alone_is_told_and_of_topics_all_three():
    examples = ComponentExemplars(1, max_components=4, payload_bytes=len(HEADER))
    examples.offer(np.zeros((1, 1), np.float32), np.array([7]), np.zeros(1), np.array([1]), [HEADER])
    roles = [one.role for one in told_of("scene_exemplars").news(learners(examples, "scene_exemplars"), 0)]
    assert roles == ["most_typical"]
    roles = [one.role for one in told_of().news(learners(examples), 0)]
    assert roles == ["topic_most_typical", "topic_least_typical", "topic_newest"]
