"""Wrong queries of the kinds that models write, after the findings on recorded predictions."""

import re
from collections.abc import Callable, Iterator

from sqlglot import exp

from bench.judge.neighbours import Neighbour
from bench.judge.query import (
    Edit,
    Query,
    answer,
    clause,
    enclosing,
    is_day,
    joined,
    joins,
    normal,
    parts,
    sources,
)
from bench.judge.writing import held
from lm_eval_ext.sql.parsing import to_sql

EACH = 3
"""Most slips by one rule of one gold."""

Rule = Callable[[Query, int, exp.Expr], Iterator[Edit]]


def slips(query: Query) -> list[Neighbour]:
    """Returns the slips of a gold that run on the original."""
    seen = {normal(query.gold), normal(to_sql(query.tree))}
    found: list[Neighbour] = []
    for rule in RULES:
        left = EACH
        for place, node in enumerate(query.nodes):
            for edit in rule(query, place, node):
                sql = query.edited(edit)
                if not left or normal(sql) in seen:
                    continue
                seen.add(normal(sql))
                if answer(query.facts.connection, sql) is not None:
                    found.append(Neighbour(rule.__name__, sql))
                    left -= 1
    return found


def _to(place: int, text: str) -> Edit:
    def edit(nodes: list[exp.Expr]) -> None:
        nodes[place].replace(exp.Var(this=text))

    return edit


def _mode(node: exp.Expr) -> exp.Select | None:
    """The SELECT of ``x ... GROUP BY x ORDER BY COUNT(*) DESC LIMIT n``."""
    if not isinstance(node, exp.Select) or node.args.get("group") is None:
        return None
    order = node.args.get("order")
    counted = order is not None and order.expressions[0].find(exp.Count) is not None
    return node if counted and node.args.get("limit") is not None else None


def mode_as_max(query: Query, place: int, node: exp.Expr) -> Iterator[Edit]:
    select = _mode(node)
    if select is None or len(select.selects) != 1:
        return
    for name in ("Max", "Min"):
        new = select.copy()
        for part in ("group", "order", "limit"):
            new.set(part, None)
        new.set("expressions", [getattr(exp, name)(this=select.selects[0].copy())])
        yield _to(place, to_sql(new))


def mode_as_repeated(query: Query, place: int, node: exp.Expr) -> Iterator[Edit]:
    select = _mode(node)
    if select is None:
        return
    new = select.copy()
    for part in ("order", "limit"):
        new.set(part, None)
    new.set("having", exp.Having(this=exp.Var(this="COUNT(*) > 1")))
    yield _to(place, to_sql(new))


def mode_unordered(query: Query, place: int, node: exp.Expr) -> Iterator[Edit]:
    select = _mode(node)
    if select is None:
        return
    for parts_lost in (("order",), ("order", "group"), ("group",)):
        new = select.copy()
        for part in parts_lost:
            new.set(part, None)
        yield _to(place, to_sql(new))


def mode_by_value(query: Query, place: int, node: exp.Expr) -> Iterator[Edit]:
    select = _mode(node)
    if select is None:
        return
    key = to_sql(select.args["group"].expressions[0])
    up = "COUNT(*) ASC" if select.args["order"].expressions[0].args.get("desc") else "COUNT(*) DESC"
    for text in (f"{key} DESC", f"COUNT(DISTINCT {key}) DESC", up):
        new = select.copy()
        new.set("order", exp.Order(expressions=[exp.Var(this=text)]))
        yield _to(place, to_sql(new))


def mode_of_all(query: Query, place: int, node: exp.Expr) -> Iterator[Edit]:
    """The rows of the most frequent value as the first row of its groups."""
    select = _mode(node)
    tree = query.tree
    if select is None or select is tree or not isinstance(tree, exp.Select):
        return
    if clause(tree, "where") is None or len(sources(tree)) != 1:
        return
    new = tree.copy()
    rest = [p for p in parts(clause(tree, "where")) if p.find(exp.Select) is None]
    new.set("where", exp.Where(this=joined(rest)) if rest else None)
    for name in ("group", "order", "limit"):
        new.set(name, select.args[name].copy())
    yield _to(0, to_sql(new))


