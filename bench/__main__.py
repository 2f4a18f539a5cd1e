"""Measure everything that this project claims to be fast.

    make bench
    python -m bench [--only prefix peers sql start] [--rounds 2]

Each piece of work is done both ways, in turn, in one run; the machine should be idle otherwise.
Parts that cannot be measured are named with the reason. The exit status is 1 if results differed.
"""

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime, timezone
from importlib import import_module, metadata
from pathlib import Path
from statistics import median
from typing import Any

from bench.data import UnavailableError
from bench.rows import TITLES, DifferError, Row, number, render, table
from lm_eval_ext.atomic import atomic_text

LEAST_KEPT = 2
"""Rounds that a range of results needs."""

LAST = Path(__file__).with_name("last.json")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "measurements.md"
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
LIBRARIES = ("lm_eval", "torch", "transformers", "numpy", "scipy", "statsmodels", "bm25s")
CPUINFO = Path("/proc/cpuinfo")


def main() -> None:
    """Measures, prints, and writes the results if requested."""
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--only", nargs="+", choices=TITLES, default=TITLES, metavar="PART",
        help=f"which parts, of {', '.join(TITLES)}",
    )  # fmt: skip
    parser.add_argument("--rounds", type=int, default=2, help="how often each is measured")
    parser.add_argument("--share", type=float, default=1.0, help="of the sizes, such as 0.1")
    parser.add_argument("--keep", action="store_true", help="write last.json and the page")
    options = parser.parse_args()
    if options.rounds < 1 or not 0 < options.share <= 1:
        parser.error("--rounds must be 1 or more, --share above 0 and at most 1")
    if options.keep and (options.share != 1 or options.rounds < LEAST_KEPT):
        parser.error(f"--keep needs full sizes and {LEAST_KEPT} rounds or more")
    differed = False
    for name in options.only:
        rows: list[Row] = []
        problem = ""
        try:
            rows.extend(told(import_module(f"bench.{name}").rows(options.rounds, options.share)))
        except (UnavailableError, DifferError) as error:
            problem = str(error)
            differed |= (different := isinstance(error, DifferError))
            say(f"{name}: not measured: {problem}")
            if different:
                continue
        if rows:
            sys.stdout.write("\n\n".join(["", *table(rows), ""]))
        if options.keep:
            about, found = machine(), [asdict(row) for row in rows]
            keep(name, {
                "machine": about, "rounds": options.rounds, "rows": found, "problem": problem
            })  # fmt: skip
    sys.exit(differed)


def told(rows: Iterator[Row]) -> Iterator[Row]:
    """Prints each row's ratio as it comes."""
    for row in rows:
        say(f"{row.work}, {row.size:,} {row.unit}: {number(median(row.ratios))}")
        yield row


def machine() -> dict[str, Any]:
    """Returns date, processor and versions."""
    import torch

    lines = CPUINFO.read_text(encoding="utf-8").splitlines() if CPUINFO.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "date": datetime.now(timezone.utc).date().isoformat(),
        "processor": (names or [platform.machine()])[0],
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in LIBRARIES},
    }


def keep(name: str, found: dict[str, Any]) -> None:
    """Replaces the last results of a part, and the page's tables."""
    record = json.loads(LAST.read_text(encoding="utf-8")) if LAST.exists() else {}
    record[name] = found
    with atomic_text(LAST) as file:
        file.write(json.dumps(record, indent=1) + "\n")
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    with atomic_text(PAGE) as file:
        file.write(f"{before}{BEGIN}\n{render(record)}\n{END}{rest.partition(END)[2]}")


def say(text: str) -> None:
    """Prints progress on stderr."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
