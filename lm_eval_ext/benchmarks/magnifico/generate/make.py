"""Makes the examples of a database: draws, checks, and counts what is dropped by reason.

The first check is on the database as it is. The second one is on the databases of its test suite,
which the tasks build again for the same golds: a question is kept if each mutant of its query is
judged wrong there.
"""

import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from lm_eval_ext.benchmarks.magnifico.generate import profile as profiles
from lm_eval_ext.benchmarks.magnifico.generate.draw import (
    COUNT,
    Drawer,
    Impossible,
    Meaning,
    meanings_of,
)
from lm_eval_ext.benchmarks.magnifico.generate.english import known
from lm_eval_ext.benchmarks.magnifico.generate.profile import Profile
from lm_eval_ext.benchmarks.magnifico.generate.tree import (
    FUNCTIONS,
    Aggregate,
    Plain,
    Question,
    Top,
    kind_of,
)
from lm_eval_ext.benchmarks.magnifico.records import BASE, NOVEL, Form
from lm_eval_ext.errors import DataError
from lm_eval_ext.sql.compare import among
from lm_eval_ext.sql.equivalence import equivalent
from lm_eval_ext.sql.policy import Limits, open_guarded
from lm_eval_ext.sql.suite.build import Original, choose
from lm_eval_ext.sql.values import Row

SUPPORT = 5
"""Solved examples of each word, as in the paper."""

MOST_ROWS = 60
"""Rows of a result that a person would ask for."""

_FEWEST, _PER_WORD, _TWO_WORDS, _SPARE = 2, 4, 10, 3
"""Questions that a word needs; those that it has where few are wanted; one question in so many has
two words; so many of these are drawn in addition, since some are refused."""

_DRAWS, _ROUNDS = 150, 8
"""Draws for one question, and rounds of draws and checks."""

_STEPS, _TICK = 800, 10_000
"""Times and instructions of SQLite's virtual machine, which limit a query. They are counted instead
of timed, so that a slow machine keeps the same questions."""


@dataclass(frozen=True)
class Asked:
    """One question in all of its forms.

    Attributes:
        words: The names of its meanings: one, or two.
        question: Its tree.
        gold: The query.
        texts: The base question, and those with the words of a form.
        support: Whether it is a solved example instead.
    """

    words: tuple[str, ...]
    question: Question
    gold: str
    texts: Mapping[Form, str]
    support: bool = False


