"""Rules for days ``YYYY-MM-DD`` and timestamps ``YYYY-MM-DD HH:MM:SS``, which sort as texts."""

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from sqlglot import exp

from lm_eval_ext.sql.parsing import COMPARISONS
from lm_eval_ext.sql.rewrites.base import (
    Change,
    Facts,
    Needs,
    Rule,
    all_of,
    any_of,
    call,
    changed,
    number,
    string,
    together,
)

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "days_between": "x BETWEEN '1987-07-01' AND '1987-08-31' for x >= '1987-07-01' AND x < "
        "'1987-09-01'; of timestamps from 00:00:00 to 23:59:59",
        "days_of_months": "STRFTIME('%Y-%m', x) IN ('1987-07', '1987-08') for whole months",
        "days_of_year_and_month": "STRFTIME('%Y', x) = '1987' AND STRFTIME('%m', x) IN ('07', '08')"
        " for whole months of one year",
        "days_like": "x LIKE '1987-07-%' OR x LIKE '1987-08-%' for whole months, x LIKE "
        "'1987-07-01%' for one day",
        "days_substr": "SUBSTR(x, 1, 7) IN ('1987-07', '1987-08') for whole months",
        "day_stepped": "x <= the day before for x < a day, likewise for the other comparisons; of "
        "timestamps the second before",
        "date_called": "DATE(x) for x in a comparison, DATETIME(x) for a timestamp",
        "julianday_called": "JULIANDAY(x) < JULIANDAY('1987-09-01') for x < '1987-09-01'",
        "years_apart": "STRFTIME('%Y', x) - STRFTIME('%Y', y) for x - y, of which SQLite reads the "
        "years only",
    }
)
"""The rules, with a description each."""

_EITHER = "all values of the column are days, or all are timestamps"

CONDITIONS: Mapping[str, str] = MappingProxyType(
    {
        "days_between": _EITHER,
        "days_of_months": f"{_EITHER}; the range is one of whole months, at most twelve",
        "days_of_year_and_month": f"{_EITHER}; the range is one of whole months of one year",
        "days_like": f"{_EITHER}; the range is one of whole months, at most twelve. One day: all "
        "values are days",
        "days_substr": f"{_EITHER}; the range is one of whole months, at most twelve",
        "day_stepped": f"{_EITHER}; the literal is of the same form, or a day",
        "date_called": f"{_EITHER}; of timestamps only >= and < compare with a day",
        "julianday_called": f"{_EITHER}",
        "years_apart": "both columns hold days or timestamps only",
    }
)
"""When each rule is sound."""

_DAY, _SECOND = datetime.timedelta(days=1), datetime.timedelta(seconds=1)
_MONTHS = 12


def days(node: exp.Expr, facts: Facts) -> Needs | None:
    """Returns the promise that a column holds days."""
    return facts.promised("dates", node) if isinstance(node, exp.Column) else None


def timestamps(node: exp.Expr, facts: Facts) -> Needs | None:
    """Returns the promise that a column holds timestamps."""
    return facts.promised("timestamps", node) if isinstance(node, exp.Column) else None


def day_of(node: exp.Expr | None) -> datetime.date | None:
    """Returns the day that a literal names."""
    text = str(node.this) if isinstance(node, exp.Literal) and node.is_string else ""
    try:
        day = datetime.date.fromisoformat(text)
    except ValueError:
        return None
    # Room for a step in either direction; other spellings of the same day compare otherwise.
    return day if day.isoformat() == text and 1 < day.year < datetime.MAXYEAR else None


def second_of(node: exp.Expr | None) -> datetime.datetime | None:
    """Returns the second that a literal names."""
    text = str(node.this) if isinstance(node, exp.Literal) and node.is_string else ""
    try:
        second = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    same = second.isoformat(" ", "seconds") == text
    return second if same and 1 < second.year < datetime.MAXYEAR else None


@dataclass(frozen=True)
class _Range:
    """All days from the first to the last one; ``whole``: of timestamps."""

    column: exp.Expr
    first: datetime.date
    last: datetime.date
    needs: Needs
    timed: bool

    @property
    def months(self) -> list[str]:
        """The months, if the range is made of whole ones, at most twelve."""
        end = self.last + _DAY
        count = 12 * (end.year - self.first.year) + end.month - self.first.month
        if self.first.day != 1 or end.day != 1 or not 0 < count <= _MONTHS:
            return []
        start = 12 * self.first.year + self.first.month - 1
        return [f"{m // 12:04}-{m % 12 + 1:02}" for m in range(start, start + count)]


def _range_of(
    low: exp.Expr, high: exp.Expr, column: exp.Expr, facts: Facts, *, after: bool, until: bool
) -> _Range | None:
    """The range between two literals; ``after``: without the low one, ``until``: with the high."""
    first, last = day_of(low), day_of(high)
    if first is None or last is None:
        return None
    needs, timed = days(column, facts), False
    if needs is None:
        needs, timed = timestamps(column, facts), True
        # The day alone comes before its first second.
        after = until = False
    if needs is None:
        return None
    found = _Range(column, first + _DAY * after, last - _DAY * (not until), needs, timed)
    return found if found.first <= found.last else None


