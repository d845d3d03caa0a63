"""Records a source with everything the agent decides about it, for replay.

The `record` command: a run whose folder is the recording itself. tools/run.py does the work.
"""

import argparse
import pathlib

from stillwatch.process import RunOptions
from stillwatch.tools.run import add_voice_arguments, config_from, run_watched
from stillwatch.tools.shared import RunVoice, existing, set_up_logging


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="file, image, folder, rtsp://…, v4l2:/dev/…, synthetic:NAME")
    parser.add_argument("folder", metavar="DIR", help="the recording's folder; an interrupted recording goes on")
    parser.add_argument("--config", type=existing, metavar="CONFIG", help="TOML file (default: the defaults)")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="override section.key=value")
    parser.add_argument(
        "--frames",
        choices=("packets", "jpeg", "lossless"),
        help="how frames are kept (default: storage.record_frames; sources without packets are kept lossless)",
    )
    parser.add_argument("--fresh", action="store_true", help="start anew: ignore the folder's checkpoints")
    add_voice_arguments(parser)


def main(args: argparse.Namespace) -> int:
    set_up_logging(verbose=args.verbose, form=args.log)
    if args.frames:
        args.set.append(f"storage.record_frames={args.frames}")
    folder = pathlib.Path(args.folder)
    voice = RunVoice(quiet=args.quiet, as_json=args.json)
    code = run_watched(config_from(args), RunOptions(out=folder, record=folder, fresh=args.fresh), voice)
    voice.note(f"replay it with: stillwatch replay {folder}")
    return code
