"""Fresh forms: new words replace the old ones everywhere, are unseen and reproducible."""

import re
from pathlib import Path
from typing import Any

import pytest
from spellchecker import SpellChecker

from lm_eval_ext.benchmarks.magnifico import corpora, documents
from lm_eval_ext.benchmarks.magnifico.records import Corpus
from lm_eval_ext.errors import OptionError


@pytest.fixture(scope="module")
def corpus(shared_data: Path) -> Corpus:
    return corpora.read(shared_data / "magnifico" / "magnifico_data", dialogues=True)


@pytest.fixture(scope="module")
def renewed(corpus: Corpus) -> Corpus:
    return documents.renew(corpus, 11, ["CREATE TABLE boat (keel TEXT)"])


def foreign(corpus: Corpus) -> dict[str, str]:
    return {
        name: one.forms["foreign"]
        for name, one in corpus.interpretations.items()
        if "foreign" in one.forms
    }


def texts(corpus: Corpus, form: str) -> list[str]:
    support = [one for rows in corpus.support.values() for one in rows]
    questions = [
        one.question
        for one in (*corpus.examples, *corpus.combinations, *support)
        if one.form == form
    ]
    dialogues = [
        text for key, found in corpus.dialogues.items() if key[1] == form for text in found.values()
    ]
    return questions + dialogues


def test_every_foreign_word_is_replaced_everywhere(corpus: Corpus, renewed: Corpus) -> None:
    old, new = foreign(corpus), foreign(renewed)
    assert set(old) == set(new)
    assert len(set(new.values())) == 18
    for before, after in zip(texts(corpus, "foreign"), texts(renewed, "foreign"), strict=True):
        words = [name for name in old if old[name] in before]
        assert words
        expected = before
        for name in words:
            expected = expected.replace(old[name], new[name])
        assert after == expected


@pytest.mark.parametrize("form", ["base", "plausible", "adversarial"])
def test_nothing_else_changes(corpus: Corpus, renewed: Corpus, form: str) -> None:
    assert texts(corpus, form) == texts(renewed, form)
    assert corpus.golds() == renewed.golds()


def test_new_words_can_be_said_and_are_no_words(corpus: Corpus, renewed: Corpus) -> None:
    known = SpellChecker(language="en")
    seen = "\n".join(texts(corpus, "base") + texts(corpus, "plausible")).lower()
    seen += "\n".join(query for queries in corpus.golds().values() for query in queries).lower()
    for word in foreign(renewed).values():
        assert re.fullmatch(r"([bcdfghjklmnpqrstvwxyz][aeiou]){3,5}[bcdfghjklmnpqrstvwxyz]?", word)
        assert word not in known
        assert word not in seen


def test_a_seed_decides(corpus: Corpus, renewed: Corpus) -> None:
    assert foreign(documents.renew(corpus, 11, ["CREATE TABLE boat (keel TEXT)"])) == foreign(
        renewed
    )
    assert not set(foreign(documents.renew(corpus, 12, [])).values()) & set(
        foreign(renewed).values()
    )


def test_dialogues_have_no_say_in_the_words(shared_data: Path, renewed: Corpus) -> None:
    without = corpora.read(shared_data / "magnifico/magnifico_data", dialogues=False)
    drawn = documents.renew(without, 11, ["CREATE TABLE boat (keel TEXT)"])
    assert foreign(drawn) == foreign(renewed)


def test_words_of_the_schema_are_refused(corpus: Corpus, renewed: Corpus) -> None:
    schemas = [f"CREATE TABLE {word}s (x)" for word in foreign(renewed).values()]
    drawn = foreign(documents.renew(corpus, 11, schemas))
    assert not set(drawn.values()) & set(foreign(renewed).values())


@pytest.mark.parametrize("seed", [-1, "7", 1.5, True])
def test_a_seed_is_a_whole_number(corpus: Corpus, seed: Any) -> None:
    with pytest.raises(OptionError, match="magnifico_seed"):
        documents.renew(corpus, seed, [])
