"""The one console script: finds the command in a table, loads only what it needs, and turns errors into exit codes.

Called by the `stillwatch` entry point. It must stay free of heavy imports: `stillwatch run` pays for no plots.
"""

import argparse
import atexit
import difflib
import importlib
import os
import signal
import sys
import threading
import traceback

from stillwatch.base import AS_SHOWN, AgentError, ConfigError, ExitCode, UsageError, __version__, scrub, shown
from stillwatch.transport.wire import TransportError

# command -> (module of stillwatch.tools, help). A command of two words is a group and its member.
COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("run", "watch a source: learn, score, alert, publish"),
    "ground": ("ground", "receive an agent's alerts and summaries, keep them, print alerts"),
    "ground-thin": ("ground_thin", "receive an agent's 32-byte frames from a modem, acknowledge, keep, print"),
    "report": ("report.command", "write one self-contained HTML report of a run, ground or recording folder"),
    "events": ("tables.command", "print a run's events: for people, as CSV, JSON, Parquet, edit list, time codes"),
    "find": ("find", "find the frames of runs that look most like a picture"),
    "topics": ("tables.command", "print what was in view, topic by topic: for people, as CSV, JSON, Parquet"),
    "scores": ("tables.command", "print a run's novelty frame by frame: for people, as CSV, JSON, Parquet"),
    "clips": ("recordings.clips", "make a video of each alert of a recording, with --overlay what was found drawn in"),
    "mask": ("mask", "draw on a frame, in a browser, what must not be watched"),
    "demo": ("demo", "run the agent in a synthetic world with a ground station beside it"),
    "record": ("record", "run on a source and record frames and decisions, for replay"),
    "replay": ("recordings.replay", "run a recording through the same pipeline again, and compare"),
    "survey": ("survey.command", "cluster the pictures of many dives at once, and write one page about them"),
    "station": ("station.command", "hear any number of agents, keep what they say, show it on a page, tell others"),
    "station user": ("station.users", "add, list, change or remove who may use a station's page"),
    "station test-notify": ("station.notify", "send a test message by each way out of a station's settings"),
    "compare": ("report.compare", "say how two runs differ: events, scores, models"),
    "inspect": ("recordings.inspect", "show what a checkpoint, recording or run folder holds"),
    "recover": ("recordings.recover", "save what is whole of a damaged recording, and say what was lost"),
    "export": ("recordings.export_mcap", "write a recording as MCAP, for Foxglove and others"),
    "import": ("recordings.import_frames", "make a recording of an MCAP file or an image folder with time stamps"),
    "control": ("control", "send one command to a running agent"),
    "health": ("field.health", "say in one line whether an agent is well; exit code 1 where it is not"),
    "doctor": (
        "field.doctor",
        "check what a person would check on site, one line each with the remedy; changes nothing",
    ),
    "service": ("field.service", "install, show or remove a systemd service that runs an agent for months"),
    "keygen": ("keygen", "make a key pair for an agent or a ground station"),
    "linksim": ("linksim", "simulate a thin link between two UDP ports: loss, delay, outages, limits"),
    "fit-encoder": ("encoders.fit", "fit a frozen encoder on sources, for use on other cameras"),
    "fit-dictionary": ("encoders.dictionary", "learn the dictionary of surveys' sparse codes from pictures"),
    "check-config": ("checks.check_config", "list every fault of a config, then its memory by stage"),
    "complete-config": ("pages.configs", "print a config with every key that it does not state, at its default"),
    "warm-up": ("warm_up", "compile every kernel into the cache, in a process that ends"),
    "faults": (
        "checks.faults",
        "run every odd, damaged and hostile input through the source code, in processes of their own",
    ),
    "reference": ("pages.reference", "write the pages of commands and settings, the man page, shell completion"),
    "thin-page": ("pages.thin", "write the page for people who build the other end of a thin link"),
    "wire-page": ("pages.wire", "write the page for people who build a ground station in another language"),
    "evaluate novelty": (
        "evaluate.command",
        "score a clip or a folder of clips against ground truth, beside baselines",
    ),
    "evaluate suite": (
        "evaluate.suite.command",
        "real clips, other starts, transforms and made worlds: found, false alerts an hour, AUC",
    ),
    "bench features": ("bench.features", "dense SIFT and HOG against OpenCV's"),
    "bench mixture": ("bench.mixture", "rows a second learnt and scored, against scikit-learn's"),
    "bench transport": ("bench.transport", "messages a second, latency, bytes an hour by link"),
    "bench pipeline": ("bench.pipeline", "frames a second, latency by stage, memory and its slope"),
    "bench find": ("bench.find", "a search by a picture over the shares of 100,000 frames"),
    "bench survey": ("bench.survey", "a survey's mixture over 100,000 pictures of twelve dives"),
    "bench files": ("bench.files", "frames of a file a second on one core and on all, beside another version"),
    "bench station": (
        "station.bench.command",
        "a fleet's messages, alerts until a page has them, pages of a full store",
    ),
    "bench detectors": ("bench.detectors", "DVR-Scan, MOG2, KNN, frame difference and ours on a clip with true events"),
    "experiment mixture-synthetic": ("experiments.mixture.command", "50 dimensions, 20 components, both orders"),
    "experiment mixture-digits": ("experiments.mixture.digits", "table 2.2's design on scikit-learn's digits"),
    "experiment mixture-mnist": (
        "experiments.mixture.command",
        "MNIST in one pass, recognition by labelled components",
    ),
    "experiment mixture-continuum": (
        "experiments.mixture.continuum",
        "a closed curve and the shared clips' patches, against the batch",
    ),
    "experiment mixture-patches": ("experiments.mixture.command", "330,000 patches of real pictures"),
    "experiment exemplars-synthetic": (
        "experiments.exemplars.command",
        "digits20 and synth50 against peers, both orders",
    ),
    "experiment exemplars-mnist": ("experiments.exemplars.command", "100 exemplars of MNIST against peers"),
    "experiment exemplars-scale": ("experiments.exemplars.command", "1.5 million vectors that nobody holds"),
    "experiment exemplars-gp": ("experiments.exemplars.command", "Gaussian-process active sets on KIN40K"),
    "experiment exemplars-frames": ("experiments.exemplars.command", "do few frames cover what happened in the clips?"),
    "experiment topics-synthetic": ("experiments.topics.command", "ten known topics, beside a mixture and LDA"),
    "experiment topics-ground": ("experiments.topics.command", "labels of patches against a made transect's ground"),
    "experiment topics-segmentation": (
        "experiments.topics.command",
        "435 motorbikes segmented together: what clumps and document groups cost",
    ),
    "experiment topics-retrieval": (
        "experiments.topics.command",
        "Caltech pictures found by their words, beside histograms, LDA, HDP and a mixture",
    ),
    "experiment encoders": ("experiments.encoders", "encoders fitted on one scene and used on another"),
    "experiment survey-caltech": (
        "experiments.survey.command",
        "clusters against labels: Caltech's classes of the thesis",
    ),
    "experiment survey-scenes": ("experiments.survey.command", "clusters against labels: any folder of class folders"),
    "experiment survey-transects": ("experiments.survey.command", "clusters against the ground of made dives"),
    "experiment survey-clumps": (
        "experiments.survey.clumps",
        "what clumps of overlapping clusters lose against all points",
    ),
    "experiment novelty-digits": ("experiments.novelty", "unseen classes and midpoints, by density"),
}

