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
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tqdm import tqdm

from bench.data import UnavailableError, originals
from bench.judge.measure import ORIGINAL, WRONG, Case, cases, flaws
from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.sql import Databases, Example, Executor
from lm_eval_ext.sql.predictions import example_of, read_predictions
from lm_eval_ext.sql.suite import COPY, Suite, read

Golds = dict[str, tuple[Path, list[str]]]
"""By database id: the original, and all distinct golds."""

JUDGED = Path(__file__).with_name("recorded.tsv")
"""What a person said of recorded predictions that added rows turn wrong."""

TIMED = 1500

JUDGES: dict[str, Callable[[str], bool]] = {
    "original": lambda name: name == ORIGINAL,
    "populated copy": lambda name: name in (ORIGINAL, COPY),
    "small databases": lambda name: name != COPY,
    "whole suite": lambda name: True,
}
"""Which databases a judge asks; all of them ask the original first."""


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.judge", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--suite", type=Path, required=True, help="folder of suites (populate)")
    parser.add_argument("--share", type=int, default=1, metavar="N", help="one in N golds")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--json", type=Path, help="write all figures and misjudged cases")
    parser.add_argument("--skip-recorded", action="store_true", help="no recorded predictions")
    options = parser.parse_args()
    try:
        data = originals("magnifico").parent
    except UnavailableError as error:
        sys.exit(str(error))
    began = time.process_time()
    golds = published(data)
    suites = {db_id: read(options.suite, db_id) for db_id in golds}
    found = examined(golds, suites, options.share, options.workers)
    record: dict[str, Any] = {"share": options.share}
    record["judges"] = {name: rates(found, asked) for name, asked in JUDGES.items()}
    record["flaws"] = flaws_of(golds, suites)
    if not options.skip_recorded:
        record["recorded"] = recorded(data, golds, suites)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    record["cpu_s"] = round(time.process_time() - began + used.ru_utime + used.ru_stime)
    sys.stdout.write(page(record) + "\n")
    if options.json:
        record["cases"] = [
            {**asdict(case), "judge": name}
            for name, asked in JUDGES.items()
            for case in found
            if misjudged(case, asked)
        ]
        with atomic_text(options.json) as file:
            json.dump(record, file, indent=1, ensure_ascii=False)


def published(data: Path) -> Golds:
    """All distinct golds of the published data that have a database."""
    folder = Databases(data / "spider_databases")
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for pattern in ("*/*/train.tsv", "*/*/test.tsv", "combination/*.tsv"):
        for file in sorted((data / "magnifico" / "magnifico_data").glob(pattern)):
            with file.open(newline="", encoding="utf-8") as opened:
                for row in csv.DictReader(opened, delimiter="\t"):
                    db_id = row["Question"].split(":")[0].strip().casefold()
                    found[db_id][row["Parse"]] = None
    places = {db_id: folder.find(db_id) for db_id in sorted(found)}
    return {d: (Path(place.address), sorted(found[d])) for d, place in places.items() if place}


def examined(golds: Golds, suites: dict[str, Suite], share: int, workers: int) -> list[Case]:
    """All cases, with a progress bar; the databases with most golds first."""
    order = sorted(golds, key=lambda db_id: -len(golds[db_id][1]))
    with ProcessPoolExecutor(workers) as pool:
        jobs = [pool.submit(_of_one, db_id, *golds[db_id], suites[db_id], share) for db_id in order]
        return [case for job in tqdm(jobs, desc="databases", disable=None) for case in job.result()]


def _of_one(db_id: str, path: Path, golds: list[str], suite: Suite, share: int) -> list[Case]:
    chosen = [gold for gold in golds if not zlib.crc32(gold.encode()) % share]
    return list(cases(db_id, path, suite, golds, chosen))


def misjudged(case: Case, asked: Callable[[str], bool]) -> bool:
    """Whether a judge calls a wrong query right, or a right one wrong."""
    return (case.family in WRONG) != any(map(asked, case.wrong_on))


def rates(found: Sequence[Case], asked: Callable[[str], bool]) -> dict[str, Any]:
    """Golds with a missed case and cases, by family; misjudged cases by kind."""
    result: dict[str, Any] = {}
    for family in (*WRONG, "rewrite"):
        own = [case for case in found if case.family == family]
        bad = [case for case in own if misjudged(case, asked)]
        result[family] = {
            "golds": len({(case.db_id, case.gold) for case in own}),
            "golds_missed": len({(case.db_id, case.gold) for case in bad}),
            "golds_missed_differing": len({(c.db_id, c.gold) for c in bad if c.differs}),
            "cases": len(own),
            "missed": len(bad),
            "kinds": Counter(case.kind for case in bad if case.differs),
        }
    return result


def flaws_of(golds: Golds, suites: dict[str, Suite]) -> dict[str, Counter[str]]:
    """Added values that must not be, of the copies and of the small databases."""
    found = {"populated copy": Counter[str](), "small databases": Counter[str]()}
    for db_id, suite in suites.items():
        for judge, names in (
            ("populated copy", [name for name in suite.databases if name == COPY]),
            ("small databases", [name for name in suite.databases if name != COPY]),
        ):
            found[judge] += flaws(golds[db_id][0], [suite.path(name) for name in names])
    return found


