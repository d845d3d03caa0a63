"""Learners taught in another process: what goes there and what comes back. They learn the same bits there as here.

Asked by agent/epochs/schedule.py, answered by agent/describing/child.py. It must not know how the two speak, and keeps
nothing from one epoch to the next: each brings the state of its learners, so that who is lost has taken nothing along.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from stillwatch.base import Clock, State, prepare_parts, split_off, state_of_parts, with_prefix
from stillwatch.epochs.registry import LEARNERS, EpochSamples, LearnerRow, Widths, make_learners, side_by_side, teach
from stillwatch.settings import Config

LEARNT, SAMPLES = "learners", "samples"  # what the arrays of a lesson begin with


@dataclass(frozen=True, slots=True)
class Taught:
    """A group of learners behind an epoch.

    Attributes
    ----------
    state : State
        Of the group's learners, under their names; valid until the next answer is asked for.
    reports : dict of str to dict
        What each that has learnt did, `report_`; one that did not, as there was nothing for it, keeps its own.
    seconds : dict of str to float
        CPU that each took.
    """

    state: State
    reports: dict[str, dict[str, Any]]
    seconds: dict[str, float]


class Tutor(Protocol):
    """Teaches groups of learners elsewhere. Both methods are called on one thread, the learner's."""

    def ask(self, groups: list[list[str]], epoch: int, arrays: State) -> bool:
        """Hand over groups, by their learners' names, with what `lesson` made of them; False where nobody is there."""

    def hear(self) -> Taught | None:
        """Wait for the next group, in their order; None where it will not come."""


def groups_away(table: tuple[LearnerRow, ...]) -> list[list[LearnerRow]]:
    """Return the groups of learners that are worth the way: most of an epoch's time, without pictures of frames."""
    return [group for group in side_by_side(table) if any(row.is_long for row in group)]


def lesson(groups: Sequence[Sequence[LearnerRow]], learners: Mapping[str, Any], samples: EpochSamples) -> State:
    """Return all that learning an epoch depends on, as arrays: the groups' states and what they learn from."""
    names = [row.name for group in groups for row in group]
    sizes = np.array([len(crop) for crop in samples.crops], np.int64)
    given = {
        "rows": samples.rows,
        "words": samples.words,
        "documents": samples.documents,
        "cropped": samples.cropped,
        "crops": np.frombuffer(b"".join(samples.crops), np.uint8),
        "crop_sizes": sizes,
    }
    return with_prefix(LEARNT, state_of_parts({name: learners[name] for name in names})) | with_prefix(SAMPLES, given)


class Guests:
    """The learners of another process, made when they are first taught here.

    Parameters
    ----------
    config : Config
    clock : Clock
    widths : Widths
    """

    def __init__(self, config: Config, clock: Clock, widths: Widths, table: tuple[LearnerRow, ...] = LEARNERS):
        self._config, self._clock, self._widths, self._table = config, clock, widths, table
        self._rows = {row.name: row for row in table}
        self._learners: dict[str, Any] = {}

    def teach(self, groups: list[list[str]], epoch: int, arrays: State) -> Iterator[Taught]:
        """Yield each group as soon as it has learnt the epoch; SnapshotError where a state does not fit."""
        states, given = split_off(LEARNT, arrays)
        samples = _samples(given)
        for names in groups:
            if missing := [name for name in names if name not in self._learners]:
                self._learners |= make_learners(self._config, **self._widths, table=self._table, only=missing)
            learners = {name: self._learners[name] for name in names}
            theirs = {name: array for name, array in states.items() if name.partition(".")[0] in learners}
            prepare_parts(learners, theirs, "taught apart")()
            seconds = {}
            for name in names:
                began = self._clock.thread_cpu_s()
                teach(self._rows[name], learners, samples, epoch)
                seconds[name] = self._clock.thread_cpu_s() - began
            # A state that is taken over empties the report: what is in one is of this lesson.
            reports = {name: learner.report_ for name, learner in learners.items() if getattr(learner, "report_", None)}
            yield Taught(state_of_parts(learners), reports, seconds)


def _samples(given: State) -> EpochSamples:
    """Return the samples of a lesson; no frames are among them."""
    arrays = {name.partition(".")[2]: array for name, array in given.items()}
    ends = np.cumsum(arrays["crop_sizes"])
    crops = [arrays["crops"][end - size : end].tobytes() for end, size in zip(ends, arrays["crop_sizes"], strict=True)]
    return EpochSamples(
        rows=arrays["rows"],
        frames=np.zeros((0, 0), np.float32),
        payloads=[],
        words=arrays["words"],
        documents=arrays["documents"],
        cropped=arrays["cropped"],
        crops=crops,
    )
