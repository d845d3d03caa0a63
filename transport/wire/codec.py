"""Messages to bytes and back: one msgpack map a message, all limits checked before and after decoding.

Called by publisher, subscriber, control, outbox and recordings. It must not
trust a byte of what it decodes: anything wrong raises DecodeError, nothing else.
"""

import enum
import functools
import math
import operator
import typing
from typing import Any

import msgpack
import msgspec
import numpy as np

from stillwatch.transport.wire.arrays import ARRAY_EXT, pack_array, unpack_array
from stillwatch.transport.wire.compact import compact, expand
from stillwatch.transport.wire.errors import DecodeError, EncodeError, SchemaError
from stillwatch.transport.wire.messages import FIRST_SCHEMA, MESSAGES, SCHEMA, Message, Scores, kind_of
from stillwatch.transport.wire.topics import MAX_PAYLOAD_BYTES, TOPICS
from stillwatch.transport.wire.unfold import check_scores

MAX_TEXT_BYTES = 4096
_NO_FLOATS = frozenset({str, int, bool, type(None), bytes})
MAX_ITEMS = 1024  # of one list or map; arrays have their own form
_ANY_MESSAGE = functools.reduce(operator.or_, MESSAGES)
StructType = typing.TypeVar("StructType", bound=msgspec.Struct)


def encode(message: Message) -> bytes:
    """Return the payload of a message, checked against its own schema and its topic's size limit.

    Schema 2 leaves out what has its default and is compacted (compact.py); a message that says that it is of schema 1
    has the form that stations of then read.

    Raises
    ------
    EncodeError
        A field is out of range, not finite, of a wrong shape, or the payload is too long.
    """
    kind = kind_of(message)
    fields = {"kind": kind, **_plain(message)}
    if message.schema >= 2:
        defaults = _defaults(type(message))
        fields = {name: value for name, value in fields.items() if not _is_default(value, defaults, name)}
    payload = _pack(fields)
    try:
        checked = msgspec.convert(fields, type(message), builtin_types=(bytes,))
        _check(checked, kind)
    except (msgspec.ValidationError, DecodeError) as error:
        raise EncodeError(f"{kind} message: {error}") from None
    limit = TOPICS[kind].max_bytes
    if len(payload) > limit:
        raise EncodeError(f"{kind} message of {len(payload)} bytes is longer than {limit}")
    return compact(payload) if message.schema >= 2 else payload


def decode(payload: bytes) -> Message:
    """Return the message in `payload`; fields unknown to this version are ignored.

    Raises
    ------
    SchemaError (a DecodeError)
        The message is of another major schema version: not damage, but nothing we can read.
    DecodeError
        Anything else: too long, not msgpack, a field missing, of a wrong type, range or shape.
    """
    payload = expand(payload, MAX_PAYLOAD_BYTES)
    fields = _unpack(payload, MAX_PAYLOAD_BYTES)
    schema = fields.get("schema")
    if type(schema) is not int:
        raise DecodeError("message has no integer schema version")
    if not FIRST_SCHEMA <= schema <= SCHEMA:
        raise SchemaError(f"message of schema {schema} is unknown: this version reads {FIRST_SCHEMA} to {SCHEMA}")
    kind = fields.get("kind")
    if not isinstance(kind, str) or kind not in TOPICS:
        raise DecodeError(f"message kind {_shown(kind)} is unknown")
    if len(payload) > TOPICS[kind].max_bytes:
        raise DecodeError(f"{kind} message of {len(payload)} bytes is longer than {TOPICS[kind].max_bytes}")
    message: Message = _convert(fields, _ANY_MESSAGE)
    _check(message, kind)
    if isinstance(message, Scores):
        check_scores(message)
    return message


def encode_struct(value: msgspec.Struct, max_bytes: int) -> bytes:
    """Return a checked struct that is no published message (commands, replies) as one msgpack map."""
    fields = _plain(value)
    payload = _pack(fields)
    try:
        _check(msgspec.convert(fields, type(value), builtin_types=(bytes,)), type(value).__name__)
    except (msgspec.ValidationError, DecodeError) as error:
        raise EncodeError(f"{type(value).__name__}: {error}") from None
    if len(payload) > max_bytes:
        raise EncodeError(f"{type(value).__name__} of {len(payload)} bytes is longer than {max_bytes}")
    return payload


def decode_struct(payload: bytes, kind: type[StructType], max_bytes: int) -> StructType:
    """Return the struct of type `kind` in `payload`; raise DecodeError for anything else."""
    value: StructType = _convert(_unpack(payload, max_bytes), kind)
    _check(value, kind.__name__)
    return value


def _is_default(value: Any, defaults: dict[str, Any], name: str) -> bool:
    return name in defaults and not isinstance(value, np.ndarray) and bool(value == defaults[name])


@functools.cache
def _defaults(kind: type[Message]) -> dict[str, Any]:
    """Return the defaults that a field of this type may be left out for; arrays have none but null."""
    found = {}
    for field in msgspec.structs.fields(kind):
        if field.default is not msgspec.NODEFAULT and field.name != "schema":
            found[field.name] = field.default
        elif field.default_factory is not msgspec.NODEFAULT:
            found[field.name] = field.default_factory()
    return found


def _pack(fields: dict[str, Any]) -> bytes:
    try:
        packed: bytes = msgpack.packb(fields, default=_pack_other, use_bin_type=True)
    except (TypeError, ValueError, OverflowError) as error:
        raise EncodeError(f"{fields.get('kind', 'value')}: {error}") from None
    return packed


