"""Published golds, recorded predictions and times of verdicts."""

import csv
import hashlib
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bench.judge.measure import ORIGINAL, Databases
from bench.judge.query import Facts, normal
from lm_eval_ext.errors import DataError
from lm_eval_ext.sql import Databases as Folder
from lm_eval_ext.sql import (
    Example,
    Executor,
    NamedDatabases,
    OneDatabase,
    Verdict,
    databases_at,
    find_semantics,
    place_of,
)
from lm_eval_ext.sql.predictions import example_of, read_predictions

Golds = dict[str, tuple[Path, list[str]]]
"""By database id: the original, and all distinct golds."""

JUDGED = Path(__file__).with_name("recorded.tsv")
"""What a person said of recorded predictions that added rows turn wrong."""

TIMED = 1500


def golds(data: Path) -> Golds:
    """All distinct golds of the published data that have a database."""
    folder = Folder(data / "spider_databases")
    found: dict[str, dict[str, None]] = defaultdict(dict)
    paths: dict[str, Path] = {}
    for pattern in ("*/*/train.tsv", "*/*/test.tsv", "combination/*.tsv"):
        for file in sorted((data / "magnifico" / "magnifico_data").glob(pattern)):
            with file.open(newline="", encoding="utf-8") as opened:
                for row in csv.DictReader(opened, delimiter="\t"):
                    db_id = row["Question"].split(":")[0].strip().casefold()
                    path = folder.find_sqlite(db_id)
                    if path is not None:
                        paths[db_id] = path
                        found[db_id][row["Parse"]] = None
    return {db_id: (paths[db_id], sorted(found[db_id])) for db_id in sorted(found)}


def mutants(gold: str, facts: Facts) -> Iterator[tuple[str, str, bool]]:
    """The package's own list, with its proofs of equivalence."""
    from lm_eval_ext.sql.equivalence import equivalent
    from lm_eval_ext.sql.mutants import mutants as listed

    for one in listed(gold, facts.schema):
        yield one.kind, one.sql, equivalent(gold, one.sql, facts.schema) is not None


def gate(gold: str, facts: Facts) -> set[str]:
    """The right rewrites that the package tries itself."""
    from lm_eval_ext.sql.suite.checks import Runner
    from lm_eval_ext.sql.suite.checks import rewrites as tried

    return set(map(normal, tried(gold, facts.schema, Runner(facts.connection))))


# Recorded predictions.


def recorded(
    data: Path, known: Golds, found: dict[str, Databases], judges: dict[str, Callable[[str], bool]]
) -> dict[str, Any]:
    """Agreement on the originals, and right predictions that other databases turn wrong."""
    csv.field_size_limit(1 << 30)
    rows = read_predictions(data / "magnifico/recorded_predictions/runs.tsv")
    examples = [example_of(row) for row in rows]
    with Executor(data / "spider_databases") as executor:
        verdicts = list(executor.score(examples, semantics="reference"))
    agreement: dict[str, Counter[str]] = defaultdict(Counter)
    right: dict[Example, None] = {}
    for row, one, verdict in zip(rows, examples, verdicts, strict=True):
        part = "older" if row["run"].startswith("old_outputs") else "newer"
        if verdict.status == "database_missing":
            part = "database missing"
        agreement[part]["rows"] += 1
        agreement[part]["agree"] += verdict.correct == (row["recorded_correct"] == "1")
        db_id = one.db_id.casefold()
        if verdict.correct and db_id in known and one.gold in known[db_id][1]:
            right[one._replace(db_id=db_id)] = None
    wrong_on = _wrong_on(list(right), found)
    said = {row["key"]: row["said"] for row in _judged()}
    turned = [
        {**one._asdict(), "key": prediction_key(one), "wrong_on": labels,
         "said": said.get(prediction_key(one), "not judged yet")}
        for one, labels in wrong_on.items()
    ]  # fmt: skip
    return {
        "agreement": {part: dict(counts) for part, counts in agreement.items()},
        "right": len(right),
        "turned": turned,
        "judges": {
            name: Counter(
                one["said"] for one in turned if any(asked(label) for label in one["wrong_on"])
            )
            for name, asked in judges.items()
        },
    }


def _wrong_on(right: Sequence[Example], found: dict[str, Databases]) -> dict[Example, list[str]]:
    """The labels of databases that turn each prediction wrong, if any."""
    wrong: dict[Example, list[str]] = defaultdict(list)
    with Executor(named(found)) as executor:
        for label in sorted({label for one in found.values() for label in one.others}):
            for one, verdict in _verdicts(executor, right, label, found):
                if verdict.scorable and not verdict.correct:
                    wrong[one].append(label)
    return wrong


def named(found: dict[str, Databases]) -> NamedDatabases:
    """All databases, by id and label."""
    return NamedDatabases(
        {
            f"{db_id}/{label}": place_of(path)
            for db_id, one in found.items()
            for label, path in [(ORIGINAL, one.original)]
            + [(label, other.path) for label, other in one.others.items()]
        }
    )


