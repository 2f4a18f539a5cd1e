"""Quiz: questions with four options, of which the first in the file is right."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from lm_eval_ext.harness.loading import loader
from lm_eval_ext.stats.table import Row

QUESTIONS = Path(__file__).with_name("questions.csv")


class Options(BaseModel, extra="forbid"):
    """The task has no options."""


@loader(prefix="quiz_", options=Options)
def documents(_options: Options) -> Iterator[dict[str, Any]]:
    """A document for each question, with a context and a continuation for each option."""
    with QUESTIONS.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file), start=1):
            options = [row["right"], row["wrong_1"], row["wrong_2"], row["wrong_3"]]
            yield {
                "id": f"question-{number}",
                "category": row["category"],
                "answer": row["right"],
                "context": [f"Question: {row['question']}\nAnswer:"] * len(options),
                "continuation": [f" {option}" for option in options],
            }


def score(document: Mapping[str, Any], answers: Sequence[tuple[float, bool]]) -> list[Row]:
    """One row: whether the right option is more probable than each of the others."""
    right, *wrong = [logprob for logprob, _is_greedy in answers]
    correct = all(right > logprob for logprob in wrong)
    return [{"category": document["category"], "correct": float(correct)}]
