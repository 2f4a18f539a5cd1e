"""Quiz: questions with options, of which the first in the file is right."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from lm_eval_ext.errors import DataError
from lm_eval_ext.harness.loading import loader
from lm_eval_ext.stats.table import Row

QUESTIONS = Path(__file__).with_name("questions.csv")


class Options(BaseModel, extra="forbid"):
    """The task has no options."""


@loader(prefix="quiz_", options=Options)
def documents(_options: Options) -> Iterator[dict[str, Any]]:
    """A document for each question, with a context and a continuation for each option.

    Raises:
        DataError: A question has no category, fewer than two options, or the same one twice.
    """
    with QUESTIONS.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, restkey="more cells", restval="")
        for number, row in enumerate(reader, start=1):
            location = f"{QUESTIONS}, question {number}"
            if "more cells" in row:
                raise DataError(f"{location}: more cells than columns; quote texts with commas")
            options = options_of(row, location)
            yield {
                "id": f"question-{number}",
                "category": row["category"],
                "answer": options[0],
                "context": [f"Question: {row['question']}\nAnswer:"] * len(options),
                "continuation": [f" {option}" for option in options],
            }


def options_of(row: Mapping[str, str], location: str) -> list[str]:
    """Return the options of a question, the right one first; empty cells are none.

    Raises:
        DataError: A column is missing, or there are too few options, or the same one twice.
    """
    for column in ("question", "category", "right"):
        if not row.get(column, "").strip():
            raise DataError(f"{location}: no {column}")
    options = [row["right"].strip()]
    for column, cell in row.items():
        if column.startswith("wrong_") and cell.strip():
            options.append(cell.strip())
    if len(options) == 1:
        raise DataError(f"{location}: no wrong option; columns wrong_1, wrong_2, ... have them")
    if len(set(options)) < len(options):
        raise DataError(f"{location}: the same option twice")
    return options


def score(document: Mapping[str, Any], answers: Sequence[tuple[float, bool]]) -> list[Row]:
    """One row: whether the right option is more probable than each of the others."""
    right, *wrong = [logprob for logprob, _is_greedy in answers]
    correct = all(right > logprob for logprob in wrong)
    return [{"category": document["category"], "correct": float(correct)}]
