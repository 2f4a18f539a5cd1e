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
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
_SUITE_COLUMNS = ("", *WITH_SUITES, "published", "strict less published")

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
        if self.name in SYSTEMS:
            return SYSTEMS[self.name].title
        return self.name

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


def parse_options() -> argparse.Namespace:
    """Return the options of the command line."""
    description, _, details = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        prog="python -m bench.spider",
        description=description,
        epilog=details.strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="predictions")
    parser.add_argument("--databases", type=Path, help="folder of the databases")
    parser.add_argument("--suite", type=Path, help="folder for the suites (default: the cache)")
    parser.add_argument(
        "--sub-databases", type=int, default=_SUB_DATABASES, metavar="N", help="0: none"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    return parser.parse_args()


def main() -> None:
    """Judge, print the tables, and write all figures if requested."""
    options = parse_options()
    databases = options.databases or originals("spider_dev/databases")
    files = options.files or sorted(originals("spider_dev/predictions").glob("*.jsonl"))
    source = suite_source(options.suite, build=True, databases=str(databases))
    systems = []
    for file in files:
        system = System(file.stem, read_file(file, JudgeOptions(databases)))
        judge_system(system, databases, source)
        systems.append(system)
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
        rows = judge_rows(system.file, open_judge, {}, None, f"{system.name}, {options.semantics}")
        return rows, time.perf_counter() - started


def check_by_sub_databases(systems: Sequence[System], databases: Path, count: int) -> None:
    """Run what suites accept on sub-databases, and note what these reject."""
    accepted: set[Prediction] = set()
    for system in systems:
        accepted.update(row.judged for row in system.accepted())
    reasons = reasons_to_reject(sorted(accepted), Databases(databases), count)
    for system in systems:
        for row in system.accepted():
            if row.judged in reasons:
                system.rejected[row.judged] = reasons[row.judged]


def reasons_to_reject(
    predictions: Sequence[Prediction], databases: Databases, count: int
) -> dict[Prediction, str]:
    """Return the predictions that are wrong on a sub-database, each with the reason."""
    with TemporaryDirectory(prefix="lm-eval-ext-") as folder:
        suites: dict[str, SubDatabases] = {}
        for db_id in sorted({prediction.db_id for prediction in predictions}):
            location = databases.find(db_id)
            if location is None:
                raise LookupError(f"no database {db_id!r}")
            key = db_id.casefold()
            suites[key] = make_sub_databases(Path(location.address), Path(folder, key), count)
        workers = os.cpu_count() or 1
        with SqlJudge(
            databases, suites=suites, semantics=SUB_DATABASE_RULE, workers=workers
        ) as judge:
            verdicts = judge.judge_all(predictions, progress="sub-databases")
    reasons = {}
    for prediction, verdict in zip(predictions, verdicts, strict=True):
        if not verdict.correct and verdict.scorable:
            reasons[prediction] = f"{verdict.database}: {verdict.reason}"
    return reasons


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
            measure=f"verdicts unlike the official evaluator's, {rule}",
            value=f"{count} of {total:,}",
            goal=f"at most {MOST_VERDICTS_UNLIKE}",
            reached=count <= MOST_VERDICTS_UNLIKE,
        )
    for system in systems:
        published = SYSTEMS.get(system.name)
        if published is None:
            continue
        value = percent(system.suite["strict"])
        yield Goal(
            measure=f"strict with suites, {system.title}",
            value=f"{value:.1f} (published {published.test_suite})",
            goal=f"within {MOST_POINTS_FROM_BEFORE} of {published.before}",
            reached=abs(value - published.before) <= MOST_POINTS_FROM_BEFORE,
        )
    if has_sub_databases:
        yield _sub_database_goal(systems)


def _sub_database_goal(systems: Sequence[System]) -> Goal:
    """Return the goal for predictions that suites accept and a sub-database rejects."""
    rejected = 0
    accepted = 0
    for system in systems:
        rejected += len(rejected_rows(system))
        accepted += len(system.accepted())
    allowed = MOST_REJECTED * accepted / REJECTED_OF
    return Goal(
        measure="accepted predictions that a sub-database rejects",
        value=f"{rejected} of {accepted:,}",
        goal=f"at most {MOST_REJECTED} of {REJECTED_OF:,}",
        reached=rejected <= allowed,
    )


def percent(rows: Sequence[JudgedRow]) -> float:
    """Return the accuracy of rows in percent."""
    return _PERCENT * (accuracy_of(rows).accuracy or 0.0)


def _with_column(system: System, column: str) -> int:
    """Return how many rows of a system have a value in a column."""
    return sum(row.record.get(column) is not None for row in system.file.rows)


