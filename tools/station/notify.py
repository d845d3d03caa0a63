"""Sends one test message by each way out, and says what became of it.

The `station test-notify` command: it needs no running station, and leaves no trace in the store.
"""

import argparse
import datetime
import json
import secrets

from stillwatch.base import ExitCode, UsageError
from stillwatch.tools.shared import existing
from stillwatch.tools.station.command import explained


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("config", type=existing, metavar="station.toml", help="the station's settings")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of [tell.NAME] sections (default: all)")


def main(args: argparse.Namespace) -> int:
    """Send; exit code 1 where one of them did not take it."""
    with explained():
        from stillwatch.tools.station.settings import load_settings
        from stillwatch.tools.station.tell import NotSent, Outgoing, make_way

        settings = load_settings(args.config)
        unknown = [name for name in args.names if name not in settings.tell]
        if unknown or not settings.tell:
            known = ", ".join(settings.tell) or "none"
            raise UsageError(f"{args.config}: no way out {' '.join(unknown)}: [tell.NAME] sections are {known}")
        n_failed = 0
        for name in args.names or settings.tell:
            uid = f"test-{secrets.token_hex(6)}"
            at = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            body = {"id": uid, "agent": settings.station.name, "phase": "test", "at": at}
            way = make_way(settings.tell[name], settings.station.name)
            try:
                way.send(Outgoing(uid, json.dumps(body, sort_keys=True)))
                print(f"{name}: sent, id {uid}")
            except NotSent as error:
                n_failed += 1
                print(f"{name}: not sent: {error}")
            finally:
                way.close()
    return int(ExitCode.NO if n_failed else ExitCode.DONE)
