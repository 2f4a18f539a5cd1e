"""``lm-eval-ext leaderboard``: from folders of results to one HTML page that needs no network."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.cards import Card, cards
from lm_eval_ext.errors import LmEvalExtError, OptionError, require_extra, writing
from lm_eval_ext.leaderboard.cells import (
    Cells,
    Table,
    cells_of,
    headline_table,
    task_table,
)
from lm_eval_ext.leaderboard.samples import pack, select_samples
from lm_eval_ext.log import get_logger
from lm_eval_ext.plots.figures import Figure, figures
from lm_eval_ext.results.align import majority_setup
from lm_eval_ext.results.files import Run, Tokens, model_file
from lm_eval_ext.results.grid import MEANINGS, csv
from lm_eval_ext.results.model_facts import ModelFacts, model_facts
from lm_eval_ext.results.models import Model, choose_tasks, read_models, runs_by_model
from lm_eval_ext.results.overview import (
    OverviewColumn,
    ReadTable,
    column_of,
    frame_of,
    representatives,
    table_of,
)
from lm_eval_ext.results.sample_scores import scores_of
from lm_eval_ext.results.show import named_briefly
from lm_eval_ext.results.table import NoSamplesError, rows
from lm_eval_ext.stats.statistics import number
from lm_eval_ext.text import one_line, size_text

_log = get_logger(__name__)


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
    available = {*choose_tasks(models, (), min_models=1)}
    tasks = [task for task in ours if task in available] + sorted(available.difference(ours))
    columns, kept = _read(models, tasks, samples)
    content = _render(title, models, tasks, columns, kept)
    page = site / "index.html"
    with writing(site):
        site.mkdir(parents=True, exist_ok=True)
    with atomic_text(site / "leaderboard.csv") as out:
        out.write(csv(frame_of(table_of(columns))))
    with atomic_text(page) as out:
        out.write(content)
    return page


@dataclass(frozen=True)
class TaskSamples:
    """The samples of a task in the page: what describes them, and the packed content."""

    facts: Mapping[str, object]
    packed: str


def _read(
    models: Sequence[Model], tasks: Sequence[str], most: int
) -> tuple[list[OverviewColumn], list[TaskSamples]]:
    """Return the tested headlines of all tasks, and the samples of those that have any.

    The table of a run is made once, and kept while its task is read.
    """
    from tqdm import tqdm

    columns: list[OverviewColumn] = []
    samples: list[TaskSamples] = []
    problems: dict[str, list[str]] = {}
    for task in tqdm(tasks, desc="leaderboard", unit="task", disable=None):
        read = cache(rows)
        column = column_of(models, task, read=read)
        if column is not None:
            columns.append(column)
        if most:
            samples += _samples_of(task, runs_by_model(models, task), read, most, problems)
    for problem, names in problems.items():
        _log.warning("samples are not shown: %s: %s", named_briefly(names), problem)
    return columns, samples


def _samples_of(
    task: str,
    runs: Mapping[str, Run],
    read: ReadTable,
    most: int,
    problems: dict[str, list[str]],
) -> Iterator[TaskSamples]:
    """Yield the samples of a task, if there are any; what cannot be read goes to ``problems``."""
    majority = majority_setup(runs)
    runs = {label: run for label, run in runs.items() if label in majority}
    first = next(iter(runs.values()))
    scores, kept = scores_of(first), {}
    for label, run in runs.items():
        try:
            selected = select_samples(run, read(run), scores, most)
        except NoSamplesError as error:
            problems.setdefault(error.reason, []).append(f"{label} on {task}")
        except LmEvalExtError as error:
            problems.setdefault(str(error), []).append(f"{label} on {task}")
        else:
            if selected.samples:
                kept[label] = selected
    if not kept:
        return
    card = first.card
    facts = {
        "task": task,
        "title": f"{card.short_title} · {card.title_of_task(task)}" if card else task,
        "models": list(kept),
        "scores": [vars(score) for score in scores],
        "total": first.documents[0],
    }
    yield TaskSamples(facts, pack(first, kept))


def _asset(name: str) -> Any:
    from markupsafe import Markup

    file = files("lm_eval_ext.leaderboard") / "assets" / name
    return Markup(file.read_text(encoding="utf-8"))


def _render(
    title: str,
    models: Sequence[Model],
    tasks: Sequence[str],
    tested: Sequence[OverviewColumn],
    samples: Sequence[TaskSamples],
) -> str:
    """Render the page; the template escapes text from elsewhere."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        loader=FunctionLoader(_asset),
    )  # fmt: skip
    cells = cells_of(models)
    by_task = {column.task: column for column in tested}
    first = [by_task[task] for task in representatives(models).values() if task in by_task]
    matrix = headline_table("overview", "Models by benchmarks", first, models, cells, level=0)
    return environment.get_template("page.html").render(
        title=title,
        models={model.label: _row(model) for model in models},
        matrix=matrix,
        sections=list(_sections(models, tasks, by_task, cells)),
        samples=samples,
        signatures={
            task: [(run.signature, label) for label, run in runs_by_model(models, task).items()]
            for task in tasks
        },
        asset=_asset,
        size=size_text,
        text_of=number,
        meanings=MEANINGS,
    )


def _row(model: Model) -> Row:
    run = next(iter(model.runs.values()))
    arguments = run.file.content["config"].get("model_args")
    if isinstance(arguments, dict):
        arguments = ", ".join(f"{name}={value}" for name, value in arguments.items())
    texts = (model_file(run.file).get("notes"), arguments)
    counted = [one.tokens for one in model.runs.values()]
    known = [tokens for tokens in counted if tokens]
    tokens = Tokens(*map(sum, zip(*known, strict=True))) if len(known) == len(counted) else None
    return Row(model_facts(run.file), one_line(" · ".join(str(t) for t in texts if t)), tokens)


def _sections(
    models: Sequence[Model],
    tasks: Sequence[str],
    tested: Mapping[str, OverviewColumn],
    cells: Cells,
) -> Iterator[Section]:
    """Yield a tab for each benchmark, and one for all tasks that aren't ours."""
    try:
        require_extra("plot", "drawing", "altair", "vl_convert")
        drawn = figures(models)
    except OptionError as error:
        _log.warning("%s; the page has no figures", error)
        drawn = []
    tasks_of: dict[str, list[str]] = {}
    card_of: dict[str, Card | None] = {}
    for task in tasks:
        card = next(iter(runs_by_model(models, task).values())).card
        name = card.name if card else "others"
        card_of.setdefault(name, card)
        tasks_of.setdefault(name, []).append(task)
    for name, members in tasks_of.items():
        card = card_of[name]
        tables = [task_table(task, tested.get(task), models, cells) for task in members]
        if card is None:  # the overview has the headline of each
            tables = [table for table in tables if len(table.columns) > 1]
        elif len(members) > 1:
            of_card = [tested[task] for task in members if task in tested]
            all_tasks = headline_table(
                f"tasks-{name}", "all tasks", of_card, models, cells, level=1
            )
            tables.insert(0, all_tasks)
        if tables:
            title = card.short_title if card else "Other tasks"
            pictures = [figure for figure in drawn if figure.name.startswith(f"{name}-")]
            yield Section(name, title, card, pictures, tables)
