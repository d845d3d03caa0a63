"""Write the page for people who build the other end of a thin link themselves, from the table that the codec packs by.

transport/THIN_LINK.md is its output; a test holds both equal.
"""

import argparse

from stillwatch.transport.thin import (
    ENVELOPE_BYTES,
    KINDS,
    MAX_DATA_BYTES,
    MAX_STREAM_BYTES,
    PRESETS,
    RECORDS,
    STATES,
    TAG_BYTES,
    TYPE_BITS,
    VERSION,
    Field,
)
from stillwatch.transport.wire import Linear

_HEAD = f"""# The thin link, bit by bit

Made by `stillwatch thin-page` from transport/thin/records.py; do not edit.

A frame is what the modem carries in one piece. Bits are counted from the most significant of the first byte; every
number is unsigned and big-endian.

| part | bits | meaning |
| --- | --- | --- |
| version | 3 | {VERSION} |
| direction | 1 | 0 from the vehicle, 1 from the ground |
| reserved | 4 | zero |
| agent | 8 | number of the agent, in both directions |
| records | | one or more, each on whole bytes, up to the tag |
| tag | {8 * TAG_BYTES} | BLAKE2s (RFC 7693) of all before it, {TAG_BYTES} bytes of digest, with the link's key if any |

The envelope takes {ENVELOPE_BYTES} bytes. A frame whose version, reserved bits, tag or any record is wrong is ignored
as a whole. A measure `low + code * step` has as its highest code "unknown"; a logarithmic one is
`low * 2^(code * step)`.

The ground acknowledges every alert, fragment, packet and component that it hears, repeats of them too. The vehicle
repeats until it is acknowledged; alerts (by incarnation and delivery) are to be kept once. An alert may be
acknowledged only when it is on the ground's disk.
"""
_TAIL = f"""
## Data

After the fields of COMPONENT, FRAGMENT and PACKET comes one byte with the length of the data, unless `rest` is 1, and
then the data: 1 to {MAX_DATA_BYTES} bytes.

A stream of FRAGMENTs holds at most {MAX_STREAM_BYTES} bytes: 5 bytes (4 zero bits, incarnation 12, delivery 24) that
say which alert it belongs to, the code of a thumbnail (transport/thin/thumbnails.py: every prefix is a picture), and a
CRC32C of all before. PACKETs are those of the model mirror (transport/mirror/vehicle.py). COMPONENT stages joined
in order are the code of transport/thin/component.py.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command has no options."""


def main(_args: argparse.Namespace) -> int:
    """Print the page."""
    print(thin_page(), end="")
    return 0


def thin_page() -> str:
    """Return the page as Markdown."""
    parts = [_HEAD]
    for kind, record in RECORDS.items():
        sized = " and data" if record.has_data else ""
        parts.append(f"\n## {kind.name}: type {kind.value}, {record.n_bytes} bytes{sized}\n")
        parts.append("| field | bits | meaning |\n| --- | --- | --- |")
        parts.append(f"| type | {TYPE_BITS} | {kind.value} |")
        parts += [_row(field) for field in record.fields]
    parts.append(_TAIL)
    parts.append("## Numbers of kinds and states\n")
    parts.append("| number | kind of an alert | state of a heartbeat |\n| --- | --- | --- |")
    kinds = [*KINDS, *["free, read as other"] * (len(STATES) - len(KINDS))]
    parts += [f"| {i} | {kind} | {state} |" for i, (kind, state) in enumerate(zip(kinds, STATES, strict=True))]
    parts.append("\n## Links\n")
    parts.append("| preset | up | down | slot | bytes an hour up | source |\n| --- | --- | --- | --- | --- | --- |")
    for preset in PRESETS.values():
        up, down = preset.up, preset.down
        sizes = [f"{budget.frames_per_slot} x {budget.frame_bytes} B" for budget in (up, down)]
        cells = [preset.name, *sizes, f"{up.slot_s:g} s", f"{up.bytes_per_hour:,.0f}", preset.source]
        parts.append(f"| {' | '.join(cells)} |")
    return "\n".join(parts) + "\n"


def _row(field: Field) -> str:
    meaning = field.meaning
    if isinstance(field.measure, Linear):
        meaning += f": {field.measure.low:g} + code * {field.measure.step:.10g}"
    elif field.measure is not None:
        meaning += f": {field.measure.low:g} * 2^(code * {field.measure.octaves_per_step:.10g})"
    return f"| {field.name} | {field.width} | {meaning} |"
