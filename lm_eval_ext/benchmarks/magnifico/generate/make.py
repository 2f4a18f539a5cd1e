"""Makes the examples of a database: draws, checks, and counts what is dropped by reason."""

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from lm_eval_ext.benchmarks.magnifico.generate import profile as profiles
from lm_eval_ext.benchmarks.magnifico.generate import to_sql, to_words
from lm_eval_ext.benchmarks.magnifico.generate.check import Check
from lm_eval_ext.benchmarks.magnifico.generate.draw import Drawer
from lm_eval_ext.benchmarks.magnifico.generate.lexicon import Lexicon
from lm_eval_ext.benchmarks.magnifico.generate.meanings import (
    AGGREGATES,
    BOUND,
    INSTANCES,
    PHRASES,
    WORDS,
    Meaning,
    bound,
    kind_of,
    text_of,
)
from lm_eval_ext.benchmarks.magnifico.generate.parts import Impossible
from lm_eval_ext.benchmarks.magnifico.generate.profile import Profile
from lm_eval_ext.benchmarks.magnifico.generate.tree import Filter, Pair, Question
from lm_eval_ext.benchmarks.magnifico.records import NOVEL, Form
from lm_eval_ext.errors import DataError
from lm_eval_ext.lexicon.words import WORDLIKE, draw_words, is_english
from lm_eval_ext.sql.distill.growing import Growing
from lm_eval_ext.sql.distill.report import Report
from lm_eval_ext.sql.distill.scratch_db import Runner
from lm_eval_ext.sql.policy import Limits, open_guarded

SUPPORT = 5
"""Solved examples of each word, as in the paper."""

_FEWEST = 2
"""A word with fewer questions than that is left out."""

_PER_WORD = 4
"""Questions of a word where few are wanted: then words are left out, not questions of each."""

_TWO_WORDS, _SPARE, _FEWEST_SPARE = 10, 25, 4
"""One question in so many has two words, and one in so many is drawn in addition, four at least."""

_DRAWS, _PAIRS = 150, 40
"""Draws for one question, and for one with two words."""

_HARD, _MOST_REFUSED = 6, 20
"""Refused questions of a word at which it counts as one that has none: before the first one was
kept, and after the last one."""

_CONDITIONS = (
    "above_average", "not_in", "value_mode", "equals", "above", "either", "linked", "place",
)  # fmt: skip
"""Kinds that go with an aggregate in questions with two words."""


@dataclass(frozen=True)
class Asked:
    """One question in all of its forms.

    Attributes:
        kinds: One, or two.
        question: Its tree.
        gold: The query.
        base: The question that states the meaning.
        support: Whether it is a solved example instead.
    """

    kinds: tuple[str, ...]
    question: Question
    gold: str
    base: str
    support: bool = False

    def novel(self, meanings: Mapping[str, Meaning], form: Form) -> str:
        """The question with the words of a form."""
        words = {kind: meanings[kind].words[form] for kind in self.kinds}
        return to_words.question(self.question, words)

    def forms(self, meanings: Mapping[str, Meaning]) -> list[Form]:
        """The forms that all of its words have."""
        return [form for form in NOVEL if all(form in meanings[k].words for k in self.kinds)]


@dataclass(frozen=True)
class Made:
    """All examples of a database.

    Attributes:
        profile: What it holds.
        meanings: The interpretations by name.
        asked: The examples, in the order in which they were drawn.
        drawn: How many questions were drawn.
        dropped: Those that were not kept, by reason.
        report: On the populated copy, for exactly the gold queries of ``asked``.
    """

    profile: Profile
    meanings: Mapping[str, Meaning]
    asked: tuple[Asked, ...]
    drawn: int
    dropped: Mapping[str, int]
    report: Report


