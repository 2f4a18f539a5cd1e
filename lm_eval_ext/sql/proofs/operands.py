"""Simplifications of EXCEPT."""

from sqlglot import exp

from lm_eval_ext.sql.parsing import sources
from lm_eval_ext.sql.proofs.base import Simplification
from lm_eval_ext.sql.proofs.places import is_aggregate
from lm_eval_ext.sql.proofs.reading import facts_of
from lm_eval_ext.sql.schema import Schema, Table


def never_equal(select: exp.Select, schema: Schema) -> bool:
    """What EXCEPT takes away, where it is texts and the other side has only integers.

    Set operations convert nothing: 1 and '1' differ. A column of TEXT affinity holds no number,
    and COUNT and the INTEGER PRIMARY KEY are nothing but integers.
    """
    parent = select.parent
    if not isinstance(parent, exp.Except) or parent.expression is not select:
        return False
    kept = parent.this
    if not isinstance(kept, exp.Select) or select.args.get("limit") is not None:
        return False
    if len(select.expressions) != 1 or len(kept.expressions) != 1:
        return False
    facts = facts_of(select, schema)
    name = facts.name(select.expressions[0].unalias())
    if name is None or facts.column(name).affinity != "TEXT" or not _is_integer(kept, schema):
        return False
    table = _table(select, name[0], schema)
    if table is None or table.view:
        return False  # where a view's column has a type, its values need not have it
    nothing = exp.Select(expressions=[exp.Null()], where=exp.Where(this=exp.false()))
    select.replace(nothing)
    return True


def _is_integer(select: exp.Select, schema: Schema) -> bool:
    value = select.expressions[0].unalias()
    if isinstance(value, exp.Count):
        return True
    name = facts_of(select, schema).name(value)
    if name is None or is_aggregate(select):
        return False
    table = _table(select, name[0], schema)
    return table is not None and (table.rowid_alias or "").casefold() == name[1]


def _table(select: exp.Select, alias: str, schema: Schema) -> Table | None:
    for source in sources(select):
        if source.alias_or_name.casefold() == alias and isinstance(source, exp.Table):
            return schema.get(source.name)
    return None


SIMPLIFICATIONS = (
    Simplification("never_equal", "EXCEPT takes texts away from integers", never_equal),
)
