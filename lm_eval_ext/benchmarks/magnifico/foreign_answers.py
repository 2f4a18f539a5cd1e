"""Reads queries out of answers to prompts of other people, for the commands about SQL.

Our prompts end in SELECT, so that an answer may go on with it (:mod:`.answers`). Nobody knows how
the prompt of another system ended. So the same rules choose the same stretch of the answer, but two
things differ:

- No SELECT is put before it. A broken query, such as ``SELEC name FROM pet``, would become another
  one that runs, since SQLite takes ``SELEC`` for a column.
- A query that belongs to a statement of another kind is taken with all of it
  (:mod:`.other_statements`): whoever answers ``INSERT INTO ... SELECT ...`` has not answered with a
  query. The judge refuses it.
"""

from lm_eval_ext.benchmarks.magnifico.answers import QueryReader
from lm_eval_ext.sql.values import EngineName


def read_foreign_answer(answer: str, engine: EngineName) -> str | None:
    """Return the query in an answer of any system, or None.

    Args:
        answer: The answer.
        engine: The engine of the database, whose dialect the query is in.
    """
    reader = QueryReader(is_sqlite=engine == "sqlite", continues_prompt=False)
    return reader.explain(answer).answer or None
