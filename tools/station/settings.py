"""Every setting of a station, read from TOML with every fault listed at once, as an agent's are.

Read when a station starts. Sections [station] and [page] are there once; [agents.NAME], [thin.NAME] and
[tell.NAME] once for each agent, modem and way out.
"""

import math
import pathlib
import re
import tomllib
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from stillwatch.base import ConfigError, secrets
from stillwatch.settings import Problem, allowed, key_lines, read_text, unknown_word
from stillwatch.transport.thin import PRESETS
from stillwatch.transport.wire import AGENT_PATTERN

AGENT_NAME = re.compile(AGENT_PATTERN)
Port = Annotated[int, Meta(ge=0, le=65_535)]
Days = Annotated[float, Meta(gt=0.0, le=36_500.0)]
Presets = Literal[tuple(PRESETS)]  # type: ignore[valid-type]


class StationSection(msgspec.Struct, frozen=True, kw_only=True):
    """What the station is and keeps. `key`: its own key pair, for every agent that names none."""

    name: Annotated[str, Meta(max_length=64)] = "station"
    store: str = "station.db"
    folders: list[str] = []
    key: str = ""
    agents_from_page: bool = True
    score_days: Days = 60.0
    alert_days: Days = 730.0
    max_bytes: Annotated[int, Meta(ge=1_000_000, le=10**15)] = 20_000_000_000
    alerts_a_minute: Annotated[float, Meta(gt=0.0, le=60_000.0)] = 60.0


class PageSection(msgspec.Struct, frozen=True, kw_only=True):
    """Where and how the page is served."""

    host: str = "127.0.0.1"
    port: Port = 8470
    tls_certificate: str = ""
    tls_key: str = ""
    behind_proxy: bool = False
    plain_http: bool = False


