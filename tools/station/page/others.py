"""The smaller pages: map, notifications, audit log, users, login; pictures and static files.

Called by tools/station/page/app.py.
"""

import pathlib
from collections.abc import Mapping
from typing import Any

from starlette.responses import FileResponse, RedirectResponse, Response

from stillwatch.tools.shared import words
from stillwatch.tools.station.access import Refused, cookie_header
from stillwatch.tools.station.page import drawing, wording
from stillwatch.tools.station.page.alerts import shown_mute
from stillwatch.tools.station.page.asking import Ask
from stillwatch.tools.station.page.wording import cleaned

MOST_PLACES = 500
PAGE_SIZE = 100
FOREVER = "public, max-age=31536000, immutable"
A_DAY = "private, max-age=86400"
A_MINUTE = "private, max-age=60"
CLIPS = {".mp4": "video/mp4", ".webm": "video/webm"}
SHOWN = ("image/jpeg", "image/png", "image/webp")
Row = Mapping[str, Any]


def map_page(ask: Ask) -> Response:
    """Show where alerts were told from, and where agents were last."""
    rows = ask.services.store.positions(0, ask.services.wall_ns(), most=MOST_PLACES)
    agents = [row for row in ask.services.agents.get() if row["latitude"] is not None and row["longitude"] is not None]
    places = [_place(row) for row in rows]
    dots = [
        drawing.Place(p["latitude"], p["longitude"], f"{p['title']}, {p['agent']}", p["address"]) for p in places
    ] + [
        drawing.Place(a["latitude"], a["longitude"], f"{a['agent']}, where it was last", f"/agents/{a['agent']}", True)
        for a in agents
    ]
    tracks: dict[str, list[tuple[float, float]]] = {}
    for row in sorted(rows, key=lambda row: row["at_ns"]):
        tracks.setdefault(row["agent"], []).append((row["latitude"], row["longitude"]))
    svg, scale = drawing.draw_map(dots, list(tracks.values())) if dots else ("", "")
    note = f"The newest {len(places)} alerts with a position. Lines join one agent's in order; large dots are agents. "
    return ask.page("map.html", page="map", drawing=svg, places=places[:100], note=note + f"The bar is {scale}.")


def _place(row: Row) -> dict[str, Any]:
    return {
        "title": cleaned(words.title_of(row["kind"]), 80),
        "address": f"/alerts/{row['id']}",
        "agent": row["agent"],
        "latitude": row["latitude"],
        "longitude": row["longitude"],
        "depth_m": row["depth_m"],
        "wall_ns": row["at_ns"],
    }


def notifications(ask: Ask) -> Response:
    """Show the ways out, what was given up, what is muted."""
    store = ask.services.store
    channels = ask.services.channels()
    dead = store.dead_notifications(limit=PAGE_SIZE)
    n_dead = sum(channel["dead"] for channel in channels)
    lead = (
        "Nobody is told yet: the settings name no webhook, MQTT broker, e-mail address or command ([tell.NAME])."
        if not channels
        else (
            f"{wording.plural(n_dead, 'notification was', 'notifications were')} given up."
            if n_dead
            else "All that was to be told was told, or waits for its turn."
        )
    )
    return ask.page(
        "notifications.html",
        page="notifications",
        lead=lead,
        channels=channels,
        dead=[_dead(row) for row in dead],
        mutes=[shown_mute(mute) for mute in store.mutes(ask.services.wall_ns())],
    )


def _dead(row: Row) -> dict[str, Any]:
    about = f"{row['agent']}, alert {row['alert']}, {row['phase']}" if row["alert"] else row["agent"] or "a test"
    return {
        "id": row["id"],
        "wall_ns": row["created_ns"],
        "channel": row["channel"],
        "about": about,
        "tries": row["tries"],
        "fault": row["fault"],
    }


def again(ask: Ask) -> Response:
    """Put a notification that was given up into the queue again."""
    if not ask.services.store.revive_notification(ask.id(), ask.services.wall_ns()):
        raise Refused(404, "There is no such notification that was given up.")
    ask.record("notify again", str(ask.id()))
    ask.services.tell("queue", "", ask.id())
    return RedirectResponse("/notifications", status_code=303)


