"""``lm-eval-ext magnifico populate --check``: how well test suites judge right and wrong queries.

A mutant is a wrong query that differs from the gold by one mistake. It is missed if no database of
the suite distinguishes it from the gold. A rewrite is a right query that is written otherwise.
"""

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.benchmarks.magnifico import corpora, mini
from lm_eval_ext.benchmarks.magnifico.gold_files import Wanted
from lm_eval_ext.sql.equivalence import equivalent
from lm_eval_ext.sql.suite import COPY, Judge, Original, Suite, name_of, populate_all, read_shipped
from lm_eval_ext.sql.suite import pack as pack_seeds
from lm_eval_ext.sql.suite.build import mutants_of
from lm_eval_ext.sql.suite.checks import rewrites
from lm_eval_ext.sql.suite.columns import Domain
from lm_eval_ext.sql.values import Value, quoted

ROWS, ROWS_V2 = "populated.json", "populated-v2.json"
"""Beside the shipped seeds: the rows of populated copies, and those of version 2."""

VALUES = {
    "own": "a value of the column",
    "named": "a constant of a gold, or what stands beside it",
    "of its kind": "another value of the same kind, with no more decimals",
    "null": "NULL, where the original has some",
    "first null": "NULL, where the original has none",
    "run of letters": "a text with three equal letters in a row, where no text has any",
    "other kind": "anything else, such as a day that does not exist",
}
"""Kinds of values in added rows; the last three are faults."""


@dataclass
class Report:
    """What one or more suites distinguish; numbers of distinct golds of a database.

    Attributes:
        golds: Golds that run.
        broken: Golds that do not.
        mutants: Mutants of all golds.
        missed: Golds with a mutant that no database distinguishes and that is not proven
            equivalent; the mutants by kind are in ``kinds``.
        equivalent: Missed mutants that are proven equivalent.
        not_judged: Golds that no database but the original judges.
        rewrites: Right rewrites of the gate.
        rewrites_wrong: Those that would be judged wrong.
        values: Values of added rows by :data:`VALUES`.
        kinds: Golds with a missed mutant by its kind.
        listed: The missed mutants.
    """

    golds: int = 0
    broken: int = 0
    mutants: int = 0
    missed: int = 0
    equivalent: int = 0
    not_judged: int = 0
    rewrites: int = 0
    rewrites_wrong: int = 0
    values: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    listed: list[dict[str, str]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return dict(vars(self))

    def as_text(self) -> str:
        """In some lines for a reader."""
        kinds = ", ".join(f"{kind} {count}" for kind, count in self.kinds.most_common())
        values = ", ".join(f"{kind} {self.values[kind]:,}" for kind in VALUES)
        return "\n".join(
            [
                f"{self.golds:,} golds ({self.broken:,} more do not run), "
                f"{self.not_judged:,} of them judged by the original alone",
                f"{self.missed:,} golds with a mutant that is missed ({kinds or 'none'}), of "
                f"{self.mutants:,} mutants; {self.equivalent:,} missed ones are proven equivalent",
                f"{self.rewrites_wrong:,} of {self.rewrites:,} right rewrites judged wrong",
                f"added values: {values}",
            ]
        )


def pack(name: Literal["published", "mini"], workers: int = 2) -> None:
    """Searches for a corpus's suites and writes the seeds that ship with the package.

    For whoever changes rows, golds or the generator; run it from a program with a main guard.
    """
    shipped = {"published": corpora.SHIPPED, "mini": mini.SHIPPED}[name]
    found = corpora.find(
        name, dialogues=False, descriptions=False, databases=None, examples=None
    ).corpus
    jobs = {
        db_id: (found.databases[db_id].path, golds)
        for db_id, golds in found.golds().items()
        if db_id in found.databases
    }
    rows = read_shipped(shipped.with_name(ROWS), None)
    with TemporaryDirectory() as folder, atomic_text(shipped) as file:
        file.write(pack_seeds(populate_all(jobs, Path(folder), rows, workers=workers).values()))


def examine(found: Wanted, suites: Mapping[str, Suite]) -> Report:
    """Examines suites, with a progress bar.

    Raises:
        DataError: A database cannot be read.
    """
    from tqdm import tqdm

    report = Report()
    for db_id, suite in tqdm(suites.items(), desc="examining", unit="db", disable=None):
        path, golds = found[db_id]
        original = Original(path, golds)
        with closing(original.connection), closing(Judge(suite, path)) as judge:
            for gold in original.golds:
                if name_of(gold) in suite.judges:
                    report.not_judged += not suite.judging(gold)
                    _examine(db_id, gold, original, judge, report)
                else:
                    report.broken += 1
            for (table, column), domain in original.source.domains.items():
                name = original.schema[table].name
                stored = original.schema[table][column].name
                for value in _added(judge, suite, original, name, stored):
                    report.values[_kind(value, domain)] += 1
    return report


def _examine(db_id: str, gold: str, original: Original, judge: Judge, report: Report) -> None:
    report.golds += 1
    wrong = mutants_of(gold, original.schema)
    report.mutants += len(wrong)
    kinds = []
    for mutant in wrong:
        if judge.wrong_on(gold, mutant.sql) is not None:
            continue
        if equivalent(gold, mutant.sql, original.schema) is not None:
            report.equivalent += 1
            continue
        kinds.append(mutant.kind)
        report.listed.append({"db_id": db_id, "gold": gold, **asdict(mutant)})
    report.missed += bool(kinds)
    report.kinds.update(set(kinds))
    right = rewrites(gold, original.schema, original.runner)
    report.rewrites += len(right)
    # Under reference semantics some are wrong on the original, by the order of their rows.
    report.rewrites_wrong += sum(
        judge.wrong_on(gold, sql) not in (None, "original") for sql in right
    )


def _added(judge: Judge, suite: Suite, original: Original, table: str, column: str) -> list[Value]:
    """The values of added rows; of the copy, those that it has more often than the original."""
    query = f"SELECT {quoted(column)} FROM {quoted(table)}"
    values: list[Value] = []
    before = Counter(value for (value,) in original.connection.execute(query))
    for name in suite.databases:
        now = Counter(value for (value,) in judge.runners[name].connection.execute(query))
        values += (now - before if name == COPY else now).elements()
    return values


def _kind(value: Value, domain: Domain) -> str:
    if value is None:
        return "null" if domain.nulls else "first null"
    if value in domain.constants:
        return "named"
    if value in domain.own or value in domain.sample:
        return "own"
    if isinstance(value, str) and domain.odd(value):
        return "run of letters"
    return "of its kind" if domain.fits(value) else "other kind"
