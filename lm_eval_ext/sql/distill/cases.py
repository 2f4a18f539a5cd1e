"""A gold with its near misses, and which of them a database does not tell from it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from lm_eval_ext.sql.distill.original_rows import Kept
from lm_eval_ext.sql.distill.report import GoldReport, Tie
from lm_eval_ext.sql.distill.runner import NoResultError, Runner
from lm_eval_ext.sql.distill.scopes import Query
from lm_eval_ext.sql.mutants import NearMiss, UnparsedQuery, near_misses
from lm_eval_ext.sql.parsing import parse
from lm_eval_ext.sql.proofs import equivalent, unsatisfiable
from lm_eval_ext.sql.schema import Schema
from lm_eval_ext.sql.values import Row


@dataclass
class Case:
    """A gold that runs.

    Attributes:
        gold: The query.
        query: What it reads.
        misses: Its near misses.
        before: Rows on the original.
        rows: Its result now.
        tied: Positions in ``misses`` of those with the same result now.
        slow: Positions of those that ran over the limit of steps when last asked.
        proven: Why a near miss cannot be told from it, by position; asked for ties only.
        barren: Why the gold is always empty; None if that is not proven.
    """

    gold: str
    query: Query
    misses: tuple[NearMiss, ...]
    before: int = -1
    rows: list[Row] = field(default_factory=list)
    tied: frozenset[int] = frozenset()
    slow: frozenset[int] = frozenset()
    proven: dict[int, str | None] = field(default_factory=dict)
    barren: str | None = None
    _queries: dict[int, Query] = field(default_factory=dict)

    def read_miss(self, number: int, schema: Schema) -> Query:
        """Returns what a near miss reads."""
        if number not in self._queries:
            self._queries[number] = Query(parse(self.misses[number].sql, schema), schema)
        return self._queries[number]

    @property
    def open(self) -> frozenset[int]:
        """The ties that are not proven to be unavoidable."""
        return frozenset(number for number in self.tied if self.proven.get(number) is None)

    @property
    def empty(self) -> bool:
        """Whether rows are missing that are not proven to be impossible."""
        return not self.rows and self.barren is None

    @property
    def lacking(self) -> int:
        """How much there is to do for it."""
        return len(self.open) + self.empty


def make_case(gold: str, schema: Schema) -> Case:
    """Reads a gold and makes its near misses.

    Raises:
        UnparsedQuery: It is no query that can be read.
    """
    try:
        return Case(gold, Query(parse(gold, schema), schema), near_misses(gold, schema))
    except RecursionError:
        raise UnparsedQuery("nested too deeply") from None


def examine(case: Case, runner: Runner, schema: Schema, kept: Kept | None) -> None:
    """Brings what is known about a case up to date.

    Args:
        case: The case.
        runner: Of the database that it is held against.
        schema: Its schema.
        kept: What the original's rows prove; None if there is no original.

    Raises:
        NoResultError: The gold does not run.
    """
    case.rows = runner.rows(case.gold)
    if not case.rows and case.barren is None:
        case.barren = unsatisfiable(case.gold, schema)
        if case.barren is None and kept is not None:
            case.barren = kept.barren(case.gold)
    case.tied, case.slow = ties(case, case.rows, range(len(case.misses)), runner)
    for number in sorted(case.tied - case.proven.keys()):
        case.proven[number] = equivalent(case.gold, case.misses[number], schema)
        if case.proven[number] is None and kept is not None:
            case.proven[number] = kept.equivalent(case.gold, case.misses[number].sql)


def ties(
    case: Case, rows: list[Row], numbers: Iterable[int], runner: Runner
) -> tuple[frozenset[int], frozenset[int]]:
    """Returns which near misses have the gold's result, and which ran over the limit.

    One that fails has another result than the gold, which runs.
    """
    same, slow = set(), set()
    for number in numbers:
        try:
            if runner.same(rows, case.misses[number].sql):
                same.add(number)
        except NoResultError as error:
            if error.slow:
                slow.add(number)
    return frozenset(same), frozenset(slow)


def report_on(case: Case) -> GoldReport:
    """Returns what is known about a case."""
    empty = None
    if not case.rows:
        empty = "not filled" if case.barren is None else f"unsatisfiable: {case.barren}"
    found = tuple(
        Tie(case.gold, case.misses[number], case.proven.get(number)) for number in sorted(case.tied)
    )
    return GoldReport(
        gold=case.gold,
        rows_before=case.before,
        rows_after=len(case.rows),
        near_misses=len(case.misses),
        undecided=len(case.slow),
        ties=found,
        empty=empty,
        error=None,
    )
