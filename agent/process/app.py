"""The agent's process: builds the rooms, runs the loop, saves checkpoints, ends cleanly.

Called by tools (run, demo, record). It must not hold any stage's logic: threads, exits and files only.
"""

import contextlib
import gc
import logging
import secrets as random_secrets
import sys
from collections import deque
from dataclasses import replace
from typing import Any

import cv2
import threadpoolctl

from stillwatch.base import (
    AgentError,
    Clock,
    ExitCode,
    Frame,
    RealClock,
    SnapshotError,
    SourceState,
    combine,
    redact_uri,
    scrub,
    versions,
)
from stillwatch.outlet import Carrier, CommandBox, LiveCarrier, Outlet, RunFolderCarrier, StatusReporter, health
from stillwatch.pipeline import Pipeline, RunCounts, Step
from stillwatch.process.accounts import Accounts
from stillwatch.process.assembly import (
    make_capture,
    make_clips,
    make_metrics,
    make_nav,
    make_publisher,
    make_recorder,
    make_run_folder,
    make_session,
    make_thin_carrier,
)
from stillwatch.process.commander import Commander
from stillwatch.process.degrade import SamplingLadder
from stillwatch.process.lookahead import AHEAD, Lookahead
from stillwatch.process.memory_plan import check_memory, memory_of
from stillwatch.process.options import Progress, RunOptions, RunResult
from stillwatch.process.reload import take_over
from stillwatch.process.run_place import take_places
from stillwatch.restart import CHECKPOINTS_SPREAD, Resumed, checkpoint, resume
from stillwatch.settings import Config, config_hash, config_toml
from stillwatch.sources import Source, open_source
from stillwatch.transport.disk import checkpoints_of
from stillwatch.transport.wire import Headers, Message

logger = logging.getLogger(__name__)

NEXT_TIMEOUT_S = 0.2
SWITCH_S = 0.001  # that a thread waits for another's Python: with Python's own 5 ms two cores do 4 % less
FREEZE_AFTER_FRAMES = 200  # by then every stage has made what it keeps
IDS_SKIPPED = 100  # more events than can be raised between two checkpoints
WATCHDOG_NS = 1_000_000_000
PROGRESS_NS = 200_000_000


def run_agent(config: Config, options: RunOptions, clock: Clock | None = None) -> RunResult:
    """Run one agent until its source ends or `options.stop` is set.

    Raises
    ------
    ConfigError, SourceError, SnapshotError, TransportError
        Before the first frame only: later failures of the source are in the result.
    """
    with threadpoolctl.threadpool_limits(limits=1):  # BLAS sums differ between one thread and two
        cv2.setNumThreads(1)
        health.share_malloc_arenas()
        sys.setswitchinterval(SWITCH_S)
        agent = Agent(config, options, clock or RealClock())
        agent.start()
        try:
            agent.loop()
        finally:
            result = agent.finish()
        return result


