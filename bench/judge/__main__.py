"""Measure how well the judge distinguishes wrong queries from right ones, both ways.

    python -m bench.judge --suite FOLDER [--v2 FOLDER] [--share 8] [--json FILE]

``--suite`` and ``--v2`` are what ``lm-eval-ext magnifico populate`` writes. Prints Markdown;
``--json`` also writes every misjudged case. Needs the original data (``LM_EVAL_EXT_DATA``).
"""

import argparse
import json
import resource
import sys
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tqdm import tqdm

from bench.data import UnavailableError, originals
from bench.judge import published
from bench.judge.measure import (
    COPY,
    ORIGINAL,
    V2,
    WRONG,
    Case,
    Database,
    Databases,
    cases,
    flaws,
)
from bench.judge.published import Times
from lm_eval_ext.atomic import atomic_text

Asked = Callable[[str], bool]

JUDGES: dict[str, Asked] = {
    "original": lambda label: label == ORIGINAL,
    "populated copy v2": lambda label: label in (ORIGINAL, V2),
    "populated copy v3": lambda label: label in (ORIGINAL, COPY),
    "small databases": lambda label: label not in (V2, COPY),
    "whole suite": lambda label: label != V2,
}
"""Which databases a judge asks; all of them ask the original first."""


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.judge", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--suite", type=Path, help="folder of suites (populate, v3)")
    parser.add_argument("--v2", type=Path, help="folder of populated copies v2")
    parser.add_argument("--share", type=int, default=1, metavar="N", help="one in N golds")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--json", type=Path, help="write all figures and misjudged cases")
    parser.add_argument("--skip", nargs="*", default=(), choices=("recorded", "times"))
    options = parser.parse_args()
    try:
        data = originals("magnifico").parent
    except UnavailableError as error:
        sys.exit(str(error))
    began = time.process_time()
    golds = published.golds(data)
    found = {
        db_id: opened(path, db_id, options.v2, options.suite) for db_id, (path, _) in golds.items()
    }
    labels = {label for one in found.values() for label in one.others}
    judges = {
        name: asked
        for name, asked in JUDGES.items()
        if name == "original" or any(asked(label) for label in labels)
    }
    measured = list(examined(golds, found, options.share, options.workers))
    record: dict[str, Any] = {"judges": {}, "flaws": {}, "share": options.share}
    for name, asked in judges.items():
        record["judges"][name] = rates(measured, asked)
    for kind, chosen in (("populated copy v2", (V2,)), ("populated copy v3", (COPY,)),
                         ("small databases", None)):  # fmt: skip
        total: Counter[str] = Counter()
        if kind not in judges:
            continue
        for one in found.values():
            made = [
                other.path
                for label, other in one.others.items()
                if (label in chosen if chosen else label not in (V2, COPY))
            ]
            total += flaws(one.original, made)
        record["flaws"][kind] = dict(total)
    if "recorded" not in options.skip:
        record["recorded"] = published.recorded(data, golds, found, judges)
    if "times" not in options.skip:
        record["times"] = [asdict(one) for one in times(data, golds, found, judges)]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    record["cpu_s"] = round(time.process_time() - began + used.ru_utime + used.ru_stime)
    sys.stdout.write(page(record) + "\n")
    if options.json:
        record["cases"] = [
            {**asdict(case), "judge": name}
            for name, asked in judges.items()
            for case in measured
            if misjudged(case, asked)
        ]
        with atomic_text(options.json) as file:
            json.dump(record, file, indent=1, ensure_ascii=False)


def opened(path: Path, db_id: str, v2: Path | None, suite: Path | None) -> Databases:
    """The databases of an id that are in the folders."""
    found = Databases(path)
    if v2 is not None:
        found.others[V2] = Database(v2 / db_id / f"{db_id}.sqlite", made=False)
    if suite is not None:
        folder = suite / db_id
        record = json.loads((folder / "suite.json").read_text(encoding="utf-8"))
        for name in record["databases"]:
            file = f"{db_id}.sqlite" if name == COPY else f"{name}.sqlite"
            found.others[name] = Database(folder / file)
        found.judging = {key: tuple(names) for key, names in record["golds"].items()}
    return found


def examined(
    golds: published.Golds, found: dict[str, Databases], share: int, workers: int
) -> Iterator[Case]:
    """All cases, with a progress bar; the databases with most golds first."""
    chosen = {
        db_id: [gold for gold in own if not zlib.crc32(gold.encode()) % share]
        for db_id, (_, own) in golds.items()
    }
    order = sorted(chosen, key=lambda db_id: -len(chosen[db_id]))
    with (
        tqdm(total=sum(map(len, chosen.values())), desc="golds", disable=None) as bar,
        ProcessPoolExecutor(workers) as pool,
    ):
        jobs = {
            pool.submit(of_database, db_id, found[db_id], golds[db_id][1], chosen[db_id]): db_id
            for db_id in order
        }
        for job in as_completed(jobs):
            yield from job.result()
            bar.update(len(chosen[jobs[job]]))


