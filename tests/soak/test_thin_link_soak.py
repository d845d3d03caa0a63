"""Thin links at full length: 200 kills of either side, a million hostile frames, a day on a bad link."""

import os

import pytest
from faults.test_thin_link_kill import check_exactly_once
from faults.test_thin_link_loss import run_dive
from fuzz.test_thin_fuzz import run_fuzz
from thin_world import BAD_LINK, World

from stillwatch.transport.thin.presets import PRESETS


def resident_bytes():
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]


def test_200_kills_of_either_side_lose_and_double_nothing(tmp_path):
    check_exactly_once(tmp_path, kills=200, seed=2026)


def test_a_million_hostile_frames_and_no_memory_growth(tmp_path, monkeypatch):
    monkeypatch.setattr("os.fdatasync", lambda descriptor: None)
    run_fuzz(tmp_path / "warm", seed=0, n=100_000)
    before = resident_bytes()
    receiver = run_fuzz(tmp_path / "soak", seed=1, n=1_000_000)
    assert receiver.scheduler.count("ack") <= 64
    assert resident_bytes() - before < 8_000_000


@pytest.mark.parametrize("preset", PRESETS)
def test_a_day_on_a_bad_link(tmp_path, preset):
    world = World(tmp_path, PRESETS[preset], BAD_LINK, seed=9)
    raised = run_dive(world, hours=24.0, seed=9)
    assert world.received == dict.fromkeys(raised, 1)
    assert world.most_bytes_in_10_minutes() <= PRESETS[preset].up.window_bytes