def range_rewritten(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """A range of days in other words."""
    if isinstance(node, exp.Between):
        found = _range_of(
            node.args["low"], node.args["high"], node.this, facts, after=False, until=True
        )
        if found is not None:
            for kind, new in _forms(found):
                yield changed(kind, node, new, found.needs)
    elif isinstance(node, exp.And) and not isinstance(node.parent, exp.And):
        parts = list(node.flatten(unnest=False))
        for i, low in enumerate(parts):
            for j, high in enumerate(parts):
                if not (isinstance(low, exp.GT | exp.GTE) and isinstance(high, exp.LT | exp.LTE)):
                    continue
                if low.this != high.this:
                    continue
                found = _range_of(
                    low.expression, high.expression, low.this, facts,
                    after=isinstance(low, exp.GT), until=isinstance(high, exp.LTE),
                )  # fmt: skip
                if found is None:
                    continue
                for kind, new in _forms(found):
                    at = {min(i, j): new}
                    rest = [at.get(n, p) for n, p in enumerate(parts) if n != max(i, j)]
                    yield changed(kind, node, all_of(rest), found.needs)


def _forms(found: _Range) -> Iterator[tuple[str, exp.Expr]]:
    column = found.column
    start, end = (" 00:00:00", " 23:59:59") if found.timed else ("", "")
    yield (
        "days_between",
        exp.Between(
            this=column.copy(),
            low=string(f"{found.first}{start}"),
            high=string(f"{found.last}{end}"),
        ),
    )
    months = found.months
    if not months:
        return
    yield "days_of_months", _among(call("STRFTIME", string("%Y-%m"), column), months)
    if months[0][:4] == months[-1][:4]:
        year = _among(call("STRFTIME", string("%Y"), column), [months[0][:4]])
        if len(months) == _MONTHS:
            yield "days_of_year_and_month", year
        else:
            month = call("STRFTIME", string("%m"), column)
            parts = [year, _among(month, [text[5:] for text in months])]
            yield "days_of_year_and_month", exp.Paren(this=all_of(parts))
    likes = [exp.Like(this=column.copy(), expression=string(f"{text}-%")) for text in months]
    yield "days_like", any_of(likes)
    yield "days_substr", _among(call("SUBSTR", column, number(1), number(7)), months)


def _among(value: exp.Expr, texts: list[str]) -> exp.Expr:
    if len(texts) == 1:
        return exp.EQ(this=value, expression=string(texts[0]))
    return exp.In(this=value, expressions=[string(text) for text in texts])


def day_stepped(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """The neighbouring day or second, and the other comparison."""
    steps: dict[type[exp.Expr], tuple[type[exp.Expr], int]] = {
        exp.GT: (exp.GTE, 1), exp.LT: (exp.LTE, -1), exp.GTE: (exp.GT, -1), exp.LTE: (exp.LT, 1),
    }  # fmt: skip
    if type(node) not in steps:
        return
    other, step = steps[type(node)]
    day, second = day_of(node.expression), second_of(node.expression)
    text, needs = None, None
    if day is not None and (needs := days(node.this, facts)) is not None:
        text = f"{day + step * _DAY}"
    elif (needs := timestamps(node.this, facts)) is not None:
        if second is not None:
            text = (second + step * _SECOND).isoformat(" ", "seconds")
        elif day is not None and isinstance(node, exp.LT | exp.GTE):
            text = f"{day - _DAY} 23:59:59"
    if text is not None and needs is not None:
        new = other(this=node.this.copy(), expression=string(text))
        yield changed("day_stepped", node, new, needs)


def function_called(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """The column read by a function for dates."""
    if type(node) not in COMPARISONS:
        return
    day, second = day_of(node.expression), second_of(node.expression)
    needs, timed = None, None
    if day is not None:
        needs, timed = days(node.this, facts), timestamps(node.this, facts)
        if needs is not None or (timed is not None and isinstance(node, exp.GTE | exp.LT)):
            new = type(node)(this=call("DATE", node.this), expression=node.expression.copy())
            yield changed("date_called", node, new, needs or timed or ())
    elif second is not None:
        needs = timestamps(node.this, facts)
        if needs is not None:
            new = type(node)(this=call("DATETIME", node.this), expression=node.expression.copy())
            yield changed("date_called", node, new, needs)
    if needs is not None:
        sides = (call("JULIANDAY", node.this), call("JULIANDAY", node.expression))
        new = type(node)(this=sides[0], expression=sides[1])
        yield changed("julianday_called", node, new, needs)


def one_day_like(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """A day as the beginning of a text."""
    if isinstance(node, exp.EQ) and day_of(node.expression) is not None:
        needs = days(node.this, facts)
        if needs is not None:
            pattern = string(f"{node.expression.this}%")
            new = exp.Like(this=node.this.copy(), expression=pattern)
            yield changed("days_like", node, new, needs)


def years_apart(node: exp.Expr, facts: Facts) -> Iterator[Change]:
    """The difference of two years, written out."""
    if not isinstance(node, exp.Sub):
        return
    sides = (node.this, node.expression)
    needs = together(*(days(s, facts) or timestamps(s, facts) for s in sides))
    if needs is not None:
        years = [call("STRFTIME", string("%Y"), side) for side in sides]
        new = exp.Sub(this=years[0], expression=years[1])
        yield changed("years_apart", node, new, needs)


RULES: tuple[Rule, ...] = (
    range_rewritten,
    day_stepped,
    function_called,
    one_day_like,
    years_apart,
)
