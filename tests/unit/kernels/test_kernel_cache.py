"""Where compiled kernels are kept: a folder of their own sources, or none where nothing can be written."""

import importlib
import os
import pathlib
import subprocess
import sys

import pytest

from stillwatch.kernels import _jit
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


def test_a_second_process_loads_what_the_first_compiled(tmp_path):
    code = (
        "from stillwatch.kernels import gating; import json;"
        "stats = [k.stats for k in vars(gating).values() if hasattr(k, 'stats')];"
        "print(sum(sum(s.cache_misses.values()) for s in stats))"
    )
    environment = {**os.environ, "STILLWATCH_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}
    misses = [
        int(
            subprocess.run(
                [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=200, check=True
            ).stdout
        )
        for _ in range(2)
    ]
    assert misses[0] > 0
    assert misses[1] == 0
