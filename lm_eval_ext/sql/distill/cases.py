"""A gold with its near misses and rewrites: which of them a database judges wrongly, and why.

:mod:`lm_eval_ext.sql.proofs` proves what holds on every database, :mod:`.original_rows` what holds
on every populated copy.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from lm_eval_ext.sql.distill.cuts import Cut, cuts_of, tied
from lm_eval_ext.sql.distill.original_rows import OriginalRows
from lm_eval_ext.sql.distill.query import Query
from lm_eval_ext.sql.distill.report import Broken, GoldReport, Tie
from lm_eval_ext.sql.distill.scratch_db import NoResultError, Runner
from lm_eval_ext.sql.mutants import Mutant, mutants
from lm_eval_ext.sql.parsing import UnparsedQuery, parse
from lm_eval_ext.sql.proofs import equivalent, unsatisfiable
from lm_eval_ext.sql.rewrites import Facts, Need, Rewrite, rewrites
from lm_eval_ext.sql.schema import Schema
from lm_eval_ext.sql.values import Row


@dataclass
class Case:
    """A gold that runs.

    Attributes:
        misses: Its near misses.
        before: Rows on the original.
        rows: Its present result.
        tied: Positions in ``misses`` of those with the same result.
        slow: Positions of those that exceeded the limit of steps.
        proven: Why a near miss is equivalent, by position; computed for ties only.
        always_empty: Why the gold is always empty; None if that is not proven.
        cuts: Its LIMITs.
        cut_ties: Positions in ``cuts`` of those that separate equal rows.
        cut_before: Likewise, on the original.
        rewrites: Other ways to write it, which must keep its result.
    """

    gold: str
    query: Query
    misses: tuple[Mutant, ...]
    before: int = -1
    rows: list[Row] = field(default_factory=list)
    tied: frozenset[int] = frozenset()
    slow: frozenset[int] = frozenset()
    proven: dict[int, str | None] = field(default_factory=dict)
    always_empty: str | None = None
    cuts: tuple[Cut, ...] = ()
    cut_ties: frozenset[int] = frozenset()
    cut_before: frozenset[int] = frozenset()
    rewrites: tuple[Rewrite, ...] = ()
    _queries: dict[int, Query] = field(default_factory=dict)

    def anew(self) -> "Case":
        """The same gold before any database was seen."""
        return Case(self.gold, self.query, self.misses, cuts=self.cuts, rewrites=self.rewrites)

    def read_miss(self, number: int, schema: Schema) -> Query:
        """Returns what a near miss reads."""
        if number not in self._queries:
            self._queries[number] = Query(parse(self.misses[number].sql, schema), schema)
        return self._queries[number]

    @property
    def open(self) -> frozenset[int]:
        """The ties that are not proven to be unavoidable."""
        return frozenset(number for number in self.tied if self.proven.get(number) is None)

    @cached_property
    def no_ties(self) -> frozenset[Need]:
        """What rewrites need of the rows around a LIMIT or an extreme."""
        return frozenset(
            need for rewrite in self.rewrites for need in rewrite.needs if need.kind == "no tie"
        )

    @property
    def empty(self) -> bool:
        """Whether the result is empty and not proven to be so always."""
        return not self.rows and self.always_empty is None

    @property
    def lacking(self) -> int:
        """How many near misses and ties at a LIMIT are left, plus 1 if a result is missing."""
        return len(self.open) + self.empty + len(self.cut_ties)


def make_case(gold: str, schema: Schema, facts: Facts | None) -> Case:
    """Reads a gold, makes its near misses, and its rewrites if facts of the original are given.

    Raises:
        UnparsedQuery: It is not a query that can be read.
    """
    try:
        query = Query(parse(gold, schema), schema)
        return Case(
            gold,
            query,
            mutants(gold, schema),
            cuts=cuts_of(query),
            rewrites=() if facts is None else rewrites(gold, schema, facts),
        )
    except RecursionError:
        raise UnparsedQuery("nested too deeply") from None


def examine(case: Case, runner: Runner, schema: Schema, originals: OriginalRows | None) -> None:
    """Runs a gold and its near misses on a database, and updates the case.

    Raises:
        NoResultError: The gold does not run.
    """
    case.rows = runner.rows(case.gold)
    if not case.rows and case.always_empty is None:
        case.always_empty = unsatisfiable(case.gold, schema)
        if case.always_empty is None and originals is not None:
            case.always_empty = originals.always_empty(case.gold)
    case.cut_ties = tied(case.cuts, runner)
    case.tied, case.slow = ties(case, case.rows, range(len(case.misses)), runner)
    for number in sorted(case.tied - case.proven.keys()):
        case.proven[number] = equivalent(case.gold, case.misses[number], schema)
        if case.proven[number] is None and originals is not None:
            case.proven[number] = originals.equivalent(case.gold, case.misses[number].sql)


def ties(
    case: Case, rows: list[Row], numbers: Iterable[int], runner: Runner
) -> tuple[frozenset[int], frozenset[int]]:
    """Returns which near misses have the gold's result, and which exceeded the limit.

    A near miss that fails counts as having another result.
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


def _broken(case: Case, runner: Runner) -> Iterator[Broken]:
    """Yields the rewrites with another result than the gold's; one that takes long has none."""
    for rewrite in case.rewrites:
        try:
            same = runner.same(case.rows, rewrite.sql)
        except NoResultError as error:
            same = error.slow
        if not same:
            yield Broken(rewrite.kind, rewrite.sql, rewrite.text)


def report_on(case: Case, runner: Runner) -> GoldReport:
    """Returns a case's present state as a report; ``runner`` reads the database."""
    empty = None
    if not case.rows:
        empty = "not filled" if case.always_empty is None else f"unsatisfiable: {case.always_empty}"
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
        rewrites=dict(sorted(Counter(rewrite.kind for rewrite in case.rewrites).items())),
        broken=tuple(_broken(case, runner)),
        cut_ties=len(case.cut_ties),
        new_cut_ties=len(case.cut_ties - case.cut_before),
    )
