"""Columns that GROUP BY leaves out, which SQLite allows and the other engines refuse.

Where the grouped columns determine such a column, by keys and by the equalities of joins, it is
added to GROUP BY: the groups stay the same.
"""

from sqlglot import exp

from lm_eval_ext.sql.convert.naming import Names
from lm_eval_ext.sql.parsing import conjuncts, find_source, parts_of, select_of, sources, table_of

_Known = tuple[int, str]
"""A source in FROM by its object's id, and a column in lower case."""


def complete_groups(tree: exp.Expr, names: Names) -> None:
    """Adds determined columns to each GROUP BY of inner joins."""
    for select in list(tree.find_all(exp.Select)):
        group = select.args.get("group")
        joins = select.args.get("joins") or ()
        if group is None or any(join.side for join in joins):
            continue
        grouped = {
            known
            for one in group.expressions
            if isinstance(one, exp.Column) and (known := _known(one, select, names))
        }
        determined = _closure(grouped, select, names)
        for column in _bare(select):
            known = _known(column, select, names)
            if known is not None and known in determined and known not in grouped:
                grouped.add(known)
                group.append("expressions", column.copy())


def _known(column: exp.Column, select: exp.Select, names: Names) -> _Known | None:
    found = find_source(column.table.casefold(), column.name.casefold(), select, names.schema)
    if found is None or found[0] is not select or table_of(found[1], names.schema) is None:
        return None
    return id(found[1]), column.name.casefold()


def _closure(start: set[_Known], select: exp.Select, names: Names) -> set[_Known]:
    """All columns that are the same wherever those at the start are."""
    conditions = parts_of(select, "where")
    for join in select.args.get("joins") or ():
        if join.args.get("on"):
            conditions += conjuncts(join.args["on"])
    equal = [
        (_known(one.this, select, names), _known(one.expression, select, names))
        for one in conditions
        if isinstance(one, exp.EQ)
        and isinstance(one.this, exp.Column)
        and isinstance(one.expression, exp.Column)
    ]
    found, size = set(start), -1
    while len(found) != size:
        size = len(found)
        for one, other in equal:
            if one is not None and other is not None and (one in found or other in found):
                found |= {one, other}
        for source in sources(select):
            table = table_of(source, names.schema)
            if table is None:
                continue
            for key in table.unique_keys:
                if all(
                    (id(source), name.casefold()) in found and table[name].not_null for name in key
                ):
                    found |= {(id(source), name) for name in table.by_name}
    return found


def _bare(select: exp.Select) -> list[exp.Column]:
    """The columns of a SELECT's own clauses that stand in no aggregate and in no subquery."""
    clauses = [*select.selects, select.args.get("having"), select.args.get("order")]
    return [
        column
        for clause in clauses
        if clause is not None
        for column in clause.find_all(exp.Column)
        if select_of(column) is select and column.find_ancestor(exp.AggFunc, exp.Select) is select
    ]
