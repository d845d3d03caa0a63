"""Replays a recording through the same code as live, and says whether the learned state is the same, bit for bit.

The `replay` command. agent/restart/replay.py does the work; this paces it, shows progress and compares.
"""

import argparse
import pathlib
import sys
import time

import cv2

from stillwatch.base import ExitCode, UsageError, cpu_features, versions
from stillwatch.kernels.warm_up import load_all
from stillwatch.restart import Comparison, Replay
from stillwatch.settings import Config, config_hash, config_toml, load_config
from stillwatch.tools.report import compare_folders, tell_comparison
from stillwatch.tools.shared import ProgressLine, existing, print_json
from stillwatch.transport.disk import RunFolder
from stillwatch.transport.disk import recording as r
from stillwatch.transport.wire import Message, encode, kind_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recording", type=existing, metavar="RECORDING", help="folder made by record or run --record")
    parser.add_argument("--speed", metavar="S", default="max", help="0.5, 1, 10, … times real time, or max (default)")
    parser.add_argument(
        "--from",
        dest="first",
        metavar="SEQ",
        type=int,
        default=0,
        help="begin at the nearest checkpoint before this frame",
    )
    parser.add_argument("--to", dest="last", metavar="SEQ", type=int, default=2**62, help="end after this frame")
    parser.add_argument("--config", type=existing, metavar="FILE", help="another config: what would have happened")
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="with --config or the recorded config: override section.key=value",
    )
    parser.add_argument("--out", metavar="DIR", help="write the replay's messages as a run folder")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def main(args: argparse.Namespace) -> int:
    speed = _speed(args.speed)
    path = pathlib.Path(args.recording)
    config = _other_config(path, args)
    out = _folder(path, args, config)
    sink = _FolderSink(out)
    load_all()
    cv2.setNumThreads(1)
    replay = Replay(path, sink, config=config, first=args.first, last=args.last)
    sink.begin(replay)
    line = ProgressLine(enabled=sys.stderr.isatty() and not args.json)
    began_cpu = time.process_time()
    seconds, played_s = _play(replay, path, speed, line, args.last)
    cpu_seconds = time.process_time() - began_cpu
    result = replay.result
    sink.finish(replay)
    rate = played_s / seconds if seconds > 0 else 0.0
    if args.json:
        print_json({**_as_json(result, rate, seconds), "cpu_seconds": round(cpu_seconds, 3)})
    else:
        _tell(result, rate, seconds, path)
        if out is not None and config is not None:
            tell_comparison(compare_folders(path, out))
    return ExitCode.UNEQUAL if result.equal is False else ExitCode.DONE


def _speed(text: str) -> float | None:
    """Return times real time, None for as fast as possible."""
    if text == "max":
        return None
    try:
        speed = float(text.removesuffix("x"))
    except ValueError:
        speed = 0.0
    if not 0.0 < speed <= 1000.0:
        raise UsageError(f"--speed {text}: give a number in (0, 1000] or max")
    return speed


def _other_config(path: pathlib.Path, args: argparse.Namespace) -> Config | None:
    """Return the config to replay with, None for the recorded one."""
    if args.config:
        return load_config(args.config, args.set, opens_source=False)
    if not args.set:
        return None
    recorded = path / ".replay-config.toml"
    try:
        recorded.write_text(r.first_session(path).config_text, "utf-8")
        return load_config(recorded, args.set, opens_source=False)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}: give a whole config with --config") from error
    finally:
        recorded.unlink(missing_ok=True)


def _folder(path: pathlib.Path, args: argparse.Namespace, config: Config | None) -> pathlib.Path | None:
    """Return where messages go: --out, or for another config a new folder beside the recording."""
    if args.out:
        return pathlib.Path(args.out)
    if config is None:
        return None
    return path.parent / f"{path.name}-replay-{config_hash(config)[:6]}"


