"""Checks of the rows that scoring functions return.

They run for benchmarks that do not ship, and tell their authors the mistake in one line.
"""

from collections.abc import Collection, Iterable, Mapping

from lm_eval_ext.stats.measures import Measure, Question
from lm_eval_ext.stats.table import Row


def check_rows(rows: object, questions: Iterable[Question]) -> None:
    """Check what a scoring function has returned: rows, or None or [] where there are none.

    Raises:
        TypeError: It is neither a mapping nor a list of mappings, or a value is no number.
        ValueError: The value of a mean is outside the range of the measure's unit.
    """
    if rows is None:
        return
    measures = [question.measure for question in questions]
    for row in rows if isinstance(rows, list) else [rows]:
        if not isinstance(row, Mapping):
            raise TypeError(f"a row must be a mapping of facets and values, got {row!r:.80}")
        for measure in measures:
            for column in measure.value:
                if row.get(column) is not None:
                    _check_value(row[column], measure)


def _check_value(value: object, measure: Measure) -> None:
    if not isinstance(value, int | float):
        raise TypeError(f"{measure.name} needs numbers, got {value!r:.80}")
    low, high = measure.limits
    is_too_low = low is not None and value < low
    is_too_high = high is not None and value > high
    if measure.statistic == "mean" and (is_too_low or is_too_high):
        raise ValueError(
            f"{measure.name} is a {measure.unit}, so {value:g} is out of range: give "
            "its measure another unit"
        )


def missing_values(question: Question, rows: Collection[Row]) -> str:
    """Return a line about the first thing that a question needs and no row has; "" without any."""
    measure = question.measure
    columns = sorted(set().union(*rows))
    needed = [*measure.value, *question.filter, *measure.groups]
    if measure.facet:
        needed.append(measure.facet)
    for name in needed:
        if name not in columns:
            return f"no row has the column {name}; rows have: {', '.join(columns)}"
    for name, values in question.filter.items():
        available = {str(row.get(name)) for row in rows}
        if available.isdisjoint(values):
            available_values = ", ".join(sorted(available))
            return f"no row has {name} {' or '.join(values)}; rows have: {available_values}"
    return ""
