"""The comparison itself: models on each task, two tasks within each model, or models over seeds."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, product
from operator import itemgetter
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, TypeAlias

from lm_eval_ext.cards import Card
from lm_eval_ext.errors import OptionError
from lm_eval_ext.log import get_logger
from lm_eval_ext.results.align import RefusedError, align, align_tasks
from lm_eval_ext.results.ask import Asked, recomputes
from lm_eval_ext.results.files import ResultsFile
from lm_eval_ext.results.models import Model
from lm_eval_ext.results.table import finite
from lm_eval_ext.stats.intervals import LEAST_CLUSTERS
from lm_eval_ext.stats.measures import DOCUMENT, Question
from lm_eval_ext.stats.paired import holm, letters
from lm_eval_ext.stats.statistics import (
    NONE,
    Figure,
    Pair,
    best,
    document_values,
    figure,
    pairs,
    parts,
    shared_documents,
)
from lm_eval_ext.text import several

if TYPE_CHECKING:
    from pandas import DataFrame

_log = get_logger(__name__)

Row: TypeAlias = dict[str, Any]

POOLED = "all models"

MEANS = ("mean", "contrast")
"""Statistics of which documents have a value."""

KEY = ("task", "model", "title", "part")
"""What names a question: rows with the same belong to one table."""


@dataclass(frozen=True)
class Settings(Asked):
    """What to compare, and how; intervals have the level 1 - alpha."""

    alpha: float = 0.05
    seed: int = 0
    across_settings: bool = False


@dataclass
class Report:
    """The results of a comparison, as rows of tables.

    All rows have ``task`` (of two tasks both names), ``model`` (where two tasks are compared),
    ``part`` (values of the facets of ``--by``), ``title`` and ``metric`` (the measure), ``unit``,
    ``lower_is_better``, ``documents`` that all systems have a value for, ``total`` (of the task,
    where that is a trial), ``clusters``, and ``cluster``, what a cluster is.

    Attributes:
        settings: How was compared.
        systems: In the order in which they were named.
        figures: With ``system``, ``value``, ``low``, ``high``, ``best`` (nobody is significantly
            better), ``group`` (two systems that share a letter are not significantly different; ""
            without tests) and ``note`` (why there is no value, test or interval). The best first.
        pairs: With ``first``, ``second``, ``value_first``, ``value_second``, the difference with
            its interval and test (:class:`~lm_eval_ext.stats.paired.Difference`), ``p_holm``.
        published: With ``system``, who published it, and ``value``.
        refused: Tasks that could not be compared: why, and the signatures of the runs.
        signatures: Of each task.
    """

    settings: Settings
    systems: Sequence[str]
    figures: list[Row] = field(default_factory=list)
    pairs: list[Row] = field(default_factory=list)
    published: list[Row] = field(default_factory=list)
    refused: list[RefusedError] = field(default_factory=list)
    signatures: dict[str, str] = field(default_factory=dict)


def compare(
    models: Sequence[Model], tasks: Sequence[str], settings: Settings, *, within: bool = False
) -> Report:
    """Compares models on every task; or ``within`` each model that has both, two tasks.

    Of two tasks there is one more comparison, over all models together, in which a document's value
    is the mean of the models' values. Only items are resampled, since the models are the same in
    both tasks and not a sample of models. Holm's method adjusts for all models of a question, and
    leaves that one comparison as it is.

    Raises:
        OptionError: No task has the metric or the facet, or no model has both tasks.
        DataError: Samples are missing or cannot be read.
    """
    cases: list[tuple[str, str, dict[str, tuple[str, ResultsFile]]]]
    if within:
        cases = [
            (", ".join(tasks), model.label, {task: (task, model.runs[task]) for task in tasks})
            for model in models
            if set(tasks) <= model.runs.keys()
        ]
    else:
        cases = [
            (task, "", {one.label: (task, one.runs[task]) for one in models if task in one.runs})
            for task in tasks
        ]
    if not cases:
        there = ", ".join(dict.fromkeys(task for model in models for task in model.runs))
        raise OptionError(f"no model has results on {' and '.join(tasks)}; there is {there}")
    report = Report(settings, tasks if within else [model.label for model in models])
    wrong: OptionError | None = None
    aligned: list[Mapping[str, DataFrame]] = []
    for name, model, runs in cases:
        (task, first), *_ = runs.values()
        try:
            wanted = settings.questions(task, first)
            systems = align_tasks(*runs.values()) if within else align(
                task, {label: run for label, (_, run) in runs.items()},
                across_settings=settings.across_settings,
            )  # fmt: skip
        except RefusedError as error:
            report.refused.append(error)
            continue
        except OptionError as error:  # of many tasks only some have the metric or the facet
            wrong = error
            continue
        aligned.append(systems)
        for own, run in runs.values():
            report.signatures.setdefault(own, run.signature(own))
        counts = [run.documents(own) for own, run in runs.values()]
        trial = max(total for _, total in counts) if any(s < t for s, t in counts) else None
        same = {"task": name, "model": model, "total": trial}
        for title, question in wanted:
            known = all(recomputes(runs[n][1], runs[n][0], systems[n], question) for n in runs)
            _add(report, {**same, "title": title}, question, systems, first.card(task), known=known)
    if wrong and not report.figures and not report.refused:
        raise wrong
    if within:
        _together(report, aligned, wanted, first.card(task))
    return report


def _together(
    report: Report,
    aligned: "Sequence[Mapping[str, DataFrame]]",
    wanted: Sequence[tuple[str, Question]],
    card: Card | None,
) -> None:
    """Adjusts the p-values of two tasks for all models, and adds the models' mean."""
    part = itemgetter("title", "part")
    for _, own in groupby(sorted(report.pairs, key=part), key=part):
        known = [row for row in own if row["p"] is not None]
        for row, p in zip(known, holm([row["p"] for row in known]), strict=True):
            row["p_holm"] = p
    for title, question in wanted:
        if len(aligned) > 1 and not question.by and question.measure.statistic in MEANS:
            same = {"task": report.figures[0]["task"], "model": POOLED, "title": title,
                    "total": None}  # fmt: skip
            means = {task: pooled([one[task] for one in aligned], question) for task in aligned[0]}
            _add(report, same, plain(question), means, card, known=True)
    for row in report.figures:  # letters would be of one table, and p-values are of several
        row |= {"best": False, "group": ""}
    report.published.clear()


