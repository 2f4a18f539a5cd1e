"""What a run logged of one task, made small enough that many models fit into memory."""

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lm_eval_ext.errors import DataError
from lm_eval_ext.results.samples import Key, logged_rows
from lm_eval_ext.text import one_line


@dataclass(frozen=True)
class Asked:
    """A document, as it was asked.

    Attributes:
        doc: As lm-eval logged it.
        prompts: One per request; of a log-probability, context and continuation.
        target: The right answer.
    """

    doc: Mapping[str, Any]
    prompts: tuple[str, ...]
    target: str


@dataclass
class Logged:
    """The samples of one model on one task.

    Attributes:
        answers: By document, one per request.
        scores: By document, then by metric; None where a metric does not concern it.
        asked: Only of the first model.
        prompts: By document, where a model was asked otherwise than the first one.
    """

    answers: dict[Key, tuple[str, ...]] = field(default_factory=dict)
    scores: dict[Key, dict[str, float | None]] = field(default_factory=dict)
    asked: dict[Key, Asked] = field(default_factory=dict)
    prompts: dict[Key, tuple[str, ...]] = field(default_factory=dict)


_ROW = (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""What reading a row that lm-eval did not write can raise."""


def read(file: Path, metrics: tuple[str, ...], *, first: "Logged | None" = None) -> Logged:
    """Reads a file of samples; of several filters the answers of the first one.

    Args:
        file: As lm-eval wrote it.
        metrics: Whose scores are kept; of several filters each metric names its own.
        first: The first model's samples, which hold the documents; None for its own.

    Raises:
        DataError: If a row cannot be read; file and line are named.
    """
    logged = Logged()
    seen: Counter[tuple[str, str]] = Counter()
    of_filter = {name: name.partition(",")[::2] for name in metrics}
    first_filter: str | None = None
    for place, row in logged_rows(file):
        try:
            filter_name, digest = str(row["filter"]), str(row["doc_hash"])
            key = (digest, seen[filter_name, digest])
            seen[filter_name, digest] += 1
            scores = logged.scores.setdefault(key, dict.fromkeys(metrics))
            for name, (metric, of) in of_filter.items():
                if of in ("", filter_name):
                    scores[name] = _number(row.get(metric))
            first_filter = filter_name if first_filter is None else first_filter
            if filter_name != first_filter:
                continue
            logged.answers[key] = tuple(_text(answer) for answer in row["filtered_resps"])
            prompts = tuple(_prompt(one) for one in row["arguments"].values())
            if first is None:
                doc = row["doc"] if isinstance(row["doc"], dict) else {}
                logged.asked[key] = Asked(doc, prompts, _text(row["target"]))
            elif key in first.asked and prompts != first.asked[key].prompts:
                logged.prompts[key] = prompts
        except _ROW as error:
            problem = one_line(f"{type(error).__name__}: {error}", limit=200)
            raise DataError(f"{place}: not a sample that lm-eval logged ({problem})") from None
    return logged


def _text(value: Any) -> str:
    """A response as text: generated, or a logged pair of log-probability and "is greedy"."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and len(value) == 1:
        return _text(value[0])
    return json.dumps(value, ensure_ascii=False)


def _prompt(arguments: Mapping[str, Any]) -> str:
    context = arguments.get("arg_0", "")
    text = context if isinstance(context, str) else json.dumps(context, ensure_ascii=False)
    continuation = arguments.get("arg_1")
    return f"{text}⟨…⟩{continuation}" if isinstance(continuation, str) else text


def _number(value: Any) -> float | None:
    if isinstance(value, bool | int | float) and math.isfinite(value):
        return float(value)
    return None
