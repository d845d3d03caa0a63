"""Feeds the learners an epoch at a time on worker threads, and says at which frame a new model becomes active.

Called by agent/pipeline/pipeline.py only. Everything here is counted in accepted frames and samples, never in seconds,
so that a replay submits and activates at the same frames whatever the machine does.
"""

import os
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from stillwatch.base import (
    Clock,
    Commit,
    Restorable,
    SnapshotError,
    State,
    prepare_parts,
    prepare_record,
    record_bytes,
    record_state,
    saved,
    state_hash,
    state_of_parts,
)
from stillwatch.epochs.away import Taught, Tutor, groups_away, lesson
from stillwatch.epochs.buffer import PAYLOAD_HEADER, EpochBuffer, FrameWords, unpack_payload
from stillwatch.epochs.models import Form, Models
from stillwatch.epochs.registry import (
    CROP_BYTES,
    FRAME_EXEMPLARS,
    LEARNERS,
    EpochSamples,
    LearnerRow,
    ShownExemplars,
    ShownModel,
    Widths,
    make_learners,
    payload_bytes,
    side_by_side,
    teach,
)
from stillwatch.epochs.report import EpochReport, LearntHash, NearestExemplar, Told, model_report
from stillwatch.learn import MemoryBoundedTopics
from stillwatch.settings import MAX_EPOCH_FRAMES, Config

NO_FRAME = -1  # no epoch waits for its activation


@dataclass
class Schedule(Restorable):
    """Where the epochs are: all counts are of accepted frames."""

    n_offered: int = saved(0, low=0)  # seen
    n_skipped: int = saved(0, low=0)  # that came while both buffers were taken
    epoch: int = saved(0, low=0)  # epochs handed to the worker
    activation_frame: int = saved(NO_FRAME, low=NO_FRAME)  # n_offered at which the pending epoch becomes active
    last_t_ns: int = saved(0)  # stream time of the last frame offered
    learnt_t_ns: int = saved(0)  # of the last one of the epoch handed to the worker
    share: float = saved(1.0, low=0.0, high=1.0)  # of a frame's valid patches that may be learnt

    def state(self) -> State:
        return record_state(self)

    def prepare(self, state: State) -> Commit:
        return prepare_record(self, state, "schedule")

    def memory_bytes(self) -> dict[str, int]:
        return {"schedule": record_bytes(self)}


class ActiveModels(Restorable):
    """The models in use, or none yet, as a part of the saved state."""

    def __init__(self, table: tuple[LearnerRow, ...], learners: dict[str, Any]):
        shown = [row for row in table if isinstance(row.shown, ShownModel)]
        self._forms = {
            row.name: Form(
                learners[row.name].covariance,
                learners[row.name].n_features_in_,
                isinstance(learners[row.name], MemoryBoundedTopics),
            )
            for row in shown
        }
        self._snapshots = {row.name: row.snapshot for row in shown}
        self._required = tuple(row.name for row in shown if row.is_required)
        self._learners = learners
        self.models: Models | None = None

    def renew(self, *, epoch: int, frame: int) -> bool:
        """Take the learners' newest models; return whether there are those that nothing is scored without."""
        found = {name: snapshot(self._learners[name]) for name, snapshot in self._snapshots.items()}
        if any(found[name] is None for name in self._required):
            return False
        known = {name: model for name, model in found.items() if model is not None}
        self.models = Models(known, epoch=epoch, activated_frame=frame)
        return True

    def state(self) -> State:
        return {} if self.models is None else self.models.state()

    def prepare(self, state: State) -> Commit:
        models = Models.from_state(state, self._forms, self._required)

        def commit() -> None:
            self.models = models

        return commit

    def memory_bytes(self) -> dict[str, int]:
        return {}  # counted with the learners that made them