def _add(
    report: Report,
    same: Row,
    question: Question,
    systems: "Mapping[str, DataFrame]",
    card: Card | None,
    *,
    known: bool,
) -> None:
    """Adds the rows of a question; ``known``: samples give the values of the results files."""
    import pandas as pd

    settings = report.settings
    for part, own in parts(pd.concat(list(systems.values())), question):
        measure = own.measure
        common = set(next(iter(shared_documents(systems, own).values()))[DOCUMENT])
        kept = {name: rows[rows[DOCUMENT].isin(common)] for name, rows in systems.items()}
        found = {name: figure(rows, own, alpha=settings.alpha) for name, rows in kept.items()}
        values = {name: one.value for name, one in found.items()}
        sign = 1 if measure.lower_is_better else -1
        ranked = sorted(found, key=lambda name: (values[name] is None, sign * (values[name] or 0)))
        tested = pairs(kept, own, alpha=settings.alpha, seed=settings.seed) if known else []
        leading = best(values, tested, measure, settings.alpha)
        group = _letters(ranked, tested, settings.alpha)
        some = found[ranked[0]]
        about = {
            **same,
            "part": ", ".join(map(card.word, part.values())) if card else "",
            "metric": measure.name,
            "unit": measure.unit,
            "lower_is_better": measure.lower_is_better,
            "documents": some.documents,
            "clusters": some.clusters,
            "cluster": card.cluster.unit_at(some.level) if card else DOCUMENT,
        }
        about["note"] = _note(found, own, about["cluster"], known=known)
        for name in ranked:
            marks = {"system": name, "best": name in leading, "group": group.get(name, "")}
            report.figures.append({**vars(found[name]), **about, **marks})
        for pair in tested:
            row = {**vars(pair.difference), **about, "p_holm": pair.p_holm}
            row["difference"] = finite(row.pop("value"))
            for place, name in (("first", pair.first), ("second", pair.second)):
                row |= {place: name, f"value_{place}": values[name]}
            report.pairs.append(row)
        for label, value in (card.published(same["task"], own) if card else {}).items():
            report.published.append({**about, "system": label, "value": value})


