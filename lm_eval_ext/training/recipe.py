"""Recipes: YAML files with every choice of a training, checked before anything runs.

A recipe names a source of examples, which prepares its :class:`Material`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

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
from lm_eval_ext.reading import Strict, checked, read_yaml
from lm_eval_ext.registry import recipe_files
from lm_eval_ext.text import quantity

MUON = "muon"


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
    size: int = Field(1000, ge=100)
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
    def _one_of_two(self) -> "Start":
        if bool(self.start) == bool(self.config) or bool(self.config) != bool(self.tokenizer):
            raise ValueError("give start, or config together with tokenizer")
        if self.start[:1] in "/.~" and not Path(self.start).expanduser().is_dir():
            raise ValueError(f"start: no such folder {self.start}")
        return self


class Spans(Strict):
    """Span corruption as T5's (section 3.1.4), on blocks of running text.

    Attributes:
        tokens: How many of the text are used, such as 1M; 0 trains nothing.
        held_out: The share of them that only the loss on the way is computed on.
        block: Tokens of a block, before corruption.
    """

    tokens: Annotated[float, Field(ge=0), BeforeValidator(quantity)]
    held_out: float = Field(0.1, ge=0, lt=0.5)
    block: int = Field(512, ge=16)


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
        max_steps: Optimizer steps, instead of transformers' ``num_train_epochs``.
        spans: For pretraining, instead of examples with answers; without ``max_steps``, the
            passes are corrupted alike.
    """

    optim: str = "adamw_torch_fused"
    embedding_learning_rate: PositiveFloat | None = None
    early_stopping_patience: PositiveInt | None = None
    max_source_length: int = Field(1024, ge=8)
    max_target_length: int = Field(1024, ge=8)
    learning_rate: PositiveFloat
    eval_steps: PositiveInt
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
        title: What it trains, in a line. Options of ``data`` in braces stand for their values,
            here and in ``tasks``.
        paper: Which paper, and where in it or in its code each value comes from.
        departures: Where it does something else, or where nobody knows what the paper did.
        source: The module that prepares the examples (:func:`prepare`).
        data: Options of the source.
        first: Trainings that come first, by the name that others know their folders by.
        gates: By a set of examples that the source knows, the least mean score of greedy answers
            below which the training counts as "did not learn".
        tasks: What the model is for, as ``lm-eval-ext run --tasks`` takes it.
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

    def before(self) -> dict[str, "Recipe"]:
        """The trainings that come first, by name; their seed is this one's."""
        return {
            name: read_recipe(one.extends, dict(one.model_extra or {}, seed=self.seed))
            for name, one in self.first.items()
        }

    def check(self) -> None:
        """Checks what its source declares, and the same of what comes first.

        Raises:
            OptionError: The source does not exist, or an option or a gate is none of its own.
        """
        for one in self.before().values():
            one.check()
        gates = getattr(_source(self.source, self.data)[0], "GATES", ())
        for name in self.gates.keys() - gates:
            legal = ", ".join(gates) or "no gates"
            raise OptionError(f"gates: {self.source} has no {name!r}; it has {legal}")


def planned(name: str, settings: Mapping[str, Any] | None = None) -> dict[str, Recipe]:
    """The models of a recipe by name: a recipe for each, with its levels' settings and title.

    Args:
        name: As :func:`read_recipe`.
        settings: As :func:`read_recipe`; where a level sets the same key, the level's counts.

    Raises:
        OptionError: As :func:`read_recipe`, or an option or a gate of one is not legal.
    """
    whole = read_recipe(name, settings)
    seeds = {f"seed {seed}": {"seed": seed} for seed in whole.seeds}
    factors = [factor.items() for factor in (*whole.vary.values(), seeds) if factor]
    found: dict[str, Recipe] = {}
    for levels in product(*factors):
        own = {key: value for _, level in levels for key, value in level.items()}
        recipe = read_recipe(name, dict(settings or {}) | own)
        recipe.check()
        parts = [level for level, _ in levels]
        title = ", ".join([filled(recipe.title, recipe.data), *parts])
        file = re.sub(r"[^\w.]+", "-", "-".join([Path(name).stem, *parts]))
        found[file] = recipe.model_copy(update={"title": title})
    return found


