"""An experiment's file: which models are trained, and which of their scores make the table."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from lm_eval_ext.errors import OptionError
from lm_eval_ext.training.options import parse_seeds
from lm_eval_ext.training.recipe import (
    BENCHMARKS,
    SUFFIX,
    Recipe,
    Strict,
    checked,
    filled,
    read_mapping,
    read_recipe,
)

RECIPE = "recipe"
"""Among a level's settings: another recipe."""

Source = Annotated[str, Field(pattern=r"^\S+ \S+$")]
"""A task and one of its metrics. Options of a recipe's ``data`` in braces stand for values."""


class Trend(Strict):
    """A factor whose levels are numbers: scores are correlated with them, and drawn against them.

    Attributes:
        factor: Its name.
        x: The key of a model's file that has the number, such as ``pretraining_tokens``.
        title: Of the axis.
    """

    factor: str
    x: str
    title: str


class Experiment(Strict):
    """What the file says.

    Attributes:
        title: The question, in a line.
        paper: Which paper asks it, and where.
        departures: What is done otherwise.
        recipe: Of every model, unless a level names another one.
        seeds: As ``train --seeds`` takes them.
        set: Settings for all models: keys of the recipe and values, as ``train --set`` takes them.
        factors: By factor, its levels with their settings. There is a condition for every
            combination of levels.
        tasks: As ``run --tasks`` takes them.
        scores: Columns of the table: task and metric by heading.
        gaps: Further columns: differences of two scores of the same model.
        trend: The factor that is a number, if there is one.
        published: Values of the paper to show beside the table: task and metric by heading, for
            each group of rows.
    """

    title: str
    paper: str
    departures: list[str]
    recipe: str = ""
    seeds: str = "0-2"
    set: dict[str, Any] = Field(default_factory=dict)
    factors: dict[str, Annotated[dict[str, dict[str, Any]], Field(min_length=1)]]
    tasks: str
    scores: Annotated[dict[str, Source], Field(min_length=1)]
    gaps: dict[str, tuple[str, str]] = Field(default_factory=dict)
    trend: Trend | None = None
    published: dict[str, dict[str, Source]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _consistent(self) -> "Experiment":
        named = [("gaps", one) for pair in self.gaps.values() for one in pair]
        named += [("published", one) for own in self.published.values() for one in own]
        for key, heading in named:
            if heading not in self.scores:
                raise ValueError(f"{key}: no score {heading!r}; there are {', '.join(self.scores)}")
        if both := self.gaps.keys() & self.scores.keys():
            raise ValueError(f"gaps: {min(both)!r} is a score already")
        if self.trend and self.trend.factor not in self.factors:
            names = ", ".join(self.factors) or "none"
            raise ValueError(f"trend: no factor {self.trend.factor!r}; there are {names}")
        return self

    @property
    def headings(self) -> list[str]:
        """Of the table's columns: scores, then gaps."""
        return [*self.scores, *self.gaps]


@dataclass(frozen=True)
class Condition:
    """A combination of levels.

    Attributes:
        levels: By factor.
        recipe: The recipe's name.
        settings: What it replaces in the recipe.
        content: The recipe with these settings.
        tasks: What its models are evaluated on.
        scores: Task and metric by heading.
    """

    levels: Mapping[str, str]
    recipe: str
    settings: Mapping[str, Any]
    content: Recipe
    tasks: str
    scores: Mapping[str, tuple[str, str]]

    @cached_property
    def name(self) -> str:
        """Its levels, such as ``tokens, 3M``."""
        return ", ".join(self.levels.values()) or self.recipe

    @cached_property
    def slug(self) -> str:
        """The name as part of file names."""
        return re.sub(r"[^A-Za-z0-9.]+", "-", self.name).strip("-.") or "all"

    def line(self, trend: Trend | None) -> str:
        """Its levels without that of the trend: conditions that a line of a figure joins."""
        left = [level for factor, level in self.levels.items() if trend and factor != trend.factor]
        return ", ".join(left)


@dataclass(frozen=True)
class Cell:
    """A model of the experiment: a condition and a seed."""

    condition: Condition
    seed: int

    @property
    def name(self) -> str:
        """The name of its files."""
        return f"{self.condition.slug}-seed-{self.seed}"

    @property
    def title(self) -> str:
        """Its name in tables."""
        return f"{self.condition.name}, seed {self.seed}"


@dataclass(frozen=True)
class Plan:
    """An experiment with its conditions and seeds."""

    about: Experiment
    conditions: tuple[Condition, ...]
    seeds: tuple[int, ...]

    def cells(self, only: str = "") -> list[Cell]:
        """A model for every seed and condition, all of a seed first.

        Args:
            only: A pattern of their names, such as ``*-seed-0``.

        Raises:
            OptionError: No name fits.
        """
        cells = [Cell(one, seed) for seed in self.seeds for one in self.conditions]
        found = [cell for cell in cells if not only or fnmatchcase(cell.name, only)]
        if not found:
            names = ", ".join(cell.name for cell in cells[:3])
            raise OptionError(f"--only {only}: no such model; there are {names} ...")
        return found


def shipped() -> dict[str, Path]:
    """The experiments that ship, by name: ``experiments/*.yaml`` of every benchmark."""
    return {file.stem: file for file in sorted(BENCHMARKS.glob(f"*/experiments/*{SUFFIX}"))}


def read_plan(name: str, *, seeds: str = "", settings: Mapping[str, Any] | None = None) -> Plan:
    """Reads an experiment: a file, or the name of one that ships.

    Args:
        name: The path or the name.
        seeds: Instead of the file's.
        settings: Go before all that the file says, as ``train --set``.

    Raises:
        OptionError: There is no such experiment, or a key or value of it or of a recipe is wrong.
    """
    hint = f"those that ship: {', '.join(shipped())}"
    _, content = read_mapping("experiment", name, shipped(), hint)
    about = checked(Experiment, content, f"experiment {name}")
    conditions = [
        _condition(about, dict(zip(about.factors, levels, strict=True)), settings or {}, name)
        for levels in product(*about.factors.values())
    ]
    by_slug: dict[str, str] = {}
    for one in conditions:
        if (other := by_slug.setdefault(one.slug, one.name)) != one.name:
            raise OptionError(
                f"experiment {name}: {other!r} and {one.name!r} would have the same files; give "
                "their levels names that differ in letters or digits"
            )
    return Plan(about, tuple(conditions), tuple(parse_seeds(seeds or about.seeds)))


def _condition(
    about: Experiment, levels: Mapping[str, str], above: Mapping[str, Any], name: str
) -> Condition:
    settings = dict(about.set)
    for factor, level in levels.items():
        settings |= about.factors[factor][level]
    settings |= above
    recipe = settings.pop(RECIPE, about.recipe)
    told = f"experiment {name}, {', '.join(levels.values())}"
    if not isinstance(recipe, str) or not recipe:
        raise OptionError(f"{told}: no recipe; name one at the top, or in the level's settings")
    try:
        content = read_recipe(recipe, settings)
    except OptionError as error:
        raise OptionError(f"{told}: {error}") from None
    data = content.data
    pairs = {heading: filled(source, data).split() for heading, source in about.scores.items()}
    return Condition(
        levels, recipe, settings, content, filled(about.tasks, data),
        {heading: (task, metric) for heading, (task, metric) in pairs.items()},
    )  # fmt: skip
