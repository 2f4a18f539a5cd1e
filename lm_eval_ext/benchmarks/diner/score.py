"""From answers to metrics.

``micro_f1`` is the paper's figure, ``mean_f1`` what the authors' code computes.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any

from lm_eval_ext.benchmarks.diner.component_answers import components_in
from lm_eval_ext.benchmarks.diner.f1 import Counts, micro_f1, micro_f1_spread
from lm_eval_ext.benchmarks.diner.glossary import KINDS, Glossary
from lm_eval_ext.benchmarks.diner.prompt import ASKED_KINDS
from lm_eval_ext.benchmarks.diner.scoring import counts, counts_by_kind, exact_match, set_counts
from lm_eval_ext.harness.aggregations import register_figure, register_spread
from lm_eval_ext.harness.metrics import (
    HIGH,
    LOW,
    STDERR,
    document_results,
    metric_entries,
)
from lm_eval_ext.stats import Spread

MICRO, MEAN, EXACT = "micro_f1", "mean_f1", "exact_match"
UNPARSED, NO_ANSWER = "unparsed", "no_answer"
"""Shares of answers: with a name that does not parse, without any."""

_MICRO = "diner_micro_f1"
_ENDINGS = ("", STDERR, LOW, HIGH)


class Counted(float):
    """The F1 of one answer, with the counts it comes from and its dish.

    A float, so that lm-eval's logs and JSON take it as one.
    """

    counts: Counts
    cluster: str

    def __new__(cls, found: Counts, cluster: str) -> "Counted":
        """Args: the counts; the gold name."""
        self = super().__new__(cls, found.f1)
        self.counts, self.cluster = found, cluster
        return self

    def __reduce__(self) -> tuple[type["Counted"], tuple[Counts, str]]:
        """For pickling: ranks send their scores to each other."""
        return (Counted, (self.counts, self.cluster))


def _micro_of(values: Iterable[Counted]) -> float | None:
    return micro_f1(value.counts for value in _something(values))


def _spread(values: Iterable[Counted]) -> Spread | None:
    return micro_f1_spread((value.cluster, value.counts) for value in _something(values))


def _something(values: Iterable[Counted]) -> list[Counted]:
    """The values in which there is something to count: gold or predicted components."""
    return [value for value in values if value.counts.gold or value.counts.predicted]


register_figure(_MICRO, _micro_of)
register_spread(_MICRO, _spread)


def by_glossary(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    """Marks, in a task's YAML, that its class scores the answers, since it has the glossary.

    Without any function there lm-eval would take our metrics for some of its library's.

    Raises:
        TypeError: If it is called after all.
    """
    del doc, results
    raise TypeError("this task's class must be one of lm_eval_ext.benchmarks.diner.task")


def _micro_entries(names: Iterable[str]) -> list[dict[str, Any]]:
    return [
        {
            "metric": name + ending,
            "aggregation": _MICRO + ending,
            "higher_is_better": ending != STDERR,
        }
        for name in names
        for ending in _ENDINGS
    ]


def _micro(found: Mapping[str, Counts | None], dish: str) -> dict[str, Any]:
    return {
        name + ending: None if one is None else Counted(one, dish)
        for name, one in found.items()
        for ending in _ENDINGS
    }


def name_metrics(categories: Sequence[str]) -> list[dict[str, Any]]:
    """lm-eval's ``metric_list`` of a task that asks for names, in the order of :func:`name`.

    Args:
        categories: Those of the documents, each of which gets figures of its own.
    """
    parts = [MICRO, *(f"{MICRO}:{part}" for part in (*KINDS, *categories))]
    means = [MEAN, EXACT, *(f"{EXACT}:{part}" for part in categories)]
    return [
        *_micro_entries(parts),
        *metric_entries(means),
        *metric_entries([UNPARSED, NO_ANSWER], higher_is_better=False),
    ]


def name(
    gold: str, category: str, prediction: str, glossary: Glossary, categories: Sequence[str]
) -> dict[str, Any]:
    """Scores the name in an answer; None in the metrics that do not concern the recipe.

    Args:
        gold: The recipe's name.
        category: Of the gold name.
        prediction: The name taken out of the answer; may be empty.
        glossary: Parses both.
        categories: As for :func:`name_metrics`.
    """
    found = counts(gold, prediction, glossary)
    by_category = {one: found if one == category else None for one in categories}
    by_kind = counts_by_kind(gold, prediction, glossary)
    micro = {
        MICRO: found,
        **{f"{MICRO}:{part}": one for part, one in {**by_kind, **by_category}.items()},
    }
    exact = float(exact_match(gold, prediction))
    means = {
        MEAN: found.f1,
        EXACT: exact,
        UNPARSED: float(glossary.parse(prediction) is None),
        NO_ANSWER: float(not prediction),
    }
    parts = {f"{EXACT}:{one}": exact for one in categories if one == category}
    other = [f"{EXACT}:{one}" for one in categories if one != category]
    scored: dict[str, Any] = {
        **_micro(micro, gold),
        **document_results({**means, **parts}, gold),
        **{metric + ending: None for metric in other for ending in ("", STDERR)},
    }
    return {entry["metric"]: scored[entry["metric"]] for entry in name_metrics(categories)}


def component_metrics() -> list[dict[str, Any]]:
    """lm-eval's ``metric_list`` of the component questions, in the order of :func:`components`."""
    parts = ["", *(f":{kind}" for kind in ASKED_KINDS)]
    return [
        *_micro_entries(MICRO + part for part in parts),
        *metric_entries(metric + part for metric in (MEAN, EXACT) for part in parts),
    ]


def components(gold: str, answers: Sequence[str], glossary: Glossary) -> dict[str, Any]:
    """Scores the answers to the component questions.

    Each is compared as a set with the gold components of its kind. Where there are none, an
    empty answer is right: its F1 is 1, and it adds nothing to the micro F1.

    Args:
        gold: The recipe's name.
        answers: In the order of :data:`~lm_eval_ext.benchmarks.diner.prompt.ASKED_KINDS`.
        glossary: Of the gold name and the answers.
    """
    parsed = glossary.parse(gold) or ()
    found: dict[str, Counts] = {}
    means: dict[str, float] = {}
    for kind, answer in zip(ASKED_KINDS, answers, strict=True):
        wanted = {component for component in parsed if component.kind == kind}
        given = components_in(answer, glossary)
        found[kind] = set_counts(wanted, given)
        means[f"{MEAN}:{kind}"] = found[kind].f1 if wanted or given else 1.0
        means[f"{EXACT}:{kind}"] = float(wanted == given)
    total = reduce(add, found.values())
    means[MEAN] = sum(means[f"{MEAN}:{kind}"] for kind in ASKED_KINDS) / len(ASKED_KINDS)
    means[EXACT] = min(means[f"{EXACT}:{kind}"] for kind in ASKED_KINDS)
    micro = {MICRO: total, **{f"{MICRO}:{kind}": one for kind, one in found.items()}}
    scored = {**_micro(micro, gold), **document_results(means, gold)}
    return {entry["metric"]: scored[entry["metric"]] for entry in component_metrics()}
