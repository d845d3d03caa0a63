"""Write the page for people who build a ground station in another language, from the types that the codec checks by.

transport/WIRE.md is its output; a test holds both equal.
"""

import argparse
import base64
import inspect
import textwrap
import typing
from collections.abc import Sequence

import msgspec

from stillwatch.transport.live import (
    COMMANDS,
    MAX_REPLY_BYTES,
    MAX_REQUEST_BYTES,
    PAGE_BYTES,
    Page,
    PageRequest,
    Reply,
    Request,
)
from stillwatch.transport.mirror import bits as mirror_bits
from stillwatch.transport.mirror import values as mirror_values
from stillwatch.transport.mirror import vehicle as mirror
from stillwatch.transport.wire import (
    ARRAY_EXT,
    DICTIONARY,
    DTYPES,
    MAX_ITEMS,
    MAX_NDIM,
    MAX_TEXT_BYTES,
    MESSAGES,
    MODELS,
    SCHEMA,
    TOPICS,
    Message,
    Position,
    array_fields,
    kind_of,
)

_LIMIT_WORDS = ("at least", "above", "at most", "length", "matches")
_HEAD = f"""# The wire, schema {SCHEMA}

Made by `stillwatch wire-page` from transport/wire (messages.py, topics.py) and transport/live (control.py,
snapshot.py); do not edit.

## Sockets

| socket | ZeroMQ type, agent's end | where |
| --- | --- | --- |
| data | XPUB | `publish.endpoint` |
| snapshot | ROUTER | one port above, or the ipc path with `.snapshot` |
| control | ROUTER | `publish.control`; by default two ports above, or the ipc path with `.control` |

An agent that other machines can reach uses CURVE (RFC 26) on all three: you need its public key, and yours must be on
its allow-list, under `[data]` to read and under `[control]` to send commands. Connect a SUB to data and a DEALER to
each of the others. Give every receive a timeout.

## A message

Two frames: topic and payload. The topic is `v{SCHEMA}/<agent>/<kind>/`; the last slash belongs to it, so that a
subscription to `v{SCHEMA}/cam1/` does not get `cam10`. The payload is one msgpack map with string keys, no key twice;
`schema` is {SCHEMA} and `kind` repeats the topic's; a field that has its default may be left out. A payload whose first
byte is c1 (hexadecimal) is such a map as raw deflate (RFC 1951) after that byte, with the dictionary below;
limits of length are of the map. Texts are UTF-8 of at most {MAX_TEXT_BYTES} bytes; a list or map
has at most {MAX_ITEMS} entries. No number is NaN or infinite: what is not known is null or left out.

Growth: fields may be added, always with a default; ignore fields that you do not know. No field ever changes its type
or meaning, and no name is used again. Anything else is another `schema`, which you must refuse.

Schema 1 differs in bytes alone: topics begin with `v1/`, no payload is compact, all fields are there, and scores and
models come one by one and whole. Whoever subscribes to `v1/…`, or asks for pages without `schema`, is answered with one
`log` notice of schema 1 that says so, code `schema`.

Arrays are msgpack extension {ARRAY_EXT}: one byte dtype code, one byte number of dimensions (at most {MAX_NDIM}), four
bytes little-endian for each dimension, then the elements in C order, little-endian. Their product must fit the length.
"""
_SNAPSHOT = f"""
## Coming late, and gaps

1. Subscribe on the data socket first, then ask on the snapshot socket; show what comes from both.
2. A request is one frame, a msgpack map (`PageRequest`). The answer's first frame is a `Page`; then topic and payload
   frames follow in turn, about {PAGE_BYTES // 1024} KiB at most. Until `done`, ask again with the `stamp` of the page.
3. Of a topic's last values (those with the same key: mixture, alert id, exemplar id, notice code) keep the one with
   the highest `sequence`. The data socket repeats last values when somebody joins: drop what you know.
4. `sequence` counts the messages of one kind from 0 in each publisher `epoch`, and they are sent in this order. What a
   jump leaves out is missing, and so is what a status counts in `sequences` and you have not. Ask again, with the last
   `stamp` and `epoch`: what is missing and does not come with the answer either is lost. Messages that wait
   for room behind a slow subscriber are not counted before they are sent; one that a newer one replaced is lost.
5. A model with a `base` changes the one of that sequence. Without it, ask again: the snapshot has every model whole.
6. A higher `epoch` is a restarted agent: begin anew. After some seconds without a status make new sockets.
"""
_CONTROL = f"""
## Commands

A request is one frame on the control socket, a msgpack map of at most {MAX_REQUEST_BYTES} bytes; the reply is one
frame of at most {MAX_REPLY_BYTES // 1024} KiB. Repeat a request under the same `id` until it is answered: it is carried
out once. An unknown or malformed command gets a reply with `error`; bytes that are no request get none.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command has no options."""


