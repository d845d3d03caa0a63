"""What a store is told in tests: alerts of both planes, scores."""

from stillwatch.tools.station.store import LIVE, THIN, AlertHeard, Picture, rows_of

T0 = 1_700_000_000_000_000_000
SECOND = 1_000_000_000
PICTURE = Picture(b"jpeg", "image/jpeg", 32, 24, 100, T0, [[0.1, 0.2, 0.3, 0.4]])


def full_alert(event=7, phase="new", told_s=1.0, *, agent="cam1", start_s=0.0, run="r", epoch=1, key=None, **more):
    """An alert of the live plane, told and begun so many seconds after T0."""
    fields = {"kind": "novelty", "run": run, "epoch": epoch, "x": 0.5, "exemplar": 3, **more.pop("fields", {})}
    told_ns = T0 + int(told_s * SECOND)
    start_ns = T0 + int(start_s * SECOND)
    return AlertHeard(
        agent, more.pop("plane", LIVE), f"{run}:{epoch}:{event}", key or f"{phase}{told_s}", event, phase,
        more.pop("severity", 0.5), told_ns, start_ns, told_ns, start_ns, told_ns, fields=fields, **more,
    )  # fmt: skip


def thin_alert(event=7, phase="new", told_s=1.0, *, agent="cam1", key=None, knows_time=True):
    """An alert as a thin link tells it: told to 1/32 s, the event's number modulo 65,536."""
    told_ns = T0 + int(told_s * 32) * SECOND // 32
    own_ns = told_ns if knows_time else 0
    return AlertHeard(
        agent, THIN, "", key or f"1:{event}{phase}{told_s}", event % 65_536, phase, 3 / 7, told_ns, told_ns, own_ns, 0,
        told_ns, fields={"kind": "novelty"},
    )  # fmt: skip


def score_rows(n, *, start_s=0.0, hz=10.0, first=0, value=1.0, rarity=50.0, flags=0):
    """So many equal scores in a row."""
    return rows_of([(first + i, T0 + int((start_s + i / hz) * SECOND), value, rarity, flags) for i in range(n)])


def take(store, *alerts):
    """Enter alerts, each in a transaction of its own; return what became of them."""
    taken = []
    for alert in alerts:
        with store.writing() as connection:
            taken.append(store.take_alert(connection, alert))
    return taken
