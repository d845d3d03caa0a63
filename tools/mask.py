"""Draws what nobody should watch: a page with a frame of the source, polygons by clicks, written into the config.

The `mask` command. It serves one page to a browser on this machine, under an address that nobody can guess, until the
mask is saved.
"""

import argparse
import html
import json
import pathlib
import re
import secrets
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import cv2

from stillwatch.base import AgentError, Frame, RealClock, UsageError, register_uri, shown
from stillwatch.settings import Config, load_config
from stillwatch.sources import Capture, open_source
from stillwatch.tools.mask_page import page
from stillwatch.tools.shared import existing, stop_on_signals
from stillwatch.transport.disk import write_durably

MOST_BYTES = 100_000  # of what a browser sends
MOST_POLYGONS, MOST_CORNERS = 100, 1000
FIRST_FRAME_S = 30.0

Polygons = Sequence[Sequence[Sequence[float]]]  # corners as shares of width and height


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="what to show a frame of: file, folder, rtsp://…, v4l2:/dev/…")
    parser.add_argument("--config", type=existing, metavar="FILE", help="TOML file to write to (else: print the line)")
    parser.add_argument("--frame", type=int, default=0, metavar="N", help="which frame to show, from 0")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="of the page (default: any that is free)")
    parser.add_argument("--no-browser", action="store_true", help="print the address and open nothing")


def main(args: argparse.Namespace) -> int:
    if not 0 <= args.port <= 65535:
        raise UsageError(f"--port: {args.port} is not in [0, 65535]")
    if args.frame < 0:
        raise UsageError(f"--frame: {args.frame} is below 0, the first frame")
    register_uri(args.source)
    config = load_config(args.config, opens_source=False)
    frame = frame_of(args.source, config, args.frame)
    done = threading.Event()
    stop_on_signals(done)
    with MaskServer(frame, config.features.mask, args.port, done) as server:
        print(f"draw at {server.address} and press Save; ctrl-C leaves all as it is", file=sys.stderr, flush=True)
        if not args.no_browser:
            webbrowser.open(server.address)
        done.wait()
        polygons = server.saved
    if polygons is None:
        print("nothing saved", file=sys.stderr)
        return 0
    line = f"mask = {json.dumps(polygons)}"
    if args.config:
        write_mask(pathlib.Path(args.config), line)
        print(f"{args.config}: {len(polygons)} polygons in features.mask", file=sys.stderr)
    else:
        print(line)
    return 0


def frame_of(uri: str, config: Config, number: int) -> Frame:
    """Return frame `number` of a source at the working size.

    Raises
    ------
    SourceError, ConfigError
        The source cannot be opened.
    AgentError
        It ends before that frame.
    """
    clock = RealClock()
    capture = Capture(lambda: open_source(uri, config.source, clock), config.source, clock)
    capture.start()
    n_seen = 0
    try:
        until_ns = clock.monotonic_ns() + int(FIRST_FRAME_S * 1e9)
        while not capture.ended and clock.monotonic_ns() < until_ns:
            frame = capture.next(1.0)
            if frame is None:
                continue
            until_ns = clock.monotonic_ns() + int(FIRST_FRAME_S * 1e9)
            if n_seen == number:
                return frame
            n_seen += 1
        if capture.error is not None:
            raise capture.error
    finally:
        capture.stop()
    raise AgentError(
        f"{shown(capture.info.uri)}: has {n_seen} frames, --frame {number} is none of them: give 0 to "
        f"{max(n_seen - 1, 0)}"
    )


class MaskServer:
    """Serves the page on the loopback alone, and takes what it saves.

    Attributes
    ----------
    address : str
        With a token in it: other programs and pages of this machine do not know it.
    saved : list of polygons, or None
        Corners as shares of width and height.
    """

    def __init__(self, frame: Frame, polygons: Polygons, port: int, done: threading.Event):
        self.saved: Polygons | None = None
        self._done = done
        path = f"/{secrets.token_urlsafe(16)}"
        ok, jpeg = cv2.imencode(".jpg", frame.colour, [cv2.IMWRITE_JPEG_QUALITY, 90])
        assert ok, "a frame can be a JPEG"
        body = page(jpeg.tobytes(), frame.colour.shape[1], frame.colour.shape[0], polygons).encode()
        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(path, body, self.take))
        except OSError as error:
            raise UsageError(f"--port: {port} cannot be used: {error.strerror}; leave it out for a free one") from error
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}{path}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="mask-page", daemon=True)

    def __enter__(self) -> "MaskServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def take(self, polygons: Polygons) -> None:
        """Take what the page saved."""
        self.saved = polygons
        self._done.set()