def count_of_column(query: Query, place: int, node: exp.Expr) -> Iterator[Edit]:
    """COUNT(*) as COUNT of a column with NULLs, or of the distinct values of any."""
    select = enclosing(node)
    if not isinstance(node, exp.Count) or not isinstance(node.this, exp.Star) or select is None:
        return
    for alias, table in query.tables(select):
        columns = query.facts.columns(table)
        for one in [c for c in columns if query.facts.has_null(c)][:2]:
            yield _to(place, f"COUNT({alias}.{one.column})")
        unlike = [c for c in columns if not query.facts.is_key(c) and query.facts.values(c)]
        for one in unlike[:2]:
            yield _to(place, f"COUNT(DISTINCT {alias}.{one.column})")


def average_otherwise(query: Query, place: int, node: exp.Expr) -> Iterator[Edit]:
    if isinstance(node, exp.Avg):
        x = to_sql(node.this)
        if held(query, node.this, "integer"):
            yield _to(place, f"SUM({x}) / COUNT({x})")
        for text in (f"AVG(DISTINCT {x})", f"ROUND(AVG({x}))", f"(MAX({x}) + MIN({x})) / 2"):
            yield _to(place, text)


def sum_or_average_once(query: Query, place: int, node: exp.Expr) -> Iterator[Edit]:
    if isinstance(node, exp.Avg | exp.Sum):
        yield _to(place, f"{'SUM' if isinstance(node, exp.Avg) else 'AVG'}({to_sql(node.this)})")


def sum_of_distinct(query: Query, place: int, node: exp.Expr) -> Iterator[Edit]:
    if isinstance(node, exp.Sum):
        yield _to(place, f"SUM(DISTINCT {to_sql(node.this)})")
        yield _to(place, f"COUNT({to_sql(node.this)})")


def extreme_as_first(query: Query, place: int, node: exp.Expr) -> Iterator[Edit]:
    """``(SELECT MAX(x) ...)`` as the first row, as a bare column."""
    if not isinstance(node, exp.Subquery) or not isinstance(node.this, exp.Select):
        return
    inner = node.this
    if len(inner.selects) != 1 or not isinstance(inner.selects[0], exp.Max | exp.Min | exp.Avg):
        return
    new = inner.copy()
    new.set("expressions", [inner.selects[0].this.copy()])
    yield _to(place, f"({to_sql(new)})")
    yield _to(place, f"({to_sql(new)} LIMIT 1)")
    if isinstance(inner.selects[0], exp.Max):
        for name in ("MIN", "AVG"):
            new.set("expressions", [exp.Var(this=f"{name}({to_sql(inner.selects[0].this)})")])
            yield _to(place, f"({to_sql(new)})")


def subquery_unfiltered(query: Query, place: int, node: exp.Expr) -> Iterator[Edit]:
    """The condition of a subquery beside it, or an average over all."""
    inner = node.this if isinstance(node, exp.Subquery) else None
    if isinstance(inner, exp.Select) and inner.args.get("where") is not None:
        new = inner.copy()
        new.set("where", None)
        yield _to(place, f"({to_sql(new)})")


def months_of_any_year(query: Query, place: int, node: exp.Expr) -> Iterator[Edit]:
    if not isinstance(node, exp.And):
        return
    own = parts(node)
    low, high = own[-2:]
    if not isinstance(low, exp.GTE) or not isinstance(high, exp.LT):
        return
    if to_sql(low.this) != to_sql(high.this) or not is_day(str(high.expression.this)):
        return
    column, rest = to_sql(low.this), [to_sql(one) for one in own[:-2]]
    first, last = str(low.expression.this), str(high.expression.this)
    months = [f"'{n:02d}'" for n in range(int(first[5:7]), int(last[5:7]))]
    for text in (
        f"strftime('%m', {column}) IN ({', '.join(months)})",
        f"{column} LIKE '%-{first[5:7]}-%'",
        f"{column} LIKE '{first[:4]}%'",
        f"{column} BETWEEN '{first}' AND '{last}'",
        f"{column} LIKE '{first[:7]}%'",
    ):
        yield _to(place, " AND ".join([*rest, text]))


