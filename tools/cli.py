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
    "report": ("report", "write one self-contained HTML report of a run or ground folder"),
    "record": ("record", "record a source with everything the agent decides, for replay"),
    "replay": ("replay", "replay a recording: the same bits again, or what another config would have done"),
    "compare": ("compare", "compare two runs: events, models, novelty"),
    "inspect": ("inspect", "show what is in a checkpoint, recording, run folder or log file"),
    "recover": ("recover", "salvage a damaged recording or run folder, and say what was lost"),
    "export": ("export_mcap", "write a recording as MCAP, to look at in Foxglove"),
    "import": ("import_frames", "make a recording of an MCAP file or a folder of images with time stamps"),
    "demo": ("demo", "run the agent on its embedded scene with a ground station beside it"),
    "check-config": ("check_config", "list every fault of a config, then its memory by stage"),
    "warm-up": ("warm_up", "compile every kernel into the cache, in a process that ends"),
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
        command = place.add_parser(member or name, help=text, description=text)
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
