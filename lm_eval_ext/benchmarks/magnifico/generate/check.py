"""Keeps the questions whose gold query is right, not empty, not trivial, and told from others.

This is the first check, on the database as it is. The second one is a populated copy that grows
with the questions (:mod:`lm_eval_ext.sql.distill.growing`): what near misses tie with, or of which
a right rewrite has another result there, is dropped.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lm_eval_ext.benchmarks.magnifico.generate import to_sql
from lm_eval_ext.benchmarks.magnifico.generate.tree import Aggregate, Question
from lm_eval_ext.sql.distill.scratch_db import NoResultError, Runner
from lm_eval_ext.sql.values import Row

MOST_ROWS = 60
"""Rows of a result that a person would ask for."""

_FEWEST_GROUPS = 2
_OTHERS = ("MAX", "MIN", "AVG", "SUM")


@dataclass
class Check:
    """The first check; ``runner`` reads the original."""

    runner: Runner

    def problem(self, question: Question, gold: str) -> str | None:  # noqa: PLR0911
        """Why a question is not asked; None if it can be."""
        try:
            rows = self.runner.rows(gold)
        except NoResultError:
            return "fails or takes too long"
        if not rows or all(value in (None, 0) for row in rows for value in row):
            return "empty"
        if any(value is None for row in rows for value in row):
            return "shows NULL"
        if len(rows) > MOST_ROWS:
            return "too many rows"
        if question.by and not (question.top or question.having) and len(rows) < _FEWEST_GROUPS:
            return "one group"
        if any(self._same(rows, other) for other in _without_a_side(question)):
            return "a condition changes nothing"
        for number in range(len(question.where)):
            where = question.where[:number] + question.where[number + 1 :]
            if self._same(rows, replace(question, where=where)):
                return "a condition changes nothing"
        if any(self._same(rows, other) for other in _other_measures(question)):
            return "another function gives the same"
        if question.top and self._ties(question):
            return "a tie at the top"
        return None

    def _same(self, rows: list[Row], other: Question) -> bool:
        try:
            return self.runner.same(rows, to_sql.query(other))
        except NoResultError:
            return False

    def _ties(self, question: Question) -> bool:
        """Whether rows or groups around the rank have equal values, or there are too few."""
        top = question.top
        assert top is not None
        ranks = [replace(question, by=None, show=(top.term,), top=replace(top, rank=n))
                 for n in range(1, top.rank + 2)]  # fmt: skip
        if question.by:
            ranks = [replace(one, by=question.by) for one in ranks]
        try:
            found = [self.runner.rows(to_sql.query(one)) for one in ranks]
        except NoResultError:
            return True
        values = [rows[0][-1] for rows in found if rows]
        return len(set(values)) < len(ranks)


def _without_a_side(question: Question) -> Iterator[Question]:
    """The question without HAVING, or with one of its two sets only."""
    if question.having:
        yield replace(question, having=None)
    if question.versus:
        alone = replace(question, versus=None, distinct=True)
        yield alone
        yield replace(alone, where=(question.versus.condition,))
        yield replace(question, versus=replace(question.versus, also=not question.versus.also))


def _other_measures(question: Question) -> Iterator[Question]:
    term = question.show[0] if question.show else None
    if isinstance(term, Aggregate) and term.of is not None:
        for function in _OTHERS:
            if function != term.function:
                yield replace(question, show=(replace(term, function=function),))  # type: ignore[arg-type]
