"""``lm-eval-ext leaderboard``: from folders of results to one HTML page that needs no network."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.cards import Card, card_of, cards
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.leaderboard.samples import CHUNK, SampleFiles, read, write
from lm_eval_ext.log import get_logger
from lm_eval_ext.plots.drawing import Size, draw
from lm_eval_ext.plots.figures import figures
from lm_eval_ext.plots.theme import css
from lm_eval_ext.results.about import About, about
from lm_eval_ext.results.align import usual
from lm_eval_ext.results.ask import question_of
from lm_eval_ext.results.files import ResultsFile, Tokens, model_file
from lm_eval_ext.results.models import Model, choose_tasks, read_models
from lm_eval_ext.results.overview import overview, representatives
from lm_eval_ext.results.show import reason_for
from lm_eval_ext.stats.measures import LIMITS
from lm_eval_ext.stats.statistics import Figure, number
from lm_eval_ext.text import one_line

if TYPE_CHECKING:
    from pandas import DataFrame

_log = get_logger(__name__)

STYLES = ("page.css", "samples.css")
SCRIPTS = ("common.js", "tables.js", "diff.js", "samples.js", "start.js")

OTHERS = "other tasks"
"""The group of tasks that aren't ours."""

_FOLDER = re.compile(r"[0-9]{2,}-[A-Za-z0-9_-]*")
_FILE = re.compile(r"(index|documents-[0-9]+|answers-[0-9]+)\.js")
_UNITS = {"T": 1e12, "B": 1e9, "M": 1e6, "K": 1e3}
_SIZE = Size(width=12, font_size=12)


