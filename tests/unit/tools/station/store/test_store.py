"""A store is opened, checked, migrated; a damaged file is set aside and never written to again."""

import subprocess
import sys

import pytest
from sqlalchemy import update
from store_examples import T0, full_alert, score_rows, take

from stillwatch.tools.station.store import StoreError, open_store
from stillwatch.tools.station.store.migrations import VERSION
from stillwatch.tools.station.store.packed import MOST_SCORES, pack, unpack
from stillwatch.tools.station.store.tables import META

SINCE = {  # added in steps
    "alerts": ("watched_s", "judged", "visits", "alike", "here"),
    "mutes": ("place",),
    "exemplars": ("run",),
}


def test_a_store_opened_again_holds_what_it_held(address):
    store, said = open_store(address)
    take(store, full_alert())
    store.close()
    store, again = open_store(address)
    assert (said, again) == ("", "")
    assert len(store.alerts()) == 1
    store.close()


def test_a_store_of_a_later_version_is_left_as_it_is(address):
    store, _ = open_store(address)
    with store.writing() as connection:
        connection.execute(update(META).values(value=str(VERSION + 1)))
    store.close()
    with pytest.raises(StoreError, match=f"version {VERSION + 1}"):
        open_store(address)


def test_a_store_of_the_first_version_is_brought_to_this_one_with_what_it_holds(address):
    store, _ = open_store(address)
    take(store, full_alert())
    with store.writing() as connection:
        for table, names in SINCE.items():
            for name in names:
                connection.exec_driver_sql(f"ALTER TABLE {table} DROP COLUMN {name}")
        connection.exec_driver_sql("DROP TABLE kinds")
        connection.execute(update(META).values(value="1"))
    store.close()
    store, said = open_store(address)
    store.add_mute(agent="cam1", kind="", place="top", user="ann", now_ns=T0, until_ns=T0 + 10)
    assert (said, len(store.alerts()), store.mutes(T0)[0]["place"], store.kinds("cam1")) == ("", 1, "top", [])
    store.close()


@pytest.mark.parametrize("damage", ["no database", "torn page", "cut"])
def test_a_damaged_file_is_set_aside_and_said(tmp_path, damage):
    path = tmp_path / "station.db"
    store, _ = open_store(str(path))
    take(store, *(full_alert(event=n) for n in range(300)))
    store.close()
    data = bytearray(path.read_bytes())
    if damage == "no database":
        data[:100] = b"x" * 100
    elif damage == "torn page":
        data[4096 * 3 : 4096 * 30] = b"\xa5" * (4096 * 27)
    else:
        del data[len(data) // 2 :]
    path.write_bytes(data)
    store, said = open_store(str(path))
    (aside,) = tmp_path.glob("station.db.damaged-*Z")
    assert "damaged" in said
    assert str(aside) in said
    assert aside.read_bytes() == bytes(data)
    assert store.alerts() == []
    store.close()


def test_labelled_and_unacknowledged_alerts_go_last(store):
    with store.writing() as connection:
        store.take_scores(connection, "cam1", "r", score_rows(10))
    taken = take(store, *(full_alert(event=n, told_s=n) for n in range(3)))
    store.set_label(taken[0].id, "ann", T0, "cat")
    for alert in (taken[0], taken[2]):
        store.acknowledge(alert.id, "ann", T0)
    kept = []
    while store.make_room(0):
        kept.append((store.score_days("cam1") != (0, 0), sorted(row["event"] for row in store.alerts())))
    assert kept == [(False, [0, 1, 2]), (False, [0, 1]), (False, [0]), (False, [])]


def test_old_scores_and_handled_alerts_are_forgotten(store):
    with store.writing() as connection:
        store.take_scores(connection, "cam1", "r", score_rows(10))
    taken = take(store, *(full_alert(event=n, told_s=n) for n in range(3)))
    store.acknowledge(taken[1].id, "ann", T0)
    day = 86_400 * 10**9
    assert store.forget_old(T0 + 5 * day, score_days=3, alert_days=10) == 1
    assert store.forget_old(T0 + 15 * day, score_days=3, alert_days=10) == 1
    assert sorted(row["event"] for row in store.alerts()) == [0, 2]


def test_packed_scores_are_the_scores_and_damage_is_an_error():
    rows = score_rows(500)
    found = unpack(pack(rows))
    for name in ("frames", "times", "values", "rarities", "flags"):
        assert (getattr(found, name) == getattr(rows, name)).all()
    with pytest.raises(ValueError, match="damaged"):
        unpack(pack(rows)[:-20])
    with pytest.raises(ValueError, match=f"limit {MOST_SCORES}"):
        pack(score_rows(MOST_SCORES + 1))


READS_AND_CLOSES = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("SELECT count(*) FROM alerts").fetchone()
connection.close()
"""


def read_elsewhere(path):
    """Open a store in another process, as `sqlite3` or a second command does, and close it."""
    subprocess.run([sys.executable, "-c", READS_AND_CLOSES, str(path)], check=True, timeout=60)


@pytest.mark.parametrize("is_whole", [False, True])
def test_after_a_look_at_its_file_the_store_still_holds_its_log_against_who_closes_elsewhere(tmp_path, is_whole):
    path = tmp_path / "s.db"
    store, _ = open_store(str(path))
    take(store, full_alert())
    assert store.fault(is_whole=is_whole) == ""
    read_elsewhere(path)
    assert path.with_name("s.db-wal").exists()  # the last one to close removes it
    store.close()


def test_looks_by_a_store_that_begins_anew_see_the_new_file(tmp_path):
    path = tmp_path / "s.db"
    store, _ = open_store(str(path))
    store.begin_anew("it was hit", store.begun)
    assert store.fault() == ""
    path.write_bytes(b"no store" * 1000)
    assert "no longer begins as one" in store.fault()
    path.unlink()
    assert store.fault() == f"store {path} is gone"
    store.close()
