"""The table of an experiment: means over seeds, their spread, intervals, and correlations."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from lm_eval_ext.cards import card_of
from lm_eval_ext.compare.seeds import Value, of_metric, value_of
from lm_eval_ext.errors import OptionError
from lm_eval_ext.experiments.cells import MODELS, State, state_of
from lm_eval_ext.experiments.plan import Cell, Condition, Experiment, Plan
from lm_eval_ext.plots.figures import declared
from lm_eval_ext.text import quantity
from lm_eval_ext.training.records import told

_LEAST = 3
"""Models below which nothing is correlated."""


@dataclass(frozen=True)
class Row:
    """A condition.

    Attributes:
        name: Its levels.
        line: Its levels without that of the trend.
        x: The number that the trend is about.
        seeds: How many there are.
        learned: How many of them passed their gates.
        failed: By seed, what the gates reached of those that did not.
        missing: By seed, what is still to do.
        values: By heading; without those that no seed has.
    """

    name: str
    line: str
    x: float | None
    seeds: int
    learned: int
    failed: Mapping[int, str]
    missing: Mapping[int, str]
    values: Mapping[str, Value]


@dataclass(frozen=True)
class Correlation:
    """A score against the trend's number, over all models of a line.

    Attributes:
        line: The conditions.
        heading: The score.
        models: How many.
        spearman: Rank correlation, and ``spearman_p`` its two-sided p-value.
        pearson: Correlation with the number itself, and ``pearson_p`` its two-sided p-value.
    """

    line: str
    heading: str
    models: int
    spearman: float
    spearman_p: float
    pearson: float
    pearson_p: float


@dataclass(frozen=True)
class Published:
    """A published result: its values by heading, and its number on the trend's axis."""

    name: str
    group: str
    x: float | None
    values: Mapping[str, float]


@dataclass(frozen=True)
class Table:
    """An experiment's results, as far as there are any."""

    about: Experiment
    rows: Sequence[Row]
    correlations: Sequence[Correlation]
    published: Sequence[Published] = field(default_factory=tuple)


def table_of(plan: Plan, out: Path) -> Table:
    """Reads what there is in an experiment's folder.

    Raises:
        OptionError: Results lack a score that the experiment asks for.
        DataError: A file is broken.
    """
    rows = [_row(plan, condition, out) for condition in plan.conditions]
    return Table(plan.about, rows, correlations(plan.about, rows), published(plan.about))


def _row(plan: Plan, condition: Condition, out: Path) -> Row:
    cells = {seed: Cell(condition, seed) for seed in plan.seeds}
    states = {seed: state_of(cell, out) for seed, cell in cells.items()}
    runs = {seed: state.runs for seed, state in states.items() if state.runs}
    values: dict[str, Value] = {}
    for heading, (task, metric) in condition.scores.items():
        own = {seed: found[task] for seed, found in runs.items() if task in found}
        if own:
            values[heading] = of_metric(task, metric, own)
    for heading, pair in plan.about.gaps.items():
        one, two = (values[name].seeds if name in values else {} for name in pair)
        if both := {seed: one[seed] - two[seed] for seed in one if seed in two}:
            values[heading] = value_of(both)
    return Row(
        condition.name,
        condition.line(plan.about.trend),
        _number(plan.about, cells.values(), out),
        len(cells),
        sum(_learned(state) for state in states.values()),
        {
            seed: told(state.trained)
            for seed, state in states.items()
            if state.trained is not None and not state.trained.learned
        },
        {seed: state.missing for seed, state in states.items() if state.missing},
        values,
    )


def _learned(state: State) -> bool:
    return state.trained is not None and state.trained.learned


def _number(about: Experiment, cells: Iterable[Cell], out: Path) -> float | None:
    """The trend's number, from the first model file that there is."""
    import yaml

    if about.trend is None:
        return None
    for cell in cells:
        file = out / MODELS / f"{cell.name}.yaml"
        if file.is_file():
            content = yaml.safe_load(file.read_text(encoding="utf-8"))
            return quantity(content.get(about.trend.x)) if isinstance(content, dict) else None
    return None


def correlations(about: Experiment, rows: Sequence[Row]) -> list[Correlation]:
    """Correlations of all scores with the trend's number, over the models of each line."""
    if about.trend is None:
        return []
    found = []
    for line, group in groupby(sorted(rows, key=lambda row: row.line), key=lambda row: row.line):
        members = [row for row in group if row.x is not None]
        for heading in about.headings:
            points = [
                (row.x, value)
                for row in members
                if row.x is not None and heading in row.values
                for value in row.values[heading].seeds.values()
            ]
            found += _correlated(line, heading, points)
    order = list(dict.fromkeys(row.line for row in rows))
    return sorted(found, key=lambda one: order.index(one.line))


def _correlated(
    line: str, heading: str, points: Sequence[tuple[float, float]]
) -> list[Correlation]:
    from scipy import stats

    if len(points) < _LEAST or any(len(set(axis)) < 2 for axis in zip(*points, strict=True)):  # noqa: PLR2004
        return []
    x, y = zip(*points, strict=True)
    ranks, plain = stats.spearmanr(x, y), stats.pearsonr(x, y)
    numbers = (ranks.statistic, ranks.pvalue, plain.statistic, plain.pvalue)
    return [Correlation(line, heading, len(points), *map(float, numbers))]


def published(about: Experiment) -> list[Published]:
    """The paper's values, from the cards of the tasks that the experiment names."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    places = {
        label: x
        for figures in declared().values()
        for figure in figures
        if about.trend and figure.x == about.trend.x
        for label, x in figure.published_x.items()
    }
    for group, sources in about.published.items():
        for heading, source in sources.items():
            task, metric = source.split()
            card = card_of(task)
            if card is None:
                raise OptionError(f"published: no task {task}")
            for label, value in card.published(task, card.question_of(metric)).items():
                found.setdefault((label, group), {})[heading] = value
    for own in found.values():
        for heading, (one, two) in about.gaps.items():
            if one in own and two in own:
                own[heading] = own[one] - own[two]
    return [
        Published(f"{label}, {group}", group, places.get(label), own)
        for (label, group), own in found.items()
    ]