def _pack_other(value: Any) -> msgpack.ExtType:
    if isinstance(value, np.ndarray):
        return msgpack.ExtType(ARRAY_EXT, pack_array(value))
    raise TypeError(f"{type(value).__name__} has no form on the wire")


def _plain(value: Any) -> Any:
    """Return structs as dicts, enums as their values, numpy scalars as Python's, recursively; arrays stay."""
    if isinstance(value, msgspec.Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, enum.Enum):
        return value.value
    return value.item() if isinstance(value, np.generic) else value


def _unpack(payload: bytes, limit: int) -> dict[str, Any]:
    if len(payload) > limit:
        raise DecodeError(f"payload of {len(payload)} bytes is longer than {limit}")
    size = len(payload)
    try:
        fields = msgpack.unpackb(
            payload,
            raw=False,
            strict_map_key=True,
            ext_hook=_unpack_ext,
            object_pairs_hook=_unique,
            max_str_len=min(size, MAX_TEXT_BYTES),
            max_bin_len=size,
            max_ext_len=size,
            max_array_len=MAX_ITEMS,
            max_map_len=MAX_ITEMS,
        )
    except (ValueError, TypeError, OverflowError, RecursionError) as error:  # msgpack's own are ValueErrors
        raise DecodeError(f"payload is not a message: {_shown(error)}") from None
    if not isinstance(fields, dict):
        raise DecodeError(f"payload is a {type(fields).__name__}, not a map")
    return fields


def _unpack_ext(code: int, data: bytes) -> Any:
    if code == ARRAY_EXT:
        return unpack_array(data)
    return msgpack.ExtType(code, data)  # a later version's: fine in a field that we ignore


def _unique(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise DecodeError("map has the same key twice")
    return fields


def _convert(fields: dict[str, Any], kind: Any) -> Any:
    try:
        return msgspec.convert(fields, kind, builtin_types=(bytes,))
    except (msgspec.ValidationError, RecursionError) as error:
        raise DecodeError(_shown(error)) from None


def _shown(value: Any) -> str:
    """Return text about a peer's value, short and printable: it may end in a log."""
    return ascii(str(value)[:120])[1:-1]


@functools.cache
def array_fields(kind: type[msgspec.Struct]) -> dict[str, tuple[tuple[str, ...], tuple[str | int, ...]]]:
    """Return the dtypes and shape that `array_of` states for each array field of a struct type."""
    found = {}
    for name, hint in typing.get_type_hints(kind, include_extras=True).items():
        for meta in _metas(hint):
            if meta.extra and "array" in meta.extra:
                found[name] = meta.extra["array"]
    return found


def _metas(hint: Any) -> list[msgspec.Meta]:
    own = [meta for meta in getattr(hint, "__metadata__", ()) if isinstance(meta, msgspec.Meta)]
    inner = [meta for part in typing.get_args(hint) for meta in _metas(part)]
    return own + inner


def _check(value: msgspec.Struct, what: str) -> None:
    """Raise DecodeError unless every number is finite and every array has its dtype and shape."""
    if not _is_finite(value):
        _refuse_infinite(value, what)
    sizes: dict[str, tuple[int, str]] = {}
    for name, (dtypes, shape) in array_fields(type(value)).items():
        array = getattr(value, name)
        if array is None:
            continue
        if (dtype := _name_of(array.dtype)) not in dtypes:
            raise DecodeError(f"{what}.{name}: dtype {dtype} is not {' or '.join(dtypes)}")
        if array.ndim != len(shape):
            raise DecodeError(f"{what}.{name}: {array.ndim} dimensions, not {len(shape)}")
        for size, wanted in zip(array.shape, shape, strict=True):
            if isinstance(wanted, str) and wanted != "any":
                known, first = sizes.setdefault(wanted, (size, name))
                if size != known:
                    raise DecodeError(f"{what}.{name}: size {size} differs from the {known} of {first}")
            elif isinstance(wanted, int) and size != wanted:
                raise DecodeError(f"{what}.{name}: size {size} is not {wanted}")


@functools.lru_cache(maxsize=64)
def _name_of(dtype: np.dtype) -> str:
    return str(dtype.name)  # numpy puts it together anew for each who asks


def _is_finite(value: Any) -> bool:
    """Whether every number in it is finite; each message is asked, so that nothing is named before one is not."""
    kind = type(value)
    if kind is float:
        return math.isfinite(value)
    if kind in _NO_FLOATS:
        return True
    if isinstance(value, np.ndarray):
        return value.dtype.kind != "f" or bool(np.isfinite(value).all())
    if isinstance(value, msgspec.Struct):
        return all(_is_finite(getattr(value, name)) for name in value.__struct_fields__)
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _refuse_infinite(value: Any, where: str) -> None:
    """Raise DecodeError naming the number that is not finite."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise DecodeError(f"{where}: {value} is not finite")
    elif isinstance(value, np.ndarray):
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            raise DecodeError(f"{where}: array has a value that is not finite")
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            _refuse_infinite(getattr(value, name), f"{where}.{name}")
    elif isinstance(value, dict):
        for key, item in value.items():
            _refuse_infinite(item, f"{where}.{key}")
    elif isinstance(value, list | tuple):
        for item in value:
            _refuse_infinite(item, where)
