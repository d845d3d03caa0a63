"""Make a key pair for an agent or a ground station: NAME.key (secret) and NAME.pub, readable by you alone.

Called by tools/cli.py. It must never print a key, only its fingerprint.
"""

import argparse
import pathlib
import sys

from stillwatch.transport.errors import SecurityError
from stillwatch.transport.security import generate_keys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", required=True, type=pathlib.Path, metavar="DIR", help="folder, made if need be")
    parser.add_argument("--name", default="agent", help="name of the files, and in allow-lists (default: agent)")


def main(args: argparse.Namespace) -> int:
    """Write both files and print the fingerprint; 2 where that cannot be done."""
    try:
        print(f"{args.name}: fingerprint {generate_keys(args.out, args.name)}")
    except SecurityError as error:
        print(f"stillwatch keygen: {error}", file=sys.stderr)
        return 2
    return 0
