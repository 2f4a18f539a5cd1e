"""Makes questions on eleven databases, checks them, and writes the table of docs/fresh.md.

    python docs/generation.py --jobs 2           # all; some minutes of processor time
    python docs/generation.py shop bike_1        # prints the rows of some databases only
    python docs/generation.py --review 100       # prints 100 of the questions as well

What is checked is what was written: the gold queries of the folder must run, and no mutant may have
their results on the test suite that is built for them. ``--review`` prints questions, base and
plausible beside the query, for somebody who reads them.
"""

import argparse
import csv
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
DATA = Path(os.environ.setdefault("LM_EVAL_EXT_DATA", str(ROOT.parent / "shared" / "data")))

from support.generated import built, lexicon_of  # noqa: E402

from lm_eval_ext.benchmarks.magnifico.generate import folder  # noqa: E402
from lm_eval_ext.benchmarks.magnifico.generate.make import refused  # noqa: E402
from lm_eval_ext.errors import DataError  # noqa: E402

PAGE = Path(__file__).with_name("fresh.md")
SEED = 3
OWN = {"factory": 60, "shop": 60, "league": 40, "clinic": 40, "mess": 30}
SPIDER = {
    "hr_1": 40, "college_2": 40, "bike_1": 40, "chinook_1": 40, "apartment_rentals": 40,
    "department_store": 40,
}  # fmt: skip
"""Databases and the number of questions."""

REASONS = ("ties with a mutant", "empty", "a condition changes nothing")
HEAD = ("database", "tables, keys", "questions + solved", "drawn", "mutant", "empty", "no effect",
        "other", "processor")  # fmt: skip


@dataclass
class Row:
    """What was made of a database: cells of the table, and questions as they are read."""

    cells: list[str]
    questions: list[str]


def measured(name: str, questions: int, seed: int) -> Row:
    """Makes questions, as many as are possible, and checks what was written."""
    with tempfile.TemporaryDirectory() as temporary:
        where = Path(temporary)
        path = DATA / "spider_databases" / name / f"{name}.sqlite"
        path, out = built(name, where) if name in OWN else path, where / "out"
        began = time.process_time()
        try:
            made, said = folder.generate(
                path, out, seed=seed, questions=questions, lexicon=lexicon_of(name)
            )
        except DataError as error:
            possible = re.search(r"(\d+) questions are possible", str(error))
            if possible is None:
                raise
            return measured(name, int(possible[1]), seed)
        seconds = time.process_time() - began
        with (out / folder.EXAMPLES).open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines, delimiter="\t"))
        if lost := refused(out / f"{name}.sqlite", sorted({row["query"] for row in rows})):
            sys.exit(f"{name}: {lost}")
    found = [made.dropped.get(reason, 0) for reason in REASONS]
    cells = [
        name,
        f"{len(made.profile.entities)}, {len(made.profile.links)}",
        f"{said['questions']} + {said['support']}",
        f"{made.drawn:,}",
        *map(str, [*found, sum(made.dropped.values()) - sum(found)]),
        f"{seconds:.0f} s",
    ]
    return Row(cells, [
        f"{name} {row['interpretation']}\n  {row['base_question']}\n  {row['question']}\n"
        f"  {row['query']}\n"
        for row in rows if row["form"] == "plausible" and not row["support"]
    ])  # fmt: skip


def line(cells: list[str]) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def written(name: str, lines: list[str]) -> None:
    """Puts a table into the page."""
    text = PAGE.read_text(encoding="utf-8")
    mark, end = f"<!-- generation: {name} -->\n", "<!-- end -->"
    before, rest = text.split(mark)
    after = rest.partition(end)[2]
    PAGE.write_text(before + mark + "\n".join(lines) + "\n" + end + after, encoding="utf-8")


def review(rows: list[Row], count: int, seed: int) -> Iterator[str]:
    """Questions drawn evenly from databases."""
    for place, one in enumerate(rows):
        share = min(len(one.questions), len(range(place, count, len(rows))))
        yield from random.Random(seed).sample(one.questions, share)


def main() -> None:
    """Measures, or prints questions."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    sizes = OWN | SPIDER
    parser.add_argument("names", nargs="*", help=f"of {', '.join(sizes)}")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--review", type=int, default=0, metavar="N", help="print so many")
    options = parser.parse_args()
    rows = []
    with ProcessPoolExecutor(options.jobs) as pool:
        names = options.names or list(sizes)
        works = [pool.submit(measured, name, sizes[name], options.seed) for name in names]
        for work in works:
            rows.append(work.result())
            sys.stdout.write(f"{line(rows[-1].cells)}\n")
            sys.stdout.flush()
    sys.stdout.write("\n".join(review(rows, options.review, options.seed)))
    if not options.names:
        table = [line(list(HEAD)), line(["---"] * len(HEAD)), *(line(row.cells) for row in rows)]
        written("databases", table)


if __name__ == "__main__":
    main()
