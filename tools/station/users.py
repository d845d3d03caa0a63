"""The users of a station from the command line, for the first of them and for whoever forgot a password.

The `station user` command. What it does is in tools/station/access.
"""

import argparse

from stillwatch.tools.shared import existing
from stillwatch.tools.station.command import explained


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    with explained():
        from stillwatch.tools.station.access import add_user_arguments

        add_user_arguments(parser)
    parser.add_argument(
        "--config", type=existing, metavar="station.toml", help="the station's settings: where its store is"
    )
    parser.add_argument("--store", metavar="PATH", help="SQLite file or postgresql:// address (default: station.store)")


def main(args: argparse.Namespace) -> int:
    """Carry out one act."""
    with explained():
        from stillwatch.tools.station.access import manage_users
        from stillwatch.tools.station.settings import load_settings
        from stillwatch.tools.station.store import open_store

        store, _ = open_store(args.store or load_settings(args.config).station.store)
        try:
            return manage_users(args, store)
        finally:
            store.close()
