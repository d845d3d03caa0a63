"""The agent's thin link, whole: live-plane messages go in, frames go to the modem, acknowledgements come back.

Used by the agent's sender thread, which calls `publish` with each message and `step` at least once a slot. It must
never wait for the modem nor raise for what it says.
"""

import dataclasses
import math
import pathlib

import numpy as np

from stillwatch.transport.base import Clock
from stillwatch.transport.mirror import INCARNATIONS, ModelEncoder
from stillwatch.transport.thin.codec import ThinCodec
from stillwatch.transport.thin.component import MAX_DIMS, encode_component
from stillwatch.transport.thin.layout import STATES
from stillwatch.transport.thin.link import MOST_CLUMPS_BYTES, ThinSender
from stillwatch.transport.thin.outbox import Outbox
from stillwatch.transport.thin.port import ThinPort
from stillwatch.transport.thin.presets import Budget
from stillwatch.transport.thin.records import ThinAlert, ThinHeartbeat
from stillwatch.transport.thin.scheduler import RULES
from stillwatch.transport.thin.thumbnails import recode_thumbnail
from stillwatch.transport.wire import MODEL_NUMBERS, PATCH_MODEL, EncodeError, EventKind, largest_clumps, messages

_EVENTS_REMEMBERED = 256


def alert_from_message(message: messages.Alert) -> ThinAlert:
    """Return what 32 bytes can say of an alert of the live plane. Kinds that have no number become "other"."""
    nav = message.nav or messages.Position()
    return ThinAlert(
        event=message.id,
        kind=EventKind(message.alert_kind),
        wall_ns=message.wall_ns,
        life=message.phase,
        severity=round(message.severity * 7),
        rarity=_or_nan(message.rarity),
        box=_box(message),
        latitude=_or_nan(nav.latitude),
        longitude=_or_nan(nav.longitude),
        depth_m=_or_nan(nav.depth_m),
        altitude_m=_or_nan(nav.altitude_m),
    )


