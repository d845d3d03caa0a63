"""Is an agent well? One line and an exit code, for container and cron checks.

The `health` command. Of a run folder it reads the last status that was written, of an endpoint it waits for one.
"""

import argparse
import dataclasses
import os
import pathlib

from stillwatch.base import ExitCode, RealClock
from stillwatch.outlet import Judgement, judge
from stillwatch.tools.shared import existing, print_json, words
from stillwatch.transport.disk import KIND_MESSAGE, log_files, read_file, unpack_message
from stillwatch.transport.live import Received, Subscriber, load_client_keys, why_unreachable
from stillwatch.transport.wire import DecodeError, Status, decode


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("place", metavar="RUN-OR-ENDPOINT", help="a run folder, or tcp://HOST:PORT of an agent")
    parser.add_argument("--wait", type=float, default=5.0, metavar="S", help="for an endpoint's status (default: 5)")
    parser.add_argument("--key", type=existing, metavar="FILE", help="this reader's NAME.key (stillwatch keygen)")
    parser.add_argument("--server", type=existing, metavar="FILE", help="the agent's NAME.pub")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def main(args: argparse.Namespace) -> int:
    is_live = args.place.startswith(("tcp://", "ipc://"))
    if is_live:
        verdict = of_endpoint(args.place, args)
    else:
        verdict = of_folder(pathlib.Path(existing(args.place)))
    if args.json:
        print_json(dataclasses.asdict(verdict))
    else:
        # A heartbeat may be ten seconds old while frames go on: of a folder the age is the most that it can be.
        most = "" if is_live else "at most "
        age = "" if verdict.last_frame_age_s is None else f", last frame {most}{verdict.last_frame_age_s:.1f} s ago"
        why = f": {'; '.join(verdict.reasons)}" if verdict.reasons else ""
        why += f"; not sure: {words.unsure(verdict.unsure)}" * bool(verdict.unsure)
        print(f"{'well' if verdict.ok else 'NOT well'}, {verdict.state}{age}, {verdict.alerts} alerts{why}")
    return ExitCode.DONE if verdict.ok else ExitCode.NO


def of_folder(folder: pathlib.Path) -> Judgement:
    """Judge the agent that writes a run folder by its last status."""
    status = last_status(folder)
    age_s = 0.0 if status is None else (RealClock().wall_ns() - status.wall_ns) / 1e9
    summary, config = folder / "summary.json", folder / "run.json"
    ended = summary.exists() and config.exists() and os.stat(summary).st_mtime >= os.stat(config).st_mtime
    return judge(status, age_s, ended=ended)


def last_status(folder: pathlib.Path) -> Status | None:
    """Return the newest status in a run folder's log; the newest files are read first."""
    for _, path in reversed(log_files(folder, "messages")):
        found = None
        for record in read_file(path, []):
            if record.kind != KIND_MESSAGE:
                continue
            try:
                kind, payload = unpack_message(record.body)
                found = payload if kind == "status" else found
            except DecodeError:
                continue
        if found is not None:
            message = decode(found)
            return message if isinstance(message, Status) else None
    return None


def of_endpoint(endpoint: str, args: argparse.Namespace) -> Judgement:
    """Judge the agent at an endpoint by the next status that it sends."""
    clock = RealClock()
    keys = load_client_keys(args.key, args.server) if args.key and args.server else None
    subscriber = Subscriber(endpoint, clock=clock, keys=keys)
    subscriber.open()
    try:
        until_ns = clock.monotonic_ns() + int(args.wait * 1e9)
        while clock.monotonic_ns() < until_ns:
            got = subscriber.recv(100)
            if isinstance(got, Received) and isinstance(got.message, Status):
                return judge(got.message, 0.0)
    finally:
        subscriber.close()
    why = why_unreachable(endpoint) or f"no status in {args.wait:g} s"
    return dataclasses.replace(judge(None, 0.0), reasons=(f"{endpoint}: {why}",))