def _letters(ranked: list[str], tested: Sequence[Pair], alpha: float) -> dict[str, str]:
    """None at all where a pair could not be tested."""
    if not tested or any(pair.p_holm is None for pair in tested):
        return {}
    different = {
        (ranked.index(pair.first), ranked.index(pair.second))
        for pair in tested
        if pair.p_holm is not None and pair.p_holm < alpha
    }
    return dict(zip(ranked, letters(len(ranked), different), strict=True))


def _note(found: Mapping[str, Figure], question: Question, unit: str, *, known: bool) -> str:
    some = next(iter(found.values()))
    if not some.documents:
        return "no document has a value in all runs"
    if without := [name for name, one in found.items() if one.value is None]:
        return f"{', '.join(without)}: {NONE}, since {question.measure.undefined}"
    if not known:
        return "no test: the results file has another value than the mean of its samples"
    if question.measure.statistic == "bootstrap":
        return "no test: the paper draws documents, with replacement"
    if some.clusters < LEAST_CLUSTERS:
        many = f"{some.clusters} {unit if some.clusters == 1 else several(unit)}"
        return f"no interval from {many}, fewer than {LEAST_CLUSTERS}; p is never below 0.05"
    return ""


def pooled(systems: "Sequence[DataFrame]", question: Question) -> "DataFrame":
    """Each document's mean over the systems that all have it; for the :func:`plain` question."""
    name = question.measure.name
    kept = shared_documents({str(n): rows for n, rows in enumerate(systems)}, question).values()
    own = [document_values(rows, question.measure) for rows in kept]
    return own[0].assign(**{name: sum(one[name] for one in own) / len(own)}).reset_index()


def plain(question: Question) -> Question:
    """The mean of values that documents have already."""
    measure = question.measure
    changed: Row = {"statistic": "mean", "value": (measure.name,), "where": {}, "weights": {},
                    "best_of": None}  # fmt: skip
    return Question(measure.model_copy(update=changed))


TABLE = itemgetter("task", "title", "part")
"""Of rows over seeds: what each table is about."""

_SEED = re.compile(r"[\s,·_-]*\(?seed[\s_=:-]*(\d+)\)?$", re.IGNORECASE)


def by_seed(models: Sequence[Model], tasks: Sequence[str], settings: Settings) -> list[Row]:
    """Mean and spread of models whose names differ in a seed: these are one condition.

    Returns:
        Rows with ``task``, ``title``, ``part``, ``unit``, ``condition``, ``seeds`` (how many),
        ``mean``, ``sd`` (n - 1 below; None for one seed), and ``low`` and ``high``, the interval of
        the mean: documents are averaged over seeds and clustered as the task's. None where there
        is none, as for what is no mean of the same documents.

    Raises:
        OptionError: No two models differ in their seed alone.
        DataError: Samples are missing or cannot be read.
    """
    import pandas as pd

    conditions: dict[str, list[Model]] = {}
    for model in models:
        conditions.setdefault(_SEED.sub("", model.label), []).append(model)
    if len(conditions) == len(models):
        names = ", ".join(model.label for model in models)
        raise OptionError(f'--by-seed: no two names differ only in "seed N" at the end: {names}')
    found = []
    for task, (condition, seeds) in product(tasks, conditions.items()):
        runs = {model.label: model.runs[task] for model in seeds if task in model.runs}
        if not runs:
            continue
        try:
            aligned = align(task, runs)
        except RefusedError as error:
            _log.warning("left out: %s", error)
            continue
        tables = list(aligned.values())
        card = next(iter(runs.values())).card(task)
        for title, question in settings.questions(task, next(iter(runs.values()))):
            if not all(recomputes(runs[one], task, own, question) for one, own in aligned.items()):
                _log.warning("left out: %s, %s: its samples have other values", task, title)
                continue
            for part, own in parts(pd.concat(tables), question):
                each = [figure(table, own).value for table in tables]
                values = [one for one in each if one is not None]
                mean = Figure(None)
                if own.measure.statistic in MEANS:
                    mean = figure(pooled(tables, own), plain(own), alpha=settings.alpha)
                found.append(
                    {"task": task, "title": title,
                     "part": ", ".join(map(card.word, part.values())) if card else "",
                     "unit": own.measure.unit, "condition": condition, "seeds": len(values),
                     "mean": fmean(values) if values else None,
                     "sd": stdev(values) if len(values) > 1 else None,
                     "low": mean.low, "high": mean.high}
                )  # fmt: skip
    order = list(dict.fromkeys(map(TABLE, found)))
    return sorted(found, key=lambda row: order.index(TABLE(row)))
