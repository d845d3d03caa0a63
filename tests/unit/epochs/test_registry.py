"""The table of learners: its rows fit each other and the wire, and a row more is all that a new learner takes."""

import numpy as np
import pytest
from epoch_cases import SETTINGS, feed_noise, small_learners

from stillwatch.epochs.registry import (
    LEARNERS,
    PATCHES,
    SCENES,
    LearnerRow,
    Samples,
    ShownExamples,
    ShownExemplars,
    ShownModel,
    Sizes,
    side_by_side,
)
from stillwatch.learn import EXAMPLE_KINDS, MemoryBoundedMixture, StreamGreedy
from stillwatch.settings.reader import load_config
from stillwatch.transport.wire import MODELS

MORE = (
    *LEARNERS,
    LearnerRow(
        "ground",
        "ground exemplars",
        Samples.PATCH_ROWS,
        "exemplars",
        lambda settings, sizes: StreamGreedy(k=4, block=16, validation=50, seed=sizes.seed).allocate(
            sizes.n_patch_dims
        ),
        ShownExemplars(role="ground", first_id=2 << 32),
    ),
    LearnerRow(
        "views",
        "view mixture",
        Samples.FRAMES,
        "scenes",
        lambda settings, sizes: MemoryBoundedMixture(memory=settings.memory, seed=sizes.seed).allocate(
            sizes.n_frame_dims
        ),
        ShownModel(most_sent=5),
    ),
)


def test_names_are_different_and_sections_exist():
    names = [row.name for row in LEARNERS]
    assert len(set(names)) == len(names)
    assert all(hasattr(load_config(None, []), row.section) for row in LEARNERS)


def test_every_model_has_a_name_on_the_wire():
    assert {row.name for row in LEARNERS if isinstance(row.shown, ShownModel)} <= set(MODELS)


def test_examples_are_of_a_mixture_that_learns_before_them():
    names = [row.name for row in LEARNERS]
    for place, row in enumerate(LEARNERS):
        of_another = row.learns_from in (Samples.EXAMPLES, Samples.WORDS_WITH_CROPS)
        assert of_another == isinstance(row.shown, ShownExamples)
        if isinstance(row.shown, ShownExamples):
            assert row.shown.of in names[:place]


def test_no_two_learners_share_the_id_of_an_exemplar():
    firsts = [row.shown.first_id for row in LEARNERS if not isinstance(row.shown, ShownModel)]
    gaps = np.diff(sorted(firsts))
    assert gaps.min() >= 1 << 32


def test_ids_of_examples_are_those_of_checkpoints_and_stations_of_before():
    shown = next(row.shown for row in LEARNERS if isinstance(row.shown, ShownExamples))
    assert [shown.id_of(7, kind) for kind in EXAMPLE_KINDS] == [(1 << 32) + 21, (1 << 32) + 22, (1 << 32) + 23]


@pytest.fixture
def play():
    made = []

    def play(table, stop=30):
        learners = small_learners(table=table)
        made.append(learners)
        return learners, feed_noise(learners, 0, stop)

    yield play
    for learners in made:
        learners.close()


def test_a_row_more_is_taught_shown_saved_and_counted(play):
    learners, reports = play(MORE)
    last = reports[-1]
    assert [model.name for model in last.learnt] == [row.name for row in MORE if isinstance(row.shown, ShownModel)]
    assert last.learnt[-1].mixture is last.models["views"]
    ground = {exemplar.id for report in reports for exemplar in report.exemplars if exemplar.role == "ground"}
    assert ground
    assert min(ground) >= 2 << 32
    assert {"ground exemplars", "view mixture"} <= set(learners.memory_bytes())
    state = learners.state()
    assert {name.split(".")[0] for name in state} >= {"ground", "views"}
    second, _ = play(MORE, stop=0)
    second.restore(state)
    assert second.learner_hash() == learners.learner_hash()
    assert np.array_equal(second.models["views"].ids, learners.models["views"].ids)


def test_a_row_more_changes_nothing_of_the_others(play):
    learners, _ = play(MORE)
    alone, _ = play(LEARNERS)
    learners.wait()
    alone.wait()
    for row in LEARNERS:
        one, other = learners[row.name].state(), alone[row.name].state()
        assert all(np.array_equal(one[name], other[name], equal_nan=one[name].dtype.kind == "f") for name in one)


@pytest.mark.parametrize(("settings", "halflives"), [([], (None, None)), (["patches.halflife=5000"], (5000, None))])
def test_a_mixture_forgets_where_its_section_says_so(settings, halflives):
    config = load_config(None, [*SETTINGS, *settings])
    learners = {row.name: row.make(getattr(config, row.section), Sizes(6, 4, 5, 100, 0)) for row in LEARNERS[:2]}
    assert tuple(learners[name].halflife for name in (PATCHES, SCENES)) == halflives


def test_a_learner_stands_with_those_that_look_at_it_and_beside_all_others():
    groups = side_by_side(LEARNERS)
    assert sorted(row.name for group in groups for row in group) == sorted(row.name for row in LEARNERS)
    for first, *others in groups:
        assert not isinstance(first.shown, ShownExamples)
        assert all(isinstance(row.shown, ShownExamples) and row.shown.of == first.name for row in others)
