"""Exemplars of mixture components: the extremes and the newest, bounded, and judged again by each new model."""

import numpy as np
import pytest

from stillwatch.base.errors import SnapshotError
from stillwatch.base.state import state_hash
from stillwatch.learn.exemplars.components import EXAMPLE_KINDS, ComponentExemplars


def held(**given):
    return ComponentExemplars(2, **({"max_components": 3, "payload_bytes": 8} | given))


def offer(exemplars, components, typicality, first=0):
    n = len(components)
    rows = np.column_stack([np.arange(first, first + n), np.asarray(typicality)]).astype(np.float32)
    exemplars.offer(rows, components, typicality, first + np.arange(n), [f"{first + i}".encode() for i in range(n)])


def test_each_component_shows_its_most_typical_its_least_typical_and_its_newest():
    exemplars = held()
    offer(exemplars, [7, 7, 4, 7, 4], [0.5, 2.0, -1.0, -3.0, -0.5])
    found = [(e.component_id, e.kind, e.row_number, e.typicality, e.payload) for e in exemplars.table()]
    assert found == [
        (4, "most_typical", 4, -0.5, b"4"),
        (4, "least_typical", 2, -1.0, b"2"),
        (4, "newest", 4, -0.5, b"4"),
        (7, "most_typical", 1, 2.0, b"1"),
        (7, "least_typical", 3, -3.0, b"3"),
        (7, "newest", 3, -3.0, b"3"),
    ]
    assert all(e.row[0] == e.row_number for e in exemplars.table())


def test_ties_keep_the_row_that_was_there_and_the_newest_is_the_latest():
    exemplars = held()
    offer(exemplars, [0, 0, 0], [1.0, 1.0, 1.0])
    assert [e.row_number for e in exemplars.table()] == [0, 0, 2]


def test_components_beyond_the_bound_are_refused_and_counted():
    exemplars = held()
    offer(exemplars, [0, 1, 2, 3, 3, 0], [1.0] * 6)
    assert {e.component_id for e in exemplars.table()} == {0, 1, 2}
    assert exemplars.n_refused_ == 2


def test_a_new_model_judges_the_rows_held_and_drops_components_that_are_gone():
    exemplars = held()
    offer(exemplars, [0, 0, 0, 1, 1], [3.0, 1.0, 2.0, 5.0, 4.0])
    exemplars.rescore(lambda rows: (np.full(len(rows), 9), -rows[:, 0].astype(float)))
    table = exemplars.table()
    assert [(e.component_id, e.kind, e.row_number) for e in table] == [
        (9, "most_typical", 0),
        (9, "least_typical", 4),
        (9, "newest", 4),
    ]
    assert [e.payload for e in table] == [b"0", b"4", b"4"]


def test_judging_nothing_is_no_work():
    exemplars = held()
    exemplars.rescore(lambda rows: pytest.fail("there is nothing to judge"))
    assert exemplars.table() == []


def test_memory_is_fixed_and_state_goes_on():
    first, second = held(), held()
    before = first.memory_bytes()
    rng = np.random.default_rng(0)
    offer(first, rng.integers(0, 5, 200), rng.normal(size=200))
    second.restore(first.state())
    for exemplars in (first, second):
        offer(exemplars, [0, 1, 2], [9.0, -9.0, 0.0], first=200)
    assert state_hash(first.state()) == state_hash(second.state())
    assert first.memory_bytes() == before
    assert len(first.table()) == 3 * len(EXAMPLE_KINDS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"component_ids": [-1]}, "component_ids: -1 is negative"),
        ({"row_numbers": [-5]}, "row_numbers: -5 is negative"),
        ({"typicality": [np.nan]}, "typicality"),
        ({"typicality": [1.0, 2.0]}, "must be \\(1,\\)"),
        ({"rows": [[np.inf, 0.0]]}, "rows"),
        ({"rows": [[1.0]]}, "must be \\(n, 2\\)"),
        ({"payload": [b"123456789"]}, "9 bytes are more"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(change, message):
    exemplars = held()
    offer(exemplars, [0], [1.0])
    before = state_hash(exemplars.state())
    good = {"rows": [[1.0, 2.0]], "component_ids": [0], "typicality": [0.0], "row_numbers": [3]}
    with pytest.raises(ValueError, match=message):
        exemplars.offer(**(good | change))
    assert state_hash(exemplars.state()) == before


def test_states_of_other_sizes_or_damaged_are_refused():
    exemplars = held()
    with pytest.raises(SnapshotError, match="must be"):
        exemplars.restore(held(max_components=4).state())
    state = held().state()
    state["ids"][:2] = 5
    with pytest.raises(SnapshotError, match="appears twice"):
        exemplars.restore(state)
    with pytest.raises(SnapshotError, match="no rows"):
        exemplars.restore({name: array for name, array in held().state().items() if name != "rows"})
    with pytest.raises(ValueError, match="max_components: 0"):
        held(max_components=0)
