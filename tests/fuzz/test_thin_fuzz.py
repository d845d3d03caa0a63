"""Bytes of any kind into the thin wire: typed errors only, no growth, nothing stored that was not sent."""

import numpy as np
import pytest
from thin_records import read_received

from stillwatch.base.clock import VirtualClock
from stillwatch.transport.thin.codec import ThinCodec, encode_record
from stillwatch.transport.thin.component import decode_component
from stillwatch.transport.thin.link import ThinReceiver
from stillwatch.transport.thin.presets import PRESETS
from stillwatch.transport.thin.receiver_log import ReceiverLog
from stillwatch.transport.thin.records import (
    AlertAck,
    ComponentPart,
    Fragment,
    Packet,
    StreamAck,
    ThinAlert,
    ThinHeartbeat,
)
from stillwatch.transport.wire.errors import DecodeError

CODEC = ThinCodec(1)
PRESET = PRESETS["micromodem-3"]
RECORDS = [
    encode_record(record)
    for record in (
        ThinAlert(1, "novel", 1_795_824_000_000_000_000), ThinHeartbeat(0, "live"), Fragment(1, 2, b"abc", True),
        Packet(1, b"abcdef"), ComponentPart(1, 1, 1, b"abc"), AlertAck(1, 2, 3), StreamAck(1, 2, 3, 4, False),
    )
]  # fmt: skip


def hostile_frames(seed, n):
    """Yield random bytes, damaged frames, and frames with a right tag around damaged or random records."""
    random = np.random.default_rng(seed)
    for k in range(n):
        body = b"".join(RECORDS[int(i)] for i in random.integers(len(RECORDS), size=int(random.integers(1, 4))))
        if k % 4 == 0:
            yield random.bytes(int(random.integers(0, 80)))
            continue
        if k % 4 == 1:
            body = random.bytes(int(random.integers(1, 60)))
        damaged = bytearray(body)
        for _ in range(int(random.integers(0, 4))):
            damaged[int(random.integers(len(damaged)))] = int(random.integers(256))
        frame = CODEC.frame([bytes(damaged[: int(random.integers(1, len(damaged) + 1))])])
        yield frame[:-1] if k % 4 == 3 else frame


def run_fuzz(folder, seed, n):
    """Feed n hostile frames to the decoder and n // 20 of another seed to a whole receiver; return the receiver."""
    decoded = refused = 0
    for frame in hostile_frames(seed, n):
        try:
            heard = CODEC.decode(frame)
        except DecodeError:
            refused += 1
            continue
        decoded += 1
        for record in heard.records:
            if isinstance(record, ComponentPart):
                try:
                    decode_component([record.data])
                except DecodeError:
                    pass
    assert decoded > n // 50
    assert refused > n // 2
    clock = VirtualClock(0, 1_795_824_000_000_000_000)
    receiver = ThinReceiver(PRESET.down, CODEC, ReceiverLog(folder, clock=clock), now_ns=0)
    for k, frame in enumerate(hostile_frames(seed + 1, n // 20)):
        receiver.feed(frame, k * 10_000_000)
        receiver.poll(k * 10_000_000)
    return receiver


@pytest.mark.slow
def test_hostile_frames_give_typed_errors_only_and_nothing_grows(tmp_path, monkeypatch):
    monkeypatch.setattr("os.fdatasync", lambda descriptor: None)
    receiver = run_fuzz(tmp_path, seed=0, n=20_000)
    assert receiver.counters["rejected"] > 100
    assert receiver.scheduler.count("ack") <= 64
    records = [encode_record(alert) for _, _, alert in read_received(tmp_path)]
    assert len(records) == len(set(records)) == receiver.counters["alert"]
