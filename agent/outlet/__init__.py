"""Everything that leaves: one sender thread, its carriers, status and health.

Owns: the queues, one a topic, and the carriers behind them; commands on their way in.
In: messages. Out: run folder, sockets, modem port.
Imports: base, settings, sources, pipeline, transport.disk, transport.live, transport.thin, transport.wire.
"""

from stillwatch.outlet.carriers import LiveCarrier, RunFolderCarrier, ThinCarrier
from stillwatch.outlet.command_box import CommandBox
from stillwatch.outlet.health import cpu_seconds, rss_bytes, temperature_c
from stillwatch.outlet.judgement import Judgement, judge
from stillwatch.outlet.metrics import METRICS, Figures, MetricsCarrier
from stillwatch.outlet.outlet import Carrier, Outlet
from stillwatch.outlet.status import LONGEST_NS, StatusReporter

__all__ = [
    "LONGEST_NS",
    "Carrier",
    "CommandBox",
    "Figures",
    "Judgement",
    "METRICS",
    "MetricsCarrier",
    "judge",
    "LiveCarrier",
    "Outlet",
    "RunFolderCarrier",
    "StatusReporter",
    "ThinCarrier",
    "cpu_seconds",
    "rss_bytes",
    "temperature_c",
]
