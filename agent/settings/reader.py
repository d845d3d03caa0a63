"""Reads a TOML file into a `Config`, or lists every fault in it with file, line, dotted key, value and limit.

Called by tools (run, check-config, evaluate) and agent/process/app.py. It never writes a user's file, and reads the
environment only where the file itself asks for a secret: "${env:NAME}" or "${file:PATH}".
"""

import difflib
import hashlib
import math
import os
import pathlib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from stillwatch.base import ConfigError, UsageError, secrets, shown
from stillwatch.settings.config import TEXTS, Config

_MAX_FILE_BYTES = 1_000_000
SOURCE_URI = "source.uri"

Sections = dict[str, dict[str, Any]]  # {section: {key: converted value}}


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of a configuration. `key` is dotted, empty when the fault is the file's; `line` 0 when unknown."""

    file: str
    key: str
    value: str
    message: str
    line: int = 0

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.key}: {self.message}" if self.key else f"{where}: {self.message}"


def load_config(
    path: str | os.PathLike[str] | None, overrides: Iterable[str] = (), *, opens_source: bool = True
) -> Config:
    """Return the config of a TOML file (None: the defaults) with "section.key=value" overrides applied.

    `opens_source`: whether the file's source.uri will be opened. Secrets that it refers to are looked up only then, and
    never where an override takes its place.

    Raises
    ------
    ConfigError
        With every problem found, in the order of the file; the command line's overrides come last.
    """
    problems: list[Problem] = []
    name = str(path) if path is not None else "defaults"
    text = read_text(path, "a config") if path is not None else ""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            [Problem(name, "", "", f"not valid TOML: {error}; write key = value below [section]")]
        ) from None
    lines = key_lines(text)
    overrides = list(overrides)
    replaced = any(override.partition("=")[0].strip() == SOURCE_URI for override in overrides)
    unread = {SOURCE_URI} if replaced or not opens_source else set()
    sections = _convert_sections(table, name, lines, problems, unread)
    for override in overrides:
        _apply_override(override, sections, problems)
    config = Config(**{key: _section_type(key)(**values) for key, values in sections.items()}) if sections else Config()
    problems.extend(_cross_checks(config, name, lines))
    if problems:
        raise ConfigError(problems)
    return config


def config_hash(config: Config) -> str:
    """Return 16 hex digits of everything in the config that can change results: all but where output goes."""
    builtins = _storable(config)
    for section in ("publish", "link", "metrics", "storage", "clips"):
        builtins.pop(section)
    builtins["source"].pop("uri")
    return hashlib.sha256(msgspec.json.encode(builtins, order="deterministic")).hexdigest()[:16]


def config_toml(config: Config) -> str:
    """Return the whole config as TOML that `load_config` reads back to an equal one."""
    parts = []
    for section, values in _storable(config).items():
        parts.append(f"[{section}]")
        parts.extend(f"{key} = {_toml_value(value)}" for key, value in values.items())
        parts.append("")
    return "\n".join(parts)


def _storable(config: Config) -> Sections:
    """Return the sections with every text as it may be written: paths that are no UTF-8 are escaped."""
    return {
        section: {key: shown(value) if isinstance(value, str) else value for key, value in values.items()}
        for section, values in msgspec.to_builtins(config).items()
    }


def _toml_value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml_value(item) for item in value) + "]"
    return msgspec.json.encode(value).decode()  # JSON strings, numbers and booleans are TOML's


def read_text(path: str | os.PathLike[str], what: str) -> str:
    """Return the text of a settings file; ConfigError where it cannot be read or is too large for `what`."""
    file, name = pathlib.Path(path), str(path)
    try:
        if file.stat().st_size > _MAX_FILE_BYTES:
            message = f"{file.stat().st_size} bytes is too large for {what}, limit {_MAX_FILE_BYTES}"
            raise ConfigError([Problem(name, "", "", message)])
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            [Problem(name, "", "", f"cannot read: {error.strerror}; give a file that can be read")]
        ) from None
    except UnicodeDecodeError as error:
        raise ConfigError([Problem(name, "", "", f"not UTF-8 text at byte {error.start}; save it as UTF-8")]) from None


def key_lines(text: str) -> dict[str, int]:
    """Map dotted keys to 1-based lines, for one-line keys under plain [section] headers: all that we document."""
    found: dict[str, int] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[\s*([A-Za-z0-9_.-]+)\s*\]", line)
        if header:
            section = header.group(1)
            found.setdefault(section, number)
            continue
        key = re.match(r"\s*([A-Za-z0-9_.-]+)\s*=", line)
        if key:
            found.setdefault(f"{section}.{key.group(1)}" if section else key.group(1), number)
    return found


def _section_type(name: str) -> type[Any]:
    for field in msgspec.structs.fields(Config):
        if field.name == name:
            kind: type[Any] = field.type
            return kind
    raise KeyError(name)


def _convert_sections(
    table: Mapping[str, Any], name: str, lines: dict[str, int], problems: list[Problem], unread: set[str]
) -> Sections:
    """Return every section's values; what cannot be converted is a problem and keeps its default.

    `unread` are keys whose secrets nobody needs: they stay references.
    """
    known = [field.name for field in msgspec.structs.fields(Config)]
    sections: Sections = {}
    defaults = Config()
    for section in known:
        sections[section] = msgspec.structs.asdict(getattr(defaults, section))
    for section, values in table.items():
        if section not in known:
            problems.append(Problem(name, section, "", unknown_word(section, known, "section"), lines.get(section, 0)))
        elif not isinstance(values, dict):
            message = f"{_short(values)} is not a section: write [{section}] and its keys below"
            problems.append(Problem(name, section, _short(values), message, lines.get(section, 0)))
        else:
            for key, value in values.items():
                dotted = f"{section}.{key}"
                place = Problem(name, dotted, "", "", lines.get(dotted, 0))
                _convert_key(section, key, value, sections, place, problems, expands=dotted not in unread)
    return sections


