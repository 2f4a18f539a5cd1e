"""The papers' figures with one's own models in them: questions to the table, drawn by Altair.

``plots.yaml`` beside each benchmark's card declares them, so this package knows no benchmark.
"""

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from lm_eval_ext.atomic import atomic_path
from lm_eval_ext.cards import Card, cards
from lm_eval_ext.errors import LmEvalExtError, OptionError, nearest, require_extra, writing
from lm_eval_ext.log import get_logger
from lm_eval_ext.reading import Strict, read_yaml
from lm_eval_ext.registry import BENCHMARKS
from lm_eval_ext.results.files import Run
from lm_eval_ext.results.models import Model, runs_by_model
from lm_eval_ext.results.query import estimates, question_of, reference_run
from lm_eval_ext.stats.measures import Measure, Question
from lm_eval_ext.stats.statistics import NONE, number

if TYPE_CHECKING:
    from pandas import DataFrame

_log = get_logger(__name__)

Dimension = Literal["model", "task", "line", "metric", "part"]
"""What panels, lines and colours may stand for; of a task's heading ``A / B`` B is the line."""

PUBLISHED = " (published)"

_PLACES = ["task", "line", "metric", "part"]
COLUMNS = ("model", "task", "line", "metric", "part", "value", "low", "high", "published")

FORMATS = ("svg", "pdf", "png", "html", "json")
"""Suffixes of files; an interactive page (html) needs no network."""

_VERSION = "6.4"
"""Of Vega-Lite."""

_LEAST_PANEL, _PHONE = 150, 400
"""Points of width: of a panel, and of a drawing whose key has one column."""

_TALL = 30
"""Lines of text, of a panel whose axis is above it, where a reader starts."""

_WIDTH, _FONT = 936, 12
"""Points: of the whole, and of letters. Whatever shows a drawing scales it."""

_KEY = 130
"""Characters of a line of the key below the title."""

INK, MUTED, GRID, PAPER = "#1a1a1a", "#5f5f5f", "#e4e4e4", "#ffffff"
"""Colours: of text; of chance and axes; of the lines behind marks; of the inside of hollow ones."""

PALETTE = (
    "#0072b2", "#d55e00", "#009e73", "#882255", "#3292a6", "#801500", "#4662eb", "#0000eb",
)  # fmt: skip
"""Of series. The first three are of Okabe and Ito (2008); all have a contrast of 3 with the paper,
and differ by 20 in CIELAB also for people who see no red or no green."""

_SMALL = {"fill": INK, "fontSize": 11, "fontWeight": "normal"}

CONFIG: Mapping[str, Any] = {
    "font": "sans-serif", "background": "transparent", "aria": False,
    "axis": {"gridColor": GRID, "domainColor": MUTED, "tickColor": MUTED},
    "style": {"guide-label": _SMALL, "guide-title": _SMALL},
    "title": {"color": INK, "fontSize": 14, "anchor": "start", "offset": _FONT,
              "subtitleColor": INK, "subtitleFontSize": 11},
}  # fmt: skip
"""Vega-Lite's."""

_ROLES = re.compile(r' (?:role|aria-[a-z]+)="[^"]*"')
"""Vega's, of groups without a name: the whole has one."""
_DIGITS = re.compile(r"(\.\d\d)\d{4,}")
"""Of places, more than anybody sees."""
_MEASURED = re.compile(r'<svg[^>]*? width="([0-9.]+)"')


class Declared(Strict):
    """A figure: which questions about which tasks stand where.

    Attributes:
        name: Unique, such as ``lieder-1``; numbers are those of the paper.
        title: What it shows.
        reading: How to read it, in one sentence.
        paper: What it is in the paper; "" if the paper has none like it.
        tasks: By heading.
        mini: The same of embedded tasks, drawn of results that have none of ``tasks``.
        metrics: By heading; "" is the headline.
        where: As a question's.
        by: The facet that parts are of; "" for none.
        values: Of this facet, in their order; all if empty.
        published: Labels of published values; all if empty.
        panels: What has a panel each.
        lines: What has a line each.
        colours: What has a colour and a shape each.
        joined: Join the marks of a line, from one colour to the next.
        axis: Title of the axis of values; "" for the measure's.
    """

    name: Annotated[str, Field(pattern=r"^[a-z_]+-[a-z0-9-]+$")]
    title: str
    reading: str = ""
    paper: str = ""
    tasks: dict[str, str]
    mini: dict[str, str] = {}
    metrics: dict[str, str] = {"": ""}
    where: dict[str, tuple[str, ...]] = {}
    by: str = ""
    values: tuple[str, ...] = ()
    published: tuple[str, ...] = ()
    panels: Dimension = "part"
    lines: Dimension = "model"
    colours: Dimension | Literal[""] = ""
    joined: bool = False
    axis: str = ""


