"""A config read again while the agent runs: what can change does, what cannot is named, and nothing else happens."""

import msgspec

from stillwatch.pipeline import JOURNALLED
from stillwatch.process.reload import LIVE_KEYS, differences, take_over
from stillwatch.settings import Config
from stillwatch.settings.config import EventsConfig, GateConfig, LearningConfig


def test_the_same_config_changes_nothing():
    done = []
    assert "nothing" in take_over(Config(), Config(), lambda *change: done.append(change))
    assert done == []


def test_what_can_change_does_and_what_cannot_is_named():
    done = []
    new = Config(
        events=EventsConfig(alerts_per_hour=7.0, burst=3),
        learning=LearningConfig(patch_share=0.5),
        gate=GateConfig(dark_level=3.0),
    )
    told = take_over(Config(), new, lambda *change: done.append(change))
    assert sorted(done) == [("set_alert_budget", {"alerts_per_hour": 7.0}), ("set_share", {"share": 0.5})]
    assert "events.alerts_per_hour = 7.0 takes effect" in told
    assert "events.burst, gate.dark_level after a restart only" in told
    assert set(differences(Config(), new)) == {
        "events.alerts_per_hour",
        "events.burst",
        "learning.patch_share",
        "gate.dark_level",
    }


def test_every_key_that_can_change_is_a_key_and_its_command_is_journalled():
    keys = {f"{section}.{key}" for section, keys in msgspec.to_builtins(Config()).items() for key in keys}
    assert set(LIVE_KEYS) <= keys
    assert {command for command, _ in LIVE_KEYS.values()} <= set(JOURNALLED)
