"""Which blocks of a small grey picture are no longer where they were.

Called by agent/novelty/motion.py. It must not decide what follows from it.
"""

from typing import NamedTuple

import cv2
import numpy as np

SIDE = 20  # pixels of a block: smaller ones are found anywhere by chance, among 300 places
REACH = 8  # pixels: how far a block is looked for; a tenth of the view
LEAST_TEXTURE = 1.5  # grey levels of deviation: a block below shows no motion
KEPT = 0.5  # correlation at its place: a block with more is where it was
CLEARER = 0.2  # correlation that a block must gain beside its place: flakes, drops and noise take from all places alike
FOUND = 0.6  # correlation of a block that was found again,
BETTER = 0.1  # by so much better than at its place,
AWAY = 2.0  # and so many pixels from there


class Blocks(NamedTuple):
    """How many blocks of a picture have texture, and how many of them are elsewhere in another."""

    textured: int
    moved: int


def compare_blocks(first: np.ndarray, now: np.ndarray) -> Blocks:
    """Compare two pictures block by block by correlation: no gain or offset, no cloud can mislead it.

    first, now : (rows, columns) float32, C order, the same shape, grey levels
    """
    textured = moved = 0
    around = cv2.copyMakeBorder(now, REACH, REACH, REACH, REACH, cv2.BORDER_REPLICATE)
    for top in range(0, first.shape[0] - SIDE + 1, SIDE):
        for left in range(0, first.shape[1] - SIDE + 1, SIDE):
            block = np.ascontiguousarray(first[top : top + SIDE, left : left + SIDE])
            if float(block.std()) <= LEAST_TEXTURE:
                continue
            textured += 1
            if _correlation(block, now[top : top + SIDE, left : left + SIDE]) > 1.0 - BETTER:
                continue  # nowhere can it be found so much better
            window = np.ascontiguousarray(around[top : top + SIDE + 2 * REACH, left : left + SIDE + 2 * REACH])
            found = np.nan_to_num(cv2.matchTemplate(window, block, cv2.TM_CCOEFF_NORMED), posinf=0.0, neginf=0.0)
            here, place = float(found[REACH, REACH]), divmod(int(np.argmax(found)), found.shape[1])
            best = float(found[place])
            away = float(np.hypot(place[0] - REACH, place[1] - REACH))
            is_found = best >= max(FOUND, here + BETTER)
            moved += (here < KEPT and best >= here + CLEARER) or (is_found and away >= AWAY)
    return Blocks(textured, moved)


def _correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Return the correlation of two blocks; 0 where one has no texture at all."""
    a, b = one - one.mean(), other - other.mean()
    return float((a * b).sum() / max(float(np.sqrt((a * a).sum() * (b * b).sum())), 1e-6))
