"""Writes what this version's model mirror sends for two made-up mixtures: `python tests/golden/make_mirror.py`.

The folder is that of the wire's version (mirror_v2, ...). Folders of older versions are never made again: they are
what old vehicles send and old recordings hold.
"""

import pathlib
import struct
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "helpers" / "transport"))

import msgspec
from mirror_models import model_message

from stillwatch.transport.mirror.vehicle import VERSION, ModelEncoder

BUDGET = 120  # bytes of a packet
INCARNATION = 5
N_COMPONENTS, N_DIMS = 6, 4


def mixtures():
    """Return the mixtures by the name of their file: means and spreads of plain fractions, made without chance."""
    k, d = np.arange(N_COMPONENTS)[:, None], np.arange(N_DIMS)[None, :]
    counts = 4000.0 / 2.0 ** np.arange(N_COMPONENTS)
    means = (k - 2.5) * (1.0 + 0.25 * d) + 0.125 * k * d
    variances = 0.5 + 0.25 * k + 0.125 * d
    tril = np.tril_indices(N_DIMS)
    full = np.array([np.diag(row) + 0.1 * np.ones((N_DIMS, N_DIMS)) for row in variances])[:, tril[0], tril[1]]
    prior = np.full(N_DIMS, 0.1)
    ids = 3 * np.arange(N_COMPONENTS) + 5
    diagonal = model_message(ids, counts, means, variances, np.zeros(N_DIMS), prior, False, 7)
    correlated = model_message(ids, counts, means, full, np.zeros(N_DIMS), np.diag(prior)[tril], True, 9)
    named = {name: msgspec.structs.replace(correlated, which=name) for name in ("scenes", "topics")}
    return {"patches": diagonal, **named}


def packets_of(model):
    """Return all packets of a model, as the encoder makes them for a link that loses none."""
    encoder, packets = ModelEncoder(INCARNATION), []
    encoder.update(model)
    while (packet := encoder.next_packet(BUDGET)) is not None:
        packets.append(packet[1])
        encoder.acknowledge(packet[0])
    return packets


def read(path):
    """Return the packets of a file: each after its length in two bytes, big-endian."""
    data, packets = path.read_bytes(), []
    while data:
        (size,) = struct.unpack_from(">H", data)
        packets.append(data[2 : 2 + size])
        data = data[2 + size :]
    return packets


def main():
    folder = pathlib.Path(__file__).parent / f"mirror_v{VERSION}"
    folder.mkdir(exist_ok=True)
    for name, model in mixtures().items():
        packets = packets_of(model)
        (folder / f"{name}.bin").write_bytes(b"".join(struct.pack(">H", len(p)) + p for p in packets))
        print(folder.name, name, [len(packet) for packet in packets])


if __name__ == "__main__":
    main()