@cache
def declared() -> Mapping[str, Declared]:
    """All figures by name, which starts with that of the benchmark.

    Raises:
        DataError: A declaration is malformed; file and key are named.
    """
    files = [benchmark.figures_file for benchmark in BENCHMARKS.values()]
    groups = (read_yaml(file, TypeAdapter(tuple[Declared, ...])) for file in files)
    return {one.name: one for group in groups for one in group}


@dataclass(frozen=True)
class Figure:
    """A figure with its values.

    Attributes:
        declared: Which it is.
        values: A row for each mark, with the columns ``COLUMNS``.
        measure: What all values are of.
        missing: What models lack.
    """

    declared: Declared
    values: "DataFrame"
    measure: Measure
    missing: Sequence[str] = ()

    @property
    def name(self) -> str:
        """Unique among all figures, such as ``lieder-1``."""
        return self.declared.name

    @property
    def title(self) -> str:
        """One line."""
        return self.declared.title

    @property
    def caption(self) -> str:
        """What bars, hollow marks and lines mean."""
        card, chance = cards()[self.name.partition("-")[0]], self.measure.chance
        paper = self.declared.paper
        told = [f"As {paper} of {card.paper.authors}."] if paper and card.paper else []
        if self.values["low"].notna().any():
            told.append(f"Bars: 95 % intervals, clustered by {card.cluster.unit}.")
        if self.values["published"].any():
            told.append("Hollow marks: published values.")
        if chance is not None:
            told.append(f"Dotted line: chance ({chance:g}).")
        return " ".join(told)

    @property
    def ends(self) -> tuple[float, float]:
        """Of the axis: those of the unit, or around the values where it has none."""
        if self.measure.unit in ("share", "percent"):
            return self.measure.limits  # type: ignore[return-value]
        numbers = self.values[["value", "low", "high"]].stack()
        return min(0.0, float(numbers.min())), max(0.0, float(numbers.max()))

    def order(self) -> list[str]:
        """The models, the best first by the mean of the panels that all own models have.

        What a model lacks neither helps nor hurts it.
        """
        own = self.values[~self.values["published"]]
        means = own.pivot_table("value", "model", _PLACES).dropna(axis=1).mean(axis=1)
        best = means.sort_values(ascending=self.measure.lower_is_better, kind="stable")
        return list(dict.fromkeys([*best.index, *self.values["model"]]))

    @property
    def alt(self) -> str:
        """What the figure says, with its numbers, for those who do not see it."""
        axis = self.declared.axis or self.measure.title
        told = [f"{self.title} ({axis})."]
        for place, own in self.values.groupby(_PLACES, sort=False):
            heading = ", ".join(filter(None, place))
            said = ", ".join(self._told(one) for one in own.itertuples())
            told.append(f"{heading}: {said}." if heading else f"{said}.")
        chance = self.measure.chance
        return " ".join([*told, f"Chance is {chance:g}."] if chance else told)

    def _told(self, one: Any) -> str:
        value, low, high = (number(x, self.measure.unit) for x in (one.value, one.low, one.high))
        return f"{one.model} {value}" + f" [{low}, {high}]" * (not math.isnan(one.low))

    def spec(self, width: float = _WIDTH, *, page: bool = False) -> dict[str, Any]:
        """The figure as Vega-Lite that fits the width: panels are measured with their labels.

        Below the title is the key of what marks and lines mean; the page says it beside the figure.

        Raises:
            OptionError: Altair or vl-convert is not installed.
        """
        require_extra("plot", "drawing", "altair", "vl_convert")
        import vl_convert

        chart = self.chart(width)
        svg = vl_convert.vegalite_to_svg(chart.to_dict(), vl_version=_VERSION)
        inner = 2 * width - float(_MEASURED.findall(svg)[0])
        chart = self.chart(max(inner, 3 * _FONT))
        spec: dict[str, Any] = {**chart.to_dict(), "description": self.alt}
        if not page:
            spec["background"] = PAPER
            spec["title"] = {"text": self.title, "subtitle": wrap(self.caption, _KEY)}
        return spec

    def svg(self, width: float = _WIDTH, *, page: bool = False) -> str:
        """Draws the figure with vl-convert: Vega-Lite without a browser or a network.

        Args:
            width: Of the whole, in points.
            page: Without a title, and transparent.
        """
        spec = self.spec(width, page=page)
        import vl_convert

        label = escape(self.alt, quote=True)
        drawn: str = vl_convert.vegalite_to_svg(spec, vl_version=_VERSION)
        drawn = _ROLES.sub("", _DIGITS.sub(r"\1", drawn))
        return drawn.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Draws into a file: .svg, .pdf, .png, .html (interactive) or .json (Vega-Lite).

        Raises:
            OptionError: The suffix is none of these, the file cannot be written, or the extra
                ``plot`` is not installed.
        """
        file = Path(path).expanduser()
        format_ = file.suffix.removeprefix(".").casefold()
        if format_ not in FORMATS:
            raise OptionError(f"{file}: use .{', .'.join(FORMATS)}")
        drawn: Any = self.svg() if format_ == "svg" else self.spec()
        import altair as alt

        with writing(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            with atomic_path(file) as part:
                if format_ == "svg":
                    part.write_text(drawn, "utf-8")
                    return file
                options: Any = {"format": format_, "scale_factor": 1 + (format_ == "png")}
                inline = format_ == "html"
                alt.Chart.from_dict(drawn).save(str(part), inline=inline, **options)
        return file

    def _repr_svg_(self) -> str:
        return self.svg()

    def chart(self, width: float) -> Any:
        """The figure as an Altair chart; ``width`` is that of all panels, in points."""
        import altair as alt

        about = self.declared
        panels = list(self.values[about.panels].unique())
        columns = max(1, min(len(panels), int(width // _LEAST_PANEL)))
        rows = math.ceil(len(panels) / columns)
        columns = math.ceil(len(panels) / rows)
        colours = self.values[about.colours].nunique() if about.colours and not about.joined else 1
        each = int(width / columns - _FONT)
        height = self.values[about.lines].nunique() * _FONT * (0.8 + 0.9 * colours)
        # Vega reads dots and brackets in names of fields only: data may have any text.
        tall = rows > 2 or height > _TALL * _FONT  # noqa: PLR2004
        data = self.values.assign(chance=self.measure.chance)
        drawn = alt.layer(*self._layers(width, tall=tall), data=data)
        found: Any = drawn.properties(width=each, height=round(height, 2))
        if panels != [""]:
            # What is compared stands on two lines.
            lines = "split(replace(datum.label, ' > ', '\\n> '), '\\n')"
            header = alt.Header(title=None, labelLimit=each, labelExpr=lines)
            facet = alt.Facet(f"{about.panels}:N", sort=panels, header=header)
            found = found.facet(facet=facet, columns=columns)
        return found.configure(**CONFIG)

    def _layers(self, width: float, *, tall: bool) -> Iterator[Any]:
        import altair as alt

        about = self.declared
        colour: dict[str, Any] = {"color": alt.value(PALETTE[0])}
        marks: dict[str, Any] = {}
        names = list(self.values[about.lines].unique())
        sort = self.order() if about.lines == "model" else names
        axis = alt.Axis(labelLimit=int(_FONT * 18), title=None, ticks=False)
        base = alt.Chart().encode(y=alt.Y(f"{about.lines}:N", sort=sort, axis=axis))
        if self.measure.chance is not None:
            dotted = alt.Chart().mark_rule(strokeDash=[2, 3], color=MUTED)
            yield dotted.encode(x="chance:Q")
        if self.ends[0] < 0:
            yield alt.Chart().mark_rule(color=MUTED).encode(x=alt.datum(0))
        if about.joined:
            yield base.mark_line(color=MUTED).encode(x="value:Q", detail=f"{about.lines}:N")
        if about.colours:
            field = f"{about.colours}:N"
            names = list(self.values[about.colours].unique())
            if not about.joined:
                base = base.encode(yOffset=alt.YOffset(field, sort=names))
            several = alt.Legend(
                title=None, orient="top", columns=3 if width > _PHONE else 1, labelLimit=240
            )
            legend = several if len(names) > 1 else None
            scale = alt.Scale(domain=names, range=list(PALETTE))
            colour = {"color": alt.Color(field, scale=scale, legend=legend)}
            marks = {"shape": alt.Shape(field, scale=alt.Scale(domain=names), legend=legend)}
        base = base.encode(**colour)
        bars = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2)
        yield bars.encode(x="low:Q", x2="high:Q")
        scale = alt.Scale(domain=list(self.ends))
        axis = alt.Axis(tickCount=5, orient="top" if tall else "bottom")
        x = alt.X("value:Q", title=about.axis or self.measure.title, scale=scale, axis=axis)
        tooltip = [name for name in COLUMNS if name != "published"]
        base = base.encode(x=x, tooltip=tooltip, **marks)
        same = {"size": _FONT * 5, "opacity": 1}
        yield base.transform_filter("!datum.published").mark_point(filled=True, **same)
        yield base.transform_filter("datum.published").mark_point(fill=PAPER, **same)


def attempts(models: Sequence[Model]) -> "Iterator[tuple[Declared, Figure | str]]":
    """Yields every figure, in the order of the benchmarks; or why it cannot be drawn."""
    for name, about in declared().items():
        try:
            yield about, figure_of(name, models)
        except LmEvalExtError as error:
            yield about, str(error)


def listed(models: Sequence[Model]) -> list[tuple[str, str]]:
    """Each figure's name and title, with what is missing in the results of these models."""
    return [
        (about.name, about.title + f" ({one})" * isinstance(one, str))
        for about, one in attempts(models)
    ]