def audit(ask: Ask) -> Response:
    """Show who did what, and the users."""
    rows = ask.services.store.audit(before=ask.number("before", 0), limit=PAGE_SIZE + 1)
    return ask.page(
        "audit.html",
        page="audit",
        users=ask.services.store.users(),
        rows=[{**row, "wall_ns": int(row["wall_s"] * 1e9)} for row in rows[:PAGE_SIZE]],
        older="/audit" + ask.query(before=rows[PAGE_SIZE - 1]["id"]) if len(rows) > PAGE_SIZE else "",
    )


def login_page(ask: Ask) -> Response:
    """Show the form; whoever is in already goes on."""
    if ask.visitor.role is not None:
        return RedirectResponse("/", status_code=303)
    return ask.page("login.html", page="login", back=ask.text("back", 200), problem="")


def log_in(ask: Ask) -> Response:
    """Check name and password; a new session, or the form again with what was wrong."""
    try:
        token = ask.services.gate.log_in(ask.visitor, ask.field("name", 64), ask.form.get("password", "")[:2048])
    except Refused as refused:
        answer = ask.page(
            "login.html", page="login", back=ask.field("back", 200), problem=refused.text, status=refused.status
        )
        if refused.retry_after_s:
            answer.headers["retry-after"] = str(int(refused.retry_after_s) + 1)
        return answer
    answer = ask.back("/")
    answer.headers["set-cookie"] = cookie_header(token, ask.request.url.scheme, max_age_s=30 * 86_400)
    return answer


def log_out(ask: Ask) -> Response:
    """End the session."""
    ask.services.gate.log_out(ask.visitor)
    answer = RedirectResponse("/login", status_code=303)
    answer.headers["set-cookie"] = cookie_header("", ask.request.url.scheme, max_age_s=0)
    return answer


def static(ask: Ask) -> Response:
    """Return one of the few files that never change; the version in their address changes with them."""
    found = ask.services.static.get(ask.request.path_params["name"])
    if found is None:
        raise Refused(404, "There is no such file.")
    return Response(found[0], media_type=found[1], headers={"cache-control": FOREVER})


def agent_picture(ask: Ask) -> Response:
    """Return an agent's newest picture."""
    return _picture(ask.services.store.agent_picture(ask.agent()), A_MINUTE)


def view(ask: Ask) -> Response:
    """Return what an agent sees now; nothing (204) where it does not show it."""
    agent = ask.agent()
    control = ask.services.control_of(agent)
    seen = ask.services.views.newest(agent, control) if control is not None else None
    if seen is None:
        return Response(status_code=204)
    return ask.page("part_view.html", agent=agent, frame=seen.frame, wall_ns=seen.wall_ns)


def view_picture(ask: Ask) -> Response:
    """Return the picture that `view` speaks of."""
    jpeg = ask.services.views.shown(ask.agent())
    return _picture({"picture": jpeg}, A_MINUTE)


def alert_picture(ask: Ask) -> Response:
    """Return an alert's best picture."""
    return _picture(ask.services.store.alert_picture(ask.id()), A_MINUTE)


def picture(ask: Ask) -> Response:
    """Return one of an alert's pictures."""
    number = ask.id("picture")
    return _picture(ask.services.store.alert_picture(ask.id(), number) if number else None, A_DAY)


def exemplar_picture(ask: Ask) -> Response:
    """Return the picture of an exemplar."""
    return _picture(ask.services.store.exemplar(ask.agent(), ask.id()), A_MINUTE)


def kind_picture(ask: Ask) -> Response:
    """Return the picture of a kind of visits."""
    return _picture(ask.services.store.kind(ask.agent(), ask.id()), A_MINUTE)


def _picture(row: Row | None, cache: str) -> Response:
    if row is None or not row["picture"]:
        raise Refused(404, "There is no such picture.")
    mime = row.get("mime", "image/jpeg")
    if mime not in SHOWN:
        raise Refused(404, "There is no such picture.")
    return Response(bytes(row["picture"]), media_type=mime, headers={"cache-control": cache})


def clip(ask: Ask) -> Response:
    """Return an alert's clip, where a recording of it lies on this machine."""
    row = ask.services.store.alert(ask.id())
    path = pathlib.Path(row["clip"]) if row is not None and row["clip"] else None
    if path is None or path.suffix not in CLIPS or not path.is_file():
        raise Refused(404, "There is no clip of this alert.")
    return FileResponse(path, media_type=CLIPS[path.suffix])
