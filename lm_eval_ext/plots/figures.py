"""The figures that results have the values for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval_ext.cards import Card, cards
from lm_eval_ext.compare.reading import Model
from lm_eval_ext.plots import words
from lm_eval_ext.plots.charts import Content, Layout, chart
from lm_eval_ext.plots.declared import Declared, declared
from lm_eval_ext.plots.joins import Different, Tested, alike
from lm_eval_ext.plots.points import Place, Point, Results, points, size_of
from lm_eval_ext.plots.theme import LIGHT, Theme
from lm_eval_ext.results.files import model_file


@dataclass(frozen=True)
class Figure:
    """A figure with its values.

    Attributes:
        benchmark: The name of its card.
        declared: What it shows.
        content: The values.
    """

    benchmark: str
    declared: Declared
    content: Content

    @property
    def name(self) -> str:
        """Unique among all figures, such as ``lieder-1``."""
        return self.declared.name

    @property
    def title(self) -> str:
        """One line."""
        return self.declared.title

    @property
    def alt(self) -> str:
        """What the figure says, with its numbers, for those who do not see it."""
        return words.alt(self.declared, self.content)

    @property
    def caption(self) -> str:
        """How to read it."""
        return words.caption(self.declared, self.content, cards()[self.benchmark])

    @property
    def spec(self) -> dict[str, Any]:
        """Vega-Lite, with its data, in light colours and the default size."""
        return self.chart(LIGHT, Layout())

    def chart(self, theme: Theme, layout: Layout) -> dict[str, Any]:
        """Vega-Lite, with its data."""
        return chart(self.declared, self.content, theme, layout)


def figures(models: Sequence[Model], different: Different | None = None) -> list[Figure]:
    """All figures that at least one model has a value for, in the order of the benchmarks.

    Args:
        models: From :func:`~lm_eval_ext.compare.reading.read_models`.
        different: Which models differ significantly; the default reads the samples and makes the
            tests of ``lm-eval-ext compare``.

    Raises:
        DataError: A samples file cannot be read.
    """
    results = Results(models)
    tested = different or Tested(results)
    found = []
    for benchmark, declarations in declared().items():
        card = cards()[benchmark]
        for one in declarations:
            if any(results.runs(task) for task in one.tasks()) and (
                values := points(one, card, results)
            ):
                content = Content(
                    tuple(values),
                    tuple(_ordered(one, values, results)),
                    _joins(one, values, tested),
                    card.chance if one.chance else None,
                )
                found.append(Figure(benchmark, one, content))
    return found


def needed(models: Sequence[Model]) -> dict[str, tuple[str, list[str]]]:
    """The figures that results lack: by name, the title and the tasks that would have them."""
    there = {figure.name for figure in figures(models, lambda *_: frozenset())}
    return {
        one.name: (one.title, one.tasks())
        for declarations in declared().values()
        for one in declarations
        if one.name not in there
    }


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
    if figure.order == "value":
        return best
    about = {model.label: model_file(next(iter(model.runs.values()))) for model in results.models}

    def size(label: str) -> float:
        known = figure.sizes.get(label.removesuffix(" (paper)"))
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
