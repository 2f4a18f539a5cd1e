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
from lm_eval_ext.benchmarks.magnifico.records import BASE, NOVEL, Corpus, Example
from lm_eval_ext.sql import Executor
from lm_eval_ext.sql.mutants import mutants
from lm_eval_ext.sql.values import Mutant

CONTENT = mini.content()
HELD_OUT = list(chain(*CONTENT.support.values()))
ALL_EXAMPLES = [*CONTENT.examples, *HELD_OUT, *CONTENT.combinations]


def novel_words() -> list[str]:
    """Return the words of all forms of all interpretations."""
    words: list[str] = []
    for interpretation in CONTENT.interpretations.values():
        words.extend(interpretation.forms.values())
    return words


NOVEL_WORDS = novel_words()

OTHER_ROWS = {
    "distinct_added", "join_loosened", "count_of_distinct", "count_of_nullable",
    "average_truncated", "average_of_distinct", "average_rounded", "extreme_as_first",
    "mode_as_extreme", "mode_as_repeated", "ranking_dropped", "column_swapped",
}  # fmt: skip
"""Kinds of mutants of which the original databases do not distinguish all."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    """Return the corpus with its databases, built once for all tests that only read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LM_EVAL_EXT_CACHE", str(tmp_path_factory.mktemp("mini")))
        yield mini.corpus()


def count_of(word: str, text: str) -> int:
    """Count a word or phrase in a text, in any case."""
    pattern = rf"(?<![\w-]){re.escape(word)}(?![\w-])"
    return len(re.findall(pattern, text, re.IGNORECASE))


def test_each_category_has_four_interpretations_and_phrases_have_two() -> None:
    """There are six combinations of them with four forms each, and no id comes twice."""
    categories = Counter(each.category for each in CONTENT.interpretations.values())
    assert categories == {"basic": 4, "subquery": 4, "value": 4, "column": 4, "phrase": 2}
    assert len(CONTENT.combinations) == 6 * 4
    assert len({example.id for example in ALL_EXAMPLES}) == len(ALL_EXAMPLES)


@pytest.mark.parametrize("name", CONTENT.interpretations)
def test_forms_of_an_interpretation_have_the_same_number_of_examples(name: str) -> None:
    """A word has six in each of four forms, on several databases; a phrase has four in two."""
    interpretation = CONTENT.interpretations[name]
    examples = [each for each in CONTENT.examples if each.interpretations == (name,)]
    counts = Counter(example.form for example in examples)
    if interpretation.category == "phrase":
        assert tuple(interpretation.forms) == ("plausible",)
        assert counts == {BASE: 4, "plausible": 4}
    else:
        assert tuple(interpretation.forms) == NOVEL
        assert counts == dict.fromkeys((BASE, *NOVEL), 6)
        assert len({example.db_id for example in examples}) >= 2
    for form in counts:
        assert len(CONTENT.support[name, form]) == 5


@pytest.mark.parametrize("example", ALL_EXAMPLES, ids=[example.id for example in ALL_EXAMPLES])
def test_a_question_holds_its_own_form_once_and_no_other(example: Example) -> None:
    """A base question has no novel word, and a query none at all."""
    expected = {}
    if example.form != BASE:
        for name in example.interpretations:
            expected[CONTENT.interpretations[name].forms[example.form]] = 1
    in_question = {}
    for word in NOVEL_WORDS:
        count = count_of(word, example.question)
        if count:
            in_question[word] = count
        assert not count_of(word, example.query), word
    assert in_question == expected


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    """Return an executor with one process, for all tests."""
    with Executor(workers=1) as executor:
        yield executor


Miss = tuple[str, str, str]
"""A database, a gold query on it, and a query that must not be right."""


def is_no_mistake(gold: str, mutant: Mutant) -> bool:
    """Return whether a mutant means the same as its gold: a distance has no direction."""
    return mutant.kind == "operands_reversed" and "ABS(" in gold


@pytest.fixture(scope="module")
def mutant_queries(corpus: Corpus) -> list[Miss]:
    """Return the mutants of all golds, but for the kinds that need rows of other databases."""
    misses = []
    for db_id, golds in corpus.golds().items():
        schema = read_schema(corpus.databases[db_id].path)
        for gold in golds:
            for mutant in mutants(gold, schema):
                if mutant.kind not in OTHER_ROWS and not is_no_mistake(gold, mutant):
                    misses.append((db_id, gold, mutant.sql))
    return misses


def queries_with_half_of_a_list() -> list[Miss]:
    """Return the golds with a list of two values, with only one of them."""
    both = "'north', 'east'"
    misses = []
    for example in ALL_EXAMPLES:
        if both in example.query:
            for value in ("'north'", "'east'"):
                query = example.query.replace(both, value)
                misses.append((example.db_id, example.query, query))
    return misses


def test_golds_give_rows_without_null(corpus: Corpus, executor: Executor) -> None:
    """An empty result or a NULL would make wrong queries right."""
    for db_id, golds in corpus.golds().items():
        for gold in golds:
            rows = executor.query(corpus.databases[db_id].path, gold).rows
            assert rows, gold
            for row in rows:
                assert None not in row, gold


# The other semantics drop DISTINCT.
@pytest.mark.parametrize("semantics", ["reference", "strict", "sets"])
def test_no_mutant_gives_the_gold_result(
    corpus: Corpus, mutant_queries: list[Miss], semantics: str
) -> None:
    """All are wrong on the original databases already."""
    misses = [*mutant_queries, *queries_with_half_of_a_list()]
    assert len(misses) > 1_200
    folder = next(iter(corpus.databases.values())).path.parents[1]
    with Executor(folder, workers=1) as executor:
        verdicts = executor.score(misses, semantics=semantics)
    right = []
    for miss, verdict in zip(misses, verdicts, strict=True):
        if verdict.status not in ("wrong", "prediction_error"):
            right.append(miss)
    assert right == []


def plain_texts(corpus: Any) -> set[str]:
    """Return all questions and queries, in lower case and without punctuation."""
    examples = [*corpus.examples, *corpus.combinations, *chain(*corpus.support.values())]
    texts = set()
    for example in examples:
        for text in (example.question, example.query):
            texts.add(" ".join(re.findall(r"[\w<>=*+|/-]+", text.lower())))
    return texts


def test_nothing_is_taken_from_magnifico(shared_data: Path) -> None:
    """No question and no query is published."""
    published = plain_texts(corpora.read(shared_data / "magnifico/magnifico_data"))
    assert len(published) > 5_000
    assert not published & plain_texts(CONTENT)
