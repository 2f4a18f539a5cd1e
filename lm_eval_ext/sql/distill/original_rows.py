"""Proofs from the original's rows: they stay, so what is looked up by a key stays, too.

:mod:`lm_eval_ext.sql.proofs` proves what holds on every database; what is said here holds
on every database that has all of the original's rows, unchanged, and whose keys are valid.
"""

from sqlglot import exp

from lm_eval_ext.sql.distill.planning import conjuncts, literal, operator_of
from lm_eval_ext.sql.distill.runner import NoResultError, Runner
from lm_eval_ext.sql.parsing import UnparsedQuery, parse, resolve, to_sql
from lm_eval_ext.sql.schema import Schema


class Kept:
    """What is certain because the original's rows stay.

    Args:
        runner: Of the original, or of a copy before rows were added.
        schema: Its schema.
    """

    def __init__(self, runner: Runner, schema: Schema) -> None:
        self._runner = runner
        self._schema = schema
        self._known: dict[str, tuple[str, bool] | None] = {}

    def equivalent(self, gold: str, other: str) -> str | None:
        """Returns why no populated copy tells two queries apart; None if that is not proven."""
        one, two = self._fixed(gold), self._fixed(other)
        if one is None or two is None:
            return None
        if one[0] == two[0]:
            return "they differ in looking up a row by its key only, and find the same"
        if one[1] and two[1]:
            return "both compare with the row of a key, which does not fulfil what is asked of it"
        return None

    def barren(self, gold: str) -> str | None:
        """Returns why a query is empty on every populated copy; None if that is not proven."""
        found = self._fixed(gold)
        if found is None or not found[1]:
            return None
        return "it compares with the row of a key, which does not fulfil what is asked of it"

    def _fixed(self, sql: str) -> tuple[str, bool] | None:
        """Returns a query with what its lookups find in their place, and whether it is empty."""
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
            rows = self._runner.rows(to_sql(select))
            nothing = not rows or rows[0][0] is None
            place = select.parent
            assert place is not None
            empty = empty or (nothing and self._decides(place, tree))
            place.replace(exp.Literal.string(f"found by key: {rows!r}"))
        return to_sql(tree), empty

    def _is_lookup(self, select: exp.Select) -> bool:
        """Whether it reads one table only, of which a condition picks one row that is there."""
        source = select.args["from_"].this if select.args.get("from_") else None
        where = select.args.get("where")
        if (
            not isinstance(source, exp.Table)
            or source.name not in self._schema
            or where is None
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
        for part in conjuncts([where.this]):
            if (
                isinstance(part, exp.EQ)
                and isinstance(part.this, exp.Column)
                and part.this.name.lower() in keys
                and literal(part.expression) not in (None, (None,))
                and resolve(part.this, self._schema) is not None
            ):
                count = exp.select("count(*)").from_(source.copy()).where(part.copy())
                return self._runner.rows(to_sql(count)) == [(1,)]
        return False

    def _decides(self, subquery: exp.Expr, tree: exp.Expr) -> bool:
        """Whether a subquery that finds nothing leaves the whole without rows."""
        if not isinstance(tree, exp.Select) or tree.args.get("where") is None:
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
            for part in conjuncts([tree.args["where"].this])
        )
