"""A ground station for a thin link: hears one agent's modem frames, acknowledges, prints and keeps what arrives.

The modem's driver program sends one UDP datagram a frame to --listen, and gets the acknowledgements back. DIR holds
`received/` (each alert once, on the disk before it is acknowledged), `thumbnails/` (PNG, better with every fragment),
`model-patches.npz`, `model-scenes.npz` (the vehicle's mixtures as far as known), `clumps-patches.npz` and
`clumps-scenes.npz` where they were asked for, and all of it as the messages of a run folder, for `report`, `events`,
`survey` and `station`.
"""

import argparse
import contextlib
import dataclasses
import datetime
import io
import math
import pathlib
import re
import select
import threading
import time
from typing import Any

import numpy as np

from stillwatch.base import RealClock, UsageError
from stillwatch.tools.ground_thin_folder import ThinFolder
from stillwatch.tools.shared import hold_out, print_json, stop_on_signals, words, write_image
from stillwatch.transport.disk import write_durably
from stillwatch.transport.mirror import MixtureSummary, ModelMirror
from stillwatch.transport.thin import (
    HEADER_BYTES,
    PRESETS,
    AlertArrived,
    Arrival,
    ClumpsArrived,
    ComponentArrived,
    ComponentPart,
    HeartbeatArrived,
    PacketArrived,
    ReceiverLog,
    ThinAlert,
    ThinCodec,
    ThinHeartbeat,
    ThinPort,
    ThinReceiver,
    ThumbnailArrived,
    decode_component,
    decode_thumbnail,
    find_preset,
    parse_endpoint,
    read_link_key,
)
from stillwatch.transport.wire import (
    AGENT_PATTERN,
    MODEL_NUMBERS,
    MODELS,
    Clumps,
    DecodeError,
    LinkError,
    SecurityError,
    clump_arrays,
    decode,
    kind_of,
)

_MODELS_EVERY_S = 10.0
_WAIT_S = 0.2
_COMPONENTS = 256
_LARGEST = 3  # components of a model that are told: those that its first 64 bytes name
_PASSED_PACKETS = 4  # in a row: repeats of what was under way when a vehicle restarted are fewer and come between


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--listen", default="udp://127.0.0.1:5581", help="where frames come in (default: %(default)s)")
    parser.add_argument("--preset", required=True, choices=list(PRESETS), help="as the agent's link.preset")
    parser.add_argument("--agent-number", type=int, default=0, help="the agent's link.agent_number (default: 0)")
    parser.add_argument("--key-file", default="", help="64 hex digits shared with the agent (its link.key_file)")
    parser.add_argument("--out", required=True, metavar="DIR", help="where to keep what arrives")
    parser.add_argument(
        "--agent", default="", metavar="ID", help="what to call the agent in DIR (default: thin-NUMBER)"
    )
    told = "ask for what this mixture keeps (agents of 0.2 and later); may be repeated"
    parser.add_argument("--clumps", action="append", default=[], choices=MODELS, help=told)
    parser.add_argument("--seconds", type=float, help="stop after so long")
    parser.add_argument("--json", action="store_true", help="print each arrival as a line of JSON")


def main(args: argparse.Namespace) -> int:
    """Listen until a signal or the time is up."""
    stop = threading.Event()
    stop_on_signals(stop)
    try:
        codec = ThinCodec(args.agent_number, read_link_key(args.key_file))
        port = ThinPort(parse_endpoint(args.listen, "--listen"))
    except (LinkError, SecurityError) as error:
        raise UsageError(str(error)) from error
    agent = args.agent or f"thin-{args.agent_number}"
    if not re.fullmatch(AGENT_PATTERN, agent):
        raise UsageError(f"--agent {agent[:40]!r}: 1 to 32 of a-z 0-9 _ - beginning with a letter or digit")
    with contextlib.closing(port):
        station = ThinStation(pathlib.Path(args.out), codec, args.preset, agent=agent, as_json=args.json)
        station.ask_for_clumps(args.clumps)
        until = math.inf if args.seconds is None else time.monotonic() + args.seconds
        try:
            while not stop.is_set() and time.monotonic() < until:
                select.select([port], [], [], _WAIT_S)
                port.send(station.step(port.receive()))
        finally:
            station.close({"datagrams_ignored": port.ignored, "datagrams_refused": port.send_errors})
    return 0


