"""Makes questions on eleven databases, checks them, and writes docs/generation.csv.

    python docs/generation.py --jobs 2           # all; some minutes of processor time
    python docs/generation.py shop bike_1        # prints the rows of some databases only

What is checked is what was written: the gold queries of the folder must run, and no mutant may have
their results on the test suite that is built for them.
"""

import argparse
import csv
import os
import re
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
DATA = Path(os.environ.setdefault("LM_EVAL_EXT_DATA", str(ROOT.parent / "shared" / "data")))

from support.generated import built, lexicon_of  # noqa: E402

from lm_eval_ext.atomic import atomic_text  # noqa: E402
from lm_eval_ext.benchmarks.magnifico.generate import folder  # noqa: E402
from lm_eval_ext.benchmarks.magnifico.generate.make import refusal_reasons  # noqa: E402
from lm_eval_ext.errors import DataError  # noqa: E402

FILE = Path(__file__).with_suffix(".csv")
SEED = 3
OWN = {"factory": 60, "shop": 60, "league": 40, "clinic": 40, "mess": 30}
SPIDER = {
    "hr_1": 40, "college_2": 40, "bike_1": 40, "chinook_1": 40, "apartment_rentals": 40,
    "department_store": 40,
}  # fmt: skip
"""Databases and the number of questions."""

REASONS = ("ties with a mutant", "empty", "a condition changes nothing")
HEAD = ("database", "tables", "keys", "questions", "solved", "drawn", "dropped: mutant", "empty",
        "no effect", "other", "processor seconds")  # fmt: skip


def measured(name: str, questions: int, seed: int) -> list[object]:
    """Make questions, as many as are possible, check them, and return the row's cells."""
    with tempfile.TemporaryDirectory() as temporary:
        folder_of_run = Path(temporary)
        if name in OWN:
            database = built(name, folder_of_run)
        else:
            database = DATA / "spider_databases" / name / f"{name}.sqlite"
        output = folder_of_run / "out"
        start = time.process_time()
        try:
            made, counts = folder.generate(
                database, output, seed=seed, questions=questions, lexicon=lexicon_of(name)
            )
        except DataError as error:
            possible = re.search(r"(\d+) questions are possible", str(error))
            if possible is None:
                raise
            return measured(name, int(possible[1]), seed)
        seconds = time.process_time() - start
        with (output / folder.EXAMPLES).open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines, delimiter="\t"))
        lost = refusal_reasons(output / f"{name}.sqlite", sorted({row["query"] for row in rows}))
        if lost:
            sys.exit(f"{name}: {lost}")
    dropped = [made.dropped.get(reason, 0) for reason in REASONS]
    return [
        name,
        len(made.profile.entities),
        len(made.profile.links),
        counts["questions"],
        counts["support"],
        made.drawn,
        *dropped,
        sum(made.dropped.values()) - sum(dropped),
        round(seconds),
    ]


def main() -> None:
    """Measure, print the rows, and write the file if it has all of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    sizes = OWN | SPIDER
    parser.add_argument("names", nargs="*", help=f"of {', '.join(sizes)}")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    rows: list[list[object]] = [list(HEAD)]
    with ProcessPoolExecutor(options.jobs) as pool:
        jobs = [
            pool.submit(measured, name, sizes[name], options.seed)
            for name in options.names or sizes
        ]
        for job in jobs:
            rows.append(job.result())
            print(*rows[-1], sep=",", flush=True)  # noqa: T201
    if not options.names:
        with atomic_text(FILE) as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
