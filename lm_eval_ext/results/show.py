"""``lm-eval-ext show``: models by benchmarks, then on request a task's metrics, or a question."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.results.align import parts_of
from lm_eval_ext.results.files import Run
from lm_eval_ext.results.grid import LOWER, Section, interval, legend, matrix, notes, value
from lm_eval_ext.results.models import Model, choose_tasks, runs_by_model
from lm_eval_ext.results.overview import overview
from lm_eval_ext.results.query import (
    Answer,
    ScoreQuery,
    answers,
    reason_for,
    reference_run,
)
from lm_eval_ext.text import one_line

if TYPE_CHECKING:
    from pandas import DataFrame

_SOME = 3
"""Names that a note has before it counts the rest."""


def tables(
    models: Sequence[Model], asked: ScoreQuery, tasks: Sequence[str] = ()
) -> Iterator[Section]:
    """Yields what a terminal shows.

    Args:
        models: Of any results.
        asked: A question about each task; without one its metrics.
        tasks: By name or pattern. Without any, and without a question, the overview of several.

    Raises:
        OptionError: No task or facet has that name.
        DataError: Samples are needed, and were not logged or cannot be read.
    """
    chosen = choose_tasks(models, tasks, min_models=1)
    if len(chosen) > 1 and not tasks and not asked.is_question:
        yield from _overview(models, chosen)
        return
    problems = []
    for task in chosen:
        try:
            yield from _task(runs_by_model(models, task), asked)
        except (DataError, OptionError) as error:  # the other tasks still show
            problems.append(error)
    if len(problems) == len(chosen):
        raise problems[0]
    yield notes(map(str, problems))


def overview_table(found: "DataFrame") -> tuple[list[str], list[str], list[list[str]]]:
    """What the tasks measure, columns and rows; below a trial's value the number of documents."""
    titles = [f"{one.task}: {one.title}" for one in found.drop_duplicates("task").itertuples()]
    cells: dict[str, dict[str, str]] = {}
    for row in found.itertuples():
        shown = value(row.value, row.unit, row.standing)
        if row.scored < row.total:
            shown += f"\n{row.scored}/{row.total} "
        cells.setdefault(row.benchmark, {})[row.model] = shown
    return titles, *matrix(cells, turned=len(cells) <= found["model"].nunique())


def _overview(models: Sequence[Model], tasks: Sequence[str]) -> Iterator[Section]:
    found = overview(models)
    told, columns, lines = overview_table(found)
    yield "", columns, lines
    told += legend(found["standing"])
    for why, left in found[found["untested"] != ""].groupby("untested", sort=False):
        of_models = left.groupby("model", sort=False)["task"]
        names = ((model, f"not tested on {', '.join(own)} ({why})") for model, own in of_models)
        told += grouped(names, len(found))
    if absent := {model.label for model in models}.difference(found["model"]):
        told.append(f"without results of these: {', '.join(sorted(absent))}")
    for task in dict.fromkeys(found["task"]):
        runs = runs_by_model(models, task)
        told += [*version_notes(runs), *library_notes(runs)]
    lacking = found[found["value"].isna()].itertuples()
    told += grouped(((f"{one.model} ({one.benchmark})", one.why) for one in lacking), len(found))
    told.append(
        f"{len(tasks)} tasks: a task's metrics with --tasks TASK, its parts with --by FACET, its "
        "samples with lm-eval-ext samples RESULTS --task TASK"
    )
    yield notes(told)


