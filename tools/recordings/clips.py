"""Makes clips of a recording's alerts: as the camera sent it, or with outlines, time and score drawn.

The `clips` command. Without --overlay nothing is decoded or encoded again (agent/clips cuts as it does in a run).
"""

import argparse
import pathlib
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import av
import cv2
import numpy as np

from stillwatch.base import SourceError, UsageError
from stillwatch.clips import Clip, ClipCutter, ClipPacket, PacketStream, write_clip
from stillwatch.settings import SourceConfig
from stillwatch.sources import RecordingSource
from stillwatch.tools.shared import existing, print_json
from stillwatch.transport.disk import RECORDING_NAME, log_files, open_run
from stillwatch.transport.disk import recording as r

MOST_BYTES = 500_000_000  # of one clip
RATE_HZ = 25.0  # of packets without stamps
RED, WHITE, BLACK = (60, 60, 230), (255, 255, 255), (0, 0, 0)
_MILLI = Fraction(1, 1000)


@dataclass(slots=True)
class Told:
    """One alert as the recording's messages tell it. `outlines`: (frame told with, outlines), oldest first."""

    id: int
    frame: int
    t_ns: int
    start_t_ns: int
    end_t_ns: int
    outlines: list[tuple[int, Any]] = field(default_factory=list)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=existing, metavar="RUN", help="a recording: what --record wrote")
    parser.add_argument("--out", metavar="DIR", help="where clips go (RUN/clips)")
    parser.add_argument("--overlay", action="store_true", help="draw outlines, time and score; encodes anew")
    parser.add_argument("--alert", type=int, metavar="ID", help="of this event alone")
    parser.add_argument("--before", type=float, default=5.0, metavar="S", help="seconds before an event (5)")
    parser.add_argument("--after", type=float, default=5.0, metavar="S", help="seconds after it (5)")
    parser.add_argument("--json", action="store_true", help="print one JSON object: {clips: [...], missed: [...]}")


def main(args: argparse.Namespace) -> int:
    for name, seconds in (("--before", args.before), ("--after", args.after)):
        if not 0.0 <= seconds <= 600.0:
            raise UsageError(f"{name} {seconds:g}: 0 to 600 seconds")
    path = pathlib.Path(args.run)
    if not log_files(path, RECORDING_NAME):
        raise UsageError(f"{path}: holds no recording, so no pictures: run with --record, or set clips.ring_bytes")
    alerts = alerts_of(path)
    if args.alert is not None:
        if args.alert not in alerts:
            raise UsageError(f"--alert {args.alert}: {path} has no such event; give another: it has {_ids(alerts)}")
        alerts = {args.alert: alerts[args.alert]}
    out = pathlib.Path(args.out) if args.out else path / "clips"
    make = overlays if args.overlay else packet_clips
    written = []
    for alert, file in make(path, alerts.values(), out, args.before, args.after):
        written.append({"alert": alert, "file": str(file), "bytes": file.stat().st_size})
        if not args.json:
            print(file)
    missed = sorted(set(alerts) - {clip["alert"] for clip in written})
    if args.json:
        print_json({"clips": written, "missed": missed})
    elif missed:
        print(f"no picture left of event {', '.join(map(str, missed))}")
    elif not alerts:
        print("no event was told")
    return 0


def _ids(alerts: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(alerts))) or "none"


def alerts_of(path: pathlib.Path) -> dict[int, Told]:
    """Return what a folder's messages tell of alerts, by id."""
    found: dict[int, Told] = {}
    for _, message in open_run(path).messages({"alert"}):
        alert: Any = message
        if alert.phase == "new":
            found[alert.id] = Told(alert.id, alert.frame, alert.t_ns, alert.start_t_ns, alert.t_ns)
        told = found.get(alert.id)
        if told is None:
            continue
        told.end_t_ns = max(told.end_t_ns, alert.t_ns)
        if alert.boxes is not None and len(alert.boxes):
            told.outlines.append((max(alert.picture_frame, 0) or alert.frame, alert.boxes))
    return found


