"""Put a bad link between a vehicle and its ground station: loss, delay, doubles, outages, byte limits, over UDP.

The vehicle's `link.endpoint` is this program's --listen; the ground station listens at --ground. It must not look
into what it carries.
"""

import argparse
import select
import signal
import time
from dataclasses import fields

from stillwatch.base import UsageError
from stillwatch.tools.shared import print_json
from stillwatch.transport.thin import LinkModel, LinkSimulator, ThinPort, parse_endpoint
from stillwatch.transport.wire import LinkError

_IDLE_S = 0.05
_HELP = {
    "loss": "share of frames lost",
    "duplicate": "share of frames delivered twice",
    "reorder": "share of frames held back behind later ones",
    "damage": "share of frames with one bit flipped",
    "delay_s": "time of flight",
    "jitter_s": "most that is added to it",
    "range_m": "distance of the two ends",
    "half_range_m": "distance at which half of the frames are lost",
    "outage_every_s": "period of outages",
    "outage_s": "length of each outage, at the end of its period",
    "bytes_per_s": "speed of the link, 0 for no limit",
    "buffer_bytes": "what may wait for the link; more is lost",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    default = "(default: %(default)s)"
    parser.add_argument("--listen", default="udp://127.0.0.1:5580", help=f"where the vehicle sends {default}")
    parser.add_argument("--ground", default="udp://127.0.0.1:5581", help=f"where the ground listens {default}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0.0, help="end after this long (default: at a signal)")
    parser.add_argument("--json", action="store_true", help="print the counters as one JSON object at the end")
    for field in fields(LinkModel):
        option = "--" + field.name.replace("_", "-")
        kind = int if field.type is int else float
        parser.add_argument(option, type=kind, default=field.default, help=f"{_HELP[field.name]} {default}")


def main(args: argparse.Namespace) -> int:
    """Carry frames both ways until a signal or the time is up."""
    try:
        model = LinkModel(**{field.name: getattr(args, field.name) for field in fields(LinkModel)})
        simulator = LinkSimulator(args.seed, model)
        vehicle = ThinPort(parse_endpoint(args.listen, "--listen"))
        ground = ThinPort((_local_side(args.ground), 0), parse_endpoint(args.ground, "--ground"))
    except LinkError as error:
        raise UsageError(str(error)) from error
    if not args.json:
        print(f"link between udp://{vehicle.address[0]}:{vehicle.address[1]} and {args.ground}: {model}", flush=True)
    stopped: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: stopped.append(received))
    began_ns = time.monotonic_ns()
    try:
        while not stopped and not (args.seconds and time.monotonic_ns() - began_ns > args.seconds * 1e9):
            _wait(simulator, vehicle, ground, began_ns)
            carry(simulator, vehicle, ground, time.monotonic_ns() - began_ns)
    finally:
        vehicle.close()
        ground.close()
    if args.json:
        print_json(dict(simulator.counters))
    else:
        print(", ".join(f"{name} {count}" for name, count in sorted(simulator.counters.items())))
    return 0


def carry(simulator: LinkSimulator, vehicle: ThinPort, ground: ThinPort, now_ns: int) -> None:
    """Move what has come in into the link, and what has crossed it out again, in both directions."""
    for direction, (source, target) in enumerate(((vehicle, ground), (ground, vehicle))):
        for frame in source.receive():
            simulator.send(frame, now_ns, direction)
        target.send(simulator.receive(now_ns, direction))


def _wait(simulator: LinkSimulator, vehicle: ThinPort, ground: ThinPort, began_ns: int) -> None:
    """Sleep until a frame comes in or one is due to go out."""
    due_ns = simulator.next_ns()
    wait_s = _IDLE_S if due_ns is None else min(max((due_ns + began_ns - time.monotonic_ns()) / 1e9, 0.0), _IDLE_S)
    select.select([vehicle, ground], [], [], wait_s)


def _local_side(endpoint: str) -> str:
    """Return the address to send from: loopback for loopback, else any."""
    host, _ = parse_endpoint(endpoint, "--ground")
    if host in ("localhost", "::1") or host.startswith("127."):
        return host
    return "::" if ":" in host else "0.0.0.0"
