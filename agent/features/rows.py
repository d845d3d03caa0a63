"""The rows of a frame: what is scored and learnt of each patch, with the context that the kind of camera asks for.

Called by agent/pipeline/pipeline.py once an accepted frame. It must not score or remember: rows are a value that is
handed along.
"""

from dataclasses import dataclass

import cv2
import numpy as np

from stillwatch.base import CameraRule, Context, Frame
from stillwatch.features.extractor import Features

CONTEXT_DIMS = 2  # values, of either kind: rows have one width, so that models do
DARKEST = 8.0  # grey levels added before logarithms: the noise of dark pixels is no colour


@dataclass(frozen=True, slots=True)
class Rows:
    """One frame as it is scored and learnt. Arrays are the maker's or extractor's.

    They are valid for as many calls of the maker as it has sets of buffers.

    Attributes
    ----------
    patches : ndarray of shape (n, n_row_dims), float32
        Encoded patches, then their context.
    plain : ndarray of shape (n, n_patch_dims), float32, C order
        The same without context.
    valid : ndarray of shape (n,), bool
        False where masked: for no learner and no score.
    centres : ndarray of shape (n, 2), float32
        x and y in [0, 1] of width and height; row by row of the grid.
    grid_shape : tuple of int
        Rows and columns of the grid; n = rows * columns.
    colours : ndarray of shape (n, 3), float32
        Logarithms of green, of blue over green and of red over green at each patch's centre.
    frame : ndarray of shape (n_frame_dims,), float32
        The frame descriptor, encoded.
    rule : CameraRule
        By which they were made.
    ready : bool
        They mean what later rows will mean: the encoder is frozen and the kind of camera known.
    """

    patches: np.ndarray
    plain: np.ndarray
    valid: np.ndarray
    centres: np.ndarray
    grid_shape: tuple[int, int]
    colours: np.ndarray
    frame: np.ndarray
    rule: CameraRule
    ready: bool


class RowMaker:
    """Makes rows in memory allocated here, for the largest frame.

    Parameters
    ----------
    capacity_patches, n_patch_dims : int
        Of the feature extractor.
    step_px : int
        Distance of patches: the colour of a patch is the mean over such a square.
    n_sets : int
        Frames whose rows are valid at a time.

    Attributes
    ----------
    n_row_dims : int
        Width of the rows: encoded patch, then the context.
    """

    def __init__(self, capacity_patches: int, n_patch_dims: int, step_px: int, n_sets: int = 1):
        self.n_row_dims = n_patch_dims + CONTEXT_DIMS
        self._step_px = step_px
        self._patches = [np.zeros((capacity_patches, self.n_row_dims), np.float32) for _ in range(n_sets)]
        self._plain = [np.zeros((capacity_patches, n_patch_dims), np.float32) for _ in range(n_sets)]
        self._turn = 0

    def rows_of(self, frame: Frame, features: Features, rule: CameraRule) -> Rows:
        """Return the rows of a frame whose features were just extracted, by the rule of its camera."""
        n = len(features.patches)
        self._turn = (self._turn + 1) % len(self._patches)
        patches, plain = self._patches[self._turn][:n], self._plain[self._turn][:n]
        plain[:] = features.patches
        if rule.takes_out_brightness and features.brightness_axis is not None:
            plain -= features.raw_patches[:, -1:] * features.brightness_axis
        colours = log_colours(frame, features.centres, self._step_px)
        patches[:, :-CONTEXT_DIMS] = plain
        patches[:, -CONTEXT_DIMS:] = features.centres if rule.context is Context.PLACE else colours[:, 1:]
        return Rows(
            patches=patches,
            plain=plain,
            valid=features.valid,
            centres=features.centres,
            grid_shape=features.grid_shape,
            colours=colours,
            frame=features.frame.copy(),
            rule=rule,
            ready=features.ready and rule.decided,
        )

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of all buffers at the largest frame."""
        return {"rows": sum(buffer.nbytes for buffer in (*self._patches, *self._plain))}


def log_colours(frame: Frame, centres: np.ndarray, step_px: int) -> np.ndarray:
    """Return the colour at each patch's centre, (n, 3) float32: logarithms of green, of blue and of red over green.

    The last two are ratios, so that no change of exposure moves them.
    """
    height, width = frame.grey.shape
    columns, rows = max(1, width // step_px), max(1, height // step_px)
    cells = np.log(cv2.resize(frame.colour, (columns, rows), interpolation=cv2.INTER_AREA) + np.float32(DARKEST))
    column = np.minimum((centres[:, 0] * columns).astype(np.int64), columns - 1)
    row = np.minimum((centres[:, 1] * rows).astype(np.int64), rows - 1)
    picked = cells.reshape(rows, columns, 3)[row, column]
    picked[:, (0, 2)] -= picked[:, 1:2]
    return picked[:, (1, 0, 2)]
