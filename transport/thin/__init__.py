"""A link of 32-byte frames: records, scheduling, storing until acknowledged. THIN_LINK.md is made from it.

Owns: the frame's layout (records.py, codec.py), the link's budget, outbox, thumbnails, the modem's port.
In: alerts, models, thumbnails. Out: frames of a modem, and back.
Imports: transport.base, transport.wire, transport.mirror, transport.disk.
"""

from stillwatch.transport.thin.codec import ENVELOPE_BYTES, MAX_DATA_BYTES, TAG_BYTES, VERSION, ThinCodec, encode_record
from stillwatch.transport.thin.component import decode_component
from stillwatch.transport.thin.layout import KINDS, STATES, TYPE_BITS, Field
from stillwatch.transport.thin.link import ThinReceiver, ThinSender
from stillwatch.transport.thin.linksim import LinkModel, LinkSimulator
from stillwatch.transport.thin.outbox import EARLIEST_NS, Outbox, count_outbox
from stillwatch.transport.thin.port import ThinPort, parse_endpoint, read_link_key
from stillwatch.transport.thin.presets import PRESETS, Preset, find_preset
from stillwatch.transport.thin.receiver_log import (
    REMEMBERED,
    AlertArrived,
    Arrival,
    ClumpsArrived,
    ComponentArrived,
    HeartbeatArrived,
    PacketArrived,
    ReceiverLog,
    ThumbnailArrived,
)
from stillwatch.transport.thin.records import MAX_STREAM_BYTES, RECORDS, ComponentPart, ThinAlert, ThinHeartbeat
from stillwatch.transport.thin.thumbnails import HEADER_BYTES, decode_thumbnail
from stillwatch.transport.thin.vehicle import VehicleLink

__all__ = [
    "count_outbox",
    "AlertArrived",
    "Arrival",
    "ClumpsArrived",
    "ComponentArrived",
    "ComponentPart",
    "EARLIEST_NS",
    "ENVELOPE_BYTES",
    "Field",
    "HEADER_BYTES",
    "HeartbeatArrived",
    "KINDS",
    "LinkModel",
    "LinkSimulator",
    "MAX_DATA_BYTES",
    "MAX_STREAM_BYTES",
    "Outbox",
    "PRESETS",
    "RECORDS",
    "REMEMBERED",
    "PacketArrived",
    "Preset",
    "ReceiverLog",
    "STATES",
    "TAG_BYTES",
    "TYPE_BITS",
    "ThinAlert",
    "ThinCodec",
    "ThinHeartbeat",
    "ThinPort",
    "ThinReceiver",
    "ThinSender",
    "ThumbnailArrived",
    "VERSION",
    "VehicleLink",
    "decode_component",
    "decode_thumbnail",
    "encode_record",
    "find_preset",
    "parse_endpoint",
    "read_link_key",
]
