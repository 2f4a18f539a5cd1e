"""What names and expressions of a SQLite query mean: the declared spelling, and the type after it.

Both look into subqueries, and say None where they are not sure.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from sqlglot import exp

from lm_eval_ext.sql.convert.columns import Family, Type
from lm_eval_ext.sql.convert.drafts import Types
from lm_eval_ext.sql.parsing import find_source, select_of, table_of
from lm_eval_ext.sql.schema import Column, Schema, Table
from lm_eval_ext.sql.values import EngineName

_PLAIN: Mapping[EngineName, re.Pattern[str]] = MappingProxyType(
    {
        "duckdb": re.compile(r"[A-Za-z_][A-Za-z0-9_]*"),
        "postgresql": re.compile(r"[a-z_][a-z0-9_]*"),  # others would be folded to small letters
    }
)

INTEGRAL: Final = ("smallint", "integer", "bigint")
MOMENTS: Final = ("date", "time", "timestamp")


@dataclass(frozen=True)
class Names:
    """What a database is called and typed on both sides.

    Attributes:
        schema: What SQLite declares.
        types: Those of the converted columns.
        engine: Where queries are translated to.
        reserved: Its reserved words, in lower case.
    """

    schema: Schema
    types: Types
    engine: EngineName
    reserved: frozenset[str] = frozenset()

    def identifier(self, name: str) -> exp.Identifier:
        """A name as the engine's dialect spells it."""
        plain = _PLAIN[self.engine].fullmatch(name) and name.casefold() not in self.reserved
        return exp.to_identifier(name, quoted=not plain)

    def column(self, node: exp.Column) -> tuple[Table, Column] | None:
        """The declared column that a reference means, through subqueries that rename nothing."""
        found = find_source(
            node.table.casefold(), node.name.casefold(), select_of(node), self.schema
        )
        if found is None:
            return None
        table = table_of(found[1], self.schema)
        if table is not None:
            column = table.column(node.name)
            return None if column is None else (table, column)
        inner = self._output(found[1], node.name)
        return self.column(inner) if isinstance(inner, exp.Column) else None

    def _output(self, source: exp.Expr, name: str) -> exp.Expr | None:
        """What a subquery selects under a name, if that is not an alias."""
        query = source.this if isinstance(source, exp.Subquery) else None
        if not isinstance(query, exp.Select):
            return None
        return next(
            (one for one in query.selects if one.alias_or_name.casefold() == name.casefold()), None
        )

    def type_of(self, node: exp.Expr | None) -> Type | None:  # noqa: PLR0911 (a table of kinds)
        """The type of an expression after the conversion."""
        if isinstance(node, exp.Paren | exp.Alias | exp.Min | exp.Neg | exp.Distinct):
            return self.type_of(
                node.expressions[0] if isinstance(node, exp.Distinct) else node.this
            )
        if isinstance(node, exp.Max) and not node.expressions:
            return self.type_of(node.this)
        if isinstance(node, exp.Column):
            return self._of_column(node)
        if isinstance(node, exp.Count | exp.Length):
            return Type("bigint")
        if isinstance(node, exp.Literal):
            if node.is_string:
                return Type("text")
            return Type("bigint" if re.fullmatch(r"\d+", node.name) else "double")
        if isinstance(node, exp.Cast) and node.to.is_type("bigint"):
            return Type("bigint")
        if isinstance(node, exp.Avg):
            return Type("double")
        if isinstance(node, exp.Sum):
            return _wide(self.type_of(node.this))
        if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.IntDiv | exp.Mod):
            sides = [_wide(self.type_of(one)) for one in (node.this, node.expression)]
            return sides[0] if sides[0] == sides[1] else None
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select):
            return self.type_of(node.this.selects[0]) if len(node.this.selects) == 1 else None
        return None

    def _of_column(self, node: exp.Column) -> Type | None:
        known = self.column(node)
        if known is not None:
            table, column = known
            return self.types[table.name.casefold()].get(column.name.casefold())
        found = find_source(
            node.table.casefold(), node.name.casefold(), select_of(node), self.schema
        )
        return self.type_of(self._output(found[1], node.name)) if found else None


def _wide(found: Type | None) -> Type | None:
    """Integers of any width as the widest, other numbers as they are, nothing else."""
    if found is None or not found.numeric:
        return None
    family: Family = "bigint" if found.family in INTEGRAL else "double"
    return Type(family)
