"""One mixture component or clump in thin-link records: the first is a coarse one, each further one refines it.

Called by the agent's outlet and ground stations; transport/thin/codec.py carries the parts. It needs no model: a part
of stage 0 says count, mean and standard deviations by itself.
"""

import math
from dataclasses import dataclass

import numpy as np

from stillwatch.transport.thin.records import ComponentPart
from stillwatch.transport.wire import BitReader, BitWriter, DecodeError, EncodeError, Linear, Logarithmic

PART_BYTES = 22  # with record header and envelope 32
MAX_DIMS = 64
MAX_STAGES = 8
_COUNT = Logarithmic(1.0, 2.0**36, 10)
_SCALE = Linear(-31.0, 31.0, 6)  # log2 of the bound on all means
_SPREAD = Linear(-32.0, 31.75, 9)  # log2 of the smallest standard deviation, in eighths of an octave
_RANGES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)  # octaves that the standard deviations span
_PLANES = 15
# Order of bit planes: means first, as they decide assignments; spreads follow two planes behind.
_ORDER = [("mean", k) if kind else ("spread", k - 2) for k in range(_PLANES + 2) for kind in (1, 0)]
_ORDER = [(kind, k) for kind, k in _ORDER if 0 <= k < _PLANES]


@dataclass(frozen=True)
class Component:
    """What the parts so far say.

    Attributes
    ----------
    count : float
        Samples that it stands for.
    mean, std : ndarray of shape (n_dims,), float64
    """

    count: float
    mean: np.ndarray
    std: np.ndarray


def encode_component(
    component: int, revision: int, count: float, mean: np.ndarray, std: np.ndarray, n_stages: int = 2
) -> list[ComponentPart]:
    """Return a component's parts, coarse one first.

    Parameters
    ----------
    component, revision : int
        Its id modulo 65,536, and a number modulo 16 that changes when the component does.
    count : float
    mean, std : ndarray of shape (n_dims,)
        Finite; `std` above 0. For a full covariance: the roots of its diagonal.
    n_stages : int
        1 to 8; fewer parts come back where all bits are said.

    Raises
    ------
    EncodeError
    """
    mean, std = np.asarray(mean, np.float64), np.asarray(std, np.float64)
    n_dims = len(mean)
    if mean.shape != (n_dims,) or std.shape != mean.shape or not 1 <= n_dims <= MAX_DIMS:
        raise EncodeError(f"component with mean {mean.shape} and std {std.shape}: both (n,), n from 1 to {MAX_DIMS}")
    if not (np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all() and count > 0):
        raise EncodeError("component with a mean, standard deviation or count that is not finite or not positive")
    if not 1 <= n_stages <= MAX_STAGES:
        raise EncodeError(f"{n_stages} stages, 1 to {MAX_STAGES} are possible")
    bits = _encode_bits(n_dims, count, mean, std)
    whole = bits.to_bytes()
    pieces = [whole[i : i + PART_BYTES] for i in range(0, len(whole), PART_BYTES)][:n_stages]
    return [ComponentPart(component % 65536, revision % 16, stage, piece) for stage, piece in enumerate(pieces)]


def decode_component(parts: list[bytes]) -> Component:
    """Return what the data of stages 0, 1, ... say, as many as are there; DecodeError for what no encoder wrote."""
    bits = BitReader(b"".join(parts))
    n_dims = bits.read(6) + 1
    count = _COUNT.decode(bits.read(_COUNT.width))
    bound = 2.0 ** _SCALE.decode(bits.read(_SCALE.width))
    lowest = _SPREAD.decode(bits.read(_SPREAD.width))
    octaves = _RANGES[bits.read(3)]
    if math.isnan(count) or math.isnan(bound) or math.isnan(lowest):
        raise DecodeError("component without count, scale or spread")
    values = {"mean": np.zeros(n_dims, np.int64), "spread": np.zeros(n_dims, np.int64)}
    known = {"mean": np.zeros(n_dims), "spread": np.zeros(n_dims)}
    for kind, plane in _ORDER:
        for d in range(n_dims):
            if bits.left == 0:
                break
            values[kind][d] |= bits.read(1) << (_PLANES - 1 - plane)
            known[kind][d] = plane + 1
    # What is not said yet is taken as the middle of what is possible.
    middle = {kind: (values[kind] + np.exp2(_PLANES - known[kind]) / 2) / 2.0**_PLANES for kind in values}
    return Component(count, (2.0 * middle["mean"] - 1.0) * bound, np.exp2(lowest + octaves * middle["spread"]))


def _encode_bits(n_dims: int, count: float, mean: np.ndarray, std: np.ndarray) -> BitWriter:
    scale = min(max(math.ceil(math.log2(max(float(np.abs(mean).max()), 2.0**-31))), -31), 31)
    spread = np.log2(std)
    lowest = _SPREAD.decode(_SPREAD.encode(math.floor(float(spread.min()) * 8.0) / 8.0))
    octaves = next((i for i, octaves in enumerate(_RANGES) if float(spread.max()) - lowest < octaves), len(_RANGES) - 1)
    shares = {"mean": (mean / 2.0**scale + 1.0) / 2.0, "spread": (spread - lowest) / _RANGES[octaves]}
    levels = {kind: np.floor(share * 2.0**_PLANES) for kind, share in shares.items()}
    codes = {kind: np.clip(level, 0, 2**_PLANES - 1).astype(int).tolist() for kind, level in levels.items()}
    bits = BitWriter()
    for value, width in ((n_dims - 1, 6), (_COUNT.encode(count), 10), (_SCALE.encode(scale), 6)):
        bits.write(value, width)
    bits.write(_SPREAD.encode(lowest), _SPREAD.width)
    bits.write(octaves, 3)
    for kind, plane in _ORDER:
        for code in codes[kind]:
            bits.write(code >> (_PLANES - 1 - plane) & 1, 1)
    return bits
