"""Makes a recording of an MCAP file with images, or of a folder of images with a file of time stamps.

The `import` command. Images are kept byte for byte; nothing is decided about them: replay does that.
"""

import argparse
import csv
import datetime
import pathlib
from collections.abc import Iterator
from typing import Any

import cv2
import numpy as np

from stillwatch.base import RealClock, UsageError, VirtualClock, absent, shown
from stillwatch.restart import Recorder
from stillwatch.settings import Config, config_hash, config_toml, load_config
from stillwatch.sources import natural_key
from stillwatch.tools.recordings.mcap_formats import IMAGE_SCHEMAS, decode_image
from stillwatch.tools.shared import existing
from stillwatch.transport.disk import RECORDING_NAME, Session, log_files

UNITS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}
IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp", ".jp2", ".ppm", ".pgm")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", type=existing, metavar="IN", help="MCAP file, or folder of images")
    parser.add_argument("folder", metavar="OUT", help="new folder for the recording")
    parser.add_argument(
        "--times",
        metavar="FILE",
        help="CSV of name and time, or of times alone in the order of "
        "the names; times are numbers or ISO 8601 (default: IN/times.csv)",
    )
    parser.add_argument("--unit", choices=tuple(UNITS), default="s", help="of numbers in the file (default: s)")
    parser.add_argument("--rate", metavar="HZ", type=float, default=0.0, help="images a second, without a time file")
    parser.add_argument("--topic", metavar="TOPIC", help="of the MCAP file (default: its only topic with images)")
    parser.add_argument(
        "--config", type=existing, metavar="FILE", help="config that replays will use (default: the defaults)"
    )
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="override section.key=value")


def main(args: argparse.Namespace) -> int:
    source, folder = pathlib.Path(args.source), pathlib.Path(args.folder)
    config = load_config(args.config, args.set, opens_source=False)
    if folder.exists() and log_files(folder, RECORDING_NAME):
        raise UsageError(f"{folder}: already holds a recording: give a new folder")
    if source.is_dir():
        frames = _of_folder(source, args)
    elif source.is_file():
        frames = _of_mcap(source, args.topic)
    else:
        raise UsageError(absent(str(source)))
    count, skipped = write_recording(frames, folder, config, shown(source.name))
    if not count:
        raise UsageError(f"{source}: holds no readable image; give JPEG or PNG files")
    left_out = f", {skipped} left out (not images, or times that do not rise)" if skipped else ""
    print(f"{folder}: {count} frames{left_out}; replay it with: stillwatch replay {folder}")
    return 0


def write_recording(
    frames: Iterator[tuple[bytes, int]], folder: pathlib.Path, config: Config, name: str
) -> tuple[int, int]:
    """Write (image bytes, UTC ns) pairs as a recording; return frames written and left out.

    Stream time is 0 at the first frame. Images that cannot be decoded and times that do not rise are left out.
    """
    clock = VirtualClock(wall_ns=RealClock().wall_ns())
    session = Session(
        agent=config.agent.id,
        run=f"import-{clock.wall_ns() // 10**9:x}",
        config_text=config_toml(config),
        config_hash=config_hash(config),
        source_uri=name,
        source_kind="images",
    )
    recorder: Recorder | None = None  # made with the first frame: what holds none leaves nothing behind
    count = skipped = 0
    first = last = None
    for data, when in frames:
        colour = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
        if colour is None or (last is not None and when <= last) or colour.size // 3 > config.source.max_pixels:
            skipped += 1
            continue
        if recorder is None:
            recorder = Recorder(folder, config, clock, session)
        first, last = when if first is None else first, when
        recorder.image(count, when - first, when, data, _format_of(data), colour)
        count += 1
    if recorder is not None:
        recorder.end(None, "", "imported")
    return count, skipped


def _format_of(data: bytes) -> str:
    if data[:2] == b"\xff\xd8":
        return "jpeg"
    return "png" if data[:4] == b"\x89PNG" else "image"


