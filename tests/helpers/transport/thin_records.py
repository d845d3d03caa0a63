"""What a frame and a receiver's log hold, read by the product's own codec: what thin-link tests compare with."""

from stillwatch.transport.disk.record_log import read_records
from stillwatch.transport.thin.codec import ThinCodec, decode_alert_record
from stillwatch.transport.thin.receiver_log import KIND_ALERT
from stillwatch.transport.thin.records import ThinAlert


def alert_of(codec: ThinCodec, frame: bytes) -> ThinAlert:
    """Return the one alert of a frame."""
    (record,) = codec.decode(frame).records
    assert isinstance(record, ThinAlert)
    return record


def read_received(folder) -> list[tuple[int, int, ThinAlert]]:
    """Return (agent, UTC ns of arrival, alert) of every alert in a receiver's log, in order of arrival."""
    return [
        (record.body[0], record.t_ns, decode_alert_record(record.body[1:]))
        for record in read_records(folder, name="received")
        if record.kind == KIND_ALERT
    ]
