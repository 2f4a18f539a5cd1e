"""Titles of recipes made into names of dishes.

The paper (section 3.1) removes "non-Chinese characters and content inside the parentheses".
The patterns are written in what Python's ``re`` and RE2 have in common, so that a database
which cleans a million titles can use the same ones.

The glossary of food, actions and flavours, and the parser of dish names over it.

The paper (section 3.2) parses a name by maximal matching and lets words of one class, such as
two words for chicken feet, stand for the same component.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lm_eval_ext.errors import DataError

_PAIRS = ("(（﹙:)）﹚", "[［:]］", "{｛:}｝", "<＜〈:>＞〉", "【〖〔〘〚︻:】〗〕〙〛︼")  # noqa: RUF001
"""Opening and closing brackets of one shape, ASCII and full width, which authors mix.

Corner brackets and 《》 are quotation marks in Chinese: the name itself stands between them.
"""


def _pattern() -> str:
    parts = []
    for pair in _PAIRS:
        opening, closing = (re.escape(marks) for marks in pair.split(":"))
        parts.append(f"[{opening}][^{opening}{closing}]*[{closing}]")
    return "|".join(parts)


BRACKETED = _pattern()
"""An innermost pair of brackets with what stands between them."""

NESTING = 3
"""So often :data:`BRACKETED` is removed: brackets nested deeper lose only themselves."""

NOT_CHINESE = "[^〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"  # noqa: RUF001
"""Everything but Chinese characters: letters, digits, signs, emojis, kana, space."""

_BRACKETED = re.compile(BRACKETED)
_NOT_CHINESE = re.compile(NOT_CHINESE)


def clean_name(title: str) -> str:
    """The name of the dish in a recipe's title.

    Args:
        title: Any text.

    Returns:
        The title without bracketed text and without characters that are not Chinese; may be
        empty. A bracket without its partner is removed alone.
    """
    for _ in range(NESTING):
        title = _BRACKETED.sub("", title)
    return _NOT_CHINESE.sub("", title)


KINDS = ("food", "action", "flavour")
"""Of components; the keys of the published ``glossary.json``."""

_LEGAL = 'an object of three objects, {"food": {word: class}, "action": ..., "flavour": ...}'


@dataclass(frozen=True, order=True)
class Component:
    """A class of words that a dish name can be made of.

    Attributes:
        kind: One of :data:`KINDS`.
        name: The word that names the class. It need not itself be a word of the glossary: the names
            of 40 published classes are none.
    """

    kind: str
    name: str


class Glossary:
    """Words and their classes; immutable.

    Classes are taken as written: a class may be named by a word that belongs to another class
    (one published word has such a class), and then both are classes of their own. Only so are
    there the 413 classes of food that the paper counts.
    """

    def __init__(self, components: Mapping[str, Component]) -> None:
        """Use :meth:`of` or :meth:`read`, which check what they are given."""
        self._components = dict(components)
        self._longest = max(map(len, self._components), default=0)
        words: dict[Component, list[str]] = {}
        for word in sorted(self._components):
            words.setdefault(self._components[word], []).append(word)
        self._words = {component: tuple(found) for component, found in words.items()}

    @classmethod
    def read(cls, path: Path) -> "Glossary":
        """Reads a file like the published ``glossary.json``.

        Raises:
            DataError: It cannot be read, is no JSON, or is no glossary.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_unique)
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(f"{path}: no glossary ({error}); legal is {_LEGAL}") from error
        try:
            return cls.of(content)
        except DataError as error:
            raise DataError(f"{path}: {error}") from error

    @classmethod
    def of(cls, mapping: Mapping[str, Mapping[str, str]]) -> "Glossary":
        """Builds a glossary from a mapping of kind to word to class.

        Raises:
            DataError: A kind is missing or unknown, a word is empty, contains space or stands
                twice, or the glossary has no word.
        """
        if not isinstance(mapping, Mapping) or set(mapping) != set(KINDS):
            raise DataError(f"a glossary is {_LEGAL}")
        components: dict[str, Component] = {}
        for kind in KINDS:
            if not isinstance(mapping[kind], Mapping):
                raise DataError(f"{kind!r} in the glossary is no object; legal is {_LEGAL}")
            for word, name in mapping[kind].items():
                _check(word, kind)
                _check(name, kind)
                if word in components:
                    raise DataError(
                        f"the glossary has {word!r} as {components[word].kind} and as {kind};"
                        " a word has one class: remove one of the two"
                    )
                components[word] = Component(kind, name)
        if not components:
            raise DataError(f"the glossary has no word; legal is {_LEGAL}")
        return cls(components)

    def component(self, word: str) -> Component | None:
        """The component that a word stands for; None for what is no word of the glossary."""
        return self._components.get(word)

    def words(self, component: Component) -> tuple[str, ...]:
        """All words of a component, sorted; none for an unknown one."""
        return self._words.get(component, ())

    def components(self) -> tuple[Component, ...]:
        """All components, sorted."""
        return tuple(sorted(self._words))

    def as_dict(self) -> dict[str, dict[str, str]]:
        """What :meth:`read` reads; words are sorted."""
        found: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
        for word in sorted(self._components):
            component = self._components[word]
            found[component.kind][word] = component.name
        return found

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the words and their classes, whatever their order in a file."""
        text = json.dumps(self.as_dict(), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def words_in(self, name: str) -> tuple[str, ...] | None:
        """The words that a name consists of, by maximal matching.

        From the left, the longest word that fits is taken, and never given back.

        Returns:
            None if a place is reached where no word fits; () for the empty name.
        """
        found = []
        place = 0
        while place < len(name):
            for length in range(min(self._longest, len(name) - place), 0, -1):
                word = name[place : place + length]
                if word in self._components:
                    found.append(word)
                    place += length
                    break
            else:
                return None
        return tuple(found)

    def parse(self, name: str) -> tuple[Component, ...] | None:
        """The components of a name in its order, repeats kept; None where it does not parse.

        The rule is that of :meth:`words_in`.
        """
        words = self.words_in(name)
        return None if words is None else tuple(self._components[word] for word in words)


def _check(word: object, kind: str) -> None:
    if not isinstance(word, str) or not word or word.split() != [word]:
        raise DataError(
            f"{word!r} under {kind!r} in the glossary is no word; legal are texts without space"
        )


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """For ``json``, which would keep the last of two equal keys without a word."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"{twice!r} stands in it twice")
    return found
