"""``lm-eval-ext leaderboard``: from folders of results to one HTML page that needs no network."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.cards import Card, cards
from lm_eval_ext.errors import LmEvalExtError, OptionError, require_extra, writing
from lm_eval_ext.leaderboard.samples import logged, pack, scores_of
from lm_eval_ext.log import get_logger
from lm_eval_ext.plots.figures import Figure, figures
from lm_eval_ext.results.align import majority_setup
from lm_eval_ext.results.files import Run, Tokens, model_file
from lm_eval_ext.results.grid import csv
from lm_eval_ext.results.model_facts import ModelFacts, model_facts
from lm_eval_ext.results.models import Model, choose_tasks, having, read_models
from lm_eval_ext.results.query import (
    overview,
    question_of,
    reason_for,
    reference_run,
    representatives,
)
from lm_eval_ext.results.table import rows
from lm_eval_ext.stats.measures import Measure
from lm_eval_ext.stats.statistics import number
from lm_eval_ext.text import one_line, size_text

if TYPE_CHECKING:
    from pandas import DataFrame

_log = get_logger(__name__)


@dataclass(frozen=True)
class Cell:
    """A value with its interval; ``best``: not significantly beaten.

    ``why`` says why there is no value or no interval, ``badge`` how many documents of a trial were
    asked, ``note`` why the model was not compared.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    best: bool = False
    why: str = ""
    badge: str = ""
    note: str = ""


Cells = Mapping[tuple[str, str, str], Cell]
"""By model, task and metric."""


@dataclass(frozen=True)
class Column:
    """A metric of a task: two lines of a heading, and what must be known of it."""

    task: str
    metric: str
    head: str
    title: str
    measure: Measure


@dataclass(frozen=True)
class Table:
    """Rows are models, then published results: a label, and a cell per column."""

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[tuple[str, Sequence[Cell]]]
    published: Sequence[tuple[str, Sequence[Cell]]] = ()


@dataclass(frozen=True)
class Section:
    """A tab."""

    name: str
    title: str
    card: Card | None
    figures: Sequence[Figure]
    tables: Sequence[Table]


@dataclass(frozen=True)
class Row:
    """What is known of a model."""

    about: ModelFacts
    text: str
    tokens: Tokens | None


def build(
    paths: Sequence[Path],
    site: Path,
    *,
    title: str = "Leaderboard",
    samples: int = 300,
) -> Path:
    """Makes the page of results files or folders in the folder ``site``; returns its path.

    Beside it lies the table of all tasks, ``leaderboard.csv``.

    Args:
        paths: As lm_eval or ``lm-eval-ext run`` left them.
        site: What the page is written to.
        title: Of the page.
        samples: How many of each task are in the page; 0 for none.

    Raises:
        OptionError: If there are no results, or ``site`` cannot be written.
        DataError: If a file cannot be read.
    """
    models = sorted(read_models(paths), key=lambda model: model.label.casefold())
    # Tasks of ours in the order of their cards, then the others by name.
    ours = [task for card in cards().values() for task in card.tasks]
    there = {*choose_tasks(models, (), least=1)}
    tasks = [task for task in ours if task in there] + sorted(there.difference(ours))
    found, shown = _read(models, tasks, samples)
    content = _render(title, models, tasks, found, shown)
    page = site / "index.html"
    with writing(site):
        site.mkdir(parents=True, exist_ok=True)
    with atomic_text(site / "leaderboard.csv") as out:
        out.write(csv(found))
    with atomic_text(page) as out:
        out.write(content)
    return page


def _read(
    models: Sequence[Model], tasks: Sequence[str], most: int
) -> "tuple[DataFrame, list[tuple[dict[str, Any], str]]]":
    """The overview of all tasks; and of those with samples what describes them, and the samples.

    Tables of a task are made once, and kept while it is read.
    """
    import pandas as pd
    from tqdm import tqdm

    found, shown, problems = [], [], dict[Path, str]()
    for task in tqdm(tasks, desc="leaderboard", unit="task", disable=None):
        read = cache(rows)
        found.append(overview(models, tasks=[task], read=read))
        every = having(models, task)
        runs = {label: every[label] for label in every if label in majority_setup(every)}
        first = next(iter(runs.values()))
        card, scores, kept = first.card, scores_of(first), {}
        for label, run in runs.items() if most else ():
            try:
                own = logged(run, read(run), scores, most)
                if own.samples:
                    kept[label] = own
            except (LmEvalExtError, KeyError, TypeError) as error:
                problems.setdefault(run.file.path, str(error))
        if kept:
            about = {
                "task": task,
                "title": f"{card.short_title} · {card.title_of_task(task)}" if card else task,
                "models": list(kept),
                "scores": list(map(vars, scores)),
                "total": first.documents[0],
            }
            shown.append((about, pack(card, task, kept)))
    for problem in problems.values():
        _log.warning("samples are not shown: %s", problem)
    return pd.concat([one for one in found if len(one)] or found, ignore_index=True), shown


def _asset(name: str) -> Any:
    from markupsafe import Markup

    file = files("lm_eval_ext.leaderboard") / "assets" / name
    return Markup(file.read_text(encoding="utf-8"))


