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
from lm_eval_ext.benchmarks.diner.answers import name_of
from lm_eval_ext.benchmarks.diner.component_answers import (
    ComponentsById,
    components_in,
    read_answers,
)
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
from lm_eval_ext.training.starting import generate_answers, processes

DEV, WRITTEN = GATES = "dev", "written"
"""The gates: the validation set; of diner_mini, its validation recipes that people wrote."""

DEV_RECIPES = 200
"""Generated recipes of diner_mini's development set."""

PREDICTIONS = "components.jsonl"
"""In the folder of an auxiliary model: its answers, as lm-eval logs those of a task."""

MAX_TOKENS = 16
"""The longest such answer, as in the authors' code."""


class Options(load.Recipes):
    """The options in a recipe's ``data``: which recipes, as in the tasks, and these.

    Attributes:
        share: The share of the training recipes that is used; the paper's figure 5 has .2 to 1.
        generated: Number of generated recipes besides those of ``mini``.
        ask: The content of the question: the ``name``; the ``components``, as for an auxiliary
            model; ``cp``, the name after an auxiliary model's components; or ``text``, none, for
            running text.
        auxiliary: The folder of the auxiliary model of ``cp``.
        recipes: XiaChuFang's file, for ``text``.
    """

    share: float = Field(1.0, gt=0, le=1)
    generated: int = Field(0, ge=0)
    ask: Literal["name", "components", "cp", "text"] = "name"
    auxiliary: str = ""
    recipes: str | None = None

    @model_validator(mode="after")
    def _consistent(self) -> "Options":
        if (self.ask == "cp") != bool(self.auxiliary):
            raise ValueError("auxiliary is for ask: cp, which needs it")
        if self.generated and self.corpus != "mini":
            raise ValueError("generated recipes go with corpus: mini")
        if (self.ask == "text") != bool(self.recipes):
            raise ValueError("recipes, XiaChuFang's file, are for ask: text, which needs them")
        return self


def prepare(options: Options, seed: int) -> Material:
    """Return the material of a recipe.

    Raises:
        DataError: A file is missing or broken.
    """
    split = options.read()[0]
    if options.recipes is not None:
        return _running_text(Path(options.recipes).expanduser(), split, seed)
    train, dev = _train_and_dev(options, split, seed)
    answered: ComponentsById = {}
    if options.ask == "cp":
        _check_auxiliary(options)
        # The answers about test recipes are kept for the task.
        answered = _predictions(Path(options.auxiliary), [*train, *dev, *split.test])
    make_pairs = partial(
        _pairs, ask=options.ask, glossary=split.glossary, seed=seed, answered=answered
    )
    gate_recipes = {
        DEV: _of_part(DEV if options.generated else VALID, dev),
        WRITTEN: _of_part(VALID, dev),
    }
    gates = {}
    for gate, recipes in gate_recipes.items():
        gates[gate] = make_pairs(_with_parsed_name(recipes, split.glossary))
    return Material(
        train=make_pairs(train),
        dev=make_pairs(dev),
        gates=gates,
        facts={"glossary": split.glossary.digest},
        score=partial(_score, glossary=split.glossary, are_names=options.ask != "components"),
        lossy=True,
        max_gen_toks=128 if options.ask == "cp" else 64,
        model_file=_model_file(options),
    )


def _running_text(corpus: Path, split: Split, seed: int) -> Material:
    """Return recipes of a corpus that name no dish of the split."""
    from lm_eval_ext.benchmarks.diner.build import documents

    names = {recipe.name for recipe in (*split.train, *split.test)}
    texts = documents(corpus, names)
    random.Random(f"documents {seed}").shuffle(texts)
    return Material([("", text) for text in texts], facts={"documents": len(texts)})


def _train_and_dev(options: Options, split: Split, seed: int) -> tuple[list[Recipe], list[Recipe]]:
    """Return the share of the training recipes, and the validation set."""
    train = _of_part(TRAIN, split.train)
    dev = _of_part(VALID, split.train)
    count = max(1, round(options.share * len(train)))
    # A smaller share is a part of every larger one.
    kept_numbers = sorted(islice(shuffled(len(train), "share", seed), count))
    train = [train[number] for number in kept_numbers]
    if options.generated:
        # The generated development set is the same for every seed, and in no training set.
        generated_dev = list(islice(generated.recipes("dev"), DEV_RECIPES))
        dev_texts = {text for text, _ in generated_dev}
        drawn_recipes = (recipe for recipe in generated.recipes(seed) if recipe[0] not in dev_texts)
        train += _numbered("generated", islice(drawn_recipes, options.generated))
        dev += _numbered(DEV, generated_dev)
    return train, dev


def _of_part(part: str, recipes: Iterable[Recipe]) -> list[Recipe]:
    return [recipe for recipe in recipes if recipe.id.startswith(f"{part}-")]


def _with_parsed_name(recipes: Iterable[Recipe], glossary: Glossary) -> list[Recipe]:
    return [recipe for recipe in recipes if glossary.parse(recipe.name)]


