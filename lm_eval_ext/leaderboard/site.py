"""``lm-eval-ext leaderboard``: from folders of results to one HTML page that needs no network."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.cards import Card, our_tasks
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
from lm_eval_ext.results.grid import MEANINGS, chance_words, csv
from lm_eval_ext.results.model_facts import ModelFacts, model_facts
from lm_eval_ext.results.models import Model, choose_tasks, read_models, runs_by_model
from lm_eval_ext.results.overview import (
    ROW_ORDER,
    OverviewColumn,
    ReadTable,
    column_of,
    frame_of,
    ranked_models,
    representatives,
    table_of,
)
from lm_eval_ext.results.sample_scores import scores_of
from lm_eval_ext.results.show import unlisted_note
from lm_eval_ext.results.table import NoSamplesError, rows
from lm_eval_ext.stats.statistics import number
from lm_eval_ext.text import named_briefly, one_line, size_text

if TYPE_CHECKING:
    from markupsafe import Markup

_log = get_logger(__name__)


@dataclass(frozen=True)
class Section:
    """A tab about a benchmark; or, without a card, about all tasks that aren't ours."""

    name: str
    title: str
    card: Card | None
    figures: Sequence[Figure]
    tables: Sequence[Table]


@dataclass(frozen=True)
class ModelRow:
    """The facts about a model, its notes and arguments as text, and the tokens of all its tasks."""

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
    """Make the page of results files or folders in the folder ``site``, and return its path.

    Beside it lies the table of all tasks, ``leaderboard.csv``.

    Args:
        paths: Results files or folders, as lm_eval or ``lm-eval-ext run`` left them.
        site: The folder that the page is written to.
        title: The title of the page.
        samples: How many samples of each task are in the page; 0 for none.

    Raises:
        OptionError: There are no results, or ``site`` cannot be written.
        DataError: A file cannot be read.
    """
    models = sorted(read_models(paths), key=lambda model: model.label.casefold())
    # Tasks of ours in the order of their cards, then the others by name.
    available = set(choose_tasks(models, (), min_models=1))
    tasks = [task for task in our_tasks() if task in available]
    tasks += sorted(available.difference(tasks))
    columns, task_samples = _read(models, tasks, samples)
    content = _render(title, models, tasks, columns, task_samples)
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
    models: Sequence[Model], tasks: Sequence[str], max_samples: int
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
        if max_samples:
            runs = runs_by_model(models, task)
            samples += _samples_of(task, runs, read, max_samples, problems)
    for problem, names in problems.items():
        _log.warning("samples are not shown: %s: %s", named_briefly(names), problem)
    return columns, samples


def _samples_of(
    task: str,
    runs: Mapping[str, Run],
    read: ReadTable,
    max_samples: int,
    problems: dict[str, list[str]],
) -> Iterator[TaskSamples]:
    """Yield the samples of a task, if there are any; what cannot be read goes to ``problems``."""
    majority = majority_setup(runs)
    runs = {label: run for label, run in runs.items() if label in majority}
    reference = next(iter(runs.values()))
    scores = scores_of(reference)
    samples_by_model = {}
    for label, run in runs.items():
        try:
            selected = select_samples(run, read(run), scores, max_samples)
        except NoSamplesError as error:
            problems.setdefault(error.reason, []).append(f"{label} on {task}")
        except LmEvalExtError as error:
            problems.setdefault(str(error), []).append(f"{label} on {task}")
        else:
            if selected.samples:
                samples_by_model[label] = selected
    if not samples_by_model:
        return
    card = reference.card
    scored, _ = reference.documents
    facts = {
        "task": task,
        "title": " · ".join(card.headings_of_task(task)) if card else task,
        "models": list(samples_by_model),
        "scores": list(map(asdict, scores)),
        "total": scored,
    }
    yield TaskSamples(facts, pack(reference, samples_by_model))


