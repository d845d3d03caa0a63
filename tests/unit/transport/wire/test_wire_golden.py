"""The bytes of every schema version stay readable for ever, and those of this version stay what they are.

tests/golden/wire_v1/README.md says how the files are made; a change here is a change for every ground station.
"""

import pytest
from places import GOLDEN
from wire_decoder import decode as independent_decode
from wire_examples import examples

from stillwatch.transport.wire.codec import decode, encode

WIRE_V1 = GOLDEN / "wire_v1"
FILES = sorted(WIRE_V1.glob("*.msgpack"))
EARLIER = sorted(WIRE_V1.glob("earlier/*.msgpack"))  # of before a field was added: kind_number


def test_there_is_a_file_for_every_kind():
    assert {path.stem for path in FILES} == set(examples())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_message_of_this_version_has_exactly_these_bytes(path):
    assert encode(examples()[path.stem]).hex() == path.read_bytes().hex()


@pytest.mark.parametrize("path", FILES + EARLIER, ids=lambda path: path.stem)
def test_kept_bytes_are_still_read(path):
    decode(path.read_bytes())
    assert independent_decode(path.read_bytes())["kind"] == path.stem.partition("_")[0]
