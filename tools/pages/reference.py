"""Writes what follows from tables of the code: pages of commands and settings, the man page, shell completion.

The `reference` command, which `make docs` runs. It must not hold a command's or a setting's words itself.
"""

import argparse
import functools
import json
import re
from collections.abc import Callable, Iterator

import msgspec

from stillwatch.base import ExitCode, __version__
from stillwatch.settings import Config, allowed
from stillwatch.tools.cli import COMMANDS, GROUPS, build_parser
from stillwatch.tools.pages.configs import comments_of
from stillwatch.tools.pages.schemas import SCHEMAS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    about = "commands, settings: Markdown; man: for man(1); bash, zsh: completion; schema: of what --json prints"
    parser.add_argument("what", choices=PAGES, help=about)


def main(args: argparse.Namespace) -> int:
    print(PAGES[args.what]().rstrip())
    return 0


@functools.cache
def parser_of(command: str) -> argparse.ArgumentParser:
    """Return the parser of one command with its arguments."""
    parser = build_parser(command.split())
    for word in command.split():
        groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
        parser = groups[0].choices[word]
    return parser


def arguments_of(command: str) -> Iterator[tuple[str, str]]:
    """Yield (how an argument is written, what it is) of a command."""
    for action in parser_of(command)._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        shown = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
        name = ", ".join(action.option_strings)
        takes = action.nargs != 0
        written = f"{name} {shown}" if name and takes else name or str(shown)
        yield written, (action.help or "").replace("%%", "%")


def commands_page() -> str:
    """Return the page of all commands in Markdown."""
    parts = [
        "# Commands\n\nMade by `stillwatch reference commands`. `--json` prints one JSON object and nothing else.\n"
    ]
    for command, (_, text) in COMMANDS.items():
        parts.append(f"## {command}\n\n{text[0].upper()}{text[1:]}.\n\n```\n{_usage(command)}\n```\n")
        rows = [f"| `{_cell(written)}` | {_cell(what)} |" for written, what in arguments_of(command)]
        if rows:
            parts.append("| argument | what it is |\n| --- | --- |\n" + "\n".join(rows) + "\n")
    codes = "\n".join(f"| {int(code)} | `{code.name}` |" for code in ExitCode)
    parts.append(f"## Exit codes\n\n| code | name |\n| --- | --- |\n{codes}\n")
    return "\n".join(parts)


def _usage(command: str) -> str:
    text = parser_of(command).format_usage().removeprefix("usage: ")
    return re.sub(r"\s+", " ", text).strip()


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def settings_page() -> str:
    """Return the page of all settings in Markdown, from the types in agent/settings/config.py."""
    parts = [
        "# Settings\n\nMade by `stillwatch reference settings`. Each is `section.key` of a TOML file or of `--set`.\n"
    ]
    for section in msgspec.structs.fields(Config):
        about = (section.type.__doc__ or "").strip().splitlines()
        parts.append(f"## {section.name}\n\n{about[0] if about else ''}\n")
        parts.append("| key | default | allowed | what it is |\n| --- | --- | --- | --- |")
        default, comments = section.type(), comments_of(section.type)
        for field in msgspec.structs.fields(section.type):
            value = msgspec.json.encode(msgspec.to_builtins(getattr(default, field.name))).decode()
            what = comments.get(field.name, "")
            parts.append(f"| `{field.name}` | `{_cell(value)}` | {_cell(allowed(field.type))} | {_cell(what)} |")
        parts.append("")
    return "\n".join(parts)


def man_page() -> str:
    """Return the man page in roff."""
    parts = [
        f'.TH STILLWATCH 1 "" "stillwatch {__version__}" "User commands"',
        ".SH NAME\nstillwatch \\- a camera that watches by itself and tells people far away what is new",
        ".SH SYNOPSIS\n.B stillwatch\n.I COMMAND\n[arguments]\n.br\n.B stillwatch\n.I SOURCE\n[arguments of run]",
        ".SH COMMANDS",
    ]
    for command, (_, text) in COMMANDS.items():
        parts.append(f".SS {_roff(command)}\n{_roff(text)}.")
        parts += [f".TP\n.B {_roff(written)}\n{_roff(what) or '-'}" for written, what in arguments_of(command)]
    parts.append(".SH EXIT STATUS")
    parts += [f".TP\n.B {int(code)}\n{_roff(code.name)}" for code in ExitCode]
    return "\n".join(parts) + "\n"