def _asset(name: str) -> "Markup":
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
    column_of_task = {column.task: column for column in tested}
    benchmark_tasks = representatives(models).values()
    columns = [column_of_task[task] for task in benchmark_tasks if task in column_of_task]
    matrix = headline_table(
        "overview",
        "Models by benchmarks",
        columns,
        models,
        cells,
        heading="benchmark",
        remarks=unlisted_note(models, ranked_models(columns)),
    )
    sections = list(_sections(models, tasks, column_of_task, cells))
    chances = [column.chance_level for column in matrix.columns]
    for section in sections:
        for table in section.tables:
            chances += [column.chance_level for column in table.columns]
    signatures = {}
    for task in tasks:
        runs = runs_by_model(models, task).items()
        signatures[task] = [(run.signature, label) for label, run in runs]
    return environment.get_template("page.html").render(
        title=title,
        models={model.label: _model_row(model) for model in models},
        matrix=matrix,
        sections=sections,
        chance=chance_words(chances),
        samples=samples,
        signatures=signatures,
        asset=_asset,
        size=size_text,
        text_of=number,
        meanings=MEANINGS,
        row_order=ROW_ORDER,
    )


def _model_row(model: Model) -> ModelRow:
    results = next(iter(model.runs.values())).file
    arguments = _arguments_text(results.settings.get("model_args"))
    texts = [str(text) for text in (model_file(results).get("notes"), arguments) if text]
    return ModelRow(model_facts(results), one_line(" · ".join(texts)), _tokens(model))


def _arguments_text(arguments: object) -> str:
    """Return a model's arguments in one text; of a path its last part says enough to a reader."""
    if isinstance(arguments, dict):
        arguments = ",".join(f"{name}={value}" for name, value in arguments.items())
    words = []
    for argument in filter(None, str(arguments or "").split(",")):
        name, sign, value = argument.strip().partition("=")
        words.append(name + sign + _without_folders(value))
    return ", ".join(words)


_HUB_NAME = re.compile(r"[^/]*(/[^/]*)?")
"""A value that is no path: a name on the hub has at most one slash."""


def _without_folders(value: str) -> str:
    """Return the last part of a path; other values, such as addresses, as they are."""
    is_path = value.startswith(("/", "./", "../", "~/")) or not _HUB_NAME.fullmatch(value)
    return Path(value).name if is_path and "://" not in value else value


def _tokens(model: Model) -> Tokens | None:
    """Return the tokens of all tasks of a model; None if those of one were not counted."""
    input_tokens = output_tokens = 0
    for run in model.runs.values():
        tokens = run.tokens
        if tokens is None:
            return None
        input_tokens += tokens.input
        output_tokens += tokens.output
    return Tokens(input_tokens, output_tokens)


def _sections(
    models: Sequence[Model],
    tasks: Sequence[str],
    tested: Mapping[str, OverviewColumn],
    cells: Cells,
) -> Iterator[Section]:
    """Yield a tab for each benchmark, and one for all tasks that aren't ours."""
    try:
        require_extra("plot", "drawing", "altair", "vl_convert")
        drawn_figures = figures(models)
    except OptionError as error:
        _log.warning("%s; the page has no figures", error)
        drawn_figures = []
    tasks_of: dict[str, list[str]] = {}
    card_of: dict[str, Card | None] = {}
    for task in tasks:
        card = next(iter(runs_by_model(models, task).values())).card
        name = card.name if card else "others"
        card_of.setdefault(name, card)
        tasks_of.setdefault(name, []).append(task)
    for name, members in tasks_of.items():
        card = card_of[name]
        tables = []
        for task in members:
            table = task_table(task, tested.get(task), models, cells)
            # Of tasks that are not ours the overview has the headline.
            if card is not None or len(table.columns) > 1:
                tables.append(table)
        if card is not None and len(members) > 1:
            columns = [tested[task] for task in members if task in tested]
            all_tasks = headline_table(
                f"tasks-{name}", "all tasks", columns, models, cells, heading="task"
            )
            tables.insert(0, all_tasks)
        if tables:
            title = card.short_title if card else "Other tasks"
            pictures = [figure for figure in drawn_figures if figure.name.startswith(f"{name}-")]
            yield Section(name, title, card, pictures, tables)
