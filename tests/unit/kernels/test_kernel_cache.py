"""Where compiled kernels are kept: a folder of their own sources, or none where nothing can be written."""

import importlib
import os
import pathlib
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numba
import pytest
from numba import types

from stillwatch.kernels import _jit, gating
from stillwatch.kernels.warm_up import load_all


def test_the_folder_is_the_one_asked_for(monkeypatch, tmp_path):
    monkeypatch.setenv("STILLWATCH_CACHE_DIR", str(tmp_path / "kernels"))
    folder = pathlib.Path(_jit._cache_dir())
    assert folder.parent == tmp_path / "kernels"
    assert folder.is_dir()


def test_other_kernels_or_bounds_checks_have_another_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("STILLWATCH_CACHE_DIR", str(tmp_path))
    before = _jit._cache_dir()
    monkeypatch.setitem(vars(_jit.numba.config), "BOUNDSCHECK", "another")
    assert _jit._cache_dir() != before


def test_where_no_folder_can_be_made_there_is_no_cache(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("STILLWATCH_CACHE_DIR", str(tmp_path / "file" / "kernels"))
    assert _jit._cache_dir() is None


def test_a_complete_folder_that_cannot_be_written_is_copied_and_any_other_is_left(monkeypatch, tmp_path):
    monkeypatch.setenv("STILLWATCH_CACHE_DIR", str(tmp_path))
    held = pathlib.Path(_jit._cache_dir())
    (held / "sift.nbi").write_bytes(b"code")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert _jit._cache_dir() is None
    (held / _jit.COMPLETE).touch()
    copy = pathlib.Path(_jit._cache_dir())
    assert copy != held
    assert (copy / "sift.nbi").read_bytes() == b"code"


def test_where_there_is_no_room_for_a_copy_of_the_cache_there_is_none(monkeypatch, tmp_path):
    def refused(*paths, **options):
        raise OSError("no space left")

    (tmp_path / _jit.COMPLETE).touch()
    monkeypatch.setattr(_jit.shutil, "copytree", refused)
    assert _jit._copy_of(tmp_path) is None


def test_loading_all_finds_the_kernels_of_every_module():
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        assert load_all() == {}, "without the compiler kernels are plain functions"
        return
    found = load_all()
    assert {name.split(".")[0] for name in found} >= {"sift", "hog", "exemplars", "mixture_full", "mixture_diagonal"}
    assert all(kernel.signatures for kernel in found.values()), "a kernel without a signature compiles in the field"


def test_kernels_under_their_bare_name_are_refused():
    init = pathlib.Path(_jit.__file__).with_name("__init__.py")
    specification = importlib.util.spec_from_file_location("kernels", init)
    with pytest.raises(ImportError, match="import stillwatch.kernels, not kernels"):
        specification.loader.exec_module(importlib.util.module_from_spec(specification))


def in_a_process(code, **environment):
    """Return the words that a new process prints."""
    if os.environ.get("NUMBA_DISABLE_JIT") == "1" or os.environ.get("NUMBA_BOUNDSCHECK") == "1":
        pytest.skip(
            "a process of its own, whatever the kernels of this one are: run once, with kernels as they are used"
        )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "0", **environment}
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=200, check=True
    ).stdout.split()


