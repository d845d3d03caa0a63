"""Runs whose agents fitted encoders of their own: what they all see, and what each loses by it.

Called by tools/survey/fleet.py. Codes are linear in the raw frame descriptor, so two encoders share the directions that
lie in both their spans. It must not change what a run sent.
"""

import pathlib
from dataclasses import dataclass

import numpy as np

from stillwatch.base import SnapshotError, UsageError
from stillwatch.features import Encoder, encoder_from_state, load_encoder
from stillwatch.restart import newest_state

CHECKPOINTS = "checkpoints"
# A direction is shared where the mean over the encoders of the squared cosine to their spans is this much.
LEAST_SHARED = 0.8
LEAST_DIRECTIONS = 3
# A run that would lose more of its variance than this is not merged.
MOST_LOST = 0.5
PARTS = ("patch_basis", "patch_offset", "frame_basis", "frame_offset")


@dataclass(frozen=True)
class Frames:
    """The part of an encoder that describes frames: raw @ basis + offset.

    basis : ndarray of shape (n_raw, n_dims), float64;  offset : (n_dims,), float64
    """

    basis: np.ndarray
    offset: np.ndarray


def encoder_of(folder: str) -> Encoder | None:
    """Return the encoder that a run's newest checkpoint holds, None where there is none."""
    state = newest_state(pathlib.Path(folder) / CHECKPOINTS)
    if state is None or any(f"features.{part}" not in state for part in PARTS):
        return None
    return encoder_from_state({part: state[f"features.{part}"] for part in PARTS}, {}, "", folder)


def known_encoders(folders: list[str], files: list[str]) -> dict[str, Frames]:
    """Return the encoders that are known by their hashes: of checkpoints, and of encoder files.

    Raises UsageError where a file is none.
    """
    found = [made for made in map(encoder_of, folders) if made is not None]
    try:
        found += [load_encoder(file) for file in files]
    except SnapshotError as error:
        raise UsageError(str(error)) from None
    return {
        made.hash: Frames(made.frame.basis.astype(np.float64), made.frame.offset.astype(np.float64)) for made in found
    }


class Shared:
    """The directions that several encoders share, and the way there from each one's codes.

    Attributes
    ----------
    directions : ndarray of shape (n_raw, m), float64, orthonormal
        Eigenvectors of the mean of the projections on the encoders' spans, of eigenvalue LEAST_SHARED or more.
    mean : ndarray of shape (n_raw,), float64
        The shortest raw descriptor that every encoder turns into zeros, in the least squares sense: what an encoder
        does not see of a frame is taken to be as there.
    """

    def __init__(self, encoders: list[Frames]):
        spans = [np.linalg.qr(made.basis)[0] for made in encoders]
        values, vectors = np.linalg.eigh(sum(span @ span.T for span in spans) / len(spans))
        is_kept = values[::-1] >= LEAST_SHARED
        self.directions = vectors[:, ::-1][:, is_kept]
        together = np.concatenate([made.basis for made in encoders], axis=1)
        self.mean = -np.concatenate([made.offset for made in encoders]) @ np.linalg.pinv(together)

    def project(
        self, encoder: Frames, counts: np.ndarray, means: np.ndarray, spreads: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return (means, spreads, part of the variance that is lost) of clumps in the shared directions.

        spreads : (n, d (d + 1) / 2), lower triangles, as are those returned
        """
        back = np.linalg.pinv(encoder.basis)
        turn = back @ self.directions
        moved = self.mean @ self.directions + (means - encoder.offset - self.mean @ encoder.basis) @ turn
        low, shared = np.tril_indices(means.shape[1]), np.tril_indices(turn.shape[1])
        whole = np.zeros((len(spreads), means.shape[1], means.shape[1]))
        whole[:, low[0], low[1]] = spreads
        whole[:, low[1], low[0]] = spreads
        inside = turn.T @ whole @ turn
        centred = means - counts @ means / counts.sum()
        scatter = (centred * counts[:, None]).T @ centred + np.tensordot(counts, whole, 1)
        all_of_it = float(np.trace(back.T @ scatter @ back))
        kept = float(np.trace(turn.T @ scatter @ turn))
        lost = max(1.0 - kept / all_of_it, 0.0) if all_of_it > 0.0 else 0.0
        return moved, inside[:, shared[0], shared[1]], lost
