"""Facts about a model that its file may state: size, family, weights, licence, date and price."""

import datetime
import re
from collections.abc import Mapping
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
_WEIGHTS = ("open", "closed")


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
    stated = {
        key: content[key]
        for key in KEYS
        if content.get(key) is not None and not problem(key, content[key])
    }
    counted = results.content["config"].get("model_num_parameters")
    size = _parameters(stated.get("size", counted))
    price = _prices(stated.pop("price", None))
    texts = {key: one_line(str(value)) for key, value in stated.items() if key != "size"}
    return About(size=size, price=price, **texts)


def problem(key: str, value: Any) -> str | None:
    """What is wrong with the value of one of the keys, or None."""
    legal = {
        "size": _parameters(value) is not None,
        "weights": value in _WEIGHTS,
        "date": _is_date(value),
        "price": _prices(value) is not None,
    }
    if legal.get(key, isinstance(value, str)):
        return None
    return f"{key} must be {KEYS[key]}, not {one_line(repr(value), limit=80)}"


def _parameters(value: Any) -> float | None:
    found = quantity(value)
    return found if found is not None and found >= _LEAST else None


def _prices(value: Any) -> tuple[float, float] | None:
    if not isinstance(value, list | tuple):
        return None
    match [quantity(price) for price in value]:
        case [float(asked), float(answered)] if asked >= 0 <= answered:
            return asked, answered
    return None


def _is_date(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, datetime.date) or _DATE.fullmatch(str(value)) is not None
