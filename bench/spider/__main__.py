"""Judge published systems on Spider's development set, beside the official evaluator.

    python -m bench.spider [FILE ...] [--suite SUITES] [--sub-databases 60] [--json FILE]

Without FILE, the predictions of LM_EVAL_EXT_DATA/spider_dev are judged. A file has the columns
db_id, gold_sql, predicted_sql and, for the tables that need them, difficulty, official_default and
official_keep_distinct (verdicts of the official evaluator on the originals, 1 or 0). Suites are
built in the cache at the first run, in about a minute and a half; the rest takes a few minutes.
"""

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.data import originals
from bench.spider.published import (
    DIFFICULTIES,
    MOST_POINTS_FROM_BEFORE,
    MOST_REJECTED,
    MOST_VERDICTS_UNLIKE,
    REJECTED_OF,
    SYSTEMS,
)
from bench.spider.subdatabases import SubDatabases, make_sub_databases
from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.cli.sql_options import suite_source
from lm_eval_ext.results.grid import Section, text
from lm_eval_ext.sql import Databases, SqlJudge
from lm_eval_ext.sql.scoring import JudgeOptions, OpenFile, judge_rows, opened_judge, read_file
from lm_eval_ext.sql.suite_choice import SuiteSource
from lm_eval_ext.sql.summary import JudgedRow, accuracy_of
from lm_eval_ext.sql.values import Prediction

OFFICIAL = {"spider": "official_default", "spider-distinct": "official_keep_distinct"}
"""The official verdicts by the name of our rule."""

ON_ORIGINALS = ("reference", "strict", "sets", "spider", "spider-distinct", "bird")
WITH_SUITES = ("strict", "sets", "spider-distinct")
SUB_DATABASE_RULE = "strict"

_SUB_DATABASES = 60
_PERCENT = 100
_SHOWN = 160