@dataclass(frozen=True)
class Cell:
    """A value with its interval; ``best``: no other model is significantly better.

    ``badge`` says how many documents of a trial were asked, ``note`` why there is no value or why
    it cannot be compared.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    best: bool = False
    badge: str = ""
    note: str = ""


@dataclass(frozen=True)
class Column:
    """A metric of a task; ``title`` is it in words, ``group`` its benchmark."""

    label: str
    metric: str
    title: str
    unit: str
    group: str = ""
    chance: float | None = None
    lower: bool = False

    def place(self, value: float) -> str:
        """On the axis of its values, in hundredths of its length; never outside."""
        low, high = LIMITS[self.unit or "number"]
        start, end = low or 0.0, high or 1.0
        return f"{100 * min(max((value - start) / (end - start), 0.0), 1.0):.1f}"

    def number(self, value: float, *, signed: bool = False) -> str:
        """As text, with its unit."""
        return number(value, self.unit, signed=signed) + " %" * (self.unit == "percent")


@dataclass(frozen=True)
class Table:
    """Rows are models, then published results: a label, and a cell per column."""

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[tuple[str, Sequence[Cell]]]
    published: Sequence[tuple[str, Sequence[Cell]]] = ()


@dataclass(frozen=True)
class Row:
    """What is known of a model."""

    label: str
    about: About
    text: str
    tokens: Tokens | None

    @property
    def cost(self) -> float | None:
        """Of all its runs."""
        return self.about.cost(self.tokens)


def build(
    paths: Sequence[Path],
    site: Path,
    *,
    title: str = "Leaderboard",
    with_samples: bool = True,
    progress: bool | None = None,
) -> Path:
    """Makes the page of results files or folders, and the folder ``site``; returns the page's path.

    An earlier page and its samples are removed first, and the new page is written last, so that
    a folder with a page is complete.

    Args:
        paths: As lm_eval or ``lm-eval-ext run`` left them.
        site: What the page is written to.
        title: Of the page.
        with_samples: Whether to write the samples, too.
        progress: Whether to show a bar; None: if stderr is a terminal.

    Raises:
        OptionError: If there are no results, or ``site`` cannot be written.
        DataError: If a file cannot be read.
    """
    models = sorted(read_models(paths), key=lambda model: model.label.casefold())
    tasks = _ordered(choose_tasks(models, (), least=1))
    page = site / "index.html"
    try:
        site.mkdir(parents=True, exist_ok=True)
        page.unlink(missing_ok=True)
        _remove_samples(site)
        found = overview(models, tasks=tasks)
        written = list(_samples(models, tasks, site, progress=progress)) if with_samples else []
        (site / "tables").mkdir(exist_ok=True)
        with atomic_text(site / "tables" / "leaderboard.csv") as out:
            out.write(found.map(_plain).to_csv(index=False, lineterminator="\n"))
        content = _render(title, models, tasks, found, written)
    except OSError as error:
        raise OptionError(f"cannot write {error.filename or site}: {error.strerror}") from None
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


def _remove_samples(site: Path) -> None:
    """Removes the samples of earlier pages, and no file with another kind of name."""
    samples = site / "samples"
    for folder in list(samples.iterdir()) if samples.is_dir() else ():
        if folder.is_symlink() or not folder.is_dir() or not _FOLDER.fullmatch(folder.name):
            continue
        for file in list(folder.iterdir()):
            if _FILE.fullmatch(file.name):
                file.unlink()
        if not any(folder.iterdir()):
            folder.rmdir()


def _samples(
    models: Sequence[Model], tasks: Sequence[str], site: Path, *, progress: bool | None
) -> Iterator[tuple[str, SampleFiles]]:
    from tqdm import tqdm

    disable = None if progress is None else not progress
    for place, task in enumerate(tqdm(tasks, desc="leaderboard", unit="task", disable=disable)):
        runs = _runs(models, task)
        logged: dict[str, Any] = {}
        for label in [label for label in runs if label in usual(task, runs)]:
            try:
                first = next(iter(logged.values()), None)
                logged[label] = read(runs[label], task, first=first)
            except DataError as error:
                _log.warning("%s; its samples are not shown", error)
        if logged:
            some = next(iter(runs.values()))
            card = some.card(task)
            slug = re.sub(r"[^A-Za-z0-9_-]+", "-", task)[:60]
            own = card.measures.values() if card else ()
            lower = {value for one in own for value in one.value if one.lower_is_better}
            lower |= {name for name in some.scores(task) if some.lower_is_better(task, name)}
            folder = site / "samples" / f"{place:02d}-{slug}"
            yield task, write(task, card, logged, folder, lower)


def _runs(models: Sequence[Model], task: str) -> dict[str, ResultsFile]:
    return {model.label: model.runs[task] for model in models if task in model.runs}


def _render(
    title: str,
    models: Sequence[Model],
    tasks: Sequence[str],
    found: "DataFrame",
    written: Sequence[tuple[str, SampleFiles]],
) -> str:
    """Renders the page.

    The template escapes text from elsewhere. In the data for the script ``<`` is encoded, so
    that no text can end their block.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup, escape

    def soft(name: str) -> Any:
        """A name that may break into lines between its parts."""
        return Markup(re.sub(r"([_:+>/·])(?=\w)", r"\1<wbr>", str(escape(name))))

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        loader=FunctionLoader(_asset),
    )  # fmt: skip
    known = [_row(model) for model in models]
    content = {
        "chunk": CHUNK,
        "models": {row.label: asdict(row.about) for row in known},
        "tasks": list(tasks),
        "samples": [{"name": name, **asdict(one)} for name, one in written],
    }
    encoded = json.dumps(content, ensure_ascii=True).replace("<", "\\u003c")
    chosen = representatives(models)
    best = found[found["task"].isin(chosen.values())]
    return environment.get_template("page.html").render(
        title=title,
        models=known,
        abouts={row.label: row.about for row in known},
        matrix=_overview("matrix", "Models by benchmark", best, models, list(chosen.values())),
        everything=_overview("overview", "All tasks", found, models, tasks),
        sections=list(_sections(models, tasks, found)),
        samples=written,
        signatures={
            task: {label: run.signature(task) for label, run in _runs(models, task).items()}
            for task in tasks
        },
        content=Markup(encoded),
        style=Markup("".join(map(_asset, STYLES)) + css()),
        script=Markup("".join(map(_asset, SCRIPTS))),
        size=_size_text,
        soft=soft,
    )


def _asset(name: str) -> str:
    return (files("lm_eval_ext.leaderboard") / "assets" / name).read_text(encoding="utf-8")


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


