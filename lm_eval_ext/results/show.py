"""``lm-eval-ext show``: models by benchmarks, then on request a task's metrics, or a question."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.results.ask import Asked, figures, overview, question_of
from lm_eval_ext.results.files import ResultsFile
from lm_eval_ext.results.grid import BEST, LOWER, Section, interval, matrix, value
from lm_eval_ext.results.models import Model, choose_tasks, having
from lm_eval_ext.stats.intervals import LEAST_CLUSTERS
from lm_eval_ext.stats.measures import Measure, Question
from lm_eval_ext.stats.statistics import NONE, Figure
from lm_eval_ext.text import counted, one_line

_SOME = 3
"""Names that a note has before it counts the rest."""


class _Shown(NamedTuple):
    """A figure of one model: of a metric, or of a part."""

    name: str
    model: str
    run: ResultsFile
    question: Question
    figure: Figure


def tables(models: Sequence[Model], asked: Asked, tasks: Sequence[str] = ()) -> Iterator[Section]:
    """Yields what a terminal shows.

    Args:
        models: Of any results.
        asked: A question about each task; without one its metrics.
        tasks: By name or pattern. Without any, and without a question, the overview of several.

    Raises:
        OptionError: No task or facet has that name.
        DataError: Samples are needed, and were not logged or cannot be read.
    """
    chosen = choose_tasks(models, tasks, least=1)
    if len(chosen) > 1 and not tasks and not asked.is_question:
        yield from _overview(models, chosen)
        return
    problems = []
    for task in chosen:
        try:
            yield from _task(task, having(models, task), asked)
        except (DataError, OptionError) as error:  # the other tasks still show
            problems.append(error)
    if len(problems) == len(chosen):
        raise problems[0]
    yield "\n".join(dict.fromkeys(map(str, problems))), (), ()


def _overview(models: Sequence[Model], tasks: Sequence[str]) -> Iterator[Section]:
    found = overview(models)
    cells: dict[str, dict[str, str]] = {}
    for one in found.itertuples():
        trial = f"\n{one.scored}/{one.total} " * (one.scored < one.total)
        shown = value(one.value, one.unit, best=one.best) + trial
        cells.setdefault(one.benchmark, {})[one.model] = shown
    yield "", *matrix(cells, turned=len(cells) <= found["model"].nunique())
    notes = [f"{one.task}: {one.title}" for one in found.drop_duplicates("task").itertuples()]
    if found["best"].any():
        notes.append(f"{BEST} no other model is significantly better (Holm, 5 %)")
    if len(models) > 1 and not found["tested"].all():
        left = found[~found["tested"]].groupby("model", sort=False)["benchmark"]
        told = "; ".join(f"{model} ({', '.join(names)})" for model, names in left)
        notes.append(
            f"not tested, with other documents, settings or versions or without samples: {told}"
        )
    notes.append(
        f"{len(tasks)} tasks: a task's metrics with --tasks TASK, its parts with --by FACET"
    )
    yield "\n".join(notes), (), ()


def _task(task: str, runs: Mapping[str, ResultsFile], asked: Asked) -> Iterator[Section]:
    """One table: a row for each metric or part, and model; then published values and notes."""
    found: dict[str, list[_Shown]] = {}
    problems: dict[str, DataError] = {}
    for model, run in runs.items():
        try:
            for one in _figures(task, model, run, asked):
                found.setdefault(one.name, []).append(one)
        except DataError as error:  # without samples, say; the other runs still show
            problems[model] = error
    if problems and not found:
        raise next(iter(problems.values()))
    first = next(iter(runs.values()))
    headline = first.headline(task) if first.card(task) and not asked.is_question else ""
    counts = {run.documents(task) for run in runs.values()}
    lines = []
    for name, own in found.items():
        lower = LOWER * own[0].question.measure.lower_is_better
        shown = f"{name}{lower}{f' {BEST}' * (name == headline)}"
        if len(runs) > 1:
            lines.append([shown, "", ""])
        for one in own:
            label = f"  {one.model}" if len(runs) > 1 else shown
            scored, total = one.run.documents(task)
            if len(counts) > 1 and scored < total:
                label += f" ({scored}/{total})"
            unit = one.question.measure.unit
            ends = interval(one.figure.low, one.figure.high, unit)
            lines.append([label, value(one.figure.value, unit), ends])
    heading = [one_line(task), *(runs if len(runs) == 1 else ())]
    heading += [f"{one:,} of {of:,} documents" for one, of in counts if len(counts) == 1]
    if asked.by and len(titles := {title for title, _ in asked.questions(task, first)}) == 1:
        heading += titles
    columns = asked.by.replace(",", ", ") or "metric", "value", "95 % interval"
    yield " · ".join(heading), columns if lines else (), lines
    notes = [f"{model}: {error}" for model, error in problems.items()]
    notes += [] if lines else ["no document was scored"]
    notes += _published(task, first, found, asked, headline)
    notes += [f"{BEST} the task's headline"] if headline else []
    notes += _about(task, runs, [one for own in found.values() for one in own])
    yield "\n".join(notes), (), ()


def _figures(task: str, model: str, run: ResultsFile, asked: Asked) -> Iterator[_Shown]:
    if not asked.is_question:
        for name, found in run.scores(task).items():
            yield _Shown(name, model, run, question_of(run, task, name), found)
        return
    questions = asked.questions(task, run)
    for title, question in questions:
        for part, found in figures(run, task, question):
            names = [title] * (len(questions) > 1 or not part) + [*part.values()]
            yield _Shown(", ".join(names), model, run, question, found)


def _published(
    task: str, run: ResultsFile, found: Mapping[str, list[_Shown]], asked: Asked, headline: str
) -> Iterator[str]:
    """Published values of the headline, or of what was asked."""
    card = run.card(task)
    for name, (one, *_) in found.items():
        if card and (asked.is_question or name == headline):
            unit = one.question.measure.unit
            values = card.published(task, one.question).items()
            if told := "; ".join(f"{label} {value(of, unit).strip()}" for label, of in values):
                yield f"published {name}: {told}"


def _about(task: str, runs: Mapping[str, ResultsFile], found: Sequence[_Shown]) -> Iterator[str]:
    """What readers must know about the figures: clusters, what is missing and why."""
    card = next(iter(runs.values())).card(task)
    levels = [one.figure.level for one in found if one.figure.low is not None]
    if card and levels:
        yield f"intervals are clustered by {card.cluster.unit_at(max(levels))}"
    why: dict[str, list[str]] = {}
    for one in found:
        if reason := reason_for(one.run, task, one.question.measure, one.figure):
            why.setdefault(reason, []).append(one.name)
    for reason, every in why.items():
        names = list(dict.fromkeys(every))
        more = f" and {len(names) - _SOME} more" * (len(names) > _SOME)
        about = f"{', '.join(names[:_SOME])}{more}: " * (len(every) < len(found))
        yield f"{about}{reason}"
    told: dict[str, list[str]] = {}
    for model, run in runs.items():
        for note in _about_run(run, task):
            told.setdefault(note, []).append(model)
    for note, models in told.items():
        yield f"{', '.join(models)}: {note}" if len(models) < len(runs) else note


def _about_run(run: ResultsFile, task: str) -> Iterator[str]:
    if run.card(task) and not run.is_current(task):
        yield "this file is of an older version; docs/old_names.csv has its metrics"
    for cause, ids in run.not_scorable(task).items():
        some = ", ".join(ids[:_SOME]) + ", ..." * (len(ids) > _SOME)
        yield f"not scored: {len(ids)} examples, {cause} ({some})"


def reason_for(run: ResultsFile, task: str, measure: Measure, found: Figure) -> str:
    """Why a figure has no value or no interval, and which ``--limit`` gives one; "" if it has."""
    card = run.card(task)
    if card is None or not run.is_current(task) or found.low is not None:
        return ""
    scored, total = run.documents(task)
    if found.value is None:
        text = measure.undefined if found.documents else "there are none of its documents"
        some = (
            "" if run.is_whole else f" among {scored:,} of {total:,}; a larger --limit may give one"
        )
        return f"{NONE}, since {text}{some}"
    unit = card.cluster.unit_at(found.level)
    if found.clusters >= LEAST_CLUSTERS:
        return f"no interval, since it hangs on one {unit}"
    return f"no interval from {counted(found.clusters, unit)}, fewer than {LEAST_CLUSTERS}"
