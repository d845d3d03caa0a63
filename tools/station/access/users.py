"""The users as an administrator keeps them: add, list, change, remove, and tokens for programs.

Used by `stillwatch station user …`. Passwords come from a terminal without echo, or as one line on standard input.
"""

import argparse
import getpass
import sys
import time

from stillwatch.base import UsageError
from stillwatch.tools.shared import print_json
from stillwatch.tools.station.access.gate import new_api_token
from stillwatch.tools.station.access.passwords import Passwords, checked_name
from stillwatch.tools.station.access.roles import Role

ACTS = ("add", "list", "remove", "password", "role", "token")


def add_user_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `user` takes after the words of its command."""
    parser.add_argument("act", choices=ACTS, metavar="|".join(ACTS))
    parser.add_argument("name", nargs="?", default="", metavar="NAME", help="1 to 32 of a-z 0-9 . _ -")
    parser.add_argument("--role", choices=[str(role) for role in Role], help="what the user may do")


def manage_users(args: argparse.Namespace, store) -> int:
    """Carry out one act on the users of a store and say what was done."""
    if args.act == "list":
        print_json({"users": [{"name": row["name"], "role": row["role"]} for row in store.users()]})
        return 0
    name = checked_name(args.name)
    if args.act == "add":
        if not args.role:
            raise UsageError(f"user add {name}: --role is one of {', '.join(Role)}")
        if not store.add_user(name, Passwords().hashed(_password()), args.role, time.time()):
            raise UsageError(f"user {name} is there already; try: user password {name}, or user role {name}")
    elif args.act == "remove":
        _require(store.remove_user(name), name)
    elif args.act == "password":
        _require(store.set_password(name, Passwords().hashed(_password())), name)
        store.end_sessions_of(name)
    elif args.act == "role":
        if not args.role:
            raise UsageError(f"user role {name}: --role is one of {', '.join(Role)}")
        _require(store.set_role(name, args.role), name)
    else:
        _require(store.user(name) is not None, name)
        print(new_api_token(store, name, time.time()))
    store.add_audit(time.time(), "command line", "", f"user {args.act}", name, args.role or "")
    print(f"user {name}: {args.act}", file=sys.stderr)
    return 0


def _require(is_known: bool, name: str) -> None:
    if not is_known:
        raise UsageError(f"there is no user {name}; there are: stillwatch station user list")


def _password() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    first = getpass.getpass("password: ")
    if first != getpass.getpass("again: "):
        raise UsageError("the two passwords differ: nothing was changed, try again")
    return first
