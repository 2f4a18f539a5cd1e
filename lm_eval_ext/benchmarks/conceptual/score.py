"""Metrics of answers after random and after concept-sharing demonstrations.

A metric's value per document is a :class:`~.points.Point`, or with several templates
:class:`~.points.ByTemplate`; :mod:`.intervals` makes figures of them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval_ext.benchmarks.conceptual import answers, copying, intervals
from lm_eval_ext.benchmarks.conceptual.answers import ACCURACY, ROUGE_L
from lm_eval_ext.benchmarks.conceptual.fewshot import CONCEPT, RANDOM, SAME_LABELS, SELECTIONS
from lm_eval_ext.benchmarks.conceptual.points import (
    ERROR_CHANGE,
    GAIN,
    OF_CONTROL,
    VIEWS,
    ByTemplate,
    points,
)
from lm_eval_ext.benchmarks.conceptual.prompt import SHOW_LABELS
from lm_eval_ext.benchmarks.conceptual.records import Option
from lm_eval_ext.harness.metrics import entry, metric_entries
from lm_eval_ext.harness.names import HIGH, LOW, STDERR
from lm_eval_ext.stats.intervals import DIFFERENCE, UNIT, Limits

BOOTSTRAPPED = (ROUGE_L, ACCURACY)
"""Scores that also have the paper's bootstrap and figures per concept."""

OF_CONCEPTS = (RANDOM, CONCEPT, GAIN)
"""Views that have figures per concept."""

PAPER = "_100x200"
"""Ending of the figures from the paper's bootstrap; the figure itself is the median, as in the
paper's figure 4."""

IS_BEST = "is_best"
"""A metric for each template: 1 for the one with the highest mean ``concept/rouge_l``."""

ByScore = Mapping[str, Mapping[str, float]]
"""Scores by name, then by selection."""


@dataclass(frozen=True)
class Layout:
    """Which metrics a task has.

    Attributes:
        concepts: Those with metrics of their own.
        templates: Those that are asked. With several, a metric without a template's name is of the
            best one, and each has its own as ``NAME@TEMPLATE``.
        control: Whether the control is asked.
        draws: Of the paper's bootstrap.
    """

    concepts: tuple[str, ...]
    templates: tuple[str, ...]
    control: bool = False
    draws: intervals.Draws = "paired"

    def views(self, score: str) -> list[str]:
        """The views of a score; nothing is wrong in what a stand-in copies."""
        return [
            view
            for view in VIEWS
            if (self.control or view not in OF_CONTROL)
            and (view != ERROR_CHANGE or score in answers.SCORES)
        ]


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, ByScore]:
    """Scores a document's answers: by template, then by score, then by selection.

    The task makes lm-eval's metrics of them with :func:`values`.
    """
    asked = [name for name in (*SELECTIONS, SAME_LABELS) if doc.get(f"{name}_demonstrations")]
    options = [Option(option["label"], option["text"]) for option in doc["options"]]
    found: dict[str, ByScore] = {}
    for number, (template, gold) in enumerate(zip(doc["templates"], doc["answers"], strict=True)):
        of_template = results[number * len(asked) : (number + 1) * len(asked)]
        scored = {
            selection: answers.score(
                answer, gold, options, doc["answer_label"], labels_shown=template in SHOW_LABELS
            )
            for selection, answer in zip(asked, of_template, strict=True)
        }
        found[template] = by_score(scored)
    return found


def by_score(by_selection: Mapping[str, Mapping[str, float]]) -> ByScore:
    """Turns selections of scores into scores of selections."""
    names = dict.fromkeys(name for scores in by_selection.values() for name in scores)
    return {
        name: {selection: scores[name] for selection, scores in by_selection.items()}
        for name in names
    }


def values(
    doc: Mapping[str, Any], scores: Mapping[str, ByScore], layout: Layout
) -> dict[str, float | ByTemplate | None]:
    """One document's value of every metric of :func:`metric_list`.

    Args:
        doc: With ``id``, and ``concept``, the cluster of its errors.
        scores: By template, then by score (also those of :mod:`.copying`), then by selection.
        layout: The task's.
    """
    found: dict[str, dict[str, Any]] = {template: {} for template in scores}
    for template, by_name in scores.items():
        for name, by_selection in by_name.items():
            views = layout.views(name)
            for view, point in points(by_selection, doc["id"], doc["concept"], views).items():
                found[template] |= dict.fromkeys(_names(view, name), point)
            # Within one concept every document is its own cluster.
            own = points(by_selection, doc["id"], doc["id"], OF_CONCEPTS)
            for concept in layout.concepts if name in BOOTSTRAPPED else ():
                for view in OF_CONCEPTS:
                    metric = f"{view}/{name}:{label(concept)}"
                    mine = own[view] if concept == doc["concept"] else None
                    found[template] |= {metric: mine, metric + STDERR: mine}
    if len(scores) == 1:
        return next(iter(found.values()))
    return _by_template(found, {name: one[ROUGE_L][CONCEPT] for name, one in scores.items()})


