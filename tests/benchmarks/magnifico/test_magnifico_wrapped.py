"""Queries in JSON, in parentheses, behind thoughts, between sentences: found, and no text harmed.

Each rule is tested both ways: on answers whose query has to be found, and on texts that look alike
and have to stay as they are.
"""

import json
from collections.abc import Callable

import pytest

from lm_eval_ext.benchmarks.magnifico.extract import query_of
from lm_eval_ext.benchmarks.magnifico.sql_text import parses

pytestmark = pytest.mark.slow


QUERIES = [
    "SELECT name FROM boat",
    "select count(*) from boat",
    "SELECT DISTINCT T1.name FROM boat AS T1 JOIN crew AS T2 ON T1.id = T2.boat",
    "SELECT name FROM boat WHERE port = 'Bank' AND mast > 1",
    'SELECT "home port" FROM boat WHERE "home port" != "St. Abb\'s"',
    "SELECT name FROM boat WHERE note LIKE '%the%' ESCAPE '\\'",
    "SELECT name\nFROM boat\nWHERE mast IN (\n  SELECT MAX(mast)\n  FROM boat\n)",
    "SELECT port, COUNT(*) FROM boat GROUP BY port HAVING COUNT(*) > 1 ORDER BY port DESC LIMIT 1",
    "SELECT name FROM boat EXCEPT SELECT name FROM boat WHERE mast = 1",
    "WITH tall AS (SELECT * FROM boat WHERE mast > 1) SELECT name FROM tall",
    "SELECT name FROM boat WHERE mast = (SELECT MAX(mast) FROM boat)",
    "SELECT (SELECT MAX(mast) FROM boat) - MIN(mast) FROM boat",
    "SELECT CASE WHEN mast > 1 THEN 'It is tall.' ELSE 'This returns low' END FROM boat",
    "SELECT This.name FROM boat This WHERE This.mast BETWEEN 1 AND 2",
    "SELECT name FROM boat WHERE note = '{\"sql\": \"x\"}' OR note = '(SELECT 1)'",
    "SELECT max(length) - min(length) from boat where name is not null",
]  # fmt: skip
WRONG = [
    "SELECT name FROM boat WHERE",
    "SELECT name FROM boat WHERE port = 'Bank",
    "SELECT name FROM boat ORDER name LIMIT 1",
    "SELECT name FROM boat SELECT port FROM boat",
    "SELECT Name FROM Boat Group Port",
    "SELECT name FROM boat gives the names",
    "SELECT name FROM boat JOIN",
    "SELECT name FROM boat)",
]
"""Queries that fail: they are the answer, and nothing repairs them."""

TAGS = ("think", "thinking", "thought", "reasoning", "reflection", "scratchpad", "analysis")
AROUND: dict[str, Callable[[str], str]] = {
    "nothing": lambda q: q,
    "JSON": lambda q: json.dumps({"sql": q}),
    "JSON with lines": lambda q: json.dumps({"thought": "select it", "query": f"{q};"}, indent=2),
    "JSON nested": lambda q: json.dumps({"answer": {"query": [q]}, "confidence": 0.9}),
    "JSON in JSON": lambda q: json.dumps({"arguments": json.dumps({"query": q})}),
    "JSON in a fence": lambda q: f"Sure!\n```json\n{json.dumps({'sql': q})}\n```\nThat's it.",
    "JSON in prose": lambda q: f"The result: {json.dumps({'sql': q})} as you asked.",
    "a fence in JSON": lambda q: json.dumps({"answer": f"Here:\n```sql\n{q}\n```"}),
    "parentheses": lambda q: f"({q})",
    "two parentheses": lambda q: f" (\n({q})\n);",
    "parentheses in a fence": lambda q: f"```sql\n({q});\n```",
    "parentheses in prose": lambda q: f"Here's the query:\n({q})\n",
    "a clause": lambda q: f"with this in mind, {q}",
    "a clause without a comma": lambda q: f"the query that answers it is {q}",
    "a sentence": lambda q: f"{q} This returns what you asked for.",
    "a sentence after a full stop": lambda q: f"{q}. This returns what you asked for.",
    "a sentence after a semicolon": lambda q: f"{q}; this returns what you asked for.",
    "a sentence on a line": lambda q: f"{q}\nThis returns what you asked for.",
    "a lower-case sentence on a line": lambda q: f"{q}\nit's what you asked for",
    "a sentence before and one behind": lambda q: f"Here's the query: {q} It returns the names.",
    "a label": lambda q: f"{q}\nExplanation: it returns the names.",
    **{tag: (lambda q, t=tag: f"<{t}>SELECT 1 FROM it</{t}>\n{q}") for tag in TAGS},  # type: ignore[misc]
    **{f"{t} behind": (lambda q, t=t: f"{q}\n<{t}>It's right.</{t}>") for t in TAGS},  # type: ignore[misc]
}


BARE = ("nothing", "JSON", "JSON nested", "JSON in a fence")


@pytest.mark.parametrize("name", AROUND)
def test_a_query_comes_back_from_everything_around_it(name: str) -> None:
    for query in [*QUERIES, *(WRONG if name in BARE else [])]:
        assert query_of(AROUND[name](query)) == query


def test_the_parser_does_not_compile() -> None:
    """Each expression reads the one before twice: compiled, this has a million million joins."""
    steps = [f"c{n} AS (SELECT p.x FROM c{n - 1} p, c{n - 1} q)" for n in range(1, 40)]
    assert parses(f"WITH c0 AS (SELECT 1 x), {', '.join(steps)} SELECT * FROM c39")
