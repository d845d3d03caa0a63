"""Ground truth for evaluations: event spans by frame number, from events.json, segments.json or a synthetic world.

Called by tools/evaluate/command.py. It must not know scores.
"""

import json
import pathlib
from dataclasses import dataclass, replace

import numpy as np

from stillwatch.base import UsageError

FIRST_FRAMES = 24  # of a segment shown for the first time that are an event, in segments.json
TOLERANCE_FRAMES = 2  # where the file states none


@dataclass(frozen=True, slots=True)
class Truth:
    """Events of one clip by its own frame numbers: (first, last) of each, inclusive, merged where they overlap.

    spans : the events that count. unjudged: stretches that are neither: an alert in one is not false, its frames have
    no label. judged_from: frames before it have no label either; alerts there are judged. asked_from: what comes before
    it is shown, and not asked for: no alert there is judged, and its time does not count.
    """

    spans: tuple[tuple[int, int], ...]
    tolerance_frames: int
    unjudged: tuple[tuple[int, int], ...] = ()
    judged_from: int = 0
    asked_from: int = 0

    def labels(self, number: np.ndarray) -> np.ndarray:
        """Return whether each frame, (n,) int64 numbers, is inside an event that counts, (n,) bool."""
        return _inside(number, self.spans)

    def judged(self, number: np.ndarray) -> np.ndarray:
        """Return whether each frame has a label at all, (n,) bool."""
        return (number >= self.judged_from) & ~(_inside(number, self.unjudged) & ~self.labels(number))

    def between(self, first: int, last: int) -> "Truth":
        """Return the truth of frames `first` to `last` alone: an event counts where it begins there.

        One that began before and reaches in, is not judged: its beginning was not to be seen.
        """
        spans = tuple((a, min(b, last)) for a, b in self.spans if first <= a <= last)
        cut = tuple((a, b) for a, b in self.spans if a < first <= b)
        return replace(self, spans=spans, unjudged=merged((*self.unjudged, *cut)))

    def from_frame(self, first: int) -> "Truth":
        """Return the truth where frames before `first` are for learning alone."""
        later = self.between(first, np.iinfo(np.int64).max)
        return replace(later, unjudged=merged((*later.unjudged, (0, first - 1))), asked_from=first)


def _inside(number: np.ndarray, spans) -> np.ndarray:
    """Return which of the numbers lie in one of the inclusive spans, bool."""
    inside = np.zeros(len(number), bool)
    for first, last in spans:
        inside |= (number >= first) & (number <= last)
    return inside


def runs_of(numbers: list[int]) -> list[tuple[int, int]]:
    """Return the first and last of each run of numbers that follow each other; numbers rise."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def merged(spans) -> tuple[tuple[int, int], ...]:
    """Return spans in order, those that share a frame joined to one."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return tuple(joined)


def truth_of(entry: dict) -> Truth:
    """Return the truth of one clip's entry, or of a world's `truth()`; its events, else its segments, count."""
    if entry.get("events"):
        spans = [(int(event["start"]), int(event["end"])) for event in entry["events"]]
    else:
        spans = [
            (int(s["start"]), min(int(s["start"]) + FIRST_FRAMES - 1, int(s["end"])))
            for s in entry.get("segments", [])
            if s.get("first_time") and int(s["start"]) > 0
        ]
    return Truth(merged(spans), int(entry.get("tolerance_frames", TOLERANCE_FRAMES)))


def read_truths(path: str) -> dict[str, Truth]:
    """Return the truth of every clip in a file, by the clip's name; UsageError where it cannot be read."""
    try:
        table = json.loads(pathlib.Path(path).read_text())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise UsageError(
            f"{path}: not a readable JSON file of events: {error}; docs/tutorials/analyst.md shows what it needs"
        ) from None
    if not isinstance(table, dict):
        raise UsageError(f"{path}: expected an object with clips or events, found {type(table).__name__}")
    clips = table.get("files", table)
    if "events" in table or "segments" in table:
        clips = {"": table}  # one clip's truth alone fits every clip
    try:
        found = {
            name: truth_of({"tolerance_frames": table.get("tolerance_frames", TOLERANCE_FRAMES), **entry})
            for name, entry in clips.items()
            if isinstance(entry, dict) and ("events" in entry or "segments" in entry)
        }
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{path}: an event needs start and end as frame numbers ({error})") from None
    if not found:
        raise UsageError(f"{path}: no clip in it has events or segments; it needs one of them")
    return found


def truth_for(truths: dict[str, Truth], clip: str, path: str) -> Truth:
    """Return the truth of the clip called so; UsageError names the clips there are."""
    if clip in truths:
        return truths[clip]
    if "" in truths:
        return truths[""]
    raise UsageError(f"{path}: no events of {clip}; there are {', '.join(sorted(truths))}")
