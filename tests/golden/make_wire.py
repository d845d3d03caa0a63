"""Write the golden bytes of every kind of message that has none yet: `make pages`. What is there is never rewritten.

tests/unit/transport/wire/test_wire_golden.py holds encoder and decoder to these files.
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "helpers" / "transport"))

from wire_examples import examples  # noqa: E402

from stillwatch.transport.wire import encode  # noqa: E402

for kind, message in examples().items():
    path = HERE / "wire_v2" / f"{kind}.msgpack"
    if not path.exists():
        path.write_bytes(encode(message))
        print(path.relative_to(HERE.parents[1]))
