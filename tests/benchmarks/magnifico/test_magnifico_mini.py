"""magnifico_mini has MAGNIFICo's design and none of its text."""

import csv
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lm_eval_ext.benchmarks.magnifico import corpora, mini, prompt
from lm_eval_ext.benchmarks.magnifico.records import BASE, NOVEL, PLACEHOLDER, Corpus
from lm_eval_ext.sql import SEMANTICS, Executor
from lm_eval_ext.sql.mutants import mutants
from lm_eval_ext.sql.schema import Schema, schema_of

CONTENT = mini.content()
HELD_OUT = [example for examples in CONTENT.support.values() for example in examples]
EVERY = [*CONTENT.examples, *HELD_OUT, *CONTENT.combinations]
FORMS = {form: name for name, one in CONTENT.interpretations.items() for form in one.forms.values()}
IDS = [f"{name}-{form}" for name, form, _ in CONTENT.dialogues]

OTHER_ROWS = {
    "distinct_added", "join_loosened", "count_of_distinct", "count_of_nullable",
    "average_truncated", "average_of_distinct", "average_rounded", "extreme_as_first",
    "mode_as_extreme", "mode_as_repeated", "ranking_dropped", "column_swapped",
}  # fmt: skip
"""Kinds of mutants of which the original databases do not distinguish all."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    """The corpus with its databases, built once for all tests that only read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LM_EVAL_EXT_CACHE", str(tmp_path_factory.mktemp("mini")))
        yield mini.corpus()


def _connect(path: Path) -> "closing[sqlite3.Connection]":
    return closing(sqlite3.connect(path))


def read_schema(path: Path) -> Schema:
    with _connect(path) as connection:
        return schema_of(connection)


def _holds(text: str, form: str) -> int:
    return len(re.findall(rf"(?<![\w-]){re.escape(form)}(?![\w-])", text, re.IGNORECASE))


def test_its_size() -> None:
    categories = Counter(one.category for one in CONTENT.interpretations.values())
    assert categories == dict.fromkeys(["basic", "subquery", "value", "column", "phrase"], 2)
    tests = Counter((e.interpretations[0], e.form) for e in CONTENT.examples)
    for name, one in CONTENT.interpretations.items():
        phrase = one.category == "phrase"
        assert tuple(one.forms) == (("plausible",) if phrase else NOVEL)
        for form in (BASE, *one.forms):
            assert tests[name, form] == (4 if phrase else 6)
            assert len(CONTENT.support[name, form]) == 5
        asked_of = {e.db_id for e in CONTENT.examples if e.interpretations == (name,)}
        assert phrase or len(asked_of) >= 2
    assert len(CONTENT.combinations) == 6 * 4
    assert len({e.id for e in EVERY}) == len(EVERY)


def test_a_question_holds_its_own_form_once_and_no_other() -> None:
    for example in EVERY:
        own = () if example.form == BASE else example.interpretations
        wanted = {CONTENT.interpretations[name].forms[example.form]: 1 for name in own}
        held = {form: _holds(example.question, form) for form in FORMS}
        assert {form: n for form, n in held.items() if n} == wanted, example.id
        assert not any(_holds(example.query, form) for form in FORMS)


def test_databases_are_sound(corpus: Corpus) -> None:
    assert {e.db_id for e in EVERY} == set(corpus.databases)
    nulls = dates = quoted = 0
    for db_id, database in corpus.databases.items():
        assert database.script is not None
        script = database.script.read_text()
        assert script == mini.embedded()[f"{db_id}.sql"]
        tables = read_schema(database.path)
        assert 2 <= len(tables) <= 4
        assert any(table.foreign_keys for table in tables.values())
        with _connect(database.path) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
            for name, table in tables.items():
                rows = connection.execute(f'SELECT * FROM "{name}"').fetchall()
                assert 6 <= len(rows) <= 40, name
                assert any(column.primary_key for column in table.columns)
                quoted += any(" " in column.name for column in table.columns)
                nulls += any(None in row for row in rows)
                dates += any(re.fullmatch(r"\d{4}-\d\d-\d\d", str(v)) is not None for v in rows[0])
        creates = [block.partition("\n/*\n")[0] for block in prompt.schema(database)]
        assert [re.split(r'["\s(]+', one)[2] for one in creates] == list(tables)
        assert all(f"{create};" in script for create in creates)
    assert min(nulls, dates, quoted) > 0


