"""Shows the agent at work: a synthetic world at full speed, with a ground station in a second process.

The `demo` command, which `make demo` runs. It uses the same doors as a real deployment: a socket between two
processes, run folders on both sides, a report at the end.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import threading

from stillwatch.process import RunOptions, run_agent
from stillwatch.settings import load_config
from stillwatch.tools.report import write_report
from stillwatch.tools.run import default_folder
from stillwatch.tools.shared import ProgressLine, set_up_logging, stop_on_signals
from stillwatch.transport.disk import open_run

GROUND_ENDS_WITHIN_S = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="DIR", help="where both run folders go (default: runs/ and the time)")
    parser.add_argument("--seed", type=int, default=0, help="another world")


def main(args: argparse.Namespace) -> int:
    set_up_logging(verbose=False)
    out = pathlib.Path(args.out) if args.out else default_folder()
    line = ProgressLine(enabled=sys.stderr.isatty())
    with tempfile.TemporaryDirectory(prefix="stillwatch-") as folder:
        endpoint = f"ipc://{folder}/live"
        config = load_config(
            None,
            [f'source.uri="synthetic:transect?seed={args.seed}"', f'publish.endpoint="{endpoint}"', "publish.control="],
        )
        line.say("The agent watches a synthetic seafloor transect; the ground station, a second process, says what")
        line.say("reaches it. Nothing was learnt beforehand.\n")
        ground = _start_ground(endpoint, out / "ground")
        teller = threading.Thread(target=_tell, args=(ground, line), daemon=True)
        teller.start()
        options = RunOptions(out=out / "agent", fresh=True, on_progress=line.update)
        stop_on_signals(options.stop)
        try:
            result = run_agent(config, options)
        finally:
            line.clear()
            _end(ground)
            teller.join(timeout=5.0)
    sent = sum(path.stat().st_size for path in (out / "ground").glob("*.swlog"))
    lost = sum((open_run(out / "ground").summary or {}).get("gaps", {}).values())
    line.say(
        f"\n{result.counts.frames} frames, {result.counts.alerts} alerts; "
        f"the ground station kept {sent / 1000:,.0f} kB of what it heard, "
        f"{f'{lost} messages did not arrive' if lost else 'and nothing was lost'}."
    )
    for name in ("agent", "ground"):
        line.say(f"report of the {name}: {write_report(out / name)}")
    return result.exit_code


def _start_ground(endpoint: str, out: pathlib.Path) -> subprocess.Popen:
    command = [sys.executable, "-m", "stillwatch.tools.cli", "ground", endpoint, "--out", str(out), "--until-end"]
    ground = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert ground.stdout is not None
    ground.stdout.readline()  # "listening to …": it misses nothing from here on
    return ground


def _tell(ground: subprocess.Popen, line: ProgressLine) -> None:
    assert ground.stdout is not None
    for text in ground.stdout:
        line.say(f"ground | {text.rstrip()}")


def _end(ground: subprocess.Popen) -> None:
    try:
        ground.wait(timeout=GROUND_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        ground.terminate()
        ground.wait(timeout=GROUND_ENDS_WITHIN_S)
