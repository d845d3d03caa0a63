"""Quiet hours: a still place, one nuisance after the other with calm between, no event."""

import numpy as np
import pytest
from data_location import data_dir

from stillwatch.tools.evaluate.suite.quiet import CALM_S, RATE_HZ, SPELL_S, SPELLS, QuietHours


@pytest.fixture(scope="module")
def quiet():
    data_dir("caltech")
    data_dir("underwater")
    return QuietHours(0, 0.5, data_dir("surveillance").parent)


def test_every_nuisance_has_its_spell_and_calm_lies_between(quiet):
    spell = round((CALM_S + SPELL_S) * RATE_HZ)
    names = [quiet.nuisance(turn * spell + spell - 1) for turn in range(len(SPELLS))]
    assert sorted(names) == sorted(SPELLS)
    assert not any(quiet.nuisance(turn * spell) for turn in range(len(SPELLS)))


def test_nothing_counts_as_an_event_and_the_hours_are_as_many_frames(quiet):
    assert not quiet.stream().truth.spans
    assert quiet.n_frames == 0.5 * 3600 * RATE_HZ


def test_calm_pictures_differ_by_the_sensors_noise_alone(quiet):
    difference = quiet.render(0).astype(int) - quiet.render(1)
    assert 2.0 < difference.std() < 5.0
    np.testing.assert_array_equal(quiet.render(1), quiet.render(1))