def write(models: Sequence[Model], names: Sequence[str], output: Path | None) -> Iterator[Path]:
    """Draws figures into files and yields their paths.

    Args:
        models: From :func:`~lm_eval_ext.results.models.read_models`.
        names: Of figures; all if empty.
        output: A file for one figure, or a folder.

    Raises:
        OptionError: An option is illegal, results lack a figure, or a file cannot be written.
    """
    if output is None or (output.suffix and len(names) != 1):
        raise OptionError("-o takes a folder without a suffix, or for one --figure a file")
    found = figures(models, names)
    if not found:
        raise OptionError("these results have no figure; --list says what figures need")
    for figure in found:
        for one in figure.missing:
            _log.warning("%s, left out: %s", figure.name, one)
        yield figure.save(output if output.suffix else output / f"{figure.name}.svg")


def figures(models: Sequence[Model], names: Sequence[str] = ()) -> list[Figure]:
    """The figures of these names; without any, those that at least one model has a value for.

    Raises:
        OptionError: As :func:`figure_of`.
    """
    if names:
        return [figure_of(name, models) for name in names]
    return [one for _, one in attempts(models) if isinstance(one, Figure)]


def figure_of(name: str, models: Sequence[Model]) -> Figure:
    """A figure of these models.

    Raises:
        OptionError: There is no such figure, or these models have no value for it; the message
            says what is missing.
    """
    if name not in declared():
        hint = nearest(name, declared(), cutoff=0.4) or f"; they are {', '.join(declared())}"
        raise OptionError(f"no figure {name!r}{hint}")
    about, card = declared()[name], cards()[name.partition("-")[0]]
    there = {task for model in models for task in model.runs}
    tasks = about.tasks if there & set(about.tasks.values()) or not about.mini else about.mini
    if not there & set(tasks.values()):
        known = list(dict.fromkeys([*about.tasks.values(), *about.mini.values()]))
        some = ", ".join(known[:3]) + ", ..." * (len(known) > 3)  # noqa: PLR2004
        raise OptionError(f"{name} needs results of {some}")
    rows: list[dict[str, Any]] = []
    missing: list[str] = []
    measures: list[Measure] = []
    order = list(map(card.word, about.values))
    for heading, task in tasks.items():
        runs = runs_by_model(models, task)
        title, _, line = heading.partition(" / ")
        for metric_title, metric in about.metrics.items() if runs else ():
            same = {"task": title, "line": line, "metric": metric_title}
            try:
                question = _question(about, reference_run(runs), metric)
            except LmEvalExtError as error:
                missing.append(str(error))
                continue
            measures.append(question.measure)
            own = list(_rows(runs, question, card, missing))
            own.sort(key=lambda row: order.index(row["part"]) if order else 0)
            parts = {row["part"] for row in own}
            rows += [{**same, **row} for row in (*own, *_published(about, task, question, card))
                     if row["part"] in parts]  # fmt: skip
    if not rows:
        raise OptionError(f"{name}: nothing to draw; {'; '.join(dict.fromkeys(missing))}")
    import pandas as pd

    numbers = dict.fromkeys(("value", "low", "high"), "float64")
    values = pd.DataFrame(rows, columns=list(COLUMNS)).astype(numbers)
    return Figure(about, values, measures[0], [*dict.fromkeys(missing)])