def parse_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """``key=value`` texts as keys and values; values are YAML.

    Raises:
        OptionError: A text has no ``=``, or the value is not YAML.
    """
    import yaml

    try:
        return {
            key: yaml.safe_load(value)
            for key, value in (pair.split("=", maxsplit=1) for pair in pairs)
        }
    except (ValueError, yaml.YAMLError):
        raise OptionError(
            f"--set {' '.join(pairs)}: write key=value, such as training.max_steps=100"
        ) from None


def shipped() -> dict[str, Path]:
    """The recipes that ship, by name: ``recipes/*.yaml`` of every benchmark."""
    return recipe_files()


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
        for part in reversed(key.split(".")):
            value = {part: value}  # noqa: PLW2901
        content = _merged(content, value)
    return checked(Recipe, content, f"recipe {name}")


def filled(value: Any, names: Mapping[str, Any]) -> Any:
    """Options with what stands for names in braces."""
    if isinstance(value, Mapping):
        return {key: filled(one, names) for key, one in value.items()}
    if isinstance(value, str):
        for name, meaning in names.items():
            value = value.replace(f"{{{name}}}", str(meaning))
    return value


def _content(name: str, folder: Path = Path()) -> Any:
    """A recipe's keys, with those of the recipe that it extends, which may lie beside it."""
    file = folder / name
    if not file.is_file() and not (file := shipped().get(name, Path())).name:
        told = nearest(name, shipped())
        raise OptionError(f"no recipe {name} (lm-eval-ext train --list has all){told}")
    own = read_yaml(file, TypeAdapter(dict[str, Any]))
    base = own.pop("extends", None)
    return _merged(_content(str(base), file.parent), own) if base else own


def _merged(old: Any, new: Any) -> Any:
    """Mappings are merged; what is empty or names a model replaces what there was."""
    both = isinstance(old, dict) and isinstance(new, dict) and new
    if not both or any(isinstance(new.get(key), str) for key in ("start", "model_type")):
        return new
    return old | {key: _merged(old.get(key), value) for key, value in new.items()}


# --- what a recipe trains on ---

Pair = tuple[str, str]
"""A prompt, exactly as the task asks it, and its answer."""


class Material(NamedTuple):
    """What a source prepares.

    Attributes:
        train: Examples to train on; for running text, a document in each answer.
        dev: Examples whose loss is computed on the way.
        gates: Sets of examples that a recipe's gates may name.
        facts: What the examples come from, such as checksums of files; for the record.
        score: Scores an answer, given its text and the target's, from 0 to 1; by default 1 for the
            same text, whitespace at its ends aside.
        vocabulary: Texts that a new tokenizer is made from; without any, those to train on.
        whole: Texts that are one token each of a new tokenizer.
        asked: What else the tokenizer must keep, such as what the tasks ask.
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
    score: Callable[[str, str], float] = lambda answer, target: answer.strip() == target.strip()
    vocabulary: Sequence[str] = ()
    whole: Sequence[str] = ()
    asked: Sequence[Pair] = ()
    grow: Callable[[Path, Path], object] | None = None
    model_file: Mapping[str, Any] = {}
    lossy: bool = False
    max_gen_toks: int = 256

    def digest(self) -> str:
        """SHA-256 (hex) over all that is trained on and compared with."""
        return sha256_of_json([self.train, self.dev, dict(self.gates)])


def prepare(source: str, data: Mapping[str, Any], seed: int) -> Material:
    """Asks a source for its material.

    Its module has the pydantic model ``Options``, the function ``prepare(options, seed)``, which
    returns a :class:`Material`, and ``GATES``, the names of the sets that gates may name.

    Raises:
        OptionError: There is no such source, or an option of it is wrong.
        DataError: Data are missing or broken.
    """
    module, options = _source(source, data)
    found: Material = module.prepare(options, seed)
    return found


def _source(source: str, data: Mapping[str, Any]) -> tuple[Any, Any]:
    """The module of a source, and its options."""
    try:
        module = import_module(source)
        model = module.Options
    except (ImportError, AttributeError, ValueError) as error:
        raise OptionError(f"source: no module with Options and prepare ({error})") from None
    return module, checked(model, data, f"data of {source}")
