"""Questions to the table of scores: figures of a run, runs side by side, models by benchmarks."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lm_eval_ext.cards import cards
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness.names import UNIT
from lm_eval_ext.results.files import ResultsFile
from lm_eval_ext.results.models import Model, having
from lm_eval_ext.results.table import rows
from lm_eval_ext.stats.intervals import LEAST_CLUSTERS
from lm_eval_ext.stats.measures import DOCUMENT, Measure, Question
from lm_eval_ext.stats.statistics import (
    NONE,
    Figure,
    Pair,
    best,
    figure,
    of_documents,
    pairs,
    parts,
)
from lm_eval_ext.text import counted, names_in

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Asked:
    """A question to tasks, as a command's options give it.

    Attributes:
        metrics: Metrics or measures; without any a task's headline.
        value: Another column of values; "" for the measure's.
        where: Each ``FACET=VALUE`` or ``FACET=VALUE,VALUE``.
        by: Facets, separated by commas; "" for none.
    """

    metrics: tuple[str, ...] = ()
    value: str = ""
    where: tuple[str, ...] = ()
    by: str = ""

    @property
    def is_question(self) -> bool:
        """Whether something else than the tasks' headlines is asked."""
        return bool(self.metrics or self.value or self.where or self.by)

    def questions(self, task: str, run: ResultsFile) -> list[tuple[str, Question]]:
        """The questions about a task, each with its title.

        Raises:
            OptionError: An option cannot be read, or the task has no such metric or facet.
        """
        card = run.card(task)
        where: dict[str, tuple[str, ...]] = {}
        for one in self.where:
            facet, _, values = one.partition("=")
            if not values:
                raise OptionError(f"--where {one}: write FACET=VALUE, such as form=foreign")
            where[facet] = tuple(values.split(","))
        by = tuple(names_in(self.by))
        for name in (*where, *by):
            if card is None:
                raise OptionError(f"no facet {name}: only tasks of ours have facets")
            if name not in card.facets:
                there = ", ".join(card.facets)
                raise OptionError(f"{card.name} has no facet {name}; it has {there}")
        found = []
        words = [one.partition("=")[2].replace("_", " ") for one in self.where]
        for metric in self.metrics or (run.headline(task),):
            own = question_of(run, task, metric)
            measure = own.measure
            if self.value:
                measure = measure.model_copy(update={"value": (self.value,)})
            title = ", ".join(filter(None, [run.title(task, metric), self.value, *words]))
            found.append((title, Question(measure, {**own.where, **where}, by)))
        return found


def question_of(run: ResultsFile, task: str, metric: str = "") -> Question:
    """The question behind a task's metric or measure; without one, its headline.

    Of tasks that aren't ours, and of older files, a metric is the mean of documents' values.

    Raises:
        OptionError: The task has neither.
    """
    card, scores = run.card(task), run.scores(task)
    name = metric or run.headline(task)
    own = card if run.is_current(task) or not scores else None
    if own and (name in own.metrics or name in own.measures):
        return own.question_of(name)
    if name not in scores:
        there = ", ".join(list(dict.fromkeys([*(own.measures if own else ()), *scores]))[:16])
        raise OptionError(f"{task} has no metric {name}; it has {there}")
    column, _, filter_name = name.partition(",")
    listed = run.content["configs"][task].get("metric_list") or ()
    unit: Any = {one.get("metric"): one.get(UNIT) for one in listed}.get(column) or "number"
    lower = (run.content.get("higher_is_better", {}).get(task) or {}).get(column) is False
    measure = Measure(name=name, title=name, value=(column,), unit=unit, lower_is_better=lower)
    return Question(measure, {"filter": (filter_name,)} if filter_name else {})


