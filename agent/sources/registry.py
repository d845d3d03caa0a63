"""One URI turned into the right source.

Called by agent/process/app.py and tools to make the sources that agent/sources/capture.py reads. Parses and looks at
the disk; opens nothing.
"""

import difflib
import glob
import os
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from stillwatch.base import Clock, ConfigError, MissingSourceError, SourceError, absent, secrets, shown
from stillwatch.settings import SourceConfig
from stillwatch.sources.base import Source
from stillwatch.sources.pace import Pace

NETWORK_SCHEMES = ("rtsp", "rtsps", "http", "https")
SCHEMES = (*NETWORK_SCHEMES, "v4l2", "synthetic", "recording", "file", "folder")
ENCODE = (
    "; in user and password write @ as %40, : as %3A, / as %2F, # as %23, ? as %3F, "
    "or keep them out of the address: rtsp://${env:CAMERA_USER}:${env:CAMERA_PASSWORD}@HOST/…"
)
EXAMPLES = {
    "v4l2": "a camera's path, as v4l2:/dev/v4l/by-id/NAME",
    "synthetic": "a world's name, as synthetic:road",
    "recording": "its folder, as recording:DIR",
}
GLOB_CHARACTERS = frozenset("*?[")


def open_source(uri: str, config: SourceConfig, clock: Clock) -> Source:
    """Make the source that `uri` names, unopened.

    Accepts a video file (`clip.mp4?loop=3`; with `pace=1` in real time), an image, a folder of images
    (`dir?live=1` for one that is being filled), a glob of images, rtsp:// rtsps:// http:// https://,
    `v4l2:/dev/v4l/by-id/...`, `synthetic:NAME?seed=1&...` (with `pace=1` in real time) and `recording:DIR`.
    `${env:NAME}` and `${file:PATH}` are replaced first, so that no password needs to stand in a config file or command
    line.

    Raises
    ------
    ConfigError
        The URI cannot be understood.
    SourceError
        It can, but names no existing file or folder.
    """
    uri = secrets.expand(uri)
    secrets.register_uri(uri)
    if not uri.strip():
        raise ConfigError(["source.uri: empty; give a file, a folder, rtsp://..., v4l2:... or synthetic:NAME"])
    scheme = _scheme(uri)
    if scheme in NETWORK_SCHEMES:
        return _network_source(uri, scheme, config, clock)
    if scheme in ("v4l2", "synthetic", "recording"):
        rest = uri.split(":", 1)[1].removeprefix("//")
        if not rest:
            raise ConfigError([f"source.uri: nothing after {scheme}: give {EXAMPLES[scheme]}"])
        return _named_source(scheme, rest, config, clock)
    if scheme == "file" and uri.startswith("file://"):
        uri = unquote(uri.removeprefix("file://"))
    elif scheme in ("file", "folder"):
        uri = uri.split(":", 1)[1]
    return _disk_source(uri, config, clock)


def redact(uri: str) -> str:
    """Return the URI as it may be shown: user and password, and credentials in its query, replaced."""
    return secrets.redact_uri(uri)


def _scheme(uri: str) -> str:
    """Return the scheme of a URI, '' for a path. An existing path wins over a scheme of the same spelling."""
    head, colon, rest = uri.partition(":")
    if not colon or os.path.exists(uri) or os.sep in head or len(head) < 2 or not head.isalnum():
        return ""
    scheme = head.lower()
    if scheme in SCHEMES:
        return scheme
    if not rest.startswith("//"):
        if scheme in difflib.get_close_matches(scheme, SCHEMES):
            return scheme
        near = difflib.get_close_matches(scheme, SCHEMES, 1)
        if not near:
            return ""
        raise ConfigError([f"source.uri: unknown kind {head!r}; did you mean {near[0]!r}?"])
    near = difflib.get_close_matches(scheme, SCHEMES, 1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(SCHEMES)}"
    raise ConfigError([f"source.uri: unknown kind {head!r}{hint}"])


def _network_source(uri: str, scheme: str, config: SourceConfig, clock: Clock) -> Source:
    from stillwatch.sources.live import NetworkSource

    uri = secrets.encode_userinfo(uri)
    try:
        parts = urlsplit(uri)
        host, _ = parts.hostname, parts.port
    except ValueError:  # its text may quote a part of the password
        problem = f"source.uri: host or port cannot be understood (port: 0 to 65535) in {redact(uri)}{ENCODE}"
        raise ConfigError([problem]) from None
    if not host:
        raise ConfigError([f"source.uri: no host in {redact(uri)}{ENCODE}"])
    return NetworkSource(uri, "rtsp" if scheme.startswith("rtsp") else "http", config, clock)


