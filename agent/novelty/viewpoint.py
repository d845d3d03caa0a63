"""Finds out which view a fixed camera has: knocked, turned, moved to another place, and back again.

Called by agent/describing/describer.py with every accepted frame. It must not know what is novel: it compares pictures
that people and weather were averaged out of, by what stays in them.
"""

from dataclasses import dataclass
from typing import NamedTuple

import cv2
import numpy as np

from stillwatch.base import (
    Array,
    CameraRule,
    Commit,
    Restorable,
    State,
    check_arrays,
    prepare_record,
    record_bytes,
    record_state,
    saved,
    saved_array,
    split_off,
    with_prefix,
)
from stillwatch.features import shrunk
from stillwatch.novelty.rules import (
    AS_IT_WAS,
    AVERAGED_EVERY_S,
    AVERAGED_S,
    BLOCK_PX,
    CALM_LOOK_S,
    CELLS,
    FEATURES_PER_VIEW,
    FINE_PX,
    KNOWN_VIEWPOINTS,
    LEAST_CELLS,
    LEAST_CONTRAST,
    LEAST_MATCHES,
    LEAST_TEXTURE,
    LOOK_S,
    MATCHED_PX,
    NS,
    OTHER_LOOKS,
    RICH_VIEW,
    SAME_PX,
    STILL_PX,
    SURE_MATCHES,
    VIEW_FOLLOWS,
    VIEW_SIDE,
    WENT_LOOKS,
    WENT_PX,
)
from stillwatch.novelty.sampling import place_of_oldest

_CLIP_LIMIT, _TILES = 2.0, (4, 3)  # of CLAHE: dusk, fog and exposure leave as many features as noon


class _Features(NamedTuple):
    """Places, (n, 2) float32 x and y in pixels, and SIFT descriptors, (n, 128) float32, of a picture."""

    places: np.ndarray
    descriptors: np.ndarray


class _Match(NamedTuple):
    """How many features of two pictures agree on one shift, turn and zoom, over how much, and where corners go.

    cells: of CELLS x CELLS of the picture that hold one of them; corners: (5, 2) float64, pixels, the middle last.
    """

    features: int
    cells: int
    corners: np.ndarray

    @property
    def is_believed(self) -> bool:
        """Whether it is no chance, and no clock or name that the camera writes into whatever it sees."""
        return self.features >= LEAST_MATCHES and self.cells >= LEAST_CELLS

    def distance(self, other: np.ndarray) -> float:
        """Return how far apart the corners are on the mean, pixels; infinity where nothing agrees."""
        return float(np.hypot(*(self.corners - other).T).mean()) if self.features else np.inf


@dataclass
class _Seen:
    """What is believed, beside the pictures.

    ids: numbers of the known views, -1 in a free place; in_view: its place. t_ns: of the last frame, -1 before the
    first; look_ns: of the next look; height, width: of the pictures. looks: made in this view. went, other: looks in a
    row that say that the camera went, or shows something else; corners: where the last of these looks found the view.
    """

    ids: np.ndarray = saved_array((KNOWN_VIEWPOINTS,), np.int64, fill=-1, low=-1)
    corners: np.ndarray = saved_array((5, 2), np.float64)
    in_view: int = saved(0, low=0, high=KNOWN_VIEWPOINTS - 1)
    next_id: int = saved(0, low=0)
    t_ns: int = saved(-1, low=-1)
    look_ns: int = saved(0, low=0)
    height: int = saved(0, low=0, high=VIEW_SIDE)
    width: int = saved(0, low=0, high=VIEW_SIDE)
    looks: int = saved(0, low=0)
    went: int = saved(0, low=0, high=WENT_LOOKS)
    other: int = saved(0, low=0, high=OTHER_LOOKS)


