"""Makes the parts of a run that depend on the config: sockets, folders, recorder, capture.

Called by agent/process/app.py. It must not start anything.
"""

import functools
import importlib.util
import pathlib
from collections.abc import Callable

from stillwatch.base import Clock, ConfigError, scrub
from stillwatch.clips import Clips
from stillwatch.outlet import Figures, MetricsCarrier, ThinCarrier
from stillwatch.restart import Recorder, Resumed
from stillwatch.settings import Config, Problem, config_hash, config_toml
from stillwatch.sources import Capture, NavTrack, Source, open_source
from stillwatch.transport.disk import RunFolder, Session
from stillwatch.transport.live import Publisher, load_server_keys
from stillwatch.transport.thin import ThinCodec, VehicleLink, find_preset, parse_endpoint, read_link_key
from stillwatch.transport.wire import LinkError, SecurityError, TransportError

OnState = Callable[[str, str], None]


def make_publisher(config: Config, clock: Clock) -> Publisher | None:
    """Return the live plane's publisher, None where none is wanted; ConfigError where strangers could listen."""
    publish = config.publish
    if not publish.endpoint:
        return None
    try:
        keys = load_server_keys(publish.key_file, publish.allow_file) if publish.key_file else None
        return Publisher(
            publish.endpoint, config.agent.id, queue=publish.queue, keys=keys, control=publish.control, clock=clock
        )
    except TransportError as error:
        raise ConfigError([Problem("config", "publish.endpoint", publish.endpoint, str(error))]) from None


def make_thin_carrier(
    config: Config, clock: Clock, *, beside: pathlib.Path, strict: bool = False, on_state: OnState | None = None
) -> ThinCarrier | None:
    """Return the thin link's carrier, None where no preset is named; ConfigError where it cannot be used.

    Without a folder of its own in the config the outbox stands beside the run folder: it outlives runs.
    """
    link = config.link
    if not link.preset:
        return None
    try:
        make_link = functools.partial(
            VehicleLink,
            (pathlib.Path(link.outbox_dir) if link.outbox_dir else beside.parent / "outbox") / config.agent.id,
            clock=clock,
            budget=find_preset(link.preset).up.shared(link.share),
            codec=ThinCodec(link.agent_number, read_link_key(link.key_file)),
            listen=parse_endpoint(link.listen, "link.listen"),
            peer=parse_endpoint(link.endpoint),
            heartbeat_s=link.heartbeat_s,
            thumbnail_px=link.thumbnail_px,
            thumbnail_bytes=link.thumbnail_bytes,
            outbox_bytes=link.outbox_bytes,
        )
    except (LinkError, SecurityError) as error:
        raise ConfigError([Problem("config", "link", link.preset, str(error))]) from None
    return ThinCarrier(make_link, clock, strict=strict, on_state=on_state)


def make_metrics(config: Config, clock: Clock, figures: Callable[[], Figures]) -> MetricsCarrier | None:
    """Return the carrier that serves /metrics, None where none is wanted; ConfigError where its library is missing."""
    endpoint = config.metrics.endpoint
    if not endpoint:
        return None
    if importlib.util.find_spec("prometheus_client") is None:
        message = "needs prometheus_client: pip install 'stillwatch[metrics]'"
        raise ConfigError([Problem("config", "metrics.endpoint", endpoint, message)])
    host, _, port = endpoint.rpartition(":")
    return MetricsCarrier((host.strip("[]"), int(port)), clock, figures)


def make_run_folder(config: Config, path: pathlib.Path, clock: Clock, on_state: OnState) -> RunFolder:
    storage = config.storage
    return RunFolder(
        path,
        clock,
        max_bytes=storage.max_bytes,
        min_free_bytes=storage.min_free_bytes,
        max_age_s=storage.max_age_days * 86_400.0,
        on_state=on_state,
    )


def make_session(config: Config, identity: tuple[str, str, str, int], source: Source) -> Session:
    """Return what a recording says of this start; `identity`: agent, run, boot, epoch."""
    agent, run, boot, _ = identity
    return Session(
        agent=agent,
        run=run,
        boot=boot,
        config_text=scrub(config_toml(config)),
        config_hash=config_hash(config),
        source_uri=source.info.uri,
        source_kind=source.info.kind,
        live=source.live,
    )


def make_recorder(
    config: Config,
    folder: pathlib.Path | None,
    clock: Clock,
    session: Session,
    resumed: Resumed | None,
    on_state: OnState,
) -> Recorder | None:
    if folder is None:
        return None
    return Recorder(folder, config, clock, session, resumed=resumed.path if resumed else None, on_state=on_state)


def make_clips(config: Config, out: pathlib.Path, live: bool) -> Clips | None:
    """Return what collects and writes the alerts' clips, None where none are wanted."""
    if not config.clips.ring_bytes:
        return None
    return Clips(config.clips, out / "clips", config.source.fallback_rate_hz, waits=not live)


def make_nav(config: Config, *, live: bool) -> NavTrack | None:
    """Return the table of positions, None where none is named; ConfigError with its faults."""
    source = config.source
    return NavTrack(source.nav_csv, live=live, start=source.nav_start) if source.nav_csv else None


def make_capture(
    config: Config,
    clock: Clock,
    first: Source,
    nav: NavTrack | None,
    resumed: Resumed | None,
    recorder: Recorder | None,
    clips: Clips | None,
) -> Capture:
    """Return the capture of the config's source; recorder and clips listen to every source that it opens.

    `first` is that source as it was made to be judged, unopened: it is read first, and others are made once it broke.
    """
    source = config.source
    made = [first]

    def make_source() -> Source:
        opened = made.pop() if made else open_source(source.uri, source, clock)
        for listener in (recorder, clips):
            opened = listener.tap(opened) if listener is not None else opened
        return opened

    return Capture(
        make_source,
        source,
        clock,
        first_sequence=resumed.first_sequence if resumed else 0,
        nav_at=nav.at if nav is not None else None,
        seed=config.agent.seed,
    )
