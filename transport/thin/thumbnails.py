"""Thumbnails as embedded code: every prefix of the bytes is a picture, and each byte makes it better.

Called by transport/thin/link.py and report tools. CDF 9/7 wavelet [1]_ and set partitioning in hierarchical trees
[2]_, over luminance and half-size chrominance together. It must not depend on anything but its input: no state.

References
----------
.. [1] M. Antonini et al., Image coding using wavelet transform, IEEE Trans. Image Processing 1(2), 1992, 205-220.
.. [2] A. Said and W. A. Pearlman, A new, fast, and efficient image codec based on set partitioning in hierarchical
   trees, IEEE Trans. Circuits and Systems for Video Technology 6(3), 1996, 243-250.
"""

import functools
from typing import NamedTuple, Protocol

import cv2
import numpy as np

from stillwatch.transport.wire import BitReader, BitWriter, DecodeError, EncodeError

HEADER_BYTES = 3  # width - 1: 8 bits, height - 1: 8, colour: 1, top bit plane: 4, zero: 3
MAX_SIDE_PX = 256
MIN_SIDE_PX = 8
MAX_BYTES = 8000
_MIDDLE = 0.42  # where in its interval a coefficient is put: below the middle, as small ones are more frequent
_LIFTING = (-1.586134342059924, -0.052980118572961, 0.882911075530934, 0.443506852043971)
_GAIN = 1.149604398860241  # makes the 9/7 pair nearly orthonormal, so that bit planes mean the same in each band


class _Plane(NamedTuple):
    """One colour plane inside the flat array of all coefficients, padded to whole trees."""

    start: int
    height: int
    width: int
    padded_height: int
    padded_width: int
    levels: int


class _Trees(NamedTuple):
    """The planes of one picture size and which coefficient descends from which."""

    planes: tuple[_Plane, ...]
    n_coefficients: int
    roots: list[int]
    children: list[tuple[int, ...]]


class _Bits(Protocol):
    """Either end of the code: the encoder writes each decision that it returns, the decoder reads it."""

    def coefficient(self, node: int, plane: int) -> int: ...

    def descendants(self, node: int, plane: int) -> int: ...

    def grandchildren(self, node: int, plane: int) -> int: ...

    def refine(self, node: int, plane: int) -> None: ...


class _EndOfBits(Exception):
    """The byte budget is used up, or the prefix ends: both ends stop at the same decision."""


def encode_thumbnail(image: np.ndarray, *, max_side_px: int = 128, max_bytes: int = 1500) -> bytes:
    """Return the embedded code of a picture, scaled down so that its longer side is at most `max_side_px`.

    Parameters
    ----------
    image : ndarray of shape (height, width) or (height, width, 3), uint8
        Grey or BGR.
    max_side_px : int
        8 to 256.
    max_bytes : int
        The code stops here; a flat picture needs less.

    Raises
    ------
    EncodeError
        Another shape or dtype, or limits outside the ranges above.
    """
    is_colour = image.ndim == 3
    if image.dtype != np.uint8 or image.ndim not in (2, 3) or (is_colour and image.shape[2] != 3) or not image.size:
        raise EncodeError(f"a thumbnail needs a grey or BGR uint8 picture, not {image.dtype} {image.shape}")
    if not MIN_SIDE_PX <= max_side_px <= MAX_SIDE_PX or not HEADER_BYTES < max_bytes <= MAX_BYTES:
        raise EncodeError(
            f"thumbnail of {max_side_px} px in {max_bytes} bytes: sides are {MIN_SIDE_PX} to {MAX_SIDE_PX} px, "
            f"codes over {HEADER_BYTES} and at most {MAX_BYTES} bytes"
        )
    small = _scale_down(image, max_side_px)
    height, width = small.shape[:2]
    trees = trees_of(width, height, is_colour)
    flat = np.concatenate([forward(part, plane) for part, plane in zip(_split(small), trees.planes, strict=True)])
    magnitudes = np.abs(flat).astype(np.int64)
    top = max(int(magnitudes.max()).bit_length() - 1, 0)
    head = BitWriter()
    for value, bits in ((width - 1, 8), (height - 1, 8), (is_colour, 1), (top, 4), (0, 3)):
        head.write(int(value), bits)
    encoder = _Encoder(magnitudes, flat < 0, trees, 8 * (max_bytes - HEADER_BYTES))
    _partition(trees, top, encoder)
    return head.to_bytes() + encoder.to_bytes()


