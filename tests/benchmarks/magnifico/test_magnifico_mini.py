"""magnifico_mini has MAGNIFICo's design and none of its text."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from support.databases import read_schema

from lm_eval_ext.benchmarks.magnifico import corpora, mini
from lm_eval_ext.benchmarks.magnifico.records import BASE, NOVEL, Corpus
from lm_eval_ext.sql import Executor
from lm_eval_ext.sql.mutants import mutants

CONTENT = mini.content()
HELD_OUT = [example for examples in CONTENT.support.values() for example in examples]
EVERY = [*CONTENT.examples, *HELD_OUT, *CONTENT.combinations]
FORMS = {form: name for name, one in CONTENT.interpretations.items() for form in one.forms.values()}

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


def _holds(text: str, form: str) -> int:
    return len(re.findall(rf"(?<![\w-]){re.escape(form)}(?![\w-])", text, re.IGNORECASE))


def test_its_size() -> None:
    categories = Counter(one.category for one in CONTENT.interpretations.values())
    assert categories == dict.fromkeys(["basic", "subquery", "value", "column", "phrase"], 2)
    tests = Counter((e.interpretations[0], e.form) for e in CONTENT.examples)
    assert {len(CONTENT.support[key]) for key in tests} == {5}
    for name, one in CONTENT.interpretations.items():
        phrase = one.category == "phrase"
        assert tuple(one.forms) == (("plausible",) if phrase else NOVEL)
        assert {tests[name, form] for form in (BASE, *one.forms)} == {4 if phrase else 6}
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
        for semantics in ("reference", "strict", "sets"):  # the other ones drop DISTINCT
            verdicts = zip(misses, executor.score(misses, semantics=semantics), strict=True)
            wrong = {"wrong", "prediction_error"}
            assert not [miss for miss, verdict in verdicts if verdict.status not in wrong]
    assert len(misses) > 400


def test_nothing_is_taken_from_magnifico(shared_data: Path) -> None:
    theirs = corpora.read(shared_data / "magnifico/magnifico_data")

    def texts(content: Any) -> set[str]:
        examples = [*content.examples, *content.combinations, *chain(*content.support.values())]
        return {_plain(text) for one in examples for text in (one.question, one.query)}

    assert len(texts(theirs)) > 5_000
    assert not texts(theirs) & texts(CONTENT)


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[\w<>=*+|/-]+", text.lower()))
