"""MAGNIFICo's golds on Spider's databases: the whole build, once, and its results.

docs/benchmarks/magnifico.md has the numbers.
"""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from distill_cases import content, is_sound, violations

from lm_eval_ext import data
from lm_eval_ext.benchmarks.magnifico import corpora, load

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600), pytest.mark.xdist_group("populated")]


@dataclass(frozen=True)
class Built:
    originals: dict[str, Path]
    golds: dict[str, list[str]]
    folder: Path

    def copy(self, db_id: str) -> Path:
        return self.folder / db_id / f"{db_id}.sqlite"


@pytest.fixture(scope="module")
def built(shared_data: Path, run_cache: Path) -> Built:
    """All golds of all forms, as the tasks build them."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LM_EVAL_EXT_DATA", str(shared_data))
        environment.setenv("LM_EVAL_EXT_CACHE", str(run_cache))
        ready = load.prepare("published")
        assert all(found.ok for found in data.inspect("spider_databases").values())
    golds = {db_id: list(ready.corpus.golds()[db_id]) for db_id in ready.scoring.original}
    folder = next(iter(ready.scoring.populated.values())).parents[1]
    originals = {db_id: Path(place.address) for db_id, place in ready.scoring.original.items()}
    return Built(originals, golds, folder)


@pytest.mark.slow
def test_copies_are_sound_and_small(built: Built) -> None:
    for db_id, original in built.originals.items():
        copy = built.copy(db_id)
        assert is_sound(copy), db_id
        assert violations(copy) <= violations(original), db_id
        before, after = content(original), content(copy)
        assert before["the schema"] == after["the schema"]
        for table, rows in before.items():
            if table == "sqlite_sequence":
                continue  # SQLite's own count, which new rows raise
            kept = Counter(map(repr, rows)) - Counter(map(repr, after[table]))
            assert not kept, (db_id, table)
            assert len(after[table]) - len(rows) <= 500, (db_id, table)


def test_no_published_query_is_shipped(built: Built) -> None:
    text = corpora.SHIPPED.read_text(encoding="utf-8")
    for name, golds in built.golds.items():
        for gold in golds:
            assert json.dumps(gold)[1:-1] not in text, name
