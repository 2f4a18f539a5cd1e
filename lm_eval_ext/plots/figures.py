"""The papers' figures with one's own models in them: questions to the table, drawn by Altair.

``plots.yaml`` beside each benchmark's card declares them, so this package knows no benchmark.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from lm_eval_ext.cards import Card, cards, in_benchmarks
from lm_eval_ext.errors import LmEvalExtError, OptionError
from lm_eval_ext.plots.theme import Theme
from lm_eval_ext.results.ask import figures as asked_figures
from lm_eval_ext.results.ask import question_of
from lm_eval_ext.results.files import model_file
from lm_eval_ext.results.models import Model
from lm_eval_ext.stats.measures import LIMITS, Question
from lm_eval_ext.stats.statistics import NONE, number
from lm_eval_ext.text import quantity

if TYPE_CHECKING:
    from altair import TopLevelMixin
    from pandas import DataFrame

Dimension = Literal["model", "task", "line", "metric", "part"]
"""What panels, lines and colours may stand for; of a task's heading ``A / B`` B is the line."""

PUBLISHED = " (published)"

COLUMNS = ("model", "task", "line", "metric", "part", "value", "low", "high", "published", "x")

_LEAST_PANEL = 150
"""Points of width."""


class Declared(BaseModel):
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
        panels: What has a panel each.
        lines: What has a line each.
        colours: What has a colour and a shape each.
        joined: Join the marks of a line, from one colour to the next.
        axis: Title of the axis of values; "" for the measure's.
        x: Of a curve: the key of a model's file that has the number below its values.
        published_x: These numbers of published models, by label.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[a-z]+-[a-z0-9-]+$")]
    title: str
    reading: str = ""
    paper: str = ""
    tasks: dict[str, str]
    mini: dict[str, str] = {}
    metrics: dict[str, str] = {"": ""}
    where: dict[str, tuple[str, ...]] = {}
    by: str = ""
    values: tuple[str, ...] = ()
    panels: Dimension = "part"
    lines: Dimension = "model"
    colours: Dimension | Literal[""] = ""
    joined: bool = False
    axis: str = ""
    x: str = ""
    published_x: dict[str, float] = {}


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    figures: tuple[Declared, ...]


@cache
def declared() -> Mapping[str, tuple[Declared, ...]]:
    """All figures by benchmark.

    Raises:
        DataError: A declaration is malformed; file and key are named.
    """
    found = in_benchmarks("plots.yaml", TypeAdapter(_File))
    return {name: file.figures for name, file in found.items()}