class Learners(Restorable):
    """The learners of the table, their two epoch buffers, and the worker threads.

    Parameters
    ----------
    config : Config
    clock : Clock
        Tells what an epoch cost, for the summary; decides nothing.
    n_patch_dims : int
        Width of the rows given to `offer`, position included.
    n_word_dims, n_frame_dims : int
    table : tuple of LearnerRow

    Attributes
    ----------
    side_by_side : bool
        Learn an epoch on two threads where there are two cores: of use where the second has nothing else to do.
    tutor : Tutor or None
        Teaches what takes most of an epoch's time in another process, from the next epoch on.
    """

    def __init__(
        self,
        config: Config,
        clock: Clock,
        *,
        n_patch_dims: int,
        n_word_dims: int,
        n_frame_dims: int,
        table: tuple[LearnerRow, ...] = LEARNERS,
    ):
        self._config = config.learning
        self._clock = clock
        self._seed = config.agent.seed
        self._table = table
        widths = Widths(n_patch_dims=n_patch_dims, n_word_dims=n_word_dims, n_frame_dims=n_frame_dims)
        self._learners = make_learners(config, **widths, table=table)
        room = {
            "patch_capacity": config.patches.epoch_size,
            "word_capacity": config.topics.epoch_size,
            "frame_capacity": MAX_EPOCH_FRAMES,
            "payload_bytes": payload_bytes(config),
            "crop_bytes": CROP_BYTES + PAYLOAD_HEADER.size,
        }
        self._filling = EpochBuffer(**widths, **room)
        self._learning = EpochBuffer(**widths, **room)
        self._schedule = Schedule(share=config.learning.patch_share)
        self._active = ActiveModels(table, self._learners)
        self._nearest = NearestExemplar(n_frame_dims)
        self._told = Told(table)
        self._jobs: queue.Queue = queue.Queue(maxsize=1)
        self._learnt = (0, 0)  # patches and frames of the last epoch learnt
        self._seconds = {row.name: 0.0 for row in table}
        self._done = threading.Event()
        self._done.set()
        self._failure: BaseException | None = None
        self._hash: str | None = None  # of what was learnt; None where that has changed since
        self.side_by_side = True
        self.tutor: Tutor | None = None
        several = len(os.sched_getaffinity(0)) > 1
        self._helper = ThreadPoolExecutor(1, thread_name_prefix="learner-helper") if several else None
        self._worker = threading.Thread(target=self._work, name="learner", daemon=True)
        self._worker.start()

    # -- pipeline thread -------------------------------------------------------------------------------------

    @property
    def models(self) -> Models | None:
        """The models that score frames now; None before the first."""
        return self._active.models

    @property
    def epoch(self) -> int:
        """Epochs handed to the worker so far."""
        return self._schedule.epoch

    @property
    def share(self) -> float:
        """Share of a frame's valid patches that may be learnt, in (0, 1]."""
        return self._schedule.share

    @share.setter
    def share(self, share: float) -> None:
        self._schedule.share = share

    def __getitem__(self, name: str) -> Any:
        """Return a learner by its name in the table; between epochs only (`wait`)."""
        return self._learners[name]

    def activate(self) -> EpochReport | None:
        """Make the pending model active if its frame has come; waits for the worker where it is late."""
        schedule = self._schedule
        if schedule.activation_frame == NO_FRAME or schedule.n_offered < schedule.activation_frame:
            return None
        self.wait()
        schedule.activation_frame = NO_FRAME
        if not self._active.renew(epoch=schedule.epoch, frame=schedule.n_offered):
            return None  # too few samples for any model: they stay in the learner's own buffer
        exemplars = self._learners[FRAME_EXEMPLARS]
        self._nearest.take(exemplars.exemplar_ids_, exemplars.exemplars_)
        return self._report()

    def nearest_exemplar(self, frame: np.ndarray) -> int:
        """Return the id of the exemplar of the active epoch nearest to a frame descriptor; -1 before the first."""
        return self._nearest.of(frame)

    def exemplar_pictures(self) -> dict[int, bytes]:
        """Return the thumbnails of all exemplars held now, by id, after a running epoch; b"" where one has none."""
        self.wait()
        return {
            row.shown.first_id + int(i): unpack_payload(payload)[2]
            for row in self._table
            if isinstance(row.shown, ShownExemplars)
            for i, payload in zip(
                self._learners[row.name].exemplar_ids_, self._learners[row.name].payloads(), strict=True
            )
        }

    def offer(
        self,
        sequence: int,
        t_ns: int,
        rows: np.ndarray,
        valid: np.ndarray,
        words: FrameWords,
        frame: np.ndarray,
        jpeg: bytes,
        note: Callable[[], bytes] = bytes,
    ) -> None:
        """Sample one accepted frame's patches and words for the epoch, and hand a finished epoch to the worker.

        Parameters
        ----------
        rows : ndarray of shape (n_patches, n_patch_dims), float32
            Descriptors as they are scored, position included.
        valid : ndarray of shape (n_patches,), bool
        words : FrameWords
        frame : ndarray of shape (n_frame_dims,), float32
        jpeg : bytes
            Thumbnail of the frame; may be empty.
        note : callable
            Returns what else travels with it, where it has room; called where the frame is taken.
        """
        schedule = self._schedule
        index = schedule.n_offered
        schedule.n_offered += 1
        schedule.last_t_ns = t_ns
        if self._filling.full:
            schedule.n_skipped += 1
        else:
            chosen = self._sample([index], np.flatnonzero(valid), self._filling.patch_capacity)
            self._filling.add(sequence, t_ns, rows[chosen], frame, jpeg, note())
            chosen = self._sample([index, 1], np.flatnonzero(words.valid), self._filling.word_capacity)
            blur = np.random.default_rng([self._seed, index, 2])
            self._filling.add_words(sequence, t_ns, words, chosen, blur)
        if self.is_idle and self._epoch_is_over():
            self._submit()

    def end_epoch(self) -> int:
        """Learn now what has been collected, as if the epoch were full; return how many patches that is.

        Zero where nothing was collected, or while another epoch is being learnt.
        """
        n_patches = self._filling.n_patches
        if not self.is_idle or n_patches == 0:
            return 0
        self._submit()
        return n_patches

    @property
    def is_idle(self) -> bool:
        """Whether no epoch is being learnt or waits for its activation frame."""
        return self._schedule.activation_frame == NO_FRAME

    def finish(self) -> EpochReport | None:
        """End of the stream: make the epoch that was being learnt active, if there is one.

        Samples that wait for a full epoch stay where they are: a restart goes on with them.
        """
        if self.is_idle:
            return None
        self._schedule.activation_frame = self._schedule.n_offered
        return self.activate()

    def wait(self) -> None:
        """Return when the worker is idle; a failure of the learner is raised here, in the caller's thread."""
        self._done.wait()
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """Stop the worker after its present epoch."""
        self._done.wait()
        self._jobs.put(None)
        self._worker.join(timeout=10.0)
        if self._helper is not None:
            self._helper.shutdown()

    def _sample(self, draw: list[int], candidates: np.ndarray, capacity: int) -> np.ndarray:
        """Choose this frame's patches or words: the configured share, less where the buffer would fill too early."""
        most = max(capacity // self._config.epoch_frames, 1)
        n_chosen = min(int(np.ceil(self.share * len(candidates))), most, len(candidates))
        rng = np.random.default_rng([self._seed, *draw])  # of the frame alone, so that a restart needs no rng state
        return np.sort(rng.choice(candidates, n_chosen, replace=False, shuffle=False))

    def _epoch_is_over(self) -> bool:
        growing = self._config.first_epoch_frames << min(self.epoch, 16)
        return self._filling.full or self._filling.n_frames >= min(growing, self._config.epoch_frames)

    def _submit(self) -> None:
        schedule = self._schedule
        self._filling, self._learning = self._learning, self._filling
        schedule.activation_frame = schedule.n_offered + self._config.delay_of(self._learning.n_frames)
        schedule.learnt_t_ns = schedule.last_t_ns
        self._done.clear()
        self._jobs.put(schedule.epoch)
        schedule.epoch += 1

    def _report(self) -> EpochReport:
        models = self.models
        assert models is not None
        n_patches, n_frames = self._learnt
        return EpochReport(
            models=models,
            learner_hash=self.learner_hash(),
            t_ns=self._schedule.learnt_t_ns,
            n_patches=n_patches,
            n_frames=n_frames,
            learnt=[
                model_report(row, row.shown, self._learners[row.name], models, self._seconds[row.name], self.epoch)
                for row in self._table
                if isinstance(row.shown, ShownModel) and row.name in models
            ],
            exemplars=self._told.news(self._learners, self.epoch),
        )

    def report(self) -> EpochReport | None:
        """Return what is active, after a running epoch; None before the first model."""
        self.wait()
        return None if self.models is None else self._report()

    def report_all(self) -> EpochReport | None:
        """Return what is active, every exemplar in it; None before the first model."""
        self._told.forget()
        return self.report()

    # -- worker thread, and its helper where there is a second core ------------------------------------------

    def _work(self) -> None:
        while (epoch := self._jobs.get()) is not None:
            try:
                self._learn(self._learning, epoch)
            except BaseException as failure:  # noqa: BLE001 - handed to the pipeline thread, which raises it
                self._failure = failure
            finally:
                self._done.set()

    def _learn(self, buffer: EpochBuffer, epoch: int) -> None:
        samples = EpochSamples(
            buffer.rows(), buffer.descriptors(), buffer.payloads(), buffer.words(), buffer.documents(),
            buffer.cropped(), buffer.crops(),
        )  # fmt: skip
        away, tutor = groups_away(self._table), self.tutor
        names = [[row.name for row in group] for group in away]
        if tutor is None or not tutor.ask(names, epoch, lesson(away, self._learners, samples)):
            away = []
        groups = iter([group for group in side_by_side(self._table) if group not in away])  # both threads draw from it
        helper = None
        if self._helper is not None and self.side_by_side:
            helper = self._helper.submit(self._teach, groups, samples, epoch)
        try:
            self._teach(groups, samples, epoch)
        finally:
            if helper is not None:
                helper.result()
        hashed = LearntHash(self._learners)
        for i, group in enumerate(away):
            # What has learnt is hashed while the others learn elsewhere: a frame may wait for the last of them.
            hashed.take(but={name for group_names in names[i:] for name in group_names})
            assert tutor is not None
            if (taught := tutor.hear()) is not None:
                self._take_over(group, taught)
            else:
                self._teach(iter([group]), samples, epoch)
        self._learnt = (buffer.n_patches, buffer.n_frames)
        buffer.clear()
        hashed.take(but=set())
        self._hash = hashed.text

    def _take_over(self, group: list[LearnerRow], taught: Taught) -> None:
        """Let our own learners be what became of them elsewhere."""
        ours = {row.name: self._learners[row.name] for row in group}
        kept = {name: learner.report_ for name, learner in ours.items() if hasattr(learner, "report_")}
        prepare_parts(ours, taught.state, "taught apart")()
        for name, report in (kept | taught.reports).items():
            ours[name].report_ = report
        self._seconds |= taught.seconds

    def _teach(self, groups: Iterator[list[LearnerRow]], samples: EpochSamples, epoch: int) -> None:
        """Teach group after group, until none is left: on as many threads as there are.

        Each learner has a generator of its own: it learns the same bits beside others as alone.
        """
        for group in groups:
            for row in group:
                began = self._clock.thread_cpu_s()
                teach(row, self._learners, samples, epoch)
                self._seconds[row.name] = self._clock.thread_cpu_s() - began

    # -- state -----------------------------------------------------------------------------------------------

    def learner_hash(self) -> str:
        """Return the hash of what was learnt, after a running epoch: the learners, not the buffers before them."""
        self.wait()
        if self._hash is None:
            self._hash = state_hash(state_of_parts(self._learners))
        return self._hash

    def _parts(self) -> dict[str, Any]:
        return self._learners | {
            "buffer": self._filling,
            "schedule": self._schedule,
            "active": self._active,
            "nearest": self._nearest,
            "told": self._told,
        }

    def state(self) -> State:
        """Return everything needed to go on from here, after waiting for a running epoch."""
        self.wait()
        return state_of_parts(self._parts())

    def prepare(self, state: State) -> Commit:
        """Validate a saved state after waiting for a running epoch; SnapshotError, and no change, if it does not fit.

        The commit takes over all of it: learners, samples collected, models in use, counts.
        """
        self.wait()
        take_over = prepare_parts(self._parts(), state, "learners")
        if not float(state["schedule.share"]) > 0.0:
            raise SnapshotError("schedule: share is 0, must be above it")

        def commit() -> None:
            self._hash = None
            take_over()

        return commit

    def memory_bytes(self) -> dict[str, int]:
        """Bytes by learner, and of the two epoch buffers."""
        taken = {row.title: sum(self._learners[row.name].memory_bytes().values()) for row in self._table}
        return taken | {"epoch buffers": self._filling.memory_bytes() + self._learning.memory_bytes()}

    def lesson_bytes(self) -> int:
        """Return the bytes that a tutor takes beside our own: an epoch, and its learners once more.

        A state is taken over by a learner made beside the old one; what is shared, the lesson and the states that come
        back, takes less than that.
        """
        names = [row.name for group in groups_away(self._table) for row in group]
        held = sum(sum(self._learners[name].memory_bytes().values()) for name in names)
        return self._learning.memory_bytes() + held
