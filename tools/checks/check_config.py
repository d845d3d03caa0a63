"""Lists every fault of a config, then the memory it plans by stage.

The `check-config` command. The stages are built for it, so that the table is what a run will allocate.
"""

import argparse
import sys

from stillwatch.base import ConfigError
from stillwatch.process import check_memory, planned_memory
from stillwatch.settings import Problem, load_config
from stillwatch.tools.shared import existing, print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", type=existing, metavar="CONFIG", help="TOML file")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="override section.key=value")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def main(args: argparse.Namespace) -> int:
    problems, memory = [], []
    try:
        config = load_config(args.config, args.set, opens_source=False)
        memory = planned_memory(config)
        check_memory(config, memory, str(args.config))
    except ConfigError as error:
        problems = [p if isinstance(p, Problem) else Problem(args.config, "", "", str(p)) for p in error.problems]
    total = sum(n_bytes for _, n_bytes in memory)
    if args.json:
        errors = [{"file": p.file, "key": p.key, "value": p.value, "message": p.message} for p in problems]
        stages = [{"stage": stage, "bytes": n_bytes} for stage, n_bytes in memory]
        print_json({"errors": errors, "memory": stages, "total_bytes": total if memory else None})
        return ConfigError.exit_code if problems else 0
    if memory:
        for stage, n_bytes in memory:
            print(f"{stage:<28}{n_bytes:>14,} bytes")
        limit = config.limits.memory_bytes
        print(f"{'total':<28}{total:>14,} bytes, {100 * total / limit:.0f} % of limits.memory_bytes {limit:,}")
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        print(f"{args.config}: good")
    return ConfigError.exit_code if problems else 0
