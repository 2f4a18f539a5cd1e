"""``lm-eval-ext show``: models by benchmarks, then on request a task's metrics, or a question."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.results.ask import Asked, answers, leading, overview, reason_for
from lm_eval_ext.results.files import Run
from lm_eval_ext.results.grid import BEST, LEADS, LOWER, Section, interval, matrix, value
from lm_eval_ext.results.models import Model, choose_tasks, having
from lm_eval_ext.stats.measures import Question
from lm_eval_ext.stats.statistics import Figure
from lm_eval_ext.text import one_line

if TYPE_CHECKING:
    from pandas import DataFrame

_SOME = 3
"""Names that a note has before it counts the rest."""


class _Shown(NamedTuple):
    """A figure of one model: of a metric, or of a part."""

    name: str
    model: str
    run: Run
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
            yield from _task(having(models, task), asked)
        except (DataError, OptionError) as error:  # the other tasks still show
            problems.append(error)
    if len(problems) == len(chosen):
        raise problems[0]
    yield "\n".join(dict.fromkeys(map(str, problems))), (), ()


def overview_table(found: "DataFrame") -> tuple[list[str], list[list[str]]]:
    """Columns and rows of an overview, with the number of documents below the value of a trial."""
    cells: dict[str, dict[str, str]] = {}
    for one in found.itertuples():
        trial = f"\n{one.scored}/{one.total} " * (one.scored < one.total)
        shown = value(one.value, one.unit, best=one.best) + trial
        cells.setdefault(one.benchmark, {})[one.model] = shown
    return matrix(cells, turned=len(cells) <= found["model"].nunique())


def _overview(models: Sequence[Model], tasks: Sequence[str]) -> Iterator[Section]:
    found = overview(models)
    yield "", *overview_table(found)
    notes = [f"{one.task}: {one.title}" for one in found.drop_duplicates("task").itertuples()]
    if found["best"].any():
        notes.append(f"{BEST} {LEADS}")
    for why, left in found[found["untested"] != ""].groupby("untested", sort=False):
        of_models = left.groupby("model", sort=False)["task"]
        names = ((model, f"not tested on {', '.join(own)} ({why})") for model, own in of_models)
        notes += grouped(names, len(found))
    if absent := {model.label for model in models}.difference(found["model"]):
        notes.append(f"without results of these: {', '.join(sorted(absent))}")
    lacking = found[found["value"].isna()].itertuples()
    notes += grouped(((f"{one.model} ({one.benchmark})", one.why) for one in lacking), len(found))
    notes.append(
        f"{len(tasks)} tasks: a task's metrics with --tasks TASK, its parts with --by FACET"
    )
    yield "\n".join(notes), (), ()


def _task(runs: Mapping[str, Run], asked: Asked) -> Iterator[Section]:
    """One table: a row for each metric or part, and model; then published values and notes."""
    every: list[_Shown] = []
    problems: dict[str, Exception] = {}
    for model, run in runs.items():
        try:
            every += _figures(model, run, asked)
        except (DataError, OptionError) as error:  # without samples, say; the others still show
            problems[model] = error
    if problems and not every:
        raise next(iter(problems.values()))
    first = leading(runs)
    found: dict[str, list[_Shown]] = {one.name: [] for one in every if one.run is first}
    for one in every:
        found.setdefault(one.name, []).append(one)
    lines = []
    for name, own in found.items():
        shown = name + LOWER * own[0].question.measure.lower_is_better
        lines += [[shown, "", ""]] * (len(runs) > 1)
        for one in own:
            unit = one.question.measure.unit
            ends = interval(one.figure.low, one.figure.high, unit)
            label = f"  {one.model}" if len(runs) > 1 else shown
            lines.append([label, value(one.figure.value, unit), ends])
    counts = (
        (model, "{:,} of {:,} documents".format(*run.documents)) for model, run in runs.items()
    )
    titles = dict.fromkeys(title for title, _ in asked.questions(first)) if asked.by else {}
    heading = [one_line(first.task), *(runs if len(runs) == 1 else ())]
    heading += ["; ".join(grouped(counts, len(runs))), *(titles if len(titles) == 1 else ())]
    columns = asked.by.replace(",", ", ") or "metric", "value", "95 % interval"
    yield " · ".join(heading), columns if lines else (), lines
    notes = [] if lines else ["no document was scored"]
    notes += _published(first, found, asked)
    card = first.card
    levels = [one.figure.level for one in every if one.figure.low is not None]
    if card and levels:
        notes.append(f"intervals are clustered by {card.cluster.unit_at(max(levels))}")
    reasons = (
        (f"{one.name} ({one.model})" if len(runs) > 1 else one.name,
         reason_for(one.run, one.question.measure, one.figure))
        for one in every
    )  # fmt: skip
    notes += grouped(reasons, len(every))
    of_runs = [(model, note) for model, run in runs.items() for note in _about(run)]
    notes += grouped([*of_runs, *((model, str(one)) for model, one in problems.items())], len(runs))
    yield "\n".join(notes), (), ()


def grouped(notes: Iterable[tuple[str, str]], every: int) -> Iterator[str]:
    """Each note once, after the names that it is about, if it is not about ``every`` one."""
    found: dict[str, list[str]] = {}
    for name, note in notes:
        found.setdefault(note, []).append(name)
    found.pop("", None)
    for note, own in found.items():
        names = list(dict.fromkeys(own))
        more = f" and {len(names) - _SOME} more" * (len(names) > _SOME)
        yield f"{', '.join(names[:_SOME])}{more}: {note}" if len(own) < every else note


def _figures(model: str, run: Run, asked: Asked) -> Iterator[_Shown]:
    found = list(answers(run, asked))
    several = len({one.title for one in found}) > 1
    for one in found:
        names = [one.title] * (several or not one.part) + [*one.part.values()]
        name = ", ".join(names) if asked.is_question else one.name
        yield _Shown(name, model, run, one.question, one.figure)


def _published(run: Run, found: Mapping[str, list[_Shown]], asked: Asked) -> Iterator[str]:
    """Published values of the headline, or of what was asked."""
    card = run.card
    for name, (one, *_) in found.items():
        if card and (asked.is_question or name == run.headline):
            unit = one.question.measure.unit
            values = card.published(run.task, one.question).items()
            if told := "; ".join(f"{label} {value(of, unit).strip()}" for label, of in values):
                yield f"published {name}: {told}"


def _about(run: Run) -> Iterator[str]:
    for cause, ids in run.not_scorable.items():
        some = ", ".join(ids[:_SOME]) + ", ..." * (len(ids) > _SOME)
        yield f"not scored: {len(ids)} examples, {cause} ({some})"
