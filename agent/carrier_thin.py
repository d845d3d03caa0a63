"""The thin link as a carrier: alerts through the outbox, models mirrored, thumbnails and heartbeats as room allows.

Made by app.py where the config names a link preset, called by agent/outlet.py from the sender thread only. It must
not decide what is worth sending: transport/scheduler.py does.
"""

import logging
import pathlib

import cv2
import numpy as np

from stillwatch.agent.clock import Clock
from stillwatch.agent.config import Config
from stillwatch.transport.errors import EncodeError
from stillwatch.transport.messages import Alert, Message, Model, Status
from stillwatch.transport.mirror import ModelEncoder
from stillwatch.transport.outbox import Outbox
from stillwatch.transport.presets import find_preset
from stillwatch.transport.thin import ThinCodec, ThinHeartbeat
from stillwatch.transport.thin_link import ThinSender, alert_from_message
from stillwatch.transport.thin_port import ThinPort, parse_endpoint, read_link_key
from stillwatch.transport.thumbnails import encode_thumbnail

logger = logging.getLogger(__name__)

CHANNELS = {"patches": 0, "scenes": 1}
INCARNATIONS = 64


class ThinCarrier:
    """Sends what matters in few bytes.

    Parameters
    ----------
    config : Config
        `link` names preset, modem endpoint and key; `storage` bounds the outbox.
    folder : Path
        Of the outbox, kept over restarts.
    clock : Clock

    Raises
    ------
    LinkError, SecurityError
        A preset, endpoint or key file that cannot be used.
    """

    def __init__(self, config: Config, folder: pathlib.Path, clock: Clock):
        link = config.link
        self._link, self._storage, self._folder, self._clock = link, config.storage, folder, clock
        self._budget = find_preset(link.preset).up.shared(link.share)
        self._peer = parse_endpoint(link.endpoint)
        self._listen = parse_endpoint(link.listen, "link.listen")
        self._codec = ThinCodec(link.agent_number, read_link_key(link.key_file))
        self._mirrors: dict[str, ModelEncoder] = {}
        self._components = 0
        self._beat_ns = self._started_ns = clock.monotonic_ns()
        self.tx_bytes = 0

    def open(self) -> None:
        outbox = Outbox(
            self._folder, clock=self._clock, max_bytes=self._link.outbox_bytes,
            max_age_s=self._storage.max_age_days * 86_400.0,
        )  # fmt: skip
        self._port = ThinPort(self._listen, self._peer)
        self._sender = ThinSender(self._budget, self._codec, outbox, now_ns=self._clock.monotonic_ns())
        self._incarnation = outbox.generation % INCARNATIONS

    def carry(self, kind: str, payload: bytes, message: Message) -> None:
        now_ns = self._clock.monotonic_ns()
        try:
            match message:
                case Alert():
                    self._sender.alert(alert_from_message(message), now_ns, self._thumbnail(message))
                case Model():
                    self._mirror(message)
                case Status():
                    self._beat(message, now_ns)
        except EncodeError as error:
            logger.warning("thin link: %s not sent: %s", kind, error)

    def poll(self) -> None:
        now_ns = self._clock.monotonic_ns()
        for frame in self._port.receive():
            self._sender.feed(frame, now_ns)
        frames = self._sender.poll(now_ns)
        self.tx_bytes += sum(map(len, frames))
        self._port.send(frames)

    def close(self) -> None:
        """What was not acknowledged stays in the outbox for the next start."""
        self._sender.outbox.close()
        self._port.close()

    def counters(self) -> dict[str, int]:
        """Return the sender's and the outbox's counters, and how many alerts wait."""
        outbox = self._sender.outbox
        return {**self._sender.counters, **outbox.counters, "waiting": len(outbox), "bytes": self.tx_bytes}

    def _thumbnail(self, alert: Alert) -> bytes:
        if alert.phase != "new" or not alert.thumbnail or not self._link.thumbnail_bytes:
            return b""
        picture = cv2.imdecode(np.frombuffer(alert.thumbnail, np.uint8), cv2.IMREAD_COLOR)
        return encode_thumbnail(
            picture, max_side_px=self._link.thumbnail_px, max_bytes=self._link.thumbnail_bytes
        )

    def _mirror(self, model: Model) -> None:
        mirror = self._mirrors.get(model.which)
        if mirror is None:
            mirror = self._mirrors[model.which] = ModelEncoder(self._incarnation)
            self._sender.mirror(CHANNELS[model.which], mirror)
        mirror.update(model)
        if model.which == "patches":
            self._components = model.n_components

    def _beat(self, status: Status, now_ns: int) -> None:
        if now_ns < self._beat_ns:
            return
        self._beat_ns = now_ns + int(self._link.heartbeat_s * 1e9)
        outbox = self._sender.outbox
        self._sender.heartbeat(
            ThinHeartbeat(
                wall_ns=status.wall_ns, state=status.state, uptime_s=(now_ns - self._started_ns) / 1e9,
                alerts_waiting=len(outbox), alerts_lost=outbox.lost, components=self._components,
            ),
            now_ns,
        )  # fmt: skip
