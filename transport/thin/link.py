"""Both ends of a thin link: the vehicle's ThinSender and the ground's ThinReceiver.

Used by the agent's sender thread and by ground stations, each from one thread. `now_ns` is monotonic time given by
the caller; frames go to and come from a modem (transport/thin/port.py). Nothing that arrives may raise.
"""

import itertools
from collections import Counter, OrderedDict
from typing import Protocol

from stillwatch.transport.thin.codec import (
    ENVELOPE_BYTES,
    MAX_DATA_BYTES,
    N_PACKETS,
    N_STREAMS,
    NO_REQUEST,
    ThinCodec,
    ThinFrame,
    data_overhead,
    encode_record,
    number_alert,
    strip_alert,
)
from stillwatch.transport.thin.fragments import SEAL_BYTES, Reassembler, acknowledged, split
from stillwatch.transport.thin.outbox import Number, Outbox
from stillwatch.transport.thin.presets import Budget
from stillwatch.transport.thin.receiver_log import (
    AlertArrived,
    AlertLog,
    Arrival,
    ClumpsArrived,
    ComponentArrived,
    HeartbeatArrived,
    PacketArrived,
    ThumbnailArrived,
)
from stillwatch.transport.thin.records import (
    MAX_STREAM_BYTES,
    AlertAck,
    ClumpsRequest,
    ComponentAck,
    ComponentPart,
    Fragment,
    ModelRequest,
    Packet,
    PacketAck,
    RecordType,
    StreamAck,
    ThinAlert,
    ThinHeartbeat,
)
from stillwatch.transport.thin.scheduler import ClassRule, Item, Scheduler
from stillwatch.transport.wire import DecodeError, LogError

_QUEUED_ALERTS = 256  # as many of the outbox's are in the scheduler at once
_SETTLE_NS = 5_000_000_000
_SLOTS_AHEAD = 4  # model packets under way: what may be sent until their acknowledgements can be here
_FOLLOWING = 16
_RECENT = 64  # few, as the numbers of an earlier process must not acknowledge those of this one
_WHOLE_FRAME_BYTES = 64  # up to here a packet or fragment fills its frame alone: a length byte would be waste
_ABOUT = 5  # bytes before a stream's object: of a thumbnail which alert it belongs to, of clumps which request
_CLUMPS = 1  # the first four bits of what a stream of clumps is about; of a thumbnail 0
_ANSWERED_NS = 600_000_000_000  # repeats of a request are not answered for so long
MOST_CLUMPS_BYTES = MAX_STREAM_BYTES - SEAL_BYTES - _ABOUT


class PacketSource(Protocol):
    """What `ThinSender.mirror` takes: transport/mirror/vehicle.py's ModelEncoder."""

    def next_packet(self, budget_bytes: int) -> tuple[int, bytes] | None: ...

    def acknowledge(self, number: int) -> None: ...

    def lose(self, number: int) -> None: ...

    def refresh(self) -> None: ...