def packet_clips(
    path: pathlib.Path, alerts: Iterable[Told], out: pathlib.Path, before_s: float, after_s: float
) -> Iterator[tuple[int, pathlib.Path]]:
    """Write the packets of each alert; yield its id and file. Alerts whose packets are gone are left out."""
    whole: list[Clip] = []
    cutter = ClipCutter(before_s, after_s, MOST_BYTES, whole.append)
    told_with = {told.frame: told for told in alerts}
    feed = _Feed(cutter)
    until_ns, current = 0, -1
    for _, body in r.read_recording(path):
        feed.take(body)
        if isinstance(body, r.FrameRecord):
            if (told := told_with.get(body.sequence)) is not None:
                cutter.alert(told.id, body.sequence, (told.t_ns - told.start_t_ns) / 1e9)
                until_ns, current = told.end_t_ns, told.id
            if body.t_ns <= until_ns:
                cutter.go_on(current, body.sequence)
        while whole:
            clip = whole.pop(0)
            yield clip.alert, write_clip(out, clip)
    cutter.finish()
    for clip in whole:
        yield clip.alert, write_clip(out, clip)


class _Feed:
    """Gives a recording's packets and frames to a cutter, as a source and a pipeline would."""

    def __init__(self, cutter: ClipCutter):
        self._cutter = cutter
        self._stream: PacketStream | None = None
        self._number = -1
        self._has_pictures = False
        self._first = 0  # frames decoded before the first packet fed
        self._fed: list[float] = []  # on the stream's clock, of each packet

    def take(self, body: Any) -> None:
        match body:
            case r.Stream():
                self._begin(body)
            case r.Packet() if self._stream is not None and body.data:
                ticks = body.pts if body.pts is not None else body.dts
                time_s = len(self._fed) / RATE_HZ if ticks is None else float(ticks * self._stream.time_base)
                self._fed.append(time_s)
                self._cutter.add(ClipPacket(body.data, body.is_key, body.pts, body.dts, time_s))
            case r.FrameRecord() if body.image:
                self._picture(body)
            case r.FrameRecord() if self._fed:
                at = min(max(body.decoded - self._first, 0), len(self._fed) - 1)
                self._cutter.place(body.sequence, self._fed[at])

    def _begin(self, body: r.Stream) -> None:
        if body.continues and body.stream == self._number:
            return  # a later file's copy of the stream that is being read
        base = Fraction(1, round(RATE_HZ)) if body.stampless else Fraction(*body.time_base)
        found = PacketStream(body.codec, body.extradata, base, RATE_HZ)
        self._stream = found if found.fits_mp4 else None
        self._number, self._first, self._fed, self._has_pictures = body.stream, body.decoded, [], False
        if self._stream is not None:
            self._cutter.begin_stream(self._stream)

    def _picture(self, body: r.FrameRecord) -> None:
        if self._stream is not None and self._fed:
            return
        if not self._has_pictures:
            self._has_pictures = True
            self._cutter.begin_stream(PacketStream("mjpeg", b"", _MILLI, RATE_HZ))
        data = body.image
        if body.image_format != "jpeg":
            colour = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
            if colour is None:
                return  # damaged
            data = cv2.imencode(".jpg", colour)[1].tobytes()
        stamp = body.t_ns // 1_000_000
        self._cutter.place(body.sequence, body.t_ns / 1e9)
        self._cutter.add(ClipPacket(data, True, stamp, stamp, body.t_ns / 1e9))


def overlays(
    path: pathlib.Path, alerts: Iterable[Told], out: pathlib.Path, before_s: float, after_s: float
) -> Iterator[tuple[int, pathlib.Path]]:
    """Write a clip of each alert with what was found drawn into it; yield its id and file."""
    scores = {message.frame: message.value for _, message in open_run(path).messages({"score"})}  # type: ignore[attr-defined]
    times = {body.sequence: body.t_ns for _, body in r.read_recording(path) if isinstance(body, r.FrameRecord)}
    for told in alerts:
        low, high = told.start_t_ns - int(before_s * 1e9), told.end_t_ns + int(after_s * 1e9)
        wanted = [sequence for sequence, t_ns in times.items() if low <= t_ns <= high]
        file = out / f"{told.id}-overlay.mp4"
        if wanted and _draw(path, told, (min(wanted), max(wanted)), scores, file):
            yield told.id, file


