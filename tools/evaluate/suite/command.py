"""The command `stillwatch evaluate suite`: every group's rows as they come, then found, false an hour and mean AUC.

Called by tools/cli.py. Seeds 0 to 59 are for development; 1000 to 1059 are held: nobody chooses a constant on them,
their figures are given once, beside the first. It must not tune anything: one config for all rows.
"""

import functools
import multiprocessing
import os
import pathlib
import time
from collections.abc import Iterator

from msgspec import structs

from stillwatch.base import UsageError
from stillwatch.settings import Config, load_config
from stillwatch.tools.evaluate.baselines import BASELINES
from stillwatch.tools.evaluate.command import chosen_baselines
from stillwatch.tools.evaluate.figures import mean_of, rounded
from stillwatch.tools.evaluate.suite.cases import GROUPS, Case, cases_of
from stillwatch.tools.evaluate.suite.runner import run_case
from stillwatch.tools.shared import add_data_argument, existing, find_data, print_json

PLANS = {"full": (0, 0, 4), "usual": (5, 3, 1), "quick": (2, 1, 1)}  # starts, loops, clips a transform; 0: all
WORLDS = {"full": 60, "usual": 60, "quick": 12}
QUIET_HOURS = {"full": 24.0, "usual": 3.0, "quick": 0.5}
QUICK_TRANSFORMS = 3  # every third one


def add_arguments(parser) -> None:
    """Add the command's options."""
    parser.epilog = (
        "Seeds 0-59 are for development. Seeds 1000-1059 are held back: no constant may be chosen on them; look at "
        "them once, at the end, and give their figures beside the first."
    )
    parser.add_argument("--worlds", metavar="N", type=int, default=None, help="made worlds (default: 60; quick: 12)")
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="seed of the first made world (default: 0)")
    parser.add_argument(
        "--hours", metavar="H", type=float, default=None, help="of quiet and of long (default: 3; quick: 0.5; full: 24)"
    )
    parser.add_argument("--groups", metavar="NAMES", default=",".join(GROUPS), help=f"of {', '.join(GROUPS)}")
    plan = parser.add_mutually_exclusive_group()
    plan.add_argument("--quick", action="store_const", const="quick", dest="plan", help="a part, for a first look")
    plan.add_argument(
        "--full", action="store_const", const="full", dest="plan", help="all starts, every transform on 4"
    )
    parser.add_argument("--jobs", metavar="J", type=int, default=1, help="processes (default: 1)")
    parser.add_argument(
        "--config", type=existing, metavar="FILE", help="configuration; the defaults where none is given"
    )
    parser.add_argument("--set", metavar="K=V", action="append", default=[], dest="overrides", help="change a setting")
    parser.add_argument("--baselines", metavar="NAMES", default="none", help=f"AUC of {', '.join(BASELINES)} as well")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_data_argument(parser)
    parser.set_defaults(plan="usual")


def main(args) -> int:
    """Run the suite and print; the exit code is 0 however good the figures are."""
    data = find_data(args.data)
    groups = tuple(name.strip() for name in args.groups.split(",") if name.strip())
    for name in groups:
        if name not in GROUPS:
            raise UsageError(f"--groups: no group {name!r}; there are {', '.join(GROUPS)}")
    worlds = WORLDS[args.plan] if args.worlds is None else args.worlds
    hours = QUIET_HOURS[args.plan] if args.hours is None else args.hours
    if worlds < 0 or args.seed < 0 or args.jobs < 1 or not 0.0 <= hours <= 1000.0:
        raise UsageError("--worlds, --seed and --hours must not be below 0, nor --jobs below 1, nor --hours above 1000")
    baselines = chosen_baselines(args.baselines, ())
    config = load_config(pathlib.Path(args.config) if args.config else None, args.overrides, opens_source=False)
    config = structs.replace(config, publish=structs.replace(config.publish, endpoint=""))
    seeds = range(args.seed, args.seed + worlds)
    cases = cases_of(data, groups, seeds, *PLANS[args.plan], quiet_hours=hours)
    if args.plan == "quick":
        shown = [case for case in cases if case.group == "transform"][::QUICK_TRANSFORMS]
        cases = [case for case in cases if case.group != "transform" or case in shown]
    begun = time.perf_counter()
    rows = []
    for row in run_all(cases, data, config, baselines, args.jobs):
        rows.append(row)
        if not args.json:
            print_row(row)
    groups_found = by_group(rows)
    result = {
        "rows": rows,
        **summary(rows),
        "groups": groups_found,
        "above_best_baseline_on_every_group": above_on_every_group(groups_found),
        "quiet_alerts_in_24_h": alerts_in_a_day(groups_found),
        "seconds": round(time.perf_counter() - begun, 1),
    }
    if args.json:
        print_json(result)
    else:
        print_summary(result)
    return 0


