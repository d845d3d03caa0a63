"""Makes alerts by hand, for tests of what people are told."""

from stillwatch.transport.wire import Alert

WALL_NS = 1_790_000_047 * 10**9  # 21 September 2026, 14:14:07 UTC


def alert(**fields):
    """Return alert 3 of a made-up run, with some fields changed."""
    about = {"id": 3, "alert_kind": "novel", "phase": "new", "frame": 517, "x": 0.9, "y": 0.8, "rarity": 2341.4}
    head = {"agent": "door", "run": "r", "boot": "b", "epoch": 1, "sequence": 0, "t_ns": 0, "mono_ns": 0}
    return Alert(**head, wall_ns=WALL_NS, **(about | fields))