def _convert_key(
    section: str,
    key: str,
    value: Any,
    sections: Sections,
    place: Problem,
    problems: list[Problem],
    *,
    expands: bool = True,
) -> None:
    fields = {field.name: field for field in msgspec.structs.fields(_section_type(section))}

    def complain(message: str) -> None:
        problems.append(Problem(place.file, place.key, _short(value), message, place.line))

    if key not in fields:
        complain(unknown_word(key, list(fields), "key"))
        return
    if isinstance(value, float) and not math.isfinite(value):
        complain(f"{value} is not a finite number")
        return
    if isinstance(value, str) and expands:
        try:
            value = secrets.expand(value)
        except ConfigError as error:
            complain(str(error))
            return
    try:
        sections[section][key] = msgspec.convert(value, fields[key].type)
    except msgspec.ValidationError as error:
        complain(f"{_short(value)} {_limit(fields[key].type, str(error))}")


def _apply_override(override: str, sections: Sections, problems: list[Problem]) -> None:
    dotted, equals, raw = override.partition("=")
    section, dot, key = dotted.strip().partition(".")
    place = Problem("--set", dotted.strip(), raw, "")
    if not equals or not dot:
        problems.append(Problem("--set", override, "", "write it as section.key=value"))
        return
    if section not in sections:
        problems.append(Problem("--set", place.key, raw, unknown_word(section, list(sections), "section")))
        return
    try:
        value = tomllib.loads(f"value = {raw}")["value"]
    except tomllib.TOMLDecodeError:
        value = raw  # a bare word: --set novelty.camera=moving needs no quotes
    _convert_key(section, key, value, sections, place, problems)


def unknown_word(word: str, known: list[str], what: str) -> str:
    """Return what is wrong with a word that is none of those known: which of them it is like, or all of them."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"unknown {what}; did you mean {near[0]}?" if near else f"unknown {what}; known are {', '.join(known)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _limit(kind: Any, error: str) -> str:
    """Say what a value should have been, from the annotation of its field."""
    words = allowed(kind)
    return f"is not {words}" if words else f"does not fit: {error[0].lower()}{error[1:]}"


def allowed(kind: Any) -> str:
    """Return what a setting of this annotated type may be, in words; empty where no few words say it."""
    info = msgspec.inspect.type_info(kind)
    match info:
        case msgspec.inspect.IntType():
            return f"a whole number in {_interval(info)}"
        case msgspec.inspect.FloatType():
            return f"a number in {_interval(info)}"
        case msgspec.inspect.LiteralType():
            return f"one of {', '.join(map(str, info.values))}"
        case msgspec.inspect.BoolType():
            return "true or false"
        case msgspec.inspect.StrType():
            return TEXTS[info.pattern] if info.pattern else "a text"
    return ""


def _interval(info: Any) -> str:
    low = f"[{info.ge}" if info.ge is not None else f"({info.gt}" if info.gt is not None else "(-inf"
    high = f"{info.le}]" if info.le is not None else f"{info.lt})" if info.lt is not None else "inf)"
    return f"{low}, {high}"


def _cross_checks(config: Config, name: str, lines: dict[str, int]) -> list[Problem]:
    """Faults that no single key has: thresholds in the wrong order, files that are not there."""
    problems = []

    def check(ok: bool, key: str, value: Any, message: str) -> None:
        if not ok:
            problems.append(Problem(name, key, _short(value), message, lines.get(key, 0)))

    events, gate = config.events, config.gate
    check(
        events.clear_rarity <= events.raise_rarity,
        "events.clear_rarity",
        events.clear_rarity,
        f"{events.clear_rarity} is above events.raise_rarity {events.raise_rarity}: events would never end",
    )
    check(
        gate.dark_level < gate.bright_level,
        "gate.dark_level",
        gate.dark_level,
        f"{gate.dark_level} is not below gate.bright_level {gate.bright_level}: every frame would be refused",
    )
    for key, file in (
        ("features.mask_png", config.features.mask_png),
        ("encoder.file", config.encoder.file),
        ("publish.key_file", config.publish.key_file),
        ("publish.allow_file", config.publish.allow_file),
    ):
        check(not file or pathlib.Path(file).is_file(), key, file, f"{file!r} is not a file")
    for index, polygon in enumerate(config.features.mask):
        message = f"polygon {index} has {len(polygon)} corners, needs 3"
        check(len(polygon) >= 3, "features.mask", polygon, message)
    return problems


def recorded_config(text: str, notes: list[str] | None = None) -> Config:
    """Return the config that a run or recording was made with; keys this version does not know are left out and noted.

    Raises
    ------
    UsageError
        The config cannot be read: give one with --config.
    """
    try:
        table = tomllib.loads(text)
        known = {section.name: section.type for section in msgspec.structs.fields(Config)}
        for name in list(table):
            names = {item.name for item in msgspec.structs.fields(known[name])} if name in known else set()
            extra = sorted(set(table[name]) - names) if isinstance(table[name], dict) else []
            for key in extra:
                del table[name][key]
            if name not in known:
                del table[name]
            if extra and notes is not None:
                notes.append(f"recorded config: {name}.{', '.join(extra)} is unknown to this version")
        return msgspec.convert(table, Config)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise UsageError(f"the recorded config cannot be read ({error}): give one with --config") from error
