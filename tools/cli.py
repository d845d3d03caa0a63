"""The one console script: finds the command in a table, loads only what it needs, and turns errors into exit codes.

Called by the `stillwatch` entry point. It must stay free of heavy imports: `stillwatch run` pays for no plots.
"""

import argparse
import importlib
import signal
import sys

from stillwatch.agent.errors import AgentError, ConfigError
from stillwatch.agent.secrets import scrub
from stillwatch.agent.version import __version__
from stillwatch.transport.errors import TransportError

# command -> (module of stillwatch.tools, help). A command of two words is a group and its member.
COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("run", "watch a source: learn, score, alert, publish"),
    "ground": ("ground", "receive an agent's alerts and summaries, keep them, print alerts"),
    "ground-thin": ("ground_thin", "receive an agent's 32-byte frames from a modem, acknowledge, keep, print"),
    "report": ("report", "write one self-contained HTML report of a run, ground or recording folder"),
    "demo": ("demo", "run the agent on its embedded scene with a ground station beside it"),
    "record": ("record", "run on a source and record frames and decisions, for replay"),
    "replay": ("replay", "run a recording through the same pipeline again, and compare"),
    "compare": ("compare", "say how two runs differ: events, scores, models"),
    "inspect": ("inspect", "show what a checkpoint, recording or run folder holds"),
    "recover": ("recover", "save what is whole of a damaged recording, and say what was lost"),
    "export": ("export_mcap", "write a recording as MCAP, for Foxglove and others"),
    "import": ("import_frames", "make a recording of an MCAP file or an image folder with time stamps"),
    "control": ("control", "send one command to a running agent"),
    "keygen": ("keygen", "make a key pair for an agent or a ground station"),
    "linksim": ("linksim", "simulate a thin link between two UDP ports: loss, delay, outages, limits"),
    "fit-encoder": ("fit_encoder", "fit a frozen encoder on sources, for use on other cameras"),
    "check-config": ("check_config", "list every fault of a config, then its memory by stage"),
    "warm-up": ("warm_up", "compile every kernel into the cache, in a process that ends"),
    "faults": ("faults", "run every odd, damaged and hostile input through the source code, in processes of their own"),
    "thin-page": ("thin_page", "write the page for people who build the other end of a thin link"),
    "wire-page": ("wire_page", "write the page for people who build a ground station in another language"),
    "evaluate novelty": ("evaluate", "score a clip or a folder of clips against ground truth, beside baselines"),
    "bench features": ("bench_features", "dense SIFT and HOG against OpenCV's"),
    "bench mixture": ("bench_mixture", "rows a second learnt and scored, against scikit-learn's"),
    "bench transport": ("bench_transport", "messages a second, latency, bytes an hour by link"),
    "bench pipeline": ("bench_pipeline", "frames a second, latency by stage, memory and its slope"),
    "experiment mixture-synthetic": ("experiment_mixture", "50 dimensions, 20 components, both orders"),
    "experiment mixture-digits": ("experiment_mixture_digits", "table 2.2's design on scikit-learn's digits"),
    "experiment mixture-mnist": ("experiment_mixture", "MNIST in one pass, recognition by labelled components"),
    "experiment mixture-patches": ("experiment_mixture", "330,000 patches of real pictures"),
    "experiment exemplars-synthetic": ("experiment_exemplars", "digits20 and synth50 against peers, both orders"),
    "experiment exemplars-mnist": ("experiment_exemplars", "100 exemplars of MNIST against peers"),
    "experiment exemplars-scale": ("experiment_exemplars", "1.5 million vectors that nobody holds"),
    "experiment exemplars-gp": ("experiment_exemplars", "Gaussian-process active sets on KIN40K"),
    "experiment exemplars-frames": ("experiment_exemplars", "do few frames cover what happened in the clips?"),
    "experiment encoders": ("experiment_encoders", "encoders fitted on one scene and used on another"),
    "experiment novelty-digits": ("experiment_novelty", "unseen classes and midpoints, by density"),
}

GROUPS = {
    "bench": "measure speed and memory, against a peer in the same run",
    "experiment": "the papers' experiments on the shared data",
    "evaluate": "score against ground truth, with baselines",
}


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


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 2 bad usage, 3 source ended early, 4 fault, 78 bad config."""
    argv = sys.argv[1:] if argv is None else argv
    try:
        args = build_parser(argv).parse_args(argv)
        return args.main(args)
    except ConfigError as error:
        for problem in error.problems:
            print(scrub(str(problem)), file=sys.stderr)
        return error.exit_code
    except AgentError as error:
        print(scrub(f"stillwatch: {error}"), file=sys.stderr)
        return error.exit_code
    except TransportError as error:
        print(scrub(f"stillwatch: {error}"), file=sys.stderr)
        return 4
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("stillwatch"):
            raise
        print(f"stillwatch: this command needs {error.name}: pip install 'stillwatch[tools,bench]'", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output (head, less) went away: no traceback about it
        return 0


if __name__ == "__main__":
    sys.exit(main())
