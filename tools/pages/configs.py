"""Complete a config file: every key that it does not state, with its default and comment, where it belongs.

The `complete-config` command, for a file of an earlier version and for the shipped ones. What stands there is left as
it is.
"""

import argparse
import ast
import functools
import inspect
import io
import pathlib
import textwrap
import tokenize
import tomllib

import msgspec

from stillwatch.base import UsageError
from stillwatch.settings import Config, config_toml

Lines = list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", metavar="CONFIG", type=pathlib.Path, help="TOML file; the whole one is printed")


def main(args: argparse.Namespace) -> int:
    """Print the completed file. Values are not judged, which is what `check-config` is for: secrets may be absent."""
    try:
        text = args.config.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{args.config}: cannot be read: {error}; give a TOML file") from None
    print(completed(text), end="")
    return 0


def completed(text: str) -> str:
    """Return a config's text with the keys that it does not state put after the key before them in `Config`.

    Raises UsageError where the text is no TOML, or written so that they find no place: a section or key in another
    notation.
    """
    try:
        stated = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"the config is no TOML: {error}; write section and key = value there") from None
    defaults = tomllib.loads(config_toml(Config()))
    sections = {field.name: field.type for field in msgspec.structs.fields(Config)}
    lines = text.rstrip("\n").split("\n")
    for section, values in defaults.items():
        missing = [key for key in values if key not in stated.get(section, {})]
        if missing and section not in stated:
            about = textwrap.wrap(inspect.cleandoc(sections[section].__doc__ or ""), 118)
            lines += ["", *(f"# {line}".rstrip() for line in about), f"[{section}]"]
        for key in missing:
            before = list(values)[: list(values).index(key)]
            place = _end_of(lines, section, before)
            lines.insert(place, _line(section, key, comments_of(sections[section]).get(key, "")))
    whole = "\n".join(lines) + "\n"
    wanted = {name: defaults.get(name, {}) | stated.get(name, {}) for name in {**defaults, **stated}}
    try:
        fits = tomllib.loads(whole) == wanted
    except tomllib.TOMLDecodeError:
        fits = False
    if not fits:
        raise UsageError("the config is written in a form that keys cannot be added to: one key a line below [section]")
    return whole


def _end_of(lines: Lines, section: str, before: Lines) -> int:
    """Return the line after the last of the keys `before` in a section, or after its head where it has none."""
    place, inside = len(lines), False
    for number, line in enumerate(lines):
        if line.startswith("["):
            inside = line.split("#")[0].strip() == f"[{section}]"
            place = number + 1 if inside else place
        elif inside and line.partition("=")[0].strip() in before:
            place = number + 1
    return place


def _line(section: str, key: str, comment: str) -> str:
    within, found = "", ""
    for line in config_toml(Config()).split("\n"):
        within = line if line.startswith("[") else within
        if within == f"[{section}]" and line.startswith(f"{key} = "):
            found = line
    return f"{found}  # {comment}" if comment else found


@functools.cache
def comments_of(section: type) -> dict[str, str]:
    """Return the comment that stands behind each field of a section in its source."""
    source = inspect.getsource(section)
    told = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    (body,) = ast.parse(source).body
    assert isinstance(body, ast.ClassDef)
    return {
        field.target.id: comment
        for field in body.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        for comment in [" ".join(told[n] for n in range(field.lineno, (field.end_lineno or 0) + 1) if n in told)]
        if comment
    }