@dataclass(frozen=True)
class Figure:
    """A figure with its values.

    Attributes:
        declared: Which it is.
        values: A row for each mark, with the columns ``COLUMNS``.
        unit: Of all values.
        axis: Title of their axis.
        caption: How to read it.
        chance: What guessing reaches, if it has a line.
        lower: Lower is better.
    """

    declared: Declared
    values: "DataFrame"
    unit: str
    axis: str
    caption: str
    chance: float | None = None
    lower: bool = False

    @property
    def name(self) -> str:
        """Unique among all figures, such as ``lieder-1``."""
        return self.declared.name

    @property
    def title(self) -> str:
        """One line."""
        return self.declared.title

    @property
    def ends(self) -> tuple[float, float]:
        """Of the axis: those of the unit, or around the values where it has none."""
        low, high = LIMITS[self.unit]
        if self.unit in ("share", "percent") and low is not None and high is not None:
            return low, high
        numbers = self.values[["value", "low", "high"]].stack()
        return min(0.0, float(numbers.min())), max(0.0, float(numbers.max()))

    def order(self) -> list[str]:
        """The models, the best first by the mean of the panels that all own models have.

        What a model lacks neither helps nor hurts it.
        """
        own = self.values[~self.values["published"]]
        places = own.groupby(["task", "line", "metric", "part"], sort=False)
        shared = places.filter(lambda one: one["model"].nunique() == own["model"].nunique())
        means = shared.groupby("model")["value"].mean()
        names = list(dict.fromkeys(self.values["model"]))
        sign = 1 if self.lower else -1
        last = math.inf
        return sorted(names, key=lambda name: (sign * means.get(name, sign * last), name))

    @property
    def alt(self) -> str:
        """What the figure says, with its numbers, for those who do not see it."""
        told = [f"{self.title} ({self.axis})."]
        for place, own in self.values.groupby(["task", "line", "metric", "part"], sort=False):
            heading = ", ".join(filter(None, place))
            said = ", ".join(self._told(one) for one in own.itertuples())
            told.append(f"{heading}: {said}." if heading else f"{said}.")
        return " ".join([*told, f"Chance is {self.chance:g}."] if self.chance else told)

    def _told(self, one: Any) -> str:
        text = f"{one.model} {number(one.value, self.unit)}"
        if math.isnan(one.low):
            return text
        return f"{text} [{number(one.low, self.unit)}, {number(one.high, self.unit)}]"

    def chart(self, theme: Theme, *, width: float = 720, font: float = 11) -> "TopLevelMixin":
        """The figure as an Altair chart; ``width`` is that of all panels, in points."""
        import altair as alt

        about = self.declared
        data = self.values.assign(chance=self.chance)
        panels = list(dict.fromkeys(data[about.panels]))
        columns = max(1, min(len(panels), int(width // _LEAST_PANEL)))
        columns = math.ceil(len(panels) / math.ceil(len(panels) / columns))
        size = {"width": round(width / columns - font, 2)}
        # Vega reads dots and brackets in names of fields only: data may have any text.
        layer = alt.layer(*(self._curve if about.x else self._dots)(theme, font), data=data)
        if not about.x:
            count = data[about.lines].nunique()
            colours = data[about.colours].nunique() if about.colours and not about.joined else 1
            size["height"] = round(count * font * (0.8 + 0.9 * colours), 2)
        found: Any = layer.properties(**size)
        if panels != [""]:
            # What is compared stands on two lines.
            lines = "split(replace(datum.label, ' > ', '\\n> '), '\\n')"
            header = alt.Header(title=None, labelLimit=int(size["width"]), labelExpr=lines)
            facet = alt.Facet(f"{about.panels}:N", sort=panels, header=header)
            found = found.facet(facet=facet, columns=columns)
        return found.configure(**theme.config(font))  # type: ignore[no-any-return]

    def _dots(self, theme: Theme, font: float) -> Iterator[Any]:
        import altair as alt

        about = self.declared
        lines = (
            self.order()
            if about.lines == "model"
            else list(dict.fromkeys(self.values[about.lines]))
        )
        axis = alt.Axis(labelLimit=int(font * 18), title=None, ticks=False)
        y = alt.Y(f"{about.lines}:N", sort=lines, axis=axis)
        ticks = alt.Axis(tickCount=5)
        x = alt.X("value:Q", title=self.axis, scale=alt.Scale(domain=list(self.ends)), axis=ticks)
        base = alt.Chart().encode(y=y, **self._coloured(theme))
        if about.colours and not about.joined:
            names = list(dict.fromkeys(self.values[about.colours]))
            base = base.encode(yOffset=alt.YOffset(f"{about.colours}:N", sort=names))
        if self.chance is not None:
            dotted = alt.Chart().mark_rule(strokeDash=[2, 3], color=theme.muted)
            yield dotted.encode(x=alt.X("chance:Q"))
        if self.ends[0] < 0:
            yield alt.Chart().mark_rule(color=theme.muted).encode(x=alt.datum(0))
        if about.joined:
            yield (
                alt.Chart()
                .mark_line(color=theme.muted)
                .encode(x="value:Q", y=y, detail=f"{about.lines}:N")
            )
        yield (
            base.transform_filter("isValid(datum.low)")
            .mark_rule(strokeWidth=font / 6)
            .encode(x="low:Q", x2="high:Q")
        )
        yield from self._marks(base.encode(x=x), theme, font)

    def _curve(self, theme: Theme, font: float) -> Iterator[Any]:
        import altair as alt

        title = self.declared.x.replace("_", " ")
        scale = alt.Scale(type="symlog", constant=1e6)
        y = alt.Y("value:Q", title=self.axis, scale=alt.Scale(domain=list(self.ends)))
        x = alt.X("x:Q", title=title, scale=scale, axis=alt.Axis(format="~s", values=self._decades))
        base = alt.Chart().encode(x=x, y=y, **self._coloured(theme, "line"))
        yield base.mark_line(strokeWidth=font / 8)
        yield base.transform_filter("isValid(datum.low)").mark_rule().encode(y="low:Q", y2="high:Q")
        yield from self._marks(base, theme, font)

    @property
    def _decades(self) -> list[float]:
        top = max(float(self.values["x"].max()), 1e6)
        return [0.0, *(10.0**power for power in range(6, int(math.log10(top)) + 1))]

    def _coloured(self, theme: Theme, field: str = "") -> dict[str, Any]:
        import altair as alt

        field = field or self.declared.colours
        if not field:
            return {"color": alt.value(theme.palette[0])}
        names = list(dict.fromkeys(self.values[field]))
        legend = alt.Legend(title=None, orient="bottom", columns=3, labelLimit=240)
        scale = alt.Scale(range=theme.series(len(names)), domain=names)
        shown = legend if len(names) > 1 else None
        return {"color": alt.Color(f"{field}:N", scale=scale, legend=shown)}

    def _marks(self, base: Any, theme: Theme, font: float) -> Iterator[Any]:
        import altair as alt

        same = {"size": font * 5, "opacity": 1}
        tooltip = [name for name in COLUMNS if name not in {"x", "published"}]
        base = base.encode(tooltip=tooltip)
        field = "line" if self.declared.x else self.declared.colours
        if field and len(names := list(dict.fromkeys(self.values[field]))) > 1:
            legend = alt.Legend(title=None, orient="bottom", columns=3, labelLimit=240)
            scale = alt.Scale(domain=names)
            base = base.encode(shape=alt.Shape(f"{field}:N", scale=scale, legend=legend))
        yield base.transform_filter("!datum.published").mark_point(filled=True, **same)
        yield base.transform_filter("datum.published").mark_point(fill=theme.paper, **same)


def figures(models: Sequence[Model], *, only: Collection[str] = ()) -> list[Figure]:
    """The figures that at least one model has a value for, in the order of the benchmarks."""
    found = []
    for name in [one.name for group in declared().values() for one in group]:
        if not only or name in only:
            try:
                found.append(figure_of(name, models))
            except LmEvalExtError:
                continue
    return found


def figure_of(name: str, models: Sequence[Model]) -> Figure:
    """A figure of these models.

    Raises:
        OptionError: They have no value for it; the message says what is missing.
    """
    ((benchmark, about),) = (
        (key, one) for key, group in declared().items() for one in group if one.name == name
    )
    card = cards()[benchmark]
    there = {task for model in models for task in model.runs}
    tasks = about.tasks if there & set(about.tasks.values()) or not about.mini else about.mini
    if not there & set(tasks.values()):
        known = list(dict.fromkeys([*about.tasks.values(), *about.mini.values()]))
        some = ", ".join(known[:3]) + (", ..." if len(known) > 3 else "")  # noqa: PLR2004
        raise OptionError(f"{name} needs results of {some}")
    rows: list[dict[str, Any]] = []
    missing: list[str] = []
    questions: list[Question] = []
    for heading, task in tasks.items():
        having = [model for model in models if task in model.runs]
        for title, metric in about.metrics.items() if having else ():
            try:
                question = _question(about, having[0], task, metric)
            except LmEvalExtError as error:
                missing.append(str(error))
                continue
            questions.append(question)
            same = {"metric": title, **dict(zip(("task", "line"), _headings(heading), strict=True))}
            cell = _Cell(about, task, question, card, same)
            for model in having:
                rows += _rows(cell, model, missing)
            rows += list(_published(cell, {row["part"] for row in rows}))
    if not any(not row["published"] for row in rows):
        raise OptionError(f"{name}: nothing to draw; {'; '.join(dict.fromkeys(missing))}")
    measure = questions[0].measure
    return Figure(
        about, frame_of(rows), measure.unit, about.axis or measure.title,
        _caption(about, rows, card, measure.chance), measure.chance, measure.lower_is_better,
    )  # fmt: skip


def frame_of(rows: Sequence[Mapping[str, Any]]) -> "DataFrame":
    """The values of a figure; what a row lacks is NaN."""
    import pandas as pd

    found = pd.DataFrame(rows, columns=list(COLUMNS))
    return found.astype(dict.fromkeys(("value", "low", "high", "x"), "float64"))


def _headings(heading: str) -> tuple[str, str]:
    task, _, line = heading.partition(" / ")
    return task, line


def _question(about: Declared, model: Model, task: str, metric: str) -> Question:
    own = question_of(model.runs[task], task, metric)
    by = (about.by,) if about.by else ()
    only = {about.by: about.values} if about.values else {}
    return Question(own.measure, {**own.where, **about.where, **only}, by)


@dataclass(frozen=True)
class _Cell:
    """A question about a task, and the headings of its values."""

    about: Declared
    task: str
    question: Question
    card: Card
    headings: Mapping[str, str]


def _rows(cell: _Cell, model: Model, missing: list[str]) -> Iterator[dict[str, Any]]:
    about, task, question, card = cell.about, cell.task, cell.question, cell.card
    run = model.runs[task]
    x = quantity(model_file(run).get(about.x)) if about.x else None
    if about.x and x is None:
        missing.append(f"the file of {model.label} has no {about.x}")
        return
    try:
        found = asked_figures(run, task, question)
    except LmEvalExtError as error:
        missing.append(f"{model.label}: {error}")
        return
    order: dict[tuple[str, ...], int] = {
        (value,): place for place, value in enumerate(about.values)
    }
    for part, one in sorted(found, key=lambda one: order.get(tuple(one[0].values()), 0)):
        if one.value is None:
            undefined = f"{NONE}, since {question.measure.undefined}"
            missing.append(f"{model.label}, {task}: {undefined}")
            continue
        family = str(model_file(run).get("family") or "these models")
        shown = ", ".join(map(card.word, part.values()))
        yield {
            **cell.headings, **({"line": family} if about.x else {}), "model": model.label,
            "part": shown, "value": one.value, "low": one.low, "high": one.high,
            "published": False, "x": x,
        }  # fmt: skip


def _published(cell: _Cell, there: Collection[str]) -> Iterator[dict[str, Any]]:
    about, task, question, card = cell.about, cell.task, cell.question, cell.card
    for value in about.values or ("",):
        part = {about.by: (value,)} if value else {}
        shown = card.word(value)
        if shown not in there:
            continue
        own = Question(question.measure, {**question.where, **part})
        for label, published in card.published(task, own).items():
            x = about.published_x.get(label)
            if not about.x or x is not None:
                line = {"line": label.partition(",")[0] + PUBLISHED} if about.x else {}
                yield {
                    **cell.headings, **line, "model": label + PUBLISHED, "part": shown,
                    "value": published, "published": True, "x": x,
                }  # fmt: skip


def _caption(
    about: Declared, rows: Sequence[Mapping[str, Any]], card: Card, chance: float | None
) -> str:
    told = [f"As {about.paper} of {card.paper.authors}."] if about.paper else []
    if any(row.get("low") is not None for row in rows):
        told.append(f"Bars: 95 % intervals, clustered by {card.cluster.unit}.")
    if any(row["published"] for row in rows):
        told.append("Hollow marks: published values.")
    if chance is not None:
        told.append(f"Dotted line: chance ({chance:g}).")
    return " ".join(told)
