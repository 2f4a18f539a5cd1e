"""Recipes: YAML files with every choice of a training, checked before anything runs."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, field_validator, model_validator

from lm_eval_ext.errors import OptionError, nearest
from lm_eval_ext.reading import Strict, checked, read_yaml
from lm_eval_ext.text import quantity

PACKAGE = Path(__file__).parents[1]
MUON = "muon"


class NewTokenizer(Strict):
    """A tokenizer that is made from the recipe's own texts.

    Attributes:
        kind: ``words``, whole words (decoding joins them by single spaces); ``unigram``, T5's
            kind; or ``bpe``, GPT-2's.
        size: Most tokens of all kinds but ``words``; bytes are further ones.
        pattern: A regular expression that matches one token of ``words``, or what may become one
            piece of the others; "" is GPT-2's, for ``bpe``, and otherwise what has no spaces.
    """

    kind: Literal["words", "unigram", "bpe"] = "words"
    size: int = Field(1000, ge=100)
    pattern: str = ""


class Start(Strict):
    """The model that training starts from: an existing one, or a new one.

    Attributes:
        start: A name on the Hugging Face hub, or a folder. A name of ``first`` in braces stands
            for the folder of that training, ``{seed}`` for the seed.
        revision: Of a name on the hub.
        weights: ``pretrained``, or ``new``: only sizes and tokenizer are those of ``start``.
        config: Without ``start``, ``model_type`` and settings of transformers' configuration.
        tokenizer: With ``config``, how its tokenizer is made.
    """

    start: str = ""
    revision: str = ""
    weights: Literal["pretrained", "new"] = "pretrained"
    config: dict[str, Any] = {}
    tokenizer: NewTokenizer | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> "Start":
        if bool(self.start) == bool(self.config) or bool(self.config) != bool(self.tokenizer):
            raise ValueError("give start, or config together with tokenizer")
        return self


class Spans(Strict):
    """Span corruption as T5's (section 3.1.4), on blocks of running text.

    Attributes:
        tokens: How many of the text are used, such as 1M; 0 trains nothing.
        held_out: The share of them that only the loss on the way is computed on.
        block: Tokens of a block, before corruption.
    """

    tokens: float
    held_out: float = Field(0.1, ge=0, lt=0.5)
    block: int = Field(512, ge=16)

    @field_validator("tokens", mode="before")
    @classmethod
    def _number(cls, value: Any) -> float:
        if (found := quantity(value)) is None or found < 0:
            raise ValueError("must be a number of tokens such as 300K or 1M")
        return found


class Training(BaseModel):
    """How the weights are trained: keys of transformers' ``TrainingArguments``, and these.

    Attributes:
        optim: As transformers names optimizers; or ``muon``: Muon for the hidden matrices, AdamW
            for embeddings, the output, biases and norms.
        embedding_learning_rate: With ``muon``, that of AdamW; None: ``learning_rate``.
        early_stopping_patience: Evaluations without a lower loss after which training stops.
        max_source_length: Most tokens of a prompt, the special ones included.
        max_target_length: Most tokens of an answer.
        eval_steps: Steps between evaluations, each with a checkpoint.
        max_steps: Optimizer steps, instead of transformers' ``num_train_epochs``.
        spans: For pretraining, instead of examples with answers.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    optim: str = "adamw_torch_fused"
    embedding_learning_rate: float | None = Field(None, gt=0)
    early_stopping_patience: int | None = Field(None, ge=1)
    max_source_length: int = Field(1024, ge=8)
    max_target_length: int = Field(1024, ge=8)
    learning_rate: float = Field(gt=0)
    eval_steps: int = Field(ge=1)
    max_steps: int | None = Field(None, ge=1)
    per_device_train_batch_size: int = Field(8, ge=1)
    gradient_accumulation_steps: int = Field(1, ge=1)
    spans: Spans | None = None

    @model_validator(mode="after")
    def _consistent(self) -> "Training":
        if self.spans and self.max_steps is None:
            raise ValueError("with spans, give max_steps: corrupted text has no epochs")
        return self

    @property
    def batch(self) -> int:
        """Examples of an optimizer step, over all processes."""
        return self.per_device_train_batch_size * self.gradient_accumulation_steps


class First(Strict):
    """Another training that comes first.

    Attributes:
        recipe: Its recipe: a file, or the name of one that ships.
        set: Keys and values, as ``--set`` takes them.
    """

    recipe: str
    set: dict[str, Any] = {}


class Recipe(Strict):
    """One training, or with ``vary`` several.

    Attributes:
        title: What it trains, in a line. Options of ``data`` in braces stand for their values,
            here and in ``tasks``.
        paper: Which paper, and where in it or in its code each value comes from.
        departures: Where it does something else, or where nobody knows what the paper did.
        source: What prepares the examples: a benchmark, or ``text``.
        data: Options of the source.
        first: Trainings that come first, by the name that others know their folders by.
        gates: By a set of examples that the source knows, the least mean score of greedy answers
            below which the training counts as "did not learn".
        tasks: What the model is for, as ``lm-eval-ext run --tasks`` takes it.
        model_file: More keys of the model file.
        vary: By factor, its levels with their settings, as ``--set`` takes them. There is a
            training for every combination of levels.
        seeds: As ``--seeds`` takes them, if that is not given.
        seed: Of weights, order of examples and dropout, if there are no seeds.
    """

    title: str
    paper: str
    departures: list[str]
    source: str
    data: dict[str, Any] = {}
    first: dict[str, First] = {}
    model: Start
    training: Training
    gates: dict[str, Annotated[float, Field(ge=0, le=1)]] = {}
    tasks: str = ""
    model_file: dict[str, Any] = {}
    vary: dict[str, Annotated[dict[str, dict[str, Any]], Field(min_length=1)]] = {}
    seeds: str = ""
    seed: int = Field(0, ge=0, lt=2**32)


