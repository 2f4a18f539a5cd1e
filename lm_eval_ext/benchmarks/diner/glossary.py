"""The glossary of foods, actions and flavours: parsing dish names and cleaning titles.

Names are parsed by maximal matching, and synonyms, such as two words for chicken feet, are the
same component (paper, section 3.2). Names come from titles of recipes without "non-Chinese
characters and content inside the parentheses" (section 3.1).
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lm_eval_ext.benchmarks.diner.files import read_json
from lm_eval_ext.benchmarks.diner.script import NOT_CHINESE, simplified
from lm_eval_ext.errors import DataError

KINDS = ("food", "action", "flavour")
"""Of components: the keys of the published ``glossary.json``."""

_LEGAL = 'an object of three objects, {"food": {word: class}, "action": ..., "flavour": ...}'


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


class Glossary:
    """Words and their classes; immutable.

    Classes are taken literally: a class named by a word that belongs to another class (the
    published glossary has one) is separate from that class. Only this gives the 413 classes of
    food that the paper counts.
    """

    def __init__(self, components: Mapping[str, Component]) -> None:
        """Use :meth:`of` or :meth:`read`, which validate their input."""
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
            DataError: It cannot be read, or is not a glossary in JSON.
        """
        try:
            content = read_json(path)
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(f"{path}: not a glossary ({error}); it must be {_LEGAL}") from error
        try:
            return cls.of(content)
        except DataError as error:
            raise DataError(f"{path}: {error}") from error

    @classmethod
    def of(cls, mapping: object) -> "Glossary":
        """Builds a glossary from ``{kind: {word: class}}``; raises DataError if it is not one.

        Words and classes become simplified characters, as names and answers do.
        """
        if not isinstance(mapping, Mapping) or set(mapping) != set(KINDS):
            raise DataError(f"a glossary must be {_LEGAL}")
        components: dict[str, Component] = {}
        for kind in KINDS:
            if not isinstance(mapping[kind], Mapping):
                raise DataError(f"{kind!r} in the glossary is not an object; it must be {_LEGAL}")
            for given, name in mapping[kind].items():
                _check(given, kind)
                _check(name, kind)
                word, component = simplified(given), Component(kind, simplified(name))
                known = components.setdefault(word, component)
                if known != component:
                    raise DataError(
                        f"the glossary has {word!r} as {known.kind} {known.name!r} and as {kind} "
                        f"{component.name!r} (simplified characters); a word has only one class: "
                        "remove one of them"
                    )
        if not components:
            raise DataError(f"the glossary has no words; it must be {_LEGAL}")
        return cls(components)

    def component(self, word: str) -> Component | None:
        """The component that a word names; None if the glossary lacks the word."""
        return self._components.get(word)

    def words(self, component: Component) -> tuple[str, ...]:
        """The synonyms for a component, sorted; none for an unknown component."""
        return self._words.get(component, ())

    def components(self) -> tuple[Component, ...]:
        """All components, sorted."""
        return tuple(sorted(self._words))

    def as_dict(self) -> dict[str, dict[str, str]]:
        """The glossary as :meth:`of` takes it, words sorted."""
        found: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
        for word in sorted(self._components):
            component = self._components[word]
            found[component.kind][word] = component.name
        return found

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of words and classes, independent of their order in a file."""
        text = json.dumps(self.as_dict(), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def words_in(self, name: str) -> tuple[str, ...] | None:
        """The words of a name by maximal matching: from the left, always the longest that fits.

        Returns:
            None if no word fits at some place, without backtracking; () for "".
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
        """The components of :meth:`words_in`, in order, repeats kept; None if it does not parse."""
        words = self.words_in(name)
        return None if words is None else tuple(self._components[word] for word in words)


def _check(word: object, kind: str) -> None:
    if not isinstance(word, str) or not word or word.split() != [word]:
        raise DataError(
            f"{word!r} under {kind!r} in the glossary is not a word; use a text without white space"
        )


_PAIRS = ("(（﹙:)）﹚", "[［:]］", "{｛:}｝", "<＜〈:>＞〉", "【〖〔〘〚︻:】〗〕〙〛︼")  # noqa: RUF001
"""Opening and closing brackets of each shape; recipe authors mix ASCII and full-width ones.

Corner brackets and 《》 are missing because they are quotation marks in Chinese: they enclose the
name itself.
"""


def _pattern() -> str:
    parts = []
    for pair in _PAIRS:
        opening, closing = (re.escape(marks) for marks in pair.split(":"))
        parts.append(f"[{opening}][^{opening}{closing}]*[{closing}]")
    return "|".join(parts)


# The patterns use only what Python's re and RE2 have in common, so that DuckDB can use them, too.
BRACKETED = _pattern()
"""An innermost pair of brackets with its content."""

NESTING = 3
"""How often :data:`BRACKETED` is removed; of brackets nested deeper, the content stays."""

_BRACKETED = re.compile(BRACKETED)
_NOT_CHINESE = re.compile(NOT_CHINESE)


def clean_name(title: str) -> str:
    """Makes a dish name of a recipe's title; may be empty.

    Removes bracketed text and all characters that are not Chinese, so of an unpaired bracket
    only the bracket itself.
    """
    for _ in range(NESTING):
        title = _BRACKETED.sub("", title)
    return _NOT_CHINESE.sub("", title)
