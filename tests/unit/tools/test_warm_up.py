"""Compiling beforehand: a run's own process must not keep the compiler's memory, and asks for it once only."""

import pytest

from stillwatch.tools import warm_up


@pytest.fixture
def children(monkeypatch, tmp_path):
    """Give a cache folder of the test's own; return the commands that were started."""
    started = []
    monkeypatch.setattr(warm_up, "cache_folder", lambda: tmp_path)
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    monkeypatch.setattr(warm_up.subprocess, "run", lambda command, **_: started.append(command))
    return started


def test_what_is_not_compiled_is_compiled_in_a_process_of_its_own(children):
    warm_up.compile_apart()
    assert [command[-1] for command in children] == ["warm-up"]


def test_a_complete_cache_starts_no_process(children, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(warm_up, "load_all", dict)
    warm_up.main(type("Arguments", (), {"json": False})())
    warm_up.compile_apart()
    assert children == []


@pytest.mark.parametrize("without", ["a cache", "the JIT"])
def test_nothing_is_compiled_apart_that_nobody_could_load(without, children, monkeypatch):
    if without == "a cache":
        monkeypatch.setattr(warm_up, "cache_folder", lambda: None)
    else:
        monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    warm_up.compile_apart()
    assert children == []
