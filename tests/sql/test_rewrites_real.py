"""Rewrites of MAGNIFICo's golds have their results on the original databases."""

import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from magnifico_golds import ALL, a_part, distinct

from lm_eval_ext.sql.policy import register
from lm_eval_ext.sql.rewrites import KINDS, Facts, UnparsedQuery, rewrites
from lm_eval_ext.sql.schema import schema_of

pytestmark = pytest.mark.slow

FOR_NONE = {
    "comparisons_as_between",
    "group_as_distinct",
    "in_as_join",
    "union_as_or",
    "where_key_as_having",
}
"""Rules that serve none of the published golds, but those of others."""

STEPS = 1_000
"""Of 10,000 instructions: more than a query may take where rows are added."""


class Original:
    """A database and its facts; a rewrite that SQLite refuses raises."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
        self.connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        register(self.connection)
        self.facts = Facts(schema_of(self.connection), self.rows, InterruptedError)

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        left = [STEPS]

        def tick() -> bool:
            left[0] -= 1
            return left[0] < 0

        self.connection.set_progress_handler(tick, 10_000)
        return self.connection.execute(sql).fetchall()


@pytest.mark.slow
def test_rewrites_of_real_golds(shared_data: Path) -> None:
    originals: dict[Path, Original] = {}
    count: Counter[str] = Counter()
    golds = 0
    for path, gold in distinct(shared_data) if ALL else a_part(shared_data):
        if path not in originals:
            originals[path] = Original(path)
        original = originals[path]
        try:
            expected = original.rows(gold)
            found = rewrites(gold, original.facts.schema, original.facts)
        except (sqlite3.OperationalError, UnparsedQuery):
            continue
        golds += 1
        for rewrite in found:
            count[rewrite.kind] += 1
            assert original.rows(rewrite.sql) == expected, (path.stem, gold, rewrite)
    for original in originals.values():
        original.connection.close()
    lines = [f"{count[kind]:6,}  {kind}" for kind in KINDS]
    print("", f"{sum(count.values()):,} rewrites of {golds:,} golds", *lines, sep="\n")  # noqa: T201
    assert golds > 100
    assert not ALL or {kind for kind in KINDS if not count[kind]} == FOR_NONE
