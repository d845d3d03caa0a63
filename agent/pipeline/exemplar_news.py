"""Decides which exemplars are told: those whose picture shows something that no picture told before does.

Called by agent/pipeline/summaries.py. On a quiet camera exemplars change all the time and look the same: the one told
before then stands for the new one, also where an alert names it. It must not change what was learnt.
"""

import dataclasses
from collections.abc import Sequence

import cv2
import numpy as np

from stillwatch.epochs import EpochExemplar

GRID = (16, 12)  # blocks across and down that pictures are compared by
MOST_EXAMPLES = 512  # of components, whose pictures are remembered: components come and go for as long as a run lasts
LEAST_CHANGE = 16.0  # grey levels that a block must differ by, beyond what the whole picture does: light is no news


class ExemplarNews:
    """What was told of exemplars. Pictures are kept as grids of block means, float32."""

    def __init__(self) -> None:
        self._looks: dict[int, np.ndarray] = {}  # of exemplars told, by id
        self._stands: dict[int, int] = {}  # exemplar held: the one told that stands for it
        self._examples: dict[int, None] = {}  # ids of components' examples, the one offered last at the end
        self._noted: set[int] = set()  # of those told, by id, with a note
        self._gone: list[int] = []  # told, held no more, and not yet said so

    def forget(self) -> None:
        """Tell everything again."""
        self._looks, self._stands, self._examples, self._noted, self._gone = {}, {}, {}, set(), []

    def told_as(self, exemplar: int) -> int:
        """Return the id under which stations know an exemplar; -1 stays -1."""
        return self._stands.get(exemplar, exemplar)

    def tell(self, exemplars: Sequence[EpochExemplar]) -> list[EpochExemplar]:
        """Return what of an epoch's exemplars is to be told."""
        for gone in {gone for exemplar in exemplars for gone in exemplar.removed or ()}:
            self._stands.pop(gone, None)
        told = [exemplar for exemplar in exemplars if self._is_news(exemplar)]
        forgotten = list(self._examples)[:-MOST_EXAMPLES]
        for oldest in forgotten:
            del self._examples[oldest], self._stands[oldest]
        standing = set(self._stands.values())
        self._gone += [known for known in self._looks if known not in standing and known not in forgotten]
        self._looks = {known: look for known, look in self._looks.items() if known in standing}
        self._noted &= self._looks.keys()
        for place, exemplar in enumerate(told):
            if exemplar.removed is not None:
                told[place] = dataclasses.replace(exemplar, removed=tuple(sorted(self._gone)))
                self._gone = []
        return told

    def _is_news(self, exemplar: EpochExemplar) -> bool:
        look = _look(exemplar.jpeg)
        is_example = exemplar.removed is None  # of a component: its id is for good, its picture is not
        if is_example:
            self._examples.pop(exemplar.id, None)
            self._examples[exemplar.id] = None
        for known in [exemplar.id] if is_example else self._looks:
            before = self._looks.get(known)
            says_more = bool(exemplar.note) and known not in self._noted  # what shows which topic: the first know none
            if before is not None and look is not None and _is_alike(before, look) and not says_more:
                self._stands[exemplar.id] = known
                return False
        if look is not None:
            self._looks[exemplar.id] = look
        self._stands[exemplar.id] = exemplar.id
        if exemplar.note:
            self._noted.add(exemplar.id)
        return True


def _look(jpeg: bytes) -> np.ndarray | None:
    """Return a picture's block means, without its overall brightness; None where there is none."""
    grey = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_GRAYSCALE) if jpeg else None
    if grey is None:
        return None
    blocks = cv2.resize(grey.astype(np.float32), GRID, interpolation=cv2.INTER_AREA)
    return np.asarray(blocks - blocks.mean(), np.float32)


def _is_alike(a: np.ndarray, b: np.ndarray) -> bool:
    return float(np.abs(a - b).max()) < LEAST_CHANGE
