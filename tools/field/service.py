"""Installs, shows and removes a systemd service that runs an agent.

The `service` command. It writes one unit file, and tells what to do next; systemd itself is only asked.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

from stillwatch.base import ExitCode, UsageError
from stillwatch.settings import load_config
from stillwatch.tools.field.unit import Service, unit_text
from stillwatch.tools.shared import existing, write_result

UNITS = pathlib.Path("/etc/systemd/system")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("install", "status", "remove", "show"), help="show: print the unit only")
    parser.add_argument("name", metavar="NAME", help="of the service: stillwatch-NAME.service")
    parser.add_argument("config", nargs="?", type=existing, metavar="CONFIG", help="TOML file that the agent runs")
    parser.add_argument(
        "--credential",
        action="append",
        default=[],
        metavar="ID=FILE",
        help="a secret's file, which the config reads as ${file:/run/credentials/stillwatch-NAME.service/ID}",
    )
    parser.add_argument("--units", type=pathlib.Path, default=UNITS, metavar="DIR", help="default: %(default)s")


def main(args: argparse.Namespace) -> int:
    path = args.units / f"stillwatch-{args.name}.service"
    if args.action in ("install", "show"):
        text = unit_text(_service(args))
        if args.action == "show":
            print(text, end="")
            return ExitCode.DONE
        write_result(path, text, "with --units, or try sudo: root may write there")
        print(f"{path} written; start it, now and at every boot, with:")
        print(f"  systemctl daemon-reload && systemctl enable --now {path.name}")
        print(
            f"is it well?  stillwatch health /var/lib/stillwatch/{args.name}/run    its log: journalctl -u {path.name}"
        )
        return ExitCode.DONE
    if not path.exists():
        raise UsageError(f"{path}: no such service; systemctl list-units 'stillwatch-*' names them")
    if args.action == "status":
        state = _systemctl("is-active", path.name)
        print(f"{path.name}: {state}")
        return ExitCode.DONE if state == "active" else ExitCode.NO
    if args.units == UNITS:
        _systemctl("disable", "--now", path.name)
    path.unlink()
    if args.units == UNITS:
        _systemctl("daemon-reload")
    print(f"{path} removed; what it has written stays in /var/lib/stillwatch/{args.name}")
    return ExitCode.DONE


def _service(args: argparse.Namespace) -> Service:
    if args.config is None:
        raise UsageError(f"service {args.action} {args.name}: give the CONFIG that the agent shall run")
    credentials = []
    for text in args.credential:
        name, equals, file = text.partition("=")
        if not equals or not file:
            raise UsageError(f"--credential {text}: write it as ID=FILE")
        credentials.append((name, os.path.abspath(existing(file))))
    path = pathlib.Path(args.config).resolve()
    text = path.read_text("utf-8")
    # Its secrets are there only inside the service: what the unit needs of the config holds none.
    config = load_config(path) if "/run/credentials/" not in text else None
    memory = config.limits.memory_bytes if config is not None else 400_000_000
    is_camera = config.source.uri.startswith("v4l2:") if config is not None else '"v4l2:' in text
    return Service(args.name, path, memory, is_camera, tuple(credentials))


def _systemctl(*words: str) -> str:
    """Ask systemd; return the first line that it says, "unknown" where there is none."""
    program = shutil.which("systemctl")
    if program is None:
        return "unknown: no systemctl here"
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode and done.stderr:
        print(done.stderr.strip(), file=sys.stderr)
    return (done.stdout.strip() or "unknown").splitlines()[0]