def test_a_second_process_loads_what_the_first_compiled_and_no_sooner_than_it_is_called(tmp_path):
    code = (
        "import numpy as np; from stillwatch.kernels.gating import gate_descriptors as kernel\n"
        "f4 = np.float32; row = np.ones(1, f4)\n"
        "print(len(kernel.signatures))\n"
        "kernel(row, row, f4(0.5), f4(1.0), 2, np.ones((1, 4), f4))\n"
        "counts = kernel.stats.cache_hits, kernel.stats.cache_misses\n"
        "print(len(kernel.signatures), *(sum(n.values()) for n in counts))"
    )
    first, second = (in_a_process(code, STILLWATCH_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert (first, second) == (["1", "1", "0", "1"], ["0", "1", "1", "0"])


def test_a_process_loads_the_signature_that_it_calls_and_what_that_calls_and_no_other():
    code = (
        "import numpy as np; from stillwatch.features.dense_sift import DenseSift, sift\n"
        "def told(): print(*(','.join(str(types[0].dtype) for types in kernel.signatures) or 'none'\n"
        "    for kernel in (sift.dense_sift, sift.smooth_along_row)))\n"
        "made = DenseSift(32, 32); told()\n"
        "deep = made.compute(np.ones((32, 32), np.uint8)).copy(); told()\n"
        "same = made.compute(np.ones((32, 32), np.float32)); told(); print((deep == same).all())"
    )
    in_a_process("from stillwatch.kernels import sift, hog, gating")  # fills the cache
    words = in_a_process(code)
    assert words == ["none", "none", "uint8", "uint8", "uint8,float32", "uint8,float32", "True"]


def test_a_call_with_types_of_no_signature_is_refused():
    code = (
        "import numpy as np; from stillwatch.kernels.dissimilarity import squared_norms\n"
        "try: squared_norms(np.ones((1, 2), np.int64), np.ones(1, np.float32))\n"
        "except TypeError as error: print('No' in str(error) or 'no' in str(error))"
    )
    assert in_a_process(code) == ["True"]


def test_processes_that_fill_a_cache_at_once_compile_each_kernel_in_one_of_them_only(tmp_path):
    """Else callers of one stand beside callees of the other, under names that do not meet, and bits differ."""
    code = (
        "from stillwatch.kernels import sparse_code as m; from stillwatch.kernels._jit import Kernel\n"
        "made = [kernel for kernel in vars(m).values() if isinstance(kernel, Kernel)]\n"
        "[kernel.load() for kernel in made]\n"
        "print(*(f'{kernel.__name__}:{sum(kernel.stats.cache_misses.values())}' for kernel in made))"
    )
    with ThreadPoolExecutor(3) as pool:
        counts = pool.map(lambda _: in_a_process(code, STILLWATCH_CACHE_DIR=str(tmp_path)), range(3))
    compiled = Counter(word.split(":")[0] for words in counts for word in words if word.endswith(":1"))
    assert set(compiled) >= {"pursue", "code_and_pool", "subtract"}
    assert set(compiled.values()) == {1}


def test_threads_that_are_the_first_to_call_a_kernel_all_get_its_result():
    code = (
        "import threading, numpy as np; from stillwatch.kernels.dissimilarity import squared_norms\n"
        "start, found = threading.Barrier(8), [np.zeros(1, np.float32) for _ in range(8)]\n"
        "def call(out):\n"
        "    start.wait()\n"
        "    squared_norms(np.full((1, 4), 3.0, np.float32), out)\n"
        "threads = [threading.Thread(target=call, args=(out,)) for out in found]\n"
        "[thread.start() for thread in threads]; [thread.join() for thread in threads]\n"
        "print(*np.concatenate(found))"
    )
    assert in_a_process(code) == ["36.0"] * 8


def test_a_first_call_with_other_types_than_the_kernel_is_made_for_is_refused():
    code = (
        "import numpy as np; from stillwatch.kernels.dissimilarity import squared_norms\n"
        "try: squared_norms(np.ones((1, 4)), np.zeros(1, np.float32))\n"
        "except TypeError as error: print(len(squared_norms.signatures), error)"
    )
    assert in_a_process(code)[:4] == ["1", "No", "matching", "definition"]


def test_a_kernel_is_loaded_after_those_that_it_calls_so_that_bits_do_not_depend_on_who_is_called_first():
    code = (
        "from stillwatch.kernels import sparse_code as m; from stillwatch.kernels._jit import Kernel\n"
        "order, add = [], Kernel.add_overload\n"
        "Kernel.add_overload = lambda self, code: (order.append(self.__name__), add(self, code))[1]\n"
        "m.code_and_pool.load(); m.pursue.load()\n"
        "print(*order)"
    )
    assert in_a_process(code) == ["largest_size", "place_of_largest", "subtract", "pursue", "code_and_pool"]


one = None  # the kernel that plus_two calls, set by the tests


def plus_one(x):
    return x + 1.0


def plus_two(x):
    return one(one(x))


@pytest.mark.parametrize("is_held", [False, True])
def test_what_the_cache_lacks_is_compiled_when_it_is_defined_and_what_it_holds_waits(monkeypatch, tmp_path, is_held):
    """Also of a kernel that calls another, and in a process that runs the others as plain Python."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 0)
    for _ in range(1 + is_held):
        made = _jit.kernel(types.float64(types.float64), cache=True)(plus_one)
        monkeypatch.setitem(plus_two.__globals__, "one", made)
        caller = _jit.kernel([types.float64(types.float64)], cache=True)(plus_two)
    assert [len(kernel.signatures) for kernel in (made, caller)] == ([0, 0] if is_held else [1, 1])
    assert caller(1.0) == 3.0
    assert [len(kernel.signatures) for kernel in (made, caller)] == [1, 1]
    with pytest.raises(TypeError, match="No matching definition"):
        caller("1")


def test_loading_all_loads_what_waits(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 0)
    for _ in range(2):
        made = _jit.kernel(types.float64(types.float64), cache=True)(plus_one)
    made.__module__ = gating.__name__
    monkeypatch.setattr(gating, "made", made, raising=False)
    assert load_all()["gating.made"] is made
    assert len(made.signatures) == 1
