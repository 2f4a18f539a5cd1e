"""The glossary of foods, actions and flavours: parsing dish names and cleaning titles.

Names are parsed by maximal matching, and synonyms, such as two words for chicken feet, are the
same component (paper, section 3.2). Names come from titles of recipes without "non-Chinese
characters and content inside the parentheses" (section 3.1). They are compared in simplified
characters, whichever they are written in.
"""

import functools
import json
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import StringConstraints, TypeAdapter, ValidationError

from lm_eval_ext.atomic import sha256_of_text
from lm_eval_ext.errors import DataError, first_problem
from lm_eval_ext.reading import Exact, read_yaml

KINDS = ("food", "action", "flavour")
"""The kinds of components: the keys of the published ``glossary.json``."""

# Titles.

_CHINESE = "〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # noqa: RUF001
CHINESE = re.compile(f"[{_CHINESE}]")
NOT_CHINESE = re.compile(f"[^{_CHINESE}]+")
"""Letters, digits, punctuation, emojis, kana and spaces among them."""

_RUN = re.compile(f"[{_CHINESE}]+")

_PAIRS = ("(（﹙:)）﹚", "[［:]］", "{｛:}｝", "<＜〈:>＞〉", "【〖〔〘〚︻:】〗〕〙〛︼")  # noqa: RUF001
"""Opening and closing brackets of each shape; recipe authors mix ASCII and full-width ones.

Corner brackets and 《》 are missing because they are quotation marks in Chinese: they enclose the
name itself.
"""


def _bracketed(pair: str) -> str:
    opening, closing = map(re.escape, pair.split(":"))
    return f"[{opening}][^{opening}{closing}]*[{closing}]"


_BRACKETED = re.compile("|".join(map(_bracketed, _PAIRS)))
"""An innermost pair of brackets with its content."""

NESTING = 3
"""Levels of bracketed text that are removed; of brackets nested deeper, the content stays."""


def unbracketed(text: str) -> str:
    """Return the text without brackets and what they enclose."""
    for _ in range(NESTING):
        text = _BRACKETED.sub("", text)
    return text


def clean_name(title: str) -> str:
    """Make a dish name of a recipe's title; may be empty.

    Removes bracketed text and all characters that are not Chinese, so of an unpaired bracket
    only the bracket itself.
    """
    return NOT_CHINESE.sub("", unbracketed(title))


def simplified(text: str) -> str:
    """Return the text with simplified characters for traditional ones, by OpenCC's table t2s.

    Words that are written with such a character in simplified script, too, stay (蒜薹).
    """
    # Runs of Chinese only: OpenCC refuses half surrogates, which JSON may contain.
    return _RUN.sub(_simplified_run, text)


def _simplified_run(run: re.Match[str]) -> str:
    return str(_converter().convert(run[0]))


@functools.cache
def _converter() -> Any:
    from opencc import OpenCC

    return OpenCC("t2s")


# Names.


@dataclass(frozen=True, order=True)
class Component:
    """A class of words that a dish name can be made of.

    Attributes:
        kind: One of :data:`KINDS`.
        name: The word that names the class. It need not be in the glossary itself: the names of
            40 published classes are not.
    """

    kind: str
    name: str


Components = tuple[Component, ...]

_Word = Annotated[str, StringConstraints(pattern=r"^\S+$")]


class _File(Exact):
    """Words and their classes, by kind."""

    food: dict[_Word, _Word]
    action: dict[_Word, _Word]
    flavour: dict[_Word, _Word]


class Glossary:
    """Words and their classes; immutable.

    Classes are taken literally: a class named by a word that belongs to another class (the
    published glossary has one) is separate from that class. Only this gives the 413 classes of
    food that the paper counts.
    """

    def __init__(self, content: object) -> None:
        """Take ``{kind: {word: class}}``; words and classes become simplified characters.

        Raises:
            DataError: The content is no such mapping, or has no words, or has a word twice.
        """
        try:
            kinds = _File.model_validate(content).model_dump()
        except ValidationError as error:
            raise DataError(
                f"not a glossary ({first_problem(error)}); it must be an object of three objects, "
                '{"food": {word: class}, "action": ..., "flavour": ...}, with words without space'
            ) from None
        self._components: dict[str, Component] = {}
        for kind, words in kinds.items():
            for word, name in words.items():
                self._add(simplified(word), Component(kind, simplified(name)))
        if not self._components:
            raise DataError("the glossary has no words")
        self._words: defaultdict[Component, list[str]] = defaultdict(list)
        for word in sorted(self._components):
            self._words[self._components[word]].append(word)
        longest_first = sorted(self._components, key=len, reverse=True)
        self._word = re.compile("|".join(map(re.escape, longest_first)))

    def _add(self, word: str, component: Component) -> None:
        earlier = self._components.setdefault(word, component)
        if earlier != component:
            raise DataError(
                f"the glossary has {word!r} as {earlier.kind} {earlier.name!r} and as "
                f"{component.kind} {component.name!r} (simplified characters); a word has only one "
                "class: remove one of them"
            )

    @classmethod
    def read(cls, path: Path) -> "Glossary":
        """Read a file like the published ``glossary.json``.

        Raises:
            DataError: The file cannot be read, or is not a glossary in JSON.
        """
        content = read_yaml(path, TypeAdapter(_File)).model_dump()
        try:
            return cls(content)
        except DataError as error:
            raise DataError(f"{path}: {error}") from error

    def words(self, component: Component) -> tuple[str, ...]:
        """Return the synonyms for a component, sorted; none for an unknown component."""
        return tuple(self._words.get(component, ()))

    def as_dict(self) -> dict[str, dict[str, str]]:
        """Return the glossary's content, words sorted."""
        classes: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
        for word, component in sorted(self._components.items()):
            classes[component.kind][word] = component.name
        return classes

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of words and classes, independent of their order in a file."""
        text = json.dumps(self.as_dict(), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        return sha256_of_text(text)

    def words_in(self, name: str) -> tuple[str, ...] | None:
        """Return the words of a name by maximal matching.

        From the left, always the longest word that fits is taken, without backtracking.

        Returns:
            None if no word fits at some position; () for "".
        """
        words = tuple(self._word.findall(name))
        if "".join(words) != name:
            return None
        return words

    def parse(self, name: str) -> Components | None:
        """Return the components of a name, in order, repeats kept; None if it does not parse."""
        words = self.words_in(name)
        if words is None:
            return None
        return tuple(self._components[word] for word in words)