@dataclass
class System:
    """A system's predictions with all verdicts.

    Attributes:
        name: The name of its file, without the ending.
        file: Its predictions.
        original: By rule, the rows judged on the originals.
        suite: By rule, the rows judged on originals and suites.
        seconds: Real time by rule, with ``suite`` before it where suites judged.
        rejected: The accepted predictions that a sub-database rejects, with the reason.
    """

    name: str
    file: OpenFile
    original: dict[str, list[JudgedRow]] = field(default_factory=dict)
    suite: dict[str, list[JudgedRow]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    rejected: dict[Prediction, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The system's name in words."""
        published = SYSTEMS.get(self.name)
        return published.title if published else self.name

    def accepted(self) -> list[JudgedRow]:
        """Return the rows that the suites accept by the rule of the sub-databases."""
        return [row for row in self.suite[SUB_DATABASE_RULE] if row.verdict.correct]


@dataclass(frozen=True)
class Disagreement:
    """A prediction whose verdict is not the official evaluator's.

    Attributes:
        system: The name of the system.
        row: The number of the row in its file.
        rule: The name of our rule.
        ours: Our status.
        gold: The gold.
        predicted: The query that was judged.
    """

    system: str
    row: int
    rule: str
    ours: str
    gold: str
    predicted: str


@dataclass(frozen=True)
class Goal:
    """A line of the table of goals."""

    measure: str
    value: str
    goal: str
    reached: bool


def main() -> None:
    """Judge, print the tables, and write all figures if requested."""
    description, _, rest = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        prog="python -m bench.spider",
        description=description,
        epilog=rest.strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="predictions")
    parser.add_argument("--databases", type=Path, help="folder of the databases")
    parser.add_argument("--suite", type=Path, help="folder for the suites (default: the cache)")
    parser.add_argument(
        "--sub-databases", type=int, default=_SUB_DATABASES, metavar="N", help="0: none"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    options = parser.parse_args()
    databases = options.databases or originals("spider_dev/databases")
    files = options.files or sorted(originals("spider_dev/predictions").glob("*.jsonl"))
    source = suite_source(options.suite, build=True, databases=str(databases))
    systems = [System(file.stem, read_file(file, JudgeOptions(databases))) for file in files]
    for system in systems:
        judge_system(system, databases, source)
    if options.sub_databases:
        check_by_sub_databases(systems, databases, options.sub_databases)
    unlike: list[Disagreement] = []
    for system in systems:
        unlike += disagreements(system)
    goals = list(goals_of(systems, unlike, has_sub_databases=options.sub_databases > 0))
    sys.stdout.write(text(sections(systems, unlike, goals)))
    if options.json:
        with atomic_text(options.json) as handle:
            json.dump(figures(systems, unlike, goals), handle, indent=1, ensure_ascii=False)
    sys.exit(not all(goal.reached for goal in goals))


def judge_system(system: System, databases: Path, source: SuiteSource | None) -> None:
    """Judge a system's predictions by all rules, on the originals and with suites."""
    workers = os.cpu_count() or 1
    for rule in ON_ORIGINALS:
        options = JudgeOptions(databases, rule, workers=workers)
        system.original[rule], system.seconds[rule] = _judged(system, options)
    for rule in WITH_SUITES:
        options = JudgeOptions(databases, rule, source, workers=workers)
        system.suite[rule], system.seconds[f"suite {rule}"] = _judged(system, options)


def _judged(system: System, options: JudgeOptions) -> tuple[list[JudgedRow], float]:
    """Return judged rows, and the seconds from the first query to the last verdict."""
    with opened_judge(options, system.file.predictions) as open_judge:
        started = time.perf_counter()
        rows = judge_rows(system.file, open_judge, None, f"{system.name}, {options.semantics}")
        return rows, time.perf_counter() - started


def check_by_sub_databases(systems: Sequence[System], databases: Path, count: int) -> None:
    """Run what suites accept on sub-databases, and note what these reject."""
    known = Databases(databases)
    with TemporaryDirectory(prefix="lm-eval-ext-") as folder:
        suites: dict[str, SubDatabases] = {}
        accepted = {row.judged for system in systems for row in system.accepted()}
        for db_id in sorted({prediction.db_id for prediction in accepted}):
            place = known.find(db_id)
            if place is None:
                raise LookupError(f"no database {db_id!r}")
            key = db_id.casefold()
            suites[key] = make_sub_databases(Path(place.address), Path(folder, key), count)
        workers = os.cpu_count() or 1
        with SqlJudge(known, suites=suites, semantics=SUB_DATABASE_RULE, workers=workers) as judge:
            ordered = sorted(accepted)
            verdicts = judge.judge_all(ordered, progress="sub-databases")
    reasons = {}
    for prediction, verdict in zip(ordered, verdicts, strict=True):
        if not verdict.correct and verdict.scorable:
            reasons[prediction] = f"{verdict.database}: {verdict.reason}"
    for system in systems:
        for row in system.accepted():
            if row.judged in reasons:
                system.rejected[row.judged] = reasons[row.judged]


def disagreements(system: System) -> Iterator[Disagreement]:
    """Yield the predictions that the official evaluator judges in another way."""
    for rule, column in OFFICIAL.items():
        for row in system.original[rule]:
            official = row.row.record.get(column)
            if official is None or bool(official) == row.verdict.correct:
                continue
            yield Disagreement(
                system=system.name,
                row=row.row.number,
                rule=rule,
                ours=row.verdict.status,
                gold=row.judged.gold,
                predicted=row.judged.predicted,
            )


def rejected_rows(system: System) -> list[JudgedRow]:
    """Return the accepted rows that a sub-database rejects."""
    return [row for row in system.accepted() if row.judged in system.rejected]


def goals_of(
    systems: Sequence[System], unlike: Sequence[Disagreement], *, has_sub_databases: bool
) -> Iterator[Goal]:
    """Yield the lines of the table of goals."""
    for rule, column in OFFICIAL.items():
        count = sum(line.rule == rule for line in unlike)
        total = sum(_with_column(system, column) for system in systems)
        yield Goal(
            f"verdicts unlike the official evaluator's, {rule}",
            f"{count} of {total:,}",
            f"at most {MOST_VERDICTS_UNLIKE}",
            count <= MOST_VERDICTS_UNLIKE,
        )
    for system in systems:
        published = SYSTEMS.get(system.name)
        if published is None:
            continue
        value = percent(system.suite["strict"])
        yield Goal(
            f"strict with suites, {system.title}",
            f"{value:.1f} (published {published.test_suite})",
            f"within {MOST_POINTS_FROM_BEFORE} of {published.before}",
            abs(value - published.before) <= MOST_POINTS_FROM_BEFORE,
        )
    if has_sub_databases:
        rejected = sum(len(rejected_rows(system)) for system in systems)
        accepted = sum(len(system.accepted()) for system in systems)
        allowed = MOST_REJECTED * accepted / REJECTED_OF
        yield Goal(
            "accepted predictions that a sub-database rejects",
            f"{rejected} of {accepted:,}",
            f"at most {MOST_REJECTED} of {REJECTED_OF:,}",
            rejected <= allowed,
        )


def percent(rows: Sequence[JudgedRow]) -> float:
    """Return the accuracy of rows in percent."""
    return _PERCENT * (accuracy_of(rows).accuracy or 0.0)


def _with_column(system: System, column: str) -> int:
    """Return how many rows of a system have a value in a column."""
    return sum(row.record.get(column) is not None for row in system.file.rows)


def _by_difficulty(rows: Sequence[JudgedRow]) -> Mapping[str, list[JudgedRow]]:
    """Return the rows of each difficulty, the easiest first."""
    parts: dict[str, list[JudgedRow]] = {}
    for row in rows:
        difficulty = str(row.row.record.get("difficulty", ""))
        parts.setdefault(difficulty, []).append(row)
    return {difficulty: parts[difficulty] for difficulty in DIFFICULTIES if difficulty in parts}


def sections(
    systems: Sequence[System], unlike: Sequence[Disagreement], goals: Sequence[Goal]
) -> Iterator[Section]:
    """Yield the tables that are printed."""
    yield _originals_table(systems)
    yield _official_table(systems, unlike)
    yield _suite_table(systems)
    yield from _difficulty_tables(systems)
    yield _seconds_table(systems)
    yield from _listed(unlike, systems)
    yield _goals_table(goals)


def _goals_table(goals: Sequence[Goal]) -> Section:
    rows = []
    for goal in goals:
        reached = "yes" if goal.reached else "NO"
        rows.append([goal.measure, goal.value, goal.goal, reached])
    return "Goals", ("measure", "value", "goal", "reached"), rows


def _originals_table(systems: Sequence[System]) -> Section:
    columns = ["", *ON_ORIGINALS]
    for column in OFFICIAL.values():
        columns.append(f"{column.removeprefix('official_')} (official)")
    rows = []
    for system in systems:
        cells = [f"{percent(system.original[rule]):.1f}" for rule in ON_ORIGINALS]
        for column in OFFICIAL.values():
            total = _with_column(system, column)
            correct = sum(bool(row.record.get(column)) for row in system.file.rows)
            cells.append(f"{_PERCENT * correct / total:.1f}" if total else "-")
        rows.append([system.title, *cells])
    return "Accuracy on the originals by rule, in percent", columns, rows


def _official_table(systems: Sequence[System], unlike: Sequence[Disagreement]) -> Section:
    counts = Counter((line.system, line.rule, line.ours == "correct") for line in unlike)
    rows = []
    for system in systems:
        for rule in OFFICIAL:
            ours_alone = counts[system.name, rule, True]
            theirs_alone = counts[system.name, rule, False]
            rows.append([f"{system.title}, {rule}", str(ours_alone), str(theirs_alone)])
    columns = ("", "right here alone", "right there alone")
    return "Verdicts unlike the official evaluator's", columns, rows


def _suite_table(systems: Sequence[System]) -> Section:
    rows = []
    for system in systems:
        cells = [f"{percent(system.suite[rule]):.1f}" for rule in WITH_SUITES]
        published = SYSTEMS.get(system.name)
        if published:
            difference = percent(system.suite["strict"]) - published.test_suite
            cells += [f"{published.test_suite:.1f}", f"{difference:+.1f}"]
        else:
            cells += ["-", "-"]
        rows.append([system.title, *cells])
    columns = ("", *WITH_SUITES, "published", "strict less published")
    return "Accuracy with suites, in percent", columns, rows


def _difficulty_tables(systems: Sequence[System]) -> Iterator[Section]:
    columns = ("", *WITH_SUITES, "published", "strict less published")
    for system in systems:
        rows = _difficulty_rows(system)
        if rows:
            yield f"{system.title} by difficulty, with suites", columns, rows


def _difficulty_rows(system: System) -> list[list[str]]:
    published = SYSTEMS.get(system.name)
    parts = {rule: _by_difficulty(system.suite[rule]) for rule in WITH_SUITES}
    rows = []
    for difficulty, strict_rows in parts["strict"].items():
        cells = [f"{percent(parts[rule][difficulty]):.1f}" for rule in WITH_SUITES]
        accuracy = published.by_difficulty.get(difficulty) if published else None
        if accuracy is None:
            cells += ["-", "-"]
        else:
            cells += [f"{accuracy:.1f}", f"{percent(strict_rows) - accuracy:+.1f}"]
        rows.append([difficulty, *cells])
    return rows


def _seconds_table(systems: Sequence[System]) -> Section:
    rows = []
    for system in systems:
        cells = [f"{system.seconds[key]:.1f}" for key in ("strict", "suite strict")]
        rows.append([f"{system.title}, {len(system.file.rows):,} predictions", *cells])
    return "Seconds", ("strict", "originals", "with suites"), rows


def _listed(unlike: Sequence[Disagreement], systems: Sequence[System]) -> Iterator[Section]:
    """Yield each prediction that is judged in another way, or rejected by a sub-database."""
    for line in unlike:
        heading = f"{line.system}, row {line.row}: {line.ours} under {line.rule}, not officially"
        yield f"{heading}\n  {line.gold[:_SHOWN]}\n  {line.predicted[:_SHOWN]}", (), ()
    for system in systems:
        for row in rejected_rows(system):
            reason = system.rejected[row.judged]
            heading = f"{system.name}, row {row.row.number}: accepted, and wrong on {reason}"
            gold, predicted = row.judged.gold[:_SHOWN], row.judged.predicted[:_SHOWN]
            yield f"{heading}\n  {gold}\n  {predicted}", (), ()


def _percent_by_difficulty(rows: Sequence[JudgedRow]) -> dict[str, float]:
    return {difficulty: percent(part) for difficulty, part in _by_difficulty(rows).items()}


def figures(
    systems: Sequence[System], unlike: Sequence[Disagreement], goals: Sequence[Goal]
) -> dict[str, object]:
    """Return all figures as JSON values."""
    by_system: dict[str, object] = {}
    for system in systems:
        by_system[system.name] = {
            "original": {rule: percent(rows) for rule, rows in system.original.items()},
            "suite": {rule: percent(rows) for rule, rows in system.suite.items()},
            "suite_by_difficulty": {
                rule: _percent_by_difficulty(rows) for rule, rows in system.suite.items()
            },
            "accepted": len(system.accepted()),
            "rejected": [row.row.number for row in rejected_rows(system)],
            "seconds": system.seconds,
        }
    return {
        "systems": by_system,
        "unlike_official": [asdict(line) for line in unlike],
        "goals": [asdict(goal) for goal in goals],
    }


if __name__ == "__main__":
    main()
