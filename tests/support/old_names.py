"""What metrics were called before scores became a table, by ``docs/old_names.csv``."""

import csv
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lm_eval_ext.cards import cards
from lm_eval_ext.harness.names import NONE, STDERR
from lm_eval_ext.stats.measures import Question
from lm_eval_ext.stats.statistics import estimate
from lm_eval_ext.stats.table import Scored, frame

ROOT = Path(__file__).resolve().parents[2]
NAMES = list(csv.DictReader((ROOT / "docs" / "old_names.csv").open(encoding="utf-8")))
FACET = re.compile(r"\{(\w+)\}")


def question_behind(benchmark: str, old: str, facets: Mapping[str, set[str]]) -> Question:
    """By the list; a pattern's facets take only values that the samples have."""
    card = cards()[benchmark]
    for row in NAMES:
        pattern = FACET.sub(
            r"(?P<\1>.+)", re.escape(row["old"]).replace(r"\{", "{").replace(r"\}", "}")
        )
        found = re.fullmatch(pattern, old)
        if row["benchmark"] != benchmark or not found:
            continue
        values = {
            name: one.replace("&", "/").replace(";", ",") for name, one in found.groupdict().items()
        }
        if all(value in facets.get(name, ()) for name, value in values.items()):
            question = card.question_of(row["metric"])
            measure = question.measure
            if row["value"]:
                measure = measure.model_copy(update={"value": (row["value"],)})
            where = [one.partition("=")[::2] for one in row["where"].split(";") if one]
            filters = {
                facet: (values.get(value.strip("{}"), value) if "{" in value else value,)
                for facet, value in where
            }
            return Question(measure, {**question.where, **filters})
    raise AssertionError(f"{benchmark}: {old} is not in docs/old_names.csv")


class Old:
    """Values of documents (name, id, clusters, rows) by their former names.

    ``NAME_stderr`` is a standard error; "N/A" where there is none.
    """

    def __init__(self, benchmark: str, documents: Iterable[Scored]) -> None:
        self.benchmark, self.table = benchmark, frame(documents)

    def __getitem__(self, name: str) -> Any:
        facets = {one: set(self.table[one].dropna()) for one in self.table.select_dtypes("object")}
        question = question_behind(self.benchmark, name.removesuffix(STDERR), facets)
        found = estimate(self.table, question)
        value = found.stderr if name.endswith(STDERR) else found.value
        return NONE if value is None else value
