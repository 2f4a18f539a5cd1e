"""Figures that are no means, with their errors, under names in lm-eval's registry.

Results files show these names, where a function's would be source code.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from lm_eval.api.registry import register_aggregation

from lm_eval_ext.harness.names import HIGH, LOW, NONE, STDERR
from lm_eval_ext.stats import Spread

Values = list[Any]
Result = TypeVar("Result")


def register_figure(name: str, figure: Callable[[Values], float | None]) -> None:
    """Registers an aggregation.

    Args:
        name: In the registry.
        figure: Gets the documents' values without those that are None, and returns None where
            the figure does not exist.
    """

    def aggregate(values: Iterable[Any]) -> float | str:
        found = figure([value for value in values if value is not None])
        return NONE if found is None else found

    register_aggregation(name)(aggregate)


def register_spread(name: str, spread: Callable[[Values], Spread | None]) -> None:
    """Registers a figure's standard error and the bounds of its interval.

    lm-eval asks for the three one after the other; the spread is computed once.

    Args:
        name: The figure's; the three are called as it is, with the endings of their kind.
        spread: As the figure of :func:`register_figure`.
    """
    remembered = once(spread)

    def register(ending: str, part: Callable[[Spread], float]) -> None:
        def figure(values: Values) -> float | None:
            found = remembered(values)
            return None if found is None else part(found)

        register_figure(name + ending, figure)

    register(STDERR, lambda found: found.stderr)
    register(LOW, lambda found: found.low)
    register(HIGH, lambda found: found.high)


def once(function: Callable[[Values], Result]) -> Callable[[Values], Result]:
    """Remembers the last result, and the values it is of, for as long as the very same come."""
    last: list[tuple[Values, Result]] = []

    def remembered(values: Values) -> Result:
        if not last or not _same(last[0][0], values):
            last[:] = [(values, function(values))]
        return last[0][1]

    return remembered


def _same(one: Values, other: Values) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