class Viewpoints(Restorable):
    """Says by a number which view a frame is of; the last KNOWN_VIEWPOINTS views are found again under theirs.

    Every few seconds the average of the last frames is registered with that of the view: SIFT features (Lowe 2004,
    OpenCV's) matched both ways, one similarity by RANSAC. Where enough features say that all of them are elsewhere, by
    the same way in WENT_LOOKS looks in a row, the camera went. Where the picture is rich and stays as it is, and for
    OTHER_LOOKS in a row nothing of the view is found in it, it shows something else. All other looks, of fog, of the
    dark, of a bare wall, say nothing: the view is believed to be what it was.

    Under a camera that moves nothing is looked at.
    """

    def __init__(self) -> None:
        self._seen = _Seen()
        self._picture = np.zeros((VIEW_SIDE, VIEW_SIDE), np.float32)  # frames averaged over AVERAGED_S
        self._last = np.zeros((VIEW_SIDE, VIEW_SIDE), np.uint8)  # the same at the last look
        self._known = np.zeros((KNOWN_VIEWPOINTS, VIEW_SIDE, VIEW_SIDE), np.uint8)  # and while each view was believed
        self._sift = cv2.SIFT.create(nfeatures=FEATURES_PER_VIEW, contrastThreshold=LEAST_CONTRAST)
        self._clahe = cv2.createCLAHE(_CLIP_LIMIT, _TILES)
        self._matcher = cv2.BFMatcher(cv2.NORM_L2, crossCheck=True)
        self._of_view: _Features | None = None  # of the known picture in view
        self._of_last: _Features | None = None

    @property
    def view(self) -> int:
        """Number of the view that is believed to be in sight: 0 for the first, one more for each new one."""
        number = int(self._seen.ids[self._seen.in_view])
        return number if number >= 0 else self._seen.next_id

    def reset(self) -> None:
        """Forget the pictures, for a stream of another size: its first view has the last number."""
        self._seen = _Seen(next_id=max(self._seen.next_id - 1, 0))
        self._of_view = self._of_last = None

    def observe(self, grey: np.ndarray, t_ns: int, rule: CameraRule) -> int:
        """Take the next frame, (height, width) uint8 at stream time `t_ns`; return the number of its view."""
        if rule.view_stays and rule.decided:
            self._average(grey, t_ns)
            until_s = (self._seen.look_ns - t_ns) / NS
            if not 0.0 < until_s <= CALM_LOOK_S:  # it is due, or the stream's time has begun anew
                is_calm = self._look()
                self._seen.look_ns = t_ns + round((CALM_LOOK_S if is_calm else LOOK_S) * NS)
        return self.view

    def _average(self, grey: np.ndarray, t_ns: int) -> None:
        """Let a frame into the averaged picture, the first one and those after a pause as they are."""
        seen, scale = self._seen, min(VIEW_SIDE / max(grey.shape), 1.0)
        if 0 <= t_ns - seen.t_ns < AVERAGED_EVERY_S * NS and seen.t_ns >= 0:
            return
        seen.height, seen.width = (max(round(side * scale), 1) for side in grey.shape)
        small = shrunk(grey, seen.height, seen.width)
        elapsed_s = max(t_ns - seen.t_ns, 0) / NS if seen.t_ns >= 0 else np.inf
        cv2.accumulateWeighted(small, self._shown(self._picture), 1.0 - 0.5 ** (elapsed_s / AVERAGED_S))
        seen.t_ns = t_ns

    def _look(self) -> bool:
        """Compare the averaged picture with the view's, and believe what enough looks say.

        Return whether this one found the view where it was.
        """
        seen = self._seen
        if seen.ids[seen.in_view] < 0:
            self._enter(seen.in_view)
            return True
        now = None if self._is_as_it_was() else self._features(self._picture)
        is_same = now is None or self._finds(now)
        if is_same:
            seen.went = seen.other = 0
            self._follow()
        self._last[:], self._of_last = self._picture, now
        if now is not None and (seen.went == WENT_LOOKS or seen.other == OTHER_LOOKS):
            self._change(now)
        return is_same

    def _finds(self, now: _Features) -> bool:
        """Return whether the view is found where it was, and count the looks in a row that say otherwise."""
        seen, at_rest = self._seen, self._corners()
        # A look without features, and a restored state, leave pictures alone.
        of_view = self._of_view = self._of_view or self._features(self._known[seen.in_view])
        found = self._match(of_view, now)
        if found.is_believed and found.distance(at_rest) < SAME_PX:
            return True
        if found.is_believed and found.features >= SURE_MATCHES and found.distance(at_rest) >= WENT_PX:
            agrees = seen.went > 0 and found.distance(seen.corners) < SAME_PX
            seen.went, seen.other, seen.corners[:] = seen.went + 1 if agrees else 1, 0, found.corners
        elif not found.is_believed and len(of_view.places) >= RICH_VIEW and self._stays(now):
            seen.went, seen.other = 0, seen.other + 1
        else:
            seen.went = seen.other = 0
        return False

    def _is_as_it_was(self) -> bool:
        """Whether two in three blocks with structure are where the view has them: a look in a fortieth of the time."""
        pictures = (
            self._shown(picture).astype(np.float32) for picture in (self._known[self._seen.in_view], self._picture)
        )
        known, now = (_blocks(picture - cv2.blur(picture, (FINE_PX, FINE_PX))) for picture in pictures)
        squares, its_squares = (known * known).sum(axis=(1, 3)), (now * now).sum(axis=(1, 3))
        structured = squares > LEAST_TEXTURE**2 * BLOCK_PX**2
        alike = (known * now).sum(axis=(1, 3)) > AS_IT_WAS * np.sqrt(squares * its_squares)
        n_structured = np.count_nonzero(structured)
        return bool(n_structured >= LEAST_CELLS and 3 * np.count_nonzero(structured & alike) > 2 * n_structured)

    def _stays(self, now: _Features) -> bool:
        """Return whether a picture is rich, and still that of the last look."""
        if len(now.places) < RICH_VIEW:
            return False
        again = self._match(self._of_last or self._features(self._last), now)
        return again.features >= RICH_VIEW // 2 and again.distance(self._corners()) < STILL_PX

    def _follow(self) -> None:
        """Let the view's picture follow what stays: light, shadows, a parked car."""
        seen = self._seen
        seen.looks += 1
        if seen.looks % VIEW_FOLLOWS == 0:
            known = self._known[seen.in_view]
            known[:] = np.rint(known + np.float32(1.0 / VIEW_FOLLOWS) * (self._picture - known))
            self._of_view = None

    def _change(self, now: _Features) -> None:
        """Believe that another view is in sight: one that is known, or a new one in place of the oldest."""
        seen, at_rest = self._seen, self._corners()
        seen.went = seen.other = 0
        for place in np.flatnonzero(seen.ids >= 0):
            if place == seen.in_view:
                continue
            known = self._features(self._known[place])
            found = self._match(known, now)
            if found.is_believed and found.distance(at_rest) < SAME_PX:
                seen.in_view, self._of_view = int(place), known
                return
        self._enter(place_of_oldest(seen.ids, but=seen.in_view))

    def _enter(self, place: int) -> None:
        """Make the picture that of a new view."""
        seen = self._seen
        seen.ids[place], seen.next_id, seen.in_view, seen.looks = seen.next_id, seen.next_id + 1, place, 0
        self._known[place] = self._last[:] = self._picture
        self._of_view = self._of_last = self._features(self._last)

    def _shown(self, picture: np.ndarray) -> np.ndarray:
        """Return the part of a picture that the frames' shape fills."""
        return picture[..., : self._seen.height, : self._seen.width]

    def _features(self, picture: np.ndarray) -> _Features:
        shown = np.ascontiguousarray(self._shown(picture).astype(np.uint8))
        points, descriptors = self._sift.detectAndCompute(self._clahe.apply(shown), None)
        if descriptors is None:
            return _Features(np.zeros((0, 2), np.float32), np.zeros((0, 128), np.float32))
        return _Features(np.array([point.pt for point in points], np.float32), descriptors)

    def _match(self, one: _Features, other: _Features) -> _Match:
        """Return by how many features a picture is found in another, and where."""
        at_rest = self._corners()
        pairs = self._matcher.match(one.descriptors, other.descriptors) if len(one.places) and len(other.places) else []
        if len(pairs) < LEAST_MATCHES:
            return _Match(0, 0, at_rest)
        here = one.places[[pair.queryIdx for pair in pairs]]
        there = other.places[[pair.trainIdx for pair in pairs]]
        found, agree = cv2.estimateAffinePartial2D(here, there, ransacReprojThreshold=MATCHED_PX)
        if found is None:
            return _Match(0, 0, at_rest)
        agreed = here[agree.ravel() > 0]
        cells = np.unique((agreed * CELLS / at_rest[3]).astype(int), axis=0)
        return _Match(len(agreed), len(cells), at_rest @ found[:, :2].T + found[:, 2])

    def _corners(self) -> np.ndarray:
        height, width = self._seen.height, self._seen.width
        return np.array([(0, 0), (width, 0), (0, height), (width, height), (width / 2, height / 2)], float)

    # -- state -----------------------------------------------------------------------------------------------

    def _pictures(self) -> dict[str, np.ndarray]:
        return {"picture": self._picture, "last": self._last, "known": self._known}

    def state(self) -> State:
        """Return the pictures and what is believed, as copies."""
        pictures = {name: self._shown(held).copy() for name, held in self._pictures().items()}
        return with_prefix("seen", record_state(self._seen)) | pictures

    def prepare(self, state: State) -> Commit:
        """Validate `state` and return its commit; SnapshotError, and no change, where it does not fit."""
        seen = _Seen()
        own, pictures = split_off("seen", state)
        prepare_record(seen, own, "viewpoint")()
        shape = (seen.height, seen.width)
        wanted = {
            "picture": Array(np.float32, shape, 0.0, 255.0),
            "last": Array(np.uint8, shape),
            "known": Array(np.uint8, (KNOWN_VIEWPOINTS, *shape)),
        }
        check_arrays(pictures, wanted, "viewpoint")
        copies = {name: array.copy() for name, array in pictures.items()}

        def commit() -> None:
            self._seen, self._of_view, self._of_last = seen, None, None
            for name, held in self._pictures().items():
                self._shown(held)[:] = copies[name]

        return commit

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes of the pictures, and of the features of two of them."""
        features = 2 * FEATURES_PER_VIEW * (128 + 2) * np.dtype(np.float32).itemsize
        pictures = sum(picture.nbytes for picture in self._pictures().values())
        return {"viewpoint": record_bytes(self._seen) + pictures + features}


def _blocks(picture: np.ndarray) -> np.ndarray:
    """Return a picture's whole blocks, (rows, BLOCK_PX, columns, BLOCK_PX)."""
    rows, columns = (side // BLOCK_PX for side in picture.shape)
    return picture[: rows * BLOCK_PX, : columns * BLOCK_PX].reshape(rows, BLOCK_PX, columns, BLOCK_PX)
