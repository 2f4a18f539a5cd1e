"""Values of DuckDB as results are compared (docs/sql.md, "Values of other engines").

Each column is read by its type. DuckDB's Python package turns some values into others: an infinite
date into the last day that Python knows, nanoseconds into microseconds. Such columns are queried as
texts, by a cast that keeps lists, structs and maps (:func:`text_type`).
"""

import datetime
import decimal
import json
from collections.abc import Callable
from typing import Any, Final, Protocol

from lm_eval_ext.sql.engines.base import decimal_number, float_number, moment, whole_number
from lm_eval_ext.sql.values import Exact, Value, quoted

_TIMESTAMPS: Final = frozenset(
    {
        "timestamp",
        "timestamp_s",
        "timestamp_ms",
        "timestamp_ns",
        "timestamp with time zone",
    }
)
_DATES: Final = _TIMESTAMPS | {"date"}
"""Types that have infinite values."""

_NANOSECONDS: Final = frozenset({"timestamp_ns", "time_ns"})
"""Types with more digits than Python's."""

_NESTED: Final = frozenset({"list", "array", "tuple", "struct", "map"})

_EXTREME_DATES: Final = frozenset(
    {
        datetime.date.min,
        datetime.date.max,
        datetime.datetime.min,
        datetime.datetime.max,
    }
)
"""The dates that the package makes of infinite ones, and of these days as well."""


class ColumnType(Protocol):
    """DuckDB's description of a type."""

    @property
    def id(self) -> str:
        """The type's name in lower case, without its parameters."""

    @property
    def children(self) -> list[tuple[str, Any]]:
        """The members of a nested type by name; an array's second entry is its size."""


class AmbiguousDateError(Exception):
    """A value is an infinite date, or the first or last day that Python knows."""


Reader = Callable[[object], Value]
"""Turns a value of DuckDB's package into the value that is compared."""


def members(column_type: ColumnType) -> list[tuple[str, ColumnType]]:
    """Return the members of a nested type by name; of any other type, nothing."""
    if column_type.id in ("list", "array"):
        return column_type.children[:1]
    if column_type.id == "union":
        return column_type.children[1:]  # the first entry is the tag
    if column_type.id in ("tuple", "struct", "map"):
        return column_type.children
    return []


def is_temporal(column_type: ColumnType) -> bool:
    """Return whether the type has infinite values."""
    return column_type.id in _DATES


def must_be_text(column_type: ColumnType) -> bool:
    """Return whether Python's values of the type may lose something without a sign of it.

    A date that stands alone is no such case: its reader raises :class:`AmbiguousDateError`.
    """
    if column_type.id in _NANOSECONDS or column_type.id == "variant":
        return True
    inner = [member for _, member in members(column_type)]
    return any(is_temporal(member) or must_be_text(member) for member in inner)


def text_type(column_type: ColumnType) -> str:  # noqa: PLR0911 (a table of types)
    """Return the type in SQL, with texts for all dates and JSON for variants."""
    if column_type.id in _DATES | _NANOSECONDS:
        return "VARCHAR"
    if column_type.id == "variant":
        return "JSON"
    inner = [(name, text_type(member)) for name, member in members(column_type)]
    types = [member for _, member in inner]
    if column_type.id == "list":
        return f"{types[0]}[]"
    if column_type.id == "array":
        _, size = column_type.children[1]
        return f"{types[0]}[{size}]"
    if column_type.id in ("map", "tuple"):
        return f"{column_type.id.upper()}({', '.join(types)})"
    if column_type.id in ("struct", "union"):
        fields = ", ".join(f"{quoted(name)} {member}" for name, member in inner)
        return f"{column_type.id.upper()}({fields})"
    return str(column_type)


def reader_of(column_type: ColumnType) -> Reader:
    """Return the function that reads the values of a column.

    It raises :class:`AmbiguousDateError` for a date that may be an infinite one.
    """
    if column_type.id in _NESTED:
        return lambda value: None if value is None else _as_json(_nested(value, column_type))
    return _READERS.get(column_type.id, _plain)


def _plain(value: object) -> Value:
    """Read a value by its Python type."""
    if value is None or isinstance(value, str | bytes):
        return value
    if isinstance(value, int):  # booleans are integers here
        return whole_number(int(value))
    if isinstance(value, float):
        return float_number(value)
    if isinstance(value, decimal.Decimal):
        return decimal_number(value)
    if isinstance(value, list | tuple | dict):
        return _as_json(_nested(value, None))
    return str(value)  # intervals, UUIDs, and times with a zone


def _bignum(value: object) -> Value:
    return None if value is None else whole_number(int(str(value)))


def _date(value: object) -> Value:
    if isinstance(value, datetime.date) and value in _EXTREME_DATES:
        raise AmbiguousDateError
    return _plain(value)


def _timestamp(value: object) -> Value:
    if value is None:
        return None
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        if value in _EXTREME_DATES:
            raise AmbiguousDateError
    return moment(str(value).removesuffix("+00"))


def _time(value: object) -> Value:
    return None if value is None else moment(str(value))


def _variant(value: object) -> Value:
    """Read a variant, which comes as the text of a JSON value."""
    if value is None:
        return None
    return _plain(json.loads(str(value), parse_float=decimal.Decimal))


_READERS: Final[dict[str, Reader]] = {
    "bignum": _bignum,
    "date": _date,
    "time": _time,
    "time_ns": _time,
    "variant": _variant,
    **dict.fromkeys(_TIMESTAMPS, _timestamp),
}


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _nested(value: object, column_type: ColumnType | None) -> object:
    """Return a value, or a member of it, as JSON has it, by the rules for single values.

    Args:
        value: A value of DuckDB's package.
        column_type: Its type; None if it is not known, as inside a variant or a union.
    """
    if column_type is None or column_type.id == "union":
        column_type, inner = None, []
    else:
        inner = [member for _, member in members(column_type)]
    if isinstance(value, dict):
        return _nested_dict(value, column_type)
    if isinstance(value, list | tuple):
        if column_type is not None and column_type.id == "tuple":
            return [_nested(value[index], member) for index, member in enumerate(inner)]
        member_type = inner[0] if inner else None
        return [_nested(member, member_type) for member in value]
    read = _plain if column_type is None else reader_of(column_type)
    return _json_scalar(read(value))


def _nested_dict(value: dict[Any, object], column_type: ColumnType | None) -> dict[str, object]:
    if column_type is None:
        return {str(_nested(key, None)): _nested(member, None) for key, member in value.items()}
    types = dict(members(column_type))
    if column_type.id == "struct":
        return {name: _nested(member, types.get(name)) for name, member in value.items()}
    if types["key"].id in _NESTED:
        # The package gives maps with keys that Python cannot hash as two lists.
        return {name: _nested(value[name], None) for name in ("key", "value")}
    return {
        str(_nested(key, types["key"])): _nested(member, types["value"])
        for key, member in value.items()
    }


def _json_scalar(cell: Value) -> object:
    """Return a single value as JSON has it: equal numbers look equal, and all digits stand."""
    if isinstance(cell, Exact):
        nearest = float(cell)
        is_short = decimal.Decimal(repr(nearest)) == cell.decimal
        return nearest if is_short else f"{cell.decimal:f}".rstrip("0")
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    if isinstance(cell, bytes):
        return "\\x" + cell.hex()
    return cell