def schema_page() -> str:
    """Return what --json prints, by command, as one JSON object of JSON Schemas."""
    schemas = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": SCHEMAS}
    return json.dumps(schemas, indent=1, sort_keys=True)


def _roff(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("-", "\\-").replace("\n", " ")
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped


def _options_of(command: str) -> list[str]:
    return [word for written, _ in arguments_of(command) for word in re.findall(r"(?<![\w-])--?[a-z][\w-]*", written)]


def bash_completion() -> str:
    """Return a completion script for bash: commands, their members, their options, files."""
    first = sorted({command.partition(" ")[0] for command in COMMANDS})
    cases = []
    for group in first:
        members = sorted(member for command in COMMANDS if (member := command.partition(f"{group} ")[2]))
        if members:
            cases.append(f"    {group}) words='{' '.join(members)}' ;;")
    for command in COMMANDS:
        cases.append(f"    '{command}') words='{' '.join(_options_of(command))}' ;;")
    return f"""# bash completion of stillwatch {__version__}; source it, or put it into /etc/bash_completion.d
_stillwatch() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} words=''
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '{" ".join(first)}' -- "$current") $(compgen -f -- "$current"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{chr(10).join(case for case in cases if not case.strip().startswith("'"))}
  esac
  if [[ -z $words || $COMP_CWORD -gt 2 ]]; then
    local name=${{COMP_WORDS[1]}}
    [[ -n $words ]] && name="$name ${{COMP_WORDS[2]}}"
    case $name in
{chr(10).join("  " + case for case in cases if case.strip().startswith("'"))}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [[ $current == -* ]] || COMPREPLY+=($(compgen -f -- "$current"))
}}
complete -o filenames -F _stillwatch stillwatch
"""


def zsh_completion() -> str:
    """Return a completion function for zsh: commands and members with what they do, their options, files."""
    groups: dict[str, list[str]] = {}
    first: dict[str, str] = {}
    for command, (_, text) in COMMANDS.items():
        group, _, member = command.partition(" ")
        first.setdefault(group, GROUPS[group] if member else text)
        if member:
            groups.setdefault(group, []).append(_described(member, text))
    commands = " ".join(_described(name, text) for name, text in first.items())
    members = "\n".join(f"    {name}) told=({' '.join(of)}) ;;" for name, of in groups.items())
    options = "\n".join(f"    '{command}') compadd -- {' '.join(_options_of(command))} ;;" for command in COMMANDS)
    return f"""#compdef stillwatch
# zsh completion of stillwatch {__version__}; as the file _stillwatch in a folder of $fpath
_stillwatch() {{
  local -a told
  if (( CURRENT == 2 )); then
    told=({commands})
    _describe -t commands command told
    _files
    return
  fi
  local name=${{words[2]}}
  case $name in
{members}
  esac
  if (( $#told )); then
    (( CURRENT == 3 )) && _describe -t commands member told
    [[ " $told" == *" ${{words[3]}}:"* && -n ${{words[3]}} ]] && name="$name ${{words[3]}}"
  fi
  case $name in
{options}
  esac
  _files
}}
_stillwatch "$@"
"""


def _described(name: str, text: str) -> str:
    """Return a word and what it does as _describe wants them: name:text, in single quotes."""
    quoted = text.replace("'", "'\\''").replace(":", "\\:")
    return f"'{name}:{quoted}'"


PAGES: dict[str, Callable[[], str]] = {
    "commands": commands_page,
    "settings": settings_page,
    "man": man_page,
    "bash": bash_completion,
    "zsh": zsh_completion,
    "schema": schema_page,
}