def _overview(
    name: str, title: str, found: "DataFrame", models: Sequence[Model], tasks: Sequence[str]
) -> Table:
    cells = {
        (one.model, one.task): Cell(
            _finite(one.value), _finite(one.low), _finite(one.high), one.best,
            f"{one.scored:,}/{one.total:,}" if one.scored < one.total else "",
        )
        for one in found.itertuples()
    }  # fmt: skip
    columns, kept = [], []
    for task in tasks:
        runs = _runs(models, task)
        own = found[found["task"] == task]
        if len(own):
            kept.append(task)
            columns.append(_column(next(iter(runs.values())), task, own["metric"].iloc[0], task))
        for label in runs.keys() - usual(task, runs):
            if (label, task) in cells:
                note = "measured differently from most (see signatures)"
                cells[label, task] = _noted(cells[label, task], note)
    rows = [
        (model.label, [cells.get((model.label, task), Cell()) for task in kept]) for model in models
    ]
    return Table(name, title, columns, sorted(rows, key=lambda row: _place(row[1], columns)))


def _noted(cell: Cell, note: str) -> Cell:
    return Cell(cell.value, cell.low, cell.high, badge=cell.badge, note=note)


def _place(cells: Sequence[Cell], columns: Sequence[Column]) -> tuple[float, ...]:
    """Models with all benchmarks first, then by how often none is better, then by the first."""
    lacking = sum(cell.value is None for cell in cells)
    first = next((cell.value for cell in cells if cell.value is not None), 0.0)
    sign = 1 if columns and columns[0].lower else -1
    return lacking, -sum(cell.best for cell in cells), sign * first


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _column(run: ResultsFile, task: str, metric: str, label: str) -> Column:
    card = run.card(task)
    measure = question_of(run, task, metric).measure
    return Column(
        label, metric, card.title_of(metric) if card and run.is_current(task) else metric,
        measure.unit, card.name if card else OTHERS, measure.chance, measure.lower_is_better,
    )  # fmt: skip


@dataclass(frozen=True)
class Section:
    """A benchmark's part of the page: figures as title, caption and SVG, and tables."""

    name: str
    title: str
    card: Card | None
    figures: Sequence[tuple[str, str, str]]
    tables: Sequence[Table]


def _sections(
    models: Sequence[Model], tasks: Sequence[str], found: "DataFrame"
) -> Iterator[Section]:
    drawn: dict[str, list[tuple[str, str, str]]] = {}
    try:
        for one in figures(models):
            svg = draw(one, "svg", theme="page", size=_SIZE, titled=False).decode()
            drawn.setdefault(one.name.partition("-")[0], []).append((one.title, one.caption, svg))
    except OptionError as error:
        _log.warning("%s; the page has no figures", error)
    groups: dict[str, list[str]] = {}
    for task in tasks:
        card = next(iter(_runs(models, task).values())).card(task)
        groups.setdefault(card.name if card else "", []).append(task)
    for name, own in groups.items():
        there = cards().get(name)
        made = [_of_task(task, _runs(models, task), found) for task in own]
        yield Section(
            name or "others", there.title if there else OTHERS, there, drawn.get(name, ()), made
        )


def _of_task(task: str, runs: Mapping[str, ResultsFile], found: "DataFrame") -> Table:
    """A task's models on all its metrics, with published values."""
    some = next(iter(runs.values()))
    metrics = list(dict.fromkeys(metric for run in runs.values() for metric in run.scores(task)))
    owner = {metric: run for run in runs.values() for metric in run.scores(task)}
    columns = [_column(owner[metric], task, metric, metric) for metric in metrics]
    best = set(found[(found["task"] == task) & found["best"]]["model"])
    headline = some.headline(task)
    rows = [
        (
            label,
            [
                _cell(run, task, metric, best=metric == headline and label in best)
                for metric in metrics
            ],
        )
        for label, run in runs.items()
    ]
    place = metrics.index(headline) if headline in metrics else 0
    sign = 1 if columns and columns[place].lower else -1
    rows.sort(key=lambda row: sign * (row[1][place].value or 0.0) if row[1] else 0.0)
    card = card_of(task)
    published: dict[str, list[Cell]] = {}
    for number_, metric in enumerate(metrics):
        if card and metric in card.metrics:
            for label, value in card.published(task, card.question_of(metric)).items():
                cells = published.setdefault(label, [Cell()] * len(metrics))
                cells[number_] = Cell(value)
    return Table(f"task-{task}", task, columns, rows, list(published.items()))


def _cell(run: ResultsFile, task: str, metric: str, *, best: bool) -> Cell:
    one = run.scores(task).get(metric, Figure(None))
    value = _finite(one.value)
    note = (
        reason_for(run, task, question_of(run, task, metric).measure, one)
        if value is None and metric in run.scores(task)
        else ""
    )
    return Cell(value, _finite(one.low), _finite(one.high), best, note=note)
