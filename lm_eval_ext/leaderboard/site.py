"""``lm-eval-ext leaderboard``: from folders of results to one HTML page that needs no network."""

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.cards import Card, cards
from lm_eval_ext.errors import OptionError, writing
from lm_eval_ext.leaderboard.samples import Reader, Score, pack, scores_of
from lm_eval_ext.log import get_logger
from lm_eval_ext.plots.figures import Figure, figures
from lm_eval_ext.plots.theme import css
from lm_eval_ext.results.about import About, about
from lm_eval_ext.results.ask import overview, question_of, representatives, usual
from lm_eval_ext.results.files import ResultsFile, Tokens, model_file
from lm_eval_ext.results.models import Model, choose_tasks, having, read_models
from lm_eval_ext.results.show import reason_for
from lm_eval_ext.stats.measures import Measure
from lm_eval_ext.stats.statistics import number
from lm_eval_ext.text import one_line

if TYPE_CHECKING:
    from pandas import DataFrame

_log = get_logger(__name__)

OTHERS = "Other tasks"
SAMPLES = 300
"""Of each task, in the page."""

Best = Collection[tuple[str, str, str]]
"""Model, task and metric, where no other model is significantly better."""

_UNITS = {"T": 1e12, "B": 1e9, "M": 1e6, "K": 1e3}
_DESK, _PHONE = 936, 360
"""Points of a figure's width."""


@dataclass(frozen=True)
class Cell:
    """A value with its interval; ``best``: no other model is significantly better.

    ``badge`` says how many documents of a trial were asked, ``note`` why there is no value or why
    it cannot be compared, ``hint`` why there is no interval.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    best: bool = False
    badge: str = ""
    note: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Column:
    """A metric of a task: two lines of a heading, and what must be known of it."""

    task: str
    metric: str
    head: str
    title: str
    measure: Measure

    def place(self, value: float) -> str:
        """On the axis of its values, in hundredths of its length; never outside."""
        low, high = self.measure.limits
        start, end = low or 0.0, high or 1.0
        return f"{100 * min(max((value - start) / (end - start), 0.0), 1.0):.3g}"

    def number(self, value: float) -> str:
        """As text, without its unit."""
        signed = self.measure.unit in ("points", "change")
        return number(value, self.measure.unit, signed=signed).replace("-", "\N{MINUS SIGN}")


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
    """A tab: tables, and figures as title, how to read it, caption, SVG for a desk, and a phone."""

    name: str
    title: str
    card: Card | None
    figures: Sequence[tuple[str, ...]]
    tables: Sequence[Table]


@dataclass(frozen=True)
class Samples:
    """A task's samples; ``content`` is compressed."""

    task: str
    title: str
    models: Sequence[str]
    scores: Sequence[Score]
    total: int
    content: str


@dataclass(frozen=True)
class Row:
    """What is known of a model."""

    label: str
    about: About
    text: str
    tokens: Tokens | None


