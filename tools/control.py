"""Sends one command to a running agent and prints its answer.

The `control` command: status, snapshot, flush, set_alert_budget, label_component, request_exemplar, request_picture,
set_nav.
"""

import argparse
import json

from stillwatch.base import RealClock, UsageError
from stillwatch.tools.shared import existing, print_json, write_result
from stillwatch.transport.live import COMMANDS, ControlClient, load_client_keys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("endpoint", metavar="ENDPOINT", help="the agent's control endpoint (two ports above its data)")
    parser.add_argument("name", metavar="COMMAND", choices=sorted(COMMANDS), help=", ".join(sorted(COMMANDS)))
    parser.add_argument("arguments", metavar="KEY=VALUE", nargs="*", help="such as alerts_per_hour=5")
    parser.add_argument("--key", type=existing, metavar="FILE", help="this station's NAME.key (stillwatch keygen)")
    parser.add_argument("--server", type=existing, metavar="FILE", help="the agent's NAME.pub")
    parser.add_argument("--deadline", type=float, default=5.0, metavar="S", help="seconds to wait for the answer")
    parser.add_argument("--out", metavar="FILE", help="where a picture in the answer goes")


def main(args: argparse.Namespace) -> int:
    if bool(args.key) != bool(args.server):
        raise UsageError("--key and --server go together: give our own key and the agent's public key")
    keys = load_client_keys(args.key, args.server) if args.key else None
    client = ControlClient(args.endpoint, clock=RealClock(), keys=keys)
    client.open()
    try:
        reply = client.request(args.name, _parsed(args.arguments), timeout_s=args.deadline)
    finally:
        client.close()
    if not reply.ok:
        raise UsageError(f"{args.name}: {reply.error}")
    if reply.attachment and args.out:
        write_result(args.out, reply.attachment)
    attached = {"attachment_bytes": len(reply.attachment)} if reply.attachment else {}
    print_json({**reply.result, **attached})
    return 0


def _parsed(pairs: list[str]) -> dict[str, bool | int | float | str | None]:
    arguments = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"{pair!r} is not KEY=VALUE: write an argument of a command as, say, share=0.5")
        try:
            arguments[key] = json.loads(value)
        except json.JSONDecodeError:
            arguments[key] = value
    return arguments
