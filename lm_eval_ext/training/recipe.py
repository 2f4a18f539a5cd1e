"""Recipes: YAML files with every choice of a training, checked before anything runs.

A recipe names a source of examples, which prepares its :class:`Material`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Protocol, TypeAlias, cast, overload

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    TypeAdapter,
    model_validator,
)

from lm_eval_ext.atomic import sha256_of_json
from lm_eval_ext.errors import OptionError, nearest
from lm_eval_ext.harness.model_path import HUB_NAME
from lm_eval_ext.reading import Strict, checked, read_yaml
from lm_eval_ext.registry import recipe_files
from lm_eval_ext.text import quantity

Settings: TypeAlias = Mapping[str, Any]
"""Values that replace those of a recipe, by key, as ``--set`` takes them."""

MUON = "muon"
ADAMW = "adamw_torch_fused"

FINE_TUNING_RATE = 5.0e-5
"""AdamW's learning rate for an existing model, as in the recipe ``cogs_causal``."""


class NewTokenizer(Strict):
    """A tokenizer that is made from the recipe's own texts.

    Attributes:
        kind: ``words``, whole words (decoding joins them by single spaces); ``unigram``, T5's
            kind; or ``bpe``, GPT-2's.
        size: Most tokens of all kinds but ``words``; bytes are further ones.
        pattern: A regular expression that matches one token of ``words``, or what may become one
            piece of the others.
    """

    kind: Literal["words", "unigram", "bpe"] = "words"
    size: int = Field(default=1000, ge=100)
    pattern: str = r"\S+"


class Start(Strict):
    """The model that training starts from: an existing one, or a new one.

    Attributes:
        start: A name on the Hugging Face hub, or a folder. A name of ``first`` in braces stands
            for the folder of that training.
        config: Without ``start``, ``model_type`` and settings of transformers' configuration.
        tokenizer: With ``config``, how its tokenizer is made; or the name or folder of another.
    """

    start: str = ""
    config: dict[str, Any] = {}
    tokenizer: NewTokenizer | str = ""

    @model_validator(mode="after")
    def _check_source(self) -> "Start":
        is_new = bool(self.config)
        if bool(self.start) == is_new or bool(self.tokenizer) != is_new:
            raise ValueError("give start, or config together with tokenizer")
        is_name = HUB_NAME.fullmatch(self.start) or "{" in self.start
        if self.start and not is_name and not Path(self.start).expanduser().is_dir():
            raise ValueError(f"start: no such folder {self.start}")
        return self

    @property
    def is_new(self) -> bool:
        """Whether the model is new, or one that a training of the recipe has made."""
        return not self.start or "{" in self.start


class Spans(Strict):
    """Span corruption as T5's (section 3.1.4), on blocks of running text.

    Attributes:
        tokens: How many of the text are used, such as 1M; 0 trains nothing.
        held_out: The share of them that only the loss on the way is computed on.
        block: Tokens of a block, before corruption.
    """

    tokens: Annotated[float, Field(ge=0), BeforeValidator(quantity)]
    held_out: float = Field(default=0.1, ge=0, lt=0.5)
    block: int = Field(default=512, ge=16)


class Training(BaseModel, extra="allow", frozen=True):
    """How the weights are trained: keys of transformers' ``TrainingArguments``, and these.

    Attributes:
        optim: As transformers names optimizers; or ``muon``: Muon for the hidden matrices, AdamW
            for embeddings, the output, biases and norms.
        embedding_learning_rate: With ``muon``, that of AdamW; None: ``learning_rate``.
        early_stopping_patience: Evaluations without a lower loss after which training stops.
        max_source_length: Most tokens of a prompt, the special ones included.
        max_target_length: Most tokens of an answer.
        eval_steps: Steps between evaluations, each with a checkpoint.
        dev_limit: Examples of the development set whose loss is computed, the first ones; None:
            all of them.
        max_steps: Optimizer steps, instead of transformers' ``num_train_epochs``.
        spans: For pretraining, instead of examples with answers; without ``max_steps``, the
            passes are corrupted alike.
    """

    optim: str = ADAMW
    embedding_learning_rate: PositiveFloat | None = None
    early_stopping_patience: PositiveInt | None = None
    max_source_length: int = Field(default=1024, ge=8)
    max_target_length: int = Field(default=1024, ge=8)
    learning_rate: PositiveFloat
    eval_steps: PositiveInt
    dev_limit: PositiveInt | None = None
    max_steps: PositiveInt | None = None
    per_device_train_batch_size: PositiveInt = 8
    gradient_accumulation_steps: PositiveInt = 1
    spans: Spans | None = None

    @property
    def batch(self) -> int:
        """Examples of an optimizer step, over all processes."""
        return self.per_device_train_batch_size * self.gradient_accumulation_steps


class First(BaseModel, extra="allow", frozen=True):
    """Another training that comes first: keys that replace those of the recipe it extends."""

    extends: str


