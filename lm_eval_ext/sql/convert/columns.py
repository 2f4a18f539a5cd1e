"""The types of converted columns: what was declared where it holds every value, else a wider one.

A type *holds* a value if the engine gives back what SQLite had stored: a DATE column holds the text
``2010-02-03`` and not ``2010-2-3``. So nothing is changed by the conversion but types.
"""

import datetime
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Literal

from lm_eval_ext.sql.values import EngineName, Value

Family = Literal[
    "smallint", "integer", "bigint", "double", "decimal", "boolean", "date", "time", "timestamp",
    "text", "blob",
]  # fmt: skip

WIDER: tuple[Family, ...] = ("integer", "bigint", "double", "text", "blob")
"""What is tried, in this order, where the declared type does not hold all values. A blob holds
texts that are not UTF-8, which the engines refuse as text."""

_INTEGERS: Mapping[Family, int] = MappingProxyType({"smallint": 15, "integer": 31, "bigint": 63})
"""Bits without the sign."""

_EXACT = 53
"""Bits of an integer that a double holds for certain."""

_MOST_DIGITS = 38
"""Of DuckDB's DECIMAL."""

_DECLARED = re.compile(r"\s*([^(]*?)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\).*)?", re.DOTALL)
_WHOLE = re.compile(r"0|[1-9]\d{0,17}")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(r"\d\d:\d\d:\d\d(?:\.\d{0,5}[1-9])?")


@dataclass(frozen=True)
class Type:
    """A column's type.

    Attributes:
        family: What it is.
        digits: Of decimals, in all; of texts, the most characters; 0: any.
        scale: Of decimals, behind the point.
        whole: Of texts, whether all values are whole numbers without a sign.
    """

    family: Family
    digits: int = 0
    scale: int = 0
    whole: bool = False

    def written(self, engine: EngineName) -> str:
        """As the engine's dialect writes it."""
        if self.family == "decimal":
            return f"DECIMAL({self.digits},{self.scale})"
        if self.family == "text":
            # DuckDB knows no length, and would drop it.
            return f"VARCHAR({self.digits})" if self.digits and engine != "duckdb" else "TEXT"
        if engine == "duckdb":
            return {"double": "DOUBLE"}.get(self.family, self.family.upper())
        return {"double": "DOUBLE PRECISION", "blob": "BYTEA"}.get(self.family, self.family.upper())

    @property
    def numeric(self) -> bool:
        """Whether its values are numbers."""
        return self.family in (*_INTEGERS, "double", "decimal")

    @property
    def width(self) -> int:
        """Of numeric types: PostgreSQL's foreign keys refer to types of their own width or more."""
        return {"decimal": 1, "double": 2}.get(self.family, 0)

    def holds(self, values: Iterable[Value]) -> bool:
        """Whether all of these come back as they are."""
        return all(value is None or self._holds(value) for value in values)

    def _holds(self, value: Any) -> bool:
        if self.family in _INTEGERS:
            return isinstance(value, int) and value.bit_length() <= _INTEGERS[self.family]
        if self.family in _SPELT:
            return isinstance(value, str) and _SPELT[self.family](value)
        if self.family == "text":
            long = self.digits and len(str(value)) > self.digits
            return not isinstance(value, bytes) and not long and _is_clean(str(value))
        if self.family == "decimal":
            return isinstance(value, int | float) and self._exact(value)
        if self.family == "double":
            exact = isinstance(value, int) and value.bit_length() <= _EXACT
            return exact or isinstance(value, float)
        # A blob takes the bytes of texts, and those of numbers' texts.
        return self.family == "blob" or value in (0, 1)

    def _exact(self, value: int | float) -> bool:
        number = Decimal(repr(value))
        if not number.is_finite():
            return False
        whole, (_, digits, exponent) = abs(int(number)), number.normalize().as_tuple()
        behind = max(0, -int(exponent)) if digits != (0,) else 0
        return behind <= self.scale and whole < 10 ** (self.digits - self.scale)


def declared(name: str) -> Type | None:
    """The type that a declaration means; None if it means none or is not known.

    Length and digits are those declared. NUMERIC without digits is none: the values decide.
    """
    found = _DECLARED.fullmatch(name.upper())
    word, first, second = found.groups() if found else ("", None, None)
    for pattern, family in _WORDS:
        if not re.search(pattern, word):
            continue
        if family == "decimal":
            digits = int(first or 0)
            return Type("decimal", digits, int(second or 0)) if 0 < digits <= _MOST_DIGITS else None
        return Type(family, int(first or 0) if family == "text" else 0)
    return None


def chosen(declaration: str, values: Iterable[Value]) -> tuple[Type, bool]:
    """The type of a column with these values, and whether it is the declared one.

    A column that holds nothing and declares nothing is a text.
    """
    known = list(values)
    wanted = declared(declaration)
    if wanted == Type("blob") and not all(isinstance(one, bytes | None) for one in known):
        wanted = None  # it would give back bytes where SQLite has a text
    if wanted is not None and wanted.holds(known):
        whole = wanted.family == "text" and all(_WHOLE.fullmatch(str(one)) for one in known)
        return replace(wanted, whole=whole and bool(known)), True
    if not known and wanted is None:
        return Type("text"), False
    return next(Type(family) for family in WIDER if Type(family).holds(known)), False


def _is_clean(text: str) -> bool:
    """Whether both engines take a text: valid UTF-8, and no null character."""
    return "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def _parses(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


def _is_date(text: str) -> bool:
    return bool(_DATE.fullmatch(text)) and _parses(datetime.date.fromisoformat, text)


def _is_time(text: str) -> bool:
    # Python 3.10 reads three or six digits behind the point only.
    return bool(_TIME.fullmatch(text)) and _parses(datetime.time.fromisoformat, text[:8])


def _is_timestamp(text: str) -> bool:
    date, _, time = text.partition(" ")
    return _is_date(date) and _is_time(time)


_SPELT: Mapping[Family, Callable[[str], bool]] = MappingProxyType(
    {"date": _is_date, "time": _is_time, "timestamp": _is_timestamp}
)

_WORDS: tuple[tuple[str, Family], ...] = (
    ("SMALLINT|TINYINT|INT2", "smallint"),
    ("BIGINT|INT8", "bigint"),
    ("INT|YEAR", "integer"),
    ("CHAR|CLOB|TEXT|STRING", "text"),
    ("BLOB|BINARY", "blob"),
    ("REAL|FLOA|DOUB", "double"),
    ("BOOL|^BIT$", "boolean"),
    ("DATETIME|TIMESTAMP", "timestamp"),
    ("DATE", "date"),
    ("TIME", "time"),
    ("NUM|DEC", "decimal"),
)
"""Found in a declared type, the first that fits; SQLite's own affinities come out the same."""