class ThinStation:
    """Keeps and tells what one agent's frames say."""

    def __init__(self, folder: pathlib.Path, codec: ThinCodec, preset: str, *, agent: str, as_json: bool):
        self._clock = RealClock()
        self._folder = folder
        self._as_json = as_json
        self._lock = hold_out(str(folder), f"a ground station of {agent} over a thin link")
        (folder / "thumbnails").mkdir(parents=True, exist_ok=True)
        self._messages = ThinFolder(folder, agent, self._clock)
        self._log = ReceiverLog(folder / "received", clock=self._clock)
        now_ns = self._clock.monotonic_ns()
        self.receiver = ThinReceiver(find_preset(preset).down, codec, self._log, now_ns=now_ns)
        self.mirrors = {channel: ModelMirror() for channel in range(len(MODELS))}
        self._passed: dict[int, list[bytes]] = {channel: [] for channel in self.mirrors}
        self._parts: dict[tuple[int, int], dict[int, bytes]] = {}
        self._untold: set[int] = set()  # channels whose model changed since it was told,
        self._unkept: set[int] = set()  # and whose file is not of that model
        self._saved_ns = now_ns

    def step(self, frames: list[bytes]) -> list[bytes]:
        """Take frames; return the acknowledgements to send."""
        now_ns = self._clock.monotonic_ns()
        for frame in frames:
            for item in self.receiver.feed(frame, now_ns):
                self._take(item)
        if (self._untold or self._unkept) and now_ns - self._saved_ns > _MODELS_EVERY_S * 1e9:
            self.save_models()
        return self.receiver.poll(now_ns)

    def ask_for_clumps(self, names: list[str]) -> None:
        """Ask for the newest clumps of these mixtures: at most 8 kB each, behind all else that the vehicle sends."""
        request = self._clock.wall_ns() // 1_000_000_000 % 15 + 1
        for name in names:
            self.receiver.ask_for_clumps(MODEL_NUMBERS[name], request, self._clock.monotonic_ns())

    def close(self, datagrams: dict[str, int] | None = None) -> None:
        """Save the models, close the log, and tell what was counted, `datagrams` of the port included."""
        self.save_models()
        self._log.close()
        if self._lock is not None:
            self._lock.release()
        counts = {name: count for name, count in (self.receiver.counts() | (datagrams or {})).items() if count}
        self._messages.close(counts)
        told = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
        self._tell("counts", f"counts: {told or 'nothing was heard'}", counts)

    def _take(self, item: Arrival) -> None:
        match item:
            case AlertArrived(agent, alert):
                self._messages.alert(alert)
                self._tell("alert", _alert_line(agent, alert), dataclasses.asdict(alert))
            case ThumbnailArrived(_, number, code, is_complete) if len(code) >= HEADER_BYTES:
                path = self._folder / "thumbnails" / f"alert-{number.incarnation}-{number.delivery}.png"
                try:
                    pixels = decode_thumbnail(code)
                except DecodeError:
                    return
                with contextlib.suppress(OSError):  # a full disk: the next part of the picture may find room again
                    write_image(path, pixels)
                if is_complete:
                    self._messages.thumbnail((number.incarnation, number.delivery), pixels)
                    self._tell("thumbnail", f"thumbnail {path}, {len(code)} bytes", {"file": str(path)})
            case PacketArrived(_, channel, data) if channel in self.mirrors:
                self.take_packet(channel, data)
            case HeartbeatArrived(_, beat):
                self._messages.heartbeat(beat)
                self._tell("heartbeat", _beat_line(beat), dataclasses.asdict(beat))
            case ComponentArrived(_, part):
                self._take_component(part)
            case ClumpsArrived(_, channel, payload, n_bytes, is_complete) if channel in self.mirrors:
                self.take_clumps(MODELS[channel], payload, n_bytes, is_complete=is_complete)

    def take_packet(self, channel: int, data: bytes) -> None:
        """Mirror a packet. A mirror passes over packets of an earlier start; many in a row are those of a later one."""
        mirror, passed = self.mirrors[channel], self._passed[channel]
        before = mirror.packets
        try:
            mirror.take_packet(data)
            if mirror.packets > before:
                passed.clear()
                self._untold.add(channel)
                return
            passed.append(data)
            if len(passed) > _PASSED_PACKETS:
                self.mirrors[channel] = ModelMirror()
                for packet in passed:
                    self.mirrors[channel].take_packet(packet)
                passed.clear()
        except DecodeError as error:
            self._tell("refused", f"model packet refused: {error}", {"reason": str(error)})

    def _take_component(self, part: ComponentPart) -> None:
        """Tell what all stages so far say of a component; a few hundred components are remembered."""
        known = self._parts.setdefault((part.component, part.revision), {})
        known[part.stage] = part.data
        if len(self._parts) > _COMPONENTS:
            del self._parts[next(iter(self._parts))]
        stages = [known[stage] for stage in range(len(known)) if stage in known]
        try:
            found = decode_component(stages)
        except DecodeError:
            return  # without stage 0 the others say nothing
        fields = {
            "component": part.component,
            "stages": len(stages),
            "count": found.count,
            "mean": found.mean.tolist(),
            "std": found.std.tolist(),
        }
        self._tell("component", f"component {part.component}: {found.count:.0f} samples, stage {part.stage}", fields)

    def take_clumps(self, name: str, payload: bytes, n_bytes: int, *, is_complete: bool) -> None:
        """Tell how much of a mixture's clumps has come, and keep them once all has."""
        fields: dict = {"model": name, "bytes": n_bytes, "received": len(payload)}
        if not is_complete:
            self._tell("clumps_come", f"clumps of {name}: {len(payload)} of {n_bytes} bytes", fields)
            return
        try:
            message = decode(payload)
            if not isinstance(message, Clumps):
                raise DecodeError(f"{kind_of(message)} instead of clumps")
            held: dict[str, Any] = clump_arrays(message)
        except DecodeError as error:
            self._tell("refused", f"clumps refused: {error}", {"reason": str(error)})
            return
        self._messages.clumps(message)
        path = self._folder / f"clumps-{name}.npz"
        if not _keep(path, held):
            self._tell("refused", f"clumps of {name}: no room for {path}; ask again", {"reason": "no room"})
            return
        line = f"clumps of {name} {path}, {n_bytes} bytes: {words.held(message)}"
        self._tell("clumps", line, fields | {"file": str(path), "clumps": len(message.counts)})

    def save_models(self) -> None:
        """Tell the models that changed and keep them as files; one that the disk refuses is kept at the next time."""
        self._saved_ns = self._clock.monotonic_ns()
        for channel in sorted(self._untold | self._unkept):
            summary, path = self.mirrors[channel].summary(), self._folder / f"model-{MODELS[channel]}.npz"
            if channel in self._untold:
                self._tell_model(channel, summary)
            fields = {} if summary is None else {n: getattr(summary, n) for n in summary.__dataclass_fields__}
            known = {name: value for name, value in fields.items() if value is not None}
            if not known or _keep(path, known):
                self._unkept.discard(channel)
            elif channel not in self._unkept:
                self._unkept.add(channel)
                line = f"model {MODELS[channel]}: no room for {path}; it is kept once there is"
                self._tell("refused", line, {"model": MODELS[channel], "reason": "no room"})
        self._untold.clear()

    def _tell_model(self, channel: int, summary: MixtureSummary | None) -> None:
        """Tell a model that changed, and write it among the folder's messages."""
        mirror = self.mirrors[channel]
        if largest := mirror.ranking[:_LARGEST]:
            named = ", ".join(f"{component} ({count:.0f})" for component, count in largest)
            line = f"model {MODELS[channel]}: the largest of {mirror.n_components} are {named}"
            told = {"model": MODELS[channel], "n_components": mirror.n_components, "largest": largest}
            self._tell("model", line, told)
        if summary is not None:
            self._messages.model(summary)

    def _tell(self, what: str, line: str, fields: dict) -> None:
        if self._as_json:
            finite = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in fields.items()}
            print_json({"what": what, **finite})
        else:
            print(line, flush=True)