class Recipe(Strict):
    """One training, or with ``vary`` several.

    Attributes:
        title: The models that it trains, in a line. Options of ``data`` in braces stand for their
            values, here and in ``tasks``.
        paper: Which paper, and where in it or in its code each value comes from.
        departures: Where it does something else, or where nobody knows what the paper did.
        source: The module that prepares the examples (:func:`prepare`).
        data: Options of the source.
        first: Trainings that come first, by the name that others know their folders by.
        gates: For sets of examples that the source knows, the mean score of greedy answers below
            which the training counts as "did not learn".
        tasks: The tasks that the model is for, as ``lm-eval-ext run --tasks`` takes it.
        model_file: More keys of the model file.
        vary: By factor, its levels with their settings, as ``--set`` takes them. There is a
            training for every combination of levels.
        seeds: There is a training for each.
        seed: The seed of weights, order of examples and dropout, if there are no seeds.
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
    vary: dict[str, dict[str, dict[str, Any]]] = {}
    seeds: list[NonNegativeInt] = []
    seed: NonNegativeInt = 0

    def first_recipes(self) -> dict[str, "Recipe"]:
        """Return the trainings that come first, by name; their seed is this one's."""
        recipes = {}
        for name, training in self.first.items():
            settings = dict(training.model_extra or {}, seed=self.seed)
            recipes[name] = read_recipe(training.extends, settings)
        return recipes

    def check(self) -> None:
        """Check what its source declares, and the same of what comes first.

        Raises:
            OptionError: The source does not exist, or an option or a gate is none of its own.
        """
        for recipe in self.first_recipes().values():
            recipe.check()
        source, _ = _read_source(self.source, self.data)
        gates = getattr(source, "GATES", ())
        unknown_gates = self.gates.keys() - gates
        if unknown_gates:
            legal = ", ".join(gates) or "no gates"
            raise OptionError(f"gates: {self.source} has no {min(unknown_gates)!r}; it has {legal}")


def plan_models(name: str, settings: Settings | None = None) -> dict[str, Recipe]:
    """Return the models of a recipe by name: a recipe for each, with its levels' settings.

    Args:
        name: As :func:`read_recipe`.
        settings: As :func:`read_recipe`; where a level sets the same key, the level's counts.

    Raises:
        OptionError: As :func:`read_recipe`, or an option or a gate of one is not legal.
    """
    settings = dict(settings or {}) | optimizer_settings(name, settings or {})
    recipe = read_recipe(name, settings)
    seeds = {f"seed {seed}": {"seed": seed} for seed in recipe.seeds}
    factors = [factor.items() for factor in (*recipe.vary.values(), seeds) if factor]
    models: dict[str, Recipe] = {}
    for levels in product(*factors):
        level_names = [level for level, _ in levels]
        model_settings = dict(settings)
        for _, level_settings in levels:
            model_settings.update(level_settings)
        model_recipe = read_recipe(name, model_settings)
        model_recipe.check()
        title = ", ".join([fill_options(model_recipe.title, model_recipe.data), *level_names])
        model = re.sub(r"[^\w.]+", "-", "-".join([Path(name).stem, *level_names]))
        models[model] = model_recipe.model_copy(update={"title": title})
    return models


def optimizer_settings(name: str, settings: Settings) -> dict[str, Any]:
    """Return settings that replace an optimizer which is for the recipe's new, tiny model.

    Its learning rate would destroy what an existing model has learned.

    Args:
        name: As :func:`read_recipe`.
        settings: The user's; an optimizer or a rate among them is kept.

    Returns:
        The settings; {} unless the user's name a model to start from and no optimizer.
    """
    model = settings.get("model")
    has_start = "model.start" in settings or (isinstance(model, Mapping) and "start" in model)
    has_optimizer = "training.optim" in settings or "training" in settings
    if not has_start or has_optimizer:
        return {}
    recipe = read_recipe(name)
    if not recipe.model.is_new or recipe.training.optim != MUON:
        return {}
    replacing = {
        "training.optim": ADAMW,
        "training.learning_rate": FINE_TUNING_RATE,
        "training.embedding_learning_rate": None,
    }
    return {key: value for key, value in replacing.items() if key not in settings}


def parse_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """Parse ``key=value`` texts, whose values are YAML.

    Raises:
        OptionError: A text has no ``=``, or the value is not YAML.
    """
    import yaml

    settings = {}
    try:
        for pair in pairs:
            key, value = pair.split("=", maxsplit=1)
            settings[key] = yaml.safe_load(value)
    except (ValueError, yaml.YAMLError):
        raise OptionError(
            f"--set {' '.join(pairs)}: write key=value, such as training.max_steps=100"
        ) from None
    return settings


def shipped() -> dict[str, Path]:
    """Return the recipes that ship, by name: ``recipes/*.yaml`` of every benchmark."""
    return recipe_files()


def read_recipe(name: str, settings: Settings | None = None) -> Recipe:
    """Read a recipe: a file, or the name of one that ships.

    Args:
        name: The path or the name.
        settings: Values to replace, by key; a dot leads into a mapping: ``training.max_steps``.

    Raises:
        OptionError: There is no such recipe, or a key or value is wrong.
    """
    content = _read_content(name)
    for key, value in (settings or {}).items():
        nested = value
        for part in reversed(key.split(".")):
            nested = {part: nested}
        content = _merge(content, nested)
    return checked(Recipe, content, f"recipe {name}")


