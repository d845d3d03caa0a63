"""What stays for two frames is a thing; what is elsewhere in each is rain, flicker or noise.

Called by agent/novelty/places/unlikeness.py. It must not know what is usual at a place: only what stood out a frame
ago.
"""

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
from stillwatch.novelty.rules import (
    COHERENT,
    COHERENT_S,
    INCOHERENT,
    LEAST_ABSENT,
    LITTLE_OUT,
    MUCH_COHERENT,
    MUCH_INCOHERENT,
    MUCH_OUT,
    NS,
    SOME_COHERENT,
    SOME_OUT,
)


@dataclass
class _Last:
    """The stream time of the last frame, ns, -1 before there is one, and how many places it had."""

    t_ns: int = saved(-1, low=-1)
    places: int = saved(0, low=0)


class Coherence(Restorable):
    """How far each group of unlike patches was there a frame ago, beyond what chance would have.

    Of a group of neighbours that are unlike their places, a share was so in the last frame too; where a share p of the
    whole picture was, so much of any group would have been by chance. The agreement above chance, (share - p) /
    (1 - p), is that of Cohen's kappa [1]_ with one side given. It is near 1 for what moves by less than its own length
    from frame to frame, near 0 for drops of rain, bands of a flicker and noise, however many they are.

    Parameters
    ----------
    capacity : int
        Most places a frame can have.

    References
    ----------
    .. [1] J. Cohen, A coefficient of agreement for nominal scales, Educational and Psychological Measurement 20(1),
       1960, 37-46.
    """

    def __init__(self, capacity: int):
        self._stood_out = np.zeros(capacity, np.bool_)
        self._last = _Last()

    def reset(self) -> None:
        """Forget the last frame: the grid has another shape."""
        self._last = _Last()

    def weights(self, stands_out: np.ndarray, grid_shape: tuple[int, int], t_ns: int, out: np.ndarray) -> float:
        """Write how far what each patch is part of was there in the last frame: 0 to 1, and 1 where nothing stands out.

        Return how far all that stands out is believed, 0 to 1, which `out` has in it: where it fills much of the
        picture and agrees little as a whole, it is drops, and a part that agrees does so by chance.
        After a pause of more than COHERENT_S all are 1: what passes may be anywhere by then.

        stands_out : (n,) bool;  t_ns : stream time;  out : (n,) float32, written
        """
        n, last = len(stands_out), self._last
        out[:] = 1.0
        if last.t_ns < 0 or last.places != n or t_ns - last.t_ns > COHERENT_S * NS or not stands_out.any():
            return 1.0
        before = self._stood_out[:n]
        n_groups, names = cv2.connectedComponents(stands_out.astype(np.uint8).reshape(grid_shape), connectivity=8)
        group = names.ravel()
        sizes = np.bincount(group, minlength=n_groups)
        share = np.bincount(group[before], minlength=n_groups) / np.maximum(sizes, 1)
        chance = before.mean()
        above = (share - chance) / max(1.0 - chance, LEAST_ABSENT)
        weight = np.clip((above - INCOHERENT) / (COHERENT - INCOHERENT), 0.0, 1.0)
        believed = self._believed(stands_out, before, chance)
        weight *= believed
        weight[0] = 1.0  # the rest of the picture
        out[:] = weight[group]
        return believed

    @staticmethod
    def _believed(stands_out: np.ndarray, before: np.ndarray, chance: float) -> float:
        """Return how far all that stands out is believed: the more it fills, the more of it must have been there."""
        filled = float(stands_out.mean())
        agreement = (float(before[stands_out].mean()) - chance) / max(1.0 - chance, LEAST_ABSENT)
        least = np.interp(filled, (SOME_OUT, MUCH_OUT), (INCOHERENT, MUCH_INCOHERENT))
        enough = np.interp(filled, (SOME_OUT, MUCH_OUT), (SOME_COHERENT, MUCH_COHERENT))
        doubt = np.interp(agreement, (least, enough), (1.0, 0.0))
        return 1.0 - float(doubt * np.interp(filled, (LITTLE_OUT, 2.0 * LITTLE_OUT), (0.0, 1.0)))

    def learn(self, stands_out: np.ndarray, t_ns: int) -> None:
        """Remember what stands out of the frame at stream time `t_ns`, (n,) bool."""
        self._stood_out[: len(stands_out)] = stands_out
        self._last.t_ns, self._last.places = t_ns, len(stands_out)

    def state(self) -> State:
        """Return what stood out of the last frame, and when that was."""
        return {"stood_out": self._stood_out[: self._last.places].copy()} | with_prefix(
            "last", record_state(self._last)
        )

    def prepare(self, state: State) -> Commit:
        """Validate `state` and return its commit; SnapshotError, and no change, where it does not fit."""
        last = _Last()
        counts, arrays = split_off("last", state)
        prepare_record(last, counts, "coherence: last")()
        check_arrays(arrays, {"stood_out": Array(np.bool_, (last.places,))}, "coherence")
        check_room(last.places, len(self._stood_out), "coherence")
        stood_out = arrays["stood_out"].copy()

        def commit() -> None:
            self._last = last
            self._stood_out[: last.places] = stood_out

        return commit

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes at the largest frame."""
        return {"coherence": self._stood_out.nbytes}
