"""Reads queries out of answers to prompts of other people, for the commands about SQL.

Our prompts end in SELECT, so that an answer may go on with it (:mod:`.answers`). Nobody knows how
the prompt of another system ended. So the same rules choose the same stretch of the answer, but two
things differ:

- No SELECT is put before it. A broken query, such as ``SELEC name FROM pet``, would become another
  one that runs, since SQLite takes ``SELEC`` for a column.
- A single statement of another kind is taken whole, not only the SELECT in it: whoever answers
  ``INSERT INTO ... SELECT ...`` has not answered with a query. The judge refuses it.
"""

import re
from typing import Final

from lm_eval_ext.benchmarks.magnifico.answers import QueryReader
from lm_eval_ext.sql.values import EngineName

_MAX_CHARS: Final = 200_000
"""Characters of the longest statement that is taken whole."""

_FENCED = re.compile(r"\s*(?P<mark>`{3,}|~{3,})\w*[ \t\r]*\n(?P<inner>.*?)(?P=mark)\s*", re.DOTALL)
_OTHER_STATEMENT = re.compile(
    r"""\s*
    (?: INSERT \s+ (?:OR \s+ \w+ \s+)? INTO
      | REPLACE \s+ INTO
      | DELETE \s+ FROM
      | UPDATE \s+ (?:OR \s+ \w+ \s+)? \S+ \s+ SET
      | MERGE \s+ INTO
      | (?:CREATE|DROP|ALTER) \s+ (?:OR \s+ REPLACE \s+)? (?:TEMP(?:ORARY)? \s+)?
        (?:TABLE|VIEW|INDEX|TRIGGER)
      | EXPLAIN \s+ (?:QUERY \s+ PLAN \s+ | ANALYZE \s+)? (?:SELECT|WITH)
    ) \b
    """,
    re.IGNORECASE | re.VERBOSE,
)


def read_foreign_answer(answer: str, engine: EngineName) -> str | None:
    """Return the query in an answer of any system, or None.

    Args:
        answer: The answer.
        engine: The engine of the database, whose dialect the query is in.
    """
    statement = _other_statement(answer)
    if statement is not None:
        return statement
    reader = QueryReader(is_sqlite=engine == "sqlite", continues_prompt=False)
    return reader.explain(answer).answer or None


def _other_statement(answer: str) -> str | None:
    """Return the statement that is all of an answer, if it is one that is no query."""
    if len(answer) > _MAX_CHARS:
        return None
    fenced = _FENCED.fullmatch(answer)
    text = fenced["inner"] if fenced else answer
    statement = text.strip().rstrip("; \n")
    has_others = ";" in statement or "\n\n" in statement
    if has_others or _OTHER_STATEMENT.match(statement) is None:
        return None
    return statement
