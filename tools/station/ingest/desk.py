"""One agent's desk: what it said lies here, bounded, until it is written in one transaction.

Used by the ears of tools/station/ingest, each from its own thread. An agent can fill its own desk alone: what comes
faster than the limits is withheld, counted and said.
"""

import dataclasses
import itertools
import json
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from stillwatch.tools.station.ingest.limits import NS, Bucket
from stillwatch.tools.station.ingest.pictures import safe_picture
from stillwatch.tools.station.ingest.placing import alert_of, placed, plain, position_of
from stillwatch.tools.station.store import (
    FOLDER,
    LEARNING,
    LIVE,
    MOST_EXEMPLARS,
    MOST_KINDS,
    REFUSED,
    AlertHeard,
    Store,
    rows_of,
)
from stillwatch.tools.station.tell import Router
from stillwatch.transport.wire import (
    Alert,
    EncodeError,
    Exemplar,
    LogNotice,
    Message,
    Model,
    Score,
    SourceChange,
    Status,
    Summary,
    VisitKind,
    encode,
    kind_of,
)

MOST_ALERTS = 1000  # that wait for a disk that takes nothing; beyond, the oldest are given up and counted
STRETCH = 256  # scores of one row
STRETCH_NS = 10 * NS
AGENT_NS = NS
MOST_NOTICES = 100
CLOCK_TOLD_S = 60.0
_REMEMBERED = 128  # alerts that go on, whose updates pass: those told of last
_MINUTE_NS = 60 * NS
News = tuple[str, str, int]


