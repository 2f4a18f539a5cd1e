"""The papers' figures with one's own models in them: questions to the table of scores, as charts.

``plots.yaml`` beside each benchmark's card declares them, so this package knows no benchmark.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TypedDict
from xml.etree import ElementTree

from lm_eval_ext.atomic import atomic_path
from lm_eval_ext.cards import Card, cards
from lm_eval_ext.errors import LmEvalExtError, OptionError, nearest, require_extra, writing
from lm_eval_ext.log import get_logger
from lm_eval_ext.plots.charts import COLUMNS, FONT_SIZE, NUMBERS, PAPER, PLACES, Plot
from lm_eval_ext.plots.declarations import Declared, declared
from lm_eval_ext.plots.gaps import Gap, Gaps
from lm_eval_ext.results.files import Run
from lm_eval_ext.results.grid import published_name
from lm_eval_ext.results.models import Model, count_models, runs_by_model
from lm_eval_ext.results.query import estimates, question_of, reference_run
from lm_eval_ext.results.table import NoSamplesError
from lm_eval_ext.stats.measures import Measure, Question
from lm_eval_ext.stats.statistics import NONE, Estimate, number
from lm_eval_ext.text import counted, named_briefly, one_line

if TYPE_CHECKING:
    from pandas import DataFrame

_log = get_logger(__name__)

FORMATS = ("svg", "pdf", "png", "html", "json")
"""Suffixes of files; an interactive page (html) needs no network."""

_VEGA_LITE = "6.4"
"""The version of Vega-Lite."""

_SVG = "http://www.w3.org/2000/svg"
"""The namespace of SVG."""

_WIDTH = 936
"""Points of width of a whole drawing. Whatever shows a drawing scales it."""

_KEY_LENGTH = 130
"""Characters of a line of the key below the title."""

_MAX_TASKS = 3
"""Tasks that an error names."""


@dataclass(frozen=True)
class Figure(Plot):
    """A figure with its values.

    Attributes:
        declared: Which figure it is.
        values: A row for each mark, with the columns ``COLUMNS``.
        measure: What all values are of.
        missing: What models lack.
        clusters: The words for the clusters of the intervals.
        mini_tasks: The mini tasks that stand for the paper's; none if these were evaluated.
        trials: The models that answered only some documents, with how many.
    """

    missing: Sequence[str] = ()
    clusters: Sequence[str] = ()
    mini_tasks: Sequence[str] = ()
    trials: Sequence[str] = ()

    @property
    def name(self) -> str:
        """A name that is unique among all figures, such as ``lieder-1``."""
        return self.declared.name

    @property
    def title(self) -> str:
        """The title, in one line."""
        return self.declared.title

    @property
    def caption(self) -> str:
        """What the values rest on, and the meaning of bars, hollow marks and lines."""
        card, chance = cards()[self.declared.benchmark], self.measure.chance
        own_values = self.values[~self.values["published"]]
        sentences = []
        if self.declared.paper and card.paper:
            sentences.append(f"As {self.declared.paper} of {card.paper.authors}.")
        if self.declared.remark:
            sentences.append(self.declared.remark)
        sentences += self._data_sentences(own_values)
        if own_values["low"].notna().any():
            some_have_none = own_values["low"].isna().any()
            exception = ", where there are enough" if some_have_none else ""
            if self.measure.statistic == "bootstrap":
                # These bars are the paper's, about half as wide as clustered intervals.
                units = " and ".join(f"{cluster}s" for cluster in self.clusters)
                sentences.append(
                    f"Bars: the middle 95 % of the paper's draws of documents{exception}. They do "
                    f"not take {units} into account: what is certain of a value is less."
                )
            else:
                units = " or ".join(self.clusters)
                sentences.append(f"Bars: 95 % intervals, clustered by {units}{exception}.")
        if self.values["published"].any():
            sentences.append("Hollow marks: published values.")
        if chance is not None:
            sentences.append(f"Dotted line: chance ({chance:g}).")
        return " ".join(sentences)

    def _data_sentences(self, own_values: "DataFrame") -> Iterator[str]:
        """Yield which tasks were evaluated, and on how many documents."""
        if self.mini_tasks:
            names = ", ".join(self.mini_tasks)
            yield f"Measured on {names}, which is smaller than the paper's data."
        documents = own_values["documents"].dropna()
        if len(documents):
            fewest = int(documents.min())
            most = int(documents.max())
            if fewest == most:
                yield f"Each value rests on {counted(most, 'document')}."
            else:
                yield f"Each value rests on {fewest:,} to {most:,} documents."
        if self.trials:
            yield f"Trials: {'; '.join(self.trials)}."

    @property
    def alt(self) -> str:
        """The figure's content with its numbers, for those who do not see it."""
        axis = self.declared.axis or self.measure.title
        sentences = [f"{self.title} ({axis})."]
        for words, rows in self.values.groupby(PLACES, sort=False):
            heading = ", ".join(word for word in words if word)
            numbers = ", ".join(self._row_in_words(row) for row in rows.itertuples())
            sentences.append(f"{heading}: {numbers}." if heading else f"{numbers}.")
        if self.measure.chance is not None:
            sentences.append(f"Chance is {self.measure.chance:g}.")
        return " ".join(sentences)

    def _row_in_words(self, row: Any) -> str:
        unit = self.measure.unit
        words = f"{row.model} {number(row.value, unit)}"
        low, high = number(row.low, unit), number(row.high, unit)
        return words if low == NONE else f"{words} [{low}, {high}]"

    def spec(self, width: float = _WIDTH, *, page: bool = False) -> dict[str, Any]:
        """Return the figure as Vega-Lite, whose panels and their names fit the width together.

        Below the title is a key of what marks and lines mean; on the page it stands beside the
        figure instead.

        Raises:
            OptionError: Altair or vl-convert is not installed.
        """
        require_extra("plot", "drawing", "altair", "vl_convert")
        # The names of lines need space beside the panels; only a drawing shows how much.
        first_drawing = _parse(_draw(self.chart(width).to_dict()))
        outer = float(first_drawing.attrib["width"]) - width
        inner = max(width - outer, 3 * FONT_SIZE)
        spec: dict[str, Any] = {**self.chart(inner).to_dict(), "description": self.alt}
        if not page:
            spec["background"] = PAPER
            subtitle = wrap(self.caption, _KEY_LENGTH)
            spec["title"] = {"text": self.title, "subtitle": subtitle}
        return spec

    def svg(self, width: float = _WIDTH, *, page: bool = False) -> str:
        """Draw the figure with vl-convert: Vega-Lite without a browser or a network.

        Args:
            width: The width of the whole, in points.
            page: Whether it has no title, and is transparent.
        """
        drawing = _parse(_draw(self.spec(width, page=page)))
        # The drawing has one name, for those who do not see it, and its parts have none.
        for element in drawing.iter():
            for attribute in list(element.attrib):
                if attribute == "role" or attribute.startswith("aria-"):
                    del element.attrib[attribute]
        drawing.set("role", "img")
        drawing.set("aria-label", self.alt)
        return ElementTree.tostring(drawing, encoding="unicode")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Draw into a file: .svg, .pdf, .png, .html (interactive) or .json (Vega-Lite).

        Raises:
            OptionError: The suffix is none of these, the file cannot be written, or the extra
                ``plot`` is not installed.
        """
        file = Path(path).expanduser()
        format_ = file.suffix.removeprefix(".").casefold()
        if format_ not in FORMATS:
            raise OptionError(f"{file}: use .{', .'.join(FORMATS)}")
        if format_ == "svg":
            drawing = self.svg()
            with _new_file(file) as unfinished:
                unfinished.write_text(drawing, "utf-8")
            return file
        spec = self.spec()
        import altair as alt

        options: dict[str, Any] = {
            "format": format_,
            "scale_factor": 2 if format_ == "png" else 1,
            "inline": format_ == "html",
        }
        with _new_file(file) as unfinished:
            alt.Chart.from_dict(spec).save(str(unfinished), **options)
        return file

    def _repr_svg_(self) -> str:
        return self.svg()


@contextmanager
def _new_file(file: Path) -> Iterator[Path]:
    """Yield the path to write a file at, which appears under its name when it is complete."""
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(file) as unfinished:
            yield unfinished


def _draw(spec: dict[str, Any]) -> str:
    """Return a drawing of Vega-Lite as SVG."""
    import vl_convert

    drawing: str = vl_convert.vegalite_to_svg(spec, vl_version=_VEGA_LITE)
    return drawing


def _parse(svg: str) -> ElementTree.Element:
    ElementTree.register_namespace("", _SVG)
    return ElementTree.fromstring(svg)


def attempts(models: Sequence[Model]) -> "Iterator[tuple[Declared, Figure | str]]":
    """Yield every figure, in the order of the benchmarks; or why it cannot be drawn."""
    for name, declaration in declared().items():
        try:
            yield declaration, figure_of(name, models)
        except LmEvalExtError as error:
            yield declaration, str(error)


@dataclass(frozen=True)
class FigureList:
    """The figures, by whether some results have what they need.

    Attributes:
        drawable: The titles of those that can be drawn, by name.
        absent: The titles of the others, by name, for each reason.
    """

    drawable: Mapping[str, str]
    absent: Mapping[str, Mapping[str, str]]


def listed(models: Sequence[Model]) -> FigureList:
    """Return which figures can be drawn from the results of these models, and why not the others.

    What several figures lack is a reason that they share.
    """
    drawable: dict[str, str] = {}
    absent: dict[str, dict[str, str]] = {}
    for declaration, figure in attempts(models):
        if isinstance(figure, Figure):
            drawable[declaration.name] = declaration.title
            continue
        reason = figure.removeprefix(declaration.name).lstrip(": ")
        absent.setdefault(reason, {})[declaration.name] = declaration.title
    return FigureList(drawable, absent)


def write(models: Sequence[Model], names: Sequence[str], output: Path | None) -> Iterator[Path]:
    """Draw figures into files and yield their paths.

    Args:
        models: From :func:`~lm_eval_ext.results.models.read_models`.
        names: The figures; all if empty.
        output: A file for one figure, or a folder.

    Raises:
        OptionError: An option is illegal, results lack a figure, or a file cannot be written.
    """
    if output is None or (output.suffix and len(names) != 1):
        raise OptionError("-o takes a folder without a suffix, or for one --figure a file")
    drawable = figures(models, names)
    if not drawable:
        raise OptionError(
            "these results have no figure: plot draws those of our benchmarks' papers, none of a "
            "benchmark of your own; --list says what figures need"
        )
    for figure in drawable:
        for problem in figure.missing:
            _log.warning("%s, left out: %s", figure.name, problem)
        yield figure.save(output if output.suffix else output / f"{figure.name}.svg")


def figures(models: Sequence[Model], names: Sequence[str] = ()) -> list[Figure]:
    """Return the figures of these names; without any, those that a model has a value for.

    Raises:
        OptionError: As :func:`figure_of`.
    """
    if names:
        return [figure_of(name, models) for name in names]
    return [figure for _, figure in attempts(models) if isinstance(figure, Figure)]


class FigureRow(TypedDict, total=False):
    """A mark of a figure: the columns of its values."""

    model: str
    task: str
    line: str
    metric: str
    part: str
    value: float
    low: float | None
    high: float | None
    documents: int | None
    published: bool


def figure_of(name: str, models: Sequence[Model]) -> Figure:
    """Return a figure of these models.

    Raises:
        OptionError: There is no such figure, or these models have no value for it; the message
            says what is missing.
    """
    import pandas as pd

    if name not in declared():
        available = f"; available: {', '.join(declared())}"
        hint = nearest(name, declared(), cutoff=0.4) or available
        raise OptionError(f"no figure {name!r}{hint}")
    declaration = declared()[name]
    reader = _FigureReader(declaration, cards()[declaration.benchmark], models)
    rows = reader.rows()
    missing = reader.gaps.lines({row["model"] for row in rows})
    if not rows:
        raise OptionError(f"{name}: nothing to draw; {'; '.join(missing)}")
    values = pd.DataFrame(rows, columns=list(COLUMNS))
    values = values.astype(dict.fromkeys(NUMBERS, "float64"))
    return Figure(
        declaration,
        values,
        reader.measures[0],
        missing,
        reader.clusters,
        reader.mini_tasks,
        reader.trials(),
    )


class _FigureReader:
    """Reads the values of a figure.

    Attributes:
        measures: The measures of the values that were read.
        gaps: What the results lack.
        clusters: The words for the clusters of the intervals that were read.
        mini_tasks: The mini tasks that values were read of, since no other has any.
    """

    def __init__(self, declaration: Declared, card: Card, models: Sequence[Model]) -> None:
        self.measures: list[Measure] = []
        self.gaps = Gaps()
        self.clusters: list[str] = []
        self.mini_tasks: list[str] = []
        self._models_of_trial: dict[str, list[str]] = {}  # by the number of documents
        self._declaration = declaration
        self._card = card
        self._models = models

    def rows(self) -> list[FigureRow]:
        """Return the rows of all metrics of the tasks; of the mini tasks if no other has a value.

        Raises:
            OptionError: Results have none of the tasks.
        """
        tasks, mini_tasks = self._declaration.tasks, self._declaration.mini
        available = set(count_models(self._models))
        if not available.intersection([*tasks.values(), *mini_tasks.values()]):
            raise self._error_without_tasks()
        rows = list(self._task_rows(tasks))
        if rows:
            self._note_models_of_mini_tasks()
            return rows
        rows = list(self._task_rows(mini_tasks))
        if rows:
            self.mini_tasks += available.intersection(mini_tasks.values())
            self.mini_tasks.sort(key=list(mini_tasks.values()).index)
        return rows

    def _task_rows(self, tasks: Mapping[str, str]) -> Iterator[FigureRow]:
        """Yield the rows of all metrics of tasks, which are given by heading."""
        for heading, task in tasks.items():
            runs = runs_by_model(self._models, task)
            if not runs:
                continue
            title, _, line = heading.partition(" / ")
            for metric_title, metric in self._declaration.metrics.items():
                try:
                    question = self._question(reference_run(runs), metric)
                except LmEvalExtError as error:
                    self.gaps.of_tasks.append(str(error))
                    continue
                self.measures.append(question.measure)
                for row in self._metric_rows(runs, task, question, metric_title):
                    yield {"task": title, "line": line, "metric": metric_title, **row}

    def trials(self) -> list[str]:
        """Return the models of which only some documents were evaluated, with how many."""
        lines = []
        for documents, labels in self._models_of_trial.items():
            lines.append(f"{named_briefly(labels)} ({documents})")
        return lines

    def _note_trial(self, label: str, run: Run) -> None:
        """Note how many documents a model answered, unless it answered all."""
        if run.is_whole:
            return
        scored, total = run.documents
        documents = f"{scored:,} of {total:,} documents of {run.task}"
        labels = self._models_of_trial.setdefault(documents, [])
        if label not in labels:
            labels.append(label)

    def _note_cluster(self, run: Run, estimate: Estimate) -> None:
        """Note the clusters of an interval, which the task has: a mini task's are its own."""
        cluster = (run.card or self._card).cluster.unit_at(estimate.level)
        if estimate.low is not None and cluster not in self.clusters:
            self.clusters.append(cluster)

    def _note_models_of_mini_tasks(self) -> None:
        """Note the models that have results of the mini tasks alone, while the others are drawn."""
        tasks = set(self._declaration.tasks.values())
        mini_tasks = set(self._declaration.mini.values()) - tasks
        for model in self._models:
            available = mini_tasks.intersection(model.runs)
            if available and not tasks.intersection(model.runs):
                names = ", ".join(sorted(available))
                problem = f"only {names}, and others have results on the paper's data"
                self.gaps.of_models.append(Gap(model.label, names, "", problem))

    def _error_without_tasks(self) -> OptionError:
        """Return the error that results have none of the tasks."""
        tasks, mini_tasks = self._declaration.tasks, self._declaration.mini
        drawable = list(dict.fromkeys([*tasks.values(), *mini_tasks.values()]))
        shown_tasks = ", ".join(drawable[:_MAX_TASKS])
        if len(drawable) > _MAX_TASKS:
            shown_tasks += ", ..."
        return OptionError(f"{self._declaration.name} needs results of {shown_tasks}")

    def _question(self, run: Run, metric: str) -> Question:
        base = question_of(run, metric)
        where = {**base.where, **self._declaration.where}
        facet, values = self._declaration.by, self._declaration.values
        if not facet:
            return Question(base.measure, where)
        if values:
            where[facet] = values
        else:
            where.pop(facet, None)
        return Question(base.measure, where, (facet,))

    def _metric_rows(
        self, runs: Mapping[str, Run], task: str, question: Question, metric_title: str
    ) -> Iterator[FigureRow]:
        """Yield the values of models, as their parts are declared, then published values."""
        rows = list(self._model_rows(runs, question, metric_title))
        order = [self._card.word(value) for value in self._declaration.values]
        if order:
            rows.sort(key=lambda row: order.index(row["part"]))
        yield from rows
        parts = {row["part"] for row in rows}
        for row in self._published_rows(task, question):
            if row["part"] in parts:
                yield row

    def _model_rows(
        self, runs: Mapping[str, Run], question: Question, metric_title: str
    ) -> Iterator[FigureRow]:
        """Yield the values of models; what some lack is noted."""
        for label, run in runs.items():
            try:
                parts = estimates(run, question)
            except LmEvalExtError as error:
                reason = error.reason if isinstance(error, NoSamplesError) else str(error)
                self.gaps.of_models.append(Gap(label, run.task, metric_title, reason))
                continue
            for part, estimate in parts:
                words = one_line(", ".join(map(self._card.word, part.values())))
                if estimate.value is None:
                    missing_part = ", ".join(filter(None, (metric_title, words)))
                    reason = f"{run.task}: {NONE}, since {question.measure.undefined}"
                    self.gaps.of_models.append(Gap(label, run.task, missing_part, reason))
                    continue
                self._note_trial(label, run)
                self._note_cluster(run, estimate)
                yield {
                    "model": label,
                    "part": words,
                    "value": estimate.value,
                    "low": estimate.low,
                    "high": estimate.high,
                    "documents": estimate.documents or None,
                    "published": False,
                }

    def _published_rows(self, task: str, question: Question) -> Iterator[FigureRow]:
        labels = self._declaration.published
        for value in self._declaration.values or ("",):
            where = dict(question.where)
            if value:
                where[self._declaration.by] = (value,)
            published = self._card.published(task, Question(question.measure, where))
            for label, amount in published.items():
                if labels and label not in labels:
                    continue
                yield {
                    "model": published_name(label),
                    "part": self._card.word(value),
                    "value": amount,
                    "published": True,
                }