def main(_args: argparse.Namespace) -> int:
    """Print the page."""
    print(wire_page(), end="")
    return 0


def wire_page() -> str:
    """Return the whole page."""
    parts = [_HEAD, _dtypes(), _topics()]
    parts.append(_struct(Message, "In every message", skip=()))
    own = tuple(Message.__struct_fields__)
    parts += [_struct(message, f"`{kind_of(message)}`", skip=own) for message in MESSAGES]
    parts.append(_struct(Position, "`nav` of an alert", skip=()))
    parts += [_SNAPSHOT, _struct(PageRequest, "`PageRequest`", ()), _struct(Page, "`Page`", ())]
    parts += [_CONTROL, _struct(Request, "Request", ()), _struct(Reply, "Reply", ())]
    parts += [_struct(kind, f"Arguments of `{name}`", ()) for name, kind in COMMANDS.items()]
    parts.append(_packets())
    parts.append(_dictionary())
    return "\n".join(part.strip("\n") + "\n" for part in parts)


def _dictionary() -> str:
    lines = textwrap.wrap(base64.b64encode(DICTIONARY).decode(), 116)
    return "\n## Dictionary of compact payloads\n\nIn base64:\n\n```\n" + "\n".join(lines) + "\n```\n"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def _dtypes() -> str:
    return _table(("dtype code", "elements"), [(str(code), dtype.name) for code, dtype in DTYPES.items()])


def _topics() -> str:
    rows = [
        (
            topic.kind,
            f"{topic.rate_hz:g}" if topic.rate_hz else "on change",
            str(topic.max_bytes),
            str(topic.keep or "no"),
            "yes" if topic.on_join else "no",
        )
        for topic in TOPICS.values()
    ]
    head = ("kind", "messages a second, planned", "bytes at most", "last values kept", "repeated to joiners")
    return "## Topics\n\n" + _table(head, rows)


def _struct(kind: type[msgspec.Struct], title: str, skip: tuple[str, ...]) -> str:
    text = inspect.cleandoc(kind.__doc__ or "")
    hints = typing.get_type_hints(kind, include_extras=True)
    rows = []
    for field in msgspec.structs.fields(kind):
        if field.name in skip:
            continue
        notes = _notes(hints[field.name])
        array = array_fields(kind).get(field.name)
        if array is not None:
            names, shape = array
            form = f"array {' or '.join(names)} ({', '.join('*' if size == 'any' else str(size) for size in shape)})"
            notes = [note for note in notes if not note.startswith(names[0])]
        else:
            form = _form(hints[field.name])
        notes.sort(key=lambda note: note.startswith(_LIMIT_WORDS))  # what it means, then its limits
        rows.append((f"`{field.name}`", form + _nullable(hints[field.name]), _default(field), "; ".join(notes)))
    table = "\n" + _table(("field", "type", "default", "meaning, limits"), rows) if rows else ""
    return f"### {title}\n\n{text}\n{table}"


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.default_factory is not msgspec.NODEFAULT:
        value = field.default_factory()
    elif field.default is not msgspec.NODEFAULT:
        value = field.default
    else:
        return "required"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and value:
        return f'"{value}"'
    return "empty" if value in ("", b"", {}) else str(value)


def _nullable(hint: object) -> str:
    return " or null" if type(None) in typing.get_args(_bare(hint)) else ""


def _bare(hint: object) -> object:
    return typing.get_args(hint)[0] if hasattr(hint, "__metadata__") else hint


def _form(hint: object) -> str:
    """Return a type in words."""
    bare = _bare(hint)
    names: dict[object, str] = {int: "integer", float: "float", str: "text", bytes: "bytes", bool: "boolean"}
    if bare in names:
        return names[bare]
    arguments = [argument for argument in typing.get_args(bare) if argument is not type(None)]
    origin = typing.get_origin(bare)
    if origin is dict:
        return f"map of text to {_form(arguments[1])}"
    if origin is list:
        return f"list of {_form(arguments[0])}"
    if arguments:
        return " or ".join(_form(argument) for argument in arguments)
    return f"map, see {bare.__name__}" if isinstance(bare, type) else str(bare)


