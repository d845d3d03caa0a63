"""How bright each place of a fixed camera usually is: the same place in other light is not another.

Called by agent/novelty/places/unlikeness.py. It must not judge: it says what a frame would be in the usual light.
"""

import math
from dataclasses import dataclass

import cv2
import numpy as np

from stillwatch.base import (
    Array,
    Commit,
    Restorable,
    State,
    check_arrays,
    check_room,
    prepare_record,
    record_state,
    saved,
    split_off,
    with_prefix,
)
from stillwatch.features import Rows
from stillwatch.novelty.calibration import running_share
from stillwatch.novelty.rules import DARK, LIT_REACH, MOST_LIGHT


@dataclass
class _Seen:
    """Frames so far, the stream time of the last, ns, and how many places they have."""

    frames: int = saved(0, low=0)
    t_ns: int = saved(0, low=0)
    places: int = saved(0, low=0)


class UsualLight(Restorable):
    """A running mean of each place's brightness, over as much as samples of places are kept of.

    Light multiplies what a patch reflects [1]_: a shadow, a cloud, a flickering lamp and a camera's exposure leave its
    structure, and change its contrast as much as its brightness. How much is read off the brightness of a patch and its
    neighbours, since light falls on more than one patch. Of a thing that stands there it is wrong; then what it says
    is one guess more of what usual thing this could be, and seldom the nearest.

    Parameters
    ----------
    capacity, n_dims : int
        Most places a frame can have, and values of a row without context.
    halflife_s : float
        Of what is remembered, once so much was watched; an average over everything before.

    References
    ----------
    .. [1] B. K. P. Horn, Determining lightness from an image, Computer Graphics and Image Processing 3(4), 1974,
       277-299: what is seen is the product of light and reflectance, a sum in logarithms.
    """

    def __init__(self, capacity: int, n_dims: int, halflife_s: float):
        self._halflife_s = halflife_s
        self._usual = np.zeros(capacity, np.float32)
        self._relit = np.zeros((capacity, n_dims), np.float32)
        self._seen = _Seen()

    def reset(self, grid_shape: tuple[int, int]) -> None:
        """Forget everything: the grid has another shape, or the camera another view."""
        self._seen = _Seen(places=grid_shape[0] * grid_shape[1])
        self._usual[:] = 0.0

    def relit(self, rows: Rows) -> np.ndarray | None:
        """Return a frame's rows as they would be in the usual light, (n, n_dims) float32, valid until the next call.

        None where nothing is known yet, or of rows that tell nothing of light.
        """
        if not self._seen.frames or rows.lighting is None:
            return None
        n = len(rows.plain)
        dark, now = np.float32(DARK), rows.lighting.brightness
        darker = np.log((self._usual[:n] + dark) / (now + dark)).reshape(rows.grid_shape)
        cv2.blur(darker, (LIT_REACH, LIT_REACH), darker, borderType=cv2.BORDER_REPLICATE)
        most = np.float32(math.log(MOST_LIGHT))
        gain = np.exp(np.clip(darker, -most, most, out=darker), out=darker).ravel()
        relit = self._relit[:n]
        rows.relit(gain, relit)
        return relit

    def learn(self, rows: Rows, t_ns: int) -> None:
        """Let the frame at stream time `t_ns` into the mean."""
        if rows.lighting is None:
            return
        seen = self._seen
        share = running_share(seen.frames, 1, t_ns - seen.t_ns, self._halflife_s)
        usual = self._usual[: len(rows.plain)]
        usual += np.float32(share) * (rows.lighting.brightness - usual)
        seen.frames, seen.t_ns = seen.frames + 1, t_ns

    def state(self) -> State:
        """Return the mean of each place, and of how many frames it is."""
        return {"usual": self._usual[: self._seen.places].copy()} | with_prefix("seen", record_state(self._seen))

    def prepare(self, state: State) -> Commit:
        """Validate `state` and return its commit; SnapshotError, and no change, where it does not fit."""
        seen = _Seen()
        counts, arrays = split_off("seen", state)
        prepare_record(seen, counts, "light: seen")()
        check_room(seen.places, len(self._usual), "light")
        check_arrays(arrays, {"usual": Array(np.float32, (seen.places,))}, "light")
        usual = arrays["usual"].copy()

        def commit() -> None:
            self._seen = seen
            self._usual[: seen.places] = usual

        return commit

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes at the largest frame."""
        return {"light": self._usual.nbytes + self._relit.nbytes}
