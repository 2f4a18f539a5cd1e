"""Loads DiNeR's documents from the published files, from ``diner build``'s, or from mini."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.benchmarks.diner import mini, prompt
from lm_eval_ext.benchmarks.diner.component_answers import ComponentsById, read_answers
from lm_eval_ext.benchmarks.diner.glossary import Glossary
from lm_eval_ext.benchmarks.diner.records import Categories, Recipe, Split, read_split
from lm_eval_ext.data import require_all
from lm_eval_ext.errors import DataError, OptionError, require_extra
from lm_eval_ext.fewshot import shuffled
from lm_eval_ext.harness.loading import TaskData, loader
from lm_eval_ext.harness.provenance import (
    Provenance,
    describe,
    describe_embedded,
    describe_sources,
)
from lm_eval_ext.reading import Exact

SOURCE, GLOSSARY = "diner", "glossary.json"

OTHER = "other"
"""The category of test names that are in none of the paper's."""

UNPARSED, UNANSWERED = "gold_does_not_parse", "no_component_answers"
"""Reasons why a recipe is not in the task."""


class Recipes(Exact):
    """The options that choose recipes.

    Attributes:
        corpus: ``published`` or ``mini``.
        split: ``tmcd`` or ``random``.
        dir: A folder made by ``lm-eval-ext diner build``, used instead of a corpus.
    """

    corpus: Literal["published", "mini"] = "published"
    split: Literal["tmcd", "random"] = "tmcd"
    dir: str | None = None

    @model_validator(mode="after")
    def _available(self) -> "Recipes":
        if self.dir is not None and self.corpus == "mini":
            raise OptionError(
                "diner_dir cannot be used with the mini tasks, whose recipes are embedded; leave "
                "it out, or run other tasks"
            )
        if self.split == "random" and self.dir is None and self.corpus != "mini":
            raise OptionError(
                "the authors' random split is not published; build one with lm-eval-ext diner "
                """build and name its folder: --metadata '{"diner_dir": "FOLDER"}'"""
            )
        return self

    def read(self) -> tuple[Split, Provenance]:
        """Read the split, with where it comes from.

        Raises:
            DataError: A file is unavailable or invalid.
        """
        if self.dir is None and self.corpus == "published":
            published = require_all(SOURCE)
            paths = {file.name: file.path for file in published.files}
            provenance = describe(published.files)
            return _read(paths["tmcd"], paths["glossary"], provenance.sha256), provenance
        folder = mini.FOLDER
        if self.dir is not None:
            folder = Path(self.dir).expanduser()
        data = folder / f"{self.split}_data.json"
        glossary = folder / GLOSSARY
        for path in (data, glossary):
            if not path.is_file():
                raise DataError(
                    f"diner_dir: {folder} has no {path.name}; name a folder made by lm-eval-ext "
                    "diner build"
                )
        if self.dir is None:
            provenance = describe_embedded("diner_mini", sha256_of(data))
        else:
            checksums = {f"{path.stem} recipes": sha256_of(path) for path in (data, glossary)}
            provenance = describe_sources([], checksums)
        return _read(data, glossary, provenance.sha256), provenance


@lru_cache(maxsize=2)
def _read(data: Path, glossary: Path, _checksum: str) -> Split:
    """Read files of this checksum; cached, as several tasks of a run need the same 125 MB."""
    return read_split(data, Glossary.read(glossary))


