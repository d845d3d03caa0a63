"""A store with millions of scores and alerts, and how long each page of it takes.

Used by `bench station`. Rows are entered as ingest enters them, in bulk: what is measured is the asking.
"""

import contextlib
import datetime
import pathlib
import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from stillwatch.base import UsageError
from stillwatch.tools.station.bench.fleet import name_of, picture
from stillwatch.tools.station.bench.served import Served, fetch
from stillwatch.tools.station.store import Picture, Store, open_store, rows_of

NS = 10**9
DAY_S = 86_400
STRETCH, HZ = 50, 5.0  # scores of one row, and a second of one agent: ten seconds a row
STRETCH_NS = int(STRETCH / HZ * NS)
DAYS = 60
PICTURED = 50  # one alert in so many has its picture here: they are looked at one by one
KINDS = ("novel", "new_category", "returned", "vanished", "scene_change")
A_TIME = 5000
UIDS = "bench:1:"  # by which a store is known that was filled here
LATELY_NS = 900 * NS
Row = dict[str, Any]


def page_rows(folder: pathlib.Path, address: str, n: int, scores: int, alerts: int, times: int) -> list[Row]:
    """Fill an empty store, serve it, and return a row for each page: milliseconds, median and most of `times`.

    A store that the bench filled before is served again, with the scores of its last minutes entered anew.

    Raises
    ------
    UsageError
        The store holds something else.
    """
    store, _ = open_store(address)
    try:
        newest = store.alerts(limit=1)
        if newest and newest[0]["uid"].startswith(UIDS):
            now_ns = time.time_ns()
            _fill_scores(store, np.random.default_rng(), len(store.agents()), now_ns - LATELY_NS)
        elif newest or store.agents():
            raise UsageError(f"--store {store.name}: it is not empty; give an empty one, which the bench fills")
        else:
            now_ns = _fill(store, n, scores, alerts)
        middle = store.alerts(limit=1)[0]["id"]
        size_mb = store.bytes_used() / 1e6
    finally:
        store.close()
    with Served(folder, f'[station]\nstore = "{address}"\nmax_bytes = {10**15}\n') as station:
        rows = []
        for path in _paths(now_ns, middle):
            with contextlib.closing(station.connection()) as connection:
                took = [_timed(connection, path) for _ in range(times)]
            row = {"what": "page", "page": path, "median_ms": statistics.median(took), "most_ms": max(took)}
            rows.append(row | {"first_ms": took[0], "store_mb": size_mb})
        return rows


def _timed(connection: Any, path: str) -> float:
    status, _, ms = fetch(connection, path)
    if status != 200:
        raise RuntimeError(f"{path} answered {status}")
    return ms


def _paths(now_ns: int, alert: int) -> list[str]:
    """Return every page, its parts, and the filters that are asked for."""
    agent = name_of(7)
    today = datetime.datetime.fromtimestamp(now_ns / NS, datetime.UTC).date()
    filters = (
        "",
        "?open=1",
        f"?agent={agent}",
        f"?agent={agent}&open=1",
        "?kind=returned",
        "?label=parked+car",
        "?useful=1",
        f"?agent={agent}&kind=returned&label=parked+car&useful=0&open=1",
        f"?before={now_ns - 30 * DAY_S * NS}.{alert}",
    )
    return [
        "/",
        "/parts/fleet",
        "/parts/newest",
        f"/agents/{agent}",
        f"/agents/{agent}?span=604800",
        f"/agents/{agent}/rest",
        f"/agents/{agent}/day?date={today - datetime.timedelta(days=2)}",
        f"/agents/{agent}/commands",
        f"/agents/{agent}/picture.jpg",
        *(f"/alerts{query}" for query in filters),
        f"/alerts/{alert}",
        "/map",
        f"/map?agent={agent}",
        "/notifications",
        "/audit",
        "/api/v1/agents?limit=500",
        "/api/v1/alerts?limit=500",
        f"/api/v1/scores?agent={agent}&limit=500",
        "/api/v1/labels?limit=500",
        "/metrics",
        "/healthz",
    ]


