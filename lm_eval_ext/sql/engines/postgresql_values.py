"""Values of PostgreSQL as results are compared (docs/sql.md, "Values of other engines")."""

import re
from datetime import timedelta
from decimal import Decimal
from typing import Final

from lm_eval_ext.sql.engines.base import decimal_number, float_number, moment
from lm_eval_ext.sql.values import Exact, Value

_BOOL: Final = 16
_BYTEA: Final = 17
_INTEGERS: Final = (20, 21, 23, 26)  # bigint, smallint, integer, oid
_FLOATS: Final = (700, 701)  # real, double precision
_TIMESTAMPS: Final = (1114, 1184)  # without and with a time zone
_INTERVAL: Final = 1186
_NUMERIC: Final = 1700

_MAX_DIGITS: Final = 300
"""Digits before the point up to which a numeric is compared as a number."""

_QUOTIENT_PLACES: Final = 8
_QUOTIENT_DIGITS: Final = 16
"""A numeric of so many decimal places and digits counts as a quotient."""


def read_value(raw: bytes, type_oid: int, *, declared: bool = False) -> Value:  # noqa: PLR0911 (a table of types)
    """Return a value of PostgreSQL as it is compared.

    Args:
        raw: The server's text.
        type_oid: The number of the type.
        declared: Whether the type has a precision and a scale.
    """
    if type_oid in _INTEGERS:
        return int(raw)
    text = raw.decode("utf-8", "surrogateescape")
    if type_oid == _BOOL:
        return int(text == "t")
    if type_oid in _FLOATS:
        return float_number(float(text))
    if type_oid == _NUMERIC:
        return _numeric(text, declared=declared)
    if type_oid == _BYTEA:
        return bytes.fromhex(text[2:])
    if type_oid in _TIMESTAMPS:
        return moment(text.removesuffix("+00"))
    if type_oid == _INTERVAL:
        return _interval(text)
    return text


def _numeric(text: str, *, declared: bool) -> Value:
    """Return a numeric: with more digits than a float can have, its text; a quotient as a float.

    PostgreSQL cuts off quotients after 16 significant digits or more, at a place that depends on
    how they are written: ``100.0 / 3`` is not ``1.0 / 3 * 100``.
    """
    whole_digits, _, fraction = text.lstrip("-").partition(".")
    if not whole_digits.isdecimal():  # NaN, Infinity
        return float_number(float(text))
    if len(whole_digits) > _MAX_DIGITS:
        return text
    number = decimal_number(Decimal(text))
    digits = (whole_digits + fraction).lstrip("0")
    is_quotient = len(fraction) >= _QUOTIENT_PLACES and len(digits) >= _QUOTIENT_DIGITS
    if is_quotient and not declared and isinstance(number, Exact):
        return float(number)
    return number


_PART = re.compile(r"([-+]?\d+) (year|mon|day)s?")
_CLOCK = re.compile(r"([-+]?)(\d+):(\d\d):(\d\d(?:\.\d+)?)$")
_DAYS: Final = {"year": 360, "mon": 30, "day": 1}
"""Days of a unit, as PostgreSQL has them when it compares intervals."""


def _interval(text: str) -> str:
    """Return an interval so that equal ones have equal texts: 1 mon is 30 days is 720:00:00."""
    days = 0
    for number, unit in _PART.findall(text):
        days += int(number) * _DAYS[unit]
    clock = _CLOCK.search(text)
    seconds = Decimal(0)
    if clock:
        sign, hours, minutes, seconds_text = clock.groups()
        seconds = int(hours) * 3600 + int(minutes) * 60 + Decimal(seconds_text)
        if sign == "-":
            seconds = -seconds
    try:
        return str(timedelta(days=days, microseconds=int(seconds * 1_000_000)))
    except OverflowError:  # over two million years
        return text
