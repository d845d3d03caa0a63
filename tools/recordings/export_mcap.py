"""Writes a recording as MCAP: images, positions, novelty, events, outlines and status, for Foxglove.

The `export` command. Frames are those that the agent took, with their own times.
"""

import argparse
import json
import pathlib
from typing import Any

import cv2
import msgspec

from stillwatch.base import Nav, UsageError
from stillwatch.settings import SourceConfig
from stillwatch.sources import RecordingSource
from stillwatch.tools.recordings import mcap_formats as f
from stillwatch.tools.shared import existing, result_stream
from stillwatch.transport.disk import RECORDING_NAME, log_files, open_run
from stillwatch.transport.disk import recording as r
from stillwatch.transport.wire import messages as m

NUMBERS = {
    "novelty": f.number_schema(value="number", rarity="number", frame_surprise="number", event="integer",
                               accepted="boolean", learning="boolean", reason="string", frame="integer"),
    "events": f.number_schema(id="integer", phase="string", alert_kind="string", severity="number", peak="number",
                              rarity="number", duration_s="number", start_frame="integer", component="integer"),
    "status": f.number_schema(state="string", frames="integer", accepted="integer", dropped="integer",
                              rss_bytes="integer", rate_hz="number", temperature_c="number", frame_age_s="number"),
    "models": f.number_schema(which="string", n_components="integer", clumps="integer", free_energy="number",
                              model_epoch="integer", activated_frame="integer"),
}  # fmt: skip
TOPIC_OF = {"score": "novelty", "alert": "events", "status": "status", "model": "models"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "recording", type=existing, metavar="RECORDING", help="recording; of a run folder only messages are written"
    )
    parser.add_argument("out", metavar="OUT.mcap", help="file to write")
    parser.add_argument("--width", metavar="PX", type=int, default=0, help="scale images down to this width")
    parser.add_argument("--quality", metavar="Q", type=int, default=85, help="JPEG quality, 1 to 100")


def main(args: argparse.Namespace) -> int:
    if not 1 <= args.quality <= 100 or args.width < 0:
        raise UsageError(f"--quality {args.quality}: 1 to 100; --width {args.width}: 0 or more")
    counts = export(pathlib.Path(args.recording), pathlib.Path(args.out), width=args.width, quality=args.quality)
    print(f"{args.out}: " + ", ".join(f"{n} on {topic}" for topic, n in sorted(counts.items())))
    return 0


def export(recording: pathlib.Path, out: pathlib.Path, *, width: int = 0, quality: int = 85) -> dict[str, int]:
    """Write the MCAP file and return the number of messages by topic.

    Raises
    ------
    UsageError
        The file cannot be written.
    LogError, SourceError
        The recording cannot be read.
    """
    run = open_run(recording)
    has_frames = bool(log_files(recording, RECORDING_NAME))
    with result_stream(out, "as OUT.mcap") as stream:
        writer = _Writer(stream, run.info.get("agent") or "agent")
        base_ns = _base_ns(recording, run, has_frames)
        size = writer.images(recording, base_ns, width, quality) if has_frames else (0, 0)
        for kind, message in run.messages(set(TOPIC_OF)):
            writer.message(kind, message, base_ns, size)
        writer.finish(run.config_text)
    return writer.counts


def _base_ns(recording: pathlib.Path, run: Any, has_frames: bool) -> int:
    """Return the UTC time of stream time 0: MCAP viewers show wall time."""
    if has_frames:
        source = RecordingSource(str(recording), SourceConfig())
        source.open()
        first = source.read()
        source.close()
        if first is not None and first.recorded is not None:
            return first.recorded.wall_ns - first.recorded.t_ns
        return r.first_session(recording).wall_ns
    for _, message in run.messages():
        return message.wall_ns - message.t_ns
    return 0