class ThinSender:
    """The vehicle's end: alerts through the outbox, everything else as the budget allows.

    Parameters
    ----------
    budget : Budget
        What the vehicle may send (`preset.up`, or a share of it).
    codec : ThinCodec
    outbox : Outbox
        Owned from now on. If it was there before, the whole budget of the last 10 minutes counts as spent.
    now_ns : int
        Monotonic time.
    rules : dict of ClassRule or None
        In place of the scheduler's.

    Attributes
    ----------
    counters : Counter
        rejected (frames that are not for us or damaged), held_alerts (kept in memory as the disk failed),
        acknowledged.CLASS, model_requests (ground stations that began without a copy).
    """

    def __init__(
        self,
        budget: Budget,
        codec: ThinCodec,
        outbox: Outbox,
        *,
        now_ns: int,
        rules: dict[str, ClassRule] | None = None,
    ):
        self.outbox = outbox
        self.scheduler = Scheduler(
            budget, codec, now_ns=now_ns, restarted=outbox.continued, rules=rules, on_drop=self._on_drop
        )
        self.counters: Counter[str] = Counter()
        self._codec = codec
        self._settled_ns = now_ns
        self._room = budget.frame_bytes - ENVELOPE_BYTES
        self._is_whole = self._room <= _WHOLE_FRAME_BYTES
        # An earlier process's numbers may still be in the ground's tables: begin far from them.
        self._stream = outbox.generation * 64 % N_STREAMS
        self._packet = outbox.generation * 256 % N_PACKETS
        self._sources: dict[int, PacketSource] = {}
        self._packets: dict[int, tuple[int, int]] = {}  # channel and the source's number, by ours
        self._answers: dict[int, int] = {}
        self._clumps: dict[int, bytes] = {}
        self._clumps_answered: dict[tuple[int, int], int] = {}
        per_frame = 1 if self._is_whole else max(self._room // (self.packet_bytes + 4), 1)
        self._packets_ahead = _SLOTS_AHEAD * budget.frames_per_slot * per_frame

    @property
    def packet_bytes(self) -> int:
        """Largest model packet: it fills one frame, or 255 bytes."""
        return min(self._room - data_overhead(RecordType.PACKET, rest=self._is_whole), MAX_DATA_BYTES)

    def alert(self, alert: ThinAlert, now_ns: int, thumbnail: bytes = b"") -> Number:
        """Take an alert. When this returns it is on the disk; if the disk fails it is in memory, and counted.

        Parameters
        ----------
        alert : ThinAlert
            Its delivery number is given here.
        thumbnail : bytes
            Code of transport/thin/thumbnails.py to follow, or empty.

        Raises
        ------
        EncodeError
            A field that does not fit.
        """
        stored = strip_alert(alert)
        try:
            number = self.outbox.put(stored)
        except LogError:
            number = self.outbox.hold(stored)
            self.counters["held_alerts"] += 1
        self._offer_alert(number, stored, now_ns)
        if thumbnail:
            self.thumbnail(number, thumbnail, now_ns, value=(1 + alert.severity) / 8)
        return number

    def thumbnail(self, number: Number, code: bytes, now_ns: int, value: float = 1.0) -> None:
        """Queue a thumbnail of an alert, coarse parts first among all thumbnails; EncodeError over 8,182 bytes."""
        about = number.incarnation << 24 | number.delivery
        self._stream_out("thumbnail", about, code, value, now_ns)

    def clumps(self, channel: int, payload: bytes) -> None:
        """Hold the newest clumps of a model, at most MOST_CLUMPS_BYTES, for when the ground asks; nothing is sent."""
        self._clumps[channel] = payload

    def _stream_out(self, kind: str, about: int, code: bytes, value: float, now_ns: int) -> None:
        # In larger frames two fragments share a frame, so that one still fits beside an alert.
        room = self._room if self._is_whole else self._room // 2
        piece = min(room - data_overhead(RecordType.FRAGMENT, rest=self._is_whole), MAX_DATA_BYTES)
        for fragment in split(self._stream, about.to_bytes(_ABOUT, "big") + code, piece):
            key = (fragment.stream, fragment.offset, len(fragment.data))
            self._offer(kind, key, fragment, value / (1.0 + fragment.offset / 256.0), now_ns)
        self._stream = (self._stream + 1) % N_STREAMS

    def mirror(self, channel: int, source: PacketSource) -> None:
        """Keep a model mirrored: `poll` takes packets as there is room, newest word first, and reports their fate.

        `channel` is the model's number in MODELS; a channel has one source for its life. A ground
        station that has no copy asks for one, and the source's `refresh` begins it anew.
        """
        self._sources[channel] = source

    def component(self, parts: list[ComponentPart], now_ns: int) -> None:
        """Queue a mixture component's parts, coarse one first; parts of its earlier revisions are forgotten."""
        for part in parts:
            queued = [key for key in self.scheduler.keys("component") if isinstance(key, tuple)]
            old = [key for key in queued if key[0] == part.component and key[1] != part.revision]
            self.scheduler.acknowledge("component", old)
            key = (part.component, part.revision, part.stage)
            self._offer("component", key, part, 1.0 / (1 + part.stage), now_ns)

    def heartbeat(self, beat: ThinHeartbeat, now_ns: int) -> None:
        """Queue a heartbeat in place of the last one; it goes when its turn comes."""
        self.scheduler.offer(Item("heartbeat", "heartbeat", encode_record(beat)), now_ns)

    def poll(self, now_ns: int) -> list[bytes]:
        """Return the frames to hand to the modem now. Call it at least once a slot."""
        if now_ns - self._settled_ns >= _SETTLE_NS:
            self._settled_ns = now_ns
            self.outbox.settle()
        self._refill(now_ns)
        self._pull(now_ns)
        return self.scheduler.next_slot(now_ns)

    def feed(self, frame: bytes, now_ns: int) -> None:
        """Take a frame from the ground: acknowledgements. Anything else is counted and ignored."""
        heard = _decode(self._codec, frame, from_ground=True)
        if heard is None:
            self.counters["rejected"] += 1
            return
        for record in heard.records:
            match record:
                case AlertAck():
                    self._on_alert_ack(record)
                case StreamAck():
                    self._on_stream_ack(record)
                case PacketAck():
                    self._on_packet_ack(record)
                case ModelRequest(channel, request):
                    self._on_model_request(channel, request)
                case ClumpsRequest(channel, request):
                    self._on_clumps_request(channel, request, now_ns)
                case ComponentAck(component, revision, stages):
                    keys = [(component, revision, stage) for stage in range(8) if stages >> stage & 1]
                    self.counters["acknowledged.component"] += self.scheduler.acknowledge("component", keys)

    def _offer(
        self, kind: str, key: object, record: Fragment | Packet | ComponentPart, value: float, now_ns: int
    ) -> None:
        encoded = encode_record(record, rest=self._is_whole)
        self.scheduler.offer(Item(kind, key, encoded, value, ends_frame=self._is_whole), now_ns)

    def _offer_alert(self, number: Number, stored: bytes, now_ns: int) -> None:
        self.scheduler.offer(Item("alert", number, number_alert(stored, *number)), now_ns)

    def _refill(self, now_ns: int) -> None:
        """Keep the scheduler's alerts topped up from the outbox, oldest first, and free of what it dropped."""
        gone = [key for key in self.scheduler.keys("alert") if not isinstance(key, Number) or key not in self.outbox]
        self.scheduler.acknowledge("alert", gone)
        room = _QUEUED_ALERTS - self.scheduler.count("alert")
        if room > 0 and len(self.outbox) > self.scheduler.count("alert"):
            waiting = (pair for pair in self.outbox.pending() if not self.scheduler.holds("alert", pair[0]))
            for number, stored in itertools.islice(waiting, room):
                self._offer_alert(number, stored, now_ns)

    def _pull(self, now_ns: int) -> None:
        """Take packets from the model mirrors in turn, as many as the link can carry until they are acknowledged."""
        sources = list(self._sources.items())
        while sources and self.scheduler.count("model") < self._packets_ahead:
            channel, source = sources.pop(0)
            packet = source.next_packet(self.packet_bytes)
            if packet is None:
                continue
            number, data = packet
            record = Packet(self._packet, data, channel, self._answers.get(channel, 0))
            self._offer("model", self._packet, record, 1.0, now_ns)
            self._packets[self._packet] = (channel, number)
            self._packet = (self._packet + 1) % N_PACKETS
            sources.append((channel, source))

    def _on_drop(self, kind: str, key: object) -> None:
        """Tell a model mirror that a packet was given up."""
        if kind == "model" and isinstance(key, int) and key in self._packets:
            channel, number = self._packets.pop(key)
            self._sources[channel].lose(number)

    def _on_alert_ack(self, ack: AlertAck) -> None:
        offsets = [0] + [1 + k for k in range(_FOLLOWING) if ack.following >> k & 1]
        numbers = [Number(ack.incarnation, ack.base + offset) for offset in offsets]
        self.counters["acknowledged.alert"] += self.outbox.acknowledge(numbers)
        self.scheduler.acknowledge("alert", numbers)

    def _on_stream_ack(self, ack: StreamAck) -> None:
        for kind in ("thumbnail", "clumps"):
            queued = [key for key in self.scheduler.keys(kind) if isinstance(key, tuple) and key[0] == ack.stream]
            there = set(acknowledged(ack, [(offset, length) for _, offset, length in queued]))
            keys = [key for key in queued if key[1] in there]
            self.counters[f"acknowledged.{kind}"] += self.scheduler.acknowledge(kind, keys)

    def _on_packet_ack(self, ack: PacketAck) -> None:
        offsets = [0] + [1 + k for k in range(_FOLLOWING) if ack.earlier >> k & 1]
        for number in [(ack.newest - offset) % N_PACKETS for offset in offsets]:
            if self.scheduler.acknowledge("model", [number]):
                self.counters["acknowledged.model"] += 1
                channel, its_number = self._packets.pop(number)
                self._answers.setdefault(channel, NO_REQUEST)
                self._sources[channel].acknowledge(its_number)

    def _on_model_request(self, channel: int, request: int) -> None:
        """Begin a model from nothing, once for each request however often it comes."""
        if channel not in self._sources or self._answers.get(channel) == request:
            return
        self._answers[channel] = request
        mine = [number for number, (its_channel, _) in self._packets.items() if its_channel == channel]
        self.scheduler.acknowledge("model", mine)
        for number in mine:
            del self._packets[number]
        self._sources[channel].refresh()
        self.counters["model_requests"] += 1

    def _on_clumps_request(self, channel: int, request: int, now_ns: int) -> None:
        """Send the newest clumps of a model behind everything else, once for each request however often it comes."""
        payload, key = self._clumps.get(channel), (channel, request)
        if payload is None or now_ns - self._clumps_answered.get(key, -_ANSWERED_NS) < _ANSWERED_NS:
            return
        self._clumps_answered[key] = now_ns
        self.scheduler.acknowledge("clumps", self.scheduler.keys("clumps"))  # of an older request
        about = ((_CLUMPS << 3 | channel) << 4 | request) << 29 | len(payload)
        self._stream_out("clumps", about, payload, 1.0, now_ns)
        self.counters["clumps_requests"] += 1


class ThinReceiver:
    """The ground's end for one agent: what arrives, and acknowledgements within the ground's own budget.

    Parameters
    ----------
    budget : Budget
        What the ground may send (`preset.down`).
    codec : ThinCodec
        With the vehicle's agent number and key.
    log : AlertLog
        Where alerts are kept, each once; may serve several receivers of one thread.
    now_ns : int

    Attributes
    ----------
    counters : Counter
        frames, bytes, rejected, and arrivals by class; repeats as duplicate.CLASS; unstored (alerts that the disk
        did not take: not acknowledged, so they come again).
    """

    def __init__(self, budget: Budget, codec: ThinCodec, log: AlertLog, *, now_ns: int):
        self.counters: Counter[str] = Counter()
        self.scheduler = Scheduler(budget, codec, from_ground=True, now_ns=now_ns, restarted=log.continued)
        self._codec = codec
        self._log = log
        self._streams = Reassembler()
        self._packets: OrderedDict[int, bytes] = OrderedDict()
        self._parts: OrderedDict[tuple[int, int, int], bytes] = OrderedDict()
        self._requests: dict[int, int] = {}  # by channel: the request not yet answered, 0 once it is

    def feed(self, frame: bytes, now_ns: int) -> list[Arrival]:
        """Take a frame from the vehicle; return what is new. Alerts among it are on the ground's disk already."""
        heard = _decode(self._codec, frame, from_ground=False)
        if heard is None:
            self.counters["rejected"] += 1
            return []
        self.counters["frames"] += 1
        self.counters["bytes"] += len(frame)
        arrivals: list[Arrival | None] = []
        for record in heard.records:
            match record:
                case ThinAlert():
                    arrivals.append(self._on_alert(record, now_ns))
                case Fragment():
                    arrivals.append(self._on_fragment(record, now_ns))
                case Packet():
                    arrivals.append(self._on_packet(record, now_ns))
                case ComponentPart():
                    arrivals.append(self._on_part(record, now_ns))
                case ThinHeartbeat():
                    arrivals.append(HeartbeatArrived(self._codec.agent, record))
        return [arrival for arrival in arrivals if arrival is not None]

    def counts(self) -> dict[str, int]:
        """Return the counters, and what streams of fragments and the log of alerts met with."""
        streams, log = self._streams, self._log
        met = {"streams_restarted": streams.restarted, "streams_broken": streams.broken}
        met |= {"streams_evicted": streams.evicted, "alerts_renumbered": log.renumbered}
        return dict(self.counters) | met

    def ask_for_clumps(self, channel: int, request: int, now_ns: int) -> None:
        """Ask for the newest clumps of a model, again and again for half an hour until they come.

        `request`: 1 to 15, another one than that of the last ten minutes.
        """
        record = encode_record(ClumpsRequest(channel, request))
        self.scheduler.offer(Item("request", ("clumps", channel), record), now_ns)

    def poll(self, now_ns: int) -> list[bytes]:
        """Return the acknowledgements to hand to the modem now."""
        return self.scheduler.next_slot(now_ns)

    def _on_alert(self, alert: ThinAlert, now_ns: int) -> Arrival | None:
        number = Number(alert.incarnation, alert.delivery)
        is_new = self._log.append(self._codec.agent, alert)
        if is_new is None:
            self.counters["unstored"] += 1
            return None
        self._acknowledge_alert(number, now_ns)
        self.counters["alert" if is_new else "duplicate.alert"] += 1
        return AlertArrived(self._codec.agent, alert) if is_new else None

    def _acknowledge_alert(self, number: Number, now_ns: int) -> None:
        """Queue an acknowledgement that also repeats what lately arrived of the numbers around this one."""
        agent, incarnation = self._codec.agent, number.incarnation
        near = range(max(number.delivery - _FOLLOWING, 0), number.delivery)
        lately = [n for n in near if self._log.arrived_lately(agent, Number(incarnation, n))]
        base = min(lately, default=number.delivery)
        following = sum(
            1 << k
            for k in range(_FOLLOWING)
            if base + 1 + k == number.delivery or self._log.arrived_lately(agent, Number(incarnation, base + 1 + k))
        )
        record = encode_record(AlertAck(incarnation, base, following))
        # Numbers that share a block share an acknowledgement, so that a burst does not fill the way back.
        key = ("alert", incarnation, base // (_FOLLOWING + 1))
        self.scheduler.offer(Item("ack", key, record, value=4.0), now_ns)

    def _on_fragment(self, fragment: Fragment, now_ns: int) -> Arrival | None:
        duplicates = self._streams.duplicates
        progress = self._streams.feed(fragment)
        self.counters["fragment" if self._streams.duplicates == duplicates else "duplicate.fragment"] += 1
        ack = self._streams.acknowledgement(fragment.stream)
        if ack is not None:
            self.scheduler.offer(Item("ack", ("stream", fragment.stream), encode_record(ack)), now_ns)
        if progress is None or len(progress.prefix) <= _ABOUT:
            return None
        about, code = int.from_bytes(progress.prefix[:_ABOUT], "big"), progress.prefix[_ABOUT:]
        if about >> 36 == _CLUMPS:
            channel = about >> 33 & 7
            self.scheduler.acknowledge("request", [("clumps", channel)])
            n_bytes = about & 0x1FFFFFFF
            return ClumpsArrived(self._codec.agent, channel, code, n_bytes, progress.is_complete)
        number = Number(about >> 24 & 0xFFF, about & 0xFFFFFF)
        return ThumbnailArrived(self._codec.agent, number, code, progress.is_complete)

    def _on_packet(self, packet: Packet, now_ns: int) -> Arrival | None:
        is_new = self._packets.get(packet.number) != packet.data
        self._packets[packet.number] = packet.data
        self._packets.move_to_end(packet.number)
        if len(self._packets) > _RECENT:
            self._packets.popitem(last=False)
        self.counters["packet" if is_new else "duplicate.packet"] += 1
        self._ask_for_model(packet, now_ns)
        earlier = sum(1 << k for k in range(_FOLLOWING) if (packet.number - 1 - k) % N_PACKETS in self._packets)
        record = encode_record(PacketAck(packet.number, earlier))
        self.scheduler.offer(Item("ack", ("packet", packet.number // _FOLLOWING), record, value=2.0), now_ns)
        return PacketArrived(self._codec.agent, packet.channel, packet.data) if is_new else None

    def _ask_for_model(self, packet: Packet, now_ns: int) -> None:
        """Ask for the whole model where the first packet since our start says that we missed something."""
        channel, answers = packet.channel, packet.answers
        if channel not in self._requests:
            self._requests[channel] = 0 if answers == 0 else answers % (NO_REQUEST - 1) + 1
            if answers:
                record = encode_record(ModelRequest(channel, self._requests[channel]))
                self.scheduler.offer(Item("request", channel, record), now_ns)
        elif self._requests[channel] and self._requests[channel] == answers:
            self._requests[channel] = 0
            self.scheduler.acknowledge("request", [channel])

    def _on_part(self, part: ComponentPart, now_ns: int) -> Arrival | None:
        key = (part.component, part.revision, part.stage)
        is_new = self._parts.get(key) != part.data
        self._parts[key] = part.data
        self._parts.move_to_end(key)
        if len(self._parts) > _RECENT:
            self._parts.popitem(last=False)
        self.counters["component" if is_new else "duplicate.component"] += 1
        stages = sum(1 << stage for stage in range(8) if (part.component, part.revision, stage) in self._parts)
        record = encode_record(ComponentAck(part.component, part.revision, stages))
        self.scheduler.offer(Item("ack", ("component", part.component), record), now_ns)
        return ComponentArrived(self._codec.agent, part) if is_new else None


def _decode(codec: ThinCodec, frame: bytes, *, from_ground: bool) -> ThinFrame | None:
    """Return a frame of this link and direction, or None."""
    try:
        heard = codec.decode(frame)
    except DecodeError:
        return None
    return heard if heard.agent == codec.agent and heard.from_ground == from_ground else None
