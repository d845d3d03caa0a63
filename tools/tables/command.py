"""Prints a run's events, scores or topics as a table.

The `events`, `scores` and `topics` commands. agent/runs reads the folder.
"""

import argparse
import base64
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

from stillwatch.base import UsageError, shown
from stillwatch.runs import RunTables, Table, open_run, span
from stillwatch.tools.shared import existing, print_json, words
from stillwatch.tools.tables.formats import csv_lines, edit_list, time_codes, write_parquet

DEFAULT_FPS = 25.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=existing, metavar="RUN", help="run folder, ground station's folder or recording")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="comma-separated values with a heading")
    form.add_argument("--json", action="store_true", help="one JSON object: {rows: [...]}")
    form.add_argument("--parquet", metavar="FILE", help="write a Parquet file (needs pyarrow)")
    if parser.prog.endswith("events"):
        parser.add_argument("--kinds", action="store_true", help="the kinds of visits instead of the events")
        form.add_argument("--edl", action="store_true", help="an edit list (CMX 3600) for video editors")
        form.add_argument("--timecodes", action="store_true", help="start,end,start,end … as HH:MM:SS.mmm")
        parser.add_argument(
            "--fps", type=float, default=DEFAULT_FPS, metavar="HZ", help="frames a second of the edit list (25)"
        )


def main(args: argparse.Namespace) -> int:
    tables = open_run(args.run)
    what = "kinds" if getattr(args, "kinds", False) else args.command
    if what == "kinds" and (args.edl or args.timecodes):
        raise UsageError(
            "--kinds: kinds of visits have no edit list and no time codes; leave out --edl and --timecodes"
        )
    table = {"scores": tables.scores, "topics": tables.topics, "events": tables.events, "kinds": tables.kinds}[what]()
    if args.json:
        print_json({"rows": [row | seen for row, seen in zip(table.rows, _seen(table, tables), strict=True)]})
    elif args.csv:
        sys.stdout.writelines(csv_lines(table))
    elif args.parquet:
        write_parquet(table, pathlib.Path(args.parquet))
        print(args.parquet)
    elif getattr(args, "edl", False):
        if not 1.0 <= args.fps <= 1000.0:
            raise UsageError(f"--fps: {args.fps:g} is not a rate in [1, 1000]")
        clip = pathlib.PurePath(str(tables.info.get("source", "") or tables.path.name)).name
        sys.stdout.writelines(edit_list(table, args.fps, clip))
    elif getattr(args, "timecodes", False):
        print(",".join(time_codes(table)))
    else:
        _tell(table)
    return 0


def _seen(table: Table, run: RunTables) -> Iterator[dict[str, Any]]:
    """Yield what shows an event or a kind of visits, for each row; None where nothing does.

    Its best picture as a data URI; of an event, its clip's file too.
    """
    pictures = {"events": run.pictures, "kinds": run.kind_pictures}.get(table.name, dict)()
    for row in table:
        jpeg = pictures.get(row["id"] if table.name == "events" else row.get("kind", -1))
        shown_by = {"picture": f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}" if jpeg else None}
        if table.name == "events":
            clip = run.path / "clips" / f"{row['id']}.mp4"
            shown_by["clip"] = str(clip) if clip.exists() else None
        yield shown_by if table.name in ("events", "kinds") else {}


def _tell(table: Table) -> None:
    """Print the table for a person."""
    if table.name == "scores":
        for row in table:
            score = f"{row['score']:8.3f}" if row["score"] is not None else " " * 8
            print(f"{words.moment(row['stream_s'])}  frame {row['frame']:<8}{score}  {shown(row['state'])}")
        return
    if table.name == "topics":
        _tell_topics(table)
        return
    if table.name == "kinds":
        _tell_kinds(table)
        return
    for row in table:
        parts = [words.moment(row["stream_s"])] + [f"frame {row['frame']}"] * (row["frame"] is not None)
        parts += [f"event {row['id']}", words.title_of(row["kind"]).lower()]
        there = words.where(row["x"], row["y"], row["boxes"])
        parts += [there] * bool(there)
        parts += [row["how_rare"]] * bool(row["how_rare"])
        parts += ["no end received"] * (row["phase"] != "end")
        parts += [f"for {words.duration(row['duration_s'])}"] * (row["phase"] == "end" and row["duration_s"] > 0)
        print(shown("  ".join(parts)))
    if not len(table):
        print("no event was told")


def _tell_kinds(table: Table) -> None:
    """Print a line a kind: how many came, how often, when."""
    for row in table:
        often = f"once in {span(row['once_in_s'])}" if row["once_in_s"] and row["visits"] > 1 else "once so far"
        parts = [row["name"] or f"kind {row['kind']}", words.count(row["visits"], "visit"), often]
        first, last = words.moment(row["first_s"]), words.moment(row["last_s"])
        parts.append(f"at {first}" if row["visits"] == 1 else f"first {first}, last {last}")
        print(shown("  ".join(parts)))
    if not len(table):
        print("no kind of visits was told")


def _tell_topics(table: Table) -> None:
    """Print a line a frame: what is in view, the largest share first."""
    lines: dict[tuple[str, int], list[str]] = {}
    for row in table:
        head = [f"{words.moment(row['stream_s'])}  frame {row['frame']:<8}"]
        name = row["name"] or f"topic {row['topic']}"
        lines.setdefault((row["run"], row["frame"]), head).append(f"{row['share']:.0%} {name}")
    for parts in lines.values():
        print(shown("  ".join(parts)))
    if not lines:
        print("no topic was told")
