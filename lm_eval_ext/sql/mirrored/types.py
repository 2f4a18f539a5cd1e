"""How a column of DuckDB or PostgreSQL is carried in SQLite, so that no value is altered.

A type that is listed here has a condition for SQLite's CHECK that holds for exactly the values that
the engine takes for such a column and that SQLite holds unaltered. So the search for rows proposes
no other ones; and a column in which any present value breaks it is not carried at all.
"""

import re
from dataclasses import dataclass

_WHOLE = {
    "tinyint": 1 << 7, "smallint": 1 << 15, "integer": 1 << 31, "bigint": 1 << 63,
    "hugeint": 1 << 63,
}  # fmt: skip
_UNSIGNED = {"utinyint": 1 << 8, "usmallint": 1 << 16, "uinteger": 1 << 32, "ubigint": 1 << 63,
             "uhugeint": 1 << 63}  # fmt: skip
_FLOATS = frozenset({"float", "real", "double", "double precision"})
_TEXTS = frozenset({"varchar", "text", "character varying", "character", "bpchar"})
_BLOBS = frozenset({"blob", "bytea"})
_MOMENTS = re.compile(r"timestamp(?:\(\d\))?(?: with(?:out)? time zone)?|timestamp_(?:s|ms)")

_DAY, _CLOCK = "____-__-__", "__:__:__"
_HEX = "[0-9a-f]"
_UUID = "-".join(_HEX * count for count in (8, 4, 4, 4, 12))


@dataclass(frozen=True)
class Carried:
    """How a column is carried.

    Attributes:
        declared: Its type in SQLite.
        read: How the engine writes its values for us, with ``{0}`` for the column.
        check: What holds for all of its values in SQLite, with ``{0}`` for the column.
        exact: What the engine says of a value that survives; None if all do.
        zone: Whether the engine writes a time zone behind it, always UTC's.
    """

    declared: str
    read: str
    check: str
    exact: str | None = None
    zone: bool = False


def carried(  # noqa: PLR0911 (a table of types)
    declared: str, labels: str = ""
) -> Carried | None:
    """How a type is carried; None if it is not.

    Args:
        declared: As the engine's catalogue has it.
        labels: Those of a type of PostgreSQL that enumerates them, as SQL.
    """
    kind, _, bounds = declared.lower().partition("(")
    kind, size = kind.strip(), [int(one) for one in re.findall(r"\d+", bounds)]
    as_text = "CAST({0} AS text)"
    if labels or kind == "enum":
        known = labels or declared[len("ENUM(") : -1]
        return Carried("TEXT", as_text, f"{{0}} IN ({_escaped(known)})")
    if kind in _WHOLE or kind in _UNSIGNED:
        low, high = (-_WHOLE[kind], _WHOLE[kind]) if kind in _WHOLE else (0, _UNSIGNED[kind])
        least = "-9223372036854775807 - 1" if low == -(1 << 63) else low
        whole = _typed("integer")
        return Carried("INTEGER", "{0}", f"{whole} AND {{0}} BETWEEN {least} AND {high - 1}")
    if kind == "boolean":
        return Carried("BOOLEAN", "{0}", f"{_typed('integer')} AND {{0}} IN (0, 1)")
    if kind in _FLOATS:
        return Carried("REAL", "{0}", f"{_typed('real', 'integer')} AND abs({{0}}) < 1e300")
    if kind in ("decimal", "numeric"):
        return _decimal(declared, size)
    if kind in _TEXTS:
        fits = f" AND length({{0}}) <= {size[0]}" if size else ""
        return Carried("TEXT", as_text, f"{_typed('text')} AND instr({{0}}, char(0)) = 0{fits}")
    if kind == "date":
        return Carried("DATE", as_text, f"{{0}} LIKE '{_DAY}' AND date({{0}}) = {{0}}")
    if _MOMENTS.fullmatch(declared.lower()):
        zone = "with time zone" in declared.lower()
        return Carried("TIMESTAMP", as_text, _clock("datetime", f"{_DAY} {_CLOCK}"), zone=zone)
    if kind in ("time", "time without time zone"):
        return Carried("TIME", as_text, _clock("time", _CLOCK))
    if kind == "uuid":
        return Carried("TEXT", as_text, f"{{0}} GLOB '{_UUID}'")
    return Carried("BLOB", "{0}", _typed("blob")) if kind in _BLOBS else None


def _typed(*kinds: str) -> str:
    return f"typeof({{0}}) IN ({', '.join(map(repr, (*kinds, 'null')))})"


def _decimal(declared: str, size: list[int]) -> Carried:
    """A float, if it has no more digits than one."""
    fits = ""
    if size:
        digits, scale = size[0], size[1] if len(size) > 1 else 0
        fits = f" AND round({{0}}, {scale}) = {{0}} AND abs({{0}}) < 1e{digits - scale}"
    back = declared if size else "numeric"
    exact = f"CAST(CAST({{0}} AS double precision) AS {back}) = {{0}}"
    check = f"{_typed('real', 'integer')} AND abs({{0}}) < 1e15{fits}"
    return Carried("REAL", "{0}", check, exact)


def _clock(function: str, pattern: str) -> str:
    """A time to the second, or with a fraction behind it."""
    seconds = f"substr({{0}}, 1, {len(pattern)})"
    rest = f"substr({{0}}, {len(pattern) + 1})"
    fraction = f"({rest} = '' OR ({rest} GLOB '.[0-9]*' AND ltrim({rest}, '.0123456789') = ''))"
    return f"{seconds} LIKE '{pattern}' AND {function}({seconds}) = {seconds} AND {fraction}"


def _escaped(sql: str) -> str:
    return sql.replace("{", "{{").replace("}", "}}")