class Options(Recipes):
    """The options of a task.

    Attributes:
        ask: The content of the question: the ``name``, the ``components``, or both (``cp``).
        components_file: lm-eval's log of a model's answers to ``diner_components``, which the
            prompts of ``cp`` then state before the question.
        wording: The component questions: ``ours``, or the ``authors``', which their fine-tuned
            models know.
        demonstrations: How in-context demonstrations are chosen; None: none are shown.
        per_dish: Recipes per dish, drawn at random; 0: all.
        draw_seed: The seed for drawing recipes.
    """

    ask: Literal["name", "components", "cp"] = "name"
    components_file: str | None = None
    wording: Literal["ours", "authors"] = "ours"
    demonstrations: Literal["instruction", "oracle"] | None = None
    per_dish: int = Field(0, ge=0)
    draw_seed: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _consistent(self) -> "Options":
        if self.components_file is not None and self.ask != "cp":
            raise OptionError(
                "diner_components_file is only for diner_cp; leave it out, or run diner_cp by "
                "itself"
            )
        if self.wording == prompt.AUTHORS and self.ask == "cp" and self.components_file is None:
            raise OptionError(
                "diner_wording authors states components that a model found before: name its "
                "answers with diner_components_file, or use ours"
            )
        return self

    def prompts(self, recipe: Recipe, answered: ComponentsById) -> dict[str, str | list[str]]:
        """Return the columns with prompts about a recipe.

        Args:
            recipe: The recipe.
            answered: Components that a model answered earlier.
        """
        text = recipe.instruction
        if self.ask == "name":
            return {"input": prompt.name_prompt(text)}
        if self.ask == "components":
            return {"context": prompt.component_prompts(text, self.wording)}
        if self.components_file is None:
            return {"input": prompt.one_prompt(text)}
        components = answered[recipe.id]
        return {"input": prompt.given_components_prompt(text, components, self.wording)}


@loader(prefix="diner_", options=Options)
def dataset(options: Options) -> TaskData:
    """Load the test recipes of a split, in a fixed random order; its resource is the split.

    Recipes whose name does not parse cannot be scored and are excluded.

    Raises:
        OptionError: A library is not installed.
        DataError: A file is unavailable or invalid, or no recipe is left.
    """
    if options.demonstrations:
        require_extra("diner", "the choice of demonstrations", "jieba", "bm25s")
    split, provenance = options.read()
    parse = split.glossary.parse
    recipes, unparsed = _divide(split.test, lambda recipe: bool(parse(recipe.name)))
    excluded = {UNPARSED: unparsed}
    recipes = drawn(recipes, options.per_dish, options.draw_seed)
    answered: ComponentsById = {}
    if options.components_file is not None:
        answered = read_answers(Path(options.components_file).expanduser(), recipes)
        recipes, unanswered = _divide(recipes, lambda recipe: recipe.id in answered)
        excluded[UNANSWERED] = unanswered
    excluded = {cause: ids for cause, ids in excluded.items() if ids}
    if not recipes:
        causes = ", ".join(f"{cause}: {len(ids)}" for cause, ids in excluded.items())
        raise DataError(
            f"DiNeR: no recipe can be asked about ({causes}); use another split or log of answers"
        )
    train_names = Categories(split.train_names.values())
    categories: dict[str, str] = {}
    rows = []
    for recipe in recipes:
        if recipe.name not in categories:
            components = parse(recipe.name) or ()
            categories[recipe.name] = train_names.of(components) or OTHER
        rows.append(
            {
                "id": recipe.id,
                "instruction": recipe.instruction,
                "answer": recipe.name,
                "category": categories[recipe.name],
                **options.prompts(recipe, answered),
            }
        )
    return TaskData(documents=rows, resources=split, excluded=excluded, provenance=provenance)


def _divide(
    recipes: Iterable[Recipe], is_usable: Callable[[Recipe], bool]
) -> tuple[list[Recipe], list[str]]:
    """Return the usable recipes, and the ids of all others."""
    usable: list[Recipe] = []
    excluded: list[str] = []
    for recipe in recipes:
        if is_usable(recipe):
            usable.append(recipe)
        else:
            excluded.append(recipe.id)
    return usable, excluded


def drawn(recipes: list[Recipe], per_dish: int, seed: int) -> list[Recipe]:
    """Return recipes, or ``per_dish`` of each dish unless that is 0, in a fixed random order.

    They are shuffled because files may group recipes by dish.
    """
    if per_dish:
        recipes = _draw_per_dish(recipes, per_dish, seed)
    return [recipes[number] for number in shuffled(len(recipes), "documents")]


def _draw_per_dish(recipes: list[Recipe], per_dish: int, seed: int) -> list[Recipe]:
    by_dish: defaultdict[str, list[Recipe]] = defaultdict(list)
    for recipe in recipes:
        by_dish[recipe.name].append(recipe)
    chosen = []
    for name, recipes_of_dish in sorted(by_dish.items()):
        order = shuffled(len(recipes_of_dish), seed, "per_dish", name)
        for number in islice(order, per_dish):
            chosen.append(recipes_of_dish[number])
    return chosen