def recorded(data: Path, known: Golds, suites: dict[str, Suite]) -> dict[str, Any]:
    """Agreement on originals, right predictions that suites turn wrong, seconds per verdict."""
    csv.field_size_limit(1 << 30)
    rows = read_predictions(data / "magnifico/recorded_predictions/runs.tsv")
    examples = [example_of(row) for row in rows]
    with Executor(data / "spider_databases") as executor:
        verdicts = list(executor.score(examples))
    agreement: dict[str, Counter[str]] = defaultdict(Counter)
    right: dict[Example, None] = {}
    for row, one, verdict in zip(rows, examples, verdicts, strict=True):
        if verdict.status == "database_missing":
            continue
        part = "older" if row["run"].startswith("old_outputs") else "newer"
        agreement[part]["rows"] += 1
        agreement[part]["agree"] += verdict.correct == (row["recorded_correct"] == "1")
        db_id = one.db_id.casefold()
        if verdict.correct and db_id in known and one.gold in known[db_id][1]:
            right[one._replace(db_id=db_id)] = None
    with JUDGED.open(newline="", encoding="utf-8") as file:
        said = {row["key"]: row["said"] for row in csv.DictReader(file, delimiter="\t")}
    turned = {prediction_key(one): (one, name) for one, name in asked_further(list(right), suites)}
    seconds = {}
    chosen = list(right)[:: max(1, len(right) // TIMED)]
    for name, used in (("original", {}), ("whole suite", suites)):
        began = time.perf_counter()
        with Executor(data / "spider_databases") as executor:
            left = [one for one, v in zip(chosen, executor.score(chosen), strict=True) if v.correct]
        list(asked_further(left, used))
        seconds[name] = (time.perf_counter() - began) / len(chosen)
    return {
        "agreement": {part: dict(counts) for part, counts in agreement.items()},
        "right": len(right),
        "said": Counter(said.get(key, "not judged yet") for key in turned),
        "new": [[*one, name] for key, (one, name) in turned.items() if key not in said],
        "seconds": seconds,
    }


def asked_further(
    right: Sequence[Example], suites: dict[str, Suite]
) -> Iterator[tuple[Example, str]]:
    """Yields predictions that a suite turns wrong, with the database; the first that does so."""
    paths = {f"{d}/{name}": s.path(name) for d, s in suites.items() for name in s.databases}
    left = {one: suites[one.db_id].judging(one.gold) for one in right if one.db_id in suites}
    with Executor(paths) as executor:
        for turn in range(max(map(len, left.values()), default=0)):
            here = [one for one, names in left.items() if turn < len(names)]
            named = [one._replace(db_id=f"{one.db_id}/{left[one][turn]}") for one in here]
            for one, verdict in zip(here, executor.score(named, semantics="sets"), strict=True):
                if verdict.scorable and not verdict.correct:
                    yield one, left.pop(one)[turn]


def prediction_key(one: Example) -> str:
    """Names a prediction in :data:`JUDGED` without its text."""
    return hashlib.sha256("\0".join(one).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def page(record: dict[str, Any]) -> str:
    """The figures as Markdown."""
    lines = [
        "| judge | golds with a missed mutant | ... neighbour | right rewrites judged wrong | "
        "impossible dates, runs of letters, first NULLs |",
        "|---|---|---|---|---|",
    ]
    for name, own in record["judges"].items():
        bad = record["flaws"].get(name)
        cells = [_missed(own[family]) for family in WRONG]
        cells.append(_share(own["rewrite"]["missed"], own["rewrite"]["cases"]))
        kinds = ("dates", "runs", "first NULLs")
        cells.append("-" if bad is None else ", ".join(str(bad[kind]) for kind in kinds))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", "In brackets: without queries that 50 random databases do not distinguish.", ""]
    for family in (*WRONG, "rewrite"):
        kinds = record["judges"]["whole suite"][family]["kinds"].most_common()
        said = ", ".join(f"{kind} {count}" for kind, count in kinds)
        lines.append(f"- {family}: misjudged {said or 'none'}")
    if "recorded" in record:
        found = record["recorded"]
        for part, counts in found["agreement"].items():
            agree = _share(counts["agree"], counts["rows"])
            lines.append(f"- recorded verdicts on originals, {part} runs: {agree} agree")
        said = ", ".join(f"{what} {count}" for what, count in sorted(found["said"].items()))
        lines.append(f"- of {found['right']} right recorded predictions turned wrong: {said}")
        each = ", ".join(f"{name} {1000 * s:.2f} ms" for name, s in found["seconds"].items())
        lines.append(f"- a verdict on a right prediction: {each}")
    return "\n".join([*lines, "", f"{record['cpu_s']} seconds of processor time"])


def _missed(own: dict[str, Any]) -> str:
    share = 100 * own["golds_missed_differing"] / max(1, own["golds"])
    return f"{_share(own['golds_missed'], own['golds'])} ({share:.1f} %)"


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}: {100 * part / max(1, whole):.2f} %"


if __name__ == "__main__":
    main()
