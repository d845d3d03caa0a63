"""Replays a recording through the same pipeline under a virtual clock, and compares it with what was recorded.

Called by tools/recordings/replay.py and tests. It must not sleep, print or read a real clock: its caller paces it.
"""

import pathlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import threadpoolctl

from stillwatch.base import Frame, SnapshotError, UsageError, VirtualClock
from stillwatch.pipeline import Pipeline, Sink, Step, apply
from stillwatch.restart import checkpoint
from stillwatch.restart.recorder import pixel_checksum
from stillwatch.settings import Config, config_hash, recorded_config
from stillwatch.sources import FrameMaker, RecordingSource, first_frames
from stillwatch.transport.disk import RECORDING_NAME, log_files
from stillwatch.transport.disk import recording as r
from stillwatch.transport.wire import Headers


@dataclass
class Comparison:
    """How the replay went, against what was recorded.

    Attributes
    ----------
    frames : int
        Frames stepped.
    hash : str
        Of all learned state, where `recorded_hash` was taken: at the end, or at the last mark before it.
    recorded_hash : str or None
        None where the recording has no mark in the replayed stretch, or another config was used.
    at_sequence : int
        The frame after which both hashes were taken.
    pixel_differences, decision_differences, activation_differences : int
        Frames, decisions and activations that were not the same; the first differing frame is `first_difference`.
    missing : int
        Recorded frames whose pixels could not be had.
    ended : bool
        Whether the recorded hash is that of a session's proper end.
    """

    frames: int = 0
    hash: str = ""
    recorded_hash: str | None = None
    at_sequence: int = -1
    pixel_differences: int = 0
    decision_differences: int = 0
    activation_differences: int = 0
    activations: int = 0
    first_difference: int = -1
    missing: int = 0
    ended: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def equal(self) -> bool | None:
        """Whether the learned state is the recorded one, bit for bit; None where there is nothing to compare."""
        return None if self.recorded_hash is None else self.hash == self.recorded_hash

    def differ(self, sequence: int) -> None:
        """Note the first frame at which anything differed."""
        if self.first_difference < 0:
            self.first_difference = sequence


