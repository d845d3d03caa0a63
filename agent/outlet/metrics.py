"""The agent's figures for Prometheus, and whether it is well, over HTTP on this machine alone.

A carrier of agent/outlet/outlet.py: it reads the messages that leave anyway, and keeps the last of each. It must not
stop a run: a taken port is tried again.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from stillwatch.base import Clock
from stillwatch.outlet.judgement import Judgement, judge
from stillwatch.transport.wire import Alert, Message, Model, Scores, Status

if TYPE_CHECKING:  # 2 MB that a run without /metrics does not need
    import http.server

logger = logging.getLogger(__name__)

Figures = dict[str, Any]  # by the names of METRICS: a number, or numbers by label

RETRY_NS = 5_000_000_000
REQUEST_TIMEOUT_S = 2.0
# name (all begin with stillwatch_), kind, label or "", what it is
METRICS = (
    ("up", "gauge", "", "1 where the agent is well, as /healthz says"),
    ("frames_total", "counter", "", "frames through the pipeline"),
    ("frames_accepted_total", "counter", "", "frames that may teach the model"),
    ("frames_dropped_total", "counter", "", "frames lost before the pipeline"),
    ("frames_refused_total", "counter", "reason", "frames that the gate refused"),
    ("frame_age_seconds", "gauge", "", "age of the newest new frame, at most: heartbeats tell it"),
    ("frame_rate_hertz", "gauge", "", "frames a second through the pipeline"),
    ("source_total", "counter", "what", "reconnects, stalls, damaged frames and what else the source counts"),
    ("novelty_rarity", "gauge", "", "the last score: one frame in so many is so new here"),
    ("events_total", "counter", "", "events raised"),
    ("alerts_total", "counter", "", "alerts told"),
    ("alerts_kind_total", "counter", "kind", "alerts told since the start, by kind"),
    ("alerts_suppressed_total", "counter", "why", "alerts not told"),
    ("learning_ratio", "gauge", "", "progress towards the first model, 1 once frames are scored"),
    ("model_age_seconds", "gauge", "which", "since the newest model of a mixture"),
    ("model_components", "gauge", "which", "components of a mixture"),
    ("model_clumps", "gauge", "which", "clumps that a mixture holds"),
    ("model_epochs_total", "counter", "which", "times that a mixture was learnt anew"),
    ("model_epoch_seconds", "gauge", "which", "processor time of the last of these"),
    ("stage_seconds_total", "counter", "stage", "time that frames spent in a stage"),
    ("queue_length", "gauge", "queue", "what waits: frames before the pipeline, messages by kind"),
    ("planned_bytes", "gauge", "", "memory that the stages account for"),
    ("resident_bytes", "gauge", "", "resident memory of the process"),
    ("cpu_seconds_total", "counter", "", "processor time of the process"),
    ("temperature_celsius", "gauge", "", "hottest zone of the board"),
    ("disk_free_bytes", "gauge", "", "free on the run folder's disk"),
    ("not_kept_total", "counter", "what", "what the disk refused: messages, records, checkpoints, clips"),
    ("messages_dropped_total", "counter", "kind", "messages that a full queue lost"),
    ("tx_bytes_total", "counter", "link", "bytes sent, by kind; link: the thin link"),
    ("connections_total", "counter", "what", "connections to the ports: accepted, let in; times that all were closed"),
    ("backlog_alerts", "gauge", "", "alerts that wait for the thin link's acknowledgement"),
)


class MetricsCarrier:
    """Serves /metrics and /healthz from what was last carried.

    Parameters
    ----------
    endpoint : (host, port)
        Of this machine; port 0: any.
    figures : callable
        Returns what no message says: of METRICS, by name.
    """

    def __init__(self, endpoint: tuple[str, int], clock: Clock, figures: Callable[[], Figures] = dict):
        self._endpoint, self._clock, self._figures = endpoint, clock, figures
        self._lock = threading.Lock()
        self._status: tuple[Status, int] | None = None  # and when it came, monotonic
        self._models: dict[str, tuple[Model, int]] = {}
        self._rarity: float | None = None
        self._kinds: Counter[str] = Counter()
        self._server: http.server.HTTPServer | None = None
        self._tried_ns = 0

    @property
    def port(self) -> int:
        """The port in use; 0 while none could be had."""
        return int(self._server.server_address[1]) if self._server is not None else 0

    def open(self) -> None:
        import http.server

        self._tried_ns = self._clock.monotonic_ns()
        try:
            self._server = http.server.HTTPServer(self._endpoint, _handler_of(self))
        except OSError as error:
            logger.warning("metrics.endpoint %s:%d: %s; will try again", *self._endpoint, error.strerror)
            return
        threading.Thread(target=self._server.serve_forever, args=(0.2,), name="metrics", daemon=True).start()

    def carry(self, kind: str, payload: bytes, message: Message) -> None:
        now_ns = self._clock.monotonic_ns()
        with self._lock:
            match message:
                case Status():
                    self._status = message, now_ns
                case Model():
                    self._models[message.which] = message, now_ns
                case Scores() if message.rarities is not None and len(message.rarities):
                    self._rarity = float(message.rarities[-1])
                case Alert() if message.phase == "new":
                    self._kinds[message.alert_kind] += 1

    def poll(self) -> None:
        if self._server is None and self._clock.monotonic_ns() - self._tried_ns > RETRY_NS:
            self.open()

    def close(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def judgement(self) -> Judgement:
        with self._lock:
            held = self._status
        if held is None:
            return judge(None, 0.0)
        return judge(held[0], (self._clock.monotonic_ns() - held[1]) / 1e9)

    def values(self) -> Figures:
        """Return what is known now, by the names of METRICS; of labelled ones a value by label."""
        verdict = self.judgement()
        now_ns = self._clock.monotonic_ns()
        with self._lock:
            held, models = self._status, dict(self._models)
            found: dict[str, Any] = {
                "novelty_rarity": self._rarity,
                "alerts_kind_total": dict(self._kinds),
                "model_age_seconds": {name: (now_ns - at) / 1e9 for name, (_, at) in models.items()},
                "model_components": {name: model.n_components for name, (model, _) in models.items()},
                "model_clumps": {name: model.clumps for name, (model, _) in models.items()},
                "model_epochs_total": {name: model.model_epoch for name, (model, _) in models.items()},
                "model_epoch_seconds": {name: model.seconds for name, (model, _) in models.items()},
            }
        found |= {"up": int(verdict.ok)} | self._figures()
        if held is not None:
            found |= _of_status(held[0]) | {"frame_age_seconds": verdict.last_frame_age_s}
        return {name: value for name, value in found.items() if value is not None}

    def exposition(self) -> bytes:
        """Return all metrics in Prometheus's text form."""
        from prometheus_client import CollectorRegistry, generate_latest

        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Collector(self.values()))
        return bytes(generate_latest(registry))