def _verdicts(
    executor: Executor, asked: Iterable[Example], label: str, found: dict[str, Databases]
) -> Iterator[tuple[Example, Verdict]]:
    """Verdicts on the predictions that a database may judge."""
    here = [one for one in asked if label in found[one.db_id].labels(one.gold)]
    for made in (False, True):
        mine = [
            o for o in here if (label != ORIGINAL and found[o.db_id].others[label].made) == made
        ]
        there = (one._replace(db_id=f"{one.db_id}/{label}") for one in mine)
        yield from zip(mine, executor.score(there, semantics=semantics_of(made=made)), strict=True)


def semantics_of(*, made: bool) -> str:
    """The comparison on the original, or on databases that we made."""
    return getattr(find_semantics("reference"), "made", "reference") if made else "reference"


def prediction_key(one: Example) -> str:
    """Names a prediction in :data:`JUDGED` without its text."""
    return hashlib.sha256("\0".join(one).encode("utf-8", "surrogateescape")).hexdigest()[:16]


@cache
def _judged() -> list[dict[str, str]]:
    if not JUDGED.exists():
        return []
    with JUDGED.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def recorded_page(found: dict[str, Any]) -> list[str]:
    """Lines of Markdown."""
    lines = []
    for part, counts in found["agreement"].items():
        if part != "database missing":
            share = 100 * counts["agree"] / counts["rows"]
            lines.append(
                f"- recorded verdicts on originals, {part} runs: {counts['agree']:,} of "
                f"{counts['rows']:,} agree ({share:.2f} %)"
            )
    for name, said in found["judges"].items():
        if name != ORIGINAL:
            parts = ", ".join(f"{what} {count}" for what, count in sorted(said.items()))
            lines.append(
                f"- of {found['right']} right recorded predictions, {name} turns wrong: "
                f"{parts or 'none'}"
            )
    return lines


# Times.


@dataclass(frozen=True)
class Times:
    """Seconds that verdicts took, with the start of the workers; or why none were given."""

    engine: str
    judge: str
    verdicts: int = 0
    seconds: float = 0.0
    problem: str = ""


def times(
    data: Path, known: Golds, found: dict[str, Databases], judges: dict[str, Callable[[str], bool]]
) -> Iterator[Times]:
    """Verdicts on recorded predictions, each asked further only while it is right."""
    csv.field_size_limit(1 << 30)
    rows = read_predictions(data / "magnifico/recorded_predictions/runs.tsv")
    every = [one._replace(db_id=one.db_id.casefold()) for one in map(example_of, rows)]
    here = [one for one in every if one.db_id in known and one.gold in known[one.db_id][1]]
    chosen = here[:: max(1, len(here) // TIMED)][:TIMED]
    labels = sorted({label for one in found.values() for label in one.others})
    for name, asked in judges.items():
        began = time.perf_counter()
        left = chosen
        with Executor(named(found)) as executor:
            for label in filter(asked, [ORIGINAL, *labels]):
                verdicts = _verdicts(executor, left, label, found)
                wrong = {one for one, verdict in verdicts if not verdict.correct}
                left = [one for one in left if one not in wrong]
        yield Times("SQLite", name, len(chosen), time.perf_counter() - began)


GOLD = "SELECT name FROM mast WHERE height > 30"


def engine_times() -> Iterator[Times]:
    """Verdicts on own questions on DuckDB and PostgreSQL, on the original rows."""
    root = Path(__file__).resolve().parents[2]
    script = (root / "examples/magnifico_own/yard.sql").read_text(encoding="utf-8")
    asked = [
        Example("yard", GOLD, f"SELECT name FROM mast WHERE height > {29 + n % 3} AND {n} = {n}")
        for n in range(TIMED)
    ]
    with tempfile.TemporaryDirectory() as folder:
        try:
            import duckdb

            duckdb.connect(f"{folder}/yard.duckdb").execute(script).close()
            yield _timed("DuckDB", databases_at(f"{folder}/yard.duckdb"), asked)
        except (ImportError, DataError) as error:
            yield Times("DuckDB", "original", problem=f"not measured: {error}")
    yield _on_postgresql(script, asked, root)


def _on_postgresql(script: str, asked: Sequence[Example], root: Path) -> Times:
    sys.path.insert(0, str(root / "tests"))
    from support import postgres

    class MissingError(Exception):
        pass

    def missing(reason: str) -> None:
        raise MissingError(reason)

    try:
        statements = ("CREATE DATABASE yard", "CREATE ROLE reader LOGIN")
        with postgres.served(*statements, missing=missing) as own:
            with own.admin("yard") as admin:
                admin.execute(script)
                admin.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
            return _timed("PostgreSQL", databases_at(own.url("yard")), asked)
    except MissingError as error:
        return Times("PostgreSQL", "original", problem=f"not measured: {error}")


def _timed(engine: str, databases: Folder | OneDatabase, asked: Sequence[Example]) -> Times:
    began = time.perf_counter()
    with Executor(databases) as executor:
        count = sum(verdict.scorable for verdict in executor.score(asked, semantics="strict"))
    return Times(engine, "original", count, time.perf_counter() - began)