def _handler(path: str, body: bytes, take: Callable[[Polygons], None]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != path:
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            self._answer(HTTPStatus.OK, body, "text/html; charset=utf-8")

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            if self.path != path or not 0 < length <= MOST_BYTES:
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            try:
                polygons = checked_polygons(json.loads(self.rfile.read(length)))
            except ValueError as error:
                self._answer(HTTPStatus.BAD_REQUEST, html.escape(str(error)).encode(), "text/plain; charset=utf-8")
                return
            self._answer(HTTPStatus.OK, b"saved", "text/plain; charset=utf-8")
            take(polygons)

        def _answer(self, status: HTTPStatus, content: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """The terminal is for the person who draws."""

    return Handler


def checked_polygons(given: object) -> Polygons:
    """Return polygons as the config takes them, corners to four digits; ValueError says what is wrong."""
    if not isinstance(given, list) or len(given) > MOST_POLYGONS:
        raise ValueError(f"a mask is a list of at most {MOST_POLYGONS} polygons")
    polygons = []
    for i, polygon in enumerate(given):
        if not isinstance(polygon, list) or not 3 <= len(polygon) <= MOST_CORNERS:
            raise ValueError(f"polygon {i}: 3 to {MOST_CORNERS} corners are needed")
        for corner in polygon:
            is_pair = isinstance(corner, list) and len(corner) == 2
            if not is_pair or not all(isinstance(v, int | float) and 0.0 <= v <= 1.0 for v in corner):
                raise ValueError(f"polygon {i}: a corner is x and y in [0, 1], not {corner!r}"[:200])
        polygons.append([[round(float(x), 4), round(float(y), 4)] for x, y in polygon])
    return polygons


def write_mask(path: pathlib.Path, line: str) -> None:
    """Put the line into the file's [features]; all else stays as it is. UsageError where it cannot be written."""
    text = with_mask(path.read_text("utf-8"), line)
    with tempfile.TemporaryDirectory(prefix="stillwatch-mask-") as folder:
        trial = pathlib.Path(folder, path.name)
        trial.write_text(text, "utf-8")
        load_config(trial, opens_source=False)
    try:
        write_durably(path, text.encode())
    except OSError as error:
        raise UsageError(f"{path}: mask not written: {error.strerror}; write it by hand: {line}") from error


def with_mask(text: str, line: str) -> str:
    """Return a config's text with this line as its [features] mask."""
    section = re.search(r"^[ \t]*\[[ \t]*features[ \t]*\][^\n]*\n?", text, re.M)
    if section is None:
        return f"{text.rstrip()}\n\n[features]\n{line}\n" if text.strip() else f"[features]\n{line}\n"
    rest = text[section.end() :]
    next_section = re.search(r"^[ \t]*\[[ \t]*[A-Za-z_]", rest, re.M)
    body = rest[: next_section.start()] if next_section else rest
    old = re.search(r"^[ \t]*mask[ \t]*=[ \t]*", body, re.M)
    if old is None:
        head = text[: section.end()]
        return f"{head}{'' if head.endswith(chr(10)) else chr(10)}{line}\n{rest}"
    end = _end_of_array(body, old.end())
    start = section.end()
    return f"{text[: start + old.start()]}{line}{text[start + end :]}"


def _end_of_array(text: str, start: int) -> int:
    """Return where the array of numbers that begins at `start` ends; the end of its line where it is none."""
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] == "[") - (text[i] == "]")
        if depth == 0:
            return i + 1 if text[i] == "]" else text.find("\n", start) if "\n" in text[start:] else len(text)
    return len(text)
