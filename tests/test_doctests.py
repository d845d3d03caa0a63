"""Every example in a docstring of the product and in the README runs; every public class of the learners has one.

pytest's own --doctest-modules goes by folders (agent/, kernels/), which are no import names; this goes by modules.
"""

import doctest
import importlib
import inspect
import re

import numpy as np
import pytest
from places import ROOT

from stillwatch import learn

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = sorted(
    ".".join(["stillwatch", *path.relative_to(ROOT / top if top == "agent" else ROOT).with_suffix("").parts])
    for top in ("agent", "kernels", "transport", "tools")
    for path in (ROOT / top).rglob("*.py")
    if path.name != "__init__.py"
)
PUBLIC_CLASSES = sorted(
    name
    for name in learn.__all__
    if inspect.isclass(getattr(learn, name)) and name != "Learner"  # a protocol
)


def test_every_example_says_what_it_prints():
    with np.printoptions(precision=3, suppress=True):
        results = {name: doctest.testmod(importlib.import_module(name), optionflags=FLAGS) for name in MODULES}
    assert {name: result.failed for name, result in results.items() if result.failed} == {}


@pytest.mark.parametrize("name", PUBLIC_CLASSES)
def test_a_public_class_of_the_learners_has_an_example(name):
    found = doctest.DocTestFinder(recurse=False).find(getattr(learn, name), name)
    assert any(test.examples for test in found), f"{name} has no runnable example in its docstring"


def test_the_examples_of_the_readme_run():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        test = doctest.DocTestParser().get_doctest(block, {}, "README.md", "README.md", 0)
        assert test.examples, "a block of Python without a prompt is not run"
        assert doctest.DocTestRunner(optionflags=FLAGS).run(test).failed == 0