def figures(run: ResultsFile, task: str, question: Question) -> list[tuple[dict[str, str], Figure]]:
    """The figure of each part; one without parts that lm-eval has as a metric needs no samples.

    Raises:
        OptionError: The samples hold no part, or none of the values asked for.
        DataError: Samples are needed, and were not logged or cannot be read.
    """
    if (known := _noted(run, task, question)) is not None:
        return [({}, known)]
    table = rows(run, task)
    found = [(part, figure(table, own)) for part, own in parts(table, question)]
    if not any(one.documents for _, one in found):
        raise OptionError(f"{task}: {_nothing(table, question)}")
    return found


def _noted(run: ResultsFile, task: str, question: Question) -> Figure | None:
    asked = question.measure, question.filter
    for name, one in run.scores(task).items() if not question.by else ():
        own = question_of(run, task, name)
        if (own.measure, own.filter) == asked:
            return one
    return None


def _nothing(table: "DataFrame", question: Question) -> str:
    """Why there is nothing to show."""
    if table.empty:
        return "no document was scored"
    if missing := [name for name in question.measure.value if name not in table]:
        numbers = [str(name) for name in table if table[name].dtype == "float64"]
        return f"no values {', '.join(missing)}; there are {', '.join(numbers)}"
    for facet in (*question.filter, *question.by):
        if facet not in table:
            return f"its samples have no {facet}"
        wanted = question.filter.get(facet)
        there = sorted(set(table[facet].dropna()))
        if wanted and not set(wanted) & set(there):
            return f"no {facet} {', '.join(wanted)}; there is {', '.join(there)}"
    if question.measure.facet in question.by:
        return f"{question.measure.name} compares {question.measure.facet}: take another --metric"
    return "no document has all that is asked for"


def recomputes(run: ResultsFile, task: str, table: "DataFrame", question: Question) -> bool:
    """Whether the samples give the value in the results file.

    Those of ours do. A metric of other tasks, or of an older version, is taken for the mean of
    documents' values, and need not be.
    """
    if run.is_current(task):
        return True
    reported = run.scores(task).get(question.measure.name)
    if reported is None or reported.value is None or question.measure.value[0] not in table:
        return False
    found = of_documents(table, question)
    return math.isclose(found.mean(), reported.value, rel_tol=1e-9, abs_tol=1e-9)


def reason_for(run: ResultsFile, task: str, measure: Measure, found: Figure) -> str:
    """Why a figure has no value or no interval; "" if it has."""
    card = run.card(task)
    if card is None or not run.is_current(task) or found.low is not None:
        return ""
    if found.value is None:
        text = measure.undefined if found.documents else "no document has a value"
        return f"{NONE}, since {text}"
    unit = card.cluster.unit_at(found.level)
    if found.clusters >= LEAST_CLUSTERS:
        return f"no interval, since it hangs on one {unit}"
    return f"no interval from {counted(found.clusters, unit)}, fewer than {LEAST_CLUSTERS}"


# Runs side by side: their documents matched, or why they cannot be compared.

FILTER = "filter"

FREE = frozenset({"docs", "samples", "lm-eval-ext", "lm-eval", "chat", "answers"})
"""Parts of a signature that may differ: the number of documents (those that all runs have are
compared), the programs' versions (docs/discovery.md), and a chat template (with how answers are
read after it), which shows in the prompts."""

SETTINGS = frozenset({"config", "system", "multiturn", "instruction", "stops"})
"""Parts that may differ, and with them the prompts, under ``--across-settings``."""


class RefusedError(DataError):
    """Runs that cannot be compared, with their signatures by the run's name."""

    def __init__(self, message: str, signatures: Mapping[str, str]) -> None:
        super().__init__(message)
        self.signatures = dict(signatures)


