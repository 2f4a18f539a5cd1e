"""Loads DiNeR's documents from the published files, from ``diner build``'s, or from mini."""

from collections import defaultdict
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.benchmarks.diner import mini, prompt
from lm_eval_ext.benchmarks.diner.component_answers import Given, read_answers
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
    describe_many,
)
from lm_eval_ext.reading import Exact

SOURCE, GLOSSARY = "diner", "glossary.json"

OTHER = "other"
"""The category of test names that are in none of the paper's."""

UNPARSED, UNANSWERED = "gold_does_not_parse", "no_component_answers"
"""Reasons why a recipe is not asked about."""


class Recipes(Exact):
    """Which recipes.

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
            found = require_all(SOURCE)
            paths = {file.name: file.path for file in found.files}
            data, glossary = paths["tmcd"], paths["glossary"]
            provenance = describe(found.files)
            return _read(data, glossary, provenance.sha256), provenance
        folder = mini.FOLDER if self.dir is None else Path(self.dir).expanduser()
        data, glossary = folder / f"{self.split}_data.json", folder / GLOSSARY
        for path in (data, glossary):
            if not path.is_file():
                raise DataError(
                    f"diner_dir: {folder} has no {path.name}; name a folder made by lm-eval-ext "
                    "diner build"
                )
        if self.dir is None:
            provenance = describe_embedded("diner_mini", sha256_of(data))
        else:
            sums = {f"{path.stem} recipes": sha256_of(path) for path in (data, glossary)}
            provenance = describe_many([], sums)
        return _read(data, glossary, provenance.sha256), provenance


@lru_cache(maxsize=2)
def _read(data: Path, glossary: Path, _checksum: str) -> Split:
    """Read files of this checksum; cached, as several tasks of a run need the same 125 MB."""
    return read_split(data, Glossary.read(glossary))


class Options(Recipes):
    """The options of a task.

    Attributes:
        ask: What to ask for: the ``name``, the ``components``, or both (``cp``).
        components_file: For ``cp``: lm-eval's log of a model's answers to ``diner_components``,
            which prompts then state before the question.
        wording: Whose component questions: ``ours``, or the ``authors``', which their fine-tuned
            models know.
        demonstrations: How in-context demonstrations are chosen; None: none are shown.
        per_dish: Recipes per dish, drawn at random; 0: all.
        draw_seed: The seed for drawing them.
    """

    ask: Literal["name", "components", "cp"] = "name"
    components_file: str | None = None
    wording: Literal["ours", "authors"] = "ours"
    demonstrations: Literal["instruction", "oracle"] | None = None
    per_dish: int = Field(0, ge=0)
    draw_seed: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _fit(self) -> "Options":
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

    def prompts(self, recipe: Recipe, given: Given) -> dict[str, Any]:
        """The columns with prompts about a recipe, after the components that were given for it."""
        text = recipe.instruction
        if self.ask == "name":
            return {"input": prompt.name_prompt(text)}
        if self.ask == "components":
            return {"context": prompt.component_prompts(text, self.wording)}
        if self.components_file is None:
            return {"input": prompt.one_prompt(text)}
        return {"input": prompt.given_components_prompt(text, given[recipe.id], self.wording)}


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
    excluded = {UNPARSED: [recipe.id for recipe in split.test if not parse(recipe.name)]}
    asked = [one for one in split.test if parse(one.name)]
    asked = drawn(asked, options.per_dish, options.draw_seed)
    given: Given = {}
    if options.components_file is not None:
        given = read_answers(Path(options.components_file).expanduser(), asked)
        excluded[UNANSWERED] = [recipe.id for recipe in asked if recipe.id not in given]
        asked = [one for one in asked if one.id in given]
    excluded = {cause: ids for cause, ids in excluded.items() if ids}
    if not asked:
        causes = ", ".join(f"{cause}: {len(ids)}" for cause, ids in excluded.items())
        raise DataError(
            f"DiNeR: no recipe can be asked about ({causes}); use another split or log of answers"
        )
    known = Categories(split.train_names.values())
    categories = {name: known.of(parse(name) or ()) for name in {one.name for one in asked}}
    rows = [
        {
            "id": one.id,
            "instruction": one.instruction,
            "answer": one.name,
            "category": categories[one.name] or OTHER,
            **options.prompts(one, given),
        }
        for one in asked
    ]
    return TaskData(documents=rows, resources=split, excluded=excluded, provenance=provenance)


def drawn(recipes: list[Recipe], per_dish: int, seed: int) -> list[Recipe]:
    """Shuffles recipes, or ``per_dish`` of each dish unless that is 0.

    Shuffled because files may group recipes by dish.
    """
    if per_dish:
        by_dish: defaultdict[str, list[Recipe]] = defaultdict(list)
        for recipe in recipes:
            by_dish[recipe.name].append(recipe)
        recipes = [
            found[place]
            for name, found in sorted(by_dish.items())
            for place in islice(shuffled(len(found), seed, "per_dish", name), per_dish)
        ]
    return [recipes[place] for place in shuffled(len(recipes), "documents")]
