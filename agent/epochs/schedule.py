"""Feeds the learners an epoch at a time on a worker thread, and says at which frame a new model becomes active.

Called by agent/pipeline/pipeline.py only. Everything here is counted in accepted frames and samples, never in seconds,
so that a replay submits and activates at the same frames whatever the machine does.
"""

import queue
import threading
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from stillwatch.base import Clock, SnapshotError, State, require, state_hash, with_prefix, without_prefix
from stillwatch.epochs.buffer import PAYLOAD_HEADER, EpochBuffer, pack_payload, unpack_payload
from stillwatch.learn import ComponentExemplar, ComponentExemplars, MemoryBoundedMixture, StreamGreedy, StudentMixture
from stillwatch.settings import Config, MixtureConfig

MAX_EPOCH_FRAMES = 128  # bounds the thumbnails that wait for the learner
SCENE_PATIENCE = 8  # epochs between two messages about one scene's examples
SHORT_SCENE_EPOCHS = 4  # scenes and exemplars have one sample a frame: learn early from the little there is


class Models(NamedTuple):
    """The models that score frames now: immutable snapshots of one finished epoch."""

    patches: StudentMixture
    scenes: StudentMixture | None
    epoch: int
    activated_frame: int  # accepted frames seen when they became active


@dataclass(frozen=True, slots=True)
class EpochReport:
    """What one epoch did, for summaries. `seconds` (CPU) is of this machine; all else is the same in a replay."""

    models: Models
    learner_hash: str
    t_ns: int  # stream time of the last frame learnt
    seconds: dict[str, float]
    n_patches: int
    n_frames: int
    patches: dict[str, Any]
    scenes: dict[str, Any]
    changed_exemplars: list[tuple[int, float, int, int, bytes]]  # id, share, sequence, t_ns, JPEG
    removed_exemplars: list[int]
    changed_scenes: list[ComponentExemplar]


def _mixture(
    config: MixtureConfig, n_dims: int, covariance: Literal["diagonal", "full"], seed: int
) -> MemoryBoundedMixture:
    return MemoryBoundedMixture(
        n_dims,
        covariance=covariance,
        memory=config.memory,
        horizon=config.horizon,
        concentration=config.concentration,
        prior_scale=config.prior_scale,
        max_components=config.max_components,
        max_iterations=config.max_iterations,
        seed=seed,
    )