class VehicleLink:
    """Outbox, sender, model mirrors and modem port: until `connect` all that is published waits.

    Parameters
    ----------
    folder : path
        Where the outbox lives.
    clock : Clock
    budget : Budget
        What we may send.
    codec : ThinCodec
        Our number on the link, and the key shared with the ground.
    listen, peer : (host, port)
        Where the ground's frames come in, and the program that drives the modem.
    heartbeat_s : float
        Time between two heartbeats; above 0.
    thumbnail_px, thumbnail_bytes : int
        Longest side and size of an alert's thumbnail; 0 bytes: none is sent.
    outbox_bytes : int
        Most that waiting alerts may take on the disk.

    Attributes
    ----------
    refused : dict of str to int
        Messages that could not be said on a thin link, by kind.
    """

    def __init__(
        self,
        folder: pathlib.Path | str,
        *,
        clock: Clock,
        budget: Budget,
        codec: ThinCodec,
        listen: tuple[str, int],
        peer: tuple[str, int],
        heartbeat_s: float,
        thumbnail_px: int,
        thumbnail_bytes: int,
        outbox_bytes: int,
    ):
        self.refused: dict[str, int] = {}
        self._thumbnail_px, self._thumbnail_bytes = thumbnail_px, thumbnail_bytes
        self._clock = clock
        self._ends = listen, peer
        self._port: ThinPort | None = None
        beat = dataclasses.replace(RULES["heartbeat"], blackout_s=heartbeat_s, ttl_s=2.0 * heartbeat_s)
        self._outbox = Outbox(folder, clock=clock, max_bytes=outbox_bytes)
        now_ns = clock.monotonic_ns()
        self.sender = ThinSender(budget, codec, self._outbox, now_ns=now_ns, rules=RULES | {"heartbeat": beat})
        self._began_ns = now_ns
        self._encoders: dict[str, ModelEncoder] = {}
        self._severities: dict[int, int] = {}
        self._patches: messages.Model | None = None

    def connect(self) -> None:
        """Bind the port; any thread may, again after a LinkError. A name may take the system many seconds."""
        self._port = ThinPort(*self._ends)

    @property
    def is_connected(self) -> bool:
        """Whether the port is bound."""
        return self._port is not None

    def publish(self, message: messages.Message) -> None:
        """Take any message of the live plane; those that a thin link has no words for are ignored.

        Of an alert, `new` and `end` are sent, and of its updates those that are more severe than what was sent.
        """
        try:
            match message:
                case messages.Alert():
                    self._take_alert(message)
                case messages.Model():
                    self._take_model(message)
                case messages.Clumps():
                    payload = largest_clumps(message, MOST_CLUMPS_BYTES)
                    self.sender.clumps(MODEL_NUMBERS[message.which], payload)
                case messages.Status():
                    self._take_status(message)
        except EncodeError:
            kind = messages.kind_of(type(message))
            self.refused[kind] = self.refused.get(kind, 0) + 1

    def step(self) -> None:
        """Hand over what is due and take what came; returns at once."""
        if self._port is None:
            return
        now_ns = self._clock.monotonic_ns()
        for frame in self._port.receive():
            self.sender.feed(frame, now_ns)
        self._port.send(self.sender.poll(now_ns))

    @property
    def backlog(self) -> int:
        """Alerts not yet acknowledged by the ground."""
        return len(self._outbox)

    @property
    def tx_bytes(self) -> int:
        """Bytes handed to the modem."""
        return self.sender.scheduler.counters["bytes"]

    @property
    def state(self) -> str:
        """The outbox's disk: "ok", "disk_full", "read_only", "gone" or "failed"."""
        return self._outbox.state

    def close(self) -> None:
        """Close the port and the outbox; alerts not yet acknowledged are sent by the next process."""
        if self._port is not None:
            self._port.close()
        self._outbox.close()

    def _take_alert(self, message: messages.Alert) -> None:
        alert = alert_from_message(message)
        if message.phase == "update" and alert.severity <= self._severities.get(message.id, 0):
            return
        self._severities.pop(message.id, None)
        if message.phase != "end":
            self._severities[message.id] = alert.severity
            if len(self._severities) > _EVENTS_REMEMBERED:
                del self._severities[next(iter(self._severities))]
        code = b""
        if message.phase == "new" and message.thumbnail and self._thumbnail_bytes:
            code = recode_thumbnail(message.thumbnail, self._thumbnail_px, self._thumbnail_bytes)
        self.sender.alert(alert, self._clock.monotonic_ns(), code)
        if message.phase == "new":
            self._tell_component(message.component)

    def _take_model(self, message: messages.Model) -> None:
        encoder = self._encoders.get(message.which)
        if encoder is None:
            encoder = ModelEncoder(incarnation=self._outbox.generation % INCARNATIONS)
            self._encoders[message.which] = encoder
            self.sender.mirror(MODEL_NUMBERS[message.which], encoder)
        encoder.update(message)
        if message.which == PATCH_MODEL:
            self._patches = message

    def _tell_component(self, component: int) -> None:
        """Send the alert's nearest component coarsely, far ahead of when its turn in the mirror comes."""
        model = self._patches
        if model is None or component not in model.ids:
            return
        k = int(np.flatnonzero(model.ids == component)[0])
        variances = _variances(model, k)
        if len(variances) <= MAX_DIMS and variances.min() > 0:
            parts = encode_component(
                component, model.model_epoch, float(model.counts[k]), model.means[k], np.sqrt(variances)
            )
            self.sender.component(parts, self._clock.monotonic_ns())

    def _take_status(self, message: messages.Status) -> None:
        now_ns = self._clock.monotonic_ns()
        state = message.state if message.state in STATES else "unknown"
        uptime_s = (now_ns - self._began_ns) / 1e9
        n_components = 0 if self._patches is None else self._patches.n_components
        beat = ThinHeartbeat(message.wall_ns, state, uptime_s, len(self._outbox), self._outbox.lost, n_components)
        self.sender.heartbeat(beat, now_ns)


def _variances(model: messages.Model, k: int) -> np.ndarray:
    """Return the variances of one component; those of a full covariance are on its diagonal."""
    if model.variances is not None:
        return np.asarray(model.variances[k], np.float64)
    assert model.covariances is not None, "a Model message has exactly one of both"
    diagonal = np.cumsum(np.arange(1, model.n_dims + 1)) - 1  # of a lower triangle, row by row
    return np.asarray(model.covariances[k][diagonal], np.float64)


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _box(message: messages.Alert) -> tuple[float, float, float, float] | None:
    """Return centre and size: the box around the peak, or around all boxes, or the peak alone."""
    boxes = message.boxes
    if boxes is None or not len(boxes):
        return None if message.x is None or message.y is None else (message.x, message.y, 0.0, 0.0)
    inside = boxes
    if message.x is not None and message.y is not None:
        x, y = message.x, message.y
        holds = (boxes[:, 0] <= x) & (x <= boxes[:, 2]) & (boxes[:, 1] <= y) & (y <= boxes[:, 3])
        inside = boxes[holds] if holds.any() else boxes
    x0, y0 = np.min(inside[:, :2], axis=0)
    x1, y1 = np.max(inside[:, 2:], axis=0)
    return float(x0 + x1) / 2, float(y0 + y1) / 2, float(x1 - x0), float(y1 - y0)
