"""Exact pairs from one text: the other forms, and the base question, differ in the word only."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from lm_eval_ext.benchmarks.magnifico.generate.meanings import kind_of

Role = Literal["of next", "of column", "of noun", "column"]
"""Whether the word is about what is named next, about the column or table before, or a column."""

_PAIRS = {"alias", "span", "spread", "product"}
_BEHIND = ("is", "are", "in")
_THOSE = "those "
_SPACED = re.compile(r"\s*(?:[\w'-]+|[^\w\s])")
_AGREE = {"is": "are", "has": "have", "does": "do", "lies": "lie", "fits": "fit", "falls": "fall"}
_SWAPPED = _AGREE | {many: one for one, many in _AGREE.items()}
_MORE = re.compile(r" (?:whose|that|which|who|with|having)\b")


@dataclass(frozen=True)
class Edit:
    """What one word's place says in the novel question, and in the base question.

    Attributes:
        word: As the novel question has it.
        role: What the word is about.
        places: Texts with the word, and what the base question has there.
        adjective: Whether a noun is part of each place; what the base question has goes behind it.
    """

    word: str
    role: Role
    places: Mapping[str, str]
    adjective: bool = False

    def base(self, text: str) -> str | None:
        """The text with the meaning for the word; None if the place is not there just once."""
        an = re.compile(rf"\ban? {re.escape(self.word)}", re.IGNORECASE)  # not for every form
        if len(alone(self.word).findall(text)) != 1 or an.search(text):
            return None
        for place, meaning in self.places.items():
            if found := alone(place).search(text):
                before, behind = text[: found.start()], text[found.end() :]
                if not self.adjective:
                    return before + meaning + behind
                return _clause_behind(before, place[len(self.word) + 1 :], meaning, behind)
        return None


def _clause_behind(before: str, noun: str, clause: str, behind: str) -> str | None:
    """The text with a clause behind its noun, or at the end if more would be read as part of it."""
    there = " are there" if behind.startswith(" are there") else ""
    rest, end = behind[len(there) : -1], behind[-1:]
    if not _MORE.match(rest):
        return f"{before}{noun}{there} {clause}{rest}{end}"
    if not clause.startswith(("that have", "that has")):
        return f"{before}{noun}{there} {clause} and{rest}{end}"
    return None if "," in rest else f"{before}{noun}{there}{rest} and {clause}{end}"


def alone(text: str) -> re.Pattern[str]:
    """A text that is not part of a longer word, nor in quotes."""
    return re.compile(rf"(?<![\w'\"-]){re.escape(text)}(?![\w'\"-])")


def edits(
    novel: str, base: str, words: Mapping[str, tuple[str, str]], nouns: Mapping[str, str]
) -> list[Edit] | None:
    """How the base question follows from the novel one; None if that is not by these rules.

    Args:
        novel: The question with the words.
        base: The question with the meanings.
        words: Word and meaning by interpretation.
        nouns: What rows are called, by singular.
    """
    found: list[Edit] = []
    inside: dict[str, str] = {}
    rest, its_base = novel, base
    for name, (word, meaning) in words.items():
        behind = [one for one, many in nouns.items() if alone(f"{word} {one}").search(novel)
                  or alone(f"{word} {many}").search(novel)]  # fmt: skip
        if not behind or not meaning.startswith(_THOSE):
            inside[name] = word
            continue
        clause = meaning[len(_THOSE) :]
        places: dict[str, str] = {}
        for one in behind:
            places |= {f"{word} {nouns[one]}": clause, f"{word} {one}": _swapped(clause)}
        found.append(Edit(word, "of next", places, adjective=True))
        rest = rest.replace(f"{word} ", "", 1)
        its_base = its_base.replace(f" {clause}", "", 1).replace(f" {_swapped(clause)}", "", 1)
    differing = _differing(rest, its_base, list(inside.values()))
    for name, word in inside.items():
        if word not in differing:
            return None
        place, meaning = differing[word]
        role: Role = "of next"
        if kind_of(name) in _PAIRS:
            role = "column"
        elif not place.startswith(word):
            role = "of noun" if f"that {place.removeprefix('that ')}" in novel else "of column"
        found.append(Edit(word, role, dict(_alternatives(place, meaning))))
    made: str | None = novel
    for edit in found:
        made = edit.base(made) if made else None
    return found if made and _counted(made) == _counted(base) else None


def _counted(text: str) -> Counter[str]:
    return Counter(t for t in map(str.strip, _SPACED.findall(text)) if t not in {"and", ","})


def _swapped(text: str) -> str:
    """The first verb in the other number."""
    return re.sub(
        rf"^((?:that )?)({'|'.join(_SWAPPED)})\b", lambda m: m[1] + _SWAPPED[m[2]], text
    )  # fmt: skip


def _alternatives(place: str, meaning: str) -> Iterator[tuple[str, str]]:
    for one, its in ((place, meaning), (_swapped(place), _swapped(meaning))):
        for that in ("that", "which", "who"):
            yield re.sub(r"^that\b", that, one), re.sub(r"^that\b", that, its)


def _differing(novel: str, base: str, words: Sequence[str]) -> dict[str, tuple[str, str]]:
    """What differs, by the word that it contains; with a verb or preposition before the word."""
    a, b = _SPACED.findall(novel), _SPACED.findall(base)
    front = _shared(a, b)
    back = _shared(a[front:][::-1], b[front:][::-1])
    middles = a[front : len(a) - back], b[front : len(b) - back]
    found: dict[str, tuple[str, str]] = {}
    if len(words) > 1:  # between the two stands what both questions have
        block = SequenceMatcher(None, *middles, autojunk=False).find_longest_match()
        at, its, size = front + block.a, front + block.b, block.size
        for one, other in ((a[: at + size], b[: its + size]), (a[at:], b[its:])):
            said = [word for word in words if alone(word).search("".join(one))]
            if len(said) == 1:
                found |= _differing("".join(one), "".join(other), said)
    elif words and all(middles):
        front -= bool(front and a[front - 1].strip() in _BEHIND)
        place, meaning = ("".join(t[front : len(t) - back]).strip() for t in (a, b))
        if alone(words[0]).search(place):
            found[words[0]] = place, meaning
    return found


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many tokens are the same from the start."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (x, y) in pairs if x != y), min(len(one), len(other)))