def _notes(hint: object) -> list[str]:
    """Return limits and descriptions of a type and of what it holds, outermost first."""
    found: list[str] = []
    for meta in getattr(hint, "__metadata__", ()):
        if isinstance(meta, msgspec.Meta):
            found += _limits(meta)
    if typing.get_origin(_bare(hint)) not in (dict, list):
        for part in typing.get_args(_bare(hint)):
            found += [note for note in _notes(part) if note not in found]
    return found


def _limits(meta: msgspec.Meta) -> list[str]:
    words = {
        "ge": "at least {}",
        "gt": "above {}",
        "le": "at most {}",
        "min_length": "length at least {}",
        "max_length": "length at most {}",
        "pattern": "matches `{}`",
    }
    found = [meta.description] if meta.description else []
    for name, text in words.items():
        limit = getattr(meta, name)
        if limit is not None and not (isinstance(limit, int) and abs(limit) >= 2**63 - 1):
            found.append(text.format(limit))
    return found


def _packets() -> str:
    steps = "; ".join(
        f"level {level}: {spread:g} octaves, {regression:g}, {mean:g}"
        for level, (spread, regression, mean) in enumerate(mirror_values.STEPS)
    )
    records = _table(
        ("type", "record", "fields"),
        [
            (
                str(mirror.ROSTER),
                "roster",
                f"number {mirror.REVISION_BITS} bits; components gamma; first rank gamma; entries gamma; id width "
                f"{mirror.WIDTH_BITS}; count code {mirror_bits.COUNT_BITS} of the first entry; for each entry its "
                "id and, from the second on, gamma(zigzag(change of the count code))",
            ),
            (
                str(mirror.SEGMENT),
                "segment",
                f"width of key {mirror.WIDTH_BITS}; key = id + 1, 0 is the prior; revision {mirror.REVISION_BITS}; is "
                f"new 1; level {mirror.LEVEL_BITS}; has count 1, then count code {mirror_bits.COUNT_BITS}; is whole 1, "
                "else first integer and number of integers, as many bits each as their total number has; Rice "
                f"parameters {mirror_bits.PARAMETER_BITS} each for spread, regression (full only) and mean; integers",
            ),
            (str(mirror.SCALARS), "prior", "degrees of freedom, concentration, strength: three IEEE floats of 32 bits"),
        ],
    )
    models = ", ".join(f"{number} {name}" for number, name in enumerate(MODELS))
    return f"""## Packet layout of the model mirror

On thin links a model travels as packets of {mirror.MIN_PACKET_BYTES} to {mirror.MAX_PACKET_BYTES} bytes
(transport/mirror/vehicle.py). Bits are counted from the most significant of the first byte. Head: version 3 bits
({mirror.VERSION}), model {mirror.MODEL_BITS[mirror.VERSION]} ({models}), full covariance 1, dimensions less one 7,
incarnation 6, model epoch {mirror.EPOCH_BITS} (modulo). Records follow, each beginning with {mirror.TYPE_BITS} bits of
type, until type {mirror.END} or fewer than 8 bits are left. Version 1 is read as well: its model has 1 bit.

`gamma` is Elias's gamma code of the number plus one. `zigzag` maps 0, -1, 1, -2 ... to 0, 1, 2, 3 ... A count's code c
stands for 2^(c / {mirror_bits.COUNT_STEPS} {mirror_bits.COUNT_LOW:+g}).

{records}
An integer is zigzag, then Rice: the quotient by 2^parameter in ones and a zero, then the remainder;
{mirror_bits.ESCAPE} ones without a zero are followed by the value in {mirror_bits.RAW_BITS} bits.

The integers of a component, row by row (dimension i = 0, 1, ...): the change of log2 s_i; with full covariance the
change of W_ij for j < i in units of 1 / sigma_j; the change of the mean in units of z. W is lower triangular with
1 / s_i on its diagonal, and z = W (x - m) is white under the component; sigma_j is the component's standard deviation
in dimension j as known so far. Changes are from the revision before; a new component's from zero mean, zero W and, for
log2 s_i, from the row before (0 at first). m and (W'W)^-1 are the
posterior mean and posterior scale over degrees of freedom: subtract the prior to get the data's moments
(transport/mirror/model.py).

Steps of spread, regression and mean: {steps}.
"""