def _keep(path: pathlib.Path, arrays: dict[str, Any]) -> bool:
    """Replace a file of arrays; False, with the earlier one in place, where the disk does not take it."""
    coded = io.BytesIO()
    np.savez(coded, allow_pickle=False, **arrays)
    try:
        write_durably(path, coded.getvalue())
    except OSError:
        return False
    return True


def _alert_line(agent: int, alert: ThinAlert) -> str:
    parts = [
        _when(alert.wall_ns),
        f"agent {agent}",
        f"{alert.kind} {alert.life}",
        f"event {alert.event}",
        f"severity {alert.severity}/7",
    ]
    if math.isfinite(alert.rarity):
        parts.append(f"rule 1 in {alert.rarity:.0f}")
    if alert.box is not None:
        parts.append(f"at x {alert.box[0]:.2f} y {alert.box[1]:.2f}")
    if math.isfinite(alert.latitude) and math.isfinite(alert.longitude):
        parts.append(f"{alert.latitude:.6f} {alert.longitude:.6f}")
    if math.isfinite(alert.depth_m):
        parts.append(f"depth {alert.depth_m:.1f} m")
    return "  ".join(parts)


def _beat_line(beat: ThinHeartbeat) -> str:
    return (
        f"{_when(beat.wall_ns)}  {beat.state}, up {beat.uptime_s / 3600:.1f} h, {beat.alerts_waiting} alerts waiting, "
        f"{beat.alerts_lost} lost, {beat.components} components"
    )


def _when(wall_ns: int) -> str:
    if not wall_ns:
        return "time unknown"
    return datetime.datetime.fromtimestamp(wall_ns / 1e9, datetime.UTC).strftime("%Y-%m-%d %H:%M:%SZ")
