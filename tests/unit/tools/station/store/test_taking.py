"""One alert is one row, whatever plane told it, in whatever order and however often."""

import itertools

import pytest
from store_examples import PICTURE, SECOND, T0, full_alert, score_rows, take, thin_alert

from stillwatch.tools.station.store import FOLDER, taking


def test_an_alert_told_again_by_the_same_message_is_not_another(store):
    first, again = take(store, full_alert(), full_alert())
    assert (first.is_new, again.is_new, again.is_changed) == (True, False, False)
    assert len(store.alerts()) == 1


def test_phases_of_one_event_are_one_alert_that_ends(store):
    take(store, full_alert(phase="new"), full_alert(phase="update", told_s=3.0), full_alert(phase="end", told_s=9.0))
    (alert,) = store.alerts()
    assert alert["phase"] == "end"
    assert [row["phase"] for row in store.alert(alert["id"])["updates"]] == ["new", "update", "end"]


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_a_thin_links_alert_and_the_full_message_are_one_in_every_order(sqlite_store, order):
    told = [thin_alert(), full_alert(), thin_alert(phase="end", told_s=9.0), full_alert(phase="end", told_s=9.0)]
    take(sqlite_store, *(told[i] for i in order))
    (alert,) = sqlite_store.alerts()
    assert (alert["uid"], alert["phase"], alert["exemplar"]) == ("r:1:7", "end", 3)
    assert set(alert["planes"].split(",")) == {"live", "thin"}


def test_a_late_full_message_says_more_of_what_a_thin_link_told(store):
    (first,) = take(store, thin_alert())
    assert store.alert(first.id)["x"] is None
    (second,) = take(store, full_alert(picture=PICTURE))
    assert (second.id, second.is_new) == (first.id, False)
    found = store.alert(first.id)
    assert (found["x"], found["planes"], found["has_picture"]) == (0.5, "thin,live", True)


def test_event_numbers_beyond_16_bits_are_known_by_what_a_thin_link_says_of_them(store):
    take(store, thin_alert(event=70_000), full_alert(event=70_000))
    assert [row["event"] for row in store.alerts()] == [70_000]


def test_an_agent_that_begins_anew_with_the_same_numbers_tells_other_alerts(store):
    take(store, full_alert(phase="new"), full_alert(phase="end", told_s=9.0))
    take(store, thin_alert(told_s=3600.0), full_alert(run="later", told_s=3600.0, start_s=3599.0))
    assert [row["uid"] for row in store.alerts()] == ["later:1:7", "r:1:7"]


def test_a_vehicle_without_the_time_is_matched_by_number_while_the_event_goes_on(store):
    take(store, full_alert(), thin_alert(knows_time=False), thin_alert(phase="end", told_s=9.0, knows_time=False))
    (alert,) = store.alerts()
    assert alert["phase"] == "end"


def test_agents_do_not_share_alerts(store):
    take(store, full_alert(agent="cam1"), full_alert(agent="cam2"), thin_alert(agent="cam3"))
    assert len(store.alerts()) == 3


def test_a_run_folder_of_what_was_heard_live_tells_nothing_new(store):
    take(store, full_alert(picture=PICTURE))
    (again,) = take(store, full_alert(picture=PICTURE, plane=FOLDER))
    assert not again.is_changed
    assert store.alerts()[0]["planes"] == "live"


def test_of_many_pictures_of_an_alert_the_newest_are_kept(store):
    import dataclasses

    for number in range(10):
        picture = dataclasses.replace(PICTURE, frame=number, data=bytes([number]))
        take(store, full_alert(phase="new" if not number else "update", told_s=1.0 + number, picture=picture))
    alert = store.alert(store.alerts()[0]["id"])
    assert [row["frame"] for row in alert["pictures"]] == [4, 5, 6, 7, 8, 9]
    assert store.alert_picture(alert["id"])["picture"] == bytes([9])
    assert store.agent_picture("cam1")["alert"] == alert["id"]


def test_scores_that_were_taken_are_not_taken_again(store):
    with store.writing() as connection:
        assert store.take_scores(connection, "cam1", "r", score_rows(50))
        assert not store.take_scores(connection, "cam1", "r", score_rows(50))
    assert len(store.scores("cam1", T0, T0 + 10**12)) == 50


def test_what_a_transaction_did_not_finish_is_not_there(store):
    def begin_and_fail():
        with store.writing() as connection:
            store.take_alert(connection, full_alert())
            raise KeyError

    with pytest.raises(KeyError):
        begin_and_fail()
    assert store.alerts() == []


