"""The bytes of every schema version stay readable for ever, and those of this version stay what they are.

tests/golden/wire_v2/README.md says how the files are made; a change here is a change for every ground station.
"""

import pytest
from places import GOLDEN
from wire_decoder import decode as independent_decode
from wire_examples import examples

from stillwatch.transport.wire.codec import decode, encode
from stillwatch.transport.wire.compact import DICTIONARY, expand
from stillwatch.transport.wire.messages import LogNotice

FILES = sorted((GOLDEN / "wire_v2").glob("*.msgpack"))
EARLIER = sorted(
    path for old in ("wire_v1/*.msgpack", "wire_v?/earlier/*.msgpack") for path in GOLDEN.glob(old)
)  # of before fields were added: an alert's kind_number, the components of clumps


def test_there_is_a_file_for_every_kind():
    assert {path.stem for path in FILES} == set(examples())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_message_of_this_version_expands_to_exactly_these_bytes(path):
    assert expand(encode(examples()[path.stem]), 100_000) == expand(path.read_bytes(), 100_000)


def test_dictionary_of_schema_2_never_changes():
    assert (GOLDEN / "wire_v2" / "dictionary.bin").read_bytes() == DICTIONARY


def test_notice_of_schema_1_has_the_bytes_that_stations_of_then_read():
    notice = examples()["log"]
    old = LogNotice(**{name: getattr(notice, name) for name in notice.__struct_fields__} | {"schema": 1})
    assert encode(old) == (GOLDEN / "wire_v1" / "log.msgpack").read_bytes()


@pytest.mark.parametrize("path", FILES + EARLIER, ids=lambda path: path.stem)
def test_kept_bytes_are_still_read(path):
    decode(path.read_bytes())
    assert independent_decode(path.read_bytes())["kind"] == path.stem.partition("_")[0]
