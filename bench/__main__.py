"""Measure everything that this project claims to be fast.

    make bench
    python -m bench [--only prefix sql start] [--rounds 3]

Each piece of work is done both ways, in turn, in one run; the machine should be idle otherwise.
Parts that cannot be measured are named with the reason. The exit status is 1 if results differed.
"""

import argparse
import json
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from bench import machine, page
from bench.data import UnavailableError
from bench.rows import DifferError
from lm_eval_ext.atomic import atomic_text

PARTS = tuple(page.TITLES)
LEAST_KEPT = 3
"""Rounds that a range of results needs."""

LAST = Path(__file__).with_name("last.json")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "measurements.md"


def main() -> None:
    """Measures, prints, and writes the results if requested."""
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=(__doc__ or "").splitlines()[0]
    )
    parts = f"which parts, of {', '.join(PARTS)}"
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=parts
    )
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured")
    parser.add_argument(
        "--share", type=float, default=1.0, help="fraction of the sizes, such as 0.1"
    )
    parser.add_argument(
        "--keep", action="store_true", help="write last.json and docs/measurements.md"
    )
    options = parser.parse_args()
    if options.rounds < 1 or not 0 < options.share <= 1:
        parser.error("--rounds must be 1 or more, --share above 0 and at most 1")
    if options.keep and (options.share != 1 or options.rounds < LEAST_KEPT):
        parser.error(f"--keep needs full sizes and {LEAST_KEPT} rounds or more")
    differed = False
    for name in options.only:
        found, problem = measure(name, options.rounds, options.share)
        differed = differed or isinstance(problem, DifferError)
        if options.keep and not isinstance(problem, DifferError):
            keep(name, found)
    sys.exit(differed)


def measure(name: str, rounds: int, share: float) -> tuple[dict[str, Any], Exception | None]:
    """Measures a part and prints its table; returns its record and the error, if any."""
    rows, problem = [], None
    try:
        for row in import_module(f"bench.{name}").rows(rounds, share):
            rows.append(row)
            say(f"{row.work}, {row.size:,} {row.unit}: {page.number(row.ratio)}")
    except (UnavailableError, DifferError) as error:
        problem = error
        say(f"{name}: not measured: {error}")
    if rows:
        lines: Iterable[str] = ["", page.table(rows), *page.remarks(rows), ""]
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()
    record = {
        "machine": machine.describe(),
        "rounds": rounds,
        "rows": [row.as_dict() for row in rows],
        "problem": str(problem or ""),
    }
    return record, problem


def keep(name: str, found: dict[str, Any]) -> None:
    """Replaces the last results of a part."""
    record = json.loads(LAST.read_text(encoding="utf-8")) if LAST.exists() else {}
    record[name] = found
    with atomic_text(LAST) as file:
        file.write(json.dumps(record, indent=1) + "\n")
    page.put(PAGE, record)


def say(text: str) -> None:
    """Prints progress on stderr."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
