"""Owner of the dense SIFT kernel: plans its tables for one image shape and holds its buffers.

Called by agent/features/extractor.py, tools and tests. It must not reduce, mask or remember descriptors.
"""

import math
from collections.abc import Sequence

import numpy as np

from stillwatch.kernels import sift
from stillwatch.kernels.orientations import PLACES

DESCRIPTOR_DIMS = sift.BINS * sift.CHANNELS
CAMERA_BLUR_PX = 0.5  # what a camera's own optics are taken to have (Lowe 2004, section 3.3)


def grid_positions(length: int, step_px: int, bin_px: int) -> np.ndarray:
    """Return the pixel positions of patch centres along one side, (n,) int64, n >= 1.

    The square of 4 x 4 bins stays inside the side, the remainder is shared between both ends; a side too short
    for one patch gets one in its middle.
    """
    span = length - 2 * (2 * bin_px)
    if span < 0:
        return np.array([length // 2], np.int64)
    return 2 * bin_px + (span % step_px) // 2 + step_px * np.arange(span // step_px + 1, dtype=np.int64)


def padded_taps(offsets, weights):
    """Return both as arrays whose last axis is a multiple of sift.TAPS; the padding repeats and weighs 0."""
    short = -len(offsets) % sift.TAPS
    return (
        np.concatenate([offsets, np.repeat(offsets[-1:], short)]).astype(np.int64),
        np.concatenate([weights, np.zeros(short)]).astype(np.float32),
    )


def gaussian_weights(sigma_px: float) -> np.ndarray:
    """Return the taps of a Gaussian of this sigma, sum 1, (2 r + 1,) float64; r = 4 sigma rounded, as OpenCV has."""
    if sigma_px <= 0.0:
        return np.ones(1)
    radius = (round(8.0 * sigma_px + 1.0) | 1) // 2
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma_px) ** 2)
    return weights / weights.sum()