def _by_template(
    found: Mapping[str, Mapping[str, Any]], deciding: Mapping[str, float]
) -> dict[str, float | ByTemplate | None]:
    both: dict[str, float | ByTemplate | None] = {}
    for name in next(iter(found.values())):
        under = {template: own[name] for template, own in found.items()}
        both[name] = ByTemplate({t: v for t, v in under.items() if v is not None}, deciding)
        if ":" not in name:
            both |= {_at(name, template): value for template, value in under.items()}
    return both | {f"{IS_BEST}@{name}": ByTemplate({}, deciding, name) for name in found}


def _at(name: str, template: str) -> str:
    """A metric's name for one template; endings stay at the end."""
    end = next((end for end in (STDERR, LOW, HIGH) if name.endswith(end)), "")
    return f"{name.removesuffix(end)}@{template}{end}"


def _names(view: str, score: str) -> list[str]:
    if score in copying.SCORES:
        return [f"{view}/{score}{end}" for end in ("", STDERR)]
    names = [f"{view}/{score}{end}" for end in ("", STDERR)]
    if score in BOOTSTRAPPED:
        names += [f"{view}/{score}{PAPER}{end}" for end in intervals.ENDS]
    return names


def concepts_with_enough(rows: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The concepts that have metrics of their own, in alphabetical order."""
    counts = Counter(row["concept"] for row in rows)
    return tuple(
        sorted(name for name, count in counts.items() if name and count >= intervals.ENOUGH)
    )


def label(concept: str) -> str:
    """A concept as part of a metric's name, where slash and comma are separators."""
    return concept.replace("/", "&").replace(",", ";")


def metric_list(layout: Layout) -> list[dict[str, Any]]:
    """lm-eval's ``metric_list``."""
    if len(layout.templates) == 1:
        return _entries(layout, "", "")
    entries = _entries(layout, intervals.BEST, "")
    for template in layout.templates:
        entries += _entries(layout, "", template)
    return entries + [
        _entry(f"{IS_BEST}@{template}", intervals.IS_BEST) for template in layout.templates
    ]


def _entries(layout: Layout, best: str, template: str) -> list[dict[str, Any]]:
    """The metrics of the only template, of the best one, or of the one that is named."""
    entries: list[dict[str, Any]] = []
    for score in (*answers.SCORES, *copying.SCORES):
        for view in layout.views(score):
            name = f"{view}/{score}"
            if view == ERROR_CHANGE:
                change = intervals.CHANGE.format(best=best)
                entries += [_entry(name + end, change + end) for end in ("", STDERR)]
            else:
                entries += _mean(name, best)
            if score in BOOTSTRAPPED:
                drawn = intervals.BOOTSTRAP.format(best=best, draws=layout.draws)
                entries += [_entry(f"{name}{PAPER}{end}", drawn + end) for end in intervals.ENDS]
        if score in BOOTSTRAPPED and not template:
            entries += [
                _entry(
                    f"{view}/{score}:{label(concept)}{end}",
                    intervals.BY_CONCEPT.format(best=best) + end,
                )
                for concept in layout.concepts
                for view in OF_CONCEPTS
                for end in ("", STDERR)
            ]
    if template:
        return [{**entry, "metric": _at(entry["metric"], template)} for entry in entries]
    return entries


def _mean(name: str, best: str) -> list[dict[str, Any]]:
    if not best:
        return metric_entries([name], limits=_limits(name))
    mean = intervals.MEAN.format(best=best)
    return [_entry(name, mean), _entry(name + STDERR, mean + STDERR)]


def _entry(name: str, aggregation: str) -> dict[str, Any]:
    better = not name.startswith(f"{ERROR_CHANGE}/") and not name.endswith(STDERR)
    limits = None if name.endswith((STDERR, LOW, HIGH)) else _limits(name)
    return entry(name, aggregation, higher_is_better=better, limits=limits)


def _limits(name: str) -> Limits:
    """The legal values of a metric, by its view: a share, a difference, or a change of error."""
    view = name.partition("/")[0]
    if view == ERROR_CHANGE:
        return (-1.0, None)
    return DIFFERENCE if view in VIEWS and not sum(VIEWS[view].values()) else UNIT