def make(  # noqa: PLR0917
    database: Path, lexicon: Lexicon, seed: int, questions: int, copy: Path,
    progress: Callable[[int], object] = lambda _: None,
) -> Made:  # fmt: skip
    """Makes the examples of a database; ``copy`` is where the populated copy goes.

    Raises:
        DataError: The database cannot be read or asked about, or has too few questions.
    """
    profile = profiles.read(database, lexicon)
    meanings = dict(meanings_of(profile, seed))
    if not meanings:
        raise DataError(
            f"{database}: nothing can be asked about it; name its tables and columns in a lexicon "
            "(--lexicon FILE)"
        )
    with closing(open_guarded(str(database), Limits())) as connection, closing(
        Growing(database)
    ) as growing:  # fmt: skip
        check = Check(Runner(connection))
        maker = _Maker(profile, meanings, seed, check, growing, progress)
        maker.fill(questions)
        return maker.finish(database, questions, copy)


def meanings_of(profile: Profile, seed: int) -> Iterator[tuple[str, Meaning]]:
    """The interpretations that the schema allows, with their words."""
    rng = random.Random(f"{seed} words")
    names = {
        name.casefold() for entity in profile.entities.values()
        for name in (entity.table, entity.one, entity.many, *(f.name for f in entity.fields))
    }  # fmt: skip
    said = " ".join(
        f"{entity.one} {entity.many} " + " ".join(f.phrase for f in entity.fields)
        for entity in profile.entities.values()
    )
    drawn = draw_words(WORDLIKE, INSTANCES * len(WORDS), rng, taken=names, refused=is_english)
    invented = zip(*[iter(drawn)] * INSTANCES, strict=True)
    for (kind, all_pairs), foreign in zip(WORDS.items(), invented, strict=True):
        pairs = [pair for pair in all_pairs if not any(word and word in said for word in pair)]
        pairs = rng.sample(pairs or all_pairs, len(pairs or all_pairs))
        own = random.Random(f"{seed} {kind}")
        nodes: list[Filter | Pair] = []
        for number, pair in enumerate(pairs[: INSTANCES if kind in BOUND else 1]):
            name = f"{kind}_{number + 1}" if number else kind
            words: dict[Form, str] = {"plausible": pair[0]}
            if kind not in PHRASES:
                words |= {"foreign": foreign[number], "adversarial": pair[1]}
            if kind not in BOUND:
                yield name, Meaning(name, text_of(kind, None), MappingProxyType(words))
            elif found := bound(kind, profile, own):
                entity, node = found
                if node not in nodes:
                    nodes.append(node)
                    node = replace(node, kind=name)
                    text = text_of(kind, node)
                    yield name, Meaning(name, text, MappingProxyType(words), entity, node)


