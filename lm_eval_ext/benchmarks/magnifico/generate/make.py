"""Makes the examples of a database: draws, checks, and counts what is dropped by reason.

The first check is on the database as it is. The second one is on the databases of its test suite,
which the tasks build again for the same golds: a question is kept if each mutant of its query is
judged wrong there.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from lm_eval_ext.benchmarks.magnifico.generate import profile as profiles
from lm_eval_ext.benchmarks.magnifico.generate.draw import Drawer, Impossible, Meaning, meanings_of
from lm_eval_ext.benchmarks.magnifico.generate.profile import Profile
from lm_eval_ext.benchmarks.magnifico.generate.tree import Question
from lm_eval_ext.benchmarks.magnifico.records import BASE, Form
from lm_eval_ext.errors import DataError
from lm_eval_ext.sql.matching import can_pair_all
from lm_eval_ext.sql.suite.build import (
    Original,
    choose,
    gold_cases,
    in_memory,
    judgeable_golds,
)
from lm_eval_ext.sql.suite.checks import STEPS, Runner
from lm_eval_ext.sql.values import Rows

SUPPORT = 5
"""Solved examples of each word, as in the paper."""

MOST_ROWS = 60
"""Rows of a result that a person would ask for."""

_FEWEST, _PER_WORD = 2, 4
"""Questions that a word needs, and those that it has where few are wanted."""

_DRAWS, _ROUNDS = 150, 8
"""Draws for one question, and rounds of draws and checks."""


@dataclass(frozen=True)
class Asked:
    """One question in all of its forms.

    Attributes:
        kind: The name of its meaning.
        question: Its tree.
        gold: The query.
        texts: The base question, and those with the word of a form.
        support: Whether it is a solved example instead.
    """

    kind: str
    question: Question
    gold: str
    texts: Mapping[Form, str]
    support: bool = False


@dataclass(frozen=True)
class Made:
    """All examples of a database.

    Attributes:
        profile: What it holds.
        meanings: The interpretations by kind.
        asked: The examples, in the order in which they were drawn.
        drawn: How many questions were drawn.
        dropped: Those that were not kept, by reason.
    """

    profile: Profile
    meanings: Mapping[str, Meaning]
    asked: Sequence[Asked]
    drawn: int
    dropped: Mapping[str, int]


def make(
    database: Path, lexicon: Path | None, seed: int, questions: int,
    progress: Callable[[int], object] = lambda _: None,
) -> Made:  # fmt: skip
    """Makes the examples of a database.

    Raises:
        OptionError: There is no such lexicon.
        DataError: The database cannot be read or asked about, or has too few questions.
    """
    profile = profiles.read(database, lexicon)
    if not profile.entities:
        raise DataError(
            f"{database}: nothing can be asked about it; name its tables and columns in a lexicon "
            "(--lexicon FILE)"
        )
    with closing(in_memory(database)) as connection:
        maker = Maker(profile, seed, Runner(connection))
        for attempt in range(_ROUNDS):
            # More than are missing, since the suite refuses some.
            maker.fill(questions, max(6, questions // 2) * (attempt + 1), progress)
            maker.judge(database, maker.asked)
            while _count(kept := maker.best(questions)) == questions:
                if not maker.judge(database, kept):
                    meanings = {one: maker.meanings[one] for one in sorted({k.kind for k in kept})}
                    return Made(profile, meanings, kept, len(maker.golds), dict(maker.dropped))
    count = _count(kept)
    possible = f"{count} questions are possible, not {questions}; use --questions {count} or less"
    raise DataError(
        f"{database}: {possible if count else 'no question is possible'}, or name more columns in "
        "a lexicon (--lexicon FILE)"
    )


class Maker:
    """Draws and checks on one database."""

    def __init__(self, profile: Profile, seed: int, runner: Runner) -> None:
        self.runner = runner
        self.meanings = meanings_of(profile, seed)
        self.drawers = {
            kind: Drawer(profile, random.Random(f"{seed} {kind} questions"))
            for kind in self.meanings
        }
        self.asked: list[Asked] = []
        self.golds: set[str] = set()
        self.dropped = Counter[str]()
        # A word that has no question left is followed by the next one.
        self.rest = random.Random(f"{seed} kinds").sample([*self.meanings], len(self.meanings))
        self.open: list[str] = []

    def fill(self, questions: int, spare: int, progress: Callable[[int], object]) -> None:
        """Draws for one word after the other, until there are enough or no word has any left."""
        words = max(_FEWEST, questions // _PER_WORD)
        new = words - len(self.open)
        self.open, self.rest = self.open + self.rest[:new], self.rest[new:]
        while self.open and len(self.asked) < questions + words * SUPPORT + spare:
            for kind in list(self.open):
                if self._draw(kind):
                    progress(int(len(self.asked) <= questions))
                else:
                    self.open.remove(kind)
                    self.open += self.rest[:1]
                    del self.rest[:1]

    def _draw(self, kind: str) -> bool:
        """Draws one question with a word and keeps it; whether there was one."""
        meaning = self.meanings[kind]
        for _ in range(_DRAWS):
            try:
                question = self.drawers[kind].question(kind, meaning)
            except Impossible:
                continue
            texts: dict[Form, str] = {BASE: question.words({})}
            texts |= {form: question.words({kind: word}) for form, word in meaning.words.items()}
            new = Asked(kind, question, question.sql(), texts)
            if new.gold in self.golds:
                continue
            self.golds.add(new.gold)
            reason = self.problem(new)
            if reason is None:
                self.asked.append(new)
                return True
            self.dropped[reason] += 1
        return False

    def problem(self, new: Asked) -> str | None:
        """Why a question is not asked, by the database as it is; None if it can be."""
        question, result = new.question, self.runner.run(new.gold, MOST_ROWS)
        if not isinstance(result, Rows):
            return "fails or takes too long"
        rows = result.rows
        less = (
            replace(question, where=tuple(one for one in question.where if one is not left))
            for left in question.where
        )
        # Such as "the average bonus", where "average" is also a word for the sum.
        said = {text.casefold() for one in self.asked for text in one.texts.values()}
        problems: dict[str, Callable[[], object]] = {
            "empty": lambda: all(value in (None, 0) for row in rows for value in row),
            "shows NULL": lambda: any(value is None for row in rows for value in row),
            "too many rows": lambda: len(rows) > MOST_ROWS,
            "one group": lambda: question.by and question.show and len(rows) == 1,
            "a condition changes nothing": lambda: any(self._same(result, one) for one in less),
            "another question has the same text": lambda: said.intersection(
                text.casefold() for text in new.texts.values()
            ),
        }
        return next((reason for reason, holds in problems.items() if holds()), None)

    def _same(self, result: Rows, other: Question) -> bool:
        """Whether another question has these rows, in any order."""
        found = self.runner.run(other.sql(), MOST_ROWS)
        return isinstance(found, Rows) and (
            len(found.rows) == len(result.rows) and can_pair_all(result.rows, found.rows)
        )

    def judge(self, database: Path, asked: Sequence[Asked]) -> bool:
        """Drops what the test suite for these questions refuses; whether there was anything."""
        lost = refused(database, [one.gold for one in asked])
        self.dropped.update(lost.values())
        self.asked = [one for one in self.asked if one.gold not in lost]
        return bool(lost)

    def best(self, questions: int) -> list[Asked]:
        """At most so many questions on words with enough of them, and their solved examples."""
        by_kind: dict[str, list[Asked]] = defaultdict(list)
        for one in self.asked:
            by_kind[one.kind].append(one)
        solved = {
            one.gold for several in by_kind.values()
            for one in several[max(_FEWEST, len(several) - SUPPORT) :]
        }  # fmt: skip
        good = [one for one in self.asked if len(by_kind[one.kind]) > _FEWEST]
        asked = [one for one in good if one.gold not in solved][:questions]
        kinds = {one.kind for one in asked}
        shown = [replace(one, support=True) for one in good
                 if one.gold in solved and one.kind in kinds]  # fmt: skip
        return [*asked, *shown]


def refused(database: Path, golds: Sequence[str]) -> dict[str, str]:
    """Why golds are refused, by their text.

    The test suite that is built for them misses a mutant, or the order of stored rows decides about
    their result, as where rows tie at the top.
    """
    original = Original(database, golds)
    cases = gold_cases(original)
    choose(original, cases)
    _, fair = judgeable_golds(original, original.connection, cases, steps=STEPS)
    lost = dict.fromkeys(golds, "fails or takes too long")
    for case in cases:
        if case.gold not in fair:
            lost[case.gold] = "a tie at the top"
        elif case.open_mutants:
            lost[case.gold] = "ties with a mutant"
        else:
            del lost[case.gold]
    return lost


def _count(asked: Sequence[Asked]) -> int:
    return sum(not one.support for one in asked)
