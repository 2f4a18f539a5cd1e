"""Reading the published corpus: the documented counts, pairing, malformed files."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from lm_eval_ext.benchmarks.magnifico import corpora
from lm_eval_ext.benchmarks.magnifico.records import BASE, NOVEL, PLACEHOLDER, Corpus, Example
from lm_eval_ext.errors import DataError

PHRASES = {
    "len_less_than",
    "outlier_range",
    "below_average",
    "hire_date",
    "not_intern",
    "dock_count",
}


def is_phrase(example: Example) -> bool:
    """Return whether an example is about a phrase instead of a word."""
    return example.interpretations[0] in PHRASES


def forms_of(examples: Iterable[Example]) -> Counter[str]:
    """Return how many examples have each form."""
    return Counter(example.form for example in examples)


@pytest.fixture(scope="module")
def corpus(shared_data: Path) -> Corpus:
    """Return the published corpus with its dialogues."""
    folder = shared_data / "magnifico" / "magnifico_data"
    return replace(corpora.read(folder), dialogues=corpora.read_dialogues(folder))


def test_the_corpus_has_the_sizes_of_the_fact_sheet(corpus: Corpus) -> None:
    """Words have all forms, phrases one novel form, and combinations all forms."""
    words = []
    phrases = []
    for example in corpus.examples:
        if is_phrase(example):
            phrases.append(example)
        else:
            words.append(example)
    assert forms_of(words) == dict.fromkeys((BASE, *NOVEL), 1060)
    assert forms_of(phrases) == {BASE: 249, "plausible": 249}
    assert forms_of(corpus.combinations) == dict.fromkeys((BASE, *NOVEL), 94)
    assert len({example.interpretations for example in corpus.combinations}) == 24
    assert len(corpus.interpretations) == 24


def test_support_has_five_examples_each(corpus: Corpus) -> None:
    """With it, there are the paper's 1,150 and 279 templates (table 2)."""
    for key, examples in corpus.support.items():
        assert len(examples) == 5, key
    base_support = sum(len(corpus.support[name, BASE]) for name in corpus.interpretations)
    assert base_support == 90 + 30


def test_125_dialogues_name_the_form_wherever_the_definition_stands(corpus: Corpus) -> None:
    """Each form has 125; only base dialogues define the word at the start alone."""
    counts = Counter(form for _, form, _ in corpus.dialogues)
    assert counts == {BASE: 125, "plausible": 125, "foreign": 125}
    for (name, form, _), texts in corpus.dialogues.items():
        if form == BASE:
            word = PLACEHOLDER
            assert set(texts) == {"start"}, name
        else:
            word = corpus.interpretations[name].forms[form]
            assert set(texts) == {"start", "mid", "end"}, name
        for position, text in texts.items():
            assert word in text, (name, form, position)


def test_every_example_of_the_dialogue_experiment_has_its_dialogue(corpus: Corpus) -> None:
    """The paper's 583 templates include the five held out for each of eight interpretations."""
    names = {name for name, _, _ in corpus.dialogues}
    count = 0
    for example in corpus.examples:
        name = example.interpretations[0]
        if name in names and example.form in (BASE, "plausible", "foreign"):
            count += 1
            assert (name, example.form, example.db_id.casefold()) in corpus.dialogues
    assert count == 3 * (583 - 8 * 5)


def test_base_examples_pair_by_gold_query(corpus: Corpus) -> None:
    """A base example has its novel one's query and database, but where others are held out."""
    novel = {}
    for example in corpus.examples:
        if example.form == "plausible":
            novel[example.template] = example
    without_novel = set()
    for example in corpus.examples:
        if example.form != BASE:
            continue
        if example.template in novel:
            assert example.query == novel[example.template].query, example.id
            assert example.db_id == novel[example.template].db_id, example.id
        else:
            without_novel.add(example.interpretations[0])
    assert without_novel == {"salary_more_than", "above_average", "below_average"}


def test_examples_have_different_ids(corpus: Corpus) -> None:
    """No id comes twice."""
    assert len({example.id for example in corpus.examples}) == len(corpus.examples)


def write(folder: Path, text: str) -> Path:
    """Write a file of the corpus."""
    file = folder / "test.tsv"
    file.write_text(text, encoding="utf-8")
    return file


def test_only_the_first_colon_ends_the_id_and_quotes_are_read_as_csv_has_them(
    tmp_path: Path,
) -> None:
    """A cell may have colons, tabs and doubled quotes."""
    text = 'ID\tQuestion\tParse\n0\tdb: what: now? | t : a\t"select a where b = ""x\ty"""\n'
    (row,) = corpora._table(write(tmp_path, text))
    assert row.db_id == "db"
    assert row.question == "what: now?"
    assert row.query == 'select a where b = "x\ty"'


@pytest.mark.parametrize(
    "text",
    [
        "ID\tQuestion\n0\tdb: q | t : a\n",
        "ID\tQuestion\tParse\n0\tno id\tselect 1\n",
        "ID\tQuestion\tParse\n0\tdb:  | t : a\tselect 1\n",
        "ID\tQuestion\tParse\n0\tdb: q | t : a\t\n",
        "ID\tQuestion\tParse\n0\n",
    ],
    ids=["no query column", "no database", "no question", "no query", "no cells"],
)
def test_a_malformed_row_is_named_with_its_line(tmp_path: Path, text: str) -> None:
    """The error says what a row needs."""
    file = write(tmp_path, text)
    with pytest.raises(DataError, match=r"test\.tsv:2: needs Question"):
        list(corpora._table(file))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """The error names the first file that lacks."""
    with pytest.raises(DataError, match="maximum"):
        corpora.read(tmp_path)