class Replay:
    """One replay of one recording.

    Parameters
    ----------
    path : Path
        The recording's folder.
    sink : Sink
        Takes the messages that the agent would have published.
    config : Config or None
        None replays with the recorded config, and compares; another one asks what would have happened.
    first, last : int
        Frames to replay, by sequence number. `first` above 0 begins at the nearest checkpoint before it.

    Raises
    ------
    LogError, SourceError, SnapshotError, UsageError
        No recording, no usable checkpoint, or a config of a version that cannot be read.
    """

    def __init__(
        self, path: pathlib.Path, sink: Sink, *, config: Config | None = None, first: int = 0, last: int = 2**62
    ):
        self.path = pathlib.Path(path)
        self.result = Comparison()
        self.clock = VirtualClock()
        self._sink = sink
        self._last = last
        self._session = r.first_session(self.path)
        self._same_config = config is None
        self.config = config or config_of(self._session, self.result.notes)
        if self._same_config and config_hash(self.config) != self._session.config_hash:
            self.result.notes.append("the recorded config reads differently in this version: expect another hash")
        self._start = self._find_start(first)
        # The state that goes with the first frame is needed, so that frames before `first` are run through too.
        begin = int(self._start[1]["next_sequence"]) if self._start else 0
        self._source = RecordingSource(f"{self.path}?from={begin}&to={last}", self.config.source)
        self.first_sequence = begin
        self.pipeline = self._fresh_pipeline()

    def _fresh_pipeline(self) -> Pipeline:
        session = self._session
        headers = Headers(self.config.agent.id, f"replay-{session.run}"[:64], session.boot or "none", 0)
        return Pipeline(self.config, self._sink, self.clock, headers=headers)

    def _find_start(self, first: int) -> tuple[checkpoint.State, checkpoint.Meta] | None:
        """Return the checkpoint to begin at; None: begin at the beginning, with nothing learnt.

        That is the newest one at or before frame `first`; where the recording's first files were deleted, one
        whose frames are still there, if need be after `first`.
        """
        files = log_files(self.path, RECORDING_NAME)
        oldest = 0 if files[0][0] == 0 else min(first_frames(path)[1] for _, path in files)
        if first <= 0 and oldest == 0:
            return None
        usable = [path for path in self._checkpoints() if path[0] >= oldest]
        before = [item for item in usable if item[0] <= first]
        for _, path in [*reversed(before), *(item for item in usable if item[0] > first and oldest > 0)]:
            try:
                start = checkpoint.read(path)
            except SnapshotError as error:
                self.result.notes.append(str(error))
                continue
            if oldest > 0:
                self.result.notes.append(f"frames before {oldest} were deleted: begun at {start[1]['next_sequence']}")
            return start
        if oldest > 0:
            self._same_config = False
            self.result.notes.append(f"frames before {oldest} were deleted and no checkpoint is left to begin at")
        return None

    def _checkpoints(self) -> list[tuple[int, pathlib.Path]]:
        """Return (next frame, path) of the recording's checkpoints that fit the config, in order."""
        found = []
        for path in checkpoint.files(self.path / "checkpoints"):
            try:
                meta = checkpoint.read_header(path)["meta"]
            except SnapshotError as error:
                self.result.notes.append(str(error))
                continue
            if meta.get("config_hash") == config_hash(self.config):
                found.append((int(meta["next_sequence"]), path))
        return sorted(found)

    def steps(self) -> Iterator[Step]:
        """Run the recording frame by frame; `result` is complete when the iterator ends."""
        with threadpoolctl.threadpool_limits(limits=1):  # as live: BLAS sums differ between one thread and two
            yield from self._steps()

    def _steps(self) -> Iterator[Step]:
        source = self._source
        source.open()
        maker = FrameMaker(self.config.source, self.clock, False, 0, None)
        if self._start is not None:
            self.pipeline.restore(self._start[0])
        elif source.session is not None:
            self._begin(source.session)
        try:
            while True:
                raw = source.read()
                pixels = self._catch_up(last=raw is None)
                if raw is None:
                    break
                frame = maker.make(raw)
                if frame is None:
                    continue
                self._move_clock(frame)
                if pixels and pixels != pixel_checksum(frame.colour):
                    self.result.pixel_differences += 1
                    self.result.differ(frame.sequence)
                step = self.pipeline.step(frame)
                self.result.frames += 1
                self._step = step
                yield step
            self._finish()
        finally:
            source.close()
            self.pipeline.close()

    _step: Step | None = None
    _finished = False

    def _catch_up(self, *, last: bool) -> int | None:
        """Apply the records between the last frame and the next; return the next frame's recorded pixel checksum."""
        pixels = None
        while self._source.passed:
            record, body = self._source.passed.popleft()
            match body:
                case r.FrameRecord():
                    pixels = body.pixels
                case r.Session():
                    self._begin(body)
                case r.Journal():
                    self._obey(body)
                case r.Decision():
                    self._compare_decision(body)
                case r.Activation():
                    self._compare_activation(body)
                case r.Checkpoint():
                    self._mark(body.sequence, body.hash, self.pipeline.learner_hash)
                case r.End():
                    self._end(body)
        return pixels

    def _move_clock(self, frame: Frame) -> None:
        self.clock.advance_ns(max(frame.mono_ns - self.clock.monotonic_ns(), 0))
        self.clock.step_wall_ns(frame.wall_ns - self.clock.wall_ns())

    def _begin(self, session: r.Session) -> None:
        """Start as the agent did: from the checkpoint it went on from, or from nothing."""
        is_first = self.result.frames == 0 and self._step is None
        self._session = session
        self._finished = False
        if session.resumed_from:
            path = self.path / "checkpoints" / session.resumed_from
            try:
                self.pipeline.restore(checkpoint.read(path)[0])
            except SnapshotError as error:
                self.result.notes.append(f"cannot begin where the agent did: {error}")
        elif not is_first:
            self.pipeline.close()
            self.pipeline = self._fresh_pipeline()

    def _obey(self, entry: r.Journal) -> None:
        try:
            apply(self.pipeline, entry.command, entry.arguments)
        except (UsageError, KeyError, ValueError) as error:
            self.result.notes.append(f"journal before frame {entry.before_sequence}: {error}")

    def _compare_decision(self, recorded: r.Decision) -> None:
        step = self._step
        if not self._same_config or step is None or step.frame.sequence != recorded.sequence:
            return
        value = step.score.value if step.score is not None else None
        same = (step.verdict.accepted, step.verdict.reason) == (recorded.accepted, recorded.reason)
        if not same or not _same_number(value, recorded.value):
            self.result.decision_differences += 1
            self.result.differ(recorded.sequence)

    def _compare_activation(self, recorded: r.Activation) -> None:
        step = self._step
        if not self._same_config or step is None or step.frame.sequence != recorded.sequence:
            return
        self.result.activations += 1
        found = step.activation.learner_hash if step.activation is not None else ""
        self.result.hash, self.result.recorded_hash = found, recorded.hash
        self.result.at_sequence = recorded.sequence
        if found != recorded.hash:
            self.result.activation_differences += 1
            self.result.differ(recorded.sequence)

    def _mark(self, sequence: int, recorded_hash: str, take) -> None:
        if self._same_config and recorded_hash and self._step is not None and self._step.frame.sequence == sequence:
            self.result.hash, self.result.recorded_hash = take(), recorded_hash
            self.result.at_sequence = sequence

    def _end(self, end: r.End) -> None:
        """A session's proper end: the epoch being learnt was made active, as finish does."""
        if self._step is None:
            return
        self._finish_pipeline()
        self._mark(self._step.frame.sequence, end.hash, self.pipeline.learner_hash)
        self.result.ended = self._same_config and bool(end.hash)

    def _finish_pipeline(self) -> None:
        if not self._finished:
            self._finished = True
            self.pipeline.finish()

    def _finish(self) -> None:
        """The last frame is through: without a recorded mark to compare with, the hash is that of the end."""
        self.result.missing = self._source.missing
        if self.result.missing:
            self.result.notes.append(f"{self.result.missing} recorded frames have no pixels any more")
        self.result.notes += [str(damage) for damage in self._source.damage[:10]]
        if self.result.recorded_hash is None:
            self._finish_pipeline()
            self.result.hash = self.pipeline.learner_hash()
            if self._step is not None:
                self.result.at_sequence = self._step.frame.sequence


def _same_number(a: float | None, b: float | None) -> bool:
    return a == b or (a is not None and a != a and b is None)


def config_of(session: r.Session, notes: list[str] | None = None) -> Config:
    """Return the config that was recorded; keys that this version does not know are left out and noted.

    Raises
    ------
    UsageError
        The config cannot be read: give one with --config.
    """
    return recorded_config(session.config_text, notes)