def _render(
    title: str,
    models: Sequence[Model],
    tasks: Sequence[str],
    found: "DataFrame",
    shown: Sequence[tuple[dict[str, Any], str]],
) -> str:
    """Renders the page; the template escapes text from elsewhere."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        loader=FunctionLoader(_asset),
    )  # fmt: skip
    cells = {
        (model.label, run.task, metric): Cell(
            one.value, one.low, one.high,
            why=reason_for(run, question_of(run, metric).measure, one),
        )
        for model in models for run in model.runs.values() for metric, one in run.scores.items()
    }  # fmt: skip
    for one in found.itertuples():  # the headlines
        key = one.model, one.task, one.metric
        trial = f"{one.scored:,}/{one.total:,}" * (one.scored < one.total)
        note = f"not compared: {one.untested}" * bool(one.untested)
        own = cells.get(key, Cell(why=one.why))
        cells[key] = replace(own, best=one.best, badge=trial, note=note)
    owners = {task: reference_run(having(models, task)) for task in found["task"].unique()}
    heads = _heads(representatives(models).values(), owners, 0)
    return environment.get_template("page.html").render(
        title=title,
        models={model.label: _row(model) for model in models},
        matrix=_of_headlines("overview", "Models by benchmarks", heads, models, cells),
        sections=list(_sections(models, tasks, owners, cells)),
        samples=shown,
        signatures={
            task: [(run.signature, label) for label, run in having(models, task).items()]
            for task in tasks
        },
        asset=_asset,
        size=size_text,
        text_of=number,
    )


def _row(model: Model) -> Row:
    run = next(iter(model.runs.values()))
    texts = (model_file(run.file).get("notes"), run.file.content["config"].get("model_args"))
    counted = [one.tokens for one in model.runs.values()]
    known = [tokens for tokens in counted if tokens]
    tokens = Tokens(*map(sum, zip(*known, strict=True))) if len(known) == len(counted) else None
    return Row(model_facts(run.file), one_line(" · ".join(str(t) for t in texts if t)), tokens)


def _of_headlines(
    name: str, title: str, columns: Sequence[Column], models: Sequence[Model], cells: Cells
) -> Table:
    """Models by the headlines of tasks, those that miss none and are best most often first."""
    lines = sorted(_lines(models, columns, cells), key=lambda row: _place(row[1], columns))
    return Table(name, title, columns, lines)


def _lines(
    models: Sequence[Model], columns: Sequence[Column], cells: Cells
) -> Iterator[tuple[str, list[Cell]]]:
    """The rows of the models that have any of the columns."""
    for one in models:
        own = [cells.get((one.label, column.task, column.metric), Cell()) for column in columns]
        if any(cell != Cell() for cell in own):
            yield one.label, own


def _place(cells: Sequence[Cell], columns: Sequence[Column]) -> tuple[float, ...]:
    """Models with all benchmarks first, then by how often none is better, then by the first."""
    lacking = sum(cell.value is None for cell in cells)
    sign = 1 if columns[0].measure.lower_is_better else -1
    return lacking, -sum(cell.best for cell in cells), sign * (cells[0].value or 0.0)


def _column(run: Run, metric: str, level: int) -> Column:
    """Headed by the benchmark (0), the task (1) or the metric (2), with the rest below."""
    card, task, title = run.card, run.task, run.title(metric)
    names = [card.short_title, card.title_of_task(task), title] if card else [task, task, title]
    head, *more = dict.fromkeys(names[level:])
    measure = question_of(run, metric).measure
    return Column(task, metric, head, " · ".join(more), measure)


def _heads(tasks: Iterable[str], owners: Mapping[str, Run], level: int) -> list[Column]:
    """The headlines of tasks."""
    return [_column(run, run.headline, level) for task in tasks if (run := owners.get(task))]


def _sections(
    models: Sequence[Model], tasks: Sequence[str], owners: Mapping[str, Run], cells: Cells
) -> Iterator[Section]:
    try:
        require_extra("plot", "drawing", "altair", "vl_convert")
        drawn = figures(models)
    except OptionError as error:
        _log.warning("%s; the page has no figures", error)
        drawn = []
    of_card: dict[str, tuple[Card | None, list[str]]] = {}
    for task in tasks:
        card = next(iter(having(models, task).values())).card
        of_card.setdefault(card.name if card else "others", (card, []))[1].append(task)
    for name, (card, own) in of_card.items():
        made = [_of_task(task, card, models, cells) for task in own]
        if card is None:  # the overview has the headline of each
            made = [one for one in made if len(one.columns) > 1]
        elif len(own) > 1:
            heads = _heads(own, owners, 1)
            made.insert(0, _of_headlines(f"tasks-{name}", "all tasks", heads, models, cells))
        if made:
            title = card.short_title if card else "Other tasks"
            pictures = [one for one in drawn if one.name.startswith(f"{name}-")]
            yield Section(name, title, card, pictures, made)


def _of_task(task: str, card: Card | None, models: Sequence[Model], cells: Cells) -> Table:
    """A task's models on all its metrics, with published values."""
    columns: dict[str, Column] = {}
    for run in having(models, task).values():
        for metric in run.scores:
            columns.setdefault(metric, _column(run, metric, 2))
    lines = list(_lines(models, [*columns.values()], cells))
    published: dict[str, list[Cell]] = {}
    for place, metric in enumerate(columns):
        if card and metric in card.metrics:
            for label, value in card.published(task, card.question_of(metric)).items():
                published.setdefault(label, [Cell()] * len(columns))[place] = Cell(value)
    title = card.title_of_task(task) if card else task
    return Table(f"task-{task}", title, [*columns.values()], lines, [*published.items()])