def _by_difficulty(rows: Sequence[JudgedRow]) -> Mapping[str, list[JudgedRow]]:
    """Return the rows of each difficulty, the easiest first."""
    by_difficulty: dict[str, list[JudgedRow]] = defaultdict(list)
    for row in rows:
        by_difficulty[str(row.row.record.get("difficulty", ""))].append(row)
    ordered = {}
    for difficulty in DIFFICULTIES:
        if difficulty in by_difficulty:
            ordered[difficulty] = by_difficulty[difficulty]
    return ordered


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
        reached = "NO"
        if goal.reached:
            reached = "yes"
        rows.append([goal.measure, goal.value, goal.goal, reached])
    return "Goals", ("measure", "value", "goal", "reached"), rows


def _originals_table(systems: Sequence[System]) -> Section:
    columns = ["", *ON_ORIGINALS]
    for column in OFFICIAL.values():
        columns.append(f"{column.removeprefix('official_')} (official)")
    rows = []
    for system in systems:
        cells = [system.title, *_accuracies(system.original, ON_ORIGINALS)]
        cells += [_official_accuracy(system, column) for column in OFFICIAL.values()]
        rows.append(cells)
    return "Accuracy on the originals by rule, in percent", columns, rows


def _accuracies(rows_by_rule: Mapping[str, Sequence[JudgedRow]], rules: Iterable[str]) -> list[str]:
    """Return the accuracy by each rule, as the cells of a table."""
    return [f"{percent(rows_by_rule[rule]):.1f}" for rule in rules]


def _official_accuracy(system: System, column: str) -> str:
    """Return the accuracy by the official verdicts in a column; "-" if there are none."""
    total = _with_column(system, column)
    if not total:
        return "-"
    correct = sum(bool(row.record.get(column)) for row in system.file.rows)
    return f"{_PERCENT * correct / total:.1f}"


def _beside_published(accuracy: float, published: float | None) -> list[str]:
    """Return the cells of a published accuracy and of ours less it; "-" without one."""
    if published is None:
        return ["-", "-"]
    return [f"{published:.1f}", f"{accuracy - published:+.1f}"]


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
        published_accuracy = None
        if system.name in SYSTEMS:
            published_accuracy = SYSTEMS[system.name].test_suite
        cells = [system.title, *_accuracies(system.suite, WITH_SUITES)]
        cells += _beside_published(percent(system.suite["strict"]), published_accuracy)
        rows.append(cells)
    return "Accuracy with suites, in percent", _SUITE_COLUMNS, rows


def _difficulty_tables(systems: Sequence[System]) -> Iterator[Section]:
    for system in systems:
        rows = _difficulty_rows(system)
        if rows:
            yield f"{system.title} by difficulty, with suites", _SUITE_COLUMNS, rows


def _difficulty_rows(system: System) -> list[list[str]]:
    published: Mapping[str, float] = {}
    if system.name in SYSTEMS:
        published = SYSTEMS[system.name].by_difficulty
    by_rule = {rule: _by_difficulty(system.suite[rule]) for rule in WITH_SUITES}
    rows = []
    for difficulty, strict_rows in by_rule["strict"].items():
        cells = [difficulty]
        for rule in WITH_SUITES:
            cells.append(f"{percent(by_rule[rule][difficulty]):.1f}")
        cells += _beside_published(percent(strict_rows), published.get(difficulty))
        rows.append(cells)
    return rows


def _seconds_table(systems: Sequence[System]) -> Section:
    rows = []
    for system in systems:
        title = f"{system.title}, {len(system.file.rows):,} predictions"
        on_originals = f"{system.seconds['strict']:.1f}"
        with_suites = f"{system.seconds['suite strict']:.1f}"
        rows.append([title, on_originals, with_suites])
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


def _percents(rows_by_key: Mapping[str, Sequence[JudgedRow]]) -> dict[str, float]:
    """Return the accuracy in percent of the rows under each key."""
    return {key: percent(rows) for key, rows in rows_by_key.items()}


def figures(
    systems: Sequence[System], unlike: Sequence[Disagreement], goals: Sequence[Goal]
) -> dict[str, object]:
    """Return all figures as JSON values."""
    by_system: dict[str, object] = {}
    for system in systems:
        by_difficulty = {}
        for rule, rows in system.suite.items():
            by_difficulty[rule] = _percents(_by_difficulty(rows))
        by_system[system.name] = {
            "original": _percents(system.original),
            "suite": _percents(system.suite),
            "suite_by_difficulty": by_difficulty,
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
