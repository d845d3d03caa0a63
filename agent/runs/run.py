"""Reads a run: `stillwatch.open_run(path)` gives its events, scores, models, exemplars and pictures.

Used by people's programs and by the events, scores and topics commands. It must not change the folder.
"""

import pathlib
from typing import Any

from stillwatch.runs.rows import alert_row, utc_text
from stillwatch.runs.table import Table
from stillwatch.transport.disk import Run
from stillwatch.transport.disk import open_run as open_folder
from stillwatch.transport.wire import TOPIC_MODEL, Alert, Exemplar, Message, Model, Score, VisitKind

EVENT_COLUMNS = (
    "id", "kind", "phase", "t_utc", "stream_s", "end_s", "frame", "end_frame", "duration_s", "severity", "how_rare",
    "rarity", "watched_s", "judged", "visits", "alike", "here", "visit_kind", "score", "x", "y", "boxes",
    "picture_frame", "nearest", "run",
)  # fmt: skip
TOPIC_COLUMNS = ("frame", "t_utc", "stream_s", "topic", "name", "share", "latitude", "longitude", "run")
KIND_COLUMNS = ("kind", "name", "visits", "first_s", "last_s", "once_in_s", "picture_frame", "run")
SCORE_COLUMNS = ("frame", "t_utc", "stream_s", "score", "rarity", "state", "event", "run")


def open_run(path: pathlib.Path | str) -> "RunTables":
    """Open a run folder, a ground station's folder or a recording for reading.

    Raises
    ------
    LogError
        No such folder, or no message log in it.
    """
    return RunTables(open_folder(path))


