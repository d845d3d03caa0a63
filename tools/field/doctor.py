"""Checks what a person would check on site, one line each with the remedy.

The `doctor` command. It only looks: nothing is written but one file in a temporary name that is removed at once.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from stillwatch.base import AgentError, ExitCode, RealClock, cpu_features, scrub, shown, versions
from stillwatch.settings import Config, load_config
from stillwatch.tools.field.probe import Row, probe
from stillwatch.tools.shared import existing, print_json
from stillwatch.transport.live import load_server_keys
from stillwatch.transport.thin import read_link_key
from stillwatch.transport.wire import TransportError

HOT_C = 80.0
REMEDIES = {
    "source": "is the camera on, its cable in, its address and password right? try it with another program",
    "keys": "stillwatch keygen makes keys; the secret one is mode 0600 and the agent's user's",
}
CLOCK_LEAST = datetime.date(2025, 1, 1)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", nargs="?", type=existing, metavar="CONFIG", help="TOML file of the agent")
    parser.add_argument("--out", default="runs", metavar="DIR", help="where it shall write (default: runs)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def main(args: argparse.Namespace) -> int:
    rows = []
    for row in examine(args.config, pathlib.Path(args.out)):
        rows.append(row)
        if not args.json:
            print(f"{'ok ' if row.ok else 'BAD'}  {row.check:<12} {row.found}")
            if not row.ok:
                print(f"     {'':<12} -> {row.remedy}", flush=True)
    is_ok = all(row.ok for row in rows)
    if args.json:
        print_json({"rows": [asdict(row) for row in rows], "ok": is_ok})
    return ExitCode.DONE if is_ok else ExitCode.NO


def examine(path: str | None, out: pathlib.Path) -> Iterator[Row]:
    """Yield every check; one that fails by itself is a row too."""
    checks: dict[str, Callable[[], Row | list[Row]]] = {
        "python": _python,
        "cpu": _cpu,
        "kernels": _kernel_cache,
        "clock": _clock,
        "heat": _heat,
        "disk": lambda: _disk(out),
    }
    config, plan = Config(), {}
    if path is not None:
        try:
            config, plan = load_config(path), _plan(path)
            faults = "; ".join(error["message"] for error in plan["errors"])
            yield Row("config", not faults, shown(scrub(faults) or f"{path}: good"), "see: stillwatch check-config")
        except (AgentError, ValueError) as error:
            yield Row("config", False, scrub(str(error)).replace("\n", "; "), "see: stillwatch check-config")
            path = None
    if path is not None:
        checks |= {"memory": lambda: _memory(plan), "keys": lambda: _keys(config)}
        checks |= {"ports": lambda: _ports(config), "source": lambda: probe(config)}
    checks["service"] = _systemd
    for name, check in checks.items():
        try:
            found = check()
            yield from found if isinstance(found, list) else [found]
        except (AgentError, TransportError, OSError, ValueError) as error:
            yield Row(name, False, shown(scrub(str(error))), REMEDIES.get(name, "see the message"))


def _python() -> Row:
    found = versions()
    text = ", ".join(f"{name} {version}" for name, version in found.items())
    missing = [name for name in ("numpy", "numba", "av", "msgspec") if name not in found]
    return Row("python", not missing and sys.version_info >= (3, 11), text, "Python 3.11 and pip install stillwatch")


def _cpu() -> Row:
    features = cpu_features()
    n = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Row("cpu", n >= 2, f"{n} cores, {' '.join(features)}", "two cores: one learns while the other watches")


def _kernel_cache() -> Row:
    from stillwatch.kernels import _jit

    folder = _jit.CACHE_DIR
    if not folder:
        return Row(
            "kernels", False, "no folder to keep compiled kernels", "set STILLWATCH_CACHE_DIR to a writable folder"
        )
    count = len(list(pathlib.Path(folder).rglob("*.nbi")))
    is_complete = (pathlib.Path(folder) / _jit.COMPLETE).exists()
    found = (
        f"{count} compiled in {folder}{'' if is_complete else ', not all: the first start will take a minute or two'}"
    )
    return Row("kernels", is_complete, found, "stillwatch warm-up, as the user that the agent will run as")


def _clock() -> Row:
    now = datetime.datetime.fromtimestamp(RealClock().wall_ns() / 1e9, datetime.UTC)
    zone = datetime.datetime.now().astimezone().tzname()
    return Row(
        "clock",
        now.date() >= CLOCK_LEAST,
        f"{now:%Y-%m-%d %H:%M:%S} UTC (all records are in UTC; this machine shows {zone})",
        "set the clock, or start a time service: timedatectl set-ntp true",
    )


def _heat() -> Row:
    from stillwatch.outlet import temperature_c

    hottest, slowed = temperature_c(), times_slowed()
    found = "the board tells no temperature" if hottest is None else f"{hottest:.0f} degrees C"
    if slowed:
        found += f", slowed down {slowed} times since it was started"
    is_cool = (hottest is None or hottest < HOT_C) and not slowed
    return Row("heat", is_cool, found, "cool it: a hot board slows itself down and misses frames")


def times_slowed(system: pathlib.Path = pathlib.Path("/sys")) -> int:
    """Return how often the processor was slowed down for its heat, as Linux counts it; 0 where nobody counts."""
    counted = 0
    for path in system.glob("devices/system/cpu/cpu*/thermal_throttle/core_throttle_count"):
        with suppress(OSError, ValueError):
            counted = max(counted, int(path.read_text()))
    with suppress(OSError, ValueError):  # a Raspberry Pi: bit 18, it has happened
        flags = (system / "devices/platform/soc/soc:firmware/get_throttled").read_text()
        counted = max(counted, int(flags, 16) >> 18 & 1)
    return counted


def _disk(out: pathlib.Path) -> Row:
    place = out
    while not place.exists():
        place = place.parent if place.parent != place else pathlib.Path("/")
    disk = shutil.disk_usage(place)
    found = f"{out}: {disk.free / 1e9:.1f} GB free of {disk.total / 1e9:.1f}{mounted(place.resolve())}"
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".doctor-"):
            pass
    except OSError as error:
        remedy = "give the agent's user that folder, or another --out"
        return Row("disk", False, f"{found}; {place} cannot be written: {error.strerror}", remedy)
    least = Config().storage.min_free_bytes
    return Row("disk", disk.free > least, found, f"free some: below {least / 1e6:.0f} MB nothing is written")


def mounted(place: pathlib.Path, table: str = "/proc/self/mounts") -> str:
    """Return in words where the file system of a place is mounted, as Linux tells it; empty where nobody tells."""
    best = ("", "")
    with suppress(OSError):
        for line in pathlib.Path(table).read_text().splitlines():
            _, where, kind, *_ = line.split()
            where = where.replace("\\040", " ")
            if place.is_relative_to(where) and len(where) >= len(best[0]):
                best = (where, kind)
    if not best[0]:
        return ""
    passing = ": GONE AT THE NEXT BOOT" if best[1] in ("tmpfs", "ramfs") else ""
    return f", {best[1]} on {best[0]}{passing}"


def _plan(path: str) -> dict[str, Any]:
    """Return what check-config tells, of a process without the compiler, which would fill the kernel cache."""
    call = [sys.executable, "-m", "stillwatch.tools.cli", "check-config", "--json", path]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    told = subprocess.run(call, env=environment, stdout=subprocess.PIPE, check=False).stdout
    return dict(json.loads(told))


def _memory(plan: dict[str, Any]) -> Row:
    needed, limit = plan["resident_bytes"], plan["limit_bytes"]
    free = _available_bytes()
    found = f"{needed / 1e6:.0f} MB needed, limit {limit / 1e6:.0f} MB"
    if free is not None:
        found += f", {free / 1e6:.0f} MB available"
    remedy = "smaller patches.memory or working size, or a higher limits.memory_bytes"
    return Row("memory", needed <= limit and (free is None or needed < free), found, remedy)


def _available_bytes() -> int | None:
    try:
        for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return None


def _keys(config: Config) -> Row:
    publish, link = config.publish, config.link
    if link.preset and link.key_file:
        read_link_key(link.key_file)
    thin = f"; thin link: {link.key_file or 'none, frames are not authenticated'}" if link.preset else ""
    if not publish.key_file:
        return Row("keys", True, f"none: this machine alone may listen{thin}")
    keys = load_server_keys(publish.key_file, publish.allow_file)
    readers, commanders = (len(keys.allowed.get(role, ())) for role in ("data", "control"))
    mode = stat.S_IMODE(os.stat(publish.key_file).st_mode)
    found = f"{publish.key_file} (mode {mode:04o}): {readers} may read, {commanders} may command{thin}"
    return Row("keys", readers > 0, found, f"add public keys to {publish.allow_file or 'publish.allow_file'}")


def _ports(config: Config) -> Row:
    endpoint, figures = config.publish.endpoint, config.metrics.endpoint
    wanted: list[tuple[str, int]] = []
    told = [endpoint or "nothing is published"]
    if endpoint.startswith("tcp://") and not endpoint.endswith(":0"):
        host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
        wanted += [(host, number) for number in range(int(port), int(port) + 3)]
        told = [f"{endpoint} and two above"]
    if figures:
        host, _, port = figures.rpartition(":")
        wanted.append((host, int(port)))
        told.append(f"metrics on {figures}")
    taken = [why for host, number in wanted if (why := _taken(host, number))]
    state = f": not to be had {', '.join(taken)}" if taken else ": free" if wanted else ""
    remedy = "stop the other program (perhaps this agent), or another publish.endpoint or metrics.endpoint"
    return Row("ports", not taken, ", ".join(told) + state, remedy)


def _taken(host: str, number: int) -> str:
    """Return why a port cannot be bound; empty where it can."""
    with socket.socket(socket.AF_INET6 if "[" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host.strip("[]").replace("*", ""), number))
        except OSError as error:
            return f"{number} ({error.strerror})"
    return ""


def _systemd() -> Row:
    if platform.system() != "Linux" or shutil.which("systemctl") is None:
        return Row("service", True, "no systemd here")
    units = sorted(path.name for path in pathlib.Path("/etc/systemd/system").glob("stillwatch-*.service"))
    if not units:
        return Row("service", True, "none installed (stillwatch service install NAME CONFIG)")
    states = {unit: (_systemctl("is-active", unit), _systemctl("is-enabled", unit)) for unit in units}
    found = ", ".join(f"{unit}: {active}, {enabled}" for unit, (active, enabled) in states.items())
    bad = [unit for unit, (active, enabled) in states.items() if active == "failed" or enabled == "disabled"]
    remedy = f"journalctl -u {bad[0]}; systemctl enable --now {bad[0]}" if bad else ""
    return Row("service", not bad, found, remedy)


def _systemctl(question: str, unit: str) -> str:
    try:
        done = subprocess.run(["systemctl", question, unit], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return done.stdout.strip() or "unknown"
