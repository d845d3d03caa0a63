"""The library's door: what importing it loads, how long that takes, and that every example in it runs."""

import doctest
import importlib
import inspect
import subprocess
import sys
from typing import Protocol

import pytest

import stillwatch.learn

PUBLIC = [thing for name in stillwatch.learn.__all__ if inspect.isclass(thing := getattr(stillwatch.learn, name))]


def test_the_library_needs_no_camera_no_codec_no_network_and_no_scikit_learn():
    code = (
        "import sys, stillwatch.learn as learn; learn.StreamGreedy(); "
        "print({'cv2', 'av', 'zmq', 'msgpack', 'sklearn'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.perf
def test_the_library_is_imported_within_a_second():
    """Processor seconds of a whole interpreter that imports it, kernels cached: the best of five."""
    code = "import stillwatch.learn, time; print(time.process_time())"
    spent = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(6)
    ]
    print(f"import of stillwatch.learn: {min(spent[1:]):.2f} processor seconds")
    assert min(spent[1:]) < 1.0


@pytest.mark.parametrize("kind", PUBLIC, ids=lambda kind: kind.__name__)
def test_every_public_class_has_an_example_that_runs(kind):
    module = importlib.import_module(kind.__module__)
    examples = [test for test in doctest.DocTestFinder().find(kind, globs=vars(module)) if test.examples]
    if Protocol in kind.__bases__:
        assert not examples
        return
    assert examples, f"{kind.__name__} has no example"
    for test in examples:
        assert doctest.DocTestRunner().run(test).failed == 0
