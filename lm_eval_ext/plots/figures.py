"""The figures that results have the values for."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from lm_eval_ext.cards import card_of, cards
from lm_eval_ext.compare.reading import Model
from lm_eval_ext.plots import words
from lm_eval_ext.plots.charts import Layout, chart
from lm_eval_ext.plots.content import Content
from lm_eval_ext.plots.declared import Declared, declared
from lm_eval_ext.plots.joins import Different, Tested, alike
from lm_eval_ext.plots.points import DAGGER, SERIES, Place, Point, Results, points, size_of
from lm_eval_ext.plots.theme import LIGHT, Theme
from lm_eval_ext.results.files import model_file
from lm_eval_ext.results.published import PAPER


@dataclass(frozen=True)
class Figure:
    """A figure with its values.

    Attributes:
        benchmark: The name of its card.
        content: What it shows.
    """

    benchmark: str
    content: Content

    @property
    def name(self) -> str:
        """Unique among all figures, such as ``lieder-1``."""
        return self.content.declared.name

    @property
    def title(self) -> str:
        """One line."""
        return self.content.declared.title

    @property
    def alt(self) -> str:
        """What the figure says, with its numbers, for those who do not see it."""
        return words.alt(self.content)

    @property
    def caption(self) -> str:
        """How to read it."""
        return words.caption(self.content, cards()[self.benchmark])

    @property
    def spec(self) -> dict[str, Any]:
        """Vega-Lite, with its data, in light colours and the default size."""
        return self.chart(LIGHT, Layout())

    def chart(self, theme: Theme, layout: Layout) -> dict[str, Any]:
        """Vega-Lite, with its data."""
        return chart(self.content, theme, layout)


def figures(
    models: Sequence[Model], different: Different | None = None, *, only: Collection[str] = ()
) -> list[Figure]:
    """The figures that at least one model has a value for, in the order of the benchmarks.

    Args:
        models: From :func:`~lm_eval_ext.compare.reading.read_models`.
        different: Which models differ significantly; the default reads the samples and makes the
            tests of ``lm-eval-ext compare``.
        only: The names of figures to make; all if empty.
    """
    results = Results(models)
    tested = different or Tested(results)
    found = []
    for benchmark, declarations in declared().items():
        card = cards()[benchmark]
        for one in declarations:
            if only and one.name not in only:
                continue
            if any(map(results.runs, one.tasks())) and (values := points(one, card, results)):
                content = Content(
                    one,
                    tuple(values),
                    tuple(_ordered(one, values, results)),
                    _joins(one, values, tested),
                    card.chance if one.chance else None,
                )
                found.append(Figure(benchmark, content))
    return found


def needed(there: Sequence[Figure]) -> dict[str, str]:
    """What the figures that results lack need, by their names."""
    have = {figure.name for figure in there}
    found = {}
    for one in chain.from_iterable(declared().values()):
        if one.name not in have:
            keys = f"the key {one.x} in a model's file, with " if one.x not in ("", SERIES) else ""
            found[one.name] = f"{keys}{_some(one.tasks())}"
    return found


def _some(tasks: Sequence[str], most: int = 3) -> str:
    known = [task for task in tasks if card_of(task)]
    more = [f"{len(known) - most} more"] if len(known) > most else []
    return " or ".join([*known[:most], *more])


def _ordered(figure: Declared, values: Sequence[Point], results: Results) -> list[str]:
    """The models' labels: the best mean first, or the smallest model."""
    by_model: dict[str, list[float]] = {}
    for point in values:
        if point.model != figure.line:
            by_model.setdefault(point.model, []).append(point.value)
    best = sorted(
        by_model,
        key=lambda name: sum(by_model[name]) / len(by_model[name]),
        reverse=not figure.lower,
    )
    if figure.lines == "row":  # colours in their order: the first for one's own
        own = {point.model for point in values if not point.published}
        return sorted(best, key=lambda name: name not in own)
    if figure.order == "value":
        return best
    about = {model.label: model_file(next(iter(model.runs.values()))) for model in results.models}

    def size(label: str) -> float:
        label = label.removesuffix(f" {DAGGER}")
        known = figure.sizes.get(label.removesuffix(f" {PAPER}"))
        found = size_of(label, {"size": known} if known else about.get(label, {}))
        return found if found is not None else float("inf")

    return sorted(best, key=size)


def _joins(
    figure: Declared, values: Sequence[Point], different: Different
) -> dict[Place, list[list[str]]]:
    if not figure.join or figure.kind != "dots":
        return {}
    places: dict[Place, list[Point]] = {}
    for point in values:
        places.setdefault(point.place, []).append(point)
    found = {place: alike(there, different) for place, there in places.items()}
    return {place: groups for place, groups in found.items() if groups}