def of_database(
    db_id: str, databases: Databases, golds: Sequence[str], chosen: Sequence[str]
) -> list[Case]:
    """The cases of all chosen golds of a database."""
    every = cases(db_id, databases, golds, chosen, mutants=published.mutants, gate=published.gate)
    return [case for of_gold in every for case in of_gold]


def misjudged(case: Case, asked: Asked) -> bool:
    """Whether a judge calls a wrong query right, or a right one wrong."""
    if case.family in WRONG:
        return not case.proven and not case.wrong(asked)
    return case.wrong(asked)


def rates(measured: Sequence[Case], asked: Asked) -> dict[str, Any]:
    """Golds with a missed case, by family and kind; right rewrites judged wrong."""
    result: dict[str, Any] = {}
    for family in (*WRONG, "rewrite", "rewrite, other order"):
        own = [case for case in measured if case.family == family]
        bad = [case for case in own if misjudged(case, asked)]
        kinds: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        for case in own:
            kinds[case.kind][2] += 1
        for case in bad:
            kinds[case.kind][0] += 1
            kinds[case.kind][1] += case.differs
        result[family] = {
            "golds": len({(case.db_id, case.gold) for case in own}),
            "golds_missed": len({(case.db_id, case.gold) for case in bad}),
            "golds_missed_differing": len({(c.db_id, c.gold) for c in bad if c.differs}),
            "cases": len(own),
            "missed": len(bad),
            "missed_differing": sum(case.differs for case in bad),
            "kinds": {kind: kinds[kind] for kind in sorted(kinds)},
        }
    return result


def times(
    data: Path, golds: published.Golds, found: dict[str, Databases], judges: dict[str, Asked]
) -> list[Times]:
    """Seconds per verdict."""
    return [*published.times(data, golds, found, judges), *published.engine_times()]


def page(record: dict[str, Any]) -> str:
    """The figures as Markdown."""
    lines = [
        "| judge | golds with a missed mutant | ... neighbour | ... slip | right rewrites judged "
        "wrong | dates, runs, first NULLs |",
        "|---|---|---|---|---|---|",
    ]
    for name, own in record["judges"].items():
        bad = record["flaws"].get(name, {})
        shown = ", ".join(str(bad.get(k, 0)) for k in ("dates", "runs", "first NULLs"))
        lines.append(
            f"| {name} | "
            + " | ".join(_missed(own[family]) for family in WRONG)
            + f" | {_share(own['rewrite']['missed'], own['rewrite']['cases'])} | "
            + (shown if name in record["flaws"] else "-")
            + " |"
        )
    lines += [
        "",
        "A rate in brackets leaves out wrong queries that 50 random databases do not distinguish.",
        "",
    ]
    for name, own in record["judges"].items():
        other = own["rewrite, other order"]
        if other["cases"]:
            lines.append(
                f"- {name}: rewrites in another order where the gold has none, judged wrong on "
                f"databases that we made: {_share(other['missed'], other['cases'])}"
            )
        worst = Counter(
            {f"{family} {kind}": counts[1] if family in WRONG else counts[0]
             for family in (*WRONG, "rewrite") for kind, counts in own[family]["kinds"].items()}
        )  # fmt: skip
        said = ", ".join(f"{kind} {count}" for kind, count in worst.most_common(12) if count)
        lines.append(f"- {name}: most misjudged: {said or 'none'}")
    if "recorded" in record:
        lines += ["", *published.recorded_page(record["recorded"])]
    if "times" in record:
        lines += ["", "| verdicts | judge | number | ms each |", "|---|---|---|---|"]
        lines += [
            f"| {one['engine']} | {one['judge']} | {one['verdicts'] or '-'} | "
            + (one["problem"] or f"{1000 * one['seconds'] / one['verdicts']:.2f}")
            + " |"
            for one in record["times"]
        ]
    return "\n".join([*lines, "", f"{record['cpu_s']} seconds of processor time"])


def _missed(own: dict[str, Any]) -> str:
    share = 100 * own["golds_missed_differing"] / max(1, own["golds"])
    return f"{_share(own['golds_missed'], own['golds'])} ({share:.1f} %)"


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}: {100 * part / max(1, whole):.2f} %"


if __name__ == "__main__":
    main()