def align(
    task: str,
    runs: Mapping[str, ResultsFile],
    *,
    across_settings: bool = False,
    read: "Callable[[ResultsFile, str], DataFrame]" = rows,
) -> "dict[str, DataFrame]":
    """The long table of each run on a task, once they are known to have measured the same.

    Documents are matched by lm-eval's hashes; those that only some runs have stay. With
    ``across_settings`` prompts may differ, and the parts of signatures in ``SETTINGS``. ``read``
    reads the long table of a run and task.

    Raises:
        RefusedError: If the runs did not measure the same thing, or share no document.
        DataError: If samples are missing or cannot be read.
    """
    signatures = {name: results.signature(task) for name, results in runs.items()}
    _check_signatures(signatures, FREE | SETTINGS if across_settings else FREE)
    found = {name: read(results, task) for name, results in runs.items()}
    keys = [FILTER, DOCUMENT]
    first, *others = (
        (name, table[[*keys, "target", "prompt"]].drop_duplicates(keys))
        for name, table in found.items()
    )
    for name, two in others:
        both = first[1].merge(two, on=keys)
        if both.empty:
            raise RefusedError(f"{task}: {first[0]} and {name} share no document", signatures)
        for what, column in (("right answers", "target"), ("prompts", "prompt")):
            differ = both[both[f"{column}_x"] != both[f"{column}_y"]]
            if len(differ) and not (across_settings and what == "prompts"):
                raise RefusedError(
                    f"{task}: {first[0]} and {name} had different {what} for the same document "
                    f"(doc_hash {differ[DOCUMENT].iloc[0][:12]}…)",
                    {one: signatures[one] for one in (first[0], name)},
                )
    return found


def align_tasks(runs: Mapping[str, ResultsFile]) -> "dict[str, DataFrame]":
    """The long tables of two tasks of one benchmark, whose ``document`` is the item asked about.

    Prompts may differ: such a comparison is about that.

    Args:
        runs: By task.

    Raises:
        RefusedError: If documents of the two cannot be matched one to one.
    """
    signatures = {task: run.signature(task) for task, run in runs.items()}
    first, second = runs
    found = {}
    for task, run in runs.items():
        card = run.card(task)
        found[task] = read = rows(run, task, items=card.item if card else ())
        counts = read.groupby(DOCUMENT)["doc_hash"].nunique()
        if "" in counts or counts.max() > 1:
            raise RefusedError(
                f"{task}: the documents of {first} and {second} cannot be matched one to one by "
                "their items",
                signatures,
            )
    if not set(found[first][DOCUMENT]) & set(found[second][DOCUMENT]):
        raise RefusedError(f"{first} and {second} are not about the same items", signatures)
    return found


def parts_of(signature: str, free: frozenset[str] = FREE) -> dict[str, str]:
    """The parts of a signature that may not differ; of the version the number before the dot."""
    parts = {key: value for key, _, value in (one.partition(":") for one in signature.split("|"))}
    parts["version"] = parts["version"].partition(".")[0]
    return {key: value for key, value in parts.items() if key not in free}


def usual(task: str, runs: Mapping[str, ResultsFile]) -> frozenset[str]:
    """The runs that were asked what most were; of as many, those of the first.

    A trial was asked something else than a whole run, which may lack a few answers, and two whole
    runs count before any number of trials.
    """
    measured = {
        name: (
            run.is_whole,
            run.documents(task)[1],
            *parts_of(run.signature(task)).items(),
        )
        for name, run in runs.items()
    }
    counts = Counter(measured.values())
    most = max(
        measured.values(), key=lambda one: (counts[one] > 1, one[0], counts[one]), default=()
    )
    return frozenset(name for name, one in measured.items() if one == most)


def _check_signatures(signatures: Mapping[str, str], free: frozenset[str]) -> None:
    (first, signature), *others = signatures.items()
    one = parts_of(signature, free)
    for name, other in others:
        two = parts_of(other, free)
        differ = [
            f"{key} ({one.get(key, 'none')} / {two.get(key, 'none')})"
            for key in dict.fromkeys([*one, *two])
            if one.get(key) != two.get(key)
        ]
        if differ:
            raise RefusedError(
                f"{one['task']}: {first} and {name} did not measure the same; "
                f"their signatures differ in {', '.join(differ)}",
                {first: signature, name: other},
            )