def _task(runs: Mapping[str, Run], asked: ScoreQuery) -> Iterator[Section]:
    """One table: a row for each metric or part, and model; then published values and notes."""
    every: list[tuple[str, Answer]] = []
    problems: dict[str, Exception] = {}
    for model, run in runs.items():
        try:
            every += ((model, one) for one in _figures(run, asked))
        except (DataError, OptionError) as error:  # without samples, say; the others still show
            problems[model] = error
    if problems and not every:
        raise next(iter(problems.values()))
    first = reference_run(runs)
    found: dict[str, dict[str, Answer]] = {one.name: {} for _, one in every if one.run is first}
    for model, one in every:
        found.setdefault(one.name, {})[model] = one
    card, lines, published = first.card, [], []
    for name, own in found.items():
        question = next(iter(own.values())).question
        unit = question.measure.unit
        shown = name + LOWER * question.measure.lower_is_better
        lines += [[shown, "", ""]] * (len(runs) > 1)
        for model, one in own.items():
            ends = interval(one.figure.low, one.figure.high, unit)
            label = f"  {model}" if len(runs) > 1 else shown
            lines.append([label, value(one.figure.value, unit), ends])
        if card and (asked.is_question or name == first.headline):
            values = card.published(first.task, question).items()
            of_others = [f"{label} {value(of, unit).strip()}" for label, of in values]
            published += [f"published {name}: {'; '.join(of_others)}"] * bool(of_others)
    counts = (
        (model, "{:,} of {:,} documents".format(*run.documents)) for model, run in runs.items()
    )
    titles = dict.fromkeys(title for title, _ in asked.questions(first)) if asked.by else {}
    heading = [one_line(first.task), *(runs if len(runs) == 1 else ())]
    heading += ["; ".join(grouped(counts, len(runs))), *(titles if len(titles) == 1 else ())]
    columns = asked.by.replace(",", ", ") or "metric", "value", "95 % interval"
    yield " · ".join(heading), columns if lines else (), lines
    told = published if lines else ["no document was scored"]
    told += [*version_notes(runs), *library_notes(runs)]
    levels = [one.figure.level for _, one in every if one.figure.low is not None]
    if card and levels:
        told.append(f"intervals are clustered by {card.cluster.unit_at(max(levels))}")
    reasons = (
        (f"{one.name} ({model})" if len(runs) > 1 else one.name,
         reason_for(one.run, one.question.measure, one.figure))
        for model, one in every
    )  # fmt: skip
    told += grouped(reasons, len(every))
    of_runs = [(model, note) for model, run in runs.items() for note in _about(run)]
    told += grouped([*of_runs, *((model, str(one)) for model, one in problems.items())], len(runs))
    if lines:
        told.append(f"samples: {_samples_command(first, asked)}")
    yield notes(told)


def _samples_command(run: Run, query: ScoreQuery) -> str:
    """Return the command that shows the samples behind the numbers of a task."""
    words = ["lm-eval-ext samples RESULTS --task", one_line(run.task)]
    words += [f"--metric {metric}" for metric in query.metrics]
    words += [f"--where {condition}" for condition in query.where]
    if query.by:
        words.append(f"--by {query.by}")
    return " ".join([*words, "--wrong"])


def grouped(notes: Iterable[tuple[str, str]], every: int) -> Iterator[str]:
    """Each note once, after the names that it is about, if it is not about ``every`` one."""
    found: dict[str, list[str]] = {}
    for name, note in notes:
        found.setdefault(note, []).append(name)
    found.pop("", None)
    for note, own in found.items():
        yield f"{named_briefly(own)}: {note}" if len(own) < every else note


def named_briefly(names: Iterable[str]) -> str:
    """Return some of the names, and how many more there are."""
    different = list(dict.fromkeys(names))
    text = ", ".join(different[:_SOME])
    if len(different) > _SOME:
        text += f" and {len(different) - _SOME} more"
    return text


def version_notes(runs: Mapping[str, Run]) -> list[str]:
    """Say that a table has results of several versions of a task, whose scores differ."""
    models_of: dict[str, list[str]] = {}
    for model, run in runs.items():
        models_of.setdefault(parts_of(run.signature).get("version", "?"), []).append(model)
    if len(models_of) < 2:  # noqa: PLR2004
        return []
    task = one_line(next(iter(runs.values())).task)
    versions = [f"{version}.x of {named_briefly(models)}" for version, models in models_of.items()]
    newest = f"{task}: versions {' and '.join(versions)} are not comparable; run the older again"
    return [newest]


def library_notes(runs: Mapping[str, Run]) -> list[str]:
    """Say that results are of several major versions of transformers.

    One folder of weights may give other log-probabilities in another major version.
    """
    models_of: dict[str, list[str]] = {}
    for model, run in runs.items():
        library = str(run.file.content.get("transformers_version") or "N/A")
        major = library.partition(".")[0]
        if major.isdigit():
            models_of.setdefault(major, []).append(model)
    if len(models_of) < 2:  # noqa: PLR2004
        return []
    majors = [f"{major} ({named_briefly(models)})" for major, models in sorted(models_of.items())]
    words = f"results of transformers {' and '.join(majors)}"
    return [f"{words}: the same weights may score differently; run with one version"]


def _figures(run: Run, asked: ScoreQuery) -> Iterator[Answer]:
    found = list(answers(run, asked))
    several = len({one.title for one in found}) > 1
    for one in found:
        names = [one.title] * (several or not one.part) + [*one.part.values()]
        name = ", ".join(names) if asked.is_question else one.name
        yield one._replace(name=name)


def _about(run: Run) -> Iterator[str]:
    for cause, ids in run.excluded.items():
        some = ", ".join(ids[:_SOME]) + ", ..." * (len(ids) > _SOME)
        yield f"not scored: {len(ids)} examples, {cause} ({some})"
