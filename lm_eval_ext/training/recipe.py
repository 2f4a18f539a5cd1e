"""Recipes: YAML files with every choice of a training, checked before anything runs."""

import types
import typing
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from lm_eval_ext.errors import OptionError, first_problem
from lm_eval_ext.text import one_line, quantity

SUFFIX = ".yaml"
EXTENDS = "extends"
"""The key by which a recipe names another one, whose values it takes where it has none."""


class Strict(BaseModel):
    """Keys that are not declared are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NewTokenizer(Strict):
    """A tokenizer that is made from the recipe's own texts.

    Attributes:
        kind: ``words``, whole words (decoding joins them by single spaces); ``unigram``, T5's
            kind; ``bpe``, GPT-2's; or ``byte_fallback``, Llama's.
        size: Most tokens of all kinds but ``words``; bytes are further ones.
        pattern: A regular expression that matches one token of ``words``, or what may become one
            piece of ``unigram``.
    """

    kind: Literal["words", "unigram", "bpe", "byte_fallback"] = "words"
    size: int = Field(1000, ge=100)
    pattern: str = r"\S+"


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
    """Span corruption (T5, section 3.1.4), on blocks of running text.

    Attributes:
        tokens: How many of the text are used, such as 1M; 0 trains nothing.
        held_out: The share of them that only the loss on the way is computed on.
        block: Tokens of a block, before corruption.
        density: The share of tokens that is replaced.
        length: The mean length of a span.
    """

    tokens: float
    held_out: float = Field(0.1, ge=0, lt=0.5)
    block: int = Field(512, ge=16)
    density: float = Field(0.15, gt=0, lt=0.5)
    length: float = Field(3.0, ge=1)

    @field_validator("tokens", mode="before")
    @classmethod
    def _number(cls, value: Any) -> float:
        if (found := quantity(value)) is None or found < 0:
            raise ValueError("must be a number of tokens such as 300K or 1M")
        return found


class Training(Strict):
    """How the weights are trained; values that a recipe leaves out are the Trainer's.

    Attributes:
        steps: Optimizer steps; or ``epochs`` instead.
        batch_size: Examples of an optimizer step, over all processes and accumulated batches.
        accumulate: Batches that the examples of a step are split into.
        optimizer: ``adamw``, or ``muon``: Muon for the hidden matrices, AdamW for the rest.
        embedding_rate: The learning rate of the rest, that is of embeddings, the output, biases
            and norms; None: ``learning_rate``, which is also meant where nothing else is said.
        schedule: Of the learning rates, as transformers names them; it reaches its end at the
            last step.
        schedule_length: In trainings: a longer schedule than 1 is cut off at the last step.
        clip: Largest norm of the gradient; 0 for any.
        precision: ``fp32``, or ``bf16``: autocast, with weights in fp32.
        max_source: Most tokens of a prompt, the special ones included; so ``max_target``.
        by_length: Whether batches have examples of similar length.
        evaluate_every: Steps between evaluations, each with a checkpoint.
        evaluate_answers: Examples of each gate that evaluations on the way ask for answers.
        watch: What ``patience`` and ``keep: best`` go by: ``loss`` on the development set, or a
            gate's name.
        patience: Evaluations without an improvement after which training stops; None: never.
        keep: The weights of the ``last`` step, or the ``best`` at an evaluation.
        spans: For pretraining, instead of examples with answers.
    """

    steps: int | None = Field(None, ge=1)
    epochs: float | None = Field(None, gt=0)
    batch_size: int = Field(32, ge=1)
    accumulate: int = Field(1, ge=1)
    optimizer: Literal["adamw", "muon"] = "adamw"
    learning_rate: float = Field(gt=0)
    embedding_rate: float | None = Field(None, gt=0)
    schedule: Literal["linear", "constant", "constant_with_warmup", "cosine"] = "linear"
    schedule_length: float = Field(1.0, ge=1)
    warmup_steps: int = Field(0, ge=0)
    weight_decay: float = Field(0.0, ge=0)
    beta2: float = Field(0.999, gt=0, lt=1)
    clip: float = Field(1.0, ge=0)
    precision: Literal["fp32", "bf16"] = "fp32"
    max_source: int = Field(1024, ge=8)
    max_target: int = Field(1024, ge=8)
    by_length: bool = False
    evaluate_every: int = Field(ge=1)
    evaluate_answers: int = Field(0, ge=0)
    watch: str = "loss"
    patience: int | None = Field(None, ge=1)
    keep: Literal["last", "best"] = "last"
    spans: Spans | None = None

    @model_validator(mode="after")
    def _consistent(self) -> "Training":
        if (self.steps is None) == (self.epochs is None):
            raise ValueError("give steps or epochs, one of both")
        if self.spans and self.steps is None:
            raise ValueError("with spans, give steps: corrupted text has no epochs")
        if self.batch_size % self.accumulate:
            raise ValueError(f"batch_size {self.batch_size} is not {self.accumulate} equal parts")
        if self.watch != "loss" and not self.evaluate_answers:
            raise ValueError(f"to watch {self.watch}, evaluate_answers must be at least 1")
        return self


class First(Strict):
    """Another training that comes first.

    Attributes:
        recipe: Its recipe: a file, or the name of one that ships.
        set: Keys and values, as ``--set`` takes them.
    """

    recipe: str
    set: dict[str, Any] = {}


class Recipe(Strict):
    """One training.

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
        launcher: A command that starts several processes, such as ``accelerate launch``.
        seed: Of weights, order of examples and dropout, if ``--seeds`` names none.
    """

    title: str
    paper: str
    departures: list[str]
    source: str
    data: dict[str, Any] = {}
    first: dict[str, First] = {}
    model: Start
    training: Training
    gates: dict[str, float] = {}
    tasks: str = ""
    model_file: dict[str, Any] = {}
    launcher: str = ""
    seed: int = Field(0, ge=0, lt=2**32)

    @model_validator(mode="after")
    def _watched(self) -> "Recipe":
        if self.training.watch not in ("loss", *self.gates):
            names = ", ".join(("loss", *self.gates))
            raise ValueError(f"training.watch {self.training.watch!r} is none of {names}")
        return self


Checked = TypeVar("Checked", bound=BaseModel)


def checked(schema: type[Checked], content: Mapping[str, Any], place: str) -> Checked:
    """Options as their schema has them; a benchmark checks its ``data`` by it, too.

    Raises:
        OptionError: With the place, the key, and the nearest legal one.
    """
    try:
        return schema.model_validate(dict(content))
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        where = problem["loc"]
        legal = _keys(schema, where[:-1]) if problem["type"] == "extra_forbidden" else []
        text = first_problem(error)
        if problem["type"] == "value_error":  # of a group of keys: its input is long, and no help
            path = ".".join(map(str, where))
            text = f"{path}{': ' if path else ''}{problem['ctx']['error']}"
        if legal:
            near = get_close_matches(str(where[-1]), legal, n=1, cutoff=0)
            text += f"; nearest is {near[0]}, of {', '.join(legal)}"
        raise OptionError(f"{place}: {one_line(text, limit=600)}") from None


def _keys(schema: type[BaseModel], where: Sequence[int | str]) -> list[str]:
    """The legal keys at a place in a schema."""
    for part in where:
        field = schema.model_fields.get(str(part))
        found = [] if field is None else [field.annotation]
        while found:
            one = found.pop()
            if isinstance(one, type) and issubclass(one, BaseModel):
                schema = one
                break
            if isinstance(one, types.UnionType) or typing.get_origin(one) in (dict, typing.Union):
                found += typing.get_args(one)
    return list(schema.model_fields)


BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def shipped() -> dict[str, Path]:
    """The recipes that ship, by name: ``recipes/*.yaml`` of every benchmark."""
    return {file.stem: file for file in sorted(BENCHMARKS.glob(f"*/recipes/*{SUFFIX}"))}


def read_recipe(name: str, settings: Mapping[str, Any] | None = None) -> Recipe:
    """A recipe: a file, or the name of one that ships.

    Args:
        name: The path or the name.
        settings: Values to replace, by key; a dot leads into a mapping: ``training.steps``.

    Raises:
        OptionError: There is no such recipe, or a key or value is wrong.
    """
    content = _content(name, ())
    for key, value in (settings or {}).items():
        for part in reversed(key.split(".")):
            value = {part: value}  # noqa: PLW2901 - from the inside out
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


def read_mapping(
    kind: str, name: str, known: Mapping[str, Path], hint: str
) -> tuple[Path, dict[str, Any]]:
    """Reads a YAML file of a user's, or one that ships: its place and its keys.

    Args:
        kind: What the file describes, for errors: ``recipe``.
        name: The path, or a key of ``known``.
        known: Those that ship.
        hint: Ends the line about a name that is not known.

    Raises:
        OptionError: There is no such file, or it is no mapping in YAML.
    """
    import yaml

    place = Path(name) if Path(name).is_file() else known.get(name)
    if place is None:
        near = get_close_matches(name, known, n=1, cutoff=0.5)
        nearest = f"; the nearest name is {near[0]}" if near else ""
        raise OptionError(f"no {kind} {name}{nearest}; {hint}")
    try:
        found = yaml.safe_load(place.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise OptionError(f"{kind} {name}: not YAML ({one_line(str(error), limit=200)})") from None
    if not isinstance(found, dict):
        raise OptionError(f"{kind} {name}: must be a mapping, such as `title: ...`")
    return place, found


def _content(name: str, seen: tuple[str, ...]) -> dict[str, Any]:
    """A recipe's keys, with those of the recipe that it extends."""
    if name in seen:
        raise OptionError(f"recipe {name} extends itself")
    hint = "lm-eval-ext train --list shows those that ship"
    place, found = read_mapping("recipe", name, shipped(), hint)
    base = found.pop(EXTENDS, None)
    if base is None:
        return found
    beside = place.parent / str(base)
    return _merged(_content(str(beside if beside.is_file() else base), (*seen, name)), found)


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Mappings are merged; an empty one, another model and everything else replace what was."""
    found = dict(below)
    for key, value in above.items():
        old = found.get(key)
        if isinstance(old, dict) and isinstance(value, dict) and value:
            another = "model_type" in value or ("start" in value and "config" in old)
            found[key] = value if another else _merged(old, value)
        else:
            found[key] = value
    return found
