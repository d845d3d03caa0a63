"""Run every bad file through the real source, capture and gate, each in a process of its own, and compare outcomes.

The command `stillwatch faults`. It judges nothing but: a clear outcome, the frames delivered, what the gate
refused, time and memory.
"""

import multiprocessing
import os
import resource
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from stillwatch.base import AgentError, CameraRule, RealClock
from stillwatch.gate import Gate
from stillwatch.settings import GateConfig, SourceConfig
from stillwatch.sources import Capture, open_source
from stillwatch.tools.checks import corpus as faults_corpus
from stillwatch.tools.checks.corpus import Case
from stillwatch.tools.checks.stress import stress_cases
from stillwatch.tools.shared import find_data_or_none, print_json

LONGEST_S = 60.0
MOST_MB = 600.0
PRELOAD = [
    "stillwatch.tools.checks.faults",
    "stillwatch.sources.video",
    "stillwatch.sources.images",
    "stillwatch.sources.synthetic",
]


@dataclass
class Row:
    """One line of the table. outcome: `all N`, `some N`, `none`, `crash`, `hang`; fault: why it is not as expected."""

    input: str
    expected: str
    outcome: str
    frames: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    peak_rss_mb: float | None = None
    scene_changes: int = 0
    states: list[str] = field(default_factory=list)
    message: str = ""
    fault: str = ""


def add_arguments(parser) -> None:
    """Add this command's options."""
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--data", metavar="DIR", help="folder of real data; its stress/ is run where present")
    parser.add_argument("--only", metavar="TEXT", default="", help="run only inputs whose name holds TEXT")
    parser.add_argument("--keep", metavar="DIR", help="write the corpus here and keep it")


def main(args) -> int:
    """Run the corpus; 0 if every row is as expected, 3 if not."""
    data = find_data_or_none(args.data)
    with tempfile.TemporaryDirectory(prefix="stillwatch-faults-") as scratch:
        folder = Path(args.keep or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        cases = faults_corpus.make_corpus(folder)
        if data is not None and (data / "stress").is_dir():
            cases += stress_cases(data / "stress")
        rows = []
        for case in cases:
            if args.only in case.input:
                rows.append(run_case(case))
                if not args.json:
                    print(_line(rows[-1]), flush=True)
    wrong = [row for row in rows if row.fault]
    if args.json:
        print_json({"rows": [asdict(row) for row in rows]})
    else:
        peak = max((row.peak_rss_mb or 0.0 for row in rows), default=0.0)
        print(f"{len(rows)} inputs, {len(wrong)} not as expected, peak memory {peak:.0f} MB")
    return 3 if wrong else 0


def run_case(case: Case, longest_s: float = LONGEST_S) -> Row:
    """Run one case in a child process; a crash or a hang becomes a row like any other."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(case.uri, case.rule, sender), daemon=True)
    started = time.perf_counter()
    child.start()
    sender.close()
    row = Row(case.input, case.expected, "hang")
    try:
        if receiver.poll(longest_s):
            row = Row(case.input, case.expected, **receiver.recv())
    except EOFError:
        child.join(longest_s)
        row = Row(case.input, case.expected, "crash", message=f"the process ended with {child.exitcode}")
    row.seconds = round(time.perf_counter() - started, 3)
    child.kill()
    child.join()
    receiver.close()
    row.fault = _fault(case, row)
    return row


def _child(uri: str, rule: CameraRule, sender: Connection) -> None:
    """Read `uri` to its end and send what came of it. Runs in a process of its own."""
    frames, gate, states = 0, None, Counter[str]()
    error: AgentError | None = None
    clock, config = RealClock(), SourceConfig()
    try:
        capture = Capture(lambda: open_source(uri, config, clock), config, clock)
        capture.start()
        while not capture.ended:
            frame = capture.next(1.0)
            if frame is None:
                continue
            frames += 1
            if gate is None:
                gate = Gate(GateConfig(), height=frame.grey.shape[0], width=frame.grey.shape[1])
            elif gate.shape != frame.grey.shape:
                gate.reshape(*frame.grey.shape)
            states[str(gate.judge(frame, rule).state)] += 1
        error = capture.error
    except AgentError as refused:
        error = refused
    counts = gate.counters() if gate is not None else {}
    counts.pop("accepted", None)
    outcome = "none" if not frames else f"some {frames}" if error is not None else f"all {frames}"
    sender.send(
        {
            "outcome": outcome,
            "frames": frames,
            "scene_changes": counts.pop("scene_changes", 0),
            "refused": {kind: count for kind, count in counts.items() if count},
            "states": sorted(states),
            "message": str(error) if error is not None else "",
            "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0, 1),
        }
    )
    sender.close()
    os._exit(0)  # whatever a decoder's library does at exit is not this case's


def _fault(case: Case, row: Row) -> str:
    """Return what is not as the case expects; empty when all is."""
    if row.outcome in ("crash", "hang"):
        return f"{row.outcome}: {row.message}"
    if row.outcome != case.expected and row.outcome.split()[0] != case.expected and case.expected != "any":
        return f"expected {case.expected}, got {row.outcome}"
    if not row.outcome.startswith("all") and (not row.message or "\n" in row.message):
        return "frames are missing without one clear line that says why"
    if (row.peak_rss_mb or 0.0) > MOST_MB:
        return f"{row.peak_rss_mb} MB are over {MOST_MB:g} MB"
    for kind, least in case.refused.items():
        if row.refused.get(kind, 0) < least:
            return f"refused {row.refused.get(kind, 0)} as {kind}, expected at least {least}"
    if case.only and set(row.refused) - set(case.refused):
        return f"refused for other reasons: {row.refused}"
    if case.scene_changes is not None and row.scene_changes != case.scene_changes:
        return f"{row.scene_changes} scene changes, expected {case.scene_changes}"
    return ""


def _line(row: Row) -> str:
    refused = " ".join(f"{kind}:{count}" for kind, count in row.refused.items())
    memory = f"{row.peak_rss_mb:.0f} MB" if row.peak_rss_mb is not None else "-"
    mark = "ok " if not row.fault else "BAD"
    return (
        f"{mark} {row.input:38} {row.expected:9} {row.outcome:9} {row.seconds:6.2f} s {memory:>7}  {refused}"
        f"{'  ' + row.fault if row.fault else ''}{'  (' + row.message + ')' if row.message else ''}"
    )
