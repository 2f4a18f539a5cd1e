"""DiNeR's material for training: names, component questions, CP-FT, and text to pretrain on.

The paper's section 4 says what is trained; the recipes say with which values.
"""

import json
import random
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.benchmarks.diner import generated, load
from lm_eval_ext.benchmarks.diner.component_answers import ComponentsById, components_in, read_answers
from lm_eval_ext.benchmarks.diner.extract import name_of
from lm_eval_ext.benchmarks.diner.glossary import Glossary
from lm_eval_ext.benchmarks.diner.prompt import (
    ASKED_KINDS,
    AUTHORS,
    component_prompts,
    given_components_prompt,
    name_prompt,
)
from lm_eval_ext.benchmarks.diner.records import TRAIN, VALID, Recipe, Split
from lm_eval_ext.benchmarks.diner.score import counts, set_counts
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.fewshot import shuffled
from lm_eval_ext.reading import checked
from lm_eval_ext.training.command import RECORD
from lm_eval_ext.training.recipe import Material, Pair
from lm_eval_ext.training.starting import answers_of, processes

DEV, WRITTEN = GATES = "dev", "written"
"""The gates: the validation set; of diner_mini, its validation recipes that people wrote."""

DEV_RECIPES = 200
"""Generated recipes of diner_mini's development set."""

PREDICTIONS = "components.jsonl"
"""In the folder of an auxiliary model: its answers, as lm-eval logs those of a task."""

MOST_TOKENS = 16
"""The longest such answer, as in the authors' code."""


class Options(load.Recipes):
    """What a recipe's ``data`` may say: which recipes, as in the tasks, and these.

    Attributes:
        share: The share of the training recipes that is used; the paper's figure 5 has .2 to 1.
        generated: So many generated recipes besides those of ``mini``.
        ask: For the ``name``; for the ``components``, as an auxiliary model is asked; ``cp``,
            for the name after an auxiliary model's components; or ``text``, running text.
        auxiliary: For ``cp``: the folder of the auxiliary model.
        recipes: For ``text``: XiaChuFang's file.
    """

    share: float = Field(1.0, gt=0, le=1)
    generated: int = Field(0, ge=0)
    ask: Literal["name", "components", "cp", "text"] = "name"
    auxiliary: str = ""
    recipes: str | None = None

    @model_validator(mode="after")
    def _fit(self) -> "Options":
        if (self.ask == "cp") != bool(self.auxiliary):
            raise ValueError("auxiliary is for ask: cp, which needs it")
        if self.generated and self.corpus != "mini":
            raise ValueError("generated recipes go with corpus: mini")
        if (self.ask == "text") != bool(self.recipes):
            raise ValueError("recipes, XiaChuFang's file, are for ask: text, which needs them")
        return self


def prepare(options: Options, seed: int) -> Material:
    """The material of a recipe.

    Raises:
        DataError: A file is missing or broken.
    """
    split = options.read()[0]
    if options.recipes is not None:
        from lm_eval_ext.benchmarks.diner.build import documents

        names = {one.name for one in (*split.train, *split.test)}
        found = documents(Path(options.recipes).expanduser(), names)
        random.Random(f"documents {seed}").shuffle(found)
        texts = [("", text) for text in found]
        return Material(texts, facts={"documents": len(found)})
    train, dev = _parts(options, split, seed)
    gates = {DEV: DEV if options.generated else VALID, WRITTEN: VALID}
    asked = {
        gate: [one for one in _of(part, dev) if split.glossary.parse(one.name)]
        for gate, part in gates.items()
    }
    given: ComponentsById = {}
    if options.ask == "cp":
        _check_auxiliary(options)
        # Those of test recipes are kept for the task.
        given = _predictions(Path(options.auxiliary), [*train, *dev, *split.test])
    pairs = partial(_pairs, ask=options.ask, glossary=split.glossary, seed=seed, given=given)
    return Material(
        pairs(train),
        pairs(dev),
        {name: pairs(some) for name, some in asked.items()},
        {"glossary": split.glossary.digest},
        score=partial(_score, glossary=split.glossary, names=options.ask != "components"),
        lossy=True,
        max_gen_toks=128 if options.ask == "cp" else 64,
        model_file=_model_file(options),
    )


def _parts(options: Options, split: Split, seed: int) -> tuple[list[Recipe], list[Recipe]]:
    """Training recipes, their share, and the validation set."""
    train, valid = _of(TRAIN, split.train), _of(VALID, split.train)
    count = max(1, round(options.share * len(train)))
    # A smaller share is a part of every larger one.
    kept = sorted(islice(shuffled(len(train), "share", seed), count))
    train = [train[place] for place in kept]
    if options.generated:
        # Those of the development set are the same for every seed, and in no training set.
        held = list(islice(generated.recipes("dev"), DEV_RECIPES))
        texts = {text for text, _ in held}
        drawn = (pair for pair in generated.recipes(seed) if pair[0] not in texts)
        train += _numbered("generated", islice(drawn, options.generated))
        valid += _numbered(DEV, held)
    return train, valid