def _draw(
    path: pathlib.Path, told: Told, frames: tuple[int, int], scores: dict[int, float | None], file: pathlib.Path
) -> bool:
    """Write one clip; False where no frame of it can be shown any more."""
    file.parent.mkdir(parents=True, exist_ok=True)
    source = RecordingSource(f"{path}?from={frames[0]}&to={frames[1]}", SourceConfig())
    encoder: _Encoder | None = None
    with closing(source):
        source.open()
        while True:
            try:
                raw = source.read()
            except SourceError:
                break  # what follows is damaged
            if raw is None or raw.recorded is None:
                break
            stamp = raw.recorded
            picture = np.ascontiguousarray(raw.colour)
            _draw_on(picture, told, stamp.sequence, stamp.t_ns, stamp.wall_ns, scores.get(stamp.sequence))
            encoder = encoder or _Encoder(file, picture)
            encoder.add(picture, stamp.t_ns)
    if encoder is None:
        return False
    encoder.close()
    return True


def _draw_on(picture: np.ndarray, told: Told, sequence: int, t_ns: int, wall_ns: int, score: float | None) -> None:
    """Draw time and score, and while the event lasts the newest outlines told by then."""
    height, width = picture.shape[:2]
    if told.start_t_ns <= t_ns <= told.end_t_ns and told.outlines:
        known = [outlines for frame, outlines in told.outlines if frame <= sequence] or [told.outlines[0][1]]
        for x0, y0, x1, y1 in np.asarray(known[-1], np.float64):
            corners = (round(x0 * width), round(y0 * height)), (round(x1 * width), round(y1 * height))
            cv2.rectangle(picture, *corners, RED, max(1, width // 320))
    clock = datetime.fromtimestamp(wall_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    lines = [f"{clock}  frame {sequence}  event {told.id}"]
    if score is not None:
        lines.append(f"score {score:.1f}")
    size = max(0.35, width / 1400)
    high = round(28 * size)
    for at, line in enumerate(lines):
        (long, _), _ = cv2.getTextSize(line, cv2.FONT_HERSHEY_SIMPLEX, size, 1)
        cv2.rectangle(picture, (0, at * high), (long + 12, (at + 1) * high), BLACK, cv2.FILLED)
        place = (6, round((at + 0.72) * high))
        cv2.putText(picture, line, place, cv2.FONT_HERSHEY_SIMPLEX, size, WHITE, 1, cv2.LINE_AA)


class _Encoder:
    """An MP4 of drawn frames, at the times that they had."""

    def __init__(self, file: pathlib.Path, first: np.ndarray):
        self._container = av.open(str(file), "w", format="mp4", options={"movflags": "faststart"})
        height, width = first.shape[:2]
        self._size = width - width % 2, height - height % 2
        self._stream: Any = self._container.add_stream("libx264" if "libx264" in av.codecs_available else "mpeg4")
        self._stream.width, self._stream.height, self._stream.pix_fmt = *self._size, "yuv420p"
        self._stream.codec_context.time_base = _MILLI
        self._began_ns: int | None = None
        self._last = -1

    def add(self, picture: np.ndarray, t_ns: int) -> None:
        self._began_ns = t_ns if self._began_ns is None else self._began_ns
        width, height = self._size
        if picture.shape[1] < width or picture.shape[0] < height:
            picture = cv2.resize(picture, self._size)
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture[:height, :width]), format="bgr24")
        self._last = max(self._last + 1, (t_ns - self._began_ns) // 1_000_000)
        frame.pts, frame.time_base = self._last, _MILLI
        self._container.mux(self._stream.encode(frame))

    def close(self) -> None:
        self._container.mux(self._stream.encode())
        self._container.close()
