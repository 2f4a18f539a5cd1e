"""Makes questions on eleven databases, checks them, and writes the tables of docs/generation.md.

    python docs/generation.py --jobs 2           # all; 10 minutes of processor time
    python docs/generation.py shop bike_1        # prints the rows of some databases only
    python docs/generation.py --review 100       # prints 100 of the questions as well

What is checked is what was written: each gold query is run on the database in the folder, and
examined with its near misses and rewrites on a copy with the rows of populated.json. ``--review``
prints questions, base and plausible beside the query, for somebody who reads them.
"""

import argparse
import csv
import json
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
DATA = Path(os.environ.setdefault("LM_EVAL_EXT_DATA", str(ROOT.parent / "shared" / "data")))

from support.generated import built, lexicon_of, natural  # noqa: E402

from lm_eval_ext.atomic import sha256_of  # noqa: E402
from lm_eval_ext.benchmarks.magnifico.generate import folder  # noqa: E402
from lm_eval_ext.benchmarks.magnifico.generate.make import Made, meanings_of  # noqa: E402
from lm_eval_ext.benchmarks.magnifico.generate.meanings import WORDS, kind_of  # noqa: E402
from lm_eval_ext.errors import DataError  # noqa: E402
from lm_eval_ext.sql.distill.build import check  # noqa: E402
from lm_eval_ext.sql.distill.report import Report  # noqa: E402
from lm_eval_ext.sql.distill.shipped import Pack  # noqa: E402

PAGE = Path(__file__).with_suffix(".md")
SEED = 3
OWN = {"factory": 300, "shop": 100, "league": 40, "clinic": 40, "mess": 30}
SPIDER = {
    "hr_1": 40, "college_2": 40, "bike_1": 40, "chinook_1": 40, "apartment_rentals": 40,
    "department_store": 40,
}  # fmt: skip
"""Databases and the number of questions."""

REASONS = ("ties with a near miss", "empty", "a condition changes nothing")


@dataclass
class Row:
    """What was made of a database, and what the checks found.

    Attributes:
        cells: Of the first table.
        counts: What must be 0, and of how many.
        possible: The meanings that the database allows.
        asked: Questions by meaning.
        questions: Each with its query, as it is read.
    """

    cells: list[str]
    counts: Counter[str]
    possible: set[str]
    asked: Counter[str]
    questions: list[str]


def database(name: str, where: Path) -> Path:
    """One of our own hand, or one of Spider's."""
    return built(name, where) if name in OWN else (
        DATA / "spider_databases" / name / f"{name}.sqlite"
    )  # fmt: skip


def measured(name: str, questions: int, seed: int) -> Row:
    """Makes questions, as many as are possible, and checks them."""
    with tempfile.TemporaryDirectory() as temporary:
        where = Path(temporary)
        path, out = database(name, where), where / name
        began = time.process_time()
        try:
            made, _ = folder.generate(
                path, out, seed=seed, questions=questions, words=lexicon_of(name)
            )
        except DataError as error:
            possible = re.search(r"(\d+) questions are possible", str(error))
            if possible is None:
                raise
            return measured(name, int(possible[1]), seed)
        seconds = time.process_time() - began
        report = checked(out, name, where)
    asked = [one for one in made.asked if not one.support]
    return Row(
        list(cells(name, made, seconds)),
        counts(report),
        {kind_of(kind) for kind, _ in meanings_of(made.profile, seed)},
        Counter(kind_of(kind) for one in asked for kind in one.kinds),
        [
            f"{name} {'+'.join(one.kinds)}\n  {one.base}\n"
            f"  {one.novel(made.meanings, 'plausible')}\n  {one.gold}\n"
            for one in asked
        ],
    )


def cells(name: str, made: Made, seconds: float) -> Iterator[str]:
    """Those of the first table."""
    solved = sum(one.support for one in made.asked)
    yield name
    yield f"{len(made.profile.entities)}, {made.profile.keys}"
    yield f"{len(made.asked) - solved} + {solved}"
    yield f"{made.drawn:,}"
    found = [made.dropped.get(reason, 0) for reason in REASONS]
    yield from map(str, [*found, sum(made.dropped.values()) - sum(found)])
    yield f"{seconds:.0f} s"


def counts(report: Report) -> Counter[str]:
    """What must be 0, and of how many."""
    golds = report.golds
    return Counter({
        "golds": len(golds),
        "fail": sum(one.error is not None for one in golds),
        "empty": sum(one.rows_before < 1 or one.rows_after < 1 for one in golds),
        "near misses": sum(one.near_misses for one in golds),
        "tied": sum(bool(one.open_ties) for one in golds),
        "rewrites": sum(sum(one.rewrites.values()) for one in golds),
        "wrong": sum(len(one.broken) for one in golds),
    })  # fmt: skip


def checked(out: Path, name: str, where: Path) -> Report:
    """Examines the files of a folder."""
    with (out / folder.EXAMPLES).open(encoding="utf-8", newline="") as lines:
        golds = sorted({row["query"] for row in csv.DictReader(lines, delimiter="\t")})
    home, copy = out / f"{name}.sqlite", where / f"{name}-copy.sqlite"
    Pack.read(out / "populated.json").apply(sha256_of(home), home, golds, copy)
    return check(copy, home, golds)


def row(*cells: str) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def databases(rows: list[Row]) -> Iterator[str]:
    """What was made, by database."""
    head = ("database", "tables, keys", "questions + solved", "drawn", "near miss", "empty",
            "no effect", "other", "processor")  # fmt: skip
    yield row(*head)
    yield row(*["---"] * len(head))
    for one in rows:
        yield row(*one.cells)


def checks(rows: list[Row]) -> Iterator[str]:
    """What the checks found, in all."""
    total = sum((one.counts for one in rows), Counter[str]())
    yield row("check", "found", "of")
    yield row("---", "---", "---")
    for said, key, of in (
        ("queries that fail", "fail", "golds"), ("empty results", "empty", "golds"),
        ("queries that tie with a near miss", "tied", "golds"),
        ("rewrites with another result", "wrong", "rewrites"),
    ):  # fmt: skip
        yield row(said, f"{total[key]:,} ({total[key] / total[of]:.2%})", f"{total[of]:,}")
    yield f"\nThese queries have {total['near misses']:,} near misses."


def kinds(rows: list[Row]) -> Iterator[str]:
    """On how many databases there is each meaning, and how often it was asked."""
    asked = sum((one.asked for one in rows), Counter[str]())
    yield row("meaning", f"databases of {len(rows)}", "questions")
    yield row("---", "---", "---")
    for kind in WORDS:
        yield row(f"`{kind}`", str(sum(kind in one.possible for one in rows)), str(asked[kind]))


def written(name: str, lines: Iterator[str]) -> None:
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
    names = options.names or list(sizes)
    rows = []
    with ProcessPoolExecutor(options.jobs) as pool:
        works = [pool.submit(measured, name, sizes[name], options.seed) for name in names]
        for work in works:
            rows.append(work.result())
            sys.stdout.write(f"{row(*rows[-1].cells)} {json.dumps(rows[-1].counts)}\n")
            sys.stdout.flush()
    sys.stdout.write("\n".join(review(rows, options.review, options.seed)))
    if options.names:
        return
    written("databases", databases(rows))
    written("checks", checks(rows))
    written("meanings", kinds(rows))
    written("natural", iter(natural.as_text(natural.compare()).splitlines()))


if __name__ == "__main__":
    main()