def bin_weights(bin_px: int, gaussian: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return pixel offsets (n,) and the weight of each for the 4 bins along one side, (4, n) float64.

    Triangles of half width `bin_px` around the bins' centres (linear interpolation), times the Gaussian of
    sigma = 2 bins (Lowe 2004, section 6.1); the flat window has its value at each bin's centre instead
    (as VLFeat's fast dense SIFT).
    """
    reach = int(np.ceil(2.5 * bin_px)) - 1
    offsets = np.arange(-reach, reach + 1)
    centres = (np.arange(sift.BINS) - 1.5) * bin_px
    triangles = np.maximum(0.0, 1.0 - np.abs(offsets - centres[:, None]) / bin_px)
    at = offsets[None, :] if gaussian else centres[:, None]
    return offsets, triangles * np.exp(-0.5 * (at / (2.0 * bin_px)) ** 2)


def read_only(array) -> np.ndarray:
    """Return the array, C-contiguous and not writable: the form in which kernels take tables."""
    array = np.ascontiguousarray(array)
    array.setflags(write=False)
    return array


def make_plan(height: int, width: int, step_px: int, bin_px: int, gaussian: bool, sigma_px: float, margin_bin_px: int):
    """Return the SiftPlan for one shape and scale. `margin_bin_px` (the largest scale) sets the grid."""
    rows, columns = grid_positions(height, step_px, margin_bin_px), grid_positions(width, step_px, margin_bin_px)
    offsets, weights = bin_weights(bin_px, gaussian)
    reach = int(offsets[-1])
    before = -(-reach // step_px)
    n = -(-(len(columns) + before + reach // step_px) // PLACES) * PLACES
    places = np.arange(-1, step_px + 1)[:, None] + step_px * (np.arange(n) - before) + columns[0]
    inside = (places[1:-1] > 0) & (places[1:-1] < width - 1)
    bins = [padded_taps(offsets[w > 0], w[w > 0]) for w in weights]
    bin_offsets = np.stack([taps for taps, _ in bins])
    window, window_weights = padded_taps(offsets, weights.sum(0) / weights.sum())
    smoothing = gaussian_weights(sigma_px)
    taps, smoothing_weights = padded_taps(np.arange(len(smoothing)), smoothing)
    place_of = (bin_offsets % step_px) * (sift.ORIENTATIONS * n) + before + bin_offsets // step_px
    window_starts = (window % step_px + 1) * n + before + window // step_px
    return sift.SiftPlan(
        rows=read_only(rows),
        smoothing_taps=read_only(taps),
        smoothing_weights=read_only(smoothing_weights),
        columns=read_only(np.clip(places, 0, width - 1).ravel()),
        inside=read_only(inside.astype(np.float32)),
        bin_starts=read_only(place_of),
        bin_offsets=read_only(bin_offsets),
        bin_weights=read_only(np.stack([w for _, w in bins])),
        window_starts=read_only(window_starts),
        window_offsets=read_only(window),
        window_weights=read_only(window_weights),
        shape=read_only(np.array([len(columns), reach, len(smoothing) // 2], np.int64)),
        mass=read_only(np.array([weights.sum() ** 2], np.float32)),
    )


def make_workspace(plan: sift.SiftPlan, width: int) -> sift.SiftWorkspace:
    """Return the scratch that `dense_sift` needs with this plan, for one thread."""
    step, n = plan.inside.shape
    _, reach, radius = (int(v) for v in plan.shape)
    taps = max(len(plan.window_offsets), len(plan.smoothing_weights))

    def zeros(*shape):
        return np.zeros(shape, np.float32)

    return sift.SiftWorkspace(
        padded=zeros(width + 2 * radius),
        smoothed=zeros((2 * radius + 1) * width),
        row=zeros(width),
        phased=zeros(3 * (step + 2) * n),
        angle=zeros(step * n),
        magnitude=zeros(step * n),
        planes=zeros(step * sift.ORIENTATIONS * n),
        pooled=zeros((2 * reach + 1) * (sift.CHANNELS + 1) * n),
        starts=np.zeros(taps, np.int64),
        used=zeros(taps),
        bins=zeros(DESCRIPTOR_DIMS * n),
        grey=zeros(n),
        sums=zeros(4, n),
    )


class DenseSift:
    """Dense upright SIFT for images up to a box, at one or several scales, in buffers of its own.

    Parameters
    ----------
    height, width : int
        The box; `reshape` accepts any shape inside it.
    step_px : int
    bin_px : sequence of int
        One scale each; the scales of one place stand side by side in its row.
    window : "gaussian" or "flat"
    smoothing_px : float
        Blur of the described image, CAMERA_BLUR_PX of it taken as given; at or below that nothing is smoothed.
    root_sift : bool
    contrast_threshold : float
        Grey levels between pixels two apart; a patch whose mean gradient is below it is flat.
    extra_dims : int
        Values left free at the end of each row, for the owner.

    Attributes
    ----------
    out : ndarray of shape (n_patches, 128 * n_scales + extra_dims), float32
    energy, brightness : ndarray of shape (n_patches,), float32, of the first scale
    flat : ndarray of shape (n_patches,), bool, of the first scale
    rows, columns : ndarray of int64, pixel positions of the grid
    """

    def __init__(
        self,
        height: int,
        width: int,
        *,
        step_px: int = 8,
        bin_px: Sequence[int] = (4,),
        window: str = "gaussian",
        smoothing_px: float = 1.6,
        root_sift: bool = False,
        contrast_threshold: float = 1.0,
        extra_dims: int = 0,
    ):
        self.box = (height, width)
        self.step_px, self.bin_px = step_px, tuple(bin_px)
        self.gaussian, self.root_sift, self.contrast_threshold = window == "gaussian", root_sift, contrast_threshold
        self.sigma_px = math.sqrt(max(smoothing_px**2 - CAMERA_BLUR_PX**2, 0.0))
        self.descriptor_dims = DESCRIPTOR_DIMS * len(self.bin_px)
        widest = max(self.bin_px)
        self.capacity = len(grid_positions(height, step_px, widest)) * len(grid_positions(width, step_px, widest))
        self._out = np.zeros((self.capacity, self.descriptor_dims + extra_dims), np.float32)
        self._energy, self._brightness = (np.zeros((len(self.bin_px), self.capacity), np.float32) for _ in range(2))
        self._flat = np.zeros((len(self.bin_px), self.capacity), np.bool_)
        self.reshape(height, width)
        self._bytes = sum(array.nbytes for array in self._arrays())

    def reshape(self, height: int, width: int) -> None:
        """Rebuild grid and tables for another image shape; ValueError where it does not fit in the box."""
        if not (0 < height <= self.box[0] and 0 < width <= self.box[1]):
            raise ValueError(f"image of {height} x {width} does not fit in the box of {self.box[0]} x {self.box[1]}")
        self.shape = (height, width)
        widest = max(self.bin_px)
        self._plans = [
            make_plan(height, width, self.step_px, size, self.gaussian, self.sigma_px, widest) for size in self.bin_px
        ]
        self._workspaces = [make_workspace(plan, width) for plan in self._plans]
        self.rows = grid_positions(height, self.step_px, widest)
        self.columns = grid_positions(width, self.step_px, widest)
        n = len(self.rows) * len(self.columns)
        self.out, self.energy = self._out[:n], self._energy[0, :n]
        self.brightness, self.flat = self._brightness[0, :n], self._flat[0, :n]

    def compute(self, image: np.ndarray) -> np.ndarray:
        """Describe one image of the planned shape into `out`, `energy`, `brightness` and `flat`; return `out`.

        Raises
        ------
        ValueError
            Wrong shape or dtype (uint8, uint16 and float32 are taken), or float values that are not finite.
        """
        check_image(image, self.shape)
        for scale in range(len(self.bin_px)):
            self.compute_rows(image, scale, 0, len(self.rows), self._workspaces[scale])
        return self.out

    def compute_rows(self, image: np.ndarray, scale: int, first: int, last: int, workspace: sift.SiftWorkspace) -> None:
        """Describe the grid rows first to last - 1 at one scale, with a workspace of the caller's: for threads.

        Bits do not depend on how rows are split. The image is not checked.
        """
        n = len(self.rows) * len(self.columns)
        sift.dense_sift(
            kernel_image(image),
            first,
            last,
            self._plans[scale],
            scale * DESCRIPTOR_DIMS,
            self.root_sift,
            np.float32(self.contrast_threshold),
            self.out,
            self._energy[scale, :n],
            self._brightness[scale, :n],
            self._flat[scale, :n],
            workspace,
        )

    def new_workspace(self, scale: int = 0) -> sift.SiftWorkspace:
        """Return scratch for one more thread at this scale."""
        return make_workspace(self._plans[scale], self.shape[1])

    def memory_bytes(self) -> int:
        """Return the bytes of all buffers and tables at the box's shape, the most they can be."""
        return self._bytes

    def _arrays(self):
        yield from (self._out, self._energy, self._brightness, self._flat)
        for group in (*self._plans, *self._workspaces):
            yield from group


def kernel_image(image: np.ndarray) -> np.ndarray:
    """Return the image as kernels take it: C order, uint8 or float32; 16-bit values are exact in float32."""
    return np.ascontiguousarray(image, np.float32 if image.dtype == np.uint16 else None)


def check_image(image: np.ndarray, shape: tuple[int, int]) -> None:
    """Raise ValueError, saying what is wrong, unless the image can be described."""
    if image.shape != shape:
        raise ValueError(f"image has shape {image.shape}, planned is {shape}")
    if image.dtype not in (np.uint8, np.uint16, np.float32):
        raise ValueError(f"image has dtype {image.dtype}, taken are uint8, uint16 and float32")
    if image.dtype == np.float32 and not np.isfinite(image).all():
        bad = int(image.size - np.isfinite(image).sum())
        raise ValueError(f"image has {bad} values that are not finite among {image.size}")
