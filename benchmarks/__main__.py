"""``python -m benchmarks [--check] [NAME…]``: measure, and print each ratio beside its goal."""

from __future__ import annotations

import argparse
import math
import os
import platform
import sys
from importlib.metadata import version

from benchmarks import api_server, chains, configs, growth, imports, reviews, serving, tasks
from benchmarks.measure import FULL, Plan
from benchmarks.rows import NotMeasuredError, Row

ROWS: tuple[Row, ...] = (
    *imports.ROWS,
    *tasks.ROWS,
    *chains.ROWS,
    *configs.ROWS,
    *reviews.ROWS,
    *serving.ROWS,
    *api_server.ROWS,
    *growth.ROWS,
)

_PACKAGES = ("flytekit", "kubernetes", "pydantic", "pluggy", "PyYAML", "orjson", "jsonpatch")


def main(argv: list[str] | None = None, plan: Plan = FULL, rows: tuple[Row, ...] = ROWS) -> int:
    """Measure what is named, by default everything.

    Args:
        argv: the arguments of the command line.
        plan: how much is measured.
        rows: what there is to measure.

    Returns:
        1 if `--check` and a ratio is beyond its limit, else 0.
    """
    names = [row.name for row in rows]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="exit 1 if a ratio is beyond its limit"
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(names)}")
    given = parser.parse_args(argv)
    if unknown := set(given.names) - set(names):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    print(machine(), end="\n\n")
    print("| what | ratio | goal | fail | |\n|---|---|---|---|---|")
    failed = False
    for row in rows:
        if given.names and row.name not in given.names:
            continue
        try:
            ratio = row.measure(plan)
        except NotMeasuredError as error:
            shown, verdict = "", f"not measured: {error}"
        else:
            shown, verdict = row.shown(ratio), row.verdict(ratio)
        failed = failed or verdict == "FAIL"
        limits = ("", "") if math.isinf(row.goal) else map(row.shown, (row.goal, row.fail))
        cells = (row.what, shown, *limits, verdict)
        print(f"| {' | '.join(cells)} |", flush=True)
    return int(failed and given.check)


def machine() -> str:
    """What it was measured on, as far as it matters."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    return f"{os.cpu_count()} CPUs, {platform.machine()}, {platform.system()}, {python}; {packages}"


if __name__ == "__main__":
    sys.exit(main())