def decode_thumbnail(data: bytes) -> np.ndarray:
    """Return the picture that these bytes describe, as far as they go.

    Returns
    -------
    ndarray of shape (height, width) or (height, width, 3), uint8
        Grey or BGR, at the size that the encoder chose; mid-grey where the prefix says nothing yet.

    Raises
    ------
    DecodeError
        Fewer bytes than the header has, more than a thumbnail may have, or an impossible header.
    """
    if not HEADER_BYTES <= len(data) <= MAX_BYTES:
        raise DecodeError(f"thumbnail of {len(data)} bytes, {HEADER_BYTES} to {MAX_BYTES} can be read")
    head = BitReader(data[:HEADER_BYTES])
    width, height = head.read(8) + 1, head.read(8) + 1
    is_colour, top = bool(head.read(1)), head.read(4)
    if head.read(3):
        raise DecodeError("thumbnail header: reserved bits are set")
    trees = trees_of(width, height, is_colour)
    decoder = _Decoder(data[HEADER_BYTES:], trees.n_coefficients)
    _partition(trees, top, decoder)
    flat = decoder.coefficients()
    return _join([inverse(flat, plane) for plane in trees.planes])


def recode_thumbnail(jpeg: bytes, max_side_px: int, max_bytes: int) -> bytes:
    """Return the embedded code of a JPEG thumbnail, or nothing where it cannot be decoded."""
    image = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR) if jpeg else None
    if image is None:
        return b""
    return encode_thumbnail(image, max_side_px=max_side_px, max_bytes=max(max_bytes, HEADER_BYTES + 1))


def _scale_down(image: np.ndarray, max_side_px: int) -> np.ndarray:
    height, width = image.shape[:2]
    scale = min(1.0, max_side_px / max(height, width))
    size = (max(round(width * scale), 1), max(round(height * scale), 1))
    return image if scale == 1.0 else cv2.resize(image, size, interpolation=cv2.INTER_AREA)