@overload
def fill_options(value: str, names: Mapping[str, object]) -> str: ...


@overload
def fill_options(value: Mapping[str, Any], names: Mapping[str, object]) -> dict[str, Any]: ...


def fill_options(value: object, names: Mapping[str, object]) -> object:
    """Replace names in braces by the values of options, in a text or in all texts of a mapping."""
    if isinstance(value, Mapping):
        return {key: fill_options(entry, names) for key, entry in value.items()}
    if isinstance(value, str):
        for name, meaning in names.items():
            value = value.replace(f"{{{name}}}", str(meaning))
    return value


def _read_content(name: str, folder: Path = Path()) -> dict[str, Any]:
    """Return a recipe's keys, with those of the recipe that it extends.

    Args:
        name: The path or the name.
        folder: The folder that a path starts from.
    """
    file = folder / name
    if not file.is_file():
        shipped_recipes = shipped()
        if name not in shipped_recipes:
            hint = nearest(name, shipped_recipes)
            raise OptionError(f"no recipe {name} (lm-eval-ext train --list has all){hint}")
        file = shipped_recipes[name]
    content = read_yaml(file, TypeAdapter(dict[str, Any]))
    base = content.pop("extends", None)
    if not base:
        return content
    merged: dict[str, Any] = _merge(_read_content(str(base), file.parent), content)
    return merged


def _merge(old: Any, new: Any) -> Any:
    """Merge mappings; one that is empty or names a model replaces the old one.

    Args:
        old: A value of a recipe, which YAML allows to be anything.
        new: The value that goes before it.
    """
    if not isinstance(old, dict) or not isinstance(new, dict) or not new:
        return new
    if any(isinstance(new.get(key), str) for key in ("start", "model_type")):
        return new
    return old | {key: _merge(old.get(key), value) for key, value in new.items()}


# What a recipe trains on.

Pair = tuple[str, str]
"""A prompt, exactly as the task asks it, and its answer."""


def is_same_text(answer: str, target: str) -> float:
    """Return 1 for the same text, whitespace at its ends aside, and 0 for another one."""
    return float(answer.strip() == target.strip())


class Material(NamedTuple):
    """The examples that a source prepares, and all that goes with them.

    Attributes:
        train: Examples to train on; for running text, a document in each answer.
        dev: Examples whose loss is computed on the way.
        gates: Sets of examples that a recipe's gates may name.
        facts: The origin of the examples, such as checksums of files; for the record.
        score: Scores an answer, given its text and the target's, from 0 to 1; by default 1 for the
            same text, whitespace at its ends aside.
        vocabulary: Texts that a new tokenizer is made from; without any, those to train on.
        whole: Texts that are one token each of a new tokenizer.
        asked: Further texts that the tokenizer must keep, such as prompts of the tasks.
        grow: Writes a copy of a model's folder with further tokens into a new folder.
        model_file: Keys of the model file, such as metadata for the tasks.
        lossy: Whether texts that a tokenizer does not keep are counted in the record instead of
            refused: texts that people wrote have characters that it lacks.
        max_gen_toks: As in the ``generation_kwargs`` of the tasks, by default lm-eval's own: a
            model that only decodes gets prompts which leave room for so many tokens.
    """

    train: Sequence[Pair]
    dev: Sequence[Pair] = ()
    gates: Mapping[str, Sequence[Pair]] = {}
    facts: Mapping[str, Any] = {}
    score: Callable[[str, str], float] = is_same_text
    vocabulary: Sequence[str] = ()
    whole: Sequence[str] = ()
    asked: Sequence[Pair] = ()
    grow: Callable[[Path, Path], object] | None = None
    model_file: Mapping[str, Any] = {}
    lossy: bool = False
    max_gen_toks: int = 256

    def digest(self) -> str:
        """Return the SHA-256 (hex) of all that is trained on and compared with."""
        return sha256_of_json([self.train, self.dev, dict(self.gates)])


class Source(Protocol):
    """A module that prepares the examples of recipes. It may have ``GATES``, names of sets."""

    Options: type[BaseModel]

    def prepare(self, options: Any, seed: int) -> Material:
        """Return the material, given the options that ``Options`` has checked."""
        ...


def prepare(source: str, data: Mapping[str, Any], seed: int) -> Material:
    """Let a source prepare its material.

    Its module has the pydantic model ``Options``, the function ``prepare(options, seed)``, which
    returns a :class:`Material`, and ``GATES``, the names of the sets that gates may name.

    Raises:
        OptionError: There is no such source, or an option of it is wrong.
        DataError: Data are missing or broken.
    """
    module, options = _read_source(source, data)
    return module.prepare(options, seed)


def _read_source(source: str, data: Mapping[str, Any]) -> tuple[Source, BaseModel]:
    """Return the module of a source, and its options."""
    try:
        module = cast(Source, import_module(source))
        options_model = module.Options
    except (ImportError, AttributeError, ValueError) as error:
        raise OptionError(f"source: no module with Options and prepare ({error})") from None
    return module, checked(options_model, data, f"data of {source}")
