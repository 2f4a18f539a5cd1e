"""Makes the examples of a database: draws, checks, and counts what is dropped by reason.

The first check is on the database as it is. The second one is on the databases of its test suite,
which the tasks build again for the same golds: a question is kept if each mutant of its query is
judged wrong there.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from lm_eval_ext.benchmarks.magnifico.generate.draw import (
    Drawer,
    ImpossibleDraw,
    Meaning,
    meanings_of,
)
from lm_eval_ext.benchmarks.magnifico.generate.profile import Profile, read_profile
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

SUPPORT_PER_WORD = 5
"""Solved examples of each word, as in the paper."""

MAX_ROWS = 60
"""Rows of a result that a person would ask for."""

_MIN_PER_WORD = 2
"""Questions that a word needs."""
_FEW_PER_WORD = 4
"""Questions that a word has where few are wanted."""

_MAX_DRAWS = 150
"""Draws for one question."""

_MAX_ROUNDS = 8
"""Rounds of draws and checks."""

_MIN_SPARE = 6
"""Questions drawn beyond those that are missing, since the suite refuses some."""

_FAILS = "fails or takes too long"

Progress = Callable[[int], object]
"""A function that is called with the number of questions made since the last call."""


def no_progress(_: int) -> None:
    """Ignore how many questions were made."""


@dataclass(frozen=True)
class GeneratedQuestion:
    """One question in all of its forms.

    Attributes:
        kind: The name of its meaning.
        question: Its tree.
        gold: The query.
        texts: The base question, and those with the word of a form.
        is_support: Whether it is a solved example instead of a question to the model.
    """

    kind: str
    question: Question
    gold: str
    texts: Mapping[Form, str]
    is_support: bool = False


@dataclass(frozen=True)
class Generation:
    """All examples of a database.

    Attributes:
        profile: The database in words.
        meanings: The interpretations by kind.
        examples: The examples, in the order in which they were drawn.
        drawn: The number of questions that were drawn.
        dropped: The numbers of those that were not kept, by reason.
    """

    profile: Profile
    meanings: Mapping[str, Meaning]
    examples: Sequence[GeneratedQuestion]
    drawn: int
    dropped: Mapping[str, int]


def make(
    database: Path,
    lexicon: Path | None,
    seed: int,
    questions: int,
    progress: Progress = no_progress,
) -> Generation:
    """Make the examples of a database.

    Raises:
        OptionError: There is no such lexicon.
        DataError: The database cannot be read or asked about, or has too few questions.
    """
    profile = read_profile(database, lexicon)
    if not profile.entities:
        raise DataError(
            f"{database}: nothing can be asked about it; name its tables and columns in a lexicon "
            "(--lexicon FILE)"
        )
    with closing(in_memory(database)) as connection:
        maker = Maker(profile, seed, Runner(connection))
        for attempt in range(_MAX_ROUNDS):
            spare = max(_MIN_SPARE, questions // 2) * (attempt + 1)
            maker.fill(questions, spare, progress)
            maker.drop_refused(database, maker.kept)
            kept_questions = maker.select(questions)
            while _count_asked(kept_questions) == questions:
                if not maker.drop_refused(database, kept_questions):
                    return _generation(profile, maker, kept_questions)
                kept_questions = maker.select(questions)
    count = _count_asked(kept_questions)
    problem = "no question is possible"
    if count:
        problem = (
            f"{count} questions are possible, not {questions}; use --questions {count} or less"
        )
    raise DataError(f"{database}: {problem}, or name more columns in a lexicon (--lexicon FILE)")


def _generation(
    profile: Profile, maker: "Maker", kept_questions: Sequence[GeneratedQuestion]
) -> Generation:
    kinds = sorted({example.kind for example in kept_questions})
    meanings = {kind: maker.meanings[kind] for kind in kinds}
    return Generation(profile, meanings, kept_questions, len(maker.golds), dict(maker.dropped))


class Maker:
    """Draws and checks on one database.

    Attributes:
        meanings: The interpretations by kind.
        kept: The questions that were kept so far.
        golds: All queries that were drawn.
        dropped: The numbers of questions that were not kept, by reason.
    """

    def __init__(self, profile: Profile, seed: int, runner: Runner) -> None:
        self.runner = runner
        self.meanings = meanings_of(profile, seed)
        self.drawers = {}
        for kind in self.meanings:
            self.drawers[kind] = Drawer(profile, random.Random(f"{seed} {kind} questions"))
        self.kept: list[GeneratedQuestion] = []
        self.golds: set[str] = set()
        self.dropped = Counter[str]()
        # A word that has no question left is followed by the next one.
        kinds = list(self.meanings)
        self._waiting_kinds = random.Random(f"{seed} kinds").sample(kinds, len(kinds))
        self._active_kinds: list[str] = []

    def fill(self, questions: int, spare: int, progress: Progress) -> None:
        """Draw for one word after the other, until there are enough or no word has any left."""
        words = max(_MIN_PER_WORD, questions // _FEW_PER_WORD)
        new_kinds = words - len(self._active_kinds)
        self._active_kinds += self._waiting_kinds[:new_kinds]
        self._waiting_kinds = self._waiting_kinds[new_kinds:]
        enough = questions + words * SUPPORT_PER_WORD + spare
        while self._active_kinds and len(self.kept) < enough:
            for kind in list(self._active_kinds):
                if self._draw(kind):
                    progress(int(len(self.kept) <= questions))
                    continue
                self._active_kinds.remove(kind)
                if self._waiting_kinds:
                    self._active_kinds.append(self._waiting_kinds.pop(0))

    def _draw(self, kind: str) -> bool:
        """Draw one question with a word and keep it; return whether there was one."""
        meaning = self.meanings[kind]
        for _ in range(_MAX_DRAWS):
            try:
                question = self.drawers[kind].question(kind, meaning)
            except ImpossibleDraw:
                continue
            texts: dict[Form, str] = {BASE: question.words({})}
            for form, word in meaning.words.items():
                texts[form] = question.words({kind: word})
            example = GeneratedQuestion(kind, question, question.sql(), texts)
            if example.gold in self.golds:
                continue
            self.golds.add(example.gold)
            reason = self.problem(example)
            if reason is None:
                self.kept.append(example)
                return True
            self.dropped[reason] += 1
        return False

    def problem(self, example: GeneratedQuestion) -> str | None:
        """Return why a question is not asked, by the database as it is; None if it can be."""
        question = example.question
        result = self.runner.run(example.gold, MAX_ROWS)
        if not isinstance(result, Rows):
            return _FAILS
        problem = _problem_of_rows(question, result)
        if problem is not None:
            return problem
        if any(self._has_rows(result, weaker) for weaker in _without_each_condition(question)):
            return "a condition changes nothing"
        # Such as "the average bonus", where "average" is also a word for the sum.
        known_texts: set[str] = set()
        for question_kept in self.kept:
            known_texts.update(text.casefold() for text in question_kept.texts.values())
        if any(text.casefold() in known_texts for text in example.texts.values()):
            return "another question has the same text"
        return None

    def _has_rows(self, result: Rows, question: Question) -> bool:
        """Return whether a question has these rows, in any order."""
        answer = self.runner.run(question.sql(), MAX_ROWS)
        if not isinstance(answer, Rows) or len(answer.rows) != len(result.rows):
            return False
        return can_pair_all(result.rows, answer.rows)

    def drop_refused(self, database: Path, examples: Sequence[GeneratedQuestion]) -> bool:
        """Drop what the test suite for these questions refuses; return whether anything was."""
        reasons = refusal_reasons(database, [example.gold for example in examples])
        self.dropped.update(reasons.values())
        self.kept = [example for example in self.kept if example.gold not in reasons]
        return bool(reasons)

    def select(self, questions: int) -> list[GeneratedQuestion]:
        """Return at most so many questions on words with enough of them, and solved examples."""
        by_kind: dict[str, list[GeneratedQuestion]] = defaultdict(list)
        for example in self.kept:
            by_kind[example.kind].append(example)
        support_golds: set[str] = set()
        for examples in by_kind.values():
            first_support = max(_MIN_PER_WORD, len(examples) - SUPPORT_PER_WORD)
            support_golds.update(example.gold for example in examples[first_support:])
        usable = [example for example in self.kept if len(by_kind[example.kind]) > _MIN_PER_WORD]
        chosen = [example for example in usable if example.gold not in support_golds][:questions]
        asked_kinds = {example.kind for example in chosen}
        for example in usable:
            if example.gold in support_golds and example.kind in asked_kinds:
                chosen.append(replace(example, is_support=True))
        return chosen


def _problem_of_rows(question: Question, result: Rows) -> str | None:
    """Return why nobody would ask for a result; None if somebody may."""
    values = list(chain.from_iterable(result.rows))
    if all(value in (None, 0) for value in values):
        return "empty"
    if any(value is None for value in values):
        return "shows NULL"
    if len(result.rows) > MAX_ROWS:
        return "too many rows"
    if question.group_by and question.show and len(result.rows) == 1:
        return "one group"
    return None


def _without_each_condition(question: Question) -> Iterator[Question]:
    """Yield the question without each of its conditions in turn."""
    for dropped_clause in question.where:
        kept_clauses = tuple(clause for clause in question.where if clause is not dropped_clause)
        yield replace(question, where=kept_clauses)


def refusal_reasons(database: Path, golds: Sequence[str]) -> dict[str, str]:
    """Return why golds are refused, by their text.

    The test suite that is built for them misses a mutant, or the order of stored rows decides about
    their result, as where rows tie at the top.
    """
    original = Original(database, golds)
    cases = gold_cases(original)
    choose(original, cases)
    _, judgeable = judgeable_golds(original, original.connection, cases, steps=STEPS)
    reasons = dict.fromkeys(golds, _FAILS)
    for case in cases:
        if case.gold not in judgeable:
            reasons[case.gold] = "a tie at the top"
        elif case.open_mutants:
            reasons[case.gold] = "ties with a mutant"
        else:
            del reasons[case.gold]
    return reasons


def _count_asked(examples: Sequence[GeneratedQuestion]) -> int:
    """Return the number of questions without solved examples."""
    return sum(not example.is_support for example in examples)
