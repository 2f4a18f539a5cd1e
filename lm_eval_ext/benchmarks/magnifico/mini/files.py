"""The embedded files: reading them, and what each must hold."""

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Annotated, Literal, TypeAlias, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from lm_eval_ext.benchmarks.magnifico.records import Form, Position
from lm_eval_ext.errors import DataError

_T = TypeVar("_T")

SLOT = "{form}"
"""Stands in a template for the form; for the two of a combination: :data:`PAIR_SLOTS`."""

PAIR_SLOTS = ("{first}", "{second}")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Asked(_Strict):
    """What every template has: the database, the base question, the gold query of both forms."""

    db: str
    base: str
    sql: str


class Template(_Asked):
    """An example before a form is put into ``novel``, the question with the form's place."""

    novel: Annotated[str, Field(pattern=r"\{form\}")]


class Entry(_Strict):
    """An interpretation with its templates; ``support`` ones are held out for few-shot prompts."""

    category: Literal["basic", "subquery", "value", "column", "phrase"]
    meaning: str
    forms: dict[Form, str]
    test: tuple[Template, ...]
    support: tuple[Template, ...]


class Combination(_Asked):
    """A template with two interpretations, ``of``."""

    of: tuple[str, str]
    novel: Annotated[str, Field(pattern=r"\{first\}.*\{second\}")]


Exchange: TypeAlias = tuple[str, str]
"""What User1 says, and what User2 replies."""


class Conversation(_Strict):
    """A dialogue whose definition can go to three places."""

    interpretation: str
    db: str
    opening: Exchange
    definition: Exchange
    first_half: tuple[str, ...]
    second_half: tuple[str, ...]
    closing: Exchange

    def text(self, form: str, position: Position) -> str:
        """Renders the turns, with the definition of a form at a position."""
        parts: list[Sequence[str]] = [
            self.opening, self.first_half, self.second_half, self.closing
        ]  # fmt: skip
        parts.insert({"start": 1, "mid": 2, "end": 3}[position], self.definition)
        turns = [turn.replace(SLOT, form) for part in parts for turn in part]
        return "\n\n".join(f"User{1 + i % 2}: {turn}" for i, turn in enumerate(turns))


def embedded() -> Mapping[str, str]:
    """The texts of all scripts and YAML files by name, sorted, with Unix line ends everywhere."""
    files = resources.files(__package__).iterdir()
    return {
        file.name: file.read_text(encoding="utf-8").replace("\r\n", "\n")
        for file in sorted(files, key=lambda file: file.name)
        if file.name.endswith((".sql", ".yaml"))
    }


def read(texts: Mapping[str, str], name: str, kind: type[_T]) -> _T:
    """Reads one of the YAML files.

    Args:
        texts: The files, as :func:`embedded` gives them.
        name: Which.
        kind: What it holds.

    Raises:
        DataError: It holds something else; the message names the file and the key.
    """
    try:
        return TypeAdapter(kind).validate_python(yaml.safe_load(texts[name]))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"])) or "the whole file"
        raise DataError(f"magnifico_mini: {name}: {key}: {first['msg']}") from None
    except yaml.YAMLError as error:
        raise DataError(
            f"magnifico_mini: {name}: no YAML ({' '.join(str(error).split())})"
        ) from None
