"""Names that both ends share: what they are on the wire, and what becomes of those that nobody here knows."""

import json

import msgpack
from thin_records import alert_of
from wire_examples import examples

from stillwatch.settings.config import AGENT_ID
from stillwatch.transport.thin.codec import ThinCodec
from stillwatch.transport.thin.records import ThinAlert
from stillwatch.transport.wire import AGENT_PATTERN, EventKind, decode, encode


def test_the_numbers_of_kinds_on_a_thin_link_stay_what_they_were():
    kinds = ["other", "novel", "new_category", "returned", "vanished", "scene_change", "unusual_view", "view_changed"]
    assert list(EventKind) == kinds


def test_settings_take_the_ids_of_agents_that_the_wire_takes():
    assert AGENT_ID == AGENT_PATTERN


def test_a_kind_is_its_text_in_messages_and_in_json():
    assert msgpack.packb({"kind": EventKind.RETURNED}) == msgpack.packb({"kind": "returned"})
    assert json.dumps(EventKind.RETURNED) == '"returned"'


def test_a_message_with_a_kind_is_the_same_bytes_as_with_its_text():
    alert = next(message for message in examples().values() if hasattr(message, "alert_kind"))
    fields = {name: getattr(alert, name) for name in alert.__struct_fields__}
    said, meant = (type(alert)(**fields | {"alert_kind": kind}) for kind in ("vanished", EventKind.VANISHED))
    assert encode(said) == encode(meant)
    assert type(decode(encode(meant)).alert_kind) is str


def test_a_later_version_s_kind_is_another():
    assert EventKind("stampede") is EventKind.OTHER


def test_the_kind_of_schema_1_s_default_is_novel():
    assert EventKind("novelty") is EventKind.NOVEL


def test_a_thin_alert_of_a_number_without_a_kind_is_read_as_another():
    codec = ThinCodec()
    frame = codec.encode_alert(ThinAlert(1, EventKind.OTHER, 0))
    for number in range(len(EventKind), 16):
        # Type 4, incarnation 12, delivery 24, event 16, life 2 bits after the 2 bytes of the head: then the kind's 4.
        bits = int.from_bytes(frame[2:-4], "big") | number << (26 * 8 - 4 - 12 - 24 - 16 - 2 - 4)
        other = codec.frame([bits.to_bytes(26, "big")])
        assert alert_of(codec, other).kind is EventKind.OTHER