def _of_status(status: Status) -> dict[str, Any]:
    return {
        "frames_total": status.frames,
        "frames_accepted_total": status.accepted,
        "frames_dropped_total": status.dropped,
        "frames_refused_total": status.refused,
        "frame_rate_hertz": status.rate_hz,
        "events_total": status.events,
        "alerts_total": status.alerts,
        "alerts_suppressed_total": status.suppressed,
        "learning_ratio": status.learning,
        "planned_bytes": status.memory_bytes,
        "resident_bytes": status.rss_bytes,
        "cpu_seconds_total": status.cpu_seconds,
        "temperature_celsius": status.temperature_c,
        "disk_free_bytes": status.disk_free_bytes,
        "not_kept_total": status.not_kept,
        "messages_dropped_total": status.drops,
        "tx_bytes_total": status.tx_bytes,
    }


class _Collector:
    """What prometheus_client asks for metrics."""

    def __init__(self, values: dict[str, Any]):
        self._values = values

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        for name, kind, label, about in METRICS:
            if name not in self._values:
                continue
            family = CounterMetricFamily if kind == "counter" else GaugeMetricFamily
            metric = family(f"stillwatch_{name}", about, labels=[label] if label else None)
            if label:
                for key, value in sorted(self._values[name].items()):
                    metric.add_metric([key], value)
            else:
                metric.add_metric([], self._values[name])
            yield metric


def _handler_of(carrier: MetricsCarrier) -> type[http.server.BaseHTTPRequestHandler]:
    import http.server

    class Handler(http.server.BaseHTTPRequestHandler):
        """Answers two paths; anything else is not found."""

        timeout = REQUEST_TIMEOUT_S

        def do_GET(self) -> None:
            if self.path == "/metrics":
                self._answer(200, "text/plain; version=0.0.4; charset=utf-8", carrier.exposition())
            elif self.path == "/healthz":
                verdict = carrier.judgement()
                body = {"ok": verdict.ok, "state": verdict.state, "reasons": list(verdict.reasons)}
                self._answer(200 if verdict.ok else 503, "application/json", json.dumps(body).encode())
            else:
                self._answer(404, "text/plain", b"/metrics or /healthz\n")

        def _answer(self, code: int, kind: str, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: Any) -> None:
            """Strangers' requests are no lines of ours."""

    return Handler