@dataclass(frozen=True)
class Made:
    """All examples of a database.

    Attributes:
        profile: What it holds.
        meanings: The interpretations by name.
        asked: The examples, in the order in which they were drawn.
        drawn: How many questions were drawn.
        dropped: Those that were not kept, by reason.
    """

    profile: Profile
    meanings: Mapping[str, Meaning]
    asked: tuple[Asked, ...]
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
    with closing(open_guarded(str(database), Limits())) as connection:
        maker = Maker(profile, seed, connection)
        maker.choose(questions)
        kept: list[Asked] = []
        for _ in range(_ROUNDS):
            # More than are missing, since the suite refuses some.
            spare = max(6, (questions - len(asked_only(kept))) // 2)
            maker.fill(questions, spare, lambda n: progress(int(n <= questions)))
            maker.judge(database, maker.asked)
            kept = maker.best(questions)
            if len(asked_only(kept)) == questions and not maker.judge(database, kept):
                words = {name for one in kept for name in one.words}
                meanings = {name: m for name, m in maker.meanings.items() if name in words}
                drawn = len(maker.golds)
                return Made(profile, meanings, tuple(kept), drawn, dict(maker.dropped))
    count = len(asked_only(kept))
    possible = f"{count} questions are possible, not {questions}; use --questions {count} or less"
    raise DataError(
        f"{database}: {possible if count else 'no question is possible'}, or name more columns in "
        "a lexicon (--lexicon FILE)"
    )


class Maker:
    """Draws and checks on one database; ``connection`` reads it."""

    def __init__(self, profile: Profile, seed: int, connection: sqlite3.Connection) -> None:
        self.profile, self.seed, self.connection = profile, seed, connection
        self.meanings = {one.name: one for one in meanings_of(profile, seed)}
        kinds = known()["meanings"]
        self.drawers = {name: self._drawer(f"{name} questions") for name in self.meanings}
        self.both = self._drawer("two words")
        # Questions with two words have a measure and a condition, whose words have all forms.
        self.pairs = [
            [
                n
                for n in self.meanings
                if kinds[kind_of(n)]["as"][0] in hows and len(self.meanings[n].words) > 1
            ]
            for hows in ((*FUNCTIONS, "COUNT"), known()["conditions"])
        ]
        self.asked: list[Asked] = []
        self.golds: set[str] = set()
        self.dropped = Counter[str]()
        self.open: list[str] = []
        self.rest: list[str] = []

    def _drawer(self, what: str) -> Drawer:
        return Drawer(self.profile, random.Random(f"{self.seed} {what}"))

    def choose(self, questions: int) -> None:
        """Draws the words."""
        kinds = [name for name in self.meanings if name == kind_of(name)]
        count = max(_FEWEST, questions // _PER_WORD)
        if count < len(kinds):
            random.Random(f"{self.seed} kinds").shuffle(kinds)
            first = [[k for k in kinds if k in names][:1] for names in self.pairs]
            kinds = list(dict.fromkeys([*first[0], *first[1], *kinds]))
        # The rest follows when a word has no question left, further words with a meaning last.
        self.open, self.rest = kinds[:count], kinds[count:]
        self.rest += [name for name in self.meanings if name not in kinds]

    def fill(self, questions: int, spare: int, progress: Callable[[int], object]) -> None:
        """Draws for one word after the other, until there are enough or no word has any left."""
        count = questions // _TWO_WORDS
        missing = count and count + _SPARE - sum(len(one.words) > 1 for one in self.asked)
        both = [[name for name in self.open if name in names] for names in self.pairs]
        for _ in range(missing if all(both) else 0):
            self._draw(self.both, *both)
        count = len(asked_only(self.asked))
        drawn = Counter((one.words[0], one.support) for one in self.asked if len(one.words) == 1)
        while self.open and (
            count < questions + spare or any(drawn[name, True] <= SUPPORT for name in self.open)
        ):
            for name in list(self.open):
                enough = count >= questions + spare
                support = drawn[name, True] <= SUPPORT and (
                    enough or drawn[name, True] < drawn[name, False]
                )
                if enough and not support:
                    continue
                if not self._draw(self.drawers[name], [name], support=support):
                    self.open.remove(name)
                    self.open += self.rest[:1]
                    self.rest = self.rest[1:]
                    continue
                drawn[name, support] += 1
                if not support:
                    count += 1
                    progress(count)

    def _draw(self, drawer: Drawer, *choices: Sequence[str], support: bool = False) -> bool:
        """Draws one question with a word of each choice and keeps it; whether there was one."""
        for _ in range(_DRAWS):
            words = tuple(drawer.rng.choice(names) for names in choices)
            meanings = [self.meanings[name] for name in words]
            try:
                question = drawer.both(*meanings) if len(words) > 1 else drawer.question(*meanings)
            except Impossible:
                continue
            texts: dict[Form, str] = {BASE: question.words({})}
            for form in NOVEL:
                if all(form in one.words for one in meanings):
                    texts[form] = question.words({one.name: one.words[form] for one in meanings})
            new = Asked(words, question, question.sql(), texts, support)
            if new.gold in self.golds:
                continue
            self.golds.add(new.gold)
            reason = self.problem(new)
            if reason is None:
                self.asked.append(new)
                return True
            self.dropped[reason] += 1
        return False

    def problem(self, new: Asked) -> str | None:  # noqa: PLR0911
        """Why a question is not asked, by the database as it is; None if it can be."""
        question, rows = new.question, self._rows(new.gold)
        if rows is None:
            return "fails or takes too long"
        if not rows or all(value in (None, 0) for row in rows for value in row):
            return "empty"
        if any(value is None for row in rows for value in row):
            return "shows NULL"
        if len(rows) > MOST_ROWS:
            return "too many rows"
        if question.by and question.show and len(rows) == 1:
            return "one group"
        less = [replace(question, having=None)] if question.having else []
        for one in question.where:
            less.append(replace(question, where=tuple(o for o in question.where if o is not one)))
        if any(self._same(rows, other) for other in less):
            return "a condition changes nothing"
        term = question.show[0] if question.show else None
        if isinstance(term, Aggregate) and term.of:
            others = [replace(term, function=one) for one in FUNCTIONS]
            others.remove(term)
            if any(self._same(rows, replace(question, show=(other,))) for other in others):
                return "another function gives the same"
        if any(self._ties(one) for one in (question, *_modes(question))):
            return "a tie at the top"
        # Such as "the average bonus", where "average" is also a word for the sum.
        said = {text.casefold() for one in self.asked for text in one.texts.values()}
        if said & {text.casefold() for text in new.texts.values()}:
            return "another question has the same text"
        return None

    def _same(self, rows: list[Row], other: Question) -> bool:
        """Whether another question has these rows, in any order."""
        found = self._rows(other.sql())
        return found is not None and len(found) == len(rows) and among(rows, found)

    def _ties(self, question: Question) -> bool:
        """Whether rows or groups around the rank have equal values, or there are too few."""
        if not (top := question.top):
            return False
        ranked = replace(question, show=(top.term,)).sql().rpartition(" LIMIT ")[0]
        found = self._rows(f"{ranked} LIMIT {top.rank + 1}") or []
        return len({row[-1] for row in found}) <= top.rank

    def _rows(self, sql: str) -> list[Row] | None:
        """Rows, one more than a question may have at most; None if the query fails or is slow."""
        steps = iter(range(_STEPS))
        self.connection.set_progress_handler(lambda: next(steps, None) is None, _TICK)
        try:
            return self.connection.execute(sql).fetchmany(MOST_ROWS + 1)
        except (sqlite3.Error, OverflowError):
            return None

    def judge(self, database: Path, asked: Sequence[Asked]) -> bool:
        """Drops what the test suite for these questions refuses; whether there was anything."""
        lost = refused(database, [one.gold for one in asked])
        self.dropped.update(lost.values())
        self.asked = [one for one in self.asked if one.gold not in lost]
        return bool(lost)

    def best(self, questions: int) -> list[Asked]:
        """At most so many questions on words with enough of them, and the solved examples."""
        single = Counter(one.words for one in asked_only(self.asked))
        shown = {one.words for one in self.asked if one.support}
        good = {name for name in self.meanings if single[name,] >= _FEWEST and (name,) in shown}
        asked = [one for one in asked_only(self.asked) if good.issuperset(one.words)]
        two = [one for one in asked if len(one.words) > 1][: questions // _TWO_WORDS]
        asked = [*two, *(one for one in asked if len(one.words) == 1)][:questions]
        used = {name for one in asked for name in one.words}
        solved = [
            one for name in used
            for one in [s for s in self.asked if s.support and s.words == (name,)][:SUPPORT]
        ]  # fmt: skip
        return [one for one in self.asked if one in asked or one in solved]


def refused(database: Path, golds: Sequence[str]) -> dict[str, str]:
    """Why golds are refused by the test suite that is built for them, by their text."""
    original = Original(database, golds)
    cases = original.cases()
    choose(original, cases)
    good = {
        case.gold for case in cases
        if all(equivalent(case.gold, mutant, original.schema) for mutant in case.open)
    }  # fmt: skip
    return dict.fromkeys((gold for gold in golds if gold not in good), "ties with a mutant")


def asked_only(asked: Sequence[Asked]) -> list[Asked]:
    """Without solved examples."""
    return [one for one in asked if not one.support]


def _modes(question: Question) -> Iterator[Question]:
    """What the most common values are, where conditions mention them."""
    for one in question.where:
        if one.rule == "mode" and isinstance(one.of, Plain):
            yield Question(question.entity, (), by=one.of, top=Top(COUNT))
