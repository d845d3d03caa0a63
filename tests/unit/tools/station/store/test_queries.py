"""What the page asks of the store, on both databases."""

from store_examples import PICTURE, SECOND, T0, full_alert, score_rows, take

from stillwatch.tools.station.store import LEARNING, REFUSED, AlertFilter, Sparks


def enter_scores(store, agent, *stretches):
    with store.writing() as connection:
        for rows in stretches:
            store.take_scores(connection, agent, "r", rows)


def test_pages_of_alerts_hold_each_alert_once_newest_first(store):
    take(store, *(full_alert(event=n, told_s=n // 2) for n in range(11)))
    seen, before = [], None
    while rows := store.alerts(before=before, limit=4):
        seen += [row["event"] for row in rows]
        before = rows[-1]["at_ns"], rows[-1]["id"]
    assert seen == list(range(10, -1, -1))


def test_the_page_before_one_is_found(store):
    take(store, *(full_alert(event=n, told_s=n) for n in range(6)))
    third = store.alerts()[2]
    rows = store.newer_alerts(after=(third["at_ns"], third["id"]))
    assert [row["event"] for row in rows] == [5, 4]


def test_filters_of_alerts_go_together(store):
    take(store, full_alert(event=1, severity=0.9), full_alert(event=2, agent="cam2"), full_alert(event=3, phase="end"))
    take(store, full_alert(event=4, fields={"kind": "returned"}))
    one = next(row["id"] for row in store.alerts() if row["event"] == 1)
    store.acknowledge(one, "ann", T0)
    store.set_label(one, "ann", T0, "cat")
    store.set_useful(one, "ann", T0, True)

    def events(**wanted):
        return {row["event"] for row in store.alerts(AlertFilter(**wanted))}

    assert events(agent="cam2") == {2}
    assert events(kind="returned") == {4}
    assert events(waiting=True) == {2, 3, 4}
    assert events(waiting=False) == events(label="cat") == events(useful=True) == events(has_label=True) == {1}
    assert events(from_ns=T0 + 2 * SECOND) == set()
    assert events(agent="cam1", waiting=True) == {3, 4}


def test_acts_on_an_alert_are_written_down_with_who_did_them(store):
    (taken,) = take(store, full_alert())
    assert store.acknowledge(taken.id, "ann", T0 + 1)
    assert not store.acknowledge(taken.id, "bob", T0 + 2)
    assert store.add_note(taken.id, "bob", T0 + 3, "a crab")
    assert store.set_label(taken.id, "ann", T0 + 4, "crab")
    assert store.set_useful(taken.id, "ann", T0 + 5, False)
    found = store.alert(taken.id)
    assert (found["acknowledged_by"], found["label"], found["useful"]) == ("ann", "crab", False)
    assert [(row["user"], row["act"], row["text"]) for row in found["events"]] == [
        ("ann", "acknowledge", ""), ("bob", "note", "a crab"), ("ann", "label", "crab"), ("ann", "useful", "no"),
    ]  # fmt: skip
    assert not store.add_note(taken.id + 1, "ann", T0, "of nothing")


def test_muted_alerts_wait_for_nobody(store):
    mute = store.add_mute(agent="cam1", kind="novelty", user="ann", now_ns=T0, until_ns=T0 + 10 * SECOND)
    take(store, full_alert(event=1), full_alert(event=2, agent="cam2"), full_alert(event=3, told_s=11.0))
    assert {row["event"]: row["is_muted"] for row in store.alerts()} == {1: True, 2: False, 3: False}
    assert store.waiting_count() == 2
    assert [row["id"] for row in store.mutes(T0 + 1)] == [mute]
    assert store.end_mute(mute, T0 + 1)
    assert store.mutes(T0 + 2) == []


def test_a_mute_of_a_place_holds_in_that_ninth_of_the_picture_alone(store):
    store.add_mute(agent="cam1", kind="", place="upper left", user="ann", now_ns=T0, until_ns=T0 + 10 * SECOND)
    places = {1: (0.1, 0.2), 2: (0.1, 0.9), 3: (0.3, 0.3), 4: (0.5, 0.1), 5: (None, None)}
    take(store, *(full_alert(event=event, fields={"x": x, "y": y}) for event, (x, y) in places.items()))
    muted = {row["event"] for row in store.alerts() if row["is_muted"]}
    assert muted == {1, 3}


def test_an_agent_that_is_removed_leaves_nothing_and_others_are_untouched(store, monkeypatch):
    monkeypatch.setattr("stillwatch.tools.station.store.agents.REMOVED_A_TIME", 2)
    with store.writing() as connection:
        for agent in ("cam1", "cam2"):
            store.take_agent(connection, agent, {"heard_ns": T0})
            for start in range(3):
                store.take_scores(connection, agent, "r", score_rows(10, start_s=start))
            store.take_notice(connection, agent, {"at_ns": T0, "received_ns": T0, "code": "x", "text": "y"})
    alerts = [full_alert(event=n, agent=agent, picture=PICTURE) for n in range(5) for agent in ("cam1", "cam2")]
    taken = take(store, *alerts)
    assert store.remove_agent("cam1")
    assert store.agent("cam1") is None
    assert [store.alert(one.id) is None for one in taken] == [True, False] * 5
    assert store.alert_picture(taken[0].id) is None
    assert (store.notices("cam1"), store.scores("cam1", 0, 2**62)) == ([], [])
    assert (len(store.scores("cam2", 0, 2**62)), len(store.notices("cam2"))) == (30, 1)
    assert not store.remove_agent("cam1")


def test_the_fleet_shows_how_many_alerts_wait_for_each_agent(store):
    with store.writing() as connection:
        store.take_agent(connection, "cam1", {"heard_ns": T0, "state": "live"})
        store.take_agent(connection, "cam2", {"heard_ns": T0})
        store.take_agent(connection, "cam1", {"state": "dark"})
    take(store, full_alert(event=1), full_alert(event=2))
    store.acknowledge(store.alerts()[0]["id"], "ann", T0)
    rows = {row["agent"]: (row["waiting"], row["state"], row["heard_ns"]) for row in store.agents()}
    assert rows == {"cam1": (1, "dark", T0), "cam2": (0, "", T0)}
    assert store.agent("cam3") is None


def test_a_strip_says_the_highest_of_each_part_of_a_time(store):
    enter_scores(store, "cam1", score_rows(100, rarity=10.0), score_rows(100, start_s=10, first=100, rarity=700.0))
    enter_scores(store, "cam1", score_rows(50, start_s=40, first=400, value=None, rarity=None, flags=LEARNING))
    parts = store.score_strip("cam1", T0, T0 + 60 * SECOND, 6)
    assert [(p["n"], p["rarity"], p["n_learning"]) for p in parts] == [(100, 10.0, 0), (100, 700.0, 0), (50, None, 50)]
    assert parts[1]["at_ns"] == T0 + 10 * SECOND
    assert parts[1]["end_ns"] == T0 + 10 * SECOND + 99 * SECOND // 10


def test_sparklines_are_of_every_agent_at_once(store):
    enter_scores(store, "cam1", score_rows(100, rarity=10.0))
    enter_scores(store, "cam2", score_rows(100, start_s=30, rarity=20.0))
    sparks = Sparks(store, 40 * SECOND, 4)
    wanted = {"cam1": [10.0, None, None, None], "cam2": [None, None, None, 20.0]}
    assert sparks.lines(T0 + 40 * SECOND) == wanted


def test_sparklines_move_on_with_what_was_entered_since(store, monkeypatch):
    monkeypatch.setattr("stillwatch.tools.station.store.scores.OVERLAP", 1)
    sparks, fresh = Sparks(store, 40 * SECOND, 4), lambda: Sparks(store, 40 * SECOND, 4)
    for step in range(12):
        name = f"cam{step % 3}"
        enter_scores(store, name, score_rows(10, start_s=5 * step, first=50 * step, rarity=10.0 + step))
        now_ns = T0 + (5 * step + 2) * SECOND
        assert sparks.lines(now_ns) == fresh().lines(now_ns)
    assert sparks.lines(now_ns + 60 * SECOND) == {}


def test_single_scores_come_back_as_they_were_said(store):
    enter_scores(store, "cam1", score_rows(3, value=1.5, rarity=4.0), score_rows(2, start_s=1, first=3, flags=REFUSED))
    rows = store.scores("cam1", T0, T0 + 60 * SECOND)
    assert [row["frame"] for row in rows] == [0, 1, 2, 3, 4]
    assert rows[0] == {
        "frame": 0, "at_ns": T0, "value": 1.5, "rarity": 4.0, "is_learning": False, "is_refused": False,
    }  # fmt: skip
    assert [row["frame"] for row in store.scores("cam1", T0, T0 + 60 * SECOND, most=2)] == [3, 4]
    assert store.score_days("cam1") == (T0, T0 + SECOND)


def test_distinct_labels_are_told(store):
    taken = take(store, full_alert(event=1), full_alert(event=2, fields={"kind": "returned"}), full_alert(event=3))
    store.set_label(taken[0].id, "ann", T0, "cat")
    store.set_label(taken[1].id, "ann", T0, "ant")
    assert store.labels() == ["ant", "cat"]


def test_users_and_their_sessions_come_and_go(store):
    assert store.add_user("ann", "hash", "act", 1.0)
    assert not store.add_user("ann", "other", "see", 1.0)
    store.add_session("digest", "ann", "cookie", 1.0, 9.0)
    assert store.session("digest")["role"] == "act"
    assert store.set_role("ann", "see")
    assert store.session("digest")["role"] == "see"
    store.touch_session("digest", 5.0)
    assert store.session("digest")["used_s"] == 5.0
    assert store.remove_user("ann")
    assert store.session("digest") is None
    assert store.user_count() == 0


def test_a_notification_is_queued_once_and_shown_when_it_is_dead(store):
    values = {"uid": "u1", "channel": "hook", "due_ns": T0, "created_ns": T0}
    with store.writing() as connection:
        assert store.enqueue(connection, values)
        assert not store.enqueue(connection, values)
        assert store.enqueue(connection, {**values, "channel": "mail"})
    (row,) = store.due_notifications("hook", T0)
    store.notification_failed(row["id"], "refused", T0 + 5)
    assert store.due_notifications("hook", T0) == []
    assert store.channel_faults() == {"hook": "refused"}
    store.notification_dead(row["id"], "gave up")
    assert [(dead["uid"], dead["tries"]) for dead in store.dead_notifications()] == [("u1", 2)]
    assert store.revive_notification(row["id"], T0)
    (again,) = store.due_notifications("hook", T0)
    store.notification_sent(again["id"])
    assert store.channel_counts()["hook"] == {"waiting": 0, "dead": 0, "done": 1}
