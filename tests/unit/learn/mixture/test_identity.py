"""Ids of components: never reused, matched across rebuilt models, events without those who only passed through."""

import numpy as np

from stillwatch.learn.mixture.identity import Identities


def test_ids_rise_and_are_never_reused():
    who = Identities(4)
    who.begin_epoch()
    who.born(0, -1)
    who.born(1, 0)
    who.died(1, 0)
    who.born(1, 0)
    assert who.id[:2].tolist() == [0, 2]
    assert who.next_id == 3


def test_events_leave_out_who_was_born_and_died_within_the_epoch_and_follow_heirs_and_parents():
    who = Identities(6)
    who.begin_epoch()
    who.born(0, -1)
    who.born(1, 0)
    who.begin_epoch()
    who.born(2, 1)  # id 2, child of 1
    who.born(3, 2)  # id 3, child of 2
    who.died(1, 2)  # 1 lives on in 2
    who.died(2, 3)  # 2 lives on in 3
    assert who.settle_events() == [("birth", 3, 1), ("death", 1, 3)]


def test_a_rebuilt_model_takes_the_ids_of_what_it_shares_most_mass_with():
    who = Identities(4)
    who.begin_epoch()
    for place in range(3):
        who.born(place, -1)
    shared = np.array([[0.0, 90.0, 5.0], [40.0, 0.0, 45.0]])
    who.id[:3] = [10, 11, 12]
    who.adopt(np.array([3, 7]), np.array([1, 2]), shared)
    assert who.id[:3].tolist() == [10, 3, 7]
    assert who.born_epoch[1:3].tolist() == [1, 2]
    assert who.events == [("birth", 10, -1)]


def test_an_old_component_without_a_continuation_dies():
    who = Identities(2)
    who.id[:1] = 20
    who.adopt(np.array([3, 7]), np.array([1, 2]), np.array([[90.0], [10.0]]))
    assert who.id[0] == 3
    assert who.events == [("death", 7, -1)]