def _of_folder(folder: pathlib.Path, args: argparse.Namespace) -> Iterator[tuple[bytes, int]]:
    """Yield the images of a folder with their times, in order of time."""
    names = sorted((p.name for p in folder.iterdir() if p.suffix.lower() in IMAGE_SUFFIXES), key=natural_key)
    if not names:
        raise UsageError(f"{folder}: holds no image; known are {', '.join(sorted(IMAGE_SUFFIXES))}")
    file = pathlib.Path(args.times) if args.times else folder / "times.csv"
    if file.is_file():
        times = read_times(file, names, UNITS[args.unit])
    elif args.times:
        raise UsageError(f"{file}: no such file; give --times FILE, or --rate HZ without it")
    elif args.rate > 0:
        times = {name: round(i * 1e9 / args.rate) for i, name in enumerate(names)}
    else:
        raise UsageError(f"{folder}: no times.csv in it: give --times FILE or --rate HZ")
    for name, when in sorted(times.items(), key=lambda item: item[1]):
        yield (folder / name).read_bytes(), when


def read_times(file: pathlib.Path, names: list[str], unit_ns: float) -> dict[str, int]:
    """Return name -> UTC ns of a CSV file with columns (name, time) or (time), with or without a heading.

    Raises
    ------
    UsageError
        A line that has neither a number nor an ISO 8601 time, an unknown image, or another number of times than
        images.
    """
    try:
        with open(file, newline="", encoding="utf-8") as stream:
            rows = [row for row in csv.reader(stream) if row and not row[0].startswith("#")]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{file}: cannot be read as CSV: {error}; it needs lines picture,time") from error
    if rows and _time(rows[0][-1] if len(rows[0]) == 1 else rows[0][1], unit_ns) is None:
        rows = rows[1:]  # a heading
    times: dict[str, int] = {}
    for i, row in enumerate(rows):
        alone = len(row) == 1
        if alone and i >= len(names):
            raise UsageError(f"{file}: {len(rows)} times for {len(names)} images; give as many, or lines picture,time")
        name = names[i] if alone else pathlib.PurePath(row[0].strip()).name
        when = _time(row[-1] if alone else row[1], unit_ns)
        if when is None:
            raise UsageError(f"{file}: line of {name}: {row[-1]!r} is neither a number nor an ISO 8601 time")
        if name not in names:
            raise UsageError(f"{file}: {name} is not among the images; take its line out, or name another --times")
        times[name] = when
    return times


def _time(text: str, unit_ns: float) -> int | None:
    text = text.strip()
    try:
        return int(text) * round(unit_ns)
    except ValueError:
        pass
    try:
        return round(float(text) * unit_ns)
    except (ValueError, OverflowError):
        pass
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
    return round(moment.timestamp() * 1e6) * 1000


def _of_mcap(file: pathlib.Path, topic: str | None) -> Iterator[tuple[bytes, int]]:
    """Yield the images of an MCAP file's topic with their log times; an unfinished file is read as far as it goes."""
    from mcap.exceptions import McapError
    from mcap.records import Channel, Message, Schema
    from mcap.stream_reader import StreamReader

    schemas: dict[int, str] = {}
    channels: dict[int, Channel] = {}
    with open(file, "rb") as stream:
        try:
            for record in StreamReader(stream, record_size_limit=256 * 1024 * 1024).records:
                if isinstance(record, Schema):
                    schemas[record.id] = record.name
                elif isinstance(record, Channel) and schemas.get(record.schema_id, "") in IMAGE_SCHEMAS:
                    if topic in (None, record.topic):
                        channels[record.id] = record
                        _check_one(channels, topic, file)
                elif isinstance(record, Message) and record.channel_id in channels:
                    image = decode_image(channels[record.channel_id].message_encoding, record.data)
                    yield (image.data if image is not None else b"", record.log_time)
        except (McapError, ValueError, EOFError) as error:
            if not channels:
                raise UsageError(
                    f"{file}: not a readable MCAP file: {error}; give a folder of pictures or a whole MCAP file"
                ) from error
    if not channels:
        wanted = f"no topic {topic} with" if topic else "no"
        found = ", ".join(sorted(set(schemas.values()))) or "no schemas"
        raise UsageError(f"{file}: {wanted} compressed images; it holds {found}: choose with --topic")


def _check_one(channels: dict[int, Any], topic: str | None, file: pathlib.Path) -> None:
    topics = sorted({channel.topic for channel in channels.values()})
    if topic is None and len(topics) > 1:
        raise UsageError(f"{file}: images on {', '.join(topics)}: choose one with --topic")