class AgentSection(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's live plane: `endpoint` is its publish.endpoint; `control` two ports above where it is not named."""

    endpoint: str = ""
    control: str = ""
    key: str = ""
    server: str = ""


class ThinSection(msgspec.Struct, frozen=True, kw_only=True):
    """A modem: what `stillwatch ground-thin` takes. The section's name is the agent's, as on the live plane."""

    listen: str = "udp://127.0.0.1:5581"
    preset: Presets = next(iter(PRESETS))  # type: ignore[valid-type]
    agent_number: Annotated[int, Meta(ge=0, le=255)] = 0
    key_file: str = ""


class TellSection(msgspec.Struct, frozen=True, kw_only=True):
    """A way out. Which alerts go there: `agents` and `kinds` (empty: all), from `least_severity` on, `phases`."""

    kind: Literal["webhook", "mqtt", "email", "command"] = "webhook"
    agents: list[str] = []
    kinds: list[str] = []
    least_severity: Annotated[float, Meta(ge=0.0, le=1.0)] = 0.0
    phases: tuple[Literal["new", "update", "end"], ...] = ("new",)
    tries: Annotated[int, Meta(ge=1, le=1000)] = 12
    timeout_s: Annotated[float, Meta(gt=0.0, le=300.0)] = 10.0
    url: str = ""  # webhook: http:// or https://
    secret: str = ""  # webhook: signs each message (HMAC-SHA-256)
    host: str = ""  # mqtt, email
    port: Port = 0
    user: str = ""
    password: str = ""
    tls: bool = False  # email: STARTTLS where the port is not 465
    ca_file: str = ""
    topic: str = "stillwatch"  # mqtt: what topics begin with
    discovery: str = "homeassistant"  # mqtt: prefix of Home Assistant's discovery; empty: none
    sender: str = ""  # email
    to: list[str] = []  # email
    command: list[str] = []  # program and arguments; the message comes as JSON on its standard input


class StationSettings(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    station: StationSection = StationSection()
    page: PageSection = PageSection()
    agents: dict[str, AgentSection] = {}
    thin: dict[str, ThinSection] = {}
    tell: dict[str, TellSection] = {}


_ONCE: dict[str, type[msgspec.Struct]] = {"station": StationSection, "page": PageSection}
_MANY: dict[str, type[msgspec.Struct]] = {"agents": AgentSection, "thin": ThinSection, "tell": TellSection}


def load_settings(path: str | None) -> StationSettings:
    """Return the settings of a TOML file, or the defaults for None.

    Raises
    ------
    ConfigError
        With every fault found: which file and line, which key, the value, what it may be.
    """
    if path is None:
        return StationSettings()
    text = read_text(path, "settings")
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            [Problem(path, "", "", f"not valid TOML: {error}; write key = value below [section]")]
        ) from None
    reader = _Reader(path, key_lines(text))
    values = {name: reader.section(name, kind, table.get(name, {})) for name, kind in _ONCE.items()}
    for name, kind in _MANY.items():
        values[name] = reader.sections(name, kind, table.get(name, {}))
    known = [*_ONCE, *_MANY]
    for name in table:
        if name not in known:
            reader.complain(name, "", unknown_word(name, known, "section"))
    settings = StationSettings(**values)
    _check(settings, reader)
    if reader.problems:
        raise ConfigError(reader.problems)
    return settings


class _Reader:
    """Converts sections, and collects what does not fit."""

    def __init__(self, path: str, lines: dict[str, int]):
        self.problems: list[Problem] = []
        self._path, self._lines = path, lines

    def complain(self, key: str, value: Any, message: str) -> None:
        text = repr(value)[:60]
        self.problems.append(Problem(self._path, key, text, message, self._lines.get(key, 0)))

    def section(self, name: str, kind: type[msgspec.Struct], values: Any) -> Any:
        """Return a section; what does not fit keeps its default and is a problem."""
        if not isinstance(values, dict):
            self.complain(name, values, f"{values!r:.60} is not a section: write [{name}] and its keys below")
            return kind()
        fields = {field.name: field for field in msgspec.structs.fields(kind)}
        found = {}
        for key, value in values.items():
            dotted = f"{name}.{key}"
            if key not in fields:
                self.complain(dotted, value, unknown_word(key, list(fields), "key"))
                continue
            try:
                value = secrets.expand(value) if isinstance(value, str) else value
                if isinstance(value, float) and not math.isfinite(value):
                    raise ConfigError([f"{value} is not a finite number; it must be"])
                found[key] = msgspec.convert(value, fields[key].type)
            except ConfigError as error:
                self.complain(dotted, value, str(error))
            except msgspec.ValidationError as error:
                words = allowed(fields[key].type)
                told = f"is not {words}" if words else f"does not fit: {str(error)[0].lower()}{str(error)[1:]}"
                self.complain(dotted, value, f"{value!r:.60} {told}")
        return kind(**found)

    def sections(self, name: str, kind: type[msgspec.Struct], table: Any) -> dict[str, Any]:
        """Return the sections [name.NAME] of a table."""
        if not isinstance(table, dict):
            self.complain(name, table, f"write [{name}.NAME] and its keys below")
            return {}
        found = {}
        for own, values in table.items():
            if not AGENT_NAME.fullmatch(own):
                self.complain(f"{name}.{own}", own, "a name is 1 to 32 of a-z 0-9 _ - beginning with a letter or digit")
            found[own] = self.section(f"{name}.{own}", kind, values)
        return found


def _check(settings: StationSettings, reader: _Reader) -> None:
    """Faults that no single key has."""
    for name, agent in settings.agents.items():
        if not agent.endpoint.startswith(("tcp://", "ipc://")):
            message = f"{agent.endpoint!r} is not the agent's publish.endpoint, tcp://HOST:PORT or ipc://PATH"
            reader.complain(f"agents.{name}.endpoint", agent.endpoint, message)
        if agent.key and not agent.server:
            reader.complain(f"agents.{name}.key", agent.key, "needs server, the agent's public key, beside it")
        if agent.server and not (agent.key or settings.station.key):
            reader.complain(f"agents.{name}.server", agent.server, "needs key, here or in [station], beside it")
    for key, file in _files(settings):
        if file and not pathlib.Path(file).is_file():
            reader.complain(key, file, f"{file!r} is not a file")
    places: dict[str, str] = {}
    for name, modem in settings.thin.items():
        if modem.listen in places and not modem.listen.endswith(":0"):
            reader.complain(
                f"thin.{name}.listen", modem.listen, f"{modem.listen} is taken by thin.{places[modem.listen]}"
            )
        places[modem.listen] = name
    for name, way in settings.tell.items():
        for key in {"webhook": ["url"], "mqtt": ["host"], "email": ["host", "sender", "to"], "command": ["command"]}[
            way.kind
        ]:
            if not getattr(way, key):
                reader.complain(f"tell.{name}.{key}", "", f"{way.kind} needs {key}")
        if way.kind == "webhook" and way.url and not way.url.startswith(("http://", "https://")):
            reader.complain(f"tell.{name}.url", way.url, f"{way.url!r} is neither http:// nor https://")


def _files(settings: StationSettings) -> list[tuple[str, str]]:
    files = [("station.key", settings.station.key)]
    for name, agent in settings.agents.items():
        files += [(f"agents.{name}.key", agent.key), (f"agents.{name}.server", agent.server)]
    files += [(f"thin.{name}.key_file", modem.key_file) for name, modem in settings.thin.items()]
    return files + [(f"tell.{name}.ca_file", way.ca_file) for name, way in settings.tell.items()]
