"""A gold with its near misses and rewrites: which of them a database judges wrongly, and why.

:mod:`lm_eval_ext.sql.proofs` proves what holds on every database. :class:`OriginalRows` proves
what holds on every database with valid keys that has all of the original's rows, unchanged: what
is looked up by a key stays.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from lm_eval_ext.sql.distill.cuts import cut_ties
from lm_eval_ext.sql.distill.hints import literal, operator_of
from lm_eval_ext.sql.distill.query import Query
from lm_eval_ext.sql.distill.report import Broken, GoldReport, Tie
from lm_eval_ext.sql.distill.scratch_db import NoResultError, Runner
from lm_eval_ext.sql.mutants import NearMiss, near_misses
from lm_eval_ext.sql.parsing import UnparsedQuery, parse, parts_of, resolve, to_sql
from lm_eval_ext.sql.proofs import equivalent, unsatisfiable
from lm_eval_ext.sql.rewrites import Facts, Rewrite, rewrites
from lm_eval_ext.sql.schema import Schema
from lm_eval_ext.sql.values import Row


class OriginalRows:
    """Proofs that rely on the original's rows, which ``runner`` reads."""

    def __init__(self, runner: Runner, schema: Schema) -> None:
        self.runner = runner
        self._schema = schema
        self._known: dict[str, tuple[str, bool] | None] = {}

    def equivalent(self, gold: str, other: str) -> str | None:
        """Returns why no populated copy distinguishes two queries; None if that is not proven."""
        one, two = self._fixed(gold), self._fixed(other)
        if one is None or two is None:
            return None
        if one[0] == two[0]:
            return "they differ in looking up a row by its key only, and find the same"
        if one[1] and two[1]:
            return "both compare with the row of a key, which does not fulfil what is asked of it"
        return None

    def always_empty(self, gold: str) -> str | None:
        """Returns why a query is empty on every populated copy; None if that is not proven."""
        found = self._fixed(gold)
        if found is None or not found[1]:
            return None
        return "it compares with the row of a key, which does not fulfil what is asked of it"

    def _fixed(self, sql: str) -> tuple[str, bool] | None:
        """Returns a query with its lookups replaced by what they find, and whether it is empty."""
        if sql not in self._known:
            try:
                self._known[sql] = self._replaced(parse(sql, self._schema))
            except (UnparsedQuery, NoResultError, RecursionError):
                self._known[sql] = None
        return self._known[sql]

    def _replaced(self, tree: exp.Expr) -> tuple[str, bool] | None:
        lookups = [
            select
            for select in tree.find_all(exp.Select)
            if isinstance(select.parent, exp.Subquery) and self._is_lookup(select)
        ]
        if not lookups:
            return None
        empty = False
        for select in lookups:
            rows = self.runner.rows(to_sql(select))
            nothing = not rows or rows[0][0] is None
            place = select.parent
            assert place is not None
            empty = empty or (nothing and self._decides(place, tree))
            place.replace(exp.Literal.string(f"found by key: {rows!r}"))
        return to_sql(tree), empty

    def _is_lookup(self, select: exp.Select) -> bool:
        """Whether it reads one table, and a condition on a key selects an existing row."""
        source = select.args["from_"].this if select.args.get("from_") else None
        if (
            not isinstance(source, exp.Table)
            or source.name not in self._schema
            or select.args.get("joins")
            or any(node is not select for node in select.find_all(exp.Query))
        ):
            return False
        table = self._schema[source.name]
        names = (source.alias_or_name.lower(), "")
        for column in select.find_all(exp.Column):
            if column.table.lower() not in names or table.column(column.name) is None:
                return False
        keys = {key[0].lower() for key in table.unique_keys if len(key) == 1}
        for part in (part.unnest() for part in parts_of(select, "where")):
            if (
                isinstance(part, exp.EQ)
                and isinstance(part.this, exp.Column)
                and part.this.name.lower() in keys
                and literal(part.expression) not in (None, (None,))
                and resolve(part.this, self._schema) is not None
            ):
                count = exp.select("count(*)").from_(source.copy()).where(part.copy())
                return self.runner.rows(to_sql(count)) == [(1,)]
        return False

    def _decides(self, subquery: exp.Expr, tree: exp.Expr) -> bool:
        """Whether the whole query has no rows if a subquery finds nothing."""
        if not isinstance(tree, exp.Select):
            return False
        if tree.args.get("group") is None and any(
            output.find(exp.AggFunc, exp.Anonymous) for output in tree.selects
        ):
            return False
        having = tree.args.get("having")
        if having is not None and tree.args.get("group") is None:
            return False
        return any(
            operator_of(part) is not None
            and any(side is subquery for side in (part.this, part.expression))
            for part in (part.unnest() for part in parts_of(tree, "where"))
        )


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
    """

    gold: str
    query: Query
    misses: tuple[NearMiss, ...]
    before: int = -1
    rows: list[Row] = field(default_factory=list)
    tied: frozenset[int] = frozenset()
    slow: frozenset[int] = frozenset()
    proven: dict[int, str | None] = field(default_factory=dict)
    always_empty: str | None = None
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
        """Whether the result is empty and not proven to be so always."""
        return not self.rows and self.always_empty is None

    @property
    def lacking(self) -> int:
        """How many near misses are still to be distinguished, plus 1 if a result is missing."""
        return len(self.open) + self.empty


def make_case(gold: str, schema: Schema) -> Case:
    """Reads a gold and makes its near misses.

    Raises:
        UnparsedQuery: It is not a query that can be read.
    """
    try:
        return Case(gold, Query(parse(gold, schema), schema), near_misses(gold, schema))
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


def _broken(case: Case, tried: Iterable[Rewrite], runner: Runner) -> Iterator[Broken]:
    """Yields the rewrites with another result than the gold's; one that takes long has none."""
    for rewrite in tried:
        try:
            same = runner.same(case.rows, rewrite.sql)
        except NoResultError as error:
            same = error.slow
        if not same:
            yield Broken(rewrite.kind, rewrite.sql, rewrite.text)


def report_on(case: Case, runner: Runner, facts: Facts) -> GoldReport:
    """Returns a case's present state as a report.

    Args:
        case: Examined before.
        runner: Reads the database.
        facts: Of the original; its rewrites are those that are right there.
    """
    try:
        tried = rewrites(case.gold, facts.schema, facts)
    except (UnparsedQuery, RecursionError):
        tried = ()
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
        rewrites=dict(sorted(Counter(rewrite.kind for rewrite in tried).items())),
        broken=tuple(_broken(case, tried, runner)),
        cut_ties=cut_ties(case.query, runner),
    )