def run_all(cases: list[Case], data: pathlib.Path, config: Config, baselines, jobs: int) -> Iterator[dict]:
    """Yield the row of every case, in their order, as each comes."""
    one = functools.partial(run_case, data=data, config=config, baselines=baselines)
    if jobs == 1:
        yield from map(one, cases)
        return
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(one, cases)


def summary(rows: list[dict]) -> dict:
    """Return found, total, false_alerts_per_hour and mean_auc of rows, and each baseline's mean AUC."""
    hours = sum(row["hours"] for row in rows)
    false = sum(row["false_alerts"] for row in rows)
    names = list(rows[0]["baselines"]) if rows else []
    return {
        "found": sum(row["events_found"] for row in rows),
        "total": sum(row["events_total"] for row in rows),
        "false_alerts": false,
        "other_alerts": sum(row["other_alerts"] for row in rows),
        "hours": rounded(hours),
        "false_alerts_per_hour": rounded(false / hours) if hours else None,
        "mean_auc": mean_of(row["auc"] for row in rows),
        "baselines_mean_auc": {name: mean_of(row["baselines"][name] for row in rows) for name in names},
    }


def above_on_every_group(groups: dict[str, dict]) -> bool | None:
    """Return whether our mean AUC is above every baseline's on every group; None where no group has both."""
    known = [
        (part["mean_auc"], [auc for auc in part["baselines_mean_auc"].values() if auc is not None])
        for part in groups.values()
        if part["mean_auc"] is not None
    ]
    compared = [own > max(others) for own, others in known if others]
    return all(compared) if compared else None


def alerts_in_a_day(groups: dict[str, dict]) -> float | None:
    """Return the alerts, of every kind, that 24 hours like the quiet ones would bring; None without those."""
    quiet = groups.get("quiet")
    if not quiet or not quiet["hours"]:
        return None
    return rounded((quiet["false_alerts"] + quiet["other_alerts"]) / quiet["hours"] * 24.0)


def by_group(rows: list[dict]) -> dict[str, dict]:
    """Return the summary of each group; looped starts and quiet worlds also by themselves."""
    parts = {group: [row for row in rows if row["group"] == group] for group in GROUPS}
    parts["start, looped"] = [row for row in parts["start"] if row["clip"].endswith(" loop")]
    parts["start, not looped"] = [row for row in parts["start"] if not row["clip"].endswith(" loop")]
    for group in ("made", "moving", "ahead"):
        parts[f"{group}, quiet"] = [row for row in parts[group] if not row["events_total"]]
    return {name: summary(part) for name, part in parts.items() if part}


def print_row(row: dict) -> None:
    """Print one row for people."""
    auc = "  -  " if row["auc"] is None else f"{row['auc']:.3f}"
    delay = "-" if row["median_delay_s"] is None else f"{row['median_delay_s']:.1f} s"
    others = "".join(f", {name} {'-' if auc is None else format(auc, '.3f')}" for name, auc in row["baselines"].items())
    print(
        f"{row['group']:9s} {row['clip']:34s} AUC {auc}  found {row['events_found']:2d} of {row['events_total']:2d}  "
        f"false {row['false_alerts']:2d}  delay {delay:>6s}{others}",
        flush=True,
    )


def print_summary(result: dict) -> None:
    """Print the figures of each group and of all."""
    for name, part in {**result["groups"], "all": result}.items():
        others = "".join(f", {other} {auc}" for other, auc in part["baselines_mean_auc"].items())
        print(
            f"{name:18s} found {part['found']} of {part['total']}, false {part['false_alerts']} in {part['hours']} h = "
            f"{part['false_alerts_per_hour']} an hour, of other kinds {part['other_alerts']}, "
            f"mean AUC {part['mean_auc']}{others}"
        )
    above = {True: "yes", False: "no", None: "-"}[result["above_best_baseline_on_every_group"]]
    quiet = result["quiet_alerts_in_24_h"]
    print(f"above the best plain baseline on every group: {above}")
    print(f"alerts in 24 quiet hours with nuisances: {'-' if quiet is None else quiet}")
    print(f"{result['seconds']} s")