class Desk:
    """Takes one agent's messages, says when they are due, writes them.

    Parameters
    ----------
    agent : str
    plane : str
        On which it is heard at this desk.
    alerts_a_minute : float
        New alerts that are taken; twice as many at once, four times as many further phases.
    """

    def __init__(self, agent: str, plane: str, alerts_a_minute: float):
        self.agent, self.plane = agent, plane
        self.withheld = self.given_up = 0
        self._new = Bucket(alerts_a_minute, max(2 * alerts_a_minute, 32))
        self._more = Bucket(4 * alerts_a_minute, max(8 * alerts_a_minute, 128))
        self._score_bucket, self._notice_bucket = Bucket(60 * 300, 6000), Bucket(60, MOST_NOTICES)
        self._passed: OrderedDict[str, None] = OrderedDict()
        self._alerts: list[AlertHeard] = []
        self._scores: list[tuple[str, tuple[int, int, float | None, float | None, int]]] = []  # with their run
        self._scores_since_ns = 0
        self._values: dict[str, Any] = {}
        self._values_since_ns = 0
        self._models: dict[tuple[str, str], tuple[Message, int]] = {}
        self._exemplars: OrderedDict[tuple[str, int], dict[str, Any]] = OrderedDict()
        self._removed: list[int] = []
        self._kinds: OrderedDict[int, dict[str, Any]] = OrderedDict()
        self._removed_kinds: list[int] = []
        self._gaps: list[dict[str, Any]] = []
        self._notices: list[dict[str, Any]] = []
        self._status: tuple[int, dict[str, Any]] | None = None
        self._status_ns = 0
        self._begun = self._writes_begun = -1  # of the store that knows of this agent; of the one written to now
        self._clock_off_s: float | None = None
        self._tells_clock = False
        self._troubles: dict[str, str] = {}

    def take(self, message: Message, received_ns: int, *, is_fresh: bool = False) -> None:
        """Take a message of this agent. `is_fresh`: it was made just now, so that its clock can be compared."""
        if is_fresh and self.plane == LIVE:
            self._compare_clocks(message, received_ns)
        self._note(received_ns, heard_ns=received_ns, run=plain(message.run, 64), epoch=message.epoch)
        match message:
            case Score():
                self._take_score(message, received_ns)
            case Alert():
                self._take_alert(message, received_ns)
            case Status():
                self._take_status(message, received_ns)
            case Exemplar():
                self._take_exemplar(message, received_ns)
            case VisitKind():
                self._take_kind(message, received_ns)
            case SourceChange():
                self._note(received_ns, state=plain(message.state, 64), state_detail=plain(message.detail))
                text = f"source {message.state}" + (f": {message.detail}" if message.detail else "")
                self.notice(message.wall_ns, received_ns, "info", "source", text)
            case LogNotice():
                self.notice(message.wall_ns, received_ns, message.level, message.code, message.text, message.count)
            case Summary():
                self._note(received_ns, state="ended", state_detail=plain(message.reason))
                text = f"run ended: {message.frames} frames, {message.events} events, {message.alerts} alerts"
                self.notice(message.wall_ns, received_ns, "info", "ended", text)
            case _ if kind_of(message) in ("model", "clumps"):
                self._models[kind_of(message), plain(getattr(message, "which", ""), 64)] = message, received_ns
                self._models_bounded()

    def take_alert(self, heard: AlertHeard) -> bool:
        """Take an alert; False where it came too fast and is withheld."""
        is_known = heard.uid in self._passed and heard.phase != "new"
        if self.plane != FOLDER and not (self._more if is_known else self._new).takes(heard.received_ns):
            self.withheld += 1
            text = "tells more alerts than this station takes of one agent; the others are counted, not shown"
            self.trouble("withheld", text, heard.received_ns)
            self._note(heard.received_ns, withheld=self.withheld)
            return False
        self._passed.pop(heard.uid, None)
        if heard.uid and heard.phase != "end":
            self._passed[heard.uid] = None
            if len(self._passed) > _REMEMBERED:
                self._passed.popitem(last=False)
        self._alerts.append(heard)
        if len(self._alerts) > MOST_ALERTS and self.plane != FOLDER:
            del self._alerts[0]
            self.given_up += 1
            text = f"told {self.given_up} alerts too many while nothing could be stored; they are gone"
            self.trouble("given_up", text, heard.received_ns)
        return True

    def take_gap(self, kind: str, first: int, last: int, received_ns: int, lost: int) -> None:
        """Note messages that did not arrive; `lost` is their number since the agent began."""
        gap = {"plane": self.plane, "kind": plain(kind, 32), "received_ns": received_ns, "first": first, "last": last}
        self._gaps = [*self._gaps[-99:], gap]
        self._note(received_ns, lost=lost)

    def note_link(self, link: str, detail: str, received_ns: int, **more: Any) -> None:
        """Say how the link is: live, silent, connecting, thin, folder."""
        self._note(received_ns, link=link, link_detail=plain(detail), **more)

    def note_agent(self, received_ns: int, **values: Any) -> None:
        """Set columns of the agent's row."""
        self._note(received_ns, **values)

    def notice(self, wall_ns: int, received_ns: int, level: str, code: str, text: str, count: int = 1) -> None:
        """Keep a notice of the agent, or of the station about it."""
        if self.plane != FOLDER and not self._notice_bucket.takes(received_ns):
            return
        at_ns, _ = placed(wall_ns, received_ns)
        row = {"at_ns": at_ns, "received_ns": received_ns, "level": level, "code": plain(code, 64), "count": count}
        self._notices = [*self._notices[-MOST_NOTICES:], row | {"text": plain(text)}]

    def trouble(self, what: str, text: str, received_ns: int) -> None:
        """Say something on the agent's page until it is taken back with an empty text; a new one is a notice too."""
        if text and what not in self._troubles:
            self.notice(received_ns, received_ns, "warning", what, text)
        if text:
            self._troubles[what] = text
        else:
            self._troubles.pop(what, None)
        self._note(received_ns, trouble="; ".join(self._troubles.values()))

    @property
    def has_alerts(self) -> bool:
        """Whether somebody waits for what lies here."""
        return bool(self._alerts)

    @property
    def waiting_alerts(self) -> Sequence[AlertHeard]:
        """Alerts that are not on the disk yet."""
        return self._alerts

    def is_due(self, now_ns: int) -> bool:
        """Whether something should be written now: an alert at once, the rest after a second, scores after ten."""
        if self._alerts or len(self._scores) >= STRETCH or self._gaps or self._notices:
            return True
        is_old = bool(self._scores) and now_ns - self._scores_since_ns >= STRETCH_NS
        changed = self._values or self._models or self._exemplars or self._removed or self._kinds
        return is_old or (bool(changed) and now_ns - self._values_since_ns >= AGENT_NS)

    def write_agent(self, store: Store, connection: Connection) -> dict[str, Any]:
        """Write that there is this agent, and return what changed of its row: the rows of many are written at once."""
        self._writes_begun = store.begun
        if self._begun != store.begun:
            store.add_plane(connection, self.agent, self.plane, self._values.get("heard_ns", 0))
        return self._values

    def write(
        self, store: Store, connection: Connection, router: Router, now_ns: int, *, all_scores: bool
    ) -> list[News]:
        """Write the rest of what lies here; what was written goes with `clear`, once the transaction stands."""
        news: list[News] = []
        if self._values:
            news.append(("agent", self.agent, 0))
        for heard in self._alerts:
            taken = store.take_alert(connection, heard)
            if taken.is_changed:
                news.append(("alert" if taken.is_new else "alert_update", self.agent, taken.id))
                router.route(store, connection, heard, taken)
        self._write_scores(store, connection, now_ns, all_scores)
        for (kind, which), (message, received_ns) in self._models.items():
            self._write_model(store, connection, kind, which, message, received_ns)
        if self._exemplars or self._removed:
            store.take_exemplar(connection, self.agent, {}, self._removed, MOST_EXEMPLARS)
            for values in self._exemplars.values():
                store.take_exemplar(connection, self.agent, values, [], MOST_EXEMPLARS)
        if self._kinds or self._removed_kinds:
            store.take_kind(connection, self.agent, {}, self._removed_kinds, MOST_KINDS)
            for values in self._kinds.values():
                store.take_kind(connection, self.agent, values, [], MOST_KINDS)
        if self._status is not None:
            store.take_status(connection, self.agent, *self._status)
        for gap in self._gaps:
            store.take_gap(connection, self.agent, gap)
        for notice in self._notices:
            store.take_notice(connection, self.agent, notice)
        return news

    def clear(self, now_ns: int, *, all_scores: bool) -> None:
        """Forget what was written."""
        self._begun = self._writes_begun
        if self._scores_are_due(now_ns, all_scores):
            self._scores.clear()
        self._status = None
        for kept in (
            self._alerts,
            self._values,
            self._models,
            self._exemplars,
            self._removed,
            self._kinds,
            self._removed_kinds,
            self._gaps,
            self._notices,
        ):
            kept.clear()

    def _note(self, received_ns: int, **values: Any) -> None:
        if not self._values:
            self._values_since_ns = received_ns
        self._values |= values

    def _compare_clocks(self, message: Message, received_ns: int) -> None:
        off_s = (message.wall_ns - received_ns) / 1e9
        self._clock_off_s = off_s if self._clock_off_s is None else 0.9 * self._clock_off_s + 0.1 * off_s
        if abs(off_s - self._clock_off_s) > 5.0:
            self._clock_off_s = off_s  # it was set
        is_wrong = abs(self._clock_off_s) > CLOCK_TOLD_S
        if is_wrong != self._tells_clock:
            self._tells_clock = is_wrong
            self.trouble(
                "clock", clock_words(self._clock_off_s, message.wall_ns, received_ns) if is_wrong else "", received_ns
            )

    def _take_alert(self, message: Alert, received_ns: int) -> None:
        heard = alert_of(message, self.plane, received_ns)
        if message.thumbnail and len(self._alerts) < MOST_ALERTS:
            picture_ns = message.wall_ns - max(message.t_ns - message.picture_t_ns, 0) if message.picture_t_ns else 0
            at_ns, is_believed = placed(picture_ns or message.wall_ns, received_ns)
            frame = message.picture_frame if message.picture_frame >= 0 else message.frame
            boxes = json.loads(heard.fields["boxes"])
            picture = safe_picture(
                message.thumbnail, frame=frame, at_ns=at_ns if is_believed else heard.at_ns, boxes=boxes
            )
            if picture is None:
                self.trouble("picture", "sent a picture that is damaged or too large; it is not shown", received_ns)
            heard = dataclasses.replace(heard, picture=picture)
        if self.take_alert(heard):
            self._note(received_ns, **_moved(message, heard.at_ns))

    def _take_score(self, score: Score, received_ns: int) -> None:
        at_ns, _ = placed(score.wall_ns, received_ns)
        if self.plane != FOLDER and not self._score_bucket.takes(received_ns):
            self.trouble("scores", "sends more than 300 scores a second; the others are not kept", received_ns)
            return
        if not self._scores:
            self._scores_since_ns = received_ns
        flags = LEARNING * score.learning | REFUSED * (not score.accepted)
        if len(self._scores) < 16 * STRETCH:
            self._scores.append((plain(score.run, 64), (score.frame, at_ns, score.value, score.rarity, flags)))
        values = {"novelty": score.value, "rarity": score.rarity, "frame": score.frame, "score_ns": at_ns}
        self._note(received_ns, **values)

    def _take_status(self, status: Status, received_ns: int) -> None:
        told = {
            name: _plain_value(getattr(status, name))
            for name in status.__struct_fields__
            if name not in Message.__struct_fields__
        }
        if self._clock_off_s is not None:
            self._note(received_ns, clock_off_s=round(self._clock_off_s, 3))
        self._note(
            received_ns,
            state=plain(status.state, 64),
            learning=status.learning,
            frames=status.frames,
            rate_hz=status.rate_hz,
            source_kind=plain(status.source_kind, 64),
            source_uri=plain(status.source_uri),
            status=json.dumps(told),
        )
        if received_ns - self._status_ns >= _MINUTE_NS:
            self._status_ns = received_ns
            names = ("rate_hz", "temperature_c", "frame_age_s", "rss_bytes", "cpu_seconds", "disk_free_bytes", "frames")
            at_ns, _ = placed(status.wall_ns, received_ns)
            self._status = at_ns, {name: getattr(status, name) for name in names} | {"state": plain(status.state, 64)}

    def _take_exemplar(self, message: Exemplar, received_ns: int) -> None:
        if message.removed is not None:
            self._removed = [*self._removed, *message.removed.tolist()][-1000:]
        if message.id < 0:
            return
        at_ns, _ = placed(message.wall_ns, received_ns)
        values: dict[str, Any] = {
            "role": plain(message.role, 64),
            "exemplar": message.id,
            "component": message.component,
            "frame": message.exemplar_frame,
            "at_ns": at_ns,
            "share": message.share,
            "label": plain(message.label, 64),
            "run": plain(message.run, 64),
        }
        if message.thumbnail:
            picture = safe_picture(message.thumbnail, frame=message.exemplar_frame, at_ns=at_ns, boxes=[])
            if picture is not None:
                values |= {"picture": picture.data, "width": picture.width, "height": picture.height}
        self._exemplars[values["role"], message.id] = values
        if len(self._exemplars) > MOST_EXEMPLARS:
            self._exemplars.popitem(last=False)
        self._note(received_ns)

    def _take_kind(self, message: VisitKind, received_ns: int) -> None:
        removed = [] if message.removed is None else message.removed.tolist()
        self._removed_kinds = [*self._removed_kinds, *removed][-1000:]
        for kind in removed:
            self._kinds.pop(kind, None)
        self._note(received_ns)
        if message.id < 0:
            return
        at_ns, _ = placed(message.wall_ns, received_ns)
        values: dict[str, Any] = {
            "kind": message.id,
            "count": message.count,
            "first_ns": max(at_ns - max(message.t_ns - message.first_t_ns, 0), 0),
            "last_ns": max(at_ns - max(message.t_ns - message.last_t_ns, 0), 0),
            "watched_s": message.watched_s or 0.0,
            "label": plain(message.label, 64),
            "run": plain(message.run, 64),
            "frame": message.picture_frame,
        }
        if message.thumbnail:
            picture = safe_picture(message.thumbnail, frame=message.picture_frame, at_ns=at_ns, boxes=[])
            if picture is not None:
                values["picture"] = picture.data
        self._kinds[message.id] = values
        if len(self._kinds) > MOST_KINDS:
            self._kinds.popitem(last=False)

    def _models_bounded(self) -> None:
        while len(self._models) > 16:
            del self._models[next(iter(self._models))]

    def _scores_are_due(self, now_ns: int, all_scores: bool) -> bool:
        is_old = now_ns - self._scores_since_ns >= STRETCH_NS
        return bool(self._scores) and (all_scores or is_old or len(self._scores) >= STRETCH)

    def _write_scores(self, store: Store, connection: Connection, now_ns: int, all_scores: bool) -> None:
        if self._scores_are_due(now_ns, all_scores):
            for run, scores in itertools.groupby(self._scores, key=lambda item: item[0]):
                rows = [row for _, row in scores]
                for start in range(0, len(rows), STRETCH):
                    store.take_scores(connection, self.agent, run, rows_of(rows[start : start + STRETCH]))

    def _write_model(
        self, store: Store, connection: Connection, kind: str, which: str, message: Message, received_ns: int
    ) -> None:
        try:
            payload = encode(message)
        except EncodeError:
            return  # a whole that is larger than a message may be: the page has no use for it
        at_ns, _ = placed(message.wall_ns, received_ns)
        n_components = message.n_components if isinstance(message, Model) else 0
        values = {"kind": kind, "which": which, "at_ns": at_ns, "received_ns": received_ns, "payload": payload}
        store.take_model(connection, self.agent, values | {"n_components": n_components})


def clock_words(off_s: float, wall_ns: int, received_ns: int) -> str:
    """Return in words that an agent's clock is wrong, and what the station does about it."""
    side = "ahead of" if off_s > 0 else "behind"
    size = abs(off_s)
    for limit, unit_s, unit in ((7200, 60, "minutes"), (172_800, 3600, "hours"), (63_072_000, 86_400, "days")):
        if size < limit:
            told = f"{size / unit_s:.0f} {unit}"
            break
    else:
        told = f"{size / 31_557_600:.0f} years"
    _, is_believed = placed(wall_ns, received_ns)
    rest = "" if is_believed else "; what it tells is placed by the time at which it came"
    return f"its clock is {told} {side} the station's{rest}"


def _plain_value(value: Any) -> Any:
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {plain(str(key), 64): _plain_value(item) for key, item in value.items()}
    return value


def _moved(message: Alert, at_ns: int) -> dict[str, Any]:
    position = position_of(message.nav)
    return position | {"position_ns": at_ns} if "latitude" in position and "longitude" in position else {}
