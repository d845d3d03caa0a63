"""What an agent says of itself beside its messages: to status, summary, the control socket and /metrics.

Called by agent/process/app.py. It reads counters that other threads write, each one word or a copy, and keeps nothing.
"""

from dataclasses import dataclass
from typing import Any

from stillwatch.clips import Clips
from stillwatch.outlet import Figures, LiveCarrier, Outlet, ThinCarrier
from stillwatch.pipeline import Pipeline
from stillwatch.restart import Recorder
from stillwatch.sources import Capture
from stillwatch.transport.disk import RunFolder

IN_WORDS = {
    "messages": ("message of the run folder", "messages of the run folder"),
    "checkpoints": ("checkpoint", "checkpoints"),
    "records": ("record of the recording", "records of the recording"),
    "clips": ("clip", "clips"),
}


@dataclass(slots=True)
class Accounts:
    """The parts of one run that have something to count. `outlet` is there before any question is asked."""

    pipeline: Pipeline
    capture: Capture
    live: LiveCarrier | None
    thin: ThinCarrier | None
    folder: RunFolder
    recorder: Recorder | None
    clips: Clips | None
    outlet: Outlet | None = None
    unsaved: int = 0  # checkpoints that the disk refused

    def not_kept(self) -> dict[str, int]:
        """Return how much the disk refused, by what it was; empty where it took everything."""
        recorder, clips = self.recorder, self.clips
        counts = {
            "messages": self.folder.lost_records,
            "checkpoints": self.unsaved,
            "records": recorder.counters()["lost_records"] if recorder is not None else 0,
            "clips": clips.counters()["lost"] if clips is not None else 0,
        }
        return {what: count for what, count in counts.items() if count}

    def not_kept_in_words(self) -> list[str]:
        return [f"{count} {IN_WORDS[what][count > 1]}" for what, count in self.not_kept().items()]

    def of_transport(self) -> dict[str, Any]:
        """Return the fields of Status that are the transport's: drops, tx_bytes, endpoints, sequences, not_kept."""
        publisher = self.live.publisher if self.live is not None else None
        drops = dict(self.outlet.drops) if self.outlet is not None else {}
        for kind, count in (publisher.drops if publisher else {}).items():
            drops[kind] = drops.get(kind, 0) + count
        tx_bytes = dict(publisher.tx_bytes) if publisher else {}
        if self.thin is not None:
            tx_bytes["link"] = self.thin.tx_bytes
        endpoints = publisher.endpoints if publisher else {}
        return {
            "drops": drops,
            "tx_bytes": tx_bytes,
            "endpoints": endpoints,
            "sequences": self.outlet.sequences if self.outlet is not None else {},
            "not_kept": self.not_kept(),
        }

    def learnt(self) -> dict[str, Any]:
        """Return how far the learning has come, for the answer to `status`."""
        why = self.pipeline.certainty.why.value
        return {"learning": self.pipeline.progress, "unsure": why, "model_hash": self.pipeline.model_hash}

    def connections(self) -> dict[str, int]:
        """Return connections to the live plane's ports, by what became of them."""
        return self.live.connections() if self.live is not None else {}

    def figures(self) -> Figures:
        """Return what /metrics shows and no message says, by the names of its table."""
        queues = {"frames": self.capture.n_waiting}
        if self.outlet is not None:
            queues |= self.outlet.waiting()
        return {
            "source_total": self.capture.counters(),
            "backlog_alerts": self.thin.backlog if self.thin is not None else 0,
            "connections_total": self.connections(),
            "queue_length": queues,
            "stage_seconds_total": dict(self.pipeline.stage_seconds),
        }
