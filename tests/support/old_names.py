"""The names of metrics before scores became a table, as ``docs/old_names.csv`` lists them."""

import csv
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from lm_eval_ext.cards import cards
from lm_eval_ext.harness.names import NONE, STDERR
from lm_eval_ext.stats.measures import Question
from lm_eval_ext.stats.statistics import estimate
from lm_eval_ext.stats.table import DocumentRows, frame

ROOT = Path(__file__).resolve().parents[2]
NAMES = list(csv.DictReader((ROOT / "docs" / "old_names.csv").open(encoding="utf-8")))
FACET = re.compile(r"\{(\w+)\}")


def _pattern(old: str) -> re.Pattern[str]:
    """Return a pattern for an old name, with a group for each facet in braces."""
    escaped = re.escape(old).replace(r"\{", "{").replace(r"\}", "}")
    return re.compile(FACET.sub(r"(?P<\1>.+)", escaped))


def _facet_values(match: re.Match[str]) -> dict[str, str]:
    """Return the values of a name's facets, in which two characters were written otherwise."""
    values = {}
    for facet, value in match.groupdict().items():
        values[facet] = value.replace("&", "/").replace(";", ",")
    return values


def question_behind(benchmark: str, old: str, facets: Mapping[str, set[str]]) -> Question:
    """Return the question of an old name.

    A pattern's facets take only values that the samples have.
    """
    for row in NAMES:
        match = _pattern(row["old"]).fullmatch(old)
        if row["benchmark"] != benchmark or not match:
            continue
        values = _facet_values(match)
        if all(value in facets.get(facet, ()) for facet, value in values.items()):
            return _question(row, values)
    raise AssertionError(f"{benchmark}: {old} is not in docs/old_names.csv")


def _question(row: Mapping[str, str], values: Mapping[str, str]) -> Question:
    """Return the question of a row of the list, with these values of the name's facets."""
    question = cards()[row["benchmark"]].question_of(row["metric"])
    measure = question.measure
    if row["value"]:
        measure = measure.model_copy(update={"value": (row["value"],)})
    filters = dict(question.where)
    for condition in filter(None, row["where"].split(";")):
        facet, _, value = condition.partition("=")
        if "{" in value:
            value = values.get(value.strip("{}"), value)
        filters[facet] = (value,)
    return Question(measure, filters)


class Old:
    """Values of documents (name, id, clusters, rows) by their former names.

    ``NAME_stderr`` is a standard error; "N/A" where there is none.
    """

    def __init__(self, benchmark: str, documents: Iterable[DocumentRows]) -> None:
        self.benchmark = benchmark
        self.table = frame(documents)

    def __getitem__(self, name: str) -> float | str:
        facets = {}
        for column in self.table.select_dtypes("object"):
            facets[column] = set(self.table[column].dropna())
        question = question_behind(self.benchmark, name.removesuffix(STDERR), facets)
        figure = estimate(self.table, question)
        value = figure.value
        if name.endswith(STDERR):
            value = figure.stderr
        if value is None:
            return NONE
        return value