# Models by benchmarks: the first thing to see, in a terminal, on a page, in LaTeX, as a frame.

COLUMNS = (
    "model", "benchmark", "task", "metric", "title", "unit", "value", "low", "high", "why",
    "best", "tested", "scored", "total",
)  # fmt: skip


def overview(
    models: Sequence[Model],
    *,
    tasks: Sequence[str] = (),
    read: "Callable[[ResultsFile, str], DataFrame]" = rows,
) -> "DataFrame":
    """A row for each model and benchmark that it has results of.

    Columns: ``model``, ``benchmark`` (of a task that isn't ours the task), ``task`` and ``metric``
    (the benchmark's representative, and its headline), ``title`` (the metric in words), ``unit``,
    ``value``, ``low`` and ``high``, ``why`` there is none of them, ``best`` (whether no other
    model is significantly better), ``tested`` (whether the model is among those that were
    compared), ``scored`` documents of ``total``.

    Args:
        models: As :func:`~lm_eval_ext.results.models.read_models` finds them.
        tasks: Instead of the representatives.
        read: Reads the long table of a run and task. Tests need samples; without them nothing is
            best.
    """
    import pandas as pd

    made = []
    chosen = {task: task for task in tasks} or representatives(models)
    for benchmark, task in chosen.items():
        runs = having(models, task)
        # Older files have other metrics; most runs decide, and not the first model's.
        current = [run for run in runs.values() if run.is_current(task)] or [*runs.values()]
        ((metric, _),) = Counter(run.headline(task) for run in current).most_common(1)
        if not metric:
            continue
        first = next(run for run in current if run.headline(task) == metric)
        question = question_of(first, task, metric)
        values = {name: run.scores(task).get(metric) for name, run in runs.items()}
        tested = _tested(task, runs, question, read)
        known = {name: one.value if one else None for name, one in values.items()}
        leading = best(known, tested, question.measure)
        compared = {name for pair in tested for name in (pair.first, pair.second)}
        for name, found in values.items():
            if found is not None:
                why = reason_for(runs[name], task, question.measure, found)
                numbers = found.value, found.low, found.high, why
                title = first.title(task, metric)
                title += ", lower is better" * question.measure.lower_is_better
                told = benchmark, task, metric, title, question.measure.unit
                marks = name in leading & compared, name in compared
                made.append((name, *told, *numbers, *marks, *runs[name].documents(task)))
    return pd.DataFrame(made, columns=list(COLUMNS))


def _tested(
    task: str,
    runs: Mapping[str, ResultsFile],
    question: Question,
    read: "Callable[[ResultsFile, str], DataFrame]",
) -> list[Pair]:
    """All pairs of the models that were asked the same as most.

    So a trial does not take the documents from all others. Where each was asked something else,
    those that share documents are tested.
    """
    same = usual(task, runs)
    if len(same) > 1:
        runs = {name: run for name, run in runs.items() if name in same}
    try:
        tables = align(task, runs, read=read) if len(runs) > 1 else {}
    except DataError:  # other prompts or settings, or no samples: `compare` says which
        return []
    known = all(recomputes(runs[name], task, own, question) for name, own in tables.items())
    return pairs(tables, question, intervals=False) if tables and known else []


def representatives(models: Sequence[Model]) -> dict[str, str]:
    """By benchmark, the task that stands for it: of those that most models have, the card's first.

    A task that isn't ours stands for itself.
    """
    counts = Counter(task for model in models for task in model.runs)
    cards_of = {task: run.card(task) for model in models for task, run in model.runs.items()}
    found: dict[str, list[str]] = {name: [] for name in cards()}
    for task, card in cards_of.items():
        found.setdefault(card.name if card else task, []).append(task)

    def rank(task: str) -> tuple[bool, int, int]:
        card = cards_of[task]
        first = card.representative if card else ()
        known = task in first
        return known, counts[task], -first.index(task) if known else 0

    return {name: max(tasks, key=rank) for name, tasks in found.items() if tasks}