def _of(part: str, recipes: Iterable[Recipe]) -> list[Recipe]:
    return [one for one in recipes if one.id.startswith(f"{part}-")]


def _numbered(kind: str, pairs: Iterable[tuple[str, str]]) -> list[Recipe]:
    return [Recipe(f"{kind}-{number}", *pair) for number, pair in enumerate(pairs)]


def _check_auxiliary(options: Options) -> None:
    """Refuses a model that answers other questions, or was trained on other recipes."""
    model = options.auxiliary
    try:
        recipe = json.loads((Path(model) / RECORD).read_text(encoding="utf-8"))["recipe"]
    except (OSError, ValueError, KeyError):
        raise OptionError(f"{model}: no training; name a folder that a recipe trained") from None
    its = checked(Options, recipe["data"] if recipe["source"] == __name__ else {}, f"{model}, data")
    same = ("corpus", "split", "dir", "share", "generated")
    wanted = {name: getattr(options, name) for name in same} | {"ask": "components"}
    for name, value in wanted.items():
        if (found := getattr(its, name)) != value:
            raise OptionError(
                f"{model}: trained with data.{name} {found!r}, and here an auxiliary model with "
                f"{value!r} is needed; train one, or change the option here"
            )


def _predictions(model: Path, recipes: Sequence[Recipe]) -> ComponentsById:
    """Asks an auxiliary model about recipes, once: its answers are kept in its folder.

    The authors' answers its own training recipes, too, so that prompts are cleaner in training
    than in the test (paper, section 4). All processes of a launcher must call it.

    Raises:
        OptionError: The model cannot be loaded, or its folder cannot be written.
    """
    file = model / PREDICTIONS
    try:
        if len(kept := read_answers(file, recipes)) == len(recipes):
            return kept
    except (DataError, OptionError):
        pass  # none yet, or about other recipes
    asked = [text for one in recipes for text in component_prompts(one.instruction, AUTHORS)]
    answers = answers_of(model, asked, most=MOST_TOKENS)
    if processes().is_main_process:
        with atomic_text(file) as out:
            for one, place in zip(recipes, range(0, len(answers), len(ASKED_KINDS)), strict=True):
                row = {
                    "doc": {"id": one.id, "instruction": one.instruction},
                    "filtered_resps": answers[place : place + len(ASKED_KINDS)],
                }
                out.write(f"{json.dumps(row, ensure_ascii=False)}\n")
    processes().wait_for_everyone()
    return read_answers(file, recipes)


def _pairs(
    recipes: Sequence[Recipe], *, ask: str, glossary: Glossary, seed: int, given: ComponentsById
) -> list[Pair]:
    """Prompts as the tasks ask them, with answers."""
    if ask == "components":
        return [pair for one in recipes for pair in _component_pairs(one, glossary, seed)]
    if ask == "name":
        return [(name_prompt(one.instruction), one.name) for one in recipes]
    return [
        (given_components_prompt(one.instruction, given[one.id], AUTHORS), one.name)
        for one in recipes
    ]


def _component_pairs(one: Recipe, glossary: Glossary, seed: int) -> list[Pair]:
    """The three questions; several foods are in a random order, joined by a comma."""
    words, named = glossary.words_in(one.name) or (), glossary.parse(one.name) or ()
    drawn = list(zip(words, named, strict=True))
    random.Random(f"order of components {seed} {one.id}").shuffle(drawn)
    answers = [",".join(word for word, of in drawn if of.kind == kind) for kind in ASKED_KINDS]
    return list(zip(component_prompts(one.instruction, AUTHORS), answers, strict=True))


def _score(answer: str, target: str, *, glossary: Glossary, names: bool) -> float:
    """F1 of the components, as the tasks count them; 1 where there is none on either side."""
    if names:
        return counts(target, name_of(answer), glossary).f1
    gold, found = (components_in(text, glossary) for text in (target, answer))
    return set_counts(gold, found).f1 if gold or found else 1.0


def _model_file(options: Options) -> dict[str, Any]:
    """Metadata for the tasks: the prompts that the model was trained with."""
    metadata: dict[str, Any] = {}
    if options.dir is not None:
        metadata["diner_dir"] = str(Path(options.dir).expanduser().absolute())
    if options.ask != "name":
        metadata["diner_wording"] = AUTHORS
        # Tasks that ask for the name have their split in their name.
        if options.split != "tmcd":
            metadata["diner_split"] = options.split
    if options.ask == "cp":
        metadata["diner_components_file"] = str(Path(options.auxiliary) / PREDICTIONS)
    found: dict[str, Any] = {"training_share": options.share}
    return found | ({"metadata": metadata} if metadata else {})
