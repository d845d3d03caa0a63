"""The numbers that novelty and events rest on stand in one table a wing, each with a unit and a reason."""

import ast

import pytest
from places import ROOT


@pytest.mark.parametrize("wing", ["novelty", "events"])
def test_constants_stand_in_the_wings_table_and_nowhere_else(wing):
    for path in (ROOT / "agent" / wing).glob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and path.name != "rules.py":
                assert not isinstance(node.value, ast.Constant), f"{path.name}:{node.lineno}"


@pytest.mark.parametrize("wing", ["novelty", "events"])
def test_every_constant_has_its_unit_and_why(wing):
    lines = (ROOT / "agent" / wing / "rules.py").read_text().splitlines()
    bare = [line for before, line in zip(lines, lines[1:], strict=False) if line[:1].isupper() and " = " in line
            and "  # " not in line and not before.startswith(("#", "LEAST_SPREAD"))]  # fmt: skip
    assert not bare


@pytest.mark.parametrize("wing", ["novelty", "events"])
def test_no_name_is_given_twice(wing):
    tree = ast.parse((ROOT / "agent" / wing / "rules.py").read_text())
    names = [name.id for node in tree.body if isinstance(node, ast.Assign) for name in ast.walk(node.targets[0])
             if isinstance(name, ast.Name)]  # fmt: skip
    assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)
