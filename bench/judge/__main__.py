"""Measure how well the judge distinguishes wrong queries from right ones, both ways.

    python -m bench.judge --suite FOLDER [--share 8] [--json FILE]

``--suite`` is what ``lm-eval-ext magnifico populate`` writes. Prints Markdown; ``--json`` also
writes every misjudged case. Needs the original data (``LM_EVAL_EXT_DATA``).
"""

import argparse
import csv
import hashlib
import json
import resource
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path

from tqdm import tqdm

from bench.data import UnavailableError, originals
from bench.judge.measure import Case, cases, flaws
from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.benchmarks.magnifico import populating
from lm_eval_ext.sql import Example, Executor
from lm_eval_ext.sql.predictions import example_of, read_predictions
from lm_eval_ext.sql.suite import COPY, Suite, name_of, read

JUDGED = Path(__file__).with_name("recorded.tsv")
"""What a person said of recorded predictions that added rows turn wrong, by a hash of theirs."""


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--suite", type=Path, required=True, help="folder of suites (populate)")
    parser.add_argument("--share", type=int, default=1, metavar="N", help="one in N golds")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--json", type=Path, help="write all misjudged cases")
    options = parser.parse_args()
    began = time.process_time()
    try:
        data = originals("magnifico").parent
    except UnavailableError as error:
        sys.exit(str(error))
    golds = populating.wanted(data / "spider_databases")
    suites = {db_id: read(options.suite, db_id) for db_id in golds}
    with ProcessPoolExecutor(options.workers) as pool:
        order = sorted(golds, key=lambda db_id: -len(golds[db_id][1]))
        jobs = [pool.submit(_of_one, d, *golds[d], suites[d], options.share) for d in order]
        bar = tqdm(jobs, desc="databases", disable=None)
        found = [case for job in bar for case in job.result()]
    lines = table(found, {name for suite in suites.values() for name in suite.databases})
    odd = sum((flaws(golds[d][0], suites[d]) for d in golds), Counter[str]())
    lines += [f"- added values that must not be: {dict(odd)}", *recorded(data, suites)]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = time.process_time() - began + used.ru_utime + used.ru_stime
    sys.stdout.write("\n".join([*lines, "", f"{seconds:.0f} seconds of processor time", ""]))
    if options.json:
        every = {name for case in found for name in case.wrong_on}
        with atomic_text(options.json) as file:
            json.dump([asdict(one) for one in found if one.misjudged(every)], file, indent=1)


def _of_one(db_id: str, path: Path, golds: Sequence[str], suite: Suite, share: int) -> list[Case]:
    chosen = [gold for gold in golds if not zlib.crc32(gold.encode()) % share]
    return list(cases(db_id, path, suite, golds, chosen))


def table(found: Sequence[Case], made: set[str]) -> list[str]:
    """The figures of four judges in Markdown, and what the whole suite misjudges by kind."""
    lines = [
        "| judge | golds with a missed mutant | ... neighbour | right rewrites judged wrong |",
        "|---|---|---|---|",
    ]
    for judge, asked in (
        ("original", {""}), ("populated copy", {"", COPY}),
        ("small databases", {"", *made} - {COPY}), ("whole suite", {"", *made}),
    ):  # fmt: skip
        bad = [case for case in found if case.misjudged(asked)]
        cells = [judge]
        for family in ("mutant", "neighbour"):
            every, missed, differing = (
                len({(case.db_id, case.gold) for case in group if case.family == family})
                for group in (found, bad, [case for case in bad if case.differs])
            )
            cells.append(f"{_share(missed, every)} ({_share(differing, every)})")
        wrong, right = (sum(case.family == "rewrite" for case in group) for group in (bad, found))
        lines.append(f"| {' | '.join([*cells, _share(wrong, right)])} |")
    kinds = Counter(f"{case.family} {case.kind}" for case in bad if case.differs).most_common()
    said = "In brackets: without queries that 50 random databases do not distinguish."
    return [*lines, "", said, "", f"- misjudged: {dict(kinds)}"]


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}: {100 * part / max(1, whole):.2f} %"


def recorded(data: Path, suites: Mapping[str, Suite]) -> list[str]:
    """Right recorded predictions that suites turn wrong, by what a person said of them."""
    csv.field_size_limit(1 << 30)
    runs = read_predictions(data / "magnifico/recorded_predictions/runs.tsv")
    examples = list(dict.fromkeys(example_of(row) for row in runs))
    with Executor(data / "spider_databases") as executor:
        scored = zip(examples, executor.score(examples), strict=True)
        right = {e._replace(db_id=e.db_id.casefold()): None for e, v in scored if v.correct}
    judged = {(suite.db_id, gold) for suite in suites.values() for gold in suite.judges}
    right = {one: None for one in right if (one.db_id, name_of(one.gold)) in judged}
    with JUDGED.open(newline="", encoding="utf-8") as file:
        said = {row["key"]: row["said"] for row in csv.DictReader(file, delimiter="\t")}
    turned = {_key(one): one for one in turned_wrong([*right], suites)}
    counts = Counter(said.get(name, "not judged yet") for name in turned)
    new = [f"- not judged yet: {one}" for name, one in turned.items() if name not in said]
    return [f"- of {len(right)} right recorded predictions turned wrong: {dict(counts)}", *new]


def turned_wrong(right: Sequence[Example], suites: Mapping[str, Suite]) -> Iterator[Example]:
    """Yields the predictions that are wrong on a database that judges their gold."""
    paths = {f"{d}/{name}": s.path(name) for d, s in suites.items() for name in s.databases}
    left = {e: [*suites[e.db_id].judging(e.gold)] for e in right if e.db_id in suites}
    with Executor(paths) as executor:
        while left := {one: names for one, names in left.items() if names}:
            named = [e._replace(db_id=f"{e.db_id}/{names.pop()}") for e, names in left.items()]
            for one, verdict in zip([*left], executor.score(named, semantics="sets"), strict=True):
                if verdict.scorable and not verdict.correct:
                    left.pop(one)
                    yield one


def _key(one: Example) -> str:
    return hashlib.sha256("\0".join(one).encode("utf-8", "surrogateescape")).hexdigest()[:16]


if __name__ == "__main__":
    main()