class Agent:
    """One run: everything that lives from its start to its end.

    Parameters
    ----------
    config : Config
    options : RunOptions
    clock : Clock
    """

    def __init__(self, config: Config, options: RunOptions, clock: Clock):
        self._config, self._options, self._clock = config, options, clock
        self._asked = config  # as last read: what a reload is compared with
        source = open_source(config.source.uri, config.source, clock)
        wall_ns = clock.wall_ns()
        self._identity = (
            config.agent.id,
            f"{wall_ns // 10**9:x}-{random_secrets.token_hex(2)}",
            health.boot_id(),
            wall_ns // 10**6,
        )
        ahead = 0 if source.live or options.record is not None else AHEAD
        self.pipeline = Pipeline(config, self, clock, headers=Headers(*self._identity))
        memory = memory_of(self.pipeline, ahead)
        check_memory(config, memory, "config")
        self._notices: deque[tuple[str, str, str]] = deque(maxlen=16)  # level, code, text: for the pipeline thread
        self._box = CommandBox()
        self._open(source)
        self._ahead = Lookahead(self.pipeline, ahead, lambda: self._capture.info.frames_claimed)
        self._accounts = Accounts(
            self.pipeline, self._capture, self._live, self._thin, self._folder, self._recorder, self._clips
        )
        self._reporter = StatusReporter(
            Headers(*self._identity),
            clock,
            self.pipeline,
            self._capture,
            folder=options.out,
            config_hash=config_hash(config),
            memory_bytes=sum(n for _, n in memory),
            extra=self._accounts.of_transport,
        )
        self._outlet = Outlet(
            self._carriers(),
            clock,
            lossless=not self._capture.live,
            heartbeat=self._reporter,
            heartbeat_s=config.publish.heartbeat_s,
        )
        self._accounts.outlet = self._outlet
        self.commander = Commander(
            self.pipeline, self._box, journal=self._journal, status=self._answer_status, now_ns=clock.monotonic_ns
        )
        self._ladder = SamplingLadder(config.learning.patch_share)
        self._state = SourceState.CONNECTING
        self._is_over = False  # it has been told that more memory is resident than limits.memory_bytes
        self._fed_frames = -1  # frames when the service manager's watchdog was last fed
        self._started_ns = self._saved_ns = self._pinged_ns = self._shown_ns = clock.monotonic_ns()

    def _open(self, source: Source) -> None:
        """Make what may still refuse the config, and then what writes: a run that is refused leaves nothing behind."""
        config, options, clock = self._config, self._options, self._clock
        with contextlib.ExitStack() as undone:
            undone.callback(self.pipeline.close)
            publisher = make_publisher(config, clock)
            strict, told = options.strict, self._on_port
            self._thin = make_thin_carrier(config, clock, beside=options.out, strict=strict, on_state=told)
            self._metrics = make_metrics(config, clock, lambda: self._accounts.figures())
            nav = make_nav(config, live=source.live)
            self._places = take_places(options.out, options.record, config.agent.id, source.info.uri)
            undone.callback(self._places.undo)
            self._resumed = self._resume()
            self._folder = make_run_folder(config, options.out, clock, self._on_disk_state)
            undone.callback(self._folder.close)
            session = make_session(config, self._identity, source)
            self._recorder = make_recorder(config, options.record, clock, session, self._resumed, self._on_disk_state)
            self._clips = make_clips(config, options.out, source.live)
            self._capture = make_capture(config, clock, source, nav, self._resumed, self._recorder, self._clips)
            self._live: LiveCarrier | None = None
            if publisher is not None:
                self._live = LiveCarrier(publisher, self._box, clock, strict=strict, on_state=told)
            undone.pop_all()

    def _carriers(self) -> list[Carrier]:
        """Return everything that takes messages away."""
        messages_too = self._recorder if self._options.record != self._options.out else None  # the folder has them
        others: tuple[Carrier | None, ...] = (self._live, messages_too, self._thin, self._metrics)
        return [RunFolderCarrier(self._folder), *(carrier for carrier in others if carrier is not None)]

    def _note(self, text: str) -> None:
        logger.info("%s", text)
        if self._options.on_note is not None:
            self._options.on_note(text)

    def send(self, message: Message) -> None:
        """The pipeline's sink: messages of the time before the sender exists are kept by nobody."""
        self._outlet.send(message)
        if self._options.on_message is not None:
            self._options.on_message(message)

    # -- start, loop, end ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Write down what runs, bind the sockets, start to read. TransportError if an endpoint is taken."""
        config = self._config
        agent, run, boot, epoch = self._identity
        self._folder.write_config(
            scrub(config_toml(config)),
            config_hash(config),
            agent=agent,
            run=run,
            boot=boot,
            epoch=epoch,
            role="agent",
            source=self._capture.info.uri,
            versions=versions(),
            live=self._capture.live,
        )
        logger.info("config %s of agent %s, run %s", config_hash(config), agent, run)
        self._outlet.start()
        if self._resumed is not None:
            self.pipeline.publish_all()  # to stations this is another publisher, of whom they know nothing
        self._capture.start()
        health.notify_service_manager("READY=1")

    def loop(self) -> None:
        """Take frames until the source ends or somebody asks us to stop."""
        while not self._options.stop.is_set():
            frame = self._capture.next(NEXT_TIMEOUT_S)
            if frame is not None and self._resumed is not None:
                if frame.sequence < self._resumed.skip_before:
                    self.commander.run(None)
                    self.look_after()
                    continue
                frame = replace(frame, t_ns=frame.t_ns + self._resumed.t_offset_ns)
            self.commander.run(frame)
            self._watch_source(frame)
            if frame is not None:
                self._take(frame)
            else:
                self._see(self._ahead.drain())
                if self._capture.ended:
                    break
            self.look_after()

    def finish(self) -> RunResult:
        """Stop reading, save the state, publish the summary, close everything. Takes at most a few seconds."""
        health.notify_service_manager("STOPPING=1")
        self._capture.stop()
        error = self._capture.error
        stopped = self._options.stop.is_set()
        self._save(finished=not stopped, at_end=True)
        self._ahead.close()
        self.pipeline.finish()
        if self._clips is not None:
            self._clips.close()
        reason = "stopped" if stopped else str(error) if error is not None else "source ended"
        exit_code = int(ExitCode.DONE if error is None or stopped else error.exit_code)
        counts, learnt = self._counts(), self.pipeline.learner_hash()
        summary = {**counts.as_dict(), "hash": learnt}
        self._announce_end(summary, exit_code, scrub(reason))
        self._outlet.close()
        if self._recorder is not None:
            self._recorder.end(counts, learnt, reason)
        not_kept = self._accounts.not_kept_in_words()
        if not_kept and exit_code == ExitCode.DONE and not self._capture.live:
            exit_code = int(ExitCode.NOT_KEPT)
        ending = {**summary, "exit_code": exit_code, "reason": scrub(reason), **self._ending(), "not_kept": not_kept}
        if not self._folder.finish(ending):
            not_kept.append("summary.json")
            exit_code = exit_code or (0 if self._capture.live else int(ExitCode.NOT_KEPT))
        self.pipeline.close()
        self._places.release()
        waiting = self._thin.backlog if self._thin is not None else 0
        return RunResult(
            exit_code,
            scrub(reason),
            self._options.out,
            counts,
            learnt,
            not_kept=tuple(not_kept),
            learning=self.pipeline.progress,
            unsure=self.pipeline.certainty.text,
            waiting_alerts=waiting,
        )

    # -- one frame -------------------------------------------------------------------------------------------

    def _take(self, frame: Frame) -> None:
        if self._recorder is not None:
            frame = self._recorder.frame(frame)
        self._see(self._ahead.step(frame))
        if self.pipeline.frames == FREEZE_AFTER_FRAMES:
            gc.collect()
            gc.freeze()  # what exists now lives as long as we do: no collection need look at it again

    def _see(self, steps: list[Step]) -> None:
        """Show recorder and clips what frames led to."""
        for step in steps:
            if self._recorder is not None:
                self._record(step)
            if self._clips is not None:
                self._clips.see(step)

    def _record(self, step: Step) -> None:
        assert self._recorder is not None
        verdict, score = step.verdict, step.score
        if step.activation is not None:
            self._recorder.activation(step.frame, step.activation.learner_hash, step.activation.models.epoch)
        self._recorder.decision(
            step.frame,
            accepted=verdict.accepted,
            reason=verdict.reason,
            state=verdict.state.value,
            scene_change=verdict.scene_change,
            value=score.value if score else None,
            rarity=score.rarity if score else None,
            event=self.pipeline.events.open_id,
        )

    def _watch_source(self, frame: Frame | None) -> None:
        state = combine(self._capture.state, self.pipeline.gate_state)
        if state is SourceState.ENDED and frame is not None:
            state = SourceState.LIVE
        if state is not self._state:
            error = self._capture.error
            detail = str(error) if error is not None and state is not SourceState.LIVE else ""
            self.send(self.pipeline.summaries.source_change(state.value, self._state.value, detail, frame))
            self._state = state
            if state is SourceState.FROZEN:
                self._capture.request_reopen()

    def look_after(self) -> None:
        """What is due by the clock: watchdog, progress, checkpoint, sampling; no result changes unrecorded."""
        now_ns = self._clock.monotonic_ns()
        if self._options.reload.is_set():
            self._options.reload.clear()
            self._reload()
        while self._notices:
            self.send(self.pipeline.summaries.notice(*self._notices.popleft()))
        if now_ns - self._pinged_ns >= WATCHDOG_NS:
            self._pinged_ns = now_ns
            self._watch_memory()
            self._feed_watchdog()
        if now_ns - self._shown_ns >= PROGRESS_NS and self._options.on_progress is not None:
            self._shown_ns = now_ns
            self._options.on_progress(self.progress())
        every_ns = int(self._config.storage.checkpoint_every_s * 1e9)
        waited_ns = now_ns - self._saved_ns
        if waited_ns >= every_ns and (self.pipeline.learners.is_idle or waited_ns >= 2 * every_ns):
            self._save(finished=False)
        if self._capture.live:
            share = self._ladder.step(now_ns, self.pipeline.frames, self._capture.counters()["dropped"])
            if share is not None:
                self.commander.change("set_share", {"share": share})
                text = f"learning from {100 * share:.0f} % of the patches: the board {self._ladder.why}"
                self.send(self.pipeline.summaries.notice("warning", "sampling", text))

    def _feed_watchdog(self) -> None:
        """Tell the service manager that frames go through, or that the source is known to be away and tried again.

        Restarting would not bring a camera back; but a camera that is live whose frames do not arrive is a hang.
        """
        frames, state = self.pipeline.frames, self._state.value
        alive = frames > self._fed_frames or self._capture.state is not SourceState.LIVE
        self._fed_frames = frames
        lost = self._accounts.not_kept_in_words()
        status = f"STATUS={state}, {frames} frames, {self._counts().alerts} alerts"
        status += f"; NOT kept: {', '.join(lost)}" if lost else ""
        health.notify_service_manager(f"WATCHDOG=1\n{status}" if alive else status)

    def _watch_memory(self) -> None:
        resident, limit = health.rss_bytes(), self._config.limits.memory_bytes
        if resident > limit and not self._is_over:
            self._is_over = True
            told = f"{resident / 1e6:.0f} MB of memory in use, over limits.memory_bytes ({limit / 1e6:.0f} MB)"
            remedy = "large pictures need much while they are decoded: a smaller stream, or a higher limit"
            self._tell("error", "memory", f"{told}; the run goes on; {remedy}")

    def _reload(self) -> None:
        """Read the config again; what is wrong with it is told, and changes nothing."""
        if self._options.read_config is None:
            return
        try:
            new = self._options.read_config()
        except AgentError as error:
            self._tell("error", "config_refused", f"config not read again: {error}")
            return
        self._tell("info", "config_read", f"config read again: {take_over(self._asked, new, self.commander.change)}")
        self._asked = new

    def _tell(self, level: str, code: str, text: str) -> None:
        """Say something in the log and to subscribers."""
        logger.log(logging.ERROR if level == "error" else logging.WARNING, "%s", text)
        self._notices.append((level, code, text[:256]))

    # -- what others ask of us -------------------------------------------------------------------------------

    def progress(self) -> Progress:
        claimed, counters = self._capture.info.frames_claimed, self._capture.counters()
        read = self.pipeline.frames + counters["decimated"]
        share = min(read / claimed, 1.0) if claimed and not self._capture.live else None
        told = self.pipeline.progress, self._state.value, share, self.pipeline.certainty.why.value
        return Progress(self._counts(), self._seconds(), *told)

    def _journal(self, command: str, arguments: dict[str, Any]) -> None:
        if self._recorder is not None:
            last = self.pipeline.last_frame
            before = last.sequence + 1 if last is not None else 0
            self._recorder.journal(before, command, arguments, self._clock.wall_ns())

    def _answer_status(self) -> dict[str, Any]:
        return {
            "state": self._state.value,
            **self._counts().as_dict(),
            **self._accounts.learnt(),
            "not_kept": self._accounts.not_kept(),
            **{f"connections_{name}": count for name, count in self._accounts.connections().items()},
        }

    def _on_disk_state(self, state: str, text: str) -> None:
        """Called by whoever writes, on its own thread, when a disk stops or begins to take records."""
        self._tell("info" if state == "ok" else "error", f"disk_{state.removeprefix('disk_')}", text)

    def _on_port(self, code: str, text: str) -> None:
        """Called on the sender thread when an endpoint cannot be bound, and when it could be after all."""
        self._tell("info" if code.endswith("port_bound") else "warning", code, text)

    # -- saving ----------------------------------------------------------------------------------------------

    def _resume(self) -> Resumed | None:
        if self._options.fresh:
            return None
        resumed = resume(self._config, checkpoints_of(self._options.out), self.pipeline)
        if resumed is None:
            return None
        if resumed.after_crash:
            self.pipeline.events.skip_ids(IDS_SKIPPED)
        self.pipeline.summaries.go_on_at(resumed.last_t_ns)
        self._note(f"goes on from {resumed.told}; --fresh to start anew")
        return resumed

    def _save(self, *, finished: bool, at_end: bool = False) -> None:
        """Save a checkpoint; a disk that refuses it costs the checkpoint, not the run.

        `finished`: the source has ended. `at_end`: nothing happens after it, so that no number can be given twice.
        """
        self._saved_ns = self._clock.monotonic_ns()
        self._see(self._ahead.settle())
        frame = self.pipeline.last_frame
        if frame is None:
            return
        meta = {
            "agent": self._config.agent.id,
            "run": self._identity[1],
            "config_hash": config_hash(self._config),
            "source": redact_uri(self._config.source.uri),  # with its options: what `resume` compares
            "next_sequence": frame.sequence + 1,
            "t_ns": frame.t_ns,
            "finished": finished,
            "live": self._capture.live,
            "accepted": self.pipeline.accepted,
            "hash": self.pipeline.learner_hash(),
            "at_end": at_end,
        }
        recorder = self._recorder if self._recorder is not None and self._recorder.state == "ok" else None
        folders = [self._folder.checkpoints] + ([recorder.checkpoints] if recorder else [])
        try:
            for folder in dict.fromkeys(folders):
                path = checkpoint.save(
                    folder,
                    self.pipeline.state(),
                    meta,
                    keep=self._config.storage.checkpoints_kept,
                    spread=CHECKPOINTS_SPREAD if recorder and folder == recorder.checkpoints else 0,
                )
            if recorder is not None:
                recorder.saved(frame.sequence, self.pipeline.accepted, path, str(meta["hash"]))
        except (OSError, SnapshotError) as error:
            self._accounts.unsaved += 1
            logger.warning("checkpoint not saved: %s", error)

    def _counts(self) -> RunCounts:
        return self.pipeline.counts(self._capture.counters()["dropped"])

    def _seconds(self) -> float:
        return (self._clock.monotonic_ns() - self._started_ns) / 1e9

    def _announce_end(self, summary: dict[str, Any], exit_code: int, reason: str) -> None:
        if self._state is not SourceState.ENDED:
            last = self.pipeline.last_frame
            change = self.pipeline.summaries.source_change(SourceState.ENDED.value, self._state.value, reason, last)
            self.send(change)
        self.send(self.pipeline.summaries.summary(**summary, exit_code=exit_code, reason=reason[:256]))

    def _ending(self) -> dict[str, Any]:
        """What only summary.json has room for."""
        return {
            "seconds": self._seconds(),
            "source": self._capture.counters(),
            "suppressed": dict(self.pipeline.events.suppressed),
            "encoder_hash": self.pipeline.features.encoder_hash,
            "config_hash": config_hash(self._config),
            "peak_rss_bytes": health.peak_rss_bytes(),
            "cpu_seconds": health.cpu_seconds(with_ended=True),
            "lost_records": self._folder.lost_records,
            "clips": self._clips.counters() if self._clips is not None else {},
            "connections": self._accounts.connections(),
            **self._accounts.of_transport(),
        }