@dataclass
class _Maker:
    profile: Profile
    meanings: dict[str, Meaning]
    seed: int
    check: Check
    growing: Growing
    progress: Callable[[int], object]
    drawn: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    asked: list[Asked] = field(default_factory=list)
    _texts: set[str] = field(default_factory=set)
    _refused: Counter[str] = field(default_factory=Counter)

    def fill(self, questions: int) -> None:
        """Draws for one word after the other, until there are enough or no word has any left."""
        chosen = self._chosen(max(_FEWEST, questions // _PER_WORD))
        self._combine(questions // _TWO_WORDS, chosen)
        drawers = {
            kind: Drawer(self.profile, random.Random(f"{self.seed} {kind} questions"))
            for kind in self.meanings
        }
        open_kinds = list(chosen)
        more = [name for name in self.meanings if name not in chosen]
        # Further words with a meaning come last.
        more.sort(key=lambda name: name != kind_of(name))
        single, turns = len(self.asked), Counter[str]()
        # A few more than asked for: rows for later ones may harm some.
        wanted = questions + _FEWEST_SPARE + questions // _SPARE
        while open_kinds:
            enough = single >= wanted
            if enough and all(turns[kind] >= 2 * SUPPORT for kind in open_kinds):
                return
            for kind in list(open_kinds):
                turn = turns[kind]
                turns[kind] += 1
                support = turn < 2 * SUPPORT and turn % 2 == 1
                if single >= wanted and not support:
                    continue
                if not self._draw(kind, drawers[kind], support=support):
                    open_kinds.remove(kind)
                    if more and not enough:
                        open_kinds.append(more.pop(0))
                elif not support:
                    single += 1
                    self.progress(1)

    def _chosen(self, count: int) -> list[str]:
        """So many kinds, drawn, one of each sort that questions with two words need among them."""
        rng = random.Random(f"{self.seed} kinds")
        kinds = [name for name in self.meanings if name == kind_of(name)]
        if count >= len(kinds):
            return kinds
        mixed = rng.sample(kinds, len(kinds))
        first = [kind for kind in mixed if kind in AGGREGATES][:1]
        second = [kind for kind in mixed if kind in _CONDITIONS][:1]
        both = first + second
        return (both + [kind for kind in mixed if kind not in both])[:count]

    def _draw(self, kind: str, drawer: Drawer, *, support: bool) -> bool:
        """Draws one question on a word and keeps it; whether there was one."""
        for _ in range(_DRAWS):
            try:
                question = drawer.question(self.meanings[kind])
            except Impossible:
                continue
            if self._keep((kind,), question, support=support):
                self._refused[kind] = -_MOST_REFUSED + _HARD
                return True
            if self._refused[kind] >= _HARD:
                return False
        return False

    def _combine(self, count: int, chosen: Collection[str]) -> None:
        drawer = Drawer(self.profile, random.Random(f"{self.seed} two words"))
        rng = random.Random(f"{self.seed} pairs")
        first = [kind for kind in AGGREGATES if kind in chosen]
        second = [kind for kind in chosen if kind in _CONDITIONS]
        for _ in range(count * _PAIRS if first and second else 0):
            if count <= 0:
                return
            kinds = rng.choice(first), rng.choice(second)
            try:
                question = drawer.both(*(self.meanings[kind] for kind in kinds))
            except Impossible:
                continue
            if self._keep(kinds, question, support=False):
                count -= 1
                self.progress(1)

    def _keep(self, kinds: tuple[str, ...], question: Question, *, support: bool) -> bool:
        gold, base = to_sql.query(question), to_words.question(question, {})
        if gold in self._texts or base.casefold() in self._texts:
            return False
        self._texts |= {gold, base.casefold()}
        self.drawn += 1
        reason = self.check.problem(question, gold)
        if reason is None:
            reason = self.growing.add(gold)
            self._refused.update(kinds if reason else ())
        if reason:
            self.dropped[reason] += 1
            return False
        self.asked.append(Asked(kinds, question, gold, base, support))
        return True

    def finish(self, database: Path, questions: int, copy: Path) -> Made:
        """Leaves out what was lost meanwhile, and words with too few questions.

        Raises:
            DataError: There are too few questions.
        """
        lost = self.growing.recheck()
        kept = self._enough(lost, database, questions)
        self.dropped.update(lost.values())
        if few := sum(one.gold not in lost for one in self.asked) - len(kept):
            self.dropped["its word has too few questions"] += few
        asked = [one for one in kept if not one.support][:questions]
        used = {kind for one in asked for kind in one.kinds}
        final = [
            one for one in kept if one in asked or (one.support and set(one.kinds) <= used)
        ]  # fmt: skip
        report = self.growing.save(copy, {one.gold for one in final})
        meanings = {kind: m for kind, m in self.meanings.items() if kind in used}
        return Made(
            self.profile, meanings, tuple(final), self.drawn, dict(self.dropped), report
        )  # fmt: skip

    def _enough(self, lost: Collection[str], database: Path, questions: int) -> list[Asked]:
        """What is left without the lost gold queries and words with too few questions.

        Raises:
            DataError: There are too few.
        """
        kept = [one for one in self.asked if one.gold not in lost]
        singles = Counter(one.kinds[0] for one in kept if len(one.kinds) == 1 and not one.support)
        helped = {one.kinds[0] for one in kept if one.support}
        good = {kind for kind in self.meanings if singles[kind] >= _FEWEST and kind in helped}
        kept = [one for one in kept if set(one.kinds) <= good]
        count = sum(not one.support for one in kept)
        if count < questions:
            possible = "no question is possible;"
            if count:
                possible = f"{count} questions are possible, not {questions}; use "
                possible += f"--questions {count} or less, or"
            raise DataError(
                f"{database}: {possible} name more columns in a lexicon (--lexicon FILE)"
            )
        return kept
