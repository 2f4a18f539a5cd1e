"""Reading the published corpus: the documented counts, pairing, malformed files."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from lm_eval_ext.benchmarks.magnifico import corpora
from lm_eval_ext.benchmarks.magnifico.records import BASE, NOVEL, PLACEHOLDER, Corpus
from lm_eval_ext.errors import DataError

PHRASES = {"len_less_than", "outlier_range", "below_average", "hire_date", "not_intern"} | {
    "dock_count"
}


@pytest.fixture(scope="module")
def corpus(shared_data: Path) -> Corpus:
    folder = shared_data / "magnifico" / "magnifico_data"
    return replace(corpora.read(folder), dialogues=corpora.read_dialogues(folder))


def test_it_has_the_sizes_of_the_fact_sheet(corpus: Corpus) -> None:
    words = [one for one in corpus.examples if one.interpretations[0] not in PHRASES]
    phrases = [one for one in corpus.examples if one.interpretations[0] in PHRASES]
    assert Counter(one.form for one in words) == dict.fromkeys((BASE, *NOVEL), 1060)
    assert Counter(one.form for one in phrases) == dict.fromkeys((BASE, "plausible"), 249)
    assert Counter(one.form for one in corpus.combinations) == dict.fromkeys((BASE, *NOVEL), 94)
    assert len({one.interpretations for one in corpus.combinations}) == 24
    assert len(corpus.interpretations) == 24
    assert {len(rows) for rows in corpus.support.values()} == {5}
    # Support included: 1,150 and 279 templates (paper, table 2).
    assert sum(len(corpus.support[name, BASE]) for name in corpus.interpretations) == 90 + 30


def test_125_dialogues_name_the_form_wherever_the_definition_stands(corpus: Corpus) -> None:
    assert Counter(form for _, form, _ in corpus.dialogues) == {
        BASE: 125, "plausible": 125, "foreign": 125,
    }  # fmt: skip
    for (name, form, _), places in corpus.dialogues.items():
        word = PLACEHOLDER if form == BASE else corpus.interpretations[name].forms[form]
        assert set(places) == ({"start"} if form == BASE else {"start", "mid", "end"})
        assert all(word in text for text in places.values())


def test_every_example_of_the_dialogue_experiment_has_its_dialogue(corpus: Corpus) -> None:
    names = {name for name, _, _ in corpus.dialogues}
    asked = [
        one
        for one in corpus.examples
        if one.interpretations[0] in names and one.form in (BASE, "plausible", "foreign")
    ]
    for one in asked:
        assert (one.interpretations[0], one.form, one.db_id.casefold()) in corpus.dialogues
    # The paper's 583 templates include the five held out for each of eight interpretations.
    assert len(asked) == 3 * (583 - 8 * 5)


def test_base_examples_pair_by_gold_query(corpus: Corpus) -> None:
    novel = {one.template: one for one in corpus.examples if one.form == "plausible"}
    alone = []
    for one in corpus.examples:
        if one.form == BASE:
            if one.template in novel:
                assert one.query == novel[one.template].query
                assert one.db_id == novel[one.template].db_id
            else:
                alone.append(one.interpretations[0])
    # Where other base examples are held out: two words and one phrase.
    assert set(alone) == {"salary_more_than", "above_average", "below_average"}
    assert len({one.id for one in corpus.examples}) == len(corpus.examples)


def write(folder: Path, text: str) -> Path:
    file = folder / "test.tsv"
    file.write_text(text, encoding="utf-8")
    return file


def test_only_the_first_colon_ends_the_id_and_quotes_are_read_as_csv_has_them(
    tmp_path: Path,
) -> None:
    text = 'ID\tQuestion\tParse\n0\tdb: what: now? | t : a\t"select a where b = ""x\ty"""\n'
    (row,) = corpora._table(write(tmp_path, text))
    assert (row.db_id, row.question, row.query) == (
        "db", "what: now?", 'select a where b = "x\ty"'
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "ID\tQuestion\n0\tdb: q | t : a\n",
        "ID\tQuestion\tParse\n0\tno id\tselect 1\n",
        "ID\tQuestion\tParse\n0\tdb:  | t : a\tselect 1\n",
        "ID\tQuestion\tParse\n0\tdb: q | t : a\t\n",
        "ID\tQuestion\tParse\n0\n",
    ],
)
def test_a_malformed_row_is_named_with_its_line(tmp_path: Path, text: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(DataError, match=r"test\.tsv:2: needs Question"):
        list(corpora._table(file))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="maximum"):
        corpora.read(tmp_path)
