"""What a message is: kinds, topics, fields, bytes. WIRE.md is made from it.

Owns: topics, messages, the codec and its limits, transport's errors, names that both ends share.
In: messages. Out: bytes, and back.
Imports: nothing of ours.
"""

from stillwatch.transport.wire.arrays import ARRAY_EXT, DTYPES, MAX_NDIM
from stillwatch.transport.wire.bitpack import BitReader, BitWriter, Linear, Logarithmic
from stillwatch.transport.wire.clumps import clump_arrays, clump_fields, largest_clumps
from stillwatch.transport.wire.codec import (
    MAX_ITEMS,
    MAX_TEXT_BYTES,
    array_fields,
    decode,
    decode_struct,
    encode,
    encode_struct,
)
from stillwatch.transport.wire.compact import DICTIONARY
from stillwatch.transport.wire.errors import (
    DecodeError,
    EncodeError,
    LinkError,
    LogError,
    SchemaError,
    SecurityError,
    TransportError,
)
from stillwatch.transport.wire.messages import (
    FIRST_SCHEMA,
    MESSAGES,
    SCHEMA,
    Alert,
    Clumps,
    Count,
    Encoder,
    Exemplar,
    Headers,
    Index,
    LogNotice,
    Message,
    Model,
    Name,
    Position,
    Score,
    Scores,
    SourceChange,
    Status,
    Summary,
    Text,
    kind_of,
)
from stillwatch.transport.wire.names import MODEL_NUMBERS, MODEL_PATTERN, MODELS, EventKind
from stillwatch.transport.wire.topics import MAX_PAYLOAD_BYTES, TOPICS, key_of, topic_bytes
from stillwatch.transport.wire.unfold import Unfolder, changed_model, model_change, scores_message

__all__ = [
    "ARRAY_EXT",
    "Alert",
    "BitReader",
    "BitWriter",
    "Clumps",
    "Count",
    "DICTIONARY",
    "DTYPES",
    "DecodeError",
    "EncodeError",
    "EventKind",
    "Encoder",
    "Exemplar",
    "FIRST_SCHEMA",
    "Headers",
    "Index",
    "Linear",
    "LinkError",
    "LogError",
    "LogNotice",
    "Logarithmic",
    "MAX_ITEMS",
    "MAX_NDIM",
    "MAX_PAYLOAD_BYTES",
    "MAX_TEXT_BYTES",
    "MESSAGES",
    "MODELS",
    "MODEL_NUMBERS",
    "MODEL_PATTERN",
    "Message",
    "Model",
    "Name",
    "Position",
    "SCHEMA",
    "SchemaError",
    "Score",
    "Scores",
    "SecurityError",
    "SourceChange",
    "Status",
    "Summary",
    "TOPICS",
    "Text",
    "TransportError",
    "Unfolder",
    "array_fields",
    "changed_model",
    "clump_arrays",
    "clump_fields",
    "decode",
    "decode_struct",
    "encode",
    "encode_struct",
    "key_of",
    "kind_of",
    "largest_clumps",
    "model_change",
    "scores_message",
    "topic_bytes",
]
