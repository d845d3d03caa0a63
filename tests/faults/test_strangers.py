"""Strangers at the ports: whatever they say, and however many they are, the agent neither grows nor runs out."""

import os
import socket

import pytest
from strangers import KINDS, Besieged, besiege, visit

from stillwatch.transport.live import MAX_CONNECTIONS

pytestmark = pytest.mark.slow

WARM = 1_000  # connections after which libzmq and the allocator have made what they keep
MOST_GROWTH = 4_000_000  # bytes: what strangers of the last moment left, which the next thousand gives back


def siege(agent, count):
    """Return what the agent held after a first wave, and after `count` strangers more."""
    besiege(agent, WARM)
    before = agent.settled()
    besiege(agent, count, seed=1)
    return before, agent.settled()


@pytest.mark.parametrize("keys", [False, True], ids=["without keys", "with keys"])
def test_2000_strangers_of_every_kind_leave_nothing_behind(keys):
    with Besieged(keys=keys) as agent:
        before, after = siege(agent, 2_000)
    assert after["rss"] - before["rss"] < MOST_GROWTH
    assert (after["descriptors"], after["threads"]) == (before["descriptors"], before["threads"])
    # A port that closes for a moment turns those away who wait at it: all but a few were let through the door.
    assert 0.99 * (WARM + 2_000) <= after["accepted"] <= WARM + 2_000
    assert after["let_in"] <= after["accepted"] // len(KINDS)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("keys", [False, True], ids=["without keys", "with keys"])
def test_100000_strangers_of_every_kind_leave_nothing_behind(keys, capsys):
    count = int(os.environ.get("STILLWATCH_SOAK_STRANGERS", "100000"))
    with Besieged(keys=keys) as agent:
        before, after = siege(agent, count)
    with capsys.disabled():
        print({"keys": keys, "before": before, "after": after, "grown": after["rss"] - before["rss"]})
    assert after["rss"] - before["rss"] < MOST_GROWTH
    assert (after["descriptors"], after["threads"]) == (before["descriptors"], before["threads"])


@pytest.mark.parametrize("keys", [False, True], ids=["without keys", "with keys"])
def test_connections_held_open_are_closed_before_they_use_up_descriptors(keys):
    held = []
    with Besieged(keys=keys) as agent:
        visit(agent.ports["data"], b"")
        before = agent.settled()
        for _ in range(MAX_CONNECTIONS + 40):
            stranger = socket.socket()
            stranger.settimeout(2.0)
            held.append(stranger)
            try:
                stranger.connect(("127.0.0.1", agent.ports["snapshot"]))
            except OSError:
                break
        while not (after := agent.held())["ports_closed"]:
            pass
        for stranger in held:
            stranger.close()
        assert after["descriptors"] < before["descriptors"] + MAX_CONNECTIONS
        assert after["told"] == ["ports_crowded"]
        while "port_bound" not in agent.held()["told"]:
            pass
        visit(agent.ports["data"], b"")
        assert agent.settled()["accepted"] > after["accepted"], "served again on the same port"
