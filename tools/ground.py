"""A ground station: receives one agent's messages, keeps them in the layout of a run folder, prints alerts.

The `ground` command, on the agent's machine or any other. One line an alert; gaps and silences are told too.
"""

import argparse
import pathlib
import sys
import threading
from collections import Counter

from stillwatch.base import ExitCode, RealClock, UsageError, __version__
from stillwatch.tools.shared import StreamTime, existing, hold_out, stop_on_signals, words
from stillwatch.transport.disk import RunFolder
from stillwatch.transport.live import ClientKeys, Gap, Received, Subscriber, load_client_keys, why_unreachable
from stillwatch.transport.wire import Alert, LogNotice, Message, SourceChange, Summary

SILENCE_TOLD_S = 10.0
CONNECTED_WITHIN_S = 3.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("endpoint", metavar="ENDPOINT", help="the agent's publish.endpoint, such as tcp://HOST:5570")
    parser.add_argument("--out", metavar="DIR", help="keep what arrives here, in the layout of a run folder")
    parser.add_argument("--agent", metavar="ID", help="accept this agent only")
    parser.add_argument("--key", type=existing, metavar="FILE", help="this station's NAME.key (stillwatch keygen)")
    parser.add_argument("--server", type=existing, metavar="FILE", help="the agent's NAME.pub")
    parser.add_argument("--until-end", action="store_true", help="stop when the agent says that its run has ended")
    parser.add_argument("--seconds", type=float, metavar="S", help="stop after so long")


def main(args: argparse.Namespace) -> int:
    if bool(args.key) != bool(args.server):
        raise UsageError("--key and --server go together: give our own key and the agent's public key")
    keys = load_client_keys(args.key, args.server) if args.key else None
    stop = threading.Event()
    stop_on_signals(stop)
    station = GroundStation(args.endpoint, keys=keys, agent=args.agent, out=args.out)
    return station.listen(stop, until_end=args.until_end, seconds=args.seconds)


class GroundStation:
    """Receives, prints and keeps. One thread makes it and calls `listen`."""

    def __init__(self, endpoint: str, *, keys: ClientKeys | None, agent: str | None, out: str | None):
        self._clock = RealClock()
        self._endpoint = endpoint
        self._subscriber = Subscriber(endpoint, clock=self._clock, keys=keys, agent=agent)
        self._folder: RunFolder | None = None
        self._lock = None
        if out is not None:
            self._lock = hold_out(out, f"a ground station that listens to {endpoint}")
            self._folder = RunFolder(pathlib.Path(out), self._clock, on_state=lambda state, text: _tell(text))
        self.received: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self.alerts = 0
        self._silence_told = False
        self._time = StreamTime()
        self._end: Summary | None = None

    def listen(self, stop: threading.Event, *, until_end: bool, seconds: float | None) -> int:
        """Receive until told to stop; return the exit code."""
        self._subscriber.open()
        _tell(f"listening to {self._endpoint}")
        started_ns = self._clock.monotonic_ns()
        try:
            while not stop.is_set():
                if seconds is not None and (self._clock.monotonic_ns() - started_ns) / 1e9 > seconds:
                    break
                got = self._subscriber.recv(timeout_ms=200)
                if got is not None:
                    self._silence_told = False
                    self._take(got)
                else:
                    self._watch_silence()
                if until_end and self._end is not None:
                    break
        finally:
            for gap in self._subscriber.settle():
                self._take(gap)
            self._subscriber.close()
            self._finish()
            if self._lock is not None:
                self._lock.release()
        return ExitCode.DONE if self.received else ExitCode.SOURCE

    def _take(self, got: Received | Gap) -> None:
        if isinstance(got, Gap):
            _tell(f"gap: {got.count} {got.kind} message(s) did not arrive ({got.first} to {got.last})")
            return
        if not self.received and self._folder is not None:
            info = {
                "agent": got.message.agent,
                "run": got.message.run,
                "endpoint": self._endpoint,
                "role": "ground",
                "versions": {"stillwatch": __version__},
            }
            self._folder.write_config("", "", **info)
        self.received[got.kind] += 1
        self.bytes[got.kind] += len(got.payload)
        if self._folder is not None:
            self._folder.write(got.kind, got.payload)
        self._time.hear(got.message)
        line = describe(got.message, self._time.of(got.message))
        if line:
            self.alerts += isinstance(got.message, Alert) and got.message.phase == "new"
            print(line, flush=True)
        if isinstance(got.message, Summary):
            self._end = got.message

    def _watch_silence(self) -> None:
        silent_s = self._subscriber.silent_s
        if not self.received and silent_s > CONNECTED_WITHIN_S and not self._silence_told:
            self._silence_told = True
            why = why_unreachable(self._endpoint) or "somebody answers there, but sends nothing"
            _tell(f"not connected to {self._endpoint} for {silent_s:.0f} s: {why}; still trying")
        if self.received and silent_s > SILENCE_TOLD_S and not self._silence_told:
            self._silence_told = True
            _tell(f"silence: nothing from {self._endpoint} for {silent_s:.0f} s; still listening")

    def _finish(self) -> None:
        lost = self._subscriber.gaps
        if self._folder is not None:
            self._folder.finish(
                {
                    "role": "ground",
                    "received": dict(self.received),
                    "bytes": dict(self.bytes),
                    "gaps": lost,
                    "refused": self._subscriber.refused,
                    "resyncs": self._subscriber.resyncs,
                    "reconnects": self._subscriber.reconnects,
                    "alerts": self.alerts,
                }
            )
        if not self.received:
            why = why_unreachable(self._endpoint) or "nothing was sent"
            _tell(f"ground: never connected to {self._endpoint}: {why}")
            return
        gaps = f", {sum(lost.values())} lost" if lost else ", no gap since the first"
        _tell(f"ground: {sum(self.received.values())} messages, {sum(self.bytes.values()):,} bytes{gaps}")


def describe(message: Message, stream_s: float | None) -> str:
    """Return one line for what a person should see, or "" for what only machines read.

    stream_s : how far into the stream it is, where that is known
    """
    match message:
        case Alert():
            return "" if words.is_over_at_once(message) else f"{message.agent}  {words.alert_line(message, stream_s)}"
        case SourceChange():
            detail = f": {message.detail}" if message.detail else ""
            return f"{message.agent}  {words.utc(message.wall_ns)}  source {message.state}{detail}"
        case LogNotice():
            return f"{message.agent}  {words.utc(message.wall_ns)}  {message.level}: {message.text}"
        case Summary():
            return (
                f"{message.agent}  {words.utc(message.wall_ns)}  run ended: {message.frames} frames, "
                f"{message.events} events, {message.alerts} alerts"
            )
    return ""


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
