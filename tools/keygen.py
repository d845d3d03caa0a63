"""Make a key pair for an agent or a ground station (NAME.key, NAME.pub), or a thin link's shared key (NAME.link).

Called by tools/cli.py. It must never print a key, only its fingerprint.
"""

import argparse
import pathlib
import sys

from stillwatch.transport.live import generate_keys, generate_link_key
from stillwatch.transport.wire import SecurityError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", required=True, type=pathlib.Path, metavar="DIR", help="folder, made if need be")
    parser.add_argument("--link", action="store_true", help="a key that both ends of a thin link share, in NAME.link")
    parser.add_argument("--name", default="agent", help="name of the files, and in allow-lists (default: agent)")


def main(args: argparse.Namespace) -> int:
    """Write the files and print the fingerprint; 2 where that cannot be done."""
    generate = generate_link_key if args.link else generate_keys
    try:
        print(f"{args.name}: fingerprint {generate(args.out, args.name)}")
    except SecurityError as error:
        print(f"stillwatch keygen: {error}", file=sys.stderr)
        return 2
    return 0