def test_golds_give_rows_and_no_mutant_gives_the_same(corpus: Corpus) -> None:
    """But for kinds of mutants that need rows of a suite's other databases."""
    misses = []
    with Executor(workers=1) as executor:
        for db_id, golds in corpus.golds().items():
            database = corpus.databases[db_id]
            schema = read_schema(database.path)
            for gold in golds:
                rows = executor.query(database.path, gold).rows
                assert rows, gold
                assert not any(value is None for row in rows for value in row), gold
                misses += [
                    (db_id, gold, miss.sql)
                    for miss in mutants(gold, schema)
                    if miss.kind not in OTHER_ROWS
                ]
    misses += [
        (e.db_id, e.query, e.query.replace("'north', 'east'", one))
        for e in EVERY
        for one in ("'north'", "'east'")
        if "'north', 'east'" in e.query
    ]
    folder = next(iter(corpus.databases.values())).path.parents[1]
    with Executor(folder, workers=1) as executor:
        for semantics in SEMANTICS:
            verdicts = executor.score(misses, semantics=semantics)
            told_apart = [verdict.status in ("wrong", "prediction_error") for verdict in verdicts]
            ties = [miss for miss, told in zip(misses, told_apart, strict=True) if not told]
            assert not ties, semantics
    assert len(misses) > 400


@pytest.mark.parametrize("key", CONTENT.dialogues, ids=IDS)
def test_a_dialogue_gives_the_definition_in_the_right_third(key: tuple[str, str, str]) -> None:
    name, form, _ = key
    texts = CONTENT.dialogues[key]  # type: ignore[index]
    word = PLACEHOLDER if form == BASE else CONTENT.interpretations[name].forms[form]  # type: ignore[index]
    assert list(texts) == (["start"] if form == BASE else ["start", "mid", "end"])
    for position, text in texts.items():
        turns = text.split("\n\n")
        assert 12 <= len(turns) <= 20
        for index, turn in enumerate(turns):
            assert re.fullmatch(rf"User{1 + index % 2}: [A-Z][^\n]*[.?!]", turn), turn
        third = ["start", "mid", "end"].index(position)
        held = [index for index, turn in enumerate(turns) if _holds(turn, word)]
        assert len(held) == 2
        assert all(third / 3 <= index / len(turns) < (third + 1) / 3 for index in held)
        places = [found.start() / len(text) for found in re.finditer(re.escape(word), text)]
        assert all(third / 3 <= place < (third + 1) / 3 for place in places)
        assert not any(_holds(text, other) for other in FORMS if other != word)
    said = {tuple(sorted(turn[5:] for turn in text.split("\n\n"))) for text in texts.values()}
    assert len(said) == 1


@pytest.fixture
def large_cells() -> Iterator[None]:
    """The csv module reads cells of 16 MiB during the test; its limit belongs to the process."""
    limit = csv.field_size_limit(1 << 24)
    yield
    csv.field_size_limit(limit)


@pytest.mark.usefixtures("large_cells")
def test_nothing_is_taken_from_magnifico_or_spider(shared_data: Path) -> None:
    folder = shared_data / "magnifico/magnifico_data"
    theirs: set[str] = set()
    for file in folder.rglob("*.tsv"):
        with file.open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines, delimiter="\t"):
                question = row["Question"].partition(": ")[2].partition(" | ")[0]
                theirs |= {_plain(question), _plain(row["Parse"])}
    assert len(theirs) > 4000
    assert not theirs & {_plain(text) for e in EVERY for text in (e.question, e.query)}

    turns = {
        _plain(turn.partition(": ")[2])
        for file in folder.rglob("*.txt")
        for turn in file.read_text(encoding="utf-8", errors="replace").split("\n\n")
    }
    ours = [
        turn for d in CONTENT.dialogues.values() for t in d.values() for turn in t.split("\n\n")
    ]
    assert len(turns) > 1000
    assert not turns & {_plain(turn.partition(": ")[2]) for turn in ours}

    their_forms = {f for one in corpora.interpretations().values() for f in one.forms.values()}
    assert not their_forms & set(FORMS)
    assert not set(corpora.interpretations()) & set(CONTENT.interpretations)
    their_meanings = {one.meaning for one in corpora.interpretations().values()}
    assert not their_meanings & {one.meaning for one in CONTENT.interpretations.values()}

    spider = json.loads((shared_data / "spider_databases/tables.json").read_text())
    names = {name.lower() for one in spider for name in one["table_names_original"]}
    scripts = [text for name, text in mini.embedded().items() if name.endswith(".sql")]
    own = {n.lower() for s in scripts for n in re.findall(r'(?i)create table "?(\w+)', s)}
    assert len(own) == 4 + 3 + 3 + 3
    assert not own & names
    assert not {e.db_id for e in EVERY} & {one["db_id"] for one in spider}


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[\w<>=*+|/-]+", text.lower()))