class _FolderSink:
    """Writes the replay's messages into a run folder, or nowhere."""

    def __init__(self, out: pathlib.Path | None):
        self._out = out
        self._folder: RunFolder | None = None

    def begin(self, replay: Replay) -> None:
        """Begin a new run folder: what an earlier replay left there would be mixed with this one."""
        if self._out is None:
            return
        for old in self._out.glob("messages-*.swlog"):
            old.unlink()
        self._folder = RunFolder(self._out, replay.clock)
        self._folder.write_config(
            config_toml(replay.config),
            config_hash(replay.config),
            agent=replay.config.agent.id,
            role="replay",
            source=f"recording:{replay.path.name}",
            versions=versions(),
            cpu=cpu_features(),
        )

    def send(self, message: Message) -> None:
        if self._folder is not None:
            self._folder.write(kind_of(message), encode(message))

    def finish(self, replay: Replay) -> None:
        if self._folder is None:
            return
        self._folder.finish({**replay.pipeline.counts().as_dict(), "hash": replay.result.hash})


def _play(
    replay: Replay, path: pathlib.Path, speed: float | None, line: ProgressLine, last: int
) -> tuple[float, float]:
    """Run all steps at the wanted speed; return (seconds taken, seconds of stream time played)."""
    final = r.last_frame(path)
    end = min(last, final.sequence if final is not None else 0)
    began = shown = time.perf_counter()
    first_t_ns = t_ns = None
    for step in replay.steps():
        t_ns = step.frame.t_ns
        first_t_ns = t_ns if first_t_ns is None else first_t_ns
        if speed is not None:
            ahead = (t_ns - first_t_ns) / 1e9 / speed - (time.perf_counter() - began)
            if ahead > 0:
                time.sleep(ahead)
        now = time.perf_counter()
        if now - shown > 0.1:
            shown = now
            line.show(_progress(step.frame.sequence, replay.first_sequence, end, replay.result.frames, now - began))
    line.clear()
    played_s = (t_ns - first_t_ns) / 1e9 if t_ns is not None and first_t_ns is not None else 0.0
    return time.perf_counter() - began, played_s


def _progress(sequence: int, first: int, end: int, frames: int, seconds: float) -> str:
    share = min((sequence - first + 1) / max(end - first + 1, 1), 1.0)
    filled = round(30 * share)
    left = seconds * (1 - share) / share if share > 0 else 0.0
    bar = "█" * filled + "░" * (30 - filled)
    return f"{bar} {100 * share:3.0f} %  {frames} frames  {frames / seconds:.0f}/s  {left:.0f} s left"


def _as_json(result: Comparison, rate: float, seconds: float) -> dict:
    return {
        "hash": result.hash,
        "recorded_hash": result.recorded_hash,
        "equal": result.equal,
        "frames": result.frames,
        "speed": round(rate, 3),
        "seconds": round(seconds, 3),
        "fps": round(result.frames / max(seconds, 1e-9), 2),
        "at_sequence": result.at_sequence,
        "ended": result.ended,
        "missing": result.missing,
        "activations": result.activations,
        "activation_differences": result.activation_differences,
        "decision_differences": result.decision_differences,
        "pixel_differences": result.pixel_differences,
        "first_difference": result.first_difference,
        "notes": result.notes,
    }


def _tell(result: Comparison, rate: float, seconds: float, path: pathlib.Path) -> None:
    print(f"{result.frames} frames in {seconds:.1f} s, {rate:.1f} times real time")
    print(f"hash of the learned state   {result.hash or '-'}")
    if result.recorded_hash is not None:
        where = "at the end" if result.ended else f"after frame {result.at_sequence}"
        print(f"recorded {where:<18} {result.recorded_hash}")
    verdict = {None: "nothing recorded to compare with", True: "equal, bit for bit", False: "NOT equal"}[result.equal]
    print(
        f"{verdict}; {result.activations} activations, {result.activation_differences} differ; "
        f"{result.decision_differences} decisions differ"
    )
    if result.equal is False or result.pixel_differences:
        _explain(result, path)
    for note in result.notes:
        print(f"note: {note}")


def _explain(result: Comparison, path: pathlib.Path) -> None:
    """Say where it began to differ, and what differs about the machine."""
    if result.first_difference >= 0:
        pixels = f"{result.pixel_differences} frames have other pixels"
        print(f"first difference at frame {result.first_difference}; {pixels}")
    session = r.first_session(path)
    here = versions()
    for name, version in sorted(session.versions.items()):
        if here.get(name) != version:
            print(f"  {name}: recorded with {version}, here {here.get(name, 'absent')}")
    if session.cpu != cpu_features():
        print(f"  CPU: recorded on {' '.join(session.cpu)}; here {' '.join(cpu_features())}")