class RunTables:
    """What a run left, read anew at each call: a run that is still going on has more each time.

    Attributes
    ----------
    path : Path
    info : dict
        Agent, run, versions, source, as far as the folder holds them.
    config_text : str
        TOML; empty where the folder has none.
    summary : dict or None
        Counts and the learned state's hash; None while the run goes on.
    """

    def __init__(self, folder: Run):
        self._folder = folder
        self.path, self.info = folder.path, folder.info
        self.config_text, self.summary = folder.config_text, folder.summary

    def __repr__(self) -> str:
        counts = self.summary or {}
        told = ", ".join(f"{counts[name]} {name}" for name in ("frames", "events", "alerts") if name in counts)
        return f"<run {self.path}: {told or 'not ended'}>"

    def _repr_html_(self) -> str:
        return f"<p><b>{self.path.name}</b>, {self.info.get('agent', '')}</p>{self.events()._repr_html_()}"

    def events(self) -> Table:
        """Return one row an event, in order of their beginning.

        The columns are those of `alert_row`, as told last, and: `end_s`, seconds into the stream at which it ended, or
        None where no end is known; `run`, the start of the agent that it belongs to.
        """
        starts: dict[tuple[str, int], int] = {}
        rows: dict[tuple[str, int, int], dict[str, Any]] = {}
        for _, message in self._folder.messages({"alert", "score"}):
            started = starts.setdefault((message.run, message.epoch), message.t_ns)
            if isinstance(message, Alert):
                row = alert_row(message, (message.t_ns - started) / 1e9)
                key = (message.run, message.epoch, message.id)
                first = rows.get(key, row)
                end_s = round(row["stream_s"] + row["duration_s"], 3) if row["phase"] == "end" else None
                rows[key] = row | {"t_utc": first["t_utc"], "end_s": end_s, "run": message.run}
        return Table("events", EVENT_COLUMNS, list(rows.values()))

    def scores(self) -> Table:
        """Return one row a frame: frame, t_utc, stream_s, score and rarity (None while learning or refused), event
        (id or None), run, and state: scored, learning, or the gate's reason for refusing it."""
        starts: dict[tuple[str, int], int] = {}
        rows = []
        for _, message in self._folder.messages({"score"}):
            started = starts.setdefault((message.run, message.epoch), message.t_ns)
            if isinstance(message, Score):
                rows.append(
                    {
                        "frame": message.frame,
                        "t_utc": utc_text(message.wall_ns),
                        "stream_s": round((message.t_ns - started) / 1e9, 3),
                        "score": message.value,
                        "rarity": message.rarity,
                        "state": message.reason or ("learning" if message.learning else "scored"),
                        "event": message.event if message.event >= 0 else None,
                        "run": message.run,
                    }
                )
        return Table("scores", SCORE_COLUMNS, rows)

    def topics(self) -> Table:
        """Return one row a frame and topic in view, of the frames whose shares were told, the largest share first.

        frame, t_utc, stream_s, topic (its number), name (that a person gave it, as told last, or None), share (of the
        frame), latitude and longitude (None where not known), run.
        """
        starts: dict[tuple[str, int], int] = {}
        rows: list[dict[str, Any]] = []
        names: dict[str, str] = {}
        for _, message in self._folder.messages({"score", "model"}):
            started = starts.setdefault((message.run, message.epoch), message.t_ns)
            if isinstance(message, Model) and message.which == TOPIC_MODEL:
                names = message.labels
            if not isinstance(message, Score) or message.topic_ids is None or message.topic_shares is None:
                continue
            nav = message.nav
            common = {
                "frame": message.frame,
                "t_utc": utc_text(message.wall_ns),
                "stream_s": round((message.t_ns - started) / 1e9, 3),
                "latitude": None if nav is None else nav.latitude,
                "longitude": None if nav is None else nav.longitude,
                "run": message.run,
            }
            shares = zip(message.topic_ids.tolist(), message.topic_shares.astype(float).tolist(), strict=True)
            rows += [
                common | {"topic": topic, "share": share}
                for topic, share in sorted(shares, key=lambda item: -item[1])
                if share > 0.0
            ]
        named = [row | {"name": names.get(str(row["topic"]))} for row in rows]
        return Table("topics", TOPIC_COLUMNS, named)

    def kinds(self) -> Table:
        """Return one row a kind of visits under a fixed camera, the most frequent first.

        kind (its number), name (that a person gave it, or None), visits, first_s and last_s (ends of the first and
        last one, seconds into the stream of `run`), once_in_s (seconds watched a visit, or None), picture_frame (that
        its picture is cut out of), run: the start of the agent that told of it last.
        """
        starts: dict[tuple[str, int], int] = {}
        rows: dict[int, dict[str, Any]] = {}
        watched_s = 0.0  # as told last, by whichever kind
        for _, message in self._folder.messages({"visits", "score"}):
            started = starts.setdefault((message.run, message.epoch), message.t_ns)
            if isinstance(message, VisitKind) and message.id >= 0:
                rows[message.id] = {
                    "kind": message.id,
                    "name": message.label or None,
                    "visits": message.count,
                    "first_s": round((message.first_t_ns - started) / 1e9, 3),
                    "last_s": round((message.last_t_ns - started) / 1e9, 3),
                    "picture_frame": message.picture_frame if message.picture_frame >= 0 else None,
                    "run": message.run,
                }
                watched_s = message.watched_s or watched_s
        for row in rows.values():
            row["once_in_s"] = round(watched_s / row["visits"], 3) if watched_s and row["visits"] else None
        return Table("kinds", KIND_COLUMNS, sorted(rows.values(), key=lambda row: (-row["visits"], row["kind"])))

    def kind_pictures(self) -> dict[int, bytes]:
        """Return the newest picture of each kind of visits as a JPEG, cut out where it was, by the kind's number."""
        return {m.id: m.thumbnail for m in self._messages("visits") if isinstance(m, VisitKind) and m.thumbnail}

    def models(self) -> dict[str, Model]:
        """Return the newest model of each name: its arrays are NumPy's (WIRE.md says which)."""
        return {message.which: message for message in self._messages("model") if isinstance(message, Model)}

    def exemplars(self) -> list[Exemplar]:
        """Return the exemplars that are held at the end, with their JPEGs, in the order of their ids."""
        held: dict[int, Exemplar] = {}
        for message in self._messages("exemplar"):
            if isinstance(message, Exemplar):
                for gone in [] if message.removed is None else message.removed.tolist():
                    held.pop(gone, None)
                if message.id >= 0:
                    held[message.id] = message
        return [held[number] for number in sorted(held)]

    def pictures(self) -> dict[int, bytes]:
        """Return the best picture of each event as a JPEG, by the event's id; none where none was received."""
        return {
            message.id: message.thumbnail
            for message in self._messages("alert")
            if isinstance(message, Alert) and message.thumbnail
        }

    def _messages(self, kind: str) -> list[Message]:
        return [message for _, message in self._folder.messages({kind})]