def _numbered(prefix: str, recipes: Iterable[tuple[str, str]]) -> list[Recipe]:
    numbered = []
    for number, (text, name) in enumerate(recipes):
        numbered.append(Recipe(f"{prefix}-{number}", text, name))
    return numbered


def _check_auxiliary(options: Options) -> None:
    """Refuse a model that answers other questions, or was trained on other recipes."""
    model = options.auxiliary
    try:
        recipe = json.loads((Path(model) / RECORD).read_text(encoding="utf-8"))["recipe"]
    except (OSError, ValueError, KeyError):
        raise OptionError(f"{model}: no training; name a folder that a recipe trained") from None
    data = recipe["data"] if recipe["source"] == __name__ else {}
    model_options = checked(Options, data, f"{model}, data")
    required = {
        "corpus": options.corpus,
        "split": options.split,
        "dir": options.dir,
        "share": options.share,
        "generated": options.generated,
        "ask": "components",
    }
    for name, value in required.items():
        trained_with = getattr(model_options, name)
        if trained_with != value:
            raise OptionError(
                f"{model}: trained with data.{name} {trained_with!r}, and here an auxiliary model "
                f"with {value!r} is needed; train one, or change the option here"
            )


def _predictions(model: Path, recipes: Sequence[Recipe]) -> ComponentsById:
    """Ask an auxiliary model about recipes, once: its answers are kept in its folder.

    The authors' model answers its own training recipes, too, so that prompts are cleaner in
    training than in the test (paper, section 4). All processes of a launcher must call this.

    Raises:
        OptionError: The model cannot be loaded, or its folder cannot be written.
    """
    file = model / PREDICTIONS
    try:
        kept_answers = read_answers(file, recipes)
    except (DataError, OptionError):
        kept_answers = {}  # none yet, or about other recipes
    if len(kept_answers) == len(recipes):
        return kept_answers
    prompts: list[str] = []
    for recipe in recipes:
        prompts += component_prompts(recipe.instruction, AUTHORS)
    answers = generate_answers(model, prompts, max_gen_toks=MAX_TOKENS)
    if processes().is_main_process:
        _write_answers(file, recipes, answers)
    processes().wait_for_everyone()
    return read_answers(file, recipes)


def _write_answers(file: Path, recipes: Sequence[Recipe], answers: Sequence[str]) -> None:
    """Write answers as lm-eval logs them, one for each recipe and kind of component."""
    with atomic_text(file) as out:
        for number, recipe in enumerate(recipes):
            start = number * len(ASKED_KINDS)
            row = {
                "doc": {"id": recipe.id, "instruction": recipe.instruction},
                "filtered_resps": answers[start : start + len(ASKED_KINDS)],
            }
            out.write(f"{json.dumps(row, ensure_ascii=False)}\n")


def _pairs(
    recipes: Sequence[Recipe],
    *,
    ask: str,
    glossary: Glossary,
    seed: int,
    answered: ComponentsById,
) -> list[Pair]:
    """Return prompts as in the tasks, with answers."""
    pairs: list[Pair] = []
    for recipe in recipes:
        text = recipe.instruction
        if ask == "components":
            pairs += _component_pairs(recipe, glossary, seed)
        elif ask == "name":
            pairs.append((name_prompt(text), recipe.name))
        else:
            prompt = given_components_prompt(text, answered[recipe.id], AUTHORS)
            pairs.append((prompt, recipe.name))
    return pairs


def _component_pairs(recipe: Recipe, glossary: Glossary, seed: int) -> list[Pair]:
    """Return the three questions; several foods are in a random order, joined by a comma."""
    words = glossary.words_in(recipe.name) or ()
    components = glossary.parse(recipe.name) or ()
    drawn_components = list(zip(words, components, strict=True))
    random.Random(f"order of components {seed} {recipe.id}").shuffle(drawn_components)
    answers = []
    for kind in ASKED_KINDS:
        answers.append(
            ",".join(word for word, component in drawn_components if component.kind == kind)
        )
    return list(zip(component_prompts(recipe.instruction, AUTHORS), answers, strict=True))


def _score(answer: str, target: str, *, glossary: Glossary, are_names: bool) -> float:
    """Return the F1 of the components, as the tasks count them; 1 if neither side has any."""
    if are_names:
        return counts(target, name_of(answer), glossary).f1
    expected = components_in(target, glossary)
    predicted = components_in(answer, glossary)
    if not expected and not predicted:
        return 1.0
    return set_counts(expected, predicted).f1


def _model_file(options: Options) -> dict[str, Any]:
    """Return keys of the model file: metadata for the tasks with the prompts of the training."""
    metadata: dict[str, str] = {}
    if options.dir is not None:
        metadata["diner_dir"] = str(Path(options.dir).expanduser().absolute())
    if options.ask != "name":
        metadata["diner_wording"] = AUTHORS
        # Tasks that ask for the name have their split in their name.
        if options.split != "tmcd":
            metadata["diner_split"] = options.split
    if options.ask == "cp":
        metadata["diner_components_file"] = str(Path(options.auxiliary) / PREDICTIONS)
    model_file: dict[str, Any] = {"training_share": options.share}
    if metadata:
        model_file["metadata"] = metadata
    return model_file