def dates_apart(query: Query, place: int, node: exp.Expr) -> Iterator[Edit]:
    """A difference of years of days as one in days, or the other way round."""
    owners = [query.owner(s) for s in (node.this, node.args.get("expression"))
              if isinstance(s, exp.Column)] if isinstance(node, exp.Sub) else []  # fmt: skip
    if len(owners) != 2 or any(o is None or query.facts.kind(o[0]) != "date" for o in owners):  # noqa: PLR2004
        return
    a, b = to_sql(node.this), to_sql(node.expression)
    yield _to(place, f"(julianday({a}) - julianday({b}))")
    yield _to(place, f"(strftime('%m', {a}) - strftime('%m', {b}))")
    yield _to(place, f"CAST((julianday({a}) - julianday({b})) / 365 AS INTEGER)")


def join_by_order(query: Query, place: int, node: exp.Expr) -> Iterator[Edit]:
    if isinstance(node, exp.EQ) and node.find_ancestor(exp.Join):
        yield _to(place, f"{to_sql(node.this)} >= {to_sql(node.expression)}")
        yield _to(place, f"{to_sql(node.this)} <= {to_sql(node.expression)}")


def member_as_join(query: Query, place: int, node: exp.Expr) -> Iterator[Edit]:
    """IN as a join, which repeats rows; NOT IN as a join on other keys."""
    tree = query.tree
    if not isinstance(tree, exp.Select) or len(sources(tree)) != 1 or enclosing(node) is not tree:
        return
    if not isinstance(node, exp.In) or not isinstance(node.args.get("query"), exp.Subquery):
        return
    inner = node.args["query"].this
    if not isinstance(inner, exp.Select) or len(inner.selects) != 1 or inner.args.get("group"):
        return
    owner = query.owner(inner.selects[0]) if isinstance(inner.selects[0], exp.Column) else None
    if query.table(sources(tree)[0]) is None or owner is None or query.facts.is_key(owner[0]):
        return
    sign = "<>" if isinstance(node.parent, exp.Not) else "="
    alias, name = sources(tree)[0].alias_or_name, inner.selects[0].alias_or_name
    target = node.parent if isinstance(node.parent, exp.Not) else node
    text = query.edited(_to(query.at[id(target)], "1"))
    copy = Query(text, query.facts).tree
    for column in copy.find_all(exp.Column):
        if not column.table and enclosing(column) is copy:
            column.set("table", exp.to_identifier(alias))
    on = f"m.{name} {sign} {alias}.{node.this.name}"
    source = to_sql(sources(tree)[0])
    new = to_sql(copy).replace(
        f"FROM {source}", f"FROM {source} JOIN ({to_sql(inner)}) AS m ON {on}", 1
    )
    yield _to(0, new)


def not_in_as_not_equal(query: Query, place: int, node: exp.Expr) -> Iterator[Edit]:
    """NOT IN as ``<>`` of the first, or with the key of the wrong table."""
    if isinstance(node, exp.Not) and isinstance(node.this, exp.In):
        inner = node.this.args.get("query")
        if inner is not None:
            yield _to(place, f"{to_sql(node.this.this)} <> {to_sql(inner)}")


def second_otherwise(query: Query, place: int, node: exp.Expr) -> Iterator[Edit]:
    """The second highest as the highest, the second lowest, the third, or the second value."""
    tree = query.tree
    if node is not tree or not isinstance(tree, exp.Select):
        return
    inner = sources(tree)[0] if sources(tree) else None
    if not isinstance(inner, exp.Subquery) or not isinstance(inner.this, exp.Select):
        return
    order, limit = inner.this.args.get("order"), inner.this.args.get("limit")
    if order is None or limit is None or str(limit.expression.this) != "2":
        return
    text = to_sql(tree)
    yield _to(0, re.sub(r"LIMIT 2\)", "LIMIT 3)", text))
    yield _to(0, re.sub(r"LIMIT 1$", "LIMIT 1 OFFSET 1", text))
    yield _to(0, re.sub(r"LIMIT 2\)", "LIMIT 1)", text))
    yield _to(0, re.sub(r" DESC LIMIT 2\)", " ASC LIMIT 2)", text))