class _Writer:
    """An MCAP file with its channels."""

    def __init__(self, stream: Any, agent: str):
        from mcap.writer import Writer

        self.counts: dict[str, int] = {}
        self._agent = agent
        self._writer = Writer(stream)
        self._writer.start(profile="", library="stillwatch")
        self._channels: dict[str, int] = {}

    def _channel(self, topic: str, schema: str, schema_encoding: str, data: bytes, encoding: str) -> int:
        if topic not in self._channels:
            schema_id = self._writer.register_schema(name=schema, encoding=schema_encoding, data=data)
            self._channels[topic] = self._writer.register_channel(
                topic=topic, message_encoding=encoding, schema_id=schema_id
            )
        return self._channels[topic]

    def _add(self, channel: int, topic: str, when_ns: int, data: bytes, sequence: int) -> None:
        when_ns = max(when_ns, 0)
        self._writer.add_message(channel, log_time=when_ns, data=data, publish_time=when_ns, sequence=sequence)
        self.counts[topic] = self.counts.get(topic, 0) + 1

    def images(self, recording: pathlib.Path, base_ns: int, width: int, quality: int) -> tuple[int, int]:
        """Write every frame that can be shown, as it was taken; return (width, height) of the last."""
        source = RecordingSource(str(recording), SourceConfig())
        source.open()
        topic = "/camera"
        channel = self._channel(topic, f.ROS1_IMAGE, "ros1msg", f.ROS1_IMAGE_SCHEMA, "ros1")
        size = (0, 0)
        while (raw := source.read()) is not None:
            stamp = raw.recorded
            assert stamp is not None
            body: r.FrameRecord | None = source.passed[-1][1]
            source.passed.clear()
            colour = raw.colour
            if 0 < width < colour.shape[1]:
                colour = cv2.resize(
                    colour,
                    (width, max(1, round(colour.shape[0] * width / colour.shape[1]))),
                    interpolation=cv2.INTER_AREA,
                )
                body = None
            size = (colour.shape[1], colour.shape[0])
            when = base_ns + stamp.t_ns
            if body is not None and body.image:
                image = f.Image(body.image, body.image_format, when)
            else:
                data = cv2.imencode(".jpg", colour, [cv2.IMWRITE_JPEG_QUALITY, quality])[1].tobytes()
                image = f.Image(data, "jpeg", when)
            data = f.encode_ros1_image(image, stamp.sequence, self._agent)
            self._add(channel, topic, when, data, stamp.sequence)
            self._position(stamp.nav, when, stamp.sequence)
        source.close()
        return size

    def _position(self, nav: Nav, when: int, sequence: int) -> None:
        """Write where the vehicle was, as numbers to plot and, where there is a place, for maps."""
        known = f.nav_fields(nav)
        if not known:
            return
        channel = self._channel("/nav", "stillwatch.nav", "jsonschema", f.NAV_SCHEMA, "json")
        self._add(channel, "/nav", when, msgspec.json.encode(known), sequence)
        fix = f.location(known, self._agent, when)
        if fix is not None:
            channel = self._channel("/location", "foxglove.LocationFix", "jsonschema", f.LOCATION_SCHEMA, "json")
            self._add(channel, "/location", when, fix, sequence)

    def message(self, kind: str, message: m.Message, base_ns: int, size: tuple[int, int]) -> None:
        """Write one published message as flat JSON, and an alert's outlines over the image."""
        name = TOPIC_OF[kind]
        fields = {k: getattr(message, k) for k in json.loads(NUMBERS[name])["properties"]}
        channel = self._channel(f"/{name}", f"stillwatch.{name}", "jsonschema", NUMBERS[name], "json")
        when = base_ns + message.t_ns
        self._add(channel, f"/{name}", when, msgspec.json.encode(fields), message.sequence)
        boxes = getattr(message, "boxes", None)
        if boxes is not None and size[0]:
            topic = "/outlines"
            channel = self._channel(topic, "foxglove.ImageAnnotations", "jsonschema", f.ANNOTATIONS_SCHEMA, "json")
            self._add(channel, topic, when, f.outlines(boxes, *size, when), message.sequence)

    def finish(self, config_text: str) -> None:
        """Write the config beside the messages, and the index."""
        if config_text:
            self._writer.add_attachment(
                create_time=0, log_time=0, name="config.toml", media_type="application/toml", data=config_text.encode()
            )
        self._writer.finish()
