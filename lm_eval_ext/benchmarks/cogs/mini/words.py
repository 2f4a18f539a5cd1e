"""The words of cogs_mini, as ``words.yaml`` has them."""

from functools import cache
from importlib import resources

import yaml
from pydantic import BaseModel, ConfigDict

VerbForms = tuple[str, str]
"""The past form, which is also the participle, and the lemma."""


class Key(BaseModel):
    """The key words, by what their exposure examples show."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    subj_common: str
    obj_common: str
    primitive: str
    subj_proper: str
    obj_proper: str
    active: VerbForms
    passive: VerbForms


class Words(BaseModel):
    """All words but the grammar's own (a, the, was, by, to, that)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    nouns: tuple[str, ...]
    names: tuple[str, ...]
    places: tuple[str, ...]
    prepositions: tuple[str, ...]
    intransitive: tuple[VerbForms, ...]
    transitive: tuple[VerbForms, ...]
    dative: tuple[VerbForms, ...]
    clausal: tuple[VerbForms, ...]
    key: Key


@cache
def words() -> Words:
    """The embedded words."""
    text = resources.files(__package__).joinpath("words.yaml").read_text(encoding="utf-8")
    return Words.model_validate(yaml.safe_load(text))


def items() -> tuple[str, ...]:
    """The key words in the order of the lexicons' words. Both forms of a verb are items."""
    key = words().key
    return (
        key.subj_common, key.obj_common, key.primitive, key.subj_proper, key.obj_proper,
        *key.active, *key.passive,
    )  # fmt: skip
