"""Reads and validates the embedded files."""

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Annotated, Literal, TypeAlias, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from lm_eval_ext.benchmarks.magnifico.records import Form, Position
from lm_eval_ext.errors import DataError, first_problem

_T = TypeVar("_T")

SLOT = "{form}"
"""The form's placeholder in a template; a combination has :data:`PAIR_SLOTS`."""

PAIR_SLOTS = ("{first}", "{second}")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Asked(_Strict):
    """What all templates have: the database, the base question, and the gold query."""

    db: str
    base: str
    sql: str


class Template(_Asked):
    """An example whose question ``novel`` has a placeholder for the form."""

    novel: Annotated[str, Field(pattern=r"\{form\}")]


class Entry(_Strict):
    """An interpretation with its templates; ``support`` is held out for few-shot prompts."""

    category: Literal["basic", "subquery", "value", "column", "phrase"]
    meaning: str
    forms: dict[Form, str]
    test: tuple[Template, ...]
    support: tuple[Template, ...]


class Combination(_Asked):
    """A template with the two interpretations ``of``."""

    of: tuple[str, str]
    novel: Annotated[str, Field(pattern=r"\{first\}.*\{second\}")]


Exchange: TypeAlias = tuple[str, str]
"""What User1 says and what User2 replies."""


class Conversation(_Strict):
    """A dialogue whose definition can be at three positions."""

    interpretation: str
    db: str
    opening: Exchange
    definition: Exchange
    first_half: tuple[str, ...]
    second_half: tuple[str, ...]
    closing: Exchange

    def text(self, form: str, position: Position) -> str:
        """Renders the dialogue with the definition of a form at a position."""
        parts: list[Sequence[str]] = [
            self.opening, self.first_half, self.second_half, self.closing
        ]  # fmt: skip
        parts.insert({"start": 1, "mid": 2, "end": 3}[position], self.definition)
        turns = [turn.replace(SLOT, form) for part in parts for turn in part]
        return "\n\n".join(f"User{1 + i % 2}: {turn}" for i, turn in enumerate(turns))


def embedded() -> Mapping[str, str]:
    """The texts of all scripts and YAML files by name, sorted, with Unix line ends."""
    files = resources.files(__package__).iterdir()
    return {
        file.name: file.read_text(encoding="utf-8").replace("\r\n", "\n")
        for file in sorted(files, key=lambda file: file.name)
        if file.name.endswith((".sql", ".yaml"))
    }


def read(texts: Mapping[str, str], name: str, kind: type[_T]) -> _T:
    """Reads a YAML file of :func:`embedded` as a type.

    Raises:
        DataError: The content is wrong; the message names the file and the key.
    """
    try:
        return TypeAdapter(kind).validate_python(yaml.safe_load(texts[name]))
    except ValidationError as error:
        raise DataError(f"magnifico_mini: {name}: {first_problem(error)}") from None
    except yaml.YAMLError as error:
        raise DataError(
            f"magnifico_mini: {name}: not YAML ({' '.join(str(error).split())})"
        ) from None
