"""Frozen linear encoders of patch and frame descriptors: PCA or a seeded random projection, and their files.

Called by agent/features/extractor.py and tools/encoders/fit.py. A projection never
changes once made; it must not learn.
"""

import dataclasses
import hashlib
import json
import os
import struct

import numpy as np

from stillwatch.base import Array, SnapshotError, State, check_arrays, state_hash

MAGIC = b"SWENC\r\n\x1a"  # a text-mode copy breaks it, as PNG's does
VERSION = 1
MAX_FILE_BYTES = 16_000_000
WHITEN_FLOOR = 1e-3  # of the largest variance: directions the samples never moved in are not blown up


@dataclasses.dataclass(frozen=True, slots=True)
class Projection:
    """x -> x @ basis + offset.

    Attributes
    ----------
    basis : ndarray of shape (n_raw, n_dims), float32, C order, read only
    offset : ndarray of shape (n_dims,), float32, read only
    """

    basis: np.ndarray
    offset: np.ndarray

    def apply(self, raw: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Encode rows of raw descriptors, (n, n_raw) float32, into `out`, (n, n_dims) float32; return it."""
        np.matmul(raw, self.basis, out=out)
        out += self.offset
        return out


def projection_of(basis: np.ndarray, offset: np.ndarray) -> Projection:
    """Return a projection of these arrays, its own copies where they are not float32 in C order."""
    basis, offset = np.ascontiguousarray(basis, np.float32), np.ascontiguousarray(offset, np.float32)
    basis.setflags(write=False)
    offset.setflags(write=False)
    return Projection(basis, offset)


def fit_pca(samples: np.ndarray, n_dims: int, whiten: bool = False) -> Projection:
    """Return the projection on the `n_dims` directions of most variance, the largest first.

    Parameters
    ----------
    samples : ndarray of shape (n, n_raw), finite, n >= 1; fewer samples than dimensions are allowed
    n_dims : int, at most n_raw
    whiten : bool
        Divide by the standard deviation, its square floored at WHITEN_FLOOR of the largest.

    Notes
    -----
    numpy's eigh of the float64 covariance, or of the samples' Gram matrix where they are fewer than the
    dimensions; in each direction the entry of largest size is positive, so that the same samples give the same
    bits. Directions that the samples do not span are filled by fixed random ones, orthogonal to them.
    """
    samples = np.asarray(samples, np.float64)
    mean = samples.mean(axis=0)
    centred = samples - mean
    n, n_raw = samples.shape
    if n < n_raw:
        values, left = np.linalg.eigh(centred @ centred.T / n)
        spanned = values[::-1] > 1e-10 * max(values[-1], 0.0)
        values, basis = values[::-1][spanned], centred.T @ left[:, ::-1][:, spanned]
        basis = _complete(basis / np.linalg.norm(basis, axis=0), n_dims)[:, :n_dims]
        values = np.pad(values, (0, max(n_dims - len(values), 0)))[:n_dims]
    else:
        values, vectors = np.linalg.eigh(centred.T @ centred / n)
        values, basis = values[::-1][:n_dims], vectors[:, ::-1][:, :n_dims]
    largest = np.abs(basis).argmax(axis=0)
    basis = basis * np.where(basis[largest, np.arange(basis.shape[1])] < 0, -1.0, 1.0)
    if whiten:
        largest_variance = values[0] if values[0] > 0 else 1.0  # of samples that are all equal
        basis = basis / np.sqrt(np.maximum(values, WHITEN_FLOOR * largest_variance))
    return projection_of(basis, -mean @ basis)


def _complete(basis: np.ndarray, n_dims: int) -> np.ndarray:
    """Append fixed random directions, orthogonal to the basis and to each other, until there are n_dims."""
    missing = n_dims - basis.shape[1]
    if missing <= 0:
        return basis
    extra = np.random.default_rng(basis.shape[0]).standard_normal((basis.shape[0], missing))
    for _ in range(2):  # once leaves rounding errors of the size of what was taken out
        extra, _ = np.linalg.qr(extra - basis @ (basis.T @ extra))
    return np.hstack([basis, extra])


def random_projection(n_raw: int, n_dims: int, seed: int, mean: np.ndarray | None = None) -> Projection:
    """Return a Gaussian projection that keeps distances on average, fixed by the seed; `mean` (n_raw,) goes to 0.

    Johnson and Lindenstrauss 1984; here with variance 1 / n_dims.
    """
    basis = np.random.default_rng([seed, n_raw, n_dims]).standard_normal((n_raw, n_dims)) / np.sqrt(n_dims)
    return projection_of(basis, np.zeros(n_dims) if mean is None else -np.asarray(mean, np.float64) @ basis)


def fit_projection(samples: np.ndarray, n_dims: int, kind: str, whiten: bool, seed: int) -> Projection:
    """Return the projection of a kind for these samples: their PCA, or a random one around their mean."""
    if kind == "pca":
        return fit_pca(samples, n_dims, whiten)
    return random_projection(samples.shape[1], n_dims, seed, samples.mean(axis=0, dtype=np.float64))


@dataclasses.dataclass(frozen=True, slots=True)
class Encoder:
    """The two projections of one agent and what they belong to.

    `settings` is everything that the meaning of a raw descriptor depends on; an encoder is refused where it differs.
    """

    patch: Projection
    frame: Projection
    settings: dict[str, object]
    kind: str  # of both, for people: "pca+random"

    def state(self) -> State:
        return {
            "patch_basis": self.patch.basis,
            "patch_offset": self.patch.offset,
            "frame_basis": self.frame.basis,
            "frame_offset": self.frame.offset,
        }

    @property
    def hash(self) -> str:
        """16 hex digits over both projections."""
        return state_hash(self.state())


def encoder_from_state(state: State, settings: dict[str, object], kind: str, where: str) -> Encoder:
    """Return the encoder of these four arrays; SnapshotError where one is absent, misshapen,
    not finite or one too many."""
    vector, matrix = Array(np.float32, (None,)), Array(np.float32, (None, None))
    wanted = {"patch_basis": matrix, "patch_offset": vector, "frame_basis": matrix, "frame_offset": vector}
    check_arrays(state, wanted, where)
    for part in ("patch", "frame"):
        if state[f"{part}_basis"].shape[1] != state[f"{part}_offset"].shape[0]:
            raise SnapshotError(f"{where}: {part}_basis and {part}_offset have different widths")
    return Encoder(
        projection_of(state["patch_basis"].copy(), state["patch_offset"].copy()),
        projection_of(state["frame_basis"].copy(), state["frame_offset"].copy()),
        settings,
        kind,
    )


def check_settings(found: dict[str, object], wanted: dict[str, object], where: str) -> None:
    """Raise SnapshotError naming every setting in which an encoder differs from the config."""
    names = [name for name in sorted(wanted.keys() | found.keys()) if found.get(name) != wanted.get(name)]
    if names:
        parts = [f"{name} is {found.get(name)!r} in the encoder, {wanted.get(name)!r} in the config" for name in names]
        raise SnapshotError(f"{where}: made for other features: " + "; ".join(parts))


def save_encoder(encoder: Encoder, path: str | os.PathLike, source: str = "") -> None:
    """Write an encoder file: magic, version, header length, JSON header, arrays, SHA-256 of all before it.

    Written beside the target and renamed, so that a reader never sees half a file.
    """
    arrays = encoder.state()
    header = {
        "kind": encoder.kind,
        "hash": encoder.hash,
        "settings": encoder.settings,
        "source": source,
        "arrays": [{"name": name, "shape": list(array.shape)} for name, array in arrays.items()],
    }
    text = json.dumps(header, sort_keys=True).encode()
    body = MAGIC + struct.pack("<II", VERSION, len(text)) + text
    body += b"".join(np.ascontiguousarray(array, "<f4").tobytes() for array in arrays.values())
    partial = f"{os.fspath(path)}.partial"
    with open(partial, "wb") as file:
        file.write(body + hashlib.sha256(body).digest())
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


def load_encoder(path: str | os.PathLike) -> Encoder:
    """Read an encoder file; SnapshotError where it is absent, damaged, of another version, or not one at all."""
    where = f"encoder file {os.fspath(path)}"
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise SnapshotError(f"{where}: {error.strerror}") from None
    if len(data) > MAX_FILE_BYTES:
        raise SnapshotError(f"{where}: over {MAX_FILE_BYTES} bytes")
    if not data.startswith(MAGIC) or len(data) < len(MAGIC) + 8 + 32:
        raise SnapshotError(f"{where}: not an encoder file")
    version, header_bytes = struct.unpack_from("<II", data, len(MAGIC))
    if version != VERSION:
        raise SnapshotError(f"{where}: format version {version}, this program reads {VERSION}")
    if hashlib.sha256(data[:-32]).digest() != data[-32:]:
        raise SnapshotError(f"{where}: damaged, its checksum does not match")
    start = len(MAGIC) + 8
    return _decode(data[start : start + header_bytes], data[start + header_bytes : -32], where)


def _decode(header_text: bytes, body: bytes, where: str) -> Encoder:
    try:
        header = json.loads(header_text)
        shapes = [(str(entry["name"]), tuple(int(n) for n in entry["shape"])) for entry in header["arrays"]]
        settings, kind, written_hash = dict(header["settings"]), str(header["kind"]), header["hash"]
    except (ValueError, KeyError, TypeError) as error:
        raise SnapshotError(f"{where}: header cannot be read: {error}") from None
    sizes = [int(np.prod(shape)) * 4 for _, shape in shapes]
    if any(n < 1 for _, shape in shapes for n in shape) or sum(sizes) != len(body):
        raise SnapshotError(f"{where}: {len(body)} bytes of arrays, the header says {sum(sizes)}")
    state, at = {}, 0
    for (name, shape), size in zip(shapes, sizes, strict=True):
        state[name] = np.frombuffer(body[at : at + size], "<f4").astype(np.float32).reshape(shape)
        at += size
    encoder = encoder_from_state(state, settings, kind, where)
    if encoder.hash != written_hash:
        raise SnapshotError(f"{where}: its hash is {encoder.hash}, its header says {written_hash}")
    return encoder
