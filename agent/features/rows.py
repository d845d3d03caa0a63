"""The rows of a frame: what is scored and learnt of each patch, with the context that the kind of camera asks for.

Called by agent/pipeline/pipeline.py once an accepted frame. It must not score or remember: rows are a value that is
handed along.
"""

from dataclasses import dataclass

import cv2
import numpy as np

from stillwatch.base import CameraRule, Context, Frame
from stillwatch.features.extractor import BRIGHTNESS, BRIGHTNESS_SCALE, CONTRAST, Features, GateAxes
from stillwatch.features.shrinking import shrunk
from stillwatch.kernels import rows as kernels

CONTEXT_DIMS = 2  # values, of either kind: rows have one width, so that models do
WORD_STEP = 2  # every second patch across and down is a word: words are means over more
WORD_REACH = 5  # patches across that a word is the mean of: one patch of sand and one of gravel look alike
WORD_AXES = 8  # first values of a patch that its word has: a mean over neighbours says little in the others
WORD_CHROMA = 2.0  # of a descriptor's unit, for a colour ratio of e
DARKEST = 8.0  # grey levels added before logarithms: the noise of dark pixels is no colour
_NO_AXIS = np.zeros(0, np.float32)


@dataclass(frozen=True, slots=True)
class Lighting:
    """What of an encoded patch grows with the light.

    Attributes
    ----------
    contrast : ndarray of shape (n,), float32
        In units of the gate: a descriptor's length is its contrast, at most 1.
    brightness : ndarray of shape (n,), float32
        Mean grey level under the patch.
    axis, origin : ndarray of shape (n_patch_dims,), float32
        What one unit of contrast adds to a patch; what a patch of nothing is encoded as.
    """

    contrast: np.ndarray
    brightness: np.ndarray
    axis: np.ndarray
    origin: np.ndarray


@dataclass(frozen=True, slots=True)
class Rows:
    """One frame as it is scored and learnt. Arrays are the maker's or extractor's, and valid until its next call.

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
    words : ndarray of shape (n_words, n_word_dims), float32
        What topics are learnt from: means of `plain` and of the colour ratios over neighbouring patches, masked ones
        left out. Of every WORD_STEP-th patch, row by row.
    word_valid : ndarray of shape (n_words,), bool
    word_shape : tuple of int
        Rows and columns of the words' grid.
    view : int
        Number of the view that a fixed camera has: another one where it was knocked, the same where it was put right.
    lighting : Lighting or None
        How light acts on `plain`; None under a camera that moves, and where patches have no contrast of their own.
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
    words: np.ndarray
    word_valid: np.ndarray
    word_shape: tuple[int, int]
    view: int = 0
    lighting: Lighting | None = None

    def relit(self, gain: np.ndarray, out: np.ndarray) -> None:
        """Write `plain` as it would be in other light, (n, n_patch_dims) float32; `lighting` must be known.

        gain : (n,) float32, of the other light over the one there was, above 0
        """
        assert self.lighting is not None
        kernels.relight(self.plain, self.lighting.contrast, self.lighting.axis, self.lighting.origin, gain, out)

    def word_centre(self, word: int) -> tuple[float, float]:
        """Return x and y of a word, shares of width and height."""
        row, column = divmod(word, self.word_shape[1])
        x, y = self.centres[WORD_STEP * (row * self.grid_shape[1] + column)]
        return float(x), float(y)


class RowMaker:
    """Makes rows in memory allocated here, for the largest frame.

    Parameters
    ----------
    capacity_patches, n_patch_dims : int
        Of the feature extractor.
    step_px : int
        Distance of patches: the colour of a patch is the mean over such a square.

    Attributes
    ----------
    n_row_dims : int
        Width of the rows: encoded patch, then the context.
    n_word_dims : int
        Width of the words.
    """

    def __init__(self, capacity_patches: int, n_patch_dims: int, step_px: int):
        self.n_row_dims = n_patch_dims + CONTEXT_DIMS
        self.n_word_dims = min(WORD_AXES, n_patch_dims) + CONTEXT_DIMS
        self._step_px = step_px
        self._patches = np.zeros((capacity_patches, self.n_row_dims), np.float32)
        self._plain = np.zeros((capacity_patches, n_patch_dims), np.float32)
        self._shown = np.zeros((capacity_patches, self.n_word_dims), np.float32)

    def rows_of(self, frame: Frame, features: Features, rule: CameraRule, view: int = 0) -> Rows:
        """Return the rows of a frame whose features were just extracted, by the rule and view of its camera."""
        n = len(features.patches)
        patches, plain, shown = self._patches[:n], self._plain[:n], self._shown[:n]
        colours = log_colours(frame, features.centres, self._step_px)
        gate = features.gate if rule.takes_out_brightness else None
        axis = _NO_AXIS if gate is None else gate.brightness
        context = (features.centres, 0) if rule.context is Context.PLACE else (colours, 1)
        kernels.join_rows(features.patches, features.raw_patches, axis, *context, plain, patches)
        kernels.join_words(plain, colours, np.float32(WORD_CHROMA), shown)
        grid = features.grid_shape
        words = neighbourhood_means(shown.reshape(*grid, -1), features.valid.reshape(grid))[::WORD_STEP, ::WORD_STEP]
        word_valid = features.valid.reshape(grid)[::WORD_STEP, ::WORD_STEP]
        return Rows(
            patches=patches,
            plain=plain,
            valid=features.valid,
            centres=features.centres,
            grid_shape=features.grid_shape,
            colours=colours,
            words=words.reshape(-1, self.n_word_dims),
            word_valid=word_valid.ravel(),
            word_shape=word_valid.shape,
            frame=features.frame.copy(),
            rule=rule,
            ready=features.ready and rule.decided,
            view=view,
            lighting=None if gate is None else lighting_of(features.raw_patches, gate),
        )

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of all buffers at the largest frame."""
        return {"rows": self._patches.nbytes + self._plain.nbytes + self._shown.nbytes}


def lighting_of(raw: np.ndarray, gate: GateAxes) -> Lighting:
    """Return how light acts on gated raw patches, (n, n_raw_dims) float32: copies."""
    brightness = raw[:, BRIGHTNESS] * np.float32(1.0 / BRIGHTNESS_SCALE)
    return Lighting(raw[:, CONTRAST].copy(), brightness, gate.contrast, gate.origin)


def log_colours(frame: Frame, centres: np.ndarray, step_px: int) -> np.ndarray:
    """Return the colour at each patch's centre, (n, 3) float32: logarithms of green, of blue and of red over green.

    The last two are ratios, so that no change of exposure moves them.
    """
    height, width = frame.grey.shape
    columns, rows = max(1, width // step_px), max(1, height // step_px)
    cells = np.log(shrunk(frame.colour, rows, columns) + np.float32(DARKEST))
    picked = np.empty((len(centres), 3), np.float32)
    kernels.pick_colours(cells.reshape(-1, 3), centres, rows, columns, picked)
    return picked


def neighbourhood_means(values: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Return the mean over the valid ones of each patch and its neighbours; WORD_REACH patches across.

    values : ndarray of shape (rows, columns, n_dims), float32;  valid : (rows, columns), bool
    """
    size, border = (WORD_REACH, WORD_REACH), cv2.BORDER_REFLECT
    if valid.all():
        return np.asarray(cv2.blur(values, size, borderType=border))
    weight = valid.astype(np.float32)
    share = np.maximum(cv2.blur(weight, size, borderType=border), 1.0 / WORD_REACH**2)
    return np.asarray(cv2.blur(values * weight[..., None], size, borderType=border) / share[..., None])
