"""Measure everything that this project claims to be fast.

    make bench
    python -m bench [--only prefix peers real sql start page] [--rounds 3] [--share 1] [--keep]

Each piece of work is done both ways, in turn, in one run; the machine should be idle otherwise.
Parts that cannot be measured are named with the reason. The exit status is 1 if results differed.
"""

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench import models, page, real, sql
from bench.data import UnavailableError
from bench.rows import TITLES, DifferError, Row, render, table
from lm_eval_ext.atomic import atomic_text

PARTS: dict[str, Callable[[int, float], Iterator[Row]]] = {
    "prefix": models.prefix,
    "peers": models.peers,
    "real": real.rows,
    "sql": sql.rows,
    "start": models.start,
    "page": page.rows,
}
BY_ROW = "real"
"""A part that takes hours: it is kept row by row, and rows of other models stay."""
LAST = Path(__file__).with_name("last.json")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "measurements.md"
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
CPUINFO = Path("/proc/cpuinfo")


def main() -> None:
    """Measure, print, and write the results if requested."""
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=PARTS, help="parts to measure (default: all)"
    )
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds per measurement")
    parser.add_argument(
        "--share", type=float, default=1.0, help="share of the full sizes to measure, such as 0.1"
    )
    parser.add_argument("--keep", action="store_true", help="write last.json and the page")
    options = parser.parse_args()
    if options.rounds < 1 or not 0 < options.share <= 1:
        parser.error("--rounds must be 1 or more, --share above 0 and at most 1")
    if options.keep and (options.share != 1 or options.rounds == 1):
        parser.error("--keep needs full sizes and 2 rounds or more")
    has_differed = False
    for name in options.only:
        rows: list[Row] = []
        try:
            for row in PARTS[name](options.rounds, options.share):
                rows.append(row)
                sys.stderr.write(f"{row.work}, {row.baseline}: {row.speedup or row.our_time}\n")
                if options.keep and name == BY_ROW:
                    keep_rows(about(options.rounds), rows)
        except (UnavailableError, DifferError) as error:
            sys.stderr.write(f"{name}: not measured: {error}\n")
            if isinstance(error, DifferError):
                has_differed = True
            continue
        sys.stdout.write(f"\n## {TITLES[name]}\n\n{table(rows)}\n")
        if options.keep and name != BY_ROW:
            keep(name, {"about": about(options.rounds), "rows": [asdict(row) for row in rows]})
    sys.exit(has_differed)


def about(rounds: int) -> str:
    """Return date, processor with its instruction set, and versions."""
    import torch

    return (
        f"{datetime.now(timezone.utc).date()}, {rounds} rounds or more: "
        # One name may stand for processors with and without AVX-512, which are not equally fast.
        f"{_processor()} with {torch.backends.cpu.get_cpu_capability()}, {os.cpu_count()} cores, "
        f"{torch.get_num_threads()} threads for torch {version('torch')}, "
        f"transformers {version('transformers')}, lm-eval {version('lm_eval')}."
    )


def _processor() -> str:
    """Return the model of the processor, or else its architecture."""
    if CPUINFO.exists():
        for line in CPUINFO.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def keep(name: str, results: dict[str, Any]) -> None:
    """Replace the last results of a part, and the page's tables."""
    record = json.loads(LAST.read_text(encoding="utf-8"))
    record[name] = results
    record = {part: record[part] for part in PARTS if part in record}
    with atomic_text(LAST) as file:
        file.write(json.dumps(record, indent=1) + "\n")
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    with atomic_text(PAGE) as file:
        file.write(f"{before}{BEGIN}\n{render(record)}\n{END}{after}")


def keep_rows(about_now: str, rows: Sequence[Row]) -> None:
    """Add rows to the last results of :data:`BY_ROW`, or replace those of the same comparison.

    Results of another machine or of other versions are replaced as a whole, since only times of
    one machine belong in one table. The batch size of ``hf`` is measured, and may be another one.
    """
    kept: dict[tuple[str, str], dict[str, Any]] = {}
    last = json.loads(LAST.read_text(encoding="utf-8")).get(BY_ROW)
    if last and _machine_and_versions(last["about"]) == _machine_and_versions(about_now):
        for row in last["rows"]:
            kept[row["work"], _without_batch(row["baseline"])] = row
    for row in rows:
        kept[row.work, _without_batch(row.baseline)] = asdict(row)
    keep(BY_ROW, {"about": about_now, "rows": list(kept.values())})


def _machine_and_versions(text: str) -> str:
    """Return what :func:`about` says of them, without the date and the number of rounds."""
    return text.partition(": ")[2]


def _without_batch(baseline: str) -> str:
    """Return the name of a baseline without its batch size."""
    return baseline.partition(", batch size ")[0]


if __name__ == "__main__":
    main()