def above_as_ranked(query: Query, place: int, node: exp.Expr) -> Iterator[Edit]:
    """``x > (SELECT AVG(x))`` as an aggregate of another kind or a comparison with a group."""
    if not isinstance(node, exp.GT | exp.LT) or not isinstance(node.expression, exp.Subquery):
        return
    inner = node.expression.this
    if not isinstance(inner, exp.Select) or not inner.selects[0].find(exp.Avg):
        return
    x = inner.selects[0].find(exp.Avg).this  # type: ignore[union-attr]
    for text in (f"MAX({to_sql(x)})", f"SUM({to_sql(x)}) / 2", f"MAX({to_sql(x)}) / 2",
                 f"AVG({to_sql(x)}) - 1"):  # fmt: skip
        new = inner.copy()
        new.set("expressions", [exp.Var(this=text)])
        yield _to(query.at[id(node.expression)], f"({to_sql(new)})")


def words_exchanged(query: Query, place: int, node: exp.Expr) -> Iterator[Edit]:
    """Parts of a joined name exchanged, or a space between them."""
    if isinstance(node, exp.DPipe):
        a, b = to_sql(node.this), to_sql(node.expression)
        for text in (f"({b} || {a})", f"({a} || ' ' || {b})", f"({a} || ', ' || {b})", a, b):
            yield _to(place, text)


def product_otherwise(query: Query, place: int, node: exp.Expr) -> Iterator[Edit]:
    if isinstance(node, exp.Mul):
        a, b = to_sql(node.this), to_sql(node.expression)
        for text in (f"({a} + {b})", f"({a} || {b})", f"({a} / {b})", f"({a} * {a})"):
            yield _to(place, text)


def like_otherwise(query: Query, place: int, node: exp.Expr) -> Iterator[Edit]:
    if isinstance(node, exp.EQ) and isinstance(node.expression, exp.Literal):
        text = str(node.expression.this)
        if node.expression.is_string and not is_day(text):
            pattern = to_sql(exp.Literal.string(f"%{text}%"))
            yield _to(place, f"{to_sql(node.this)} LIKE {pattern}")


def threshold_otherwise(query: Query, place: int, node: exp.Expr) -> Iterator[Edit]:
    """A number from somewhere else, as for a word that the model does not know."""
    number = isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit()
    if number and isinstance(node.parent, exp.GT | exp.LT | exp.GTE | exp.LTE | exp.EQ):
        value = int(str(node.this))
        for other in (value * 2, value // 2, 0, 100):
            yield _to(place, str(other))


def group_otherwise(query: Query, place: int, node: exp.Expr) -> Iterator[Edit]:
    """Groups by another selected column, or by all of them."""
    group = node.args.get("group")
    if not isinstance(node, exp.Select) or group is None or len(group.expressions) != 1:
        return
    key = group.expressions[0]
    plain = [s for s in node.selects if isinstance(s, exp.Column) and s.name != key.name]
    if not plain:
        return
    for one in [*plain, None]:
        new = node.copy()
        keys = [one] if one is not None else [*plain, key]
        new.set("group", exp.Group(expressions=[k.copy() for k in keys]))
        yield _to(place, to_sql(new))


def distinct_toggled(query: Query, place: int, node: exp.Expr) -> Iterator[Edit]:
    if isinstance(node, exp.Select) and node is query.tree:
        if joins(node) or node.args.get("group") or node.args.get("limit"):
            return
        if any(s.find(exp.AggFunc) for s in node.selects):
            return
        new = node.copy()
        new.set("distinct", None if node.args.get("distinct") else exp.Distinct())
        owners = [query.owner(s) for s in node.selects if isinstance(s, exp.Column)]
        if not any(o is not None and query.facts.is_key(o[0]) for o in owners):
            yield _to(place, to_sql(new))


RULES: tuple[Rule, ...] = (
    mode_as_max, mode_as_repeated, mode_unordered, mode_by_value, mode_of_all, count_of_column,
    average_otherwise, sum_or_average_once, sum_of_distinct, extreme_as_first,
    subquery_unfiltered, months_of_any_year, dates_apart, join_by_order, member_as_join,
    not_in_as_not_equal, second_otherwise, above_as_ranked, words_exchanged, product_otherwise,
    like_otherwise, threshold_otherwise, group_otherwise, distinct_toggled,
)  # fmt: skip