def _named_source(scheme: str, rest: str, config: SourceConfig, clock: Clock) -> Source:
    if scheme == "v4l2":
        from stillwatch.sources.live import CameraSource

        return CameraSource(rest, config, clock)
    if scheme == "recording":
        from stillwatch.sources.recording import RecordingSource

        folder = rest.partition("?")[0]
        if not os.path.exists(folder):
            raise MissingSourceError(absent(folder))
        return RecordingSource(rest, config, clock)
    from stillwatch.sources.synthetic import SyntheticSource

    name, _, query = rest.partition("?")
    params = _query(query, rest)
    pace = Pace(clock) if _is_on("pace", params) else None
    return SyntheticSource(name, params, config, pace)


def _disk_source(path: str, config: SourceConfig, clock: Clock) -> Source:
    path = os.path.expanduser(path)
    options: dict[str, str] = {}
    # A name with a question mark is a glob or a query; a file that is really called so wins.
    if not os.path.exists(path) and "?" in path:
        bare, _, query = path.rpartition("?")
        if "=" in query:
            path, options = bare, _query(query, path)
    loop, live, pace = _disk_options(path, options)
    if pace and not os.path.isfile(path):
        raise ConfigError([f"source.uri: pace=1 is for video files, {shown(path)} is none"])
    if os.path.isdir(path):
        from stillwatch.sources.images import FolderSource

        return FolderSource(path, config, clock, live=live, loop=loop)
    if not os.path.exists(path):
        return _glob_source(path, config, loop, live)
    if live:
        raise ConfigError([f"source.uri: live=1 is for folders, {path} is a file"])
    return _file_source(path, config, loop, Pace(clock) if pace else None)


def _glob_source(path: str, config: SourceConfig, loop: int, live: bool) -> Source:
    from stillwatch.sources.images import ImagesSource, natural_key

    if not GLOB_CHARACTERS & set(path) or "\0" in path:  # no name has a null byte, and `glob` fails on it
        raise MissingSourceError(absent(path))
    if live:
        raise ConfigError([f"source.uri: live=1 is for folders, {path} is a pattern"])
    matches = sorted((name for name in glob.glob(path) if os.path.isfile(name)), key=natural_key)
    if not matches:
        raise MissingSourceError(f"{shown(path)}: no file matches; try the pattern with: ls")
    return ImagesSource(path, matches, config, loop=loop)


def _file_source(path: str, config: SourceConfig, loop: int, pace: Pace | None) -> Source:
    """Choose by content: a PNG named .mp4 is an image; an animated one, or a stream of JPEGs, is a video."""
    from stillwatch.sources.image_header import is_still_image

    if not os.path.isfile(path):
        raise SourceError(f"{path}: neither a file nor a folder (use v4l2:{path} for a camera)")
    try:
        still = is_still_image(Path(path))
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {error.strerror}; give a file that can be") from None
    if still and pace is not None:
        raise ConfigError([f"source.uri: pace=1 is for video files, {shown(path)} is a picture"])
    if still:
        from stillwatch.sources.images import ImagesSource

        return ImagesSource(path, [path], config, loop=loop)
    from stillwatch.sources.video import VideoFileSource

    return VideoFileSource(path, config, loop=loop, pace=pace)


def _disk_options(path: str, options: dict[str, str]) -> tuple[int, bool, bool]:
    unknown = sorted(set(options) - {"loop", "live", "pace"})
    if unknown:
        raise ConfigError([f"source.uri: unknown option {unknown[0]!r} after {path}; known: loop, live, pace"])
    loop = options.get("loop", "1")
    if not loop.isdecimal() or not 1 <= int(loop) <= 1_000_000:
        raise ConfigError([f"source.uri: loop={loop} is outside [1, 1000000]"])
    return int(loop), _is_on("live", options), _is_on("pace", options)


def _is_on(name: str, options: dict[str, str]) -> bool:
    """Take a switch out of the options and return whether it is on."""
    value = options.pop(name, "0")
    if value not in ("0", "1"):
        raise ConfigError([f"source.uri: {name}={value} is neither 0 (off) nor 1 (on)"])
    return value == "1"


def _query(query: str, whole: str) -> dict[str, str]:
    if not query:
        return {}
    try:
        return dict(parse_qsl(query, keep_blank_values=True, strict_parsing=True))
    except ValueError:
        raise ConfigError(
            [f"source.uri: options after '?' are not key=value pairs in {redact(whole)}; write a '?' of a name as %3F"]
        ) from None
