"""Passwords kept out of everything that people, files or peers can read.

Used by agent/sources/registry.py (registers what a URI holds), agent/process/app.py and tools/cli.py (install the log
scrubber, hide the command line), and whoever shows text that came from a library. Must not print, log or hash a
secret.
"""

import base64
import ctypes
import logging
import os
import re
import threading
from pathlib import Path
from urllib.parse import quote, quote_plus, unquote

from stillwatch.base.errors import ConfigError
from stillwatch.base.text import shown

HIDDEN = "***"
SHORTEST_PART = 6  # of a password that holds @ or /; shorter parts are words that other texts need
SHORTEST = 3  # shorter ones cannot be searched for without mangling every text
CREDENTIAL_WORDS = "(?:[a-z0-9_]*(?:password|passwd|pwd|token|secret|apikey|api_key|auth)|pass|key)"
CREDENTIAL_KEYS = re.compile(rf"(?i)([?&;]{CREDENTIAL_WORDS}=)([^&;#\s]*)")
HOST = re.compile(r"[^@:\[\]\s]+(:[0-9]{0,5})?|\[[0-9A-Fa-f:.%]+\](:[0-9]{0,5})?")  # and perhaps a port
REFERENCE = re.compile(r"\$\{(env|file):([^}]*)\}")
LONGEST_SECRET_FILE = 4096

_lock = threading.Lock()
_known: set[str] = set()
_ordered: tuple[str, ...] = ()  # longest first, so that no secret hides a part of a longer one


def register(secret: str) -> None:
    """Remember a secret, and its URL-encoded spellings, so that `scrub` removes it from any text."""
    global _ordered
    if len(secret) < SHORTEST:
        return
    forms = {secret, quote(secret), quote(secret, safe=""), quote_plus(secret), unquote(secret)}
    forms |= {re.sub(r"%[0-9A-F]{2}", lambda match: match.group().lower(), form) for form in forms}
    with _lock:
        _known.update(form for form in forms if len(form) >= SHORTEST)
        _ordered = tuple(sorted(_known, key=lambda form: (-len(form), form)))


def scrub(text: str) -> str:
    """Return the text with every registered secret replaced."""
    for secret in _ordered:
        if secret in text:
            text = text.replace(secret, HIDDEN)
    return text


def expand(text: str) -> str:
    """Replace `${env:NAME}` and `${file:PATH}` by what they hold, and register it as secret.

    Raises ConfigError where the variable is not set, or the file is missing, empty or over 4096 bytes.
    """

    def value(match: re.Match[str]) -> str:
        found = _read_reference(match.group(1), match.group(2))
        register(found)
        return found

    return REFERENCE.sub(value, text)


def _read_reference(kind: str, name: str) -> str:
    if kind == "env":
        if not os.environ.get(name):
            raise ConfigError([f"${{env:{name}}}: the environment has no {name}; set it before the start"])
        return os.environ[name]
    try:
        with Path(name).open(encoding="utf-8") as file:
            found = file.read(LONGEST_SECRET_FILE + 1)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(
            [f"${{file:{name}}}: cannot be read: {why}; give a file of text that the agent may read"]
        ) from None
    if not found.strip() or len(found) > LONGEST_SECRET_FILE:
        raise ConfigError([f"${{file:{name}}}: holds {len(found)} bytes, must hold 1 to {LONGEST_SECRET_FILE}"])
    return found.strip()


def register_uri(uri: str) -> None:
    """Register the password and the credential options of a URI."""
    for userinfo in {_userinfo(uri), _userinfo(uri) and _up_to_last_at(uri)}:
        if ":" not in userinfo:
            continue
        password = userinfo.split(":", 1)[1]
        for part in re.split("[@/]", password):  # what a parser may take for host, port or path, and quote
            register(part if len(part) >= SHORTEST_PART else "")
        register(password)
        register(unquote(password))
        register(base64.b64encode(os.fsencode(unquote(userinfo))).decode())  # as HTTP and RTSP send it
    for match in CREDENTIAL_KEYS.finditer(uri):
        register(match.group(2))


def redact_uri(uri: str) -> str:
    """Return the URI without user, password and credential options."""
    hidden = _userinfo(uri) and _up_to_last_at(uri)  # more than the parser takes: an @ in a path may be a password's
    if hidden:
        uri = uri.replace(hidden + "@", HIDDEN + "@", 1)
    uri = CREDENTIAL_KEYS.sub(lambda match: match.group(1) + HIDDEN, uri)
    return scrub(shown(uri))


def encode_userinfo(uri: str) -> str:
    """Return the URI with '/', '?', '#' and '@' inside user and password percent-encoded, as parsers need them."""
    userinfo = _userinfo(uri)
    return uri.replace(userinfo, quote(userinfo, safe=":%!$&'()*+,;=~"), 1) if userinfo else uri


def _userinfo(uri: str) -> str:
    """Return what stands between '//' and the '@' before the host; passwords may hold '@', ':', '/' or '#'.

    An '@' in a path is left alone only where what stands before the path is a host, perhaps with user and port:
    where it cannot be parsed as one, all up to the last '@' before the query counts as secret.
    """
    _, found, rest = uri.partition("://")
    if not found or "@" not in rest:
        return ""
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    userinfo, _, host = authority.rpartition("@")
    if HOST.fullmatch(host):
        return userinfo
    return _up_to_last_at(uri)


def _up_to_last_at(uri: str) -> str:
    """Return what stands between '//' and the last '@' that is not the query's."""
    rest = uri.partition("://")[2]
    return re.split(r"\?[\w.-]+=", rest, maxsplit=1)[0].rpartition("@")[0] or rest.rpartition("@")[0]


class ScrubbingFormatter(logging.Formatter):
    """Format as another formatter does, then scrub: covers arguments, exceptions and stack texts alike."""

    def __init__(self, inner: logging.Formatter | None):
        super().__init__()
        self._inner = inner or logging.Formatter()

    def format(self, record: logging.LogRecord) -> str:
        return scrub(self._inner.format(record))


def scrub_handlers(logger: logging.Logger | None = None) -> None:
    """Make every handler of the logger (the root by default) scrub what it writes. Call after adding handlers."""
    for handler in (logger or logging.getLogger()).handlers:
        if not isinstance(handler.formatter, ScrubbingFormatter):
            handler.setFormatter(ScrubbingFormatter(handler.formatter))


def hide_command_line() -> bool:
    """Overwrite registered secrets in this process's command line, which `ps` shows to every user.

    Linux only, by the argument area that /proc/self/stat names; returns whether anything was overwritten.
    A window of milliseconds between start and this call remains: `${env:...}` and `${file:...}` have none.
    """
    try:
        stat = Path("/proc/self/stat").read_text()
        line = Path("/proc/self/cmdline").read_bytes()
    except OSError:
        return False
    fields = stat.rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[46])  # arg_start, arg_end: proc(5) fields 48 and 49
    if not start or len(line) > end - start:
        return False
    clean = line
    for secret in _ordered:
        raw = os.fsencode(secret)
        clean = clean.replace(raw, b"*" * len(raw))
    if clean == line:
        return False
    ctypes.memmove(start, clean, len(clean))
    return True
