"""Work of reading answers that repeat one beginning: characters are counted, not seconds."""

import re
from collections.abc import Iterator

import pytest

from lm_eval_ext.benchmarks.magnifico import sql_text
from lm_eval_ext.benchmarks.magnifico.answers import (
    MAX_CHARS,
    MAX_CHECKED,
    query_in_dialect,
    query_of,
)
from lm_eval_ext.benchmarks.magnifico.dialect_masks import DialectMasks
from lm_eval_ext.benchmarks.magnifico.foreign_answers import read_foreign_answer

OPENINGS = {
    "an insertion": "INSERT INTO t SELECT ",
    "an insertion in parentheses": "INSERT INTO t (a) (SELECT ",
    "a table expression": "WITH a AS (",
    "a closed table expression": "WITH a AS (SELECT 1) ",
    "a selection": "SELECT ",
    "a selection in small letters": "select the ",
    "a subquery": "SELECT (",
    "a view": "CREATE VIEW v AS SELECT ",
    "a plan": "EXPLAIN SELECT ",
    "a description": "DESCRIBE SELECT ",
    "a condition": "SELECT a FROM t WHERE ",
    "a sentence": "SELECT a FROM t. The query returns this. ",
    "alternatives": "could be SELECT a FROM t or ",
    "a denial": "not SELECT a FROM t ",
    "a name with spaces": "SELECT a b c d FROM t\n",
    "another script": "\u4e2dSELECT a ",
    "a fence": "```sql\n",
    "a fenced insertion": "```sql\nINSERT INTO t SELECT a\n```\n",
    "JSON in a fence": '```json\n{"a": "SELECT ',
    "a box": r"\boxed{SELECT ",
    "a quotation": "> SELECT a\n",
    "code in a sentence": "`SELECT `",
    "a semicolon": "; ",
    "an apostrophe": "SELECT '",
    "a quotation mark": 'SELECT "',
    "a comment": "SELECT /* ",
    "a comment of one line": "SELECT a -- ",
}

PASSES = 3
"""How often the characters of a span are looked at: as SQL, for prose behind it, for its end."""


class CountingPattern:
    """The pattern of tokens, which counts the characters of all that it finds."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern = pattern
        self.characters = 0

    def finditer(self, text: str, start: int, end: int) -> Iterator[re.Match[str]]:
        """Yield the tokens of a stretch."""
        for token in self.pattern.finditer(text, start, end):
            self.characters += token.end() - token.start()
            yield token


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> CountingPattern:
    """Count what is read as SQL."""
    pattern = CountingPattern(sql_text._TOKEN)
    monkeypatch.setattr(sql_text, "_TOKEN", pattern)
    return pattern


LENGTHS = [pytest.param(opening, 2_000, id=name) for name, opening in OPENINGS.items()]
LENGTHS += [
    pytest.param(OPENINGS[name], 60_000, id=f"{name}, 60,000 times")
    for name in ("an insertion", "a closed table expression", "a fence")
]


@pytest.mark.parametrize(("opening", "repetitions"), LENGTHS)
def test_an_answer_is_read_a_few_times_whatever_it_repeats(
    opening: str, repetitions: int, counting: CountingPattern
) -> None:
    """However many queries may begin in it, they share one number of characters."""
    answer = opening * repetitions
    read_chars = min(len(answer), MAX_CHARS)
    query_of(answer)
    assert counting.characters <= PASSES * (MAX_CHECKED + read_chars)
    counting.characters = 0
    read_foreign_answer(answer, "sqlite")
    # What is no query is looked for in the whole text, too.
    assert counting.characters <= PASSES * (MAX_CHECKED + 2 * read_chars)


@pytest.mark.parametrize("space", ["\n", " ", "\t \n"], ids=["lines", "spaces", "all"])
def test_blank_space_hides_no_query_of_another_dialect(space: str) -> None:
    """Trying an operator behind each of these would take hours, whatever the machine."""
    blanks = space * (MAX_CHARS // 2 // len(space))
    assert query_in_dialect(f"{blanks}SELECT a::int FROM b") == "SELECT a::int FROM b"


@pytest.mark.parametrize("text", ["a @> b", "a@>b", "a  <@\n b", "a !~ '@> @>'", "a ~~ 'x'"])
def test_an_operator_is_hidden_with_the_spaces_around_it(text: str) -> None:
    """So that the words beside it are no row of words, as prose has them."""
    masks = DialectMasks()
    masked = masks.mask(text)
    assert " " not in masked.partition("'")[0]
    assert masks.unmask(masked) == text
