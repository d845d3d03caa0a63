"""What of a changed config takes effect while the agent runs, and what waits for a restart.

Called by agent/process/app.py when the service manager asks (SIGHUP). A change that counts is journalled like a
command, so that a replay makes it too.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from stillwatch.settings import Config

# key of the config -> the journalled command that changes it while running, and its argument
LIVE_KEYS = {
    "events.alerts_per_hour": ("set_alert_budget", "alerts_per_hour"),
    "learning.patch_share": ("set_share", "share"),
}


def differences(old: Config, new: Config) -> dict[str, Any]:
    """Return the new values of all keys that differ, by dotted key."""
    before, after = msgspec.to_builtins(old), msgspec.to_builtins(new)
    return {
        f"{section}.{key}": value
        for section, values in after.items()
        for key, value in values.items()
        if before[section][key] != value
    }


def take_over(old: Config, new: Config, change: Callable[[str, dict[str, Any]], Any]) -> str:
    """Make the changes that can be made while running; return what was done and what was not, for people.

    Parameters
    ----------
    change : callable(command, arguments)
        Records and applies one journalled command.
    """
    changed = differences(old, new)
    for key in changed.keys() & LIVE_KEYS.keys():
        command, argument = LIVE_KEYS[key]
        change(command, {argument: changed[key]})
    done, waiting = sorted(changed.keys() & LIVE_KEYS.keys()), sorted(changed.keys() - LIVE_KEYS.keys())
    told = [f"{key} = {changed[key]} takes effect" for key in done]
    if waiting:
        told.append(f"{', '.join(waiting)} after a restart only")
    return "; ".join(told) or "nothing in it has changed"