def _split(image: np.ndarray) -> list[np.ndarray]:
    """Return the planes to code, around zero: luminance, and for colour two chrominances of half the size."""
    if image.ndim == 2:
        return [image.astype(np.float32) - 128.0]
    whole = cv2.cvtColor(image, cv2.COLOR_BGR2YCrCb).astype(np.float32) - 128.0
    height, width = image.shape[:2]
    half = cv2.resize(whole, ((width + 1) // 2, (height + 1) // 2), interpolation=cv2.INTER_AREA)
    return [whole[:, :, 0], half[:, :, 1], half[:, :, 2]]


def _join(planes: list[np.ndarray]) -> np.ndarray:
    luminance = planes[0]
    height, width = luminance.shape
    chrominance = [cv2.resize(plane, (width, height), interpolation=cv2.INTER_LINEAR) for plane in planes[1:]]
    levels = np.clip(np.rint(np.stack([luminance, *chrominance], axis=-1) + 128.0), 0, 255).astype(np.uint8)
    return cv2.cvtColor(levels, cv2.COLOR_YCrCb2BGR) if chrominance else np.ascontiguousarray(levels[:, :, 0])


def forward(plane: np.ndarray, layout: _Plane) -> np.ndarray:
    """Return the plane's wavelet coefficients in Mallat's order, flat."""
    pad = ((0, layout.padded_height - layout.height), (0, layout.padded_width - layout.width))
    work = np.pad(plane.astype(np.float64), pad, mode="edge")
    for level in range(layout.levels):
        height, width = layout.padded_height >> level, layout.padded_width >> level
        part = work[:height, :width]
        work[:height, :width] = _analyse(_analyse(part).T).T
    return work.ravel()


def inverse(flat: np.ndarray, layout: _Plane) -> np.ndarray:
    n = layout.padded_height * layout.padded_width
    work = flat[layout.start : layout.start + n].reshape(layout.padded_height, layout.padded_width).copy()
    for level in reversed(range(layout.levels)):
        height, width = layout.padded_height >> level, layout.padded_width >> level
        part = work[:height, :width]
        work[:height, :width] = _synthesise(_synthesise(part.T).T)
    return work[: layout.height, : layout.width].astype(np.float32)


def _analyse(rows: np.ndarray) -> np.ndarray:
    """Filter along the rows (even length): low half, then high half; mirrored at both ends."""
    low, high = rows[:, 0::2].copy(), rows[:, 1::2].copy()
    for i, weight in enumerate(_LIFTING):
        if i % 2 == 0:
            high += weight * (low + np.concatenate([low[:, 1:], low[:, -1:]], axis=1))
        else:
            low += weight * (high + np.concatenate([high[:, :1], high[:, :-1]], axis=1))
    return np.concatenate([low * _GAIN, high / _GAIN], axis=1)


def _synthesise(rows: np.ndarray) -> np.ndarray:
    half = rows.shape[1] // 2
    low, high = rows[:, :half] / _GAIN, rows[:, half:] * _GAIN
    for i in reversed(range(len(_LIFTING))):
        if i % 2 == 0:
            high -= _LIFTING[i] * (low + np.concatenate([low[:, 1:], low[:, -1:]], axis=1))
        else:
            low -= _LIFTING[i] * (high + np.concatenate([high[:, :1], high[:, :-1]], axis=1))
    out = np.empty_like(rows)
    out[:, 0::2], out[:, 1::2] = low, high
    return out


@functools.lru_cache(maxsize=4)
def trees_of(width: int, height: int, is_colour: bool) -> _Trees:
    """Return the planes and trees of a picture size; at most four sizes are remembered."""
    sizes = [(height, width)] + [((height + 1) // 2, (width + 1) // 2)] * (2 if is_colour else 0)
    planes: list[_Plane] = []
    roots: list[int] = []
    children: list[tuple[int, ...]] = []
    for rows, columns in sizes:
        levels = max(min((min(rows, columns) // 4).bit_length(), 5), 1)
        unit = 1 << levels
        plane = _Plane(len(children), rows, columns, -(-rows // unit) * unit, -(-columns // unit) * unit, levels)
        planes.append(plane)
        coarsest = _nodes(plane)[: plane.padded_height >> levels, : plane.padded_width >> levels]
        roots += coarsest.ravel().tolist()
        children += _children(plane)
    return _Trees(tuple(planes), len(children), roots, children)


def _nodes(plane: _Plane) -> np.ndarray:
    n = plane.padded_height * plane.padded_width
    return np.arange(plane.start, plane.start + n).reshape(plane.padded_height, plane.padded_width)


def _children(plane: _Plane) -> list[tuple[int, ...]]:
    """Return each coefficient's children: three for the coarsest lows, four or none for the rest."""
    nodes = _nodes(plane)
    rows, columns = plane.padded_height >> plane.levels, plane.padded_width >> plane.levels
    table: list[tuple[int, ...]] = [()] * nodes.size
    fours = np.stack([nodes[0::2, 0::2], nodes[0::2, 1::2], nodes[1::2, 0::2], nodes[1::2, 1::2]], axis=-1)
    parents = nodes[: nodes.shape[0] // 2, : nodes.shape[1] // 2]
    for node, four in zip(parents.ravel(), fours.reshape(-1, 4), strict=True):
        table[node - plane.start] = tuple(four.tolist())
    right, below = nodes[:rows, columns : 2 * columns], nodes[rows : 2 * rows, :columns]
    bands = np.stack([right, below, nodes[rows : 2 * rows, columns : 2 * columns]], axis=-1)
    for node, three in zip(nodes[:rows, :columns].ravel(), bands.reshape(-1, 3), strict=True):
        table[node - plane.start] = tuple(three.tolist())
    return table


def _partition(trees: _Trees, top: int, bits: _Bits) -> None:
    """Run the sorting and refinement passes of [2]_ from the top bit plane down, until the bits end.

    Differs from the paper: each coarsest low coefficient is a root with three children, which needs no even size.
    """
    children = trees.children
    single = list(trees.roots)  # the paper's LIP: coefficients not yet significant
    sets = [(node, False) for node in trees.roots]  # LIS: (root, only grandchildren and further)
    found: list[int] = []  # LSP: significant coefficients
    try:
        for plane in range(top, -1, -1):
            known = len(found)
            single = [node for node in single if not _is_found(bits, node, plane, found)]
            kept: list[tuple[int, bool]] = []
            position = 0
            while position < len(sets):
                node, is_far = sets[position]
                position += 1
                if is_far:
                    if bits.grandchildren(node, plane):
                        sets += [(child, False) for child in children[node]]
                    else:
                        kept.append((node, True))
                elif bits.descendants(node, plane):
                    single += [child for child in children[node] if not _is_found(bits, child, plane, found)]
                    if children[children[node][0]]:
                        sets.append((node, True))
                else:
                    kept.append((node, False))
            sets = kept
            for node in found[:known]:
                bits.refine(node, plane)
    except _EndOfBits:
        return


def _is_found(bits: _Bits, node: int, plane: int, found: list[int]) -> bool:
    if bits.coefficient(node, plane):
        found.append(node)
        return True
    return False


class _Encoder:
    """Writes the decisions that the coefficients ask for."""

    def __init__(self, magnitudes: np.ndarray, negative: np.ndarray, trees: _Trees, max_bits: int):
        below, far = _largest_below(magnitudes, trees)
        self._magnitudes, self._negative = magnitudes.tolist(), negative.tolist()
        self._below, self._far = below.tolist(), far.tolist()
        self._bits = bytearray()
        self._max_bits = max_bits

    def coefficient(self, node: int, plane: int) -> int:
        """Write whether a coefficient reaches this plane, and its sign if it does."""
        bit = self._put(self._magnitudes[node] >> plane != 0)
        if bit:
            self._put(self._negative[node])
        return bit

    def descendants(self, node: int, plane: int) -> int:
        return self._put(self._below[node] >> plane != 0)

    def grandchildren(self, node: int, plane: int) -> int:
        return self._put(self._far[node] >> plane != 0)

    def refine(self, node: int, plane: int) -> None:
        self._put(self._magnitudes[node] >> plane & 1)

    def to_bytes(self) -> bytes:
        return np.packbits(np.frombuffer(bytes(self._bits), np.uint8)).tobytes()

    def _put(self, bit: int) -> int:
        if len(self._bits) >= self._max_bits:
            raise _EndOfBits
        self._bits.append(bit)
        return bit


class _Decoder:
    """Reads the decisions and collects what they say about each coefficient."""

    def __init__(self, data: bytes, n_coefficients: int):
        self._bits = np.unpackbits(np.frombuffer(data, np.uint8)).tolist()
        self._position = 0
        self._magnitudes = [0] * n_coefficients
        self._planes = [0] * n_coefficients  # the lowest plane that is known
        self._negative: set[int] = set()

    def coefficient(self, node: int, plane: int) -> int:
        if not self._take():
            return 0
        if self._take():
            self._negative.add(node)
        self._magnitudes[node] = 1 << plane
        self._planes[node] = plane
        return 1

    def descendants(self, node: int, plane: int) -> int:
        return self._take()

    def grandchildren(self, node: int, plane: int) -> int:
        return self._take()

    def refine(self, node: int, plane: int) -> None:
        self._magnitudes[node] |= self._take() << plane
        self._planes[node] = plane

    def coefficients(self) -> np.ndarray:
        """Return the values that are most likely, given what was read."""
        magnitudes = np.array(self._magnitudes, np.float64)
        values = np.where(magnitudes > 0, magnitudes + _MIDDLE * np.exp2(self._planes), 0.0)
        negative = np.fromiter(self._negative, np.int64, len(self._negative))
        values[negative] *= -1.0
        return values

    def _take(self) -> int:
        if self._position >= len(self._bits):
            raise _EndOfBits
        self._position += 1
        return self._bits[self._position - 1]


def _largest_below(magnitudes: np.ndarray, trees: _Trees) -> tuple[np.ndarray, np.ndarray]:
    """Return for each coefficient the largest magnitude among its descendants, and among those past its children."""
    below, far = np.zeros_like(magnitudes), np.zeros_like(magnitudes)
    for plane in trees.planes:
        shape = (plane.padded_height, plane.padded_width)
        span = slice(plane.start, plane.start + shape[0] * shape[1])
        own, deep, deeper = magnitudes[span].reshape(shape), below[span].reshape(shape), far[span].reshape(shape)
        for level in range(1, plane.levels):
            height, width = shape[0] >> level, shape[1] >> level
            deep[:height, :width] = _block_max(np.maximum(own, deep)[: 2 * height, : 2 * width])
        rows, columns = shape[0] >> plane.levels, shape[1] >> plane.levels
        if plane.levels > 1:
            deeper[: shape[0] // 2, : shape[1] // 2] = _block_max(deep)
        deep[:rows, :columns] = _band_max(np.maximum(own, deep), rows, columns)
        deeper[:rows, :columns] = _band_max(deep, rows, columns)
    return below, far


def _block_max(values: np.ndarray) -> np.ndarray:
    height, width = values.shape
    return values.reshape(height // 2, 2, width // 2, 2).max(axis=(1, 3))


def _band_max(values: np.ndarray, rows: int, columns: int) -> np.ndarray:
    right, below = values[:rows, columns : 2 * columns], values[rows : 2 * rows, :columns]
    return np.maximum(np.maximum(right, below), values[rows : 2 * rows, columns : 2 * columns])
