"""Values that sit on, just above and just below another, or that no row has yet."""

import random
import re
import sqlite3
from collections.abc import Callable, Sequence

from lm_eval_ext.sql.distill.scratch_db import quoted
from lm_eval_ext.sql.schema import Column, Table
from lm_eval_ext.sql.values import Value

_LARGEST = 2**53
"""Integers above it are not told apart as floats; no value is built there."""


def above(value: Value) -> Value:
    """Returns a value that sorts just after another."""
    if isinstance(value, str):
        last = value[-1:]
        # "1987-07-01" becomes "1987-07-02": a date stays a date where that is easy.
        return value[:-1] + str(int(last) + 1) if last in set("012345678") else value + "a"
    if isinstance(value, int | float) and abs(value) < _LARGEST:
        return value + 1
    return value


def below(value: Value) -> Value:
    """Returns a value that sorts just before another."""
    if isinstance(value, str):
        last = value[-1:]
        return value[:-1] + str(int(last) - 1) if last in set("123456789") else value[:-1]
    if isinstance(value, int | float) and abs(value) < _LARGEST:
        return value - 1
    return value


def compares(operator: str, left: Value, right: Value) -> bool:
    """Whether a comparison holds as in SQLite, as far as Python can say.

    Numbers that are written as texts count as numbers here: SQLite would convert them to the
    column's affinity. What cannot be said counts as true; the database has the last word.
    """
    if left is None or right is None:
        return False
    a, b = _plain(left), _plain(right)
    if isinstance(a, str) != isinstance(b, str) or isinstance(a, bytes) or isinstance(b, bytes):
        return True
    return _OPERATORS[operator](a, b)


_OPERATORS: dict[str, Callable[..., bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
}

OPPOSITE = {"=": "<>", "<>": "=", ">": "<=", "<=": ">", "<": ">=", ">=": "<"}
"""The operator that holds where another does not."""

MIRRORED = {"=": "=", "<>": "<>", ">": "<", "<": ">", ">=": "<=", "<=": ">="}
"""The operator for the sides changed over."""


def satisfying(operator: str, bound: Value) -> list[Value]:
    """Returns values for which a comparison with a bound holds, the closest ones first."""
    near = [bound, above(bound), below(bound), above(above(bound)), below(below(bound))]
    if isinstance(bound, int | float) and abs(bound) < _LARGEST:
        near += [bound + 10, bound - 10, bound * 2, 0]
    elif isinstance(bound, str):
        near += [bound.swapcase(), bound + "x"]
    return [value for value in near if compares(operator, value, bound)]


def matching(pattern: str, rng: random.Random) -> str:
    """Returns a text that a LIKE pattern matches."""
    filler = rng.choice(("", "", "a", "xy", "b c"))
    return "".join({"%": filler, "_": "a"}.get(letter, letter) for letter in pattern)


def is_like(pattern: str, value: Value) -> bool:
    """Whether LIKE matches, as SQLite's does: ASCII letters in any case."""
    parts = [{"%": ".*", "_": "."}.get(letter, re.escape(letter)) for letter in pattern]
    return value is not None and bool(
        re.fullmatch("".join(parts), str(value), re.IGNORECASE | re.DOTALL)
    )


def of_length(text: str, length: int) -> str:
    """Returns a text of a length that begins as another."""
    return (text + "abcdefghijklmnopqrstuvwxyz" * (length // 26 + 1))[: max(length, 0)]


def with_number(value: Value, number: float) -> Value:
    """Returns a number in the shape of a value: for a date, the date with that year."""
    whole = int(number) if float(number).is_integer() else number
    if not isinstance(value, str):
        return whole
    return re.sub(r"^\s*-?\d*\.?\d*", str(whole), value, count=1)


def number_of(value: Value) -> float:
    """Returns the number that SQLite's arithmetic takes a value for."""
    if isinstance(value, int | float):
        return value
    found = re.match(r"\s*([+-]?\d+\.?\d*)", value) if isinstance(value, str) else None
    return 0 if found is None else float(found[1])


def fresh(connection: sqlite3.Connection, table: Table, column: Column) -> Value:
    """Returns a value that no row of the table has in a column, in the shape of those it has."""
    name, source = quoted(column.name), quoted(table.name)
    (top,) = connection.execute(f"SELECT max({name}) FROM {source}").fetchone()
    if isinstance(top, int | float) and abs(top) < _LARGEST:
        return int(top) + 1
    if top is None:
        return "k1" if column.affinity in ("TEXT", "BLOB") else 1
    if isinstance(top, bytes):
        return top + b"1"
    if not isinstance(top, str):  # a number too large to add to
        return None
    if re.fullmatch(r"\d{1,15}", top):
        (number,) = connection.execute(
            f"SELECT max(CAST({name} AS INTEGER)) FROM {source}"
        ).fetchone()
        return str(number + 1)
    return top.encode("utf-8", "replace").decode() + "1"


def weighted(rng: random.Random, choices: Sequence[tuple[float, Value]]) -> Value:
    """Draws one of several values by their weights."""
    return rng.choices([value for _, value in choices], [weight for weight, _ in choices])[0]


def _plain(value: Value) -> Value:
    if isinstance(value, str) and value[-1:] in _DIGITS and _NUMBER.fullmatch(value):
        return float(value)
    return value


_DIGITS = frozenset("0123456789. ")
_NUMBER = re.compile(r"\s*[+-]?\d+(\.\d*)?\s*")