def _question(about: Declared, run: Run, metric: str) -> Question:
    own = question_of(run, metric)
    where = {**own.where, **about.where, about.by: about.values}
    by = tuple(filter(None, [about.by]))
    return Question(own.measure, {name: one for name, one in where.items() if one}, by)


def _rows(
    runs: Mapping[str, Run], question: Question, card: Card, missing: list[str]
) -> Iterator[dict[str, Any]]:
    """The values of models; those that lack some are noted."""
    for label, run in runs.items():
        try:
            found = estimates(run, question)
        except LmEvalExtError as error:
            missing.append(f"{label}: {error}")
            continue
        for part, one in found:
            if one.value is None:
                missing.append(f"{label}, {run.task}: {NONE}, since {question.measure.undefined}")
                continue
            yield {
                "model": label, "part": ", ".join(map(card.word, part.values())),
                "value": one.value, "low": one.low, "high": one.high, "published": False,
            }  # fmt: skip


def _published(
    about: Declared, task: str, question: Question, card: Card
) -> Iterator[dict[str, Any]]:
    for value in about.values or ("",):
        where = {**question.where, about.by: (value,)} if value else question.where
        for label, published in card.published(task, Question(question.measure, where)).items():
            if label in about.published or not about.published:
                yield {
                    "model": label + PUBLISHED, "part": card.word(value), "value": published,
                    "published": True,
                }  # fmt: skip