class Learners:
    """The three learners, their two epoch buffers, and the worker thread.

    Parameters
    ----------
    config : Config
    clock : Clock
        Tells what an epoch cost, for the summary; decides nothing.
    n_patch_dims : int
        Width of the rows given to `offer`, position included.
    n_frame_dims : int
    """

    def __init__(self, config: Config, clock: Clock, *, n_patch_dims: int, n_frame_dims: int):
        self._config = config.learning
        self._clock = clock
        seed = config.agent.seed
        self.patches = _mixture(config.patches, n_patch_dims, "diagonal", seed)
        self.scenes = _mixture(config.scenes, n_frame_dims, "full", seed + 1)
        payload_bytes = config.exemplars.thumbnail_bytes + PAYLOAD_HEADER.size
        self.exemplars = StreamGreedy(
            n_frame_dims,
            k=config.exemplars.k,
            block=config.exemplars.block,
            validation=config.exemplars.validation,
            minimum_gain=config.exemplars.minimum_gain,
            payload_bytes=payload_bytes,
            seed=seed + 2,
        )
        self.scene_exemplars = ComponentExemplars(
            n_frame_dims, max_components=config.scenes.max_components, payload_bytes=payload_bytes
        )
        self._seed = seed
        room = {
            "patch_capacity": config.patches.memory // 2,
            "frame_capacity": MAX_EPOCH_FRAMES,
            "n_patch_dims": n_patch_dims,
            "n_frame_dims": n_frame_dims,
            "payload_bytes": payload_bytes,
        }
        self._filling = EpochBuffer(**room)
        self._learning = EpochBuffer(**room)
        self.share = config.learning.patch_share
        self.models: Models | None = None
        self.n_offered = 0  # accepted frames seen
        self.n_skipped = 0  # accepted frames that came while both buffers were taken
        self.epoch = 0
        self._activation_frame = -1  # n_offered at which the pending epoch becomes active; -1: none pending
        self._shown_ids = np.zeros(0, np.int64)  # exemplars of the active epoch, as others may name them
        self._shown_rows = np.zeros((0, n_frame_dims), np.float32)
        self._announced_exemplars: set[int] = set()
        self._announced_scenes: dict[int, tuple[int, int]] = {}  # component: epoch and most typical row when told
        self._jobs: queue.Queue = queue.Queue(maxsize=1)
        self._learnt = (0, 0)  # patches and frames of the last epoch learnt
        self._learnt_t_ns = self._last_t_ns = 0
        self._seconds = {"patches": 0.0, "scenes": 0.0, "exemplars": 0.0}
        self._done = threading.Event()
        self._done.set()
        self._failure: BaseException | None = None
        self._worker = threading.Thread(target=self._work, name="learner", daemon=True)
        self._worker.start()

    # -- pipeline thread -------------------------------------------------------------------------------------

    def activate(self) -> EpochReport | None:
        """Make the pending model active if its frame has come; waits for the worker where it is late."""
        if self._activation_frame < 0 or self.n_offered < self._activation_frame:
            return None
        self.wait()
        self._activation_frame = -1
        patches = self.patches.predictive()
        if patches is None:  # too few samples for any model: they stay in the learner's own buffer
            return None
        self.models = Models(patches, self.scenes.predictive(), self.epoch, self.n_offered)
        self._shown_ids = np.array(self.exemplars.exemplar_ids_, np.int64)
        self._shown_rows = np.array(self.exemplars.exemplars_, np.float32)
        return self._report()

    def nearest_exemplar(self, frame: np.ndarray) -> int:
        """Return the id of the exemplar of the active epoch nearest to a frame descriptor; -1 before the first."""
        if not len(self._shown_ids):
            return -1
        return int(self._shown_ids[np.argmin(((self._shown_rows - frame) ** 2).sum(axis=1))])

    def offer(self, sequence: int, t_ns: int, rows: np.ndarray, valid: np.ndarray, frame: np.ndarray, jpeg: bytes):
        """Sample one accepted frame's patches for the epoch, and hand a finished epoch to the worker.

        Parameters
        ----------
        rows : ndarray of shape (n_patches, n_patch_dims), float32
            Descriptors as they are scored, position included.
        valid : ndarray of shape (n_patches,), bool
        frame : ndarray of shape (n_frame_dims,), float32
        jpeg : bytes
            Thumbnail of the frame; may be empty.
        """
        index = self.n_offered
        self.n_offered += 1
        self._last_t_ns = t_ns
        if self._filling.full:
            self.n_skipped += 1
        else:
            chosen = self._sample(index, np.flatnonzero(valid))
            self._filling.add(rows[chosen], frame, pack_payload(sequence, t_ns, jpeg))
        if self._activation_frame < 0 and self._epoch_is_over():
            self._submit()

    def end_epoch(self) -> int:
        """Learn now what has been collected, as if the epoch were full; return how many patches that is.

        Zero where nothing was collected, or while another epoch is being learnt.
        """
        n_patches = self._filling.n_patches
        if self._activation_frame >= 0 or n_patches == 0:
            return 0
        self._submit()
        return n_patches

    @property
    def is_idle(self) -> bool:
        """Whether no epoch is being learnt or waits for its activation frame."""
        return self._activation_frame < 0

    def finish(self) -> EpochReport | None:
        """End of the stream: make the epoch that was being learnt active, if there is one.

        Samples that wait for a full epoch stay where they are: a restart goes on with them.
        """
        if self._activation_frame < 0:
            return None
        self._activation_frame = self.n_offered
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

    def _sample(self, index: int, candidates: np.ndarray) -> np.ndarray:
        """Choose this frame's patches: the configured share, less where the buffer would fill too early."""
        most = max(len(self._filling.patches) // self._config.epoch_frames, 1)
        n_chosen = min(int(np.ceil(self.share * len(candidates))), most, len(candidates))
        rng = np.random.default_rng([self._seed, index])  # of the frame alone, so that a restart needs no rng state
        return np.sort(rng.choice(candidates, n_chosen, replace=False, shuffle=False))

    def _epoch_is_over(self) -> bool:
        growing = self._config.first_epoch_frames << min(self.epoch, 16)
        return self._filling.full or self._filling.n_frames >= min(growing, self._config.epoch_frames)

    def _submit(self) -> None:
        self._filling, self._learning = self._learning, self._filling
        self._activation_frame = self.n_offered + self._config.activation_delay_frames
        self._learnt_t_ns = self._last_t_ns
        self._done.clear()
        self._jobs.put(self.epoch)
        self.epoch += 1

    def _report(self) -> EpochReport:
        changed, removed = self._exemplar_changes()
        assert self.models is not None
        return EpochReport(
            self.models,
            self.learner_hash(),
            self._learnt_t_ns,
            dict(self._seconds),
            *self._learnt,
            dict(self.patches.report_),
            dict(self.scenes.report_),
            changed,
            removed,
            self._scene_changes(),
        )

    def report_all(self) -> EpochReport | None:
        """Return the last report again, every exemplar in it; None before the first model."""
        self.wait()
        if self.models is None:
            return None
        self._announced_exemplars = set()
        self._announced_scenes = {}
        return self._report()

    def _exemplar_changes(self) -> tuple[list[tuple[int, float, int, int, bytes]], list[int]]:
        held = [int(i) for i in self.exemplars.exemplar_ids_]
        shares = self.exemplars.exemplar_weights_
        changed = [
            (exemplar_id, float(share), *unpack_payload(payload))
            for exemplar_id, share, payload in zip(held, shares, self.exemplars.payloads(), strict=True)
            if exemplar_id not in self._announced_exemplars
        ]
        removed = sorted(self._announced_exemplars.difference(held))
        self._announced_exemplars = set(held)
        return changed, removed

    def _scene_changes(self) -> list[ComponentExemplar]:
        """Return the examples of scenes that are new, or have a better typical one than was told some epochs ago."""
        table = self.scene_exemplars.table()
        told: dict[int, tuple[int, int]] = {}
        changed = set()
        for typical in (exemplar for exemplar in table if exemplar.kind == "most_typical"):
            component, row = typical.component_id, typical.row_number
            epoch, known = self._announced_scenes.get(component, (-SCENE_PATIENCE, -1))
            if row != known and self.epoch - epoch >= SCENE_PATIENCE:
                changed.add(component)
                epoch, known = self.epoch, row
            told[component] = epoch, known
        self._announced_scenes = told
        return [exemplar for exemplar in table if exemplar.component_id in changed]

    # -- worker thread ---------------------------------------------------------------------------------------

    def _work(self) -> None:
        while (epoch := self._jobs.get()) is not None:
            try:
                self._learn(self._learning, epoch)
            except BaseException as failure:  # noqa: BLE001 - handed to the pipeline thread, which raises it
                self._failure = failure
            finally:
                self._done.set()

    def _learn(self, buffer: EpochBuffer, epoch: int) -> None:
        marks = [self._clock.thread_cpu_s()]
        self.patches.partial_fit(buffer.patches[: buffer.n_patches])
        self.patches.flush()
        marks.append(self._clock.thread_cpu_s())
        frames = buffer.frames[: buffer.n_frames]
        self.scenes.partial_fit(frames)
        if epoch < SHORT_SCENE_EPOCHS:
            self.scenes.flush()
        self._show_scenes(frames, buffer.payloads())
        marks.append(self._clock.thread_cpu_s())
        self.exemplars.partial_fit(frames, buffer.payloads())
        if epoch < SHORT_SCENE_EPOCHS:
            self.exemplars.flush()
        marks.append(self._clock.thread_cpu_s())
        self._seconds = dict(zip(self._seconds, np.diff(marks).tolist(), strict=True))
        self._learnt = (buffer.n_patches, buffer.n_frames)
        buffer.clear()

    def _show_scenes(self, frames: np.ndarray, payloads: list[bytes]) -> None:
        """Let the epoch's frames be examples of the scenes they belong to, as the newest scene model sees them."""
        scenes = self.scenes.predictive()
        if scenes is None or scenes.n_components == 0:
            return
        self.scene_exemplars.rescore(lambda rows: (scenes.predict(rows), scenes.score_samples(rows)))
        numbers = np.array([unpack_payload(payload)[0] for payload in payloads], np.int64)
        self.scene_exemplars.offer(frames, scenes.predict(frames), scenes.score_samples(frames), numbers, payloads)

    # -- state -----------------------------------------------------------------------------------------------

    def learner_hash(self) -> str:
        """Return the hash of what was learnt, after a running epoch: the learners, not the buffers before them."""
        self.wait()
        return state_hash(self._learner_states())

    def _learner_states(self) -> State:
        state: State = {}
        for name, learner in self._learners().items():
            state.update(with_prefix(name, learner.state()))
        return state

    def _learners(self) -> dict[str, Any]:
        return {
            "patches": self.patches,
            "scenes": self.scenes,
            "exemplars": self.exemplars,
            "scene_exemplars": self.scene_exemplars,
        }

    def state(self) -> State:
        """Return everything needed to go on from here, after waiting for a running epoch."""
        self.wait()
        state = self._learner_states()
        state.update(with_prefix("buffer", self._filling.state()))
        active = (-1, -1) if self.models is None else (self.models.epoch, self.models.activated_frame)
        counters = [self.n_offered, self.n_skipped, self.epoch, self._activation_frame, *active]
        state["counters"] = np.array(counters, np.int64)
        state["share"] = np.array(self.share)
        state["shown_ids"], state["shown_rows"] = self._shown_ids.copy(), self._shown_rows.copy()
        state["announced"] = np.array(sorted(self._announced_exemplars), np.int64)
        if self.models is not None:
            state.update(with_prefix("active_patches", self.models.patches.summary))
            if self.models.scenes is not None:
                state.update(with_prefix("active_scenes", self.models.scenes.summary))
        return state

    def restore(self, state: State) -> None:
        """Go on from `state`. A state that does not fit raises SnapshotError and leaves the learners fresh."""
        self.wait()
        require(state, ("counters", "share", "announced", "shown_ids", "shown_rows"), "learners")
        counters = state["counters"]
        if counters.shape != (6,) or len(state["shown_ids"]) != len(state["shown_rows"]):
            raise SnapshotError("learners: the saved counters or exemplars have another shape")
        learners = self._learners()
        before = {name: learner.state() for name, learner in learners.items()}
        try:
            for name, learner in learners.items():
                learner.restore(without_prefix(name, state))
            self._filling.restore(without_prefix("buffer", state))
        except SnapshotError:
            for name, learner in learners.items():
                learner.restore(before[name])
            raise
        self.n_offered, self.n_skipped, self.epoch, self._activation_frame = (int(c) for c in counters[:4])
        self.share = float(state["share"])
        self._announced_exemplars = {int(i) for i in state["announced"]}
        self._shown_ids, self._shown_rows = state["shown_ids"].copy(), state["shown_rows"].copy()
        self.models = None
        if counters[4] >= 0:
            scenes = without_prefix("active_scenes", state)
            self.models = Models(
                StudentMixture.from_summary(without_prefix("active_patches", state)),
                StudentMixture.from_summary(scenes) if scenes else None,
                int(counters[4]),
                int(counters[5]),
            )

    def memory_bytes(self) -> dict[str, int]:
        """Bytes by learner, and of the two epoch buffers."""
        return {
            "patch mixture": self.patches.memory_bytes(),
            "scene mixture": self.scenes.memory_bytes(),
            "exemplars": self.exemplars.memory_bytes(),
            "scene exemplars": self.scene_exemplars.memory_bytes(),
            "epoch buffers": self._filling.memory_bytes() + self._learning.memory_bytes(),
        }