LONG_LIVED = ("run", "record")  # what they hold they hold for months

GROUPS = {
    "station": "hear any number of agents, keep what they say, show it on a page, tell others",
    "bench": "measure speed and memory, against a peer in the same run",
    "experiment": "the papers' experiments on the shared data",
    "evaluate": "score against ground truth, with baselines",
}


# Members of what is a command by itself: "station user" of "station".
GROUPED = {name: name.partition(" ")[0] for name in COMMANDS if name.partition(" ")[0] in COMMANDS and " " in name}


def build_parser(argv: list[str]) -> argparse.ArgumentParser:
    """Return the parser; only the module of the command in `argv` is imported to add its arguments."""
    parser = argparse.ArgumentParser(
        prog="stillwatch", description="A camera that watches by itself and tells people far away what is new."
    )
    parser.add_argument("--version", action="version", version=f"stillwatch {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    groups: dict[str, argparse._SubParsersAction] = {}
    wanted = " ".join(argv[:2])
    for name, (module, text) in COMMANDS.items():
        group, _, member = name.partition(" ")
        if group in COMMANDS and (member or name == GROUPED.get(wanted)) and name != wanted:
            continue  # a command that also has members is shown as itself, or as the member that is asked for
        if member and group not in groups:
            sub = commands.add_parser(group, help=GROUPS[group], description=GROUPS[group])
            groups[group] = sub.add_subparsers(dest="experiment", metavar=group.upper(), required=True)
        place = groups[group] if member else commands
        is_wanted = wanted == name if member else argv[:1] == [name]
        command = place.add_parser(member or name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        if is_wanted:
            loaded = importlib.import_module(f"stillwatch.tools.{module}")
            loaded.add_arguments(command)
            command.set_defaults(main=loaded.main)
    return parser


def open_standard_streams() -> None:
    """Give a process that was started without standard streams ones that lead nowhere, and let any text be shown.

    Else the next file opened would get their numbers, and be written into by whoever prints.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            if os.open(os.devnull, os.O_RDWR) != number:
                raise
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a locale without the letters of a file name shows them escaped
            stream.reconfigure(errors=AS_SHOWN)


def _meant(argv: list[str]) -> list[str]:
    """Return what was meant: `stillwatch clip.mp4` is `run`, nothing at all asks for help.

    UsageError for a word that is neither a command nor there to be watched.
    """
    if not argv:
        return ["--help"]
    word, commands = argv[0], dict.fromkeys(name.partition(" ")[0] for name in COMMANDS)
    if word in commands or word.startswith("-"):
        return argv
    if any(mark in word for mark in ":./\\*") or os.path.exists(word):
        return ["run", *argv]
    parts = {name.partition(" ")[2]: name for name in COMMANDS if " " in name}  # of experiment, bench, evaluate
    near = [parts[word]] if word in parts else difflib.get_close_matches(word, commands, 1)
    hint = f"did you mean {near[0]!r}?" if near else "'stillwatch --help' lists the commands"
    raise UsageError(f"{word!r} is no command, and no file or folder here; {hint}")


class Starting:
    """Says on a terminal why nothing happens yet where a start takes long: the kernels are being compiled."""

    AFTER_S = 2.0
    MARKS = "|/-\\"

    def __init__(self) -> None:
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._tell, daemon=True)

    def __enter__(self) -> None:
        if sys.stderr.isatty():
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _tell(self) -> None:
        turn, waits = 0, self.AFTER_S
        while not self._done.wait(waits):
            mark, waits = self.MARKS[turn % len(self.MARKS)], 0.2
            sys.stderr.write(f"\r{mark} starting; a first start compiles for about 25 s, later ones do not")
            sys.stderr.flush()
            turn += 1
        if turn:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()


def tell_error(text: str) -> None:
    print(shown(scrub(text)), file=sys.stderr)


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code, one of `ExitCode`."""
    open_standard_streams()
    argv = sys.argv[1:] if argv is None else argv
    try:
        argv = _meant(argv)
        with Starting():
            if argv[0] in LONG_LIVED and threading.current_thread() is threading.main_thread():
                importlib.import_module("stillwatch.tools.shared").end_while_starting()
                importlib.import_module("stillwatch.tools.warm_up").compile_apart()
            parser = build_parser(argv)
        args = parser.parse_args(argv)
        return int(args.main(args))
    except ConfigError as error:
        for problem in error.problems:
            tell_error(str(problem))
        return int(error.exit_code)
    except AgentError as error:
        tell_error(f"stillwatch: {error}")
        return int(error.exit_code)
    except TransportError as error:
        tell_error(f"stillwatch: {error}")
        return int(ExitCode.FAULT)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("stillwatch"):
            raise
        print(
            f"stillwatch: this command needs {error.name}: pip install 'stillwatch[tools,bench,tables]'",
            file=sys.stderr,
        )
        return int(ExitCode.USAGE)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output (head, less) went away: no traceback about it
        return int(ExitCode.DONE)
    except Exception:  # noqa: BLE001 - a fault of ours: told whole, but without the secrets that its texts may hold
        tell_error(traceback.format_exc())
        return int(ExitCode.FAULT)


def leave(code: int) -> None:
    """End the process with this exit code, whatever threads are still about.

    A thread that nobody waits for any more (a camera that does not answer, a picture half decoded) may be inside
    OpenCV, which takes the interpreter's lock when it returns: a segmentation fault where the interpreter is half
    taken down. So what an interpreter does at its end is done here, but for the taking down.
    """
    if any(thread.daemon for thread in threading.enumerate()):
        threading._shutdown()  # type: ignore[attr-defined]  # waits for the threads that are no daemons
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (BrokenPipeError, ValueError):  # its reader went away; closed
                pass
            except OSError:
                code = code or int(ExitCode.FAULT)
        os._exit(code)
    sys.exit(code)


def script() -> None:
    """The console script."""
    leave(main())


if __name__ == "__main__":
    script()
