"""Facts about a model that its file may state: size, family, weights, licence, date and price."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from lm_eval_ext.results.files import ResultsFile, Tokens, model_file
from lm_eval_ext.text import one_line, quantity

KEYS: Mapping[str, str] = MappingProxyType(
    {
        "size": "the number of parameters, such as 7B, 350M or 6738415616",
        "family": "the name that models of one kind share, such as Llama 3",
        "weights": "open or closed",
        "licence": "the licence of the weights",
        "date": "when it was published: 2024, 2024-07 or 2024-07-23",
        "price": "input and output in one currency per million tokens, such as [0.15, 0.6]",
    }
)
"""The keys, with their meaning."""

_MILLION = 1_000_000
_LEAST = 1000
"""Parameters. A smaller number is rather one of billions or millions without its unit."""
_DATE = re.compile(r"\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?")


@dataclass(frozen=True)
class About:
    """What is known of a model; "" and None where nothing is.

    ``size`` is the number of parameters; ``date`` is ISO 8601, with or without month and day;
    ``price`` is that of a million tokens of input and of output.
    """

    family: str = ""
    size: float | None = None
    weights: str = ""
    licence: str = ""
    date: str = ""
    price: tuple[float, float] | None = None

    def cost(self, tokens: Tokens | None) -> float | None:
        """Of so many tokens, in the currency of the price; None if either isn't known."""
        if self.price is None or tokens is None:
            return None
        asked, answered = self.price
        return (asked * tokens.input + answered * tokens.output) / _MILLION


def about(results: ResultsFile) -> About:
    """Reads the facts from the model's file; a wrong value counts as none.

    A size that isn't stated is the number of parameters that lm-eval counted, if it did.
    """
    content = model_file(results)
    counted = _size(results.content["config"].get("model_num_parameters"))
    found = {key: read(content.get(key)) for key, read in _READ.items()}
    found["size"] = found["size"] or counted
    return About(**{key: value for key, value in found.items() if value is not None})


def problem(key: str, value: Any) -> str | None:
    """What is wrong with the value of one of the keys, or None."""
    if _READ[key](value) is not None:
        return None
    return f"{key} must be {KEYS[key]}, not {one_line(repr(value), limit=80)}"


# Each reads a value, or returns None for one that is not legal.


def _text(value: Any) -> str | None:
    return one_line(value) if isinstance(value, str) else None


def _size(value: Any) -> float | None:
    found = quantity(value)
    return found if found is not None and found >= _LEAST else None


def _price(value: Any) -> tuple[float, float] | None:
    match [quantity(price) for price in value] if isinstance(value, list | tuple) else []:
        case [float(asked), float(answered)] if asked >= 0 <= answered:
            return asked, answered
    return None


_READ: Mapping[str, Callable[[Any], Any]] = {
    "size": _size,
    "family": _text,
    "weights": lambda value: value if value in ("open", "closed") else None,
    "licence": _text,
    "date": lambda value: str(value) if _DATE.fullmatch(str(value)) else None,
    "price": _price,
}