def build(
    paths: Sequence[Path],
    site: Path,
    *,
    title: str = "Leaderboard",
    samples: int = SAMPLES,
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
    tasks = _ordered(choose_tasks(models, (), least=1))
    found, shown = _read(models, tasks, samples)
    content = _render(title, models, tasks, found, shown)
    page = site / "index.html"
    with writing(site):
        site.mkdir(parents=True, exist_ok=True)
    with atomic_text(site / "leaderboard.csv") as out:
        out.write(found.map(_plain).to_csv(index=False, lineterminator="\n"))
    with atomic_text(page) as out:
        out.write(content)
    return page


def _plain(value: Any) -> Any:
    """No text is a spreadsheet's formula."""
    risky = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t"))
    return f"'{value}" if risky else value


def _ordered(tasks: Iterable[str]) -> list[str]:
    """Tasks of ours in the order of their cards, then the others by name."""
    there = set(tasks)
    ours = [task for card in cards().values() for task in card.tasks if task in there]
    return [*ours, *sorted(there - set(ours))]


def _read(
    models: Sequence[Model], tasks: Sequence[str], most: int
) -> "tuple[DataFrame, list[Samples]]":
    """The overview of all tasks, and their samples; every file of samples is read once."""
    import pandas as pd
    from tqdm import tqdm

    found, shown = [], []
    for task in tqdm(tasks, desc="leaderboard", unit="task", disable=None):
        reader = Reader(most)
        found.append(overview(models, tasks=[task], read=reader))
        runs = having(models, task)
        some = next(iter(runs.values()))
        alike = usual(task, runs)
        kept = {label: reader.of(run, task) for label, run in runs.items() if label in alike}
        logged = {label: one for label, one in kept.items() if one and one.samples}
        if logged:
            card, scores = some.card(task), scores_of(runs[next(iter(logged))], task)
            title = f"{card.short_title} · {card.title_of_task(task)}" if card else task
            content, total = pack(card, task, scores, logged), some.documents(task)[0]
            shown.append(Samples(task, title, list(logged), scores, total, content))
    return pd.concat([one for one in found if len(one)] or found, ignore_index=True), shown


def _asset(name: str) -> str:
    return (files("lm_eval_ext.leaderboard") / "assets" / name).read_text(encoding="utf-8")


def _render(
    title: str,
    models: Sequence[Model],
    tasks: Sequence[str],
    found: "DataFrame",
    shown: Sequence[Samples],
) -> str:
    """Renders the page.

    The template escapes text from elsewhere. In the data for the script ``<`` is encoded, so
    that no text can end their block.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        loader=FunctionLoader(_asset),
    )  # fmt: skip
    known = [_row(model) for model in models]
    content = [{**asdict(one), "content": ""} for one in shown]
    best = {(one.model, one.task, one.metric) for one in found[found["best"]].itertuples()}
    metrics = dict(zip(found["task"], found["metric"], strict=True))

    def heads(some: Iterable[str], *, benchmark: bool = False) -> Iterator[Column]:
        """The headlines of tasks, as most models have them."""
        for task in some:
            for run in having(models, task).values():
                if run.headline(task) == metrics.get(task):
                    yield _column(run, task, metrics[task], benchmark=benchmark)
                    break

    matrix = _of_headlines(
        "overview", "Models by benchmarks",
        [*heads(representatives(models).values(), benchmark=True)], models, best,
    )  # fmt: skip
    sections = list(_sections(models, tasks, heads, best))
    return environment.get_template("page.html").render(
        title=title,
        models=known,
        abouts={row.label: row.about for row in known},
        matrix=matrix,
        sections=sections,
        samples=shown,
        signatures={task: _signatures(having(models, task), task) for task in tasks},
        content=Markup(json.dumps(content, ensure_ascii=True).replace("<", "\\u003c")),
        style=Markup(_asset("page.css") + css()),
        widget=Markup(_asset("dataTables.min.js")),
        script=Markup(_asset("page.js")),
        size=_size_text,
    )


def _signatures(runs: Mapping[str, ResultsFile], task: str) -> dict[str, list[str]]:
    """The models of each signature."""
    found: dict[str, list[str]] = {}
    for label, run in runs.items():
        found.setdefault(run.signature(task), []).append(label)
    return found


def _row(model: Model) -> Row:
    run = next(iter(model.runs.values()))
    texts = (model_file(run).get("notes"), run.content["config"].get("model_args"))
    counted = [one.tokens(task) for task, one in model.runs.items()]
    known = [tokens for tokens in counted if tokens]
    tokens = Tokens(*map(sum, zip(*known, strict=True))) if len(known) == len(counted) else None
    return Row(model.label, about(run), one_line(" · ".join(str(t) for t in texts if t)), tokens)


def _size_text(parameters: float) -> str:
    """A number as people write it, such as 6.74B."""
    for unit, one in _UNITS.items():
        if parameters >= 0.9995 * one:  # what is shown as 1 with three digits
            return f"{parameters / one:.3g}{unit}"
    return f"{parameters:.3g}"


def _of_headlines(
    name: str, title: str, columns: Sequence[Column], models: Sequence[Model], best: Best
) -> Table:
    """Models by the headlines of tasks, those that miss none and are best most often first."""
    alike = {column.task: usual(column.task, having(models, column.task)) for column in columns}
    rows = [(one.label, [_cell(one, column, best, alike) for column in columns]) for one in models]
    kept = [(label, cells) for label, cells in rows if any(cell != Cell() for cell in cells)]
    return Table(name, title, columns, sorted(kept, key=lambda row: _place(row[1], columns)))


def _place(cells: Sequence[Cell], columns: Sequence[Column]) -> tuple[float, ...]:
    """Models with all benchmarks first, then by how often none is better, then by the first."""
    lacking = sum(cell.value is None for cell in cells)
    first = next((cell.value for cell in cells if cell.value is not None), 0.0)
    sign = 1 if columns and columns[0].measure.lower_is_better else -1
    return lacking, -sum(cell.best for cell in cells), sign * first


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _column(run: ResultsFile, task: str, metric: str, *, benchmark: bool = False) -> Column:
    """Headed by the benchmark, or within its tab by the task."""
    card = run.card(task)
    head = card.title_of_task(task) if card else task
    title = card.title_of(metric) if card and run.is_current(task) else metric
    if card and benchmark:
        head, title = card.short_title, f"{head} · {title}"
    return Column(task, metric, head, title, question_of(run, task, metric).measure)


def _sections(
    models: Sequence[Model],
    tasks: Sequence[str],
    heads: Callable[[Iterable[str]], Iterable[Column]],
    best: Best,
) -> Iterator[Section]:
    drawn: dict[str, list[tuple[str, ...]]] = {}
    try:
        # What is zero throughout says least.
        for one in sorted(figures(models), key=lambda one: not one.values["value"].any()):
            about_it = (one.title, one.declared.reading, one.caption, *_drawn(one))
            drawn.setdefault(one.name.partition("-")[0], []).append(about_it)
    except OptionError as error:
        _log.warning("%s; the page has no figures", error)
    of_card: dict[str, tuple[Card | None, list[str]]] = {}
    for task in tasks:
        card = next(iter(having(models, task).values())).card(task)
        of_card.setdefault(card.name if card else "others", (card, []))[1].append(task)
    for name, (card, own) in of_card.items():
        made = [_of_task(task, card, models, best) for task in own]
        if card is None:  # the overview has the headline of each
            made = [one for one in made if len(one.columns) > 1]
        elif len(own) > 1:
            made.insert(0, _of_headlines(f"tasks-{name}", "all tasks", [*heads(own)], models, best))
        if made:
            title = card.short_title if card else OTHERS
            yield Section(name, title, card, drawn.get(name, ()), made)


def _drawn(one: Figure) -> Iterator[str]:
    for width in (_DESK, _PHONE):
        yield re.sub(r"(\.\d\d)\d{4,}", r"\1", one.svg(theme="page", width=width))


def _of_task(task: str, card: Card | None, models: Sequence[Model], best: Best) -> Table:
    """A task's models on all its metrics, with published values."""
    asked = [one for one in models if task in one.runs]
    owner: dict[str, ResultsFile] = {}
    for one in asked:
        for metric in one.runs[task].scores(task):
            owner.setdefault(metric, one.runs[task])
    named = [_column(run, task, metric) for metric, run in owner.items()]
    columns = [replace(column, head=column.title, title="") for column in named]
    rows = [(one.label, [_cell(one, column, best) for column in columns]) for one in asked]
    published: dict[str, list[Cell]] = {}
    for place, column in enumerate(columns):
        if card and column.metric in card.metrics:
            for label, value in card.published(task, card.question_of(column.metric)).items():
                published.setdefault(label, [Cell()] * len(columns))[place] = Cell(value)
    title = card.title_of_task(task) if card else task
    return Table(f"task-{task}", title, columns, rows, list(published.items()))


def _cell(
    model: Model, column: Column, best: Best, alike: Mapping[str, Collection[str]] | None = None
) -> Cell:
    """A model's value of a metric.

    In a table of headlines it also says what holds for all of the task; ``alike`` then has, by
    task, the models that were asked what most were.
    """
    run = model.runs.get(column.task)
    if run is None:
        return Cell()
    cell, one = Cell(), run.scores(column.task).get(column.metric)
    if one is not None:
        value, why = _finite(one.value), reason_for(run, column.task, column.measure, one)
        leads = (model.label, column.task, column.metric) in best
        note, hint = ("", why) if value is not None else (why, "")
        cell = Cell(value, _finite(one.low), _finite(one.high), leads, note=note, hint=hint)
    if alike is None:
        return cell
    scored, total = run.documents(column.task)
    badge = f"{scored:,}/{total:,}" if scored < total else ""
    if model.label not in alike[column.task]:
        note = "measured differently from most; see the signatures under Method"
        return replace(cell, badge=badge, note=note)
    return replace(cell, badge=badge)