@dataclass(frozen=True)
class Planned:
    """A model that a recipe trains.

    Attributes:
        recipe: With the settings of its levels.
        seed: Of this model.
        name: Of its model file; with seeds or levels, also of its folder in the output folder.
        title: Its name in tables.
        folder: Below the output folder.
    """

    recipe: Recipe
    seed: int
    name: str
    title: str
    folder: str


def planned(
    name: str, settings: Mapping[str, Any] | None = None, seeds: str = "", only: str = ""
) -> list[Planned]:
    """The models of a recipe, all of a seed first.

    Args:
        name: As :func:`read_recipe`.
        settings: As :func:`read_recipe`; they replace those of levels, too.
        seeds: ``0-4`` or ``0,2,7``; without any, the recipe's.
        only: A pattern of names, such as ``*-seed-0``.

    Raises:
        OptionError: As :func:`read_recipe`; or two levels have one name, or no name fits.
    """
    whole = read_recipe(name, settings)
    several = _seeds(seeds or whole.seeds)
    found: dict[str, Planned] = {}
    for seed in several or [whole.seed]:
        for levels in product(*(factor.items() for factor in whole.vary.values())):
            own = {key: value for _, level in levels for key, value in level.items()}
            recipe = read_recipe(name, own | dict(settings or {}))
            parts = [level for level, _ in levels] + [f"seed {seed}"] * bool(several)
            slug = re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(parts)).strip("-.")
            if slug in found:
                raise OptionError(f"recipe {name}: two of its models would both be {slug!r}")
            first = [] if levels else [filled(recipe.title, recipe.data)]
            file = slug if levels else "-".join(filter(None, [Path(name).stem, slug]))
            found[slug] = Planned(recipe, seed, file, ", ".join([*first, *parts]), slug)
    fitting = [one for one in found.values() if fnmatchcase(one.name, only or "*")]
    if not fitting:
        names = ", ".join(one.name for one in found.values())
        raise OptionError(f"--only {only}: no such model; there are {names}")
    return fitting


def _seeds(text: str) -> list[int]:
    try:
        ends = [[int(end) for end in part.split("-")] for part in text.split(",") if text]
        found = [seed for first, *last in ends for seed in range(first, [first, *last][-1] + 1)]
    except ValueError:
        found = []
    if text and not found:
        raise OptionError(f"--seeds {text}: write numbers and ranges, such as 0-4 or 0,2,7")
    return list(dict.fromkeys(found))


def parse_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """``key=value`` texts as keys and values; values are YAML.

    Raises:
        OptionError: A text has no ``=``, or the value is not YAML.
    """
    import yaml

    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        try:
            found[key.strip()] = yaml.safe_load(value)
        except yaml.YAMLError:
            equals = ""
        if not equals or not key:
            raise OptionError(f"--set {pair}: write key=value, such as training.max_steps=100")
    return found


def shipped() -> dict[str, Path]:
    """The recipes that ship, by name: ``recipes/*.yaml`` of every benchmark."""
    return {file.stem: file for file in sorted(PACKAGE.glob("**/recipes/*.yaml"))}


def read_recipe(name: str, settings: Mapping[str, Any] | None = None) -> Recipe:
    """A recipe: a file, or the name of one that ships.

    Args:
        name: The path or the name.
        settings: Values to replace, by key; a dot leads into a mapping: ``training.max_steps``.

    Raises:
        OptionError: There is no such recipe, or a key or value is wrong.
    """
    content = _content(name)
    for key, value in (settings or {}).items():
        # What follows "set." is one key there: it is taken apart when that recipe is read.
        head, nested, rest = key.partition(".set.")
        *path, last = [*head.split("."), "set", rest] if nested else head.split(".")
        place: Any = content
        for part in path:
            old = place.get(part)
            place[part] = dict(old) if isinstance(old, dict) else {}
            place = place[part]
        place[last] = value
    return checked(Recipe, content, f"recipe {name}")


def filled(value: Any, names: Mapping[str, Any]) -> Any:
    """Options with what stands for names in braces."""
    if isinstance(value, Mapping):
        return {key: filled(one, names) for key, one in value.items()}
    if isinstance(value, str):
        for name, meaning in names.items():
            value = value.replace(f"{{{name}}}", str(meaning))
    return value


def _content(name: str) -> dict[str, Any]:
    """A recipe's keys, with those of the recipe that it extends."""
    file = Path(name) if Path(name).is_file() else shipped().get(name)
    if file is None:
        told = nearest(name, shipped())
        raise OptionError(f"no recipe {name} (lm-eval-ext train --list has all){told}")
    own = read_yaml(file, TypeAdapter(dict[str, Any]))
    if "extends" not in own:
        return own
    base = str(own.pop("extends"))
    found = _content(str(file.parent / base) if (file.parent / base).is_file() else base)
    for key, value in own.items():
        # Values of a mapping are replaced one by one, but an empty one or a model as a whole.
        merged = key != "model" and value and isinstance(value, dict) and key in found
        found[key] = {**found[key], **value} if merged else value
    return found