def test_notices_of_an_agent_are_bounded(store, monkeypatch):
    monkeypatch.setattr(taking, "ROWS_KEPT", 20)
    with store.writing() as connection:
        for number in range(200):
            values = {"at_ns": number, "received_ns": number, "code": "x", "text": str(number)}
            store.take_notice(connection, "cam1", values)
    assert 20 <= len(store.notices("cam1", limit=5000)) <= 84


def take_kind(store, values, removed=(), most=10):
    with store.writing() as connection:
        store.take_kind(connection, "cam1", values, removed, most)


def test_a_kind_of_visits_keeps_its_first_visit_and_its_picture_when_more_of_it_came(store):
    take_kind(store, {"kind": 3, "count": 2, "first_ns": T0, "last_ns": T0 + 5, "picture": b"jpeg"})
    take_kind(store, {"kind": 3, "count": 4, "first_ns": T0 + 7, "last_ns": T0 + 9})
    (kind,) = store.kinds("cam1")
    assert (kind["count"], kind["first_ns"], kind["last_ns"], kind["has_picture"]) == (4, T0, T0 + 9, True)
    assert bytes(store.kind("cam1", 3)["picture"]) == b"jpeg"


def test_an_agent_that_began_anew_counts_its_kinds_from_then_on(store):
    take_kind(store, {"kind": 3, "count": 9, "first_ns": T0, "last_ns": T0 + 5})
    take_kind(store, {"kind": 3, "count": 1, "first_ns": T0 + 7, "last_ns": T0 + 7})
    assert [(kind["count"], kind["first_ns"]) for kind in store.kinds("cam1")] == [(1, T0 + 7)]


def test_kinds_that_an_agent_remembers_no_more_go_and_so_do_those_beyond_the_most(store):
    for kind in range(4):
        take_kind(store, {"kind": kind, "count": 1, "first_ns": T0, "last_ns": T0 + kind}, most=3)
    take_kind(store, {}, removed=[2])
    assert [kind["kind"] for kind in store.kinds("cam1")] == [1, 3]
    assert store.kinds("cam2") == []


def told_kind(store, kind, count, last_s, run, **more):
    at_ns = T0 + int(last_s * SECOND)
    values = {"kind": kind, "count": count, "first_ns": T0, "last_ns": at_ns, "run": run, **more}
    with store.writing() as connection:
        store.take_kind(connection, "cam1", values, [], 64)


def told_exemplar(store, exemplar, at_s, run, **more):
    values = {"role": "frame", "exemplar": exemplar, "at_ns": T0 + int(at_s * SECOND), "run": run, **more}
    with store.writing() as connection:
        store.take_exemplar(connection, "cam1", values, [], 200)


def test_kinds_go_on_with_a_run_and_those_of_an_agent_that_began_anew_are_others(store):
    told_kind(store, 1, 9, 50.0, "one", picture=b"cat")
    told_kind(store, 2, 4, 60.0, "one", picture=b"dog")
    told_kind(store, 1, 9, 50.0, "two", first_ns=T0 + 40 * SECOND)  # goes on: all are told again
    told_kind(store, 2, 5, 90.0, "two")
    assert [(row["kind"], row["count"]) for row in store.kinds("cam1")] == [(1, 9), (2, 5)]
    assert (store.kind("cam1", 1)["first_ns"], store.kind("cam1", 1)["picture"]) == (T0, b"cat")
    told_kind(store, 2, 1, 100.0, "fresh", first_ns=T0 + 100 * SECOND)  # begun anew: another thing of that number
    (row,) = store.kinds("cam1")
    assert (row["kind"], row["count"], row["first_ns"]) == (2, 1, T0 + 100 * SECOND)
    assert not row["has_picture"]


def test_exemplars_are_of_the_run_that_told_them_last_and_keep_no_other_runs_picture(store):
    for number in range(3):
        told_exemplar(store, number, 10.0 + number, "one", picture=b"old")
    told_exemplar(store, 1, 11.5, "one", share=0.2)
    assert store.exemplar("cam1", 1)["picture"] == b"old", "the same one, told again without it"
    told_exemplar(store, 7, 5.0, "one", role="topics:most_typical")
    told_exemplar(store, 0, 30.0, "two")
    found = {(row["role"], row["exemplar"]): row["has_picture"] for row in store.exemplars("cam1")}
    assert found == {("frame", 0): False, ("topics:most_typical", 7): False}
    assert store.exemplars("cam1", limit=1) != []
