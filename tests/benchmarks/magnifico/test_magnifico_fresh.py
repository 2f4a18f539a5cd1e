"""Fresh forms: new words replace the old ones everywhere, are unseen and reproducible."""

import hashlib
import itertools
import re
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from spellchecker import SpellChecker

from lm_eval_ext.benchmarks.magnifico import corpora, load
from lm_eval_ext.benchmarks.magnifico.fresh import with_fresh_words
from lm_eval_ext.benchmarks.magnifico.records import Corpus
from lm_eval_ext.errors import OptionError


@pytest.fixture(scope="module")
def corpus(shared_data: Path) -> Corpus:
    """Return the published corpus with its dialogues."""
    folder = shared_data / "magnifico" / "magnifico_data"
    return replace(corpora.read(folder), dialogues=corpora.read_dialogues(folder))


@pytest.fixture(scope="module")
def fresh(corpus: Corpus) -> Corpus:
    """Return the corpus with fresh words, beside a schema with no such word."""
    return with_fresh_words(corpus, 11, ["CREATE TABLE boat (keel TEXT)"])


def foreign_words(corpus: Corpus) -> dict[str, str]:
    """Return the foreign word of each interpretation that has one."""
    words = {}
    for name, interpretation in corpus.interpretations.items():
        if "foreign" in interpretation.forms:
            words[name] = interpretation.forms["foreign"]
    return words


def texts(corpus: Corpus, form: str) -> list[str]:
    """Return all questions and dialogues of a form."""
    of_form = []
    for example in (*corpus.examples, *corpus.combinations, *chain(*corpus.support.values())):
        if example.form == form:
            of_form.append(example.question)
    for (_, dialogue_form, _), dialogues in corpus.dialogues.items():
        if dialogue_form == form:
            of_form.extend(dialogues.values())
    return of_form


def test_every_foreign_word_is_replaced_everywhere(corpus: Corpus, fresh: Corpus) -> None:
    """Each text has the new words instead of the old ones, and they are the seed's."""
    old_words = foreign_words(corpus)
    new_words = foreign_words(fresh)
    assert set(old_words) == set(new_words)
    assert len(set(new_words.values())) == 18
    digest = hashlib.sha256(" ".join(new_words.values()).encode()).hexdigest()
    assert digest[:16] == "0ca3256510b8f795"
    for old_text, new_text in zip(texts(corpus, "foreign"), texts(fresh, "foreign"), strict=True):
        expected = old_text
        for name, word in old_words.items():
            expected = expected.replace(word, new_words[name])
        assert expected != old_text
        assert new_text == expected


@pytest.mark.parametrize("form", ["base", "plausible", "adversarial"])
def test_nothing_else_changes(corpus: Corpus, fresh: Corpus, form: str) -> None:
    """Other forms and gold queries stay."""
    assert texts(corpus, form) == texts(fresh, form)
    assert corpus.golds() == fresh.golds()


def test_new_words_can_be_said_and_are_no_words(corpus: Corpus, fresh: Corpus) -> None:
    """They alternate consonants and vowels, and are in no dictionary, question or query."""
    dictionary = SpellChecker(language="en")
    queries = itertools.chain(*corpus.golds().values())
    used = "\n".join([*texts(corpus, "base"), *texts(corpus, "plausible"), *queries]).lower()
    consonant = "[bcdfghjklmnpqrstvwxyz]"
    for word in foreign_words(fresh).values():
        assert re.fullmatch(rf"({consonant}[aeiou]){{3,5}}{consonant}?", word), word
        assert word not in dictionary
        assert word not in used, word


def test_words_of_the_schema_are_refused(corpus: Corpus, fresh: Corpus) -> None:
    """Other words are drawn if tables have the drawn ones in their names."""
    schemas = [f"CREATE TABLE {word}s (x)" for word in foreign_words(fresh).values()]
    drawn = foreign_words(with_fresh_words(corpus, 11, schemas))
    assert not set(drawn.values()) & set(foreign_words(fresh).values())


@pytest.mark.parametrize("seed", [-1, "7", 1.5, True])
def test_a_seed_is_a_whole_number(corpus: Corpus, seed: Any) -> None:
    """The error names the option."""
    with pytest.raises(OptionError, match="magnifico_seed"):
        with_fresh_words(corpus, seed, [])


def test_the_seed_of_all_benchmarks_draws_words(corpus: Corpus) -> None:
    """``fresh`` draws words without a seed of MAGNIFICo's, and two seeds share none."""
    drawn: set[str] = set()
    for seed in (7, 8):
        drawn.update(foreign_words(with_fresh_words(corpus, None, [], fresh=seed)).values())
    assert len(drawn) == 2 * 18
    with pytest.raises(OptionError, match="fresh is '7'"):
        with_fresh_words(corpus, None, [], fresh="7")  # type: ignore[arg-type]


MINI: dict[str, Any] = {"magnifico_corpus": "mini", "magnifico_prompt": "desc"}


def test_a_task_without_foreign_words_is_refused_under_it(kept_cache: Path) -> None:
    """There is nothing that could be fresh."""
    with pytest.raises(OptionError, match="fresh draws new foreign words, and a chosen MAGNIFICo"):
        load.dataset(**MINI, fresh=7, magnifico_forms="plausible")


def test_a_task_with_foreign_words_has_others_under_it(kept_cache: Path) -> None:
    """All foreign questions change, and no base question or query does."""
    fresh_docs = load.dataset(**MINI, fresh=7, magnifico_forms="foreign")["test"]
    docs = load.dataset(**MINI, fresh=None, magnifico_forms="foreign")["test"]
    for fresh_doc, doc in zip(fresh_docs, docs, strict=True):
        is_same = fresh_doc["question"] == doc["question"]
        assert is_same == (fresh_doc["form"] == "base")
        assert fresh_doc["query"] == doc["query"]
