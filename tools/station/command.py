"""The station as one process: hears, keeps, shows and tells, on loopback out of the box.

The `station` command. It assembles the parts and ends them in order; what each does is in its own folder.
"""

import argparse
import errno
import logging
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from stillwatch.base import ExitCode, RealClock, UsageError
from stillwatch.tools.shared import existing, set_up_logging, stop_on_signals

if TYPE_CHECKING:
    from stillwatch.tools.station.settings import StationSettings

_log = logging.getLogger("stillwatch.station")
NEEDS = ("sqlalchemy", "starlette", "uvicorn", "jinja2", "argon2", "paho", "multipart", "python_multipart")
CLOSES_WITHIN_S = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "config", nargs="?", type=existing, metavar="station.toml", help="settings (default: none, on loopback)"
    )
    parser.add_argument("--demo", action="store_true", help="three synthetic agents, and a store that is thrown away")
    parser.add_argument("--port", type=int, metavar="N", help="of the page; 0: any (default: page.port, 8470)")
    parser.add_argument("--store", metavar="PATH", help="SQLite file or postgresql:// address (default: station.store)")
    parser.add_argument("-v", "--verbose", action="store_true", help="more log lines on stderr")


def main(args: argparse.Namespace) -> int:
    """Run until told to stop."""
    set_up_logging(verbose=args.verbose)
    with explained(), ExitStack() as closing:
        from stillwatch.tools.station.settings import load_settings

        settings = load_settings(args.config)
        if args.demo:
            from stillwatch.tools.station.demo import Demo

            demo = Demo(closing.enter_context(tempfile.TemporaryDirectory(prefix="stillwatch-station-")))
            settings = demo.settings(settings)
            closing.callback(demo.stop)
            return run_station(_overridden(settings, args), closing, on_open=demo.start)
        return run_station(_overridden(settings, args), closing)


class explained:
    """Turns a missing package of the station into one clear line."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] in NEEDS:
            raise UsageError(f"the station needs {error.name}: pip install 'stillwatch[station]'") from None


def _overridden(settings: "StationSettings", args: argparse.Namespace) -> "StationSettings":
    import msgspec

    station, page = settings.station, settings.page
    if args.store is not None:
        station = msgspec.structs.replace(station, store=args.store)
    if args.port is not None:
        if not 0 <= args.port <= 65_535:
            raise UsageError(f"--port {args.port}: it is 0 to 65535")
        page = msgspec.structs.replace(page, port=args.port)
    return msgspec.structs.replace(settings, station=station, page=page)


def run_station(settings: "StationSettings", closing: ExitStack, *, on_open: Callable[[], None] | None = None) -> int:
    """Assemble and serve; return the exit code."""
    import uvicorn

    from stillwatch.tools.station.access import Gate, Listening, check_listening, is_loopback
    from stillwatch.tools.station.bulletin import Bulletin
    from stillwatch.tools.station.ingest import Ingest
    from stillwatch.tools.station.page import Services, build_app
    from stillwatch.tools.station.store import open_store
    from stillwatch.tools.station.tell import Teller

    store, said = open_store(settings.station.store)
    closing.callback(store.close)
    closing.enter_context(store.owned())
    if said:
        _log.warning("%s", said)
    page = Listening(**{name: getattr(settings.page, name) for name in settings.page.__struct_fields__})
    check_listening(page, n_users=store.user_count())
    listener = _listener(page.host, page.port)
    closing.callback(listener.close)
    clock, bulletin = RealClock(), Bulletin()
    ingest = Ingest(settings, store, bulletin, clock)
    teller = Teller(settings.tell, store, bulletin, clock, name=settings.station.name)
    allows_open = is_loopback(page.host) and not page.behind_proxy
    gate = Gate(store, wall=time.time, monotonic=time.monotonic, allows_open=allows_open)
    services = Services(
        store,
        bulletin,
        gate,
        wall_ns=clock.wall_ns,
        troubles=lambda: [text for text in (said, *ingest.troubles(), *teller.troubles()) if text],
        control_of=_control_of(ingest),
        add_agent=_refusing(ingest.add_agent, 400) if settings.station.agents_from_page else None,
        remove_agent=_refusing(ingest.remove_agent, 409),
        channels=teller.channels,
    )
    server = uvicorn.Server(_uvicorn_config(build_app(services), page))
    stop_on_signals(_Stop(server), reload=threading.Event())  # uvicorn raises again what ended it: then we still tidy
    ingest.start()
    teller.start()
    services.warm_up()
    try:
        if on_open is not None:
            on_open()
        print(f"station: {_url(page, listener)}", flush=True)
        server.run(sockets=[listener])
    finally:
        ingest.stop()
        teller.stop()
    return int(ExitCode.DONE)


class _Stop(threading.Event):
    """Ends a server by signals that come before it takes them itself, which it would not notice."""

    def __init__(self, server: Any):
        super().__init__()
        self._server = server

    def set(self) -> None:
        super().set()
        self._server.should_exit = True


def _uvicorn_config(app: Any, page: Any) -> Any:
    import uvicorn

    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        date_header=True,
        proxy_headers=page.behind_proxy,
        forwarded_allow_ips="127.0.0.1,::1" if page.behind_proxy else None,
        limit_concurrency=512,
        timeout_graceful_shutdown=CLOSES_WITHIN_S,
        ssl_certfile=page.tls_certificate or None,
        ssl_keyfile=page.tls_key or None,
    )


def _control_of(ingest: Any) -> Callable[[str], Any]:
    from stillwatch.tools.station.page import Control

    def control_of(agent: str) -> Control | None:
        found = ingest.control_of(agent)
        return None if found is None else Control(*found)

    return control_of


def _refusing(act: Callable[..., None], status: int) -> Callable[..., None]:
    """Return an act of the ears whose refusal the page can show."""
    from stillwatch.tools.station.access import Refused
    from stillwatch.transport.wire import TransportError

    def refusing(*given: str) -> None:
        try:
            act(*given)
        except TransportError as error:
            raise Refused(status, str(error)) from None

    return refusing


def _listener(host: str, port: int) -> socket.socket:
    """Return a listening socket; UsageError where the address is taken or not ours."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=128)
        # Accepted sockets inherit it. asyncio sets it for sockets that name their protocol alone, and this one does
        # not: each page would wait 40 ms for an acknowledgement.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        told = f"page: cannot listen at {host}:{port}: {os.strerror(error.errno) if error.errno else error}"
        if error.errno == errno.EADDRINUSE:
            told += (
                ". Is a station there already? Open it, or give this one another port: --port N (0: any), or page.port"
            )
        raise UsageError(told) from None


def _url(page: Any, listener: socket.socket) -> str:
    scheme = "https" if page.tls_certificate else "http"
    host = f"[{page.host}]" if ":" in page.host else page.host
    return f"{scheme}://{host}:{listener.getsockname()[1]}/"