def _fill(store: Store, n: int, scores: int, alerts: int) -> int:
    """Enter alerts over DAYS days, scores, and agents; return the time (ns) of the last, which is now.

    Scores come in order of time, as agents tell them, and those that filling took the time of are entered as well: the
    last minutes that the fleet's page shows are not empty.
    """
    random = np.random.default_rng(3)
    shown = picture(random)
    _fill_alerts(store, random, shown, n, alerts)
    end_ns = _fill_scores(store, random, n, time.time_ns() - scores // (n * STRETCH) * STRETCH_NS)
    with store.writing() as connection:
        for number in range(n):
            values = {"link": "folder", "planes": "folder", "heard_ns": end_ns, "state": "live", "learning": 1.0,
                      "frames": 361_000, "rate_hz": HZ, "source_kind": "rtsp", "source_uri": "rtsp://camera/main",
                      "rarity": 24.0, "novelty": 0.4, "score_ns": end_ns}  # fmt: skip
            store.take_agent(connection, name_of(number), values)
            taken = Picture(shown, "image/jpeg", 320, 240, 1, end_ns, [[0.2, 0.3, 0.5, 0.6]])
            store.take_agent_picture(connection, name_of(number), -1, taken)
        connection.exec_driver_sql("ANALYZE")  # as a database does by itself in time
    return end_ns


def _fill_scores(store: Store, random: np.random.Generator, n: int, from_ns: int) -> int:
    """Enter scores of a time up to now, with those of the time that this takes; return the time (ns) of the last."""
    end_ns = time.time_ns()
    while (end_ns - from_ns) // STRETCH_NS:
        with store.writing() as connection:
            for stretches in _in_parts(_stretches(random, from_ns, end_ns, n)):
                store.fill_scores(connection, "bench", stretches)
        from_ns += (end_ns - from_ns) // STRETCH_NS * STRETCH_NS
        end_ns = time.time_ns()
    return end_ns


def _fill_alerts(store: Store, random: np.random.Generator, shown: bytes, n: int, alerts: int) -> None:
    """Enter alerts, one in PICTURED with a picture."""
    now_ns = time.time_ns()
    with store.writing() as connection:
        for told in _in_parts(_alerts(random, now_ns, n, alerts)):
            store.fill_alerts(connection, told)
        jpeg = {"width": 320, "height": 240, "picture": shown, "frame": 1, "at_ns": now_ns, "plane": "live"}
        pictures = ({"alert": alert, **jpeg} for alert in range(PICTURED, alerts + 1, PICTURED))
        for some in _in_parts(pictures):
            store.fill_pictures(connection, some)


def _stretches(random: np.random.Generator, from_ns: int, end_ns: int, n: int) -> Iterator[tuple[str, Any]]:
    """Yield (agent, scores) of each whole stretch of a time, in order of time."""
    step_ns = STRETCH_NS // STRETCH
    for at_ns in range(from_ns, end_ns - STRETCH_NS + 1, STRETCH_NS):
        values = random.gamma(2.0, 0.4, (n, STRETCH))
        first = at_ns // step_ns
        for number in range(n):
            pairs = zip(values[number].tolist(), np.exp(values[number]).tolist(), strict=True)
            rows = [(first + k, at_ns + k * step_ns, value, rarity, 0) for k, (value, rarity) in enumerate(pairs)]
            yield name_of(number), rows_of(rows)


def _alerts(random: np.random.Generator, now_ns: int, n: int, alerts: int) -> Iterator[Row]:
    """Yield alerts, oldest first: one in ten waits, one in a hundred has a label, one in three a place."""
    step_ns = DAYS * DAY_S * NS // alerts
    for i in range(alerts):
        at_ns = now_ns - (alerts - i) * step_ns
        draw = random.random(4)
        has_place = i % 3 == 0
        yield {
            "id": i + 1, "agent": name_of(i % n), "uid": f"{UIDS}{i}", "event": i, "event16": i % 65_536,
            "run": "bench", "epoch": 1, "kind": KINDS[i % 7 % len(KINDS)], "phase": "end", "severity": float(draw[0]),
            "at_ns": at_ns, "start_ns": at_ns, "told_ns": at_ns, "received_ns": at_ns, "own_start_ns": at_ns,
            "own_told_ns": at_ns,
            "duration_s": 5.0, "frame": i, "start_frame": i, "peak": 5.0, "rarity": float(10 ** (1 + 4 * draw[1])),
            "x": 0.4, "y": 0.5, "boxes": "[[0.2, 0.3, 0.5, 0.6]]", "picture_frame": i,
            "latitude": 59.0 + draw[2] if has_place else None, "longitude": 18.0 + draw[3] if has_place else None,
            "planes": "live", "has_picture": (i + 1) % PICTURED == 0, "acknowledged_ns": 0 if i % 10 == 0 else at_ns,
            "acknowledged_by": "" if i % 10 == 0 else "ann", "useful": None if i % 20 else bool(i % 40),
            "label": "" if i % 100 else ("parked car", "diver", "cat")[i // 100 % 3],
        }  # fmt: skip


def _in_parts(items: Iterator[Any]) -> Iterator[list[Any]]:
    """Yield lists of A_TIME items."""
    part: list[Any] = []
    for item in items:
        part.append(item)
        if len(part) == A_TIME:
            yield part
            part = []
    if part:
        yield part
