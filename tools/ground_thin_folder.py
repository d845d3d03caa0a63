"""What came over a thin link as a run folder's messages, so that report, events, survey and station read it.

Used by tools/ground_thin.py. A message says only what the link said: everything else is left out.
"""

import math
import pathlib
from collections import OrderedDict
from typing import Any

import cv2
import numpy as np

from stillwatch.base import Clock, __version__
from stillwatch.transport.disk import RunFolder
from stillwatch.transport.mirror import MixtureSummary
from stillwatch.transport.thin import ThinAlert, ThinHeartbeat
from stillwatch.transport.wire import (
    Alert,
    Clumps,
    EncodeError,
    Headers,
    Message,
    Model,
    Position,
    Status,
    encode,
    kind_of,
)

_REMEMBERED = 256
_NAVIGATION = ("latitude", "longitude", "depth_m", "altitude_m")
_QUALITY = 85
_MOST_PICTURE_BYTES = 12_000


class ThinFolder:
    """Writes one agent's arrivals; one thread uses it. A full disk is said once by the run folder's own state.

    Each start of the vehicle's outbox is a run of its own, as its event numbers begin anew with it.
    """

    def __init__(self, folder: pathlib.Path, agent: str, clock: Clock):
        self._agent, self._clock = agent, clock
        self._epoch = clock.wall_ns() // 1_000_000_000
        self._folder = RunFolder(folder, clock)
        info = {"agent": agent, "run": "thin", "role": "ground", "link": "thin", "live": True}
        self._folder.write_config("", "", **info, versions={"stillwatch": __version__})
        self._headers: dict[int, Headers] = {}
        self._told: OrderedDict[tuple[int, int], ThinAlert] = OrderedDict()
        self._incarnation = 0

    def alert(self, alert: ThinAlert) -> None:
        """Write an alert; one that was told whole at once is written as its beginning and its end."""
        self._incarnation = alert.incarnation
        self._told[alert.incarnation, alert.delivery] = alert
        if len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)
        for phase in ("new", "end") if alert.life == "single" else (alert.life,):
            self._write(Alert, alert.wall_ns, phase=phase, **_said(alert))

    def thumbnail(self, number: tuple[int, int], pixels: np.ndarray) -> None:
        """Write the picture of an alert that was told; without one it says nothing."""
        alert = self._told.get(number)
        done, data = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])
        if alert is None or not done or len(data) > _MOST_PICTURE_BYTES:
            return
        phase = "end" if alert.life == "single" else "update" if alert.life == "new" else alert.life
        self._incarnation = alert.incarnation
        self._write(Alert, alert.wall_ns, phase=phase, thumbnail=data.tobytes(), **_said(alert))

    def heartbeat(self, beat: ThinHeartbeat) -> None:
        """Write how the agent is."""
        self._write(Status, beat.wall_ns, state=beat.state)

    def model(self, summary: MixtureSummary) -> None:
        """Write a mixture as far as it is known."""
        self._write(
            Model,
            0,
            which=summary.which,
            covariance=summary.covariance,
            n_dims=summary.n_dims,
            n_components=len(summary.ids),
            model_epoch=summary.model_epoch,
            ids=summary.ids,
            counts=summary.counts,
            weights=summary.shares,
            means=summary.means,
            variances=summary.variances,
            covariances=summary.covariances,
            prior_mean=summary.prior_mean,
            prior_strength=summary.prior_strength,
            prior_dof=summary.prior_dof,
            prior_scale=summary.prior_scale,
            concentration=summary.concentration,
        )

    def clumps(self, message: Clumps) -> None:
        """Write the clumps that came by request, under this link's own header."""
        own = set(message.__struct_fields__) - set(Message.__struct_fields__)
        self._write(Clumps, 0, **{name: getattr(message, name) for name in own})

    def close(self, counts: dict[str, int]) -> None:
        """Write what was counted, and close."""
        self._folder.finish({"role": "ground", "link": "thin", "received": counts})

    def _write(self, kind: type[Message], wall_ns: int, **fields: Any) -> None:
        headers = self._headers.get(self._incarnation)
        if headers is None:
            run = f"thin-{self._incarnation}"
            headers = self._headers[self._incarnation] = Headers(self._agent, run, run, self._epoch)
        told_ns = wall_ns or self._clock.wall_ns()
        header = headers.next(kind, t_ns=told_ns, mono_ns=self._clock.monotonic_ns(), wall_ns=told_ns)
        try:
            message = kind(**header, **fields)
            self._folder.write(kind_of(message), encode(message))
        except EncodeError:
            pass  # a model larger than a message may be: model-NAME.npz holds it


def _said(alert: ThinAlert) -> dict[str, Any]:
    """Return the fields of an alert message that a thin alert knows."""
    known = {name: value for name in _NAVIGATION if math.isfinite(value := getattr(alert, name))}
    said: dict[str, Any] = {"id": alert.event, "alert_kind": str(alert.kind.value), "severity": alert.severity / 7}
    said |= {"start_t_ns": alert.wall_ns} if alert.wall_ns and alert.life in ("new", "single") else {}
    said |= {"rarity": alert.rarity} if math.isfinite(alert.rarity) else {}
    said |= {"nav": Position(**known)} if known else {}
    if alert.box is not None:
        x, y, width, height = alert.box
        corners = [x - width / 2, y - height / 2, x + width / 2, y + height / 2]
        said |= {"x": min(max(x, 0.0), 1.0), "y": min(max(y, 0.0), 1.0)}
        said["boxes"] = np.clip(np.array([corners], np.float32), 0.0, 1.0)
    return said
