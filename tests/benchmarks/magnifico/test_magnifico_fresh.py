"""Fresh forms: new words replace the old ones everywhere, are unseen and reproducible."""

import hashlib
import re
from dataclasses import replace
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
    folder = shared_data / "magnifico" / "magnifico_data"
    return replace(corpora.read(folder), dialogues=corpora.read_dialogues(folder))


@pytest.fixture(scope="module")
def fresh(corpus: Corpus) -> Corpus:
    return with_fresh_words(corpus, 11, ["CREATE TABLE boat (keel TEXT)"])


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


def test_every_foreign_word_is_replaced_everywhere(corpus: Corpus, fresh: Corpus) -> None:
    old, new = foreign(corpus), foreign(fresh)
    assert set(old) == set(new)
    assert len(set(new.values())) == 18
    assert hashlib.sha256(" ".join(new.values()).encode()).hexdigest()[:16] == "0ca3256510b8f795"
    for before, after in zip(texts(corpus, "foreign"), texts(fresh, "foreign"), strict=True):
        words = [name for name in old if old[name] in before]
        assert words
        expected = before
        for name in words:
            expected = expected.replace(old[name], new[name])
        assert after == expected


@pytest.mark.parametrize("form", ["base", "plausible", "adversarial"])
def test_nothing_else_changes(corpus: Corpus, fresh: Corpus, form: str) -> None:
    assert texts(corpus, form) == texts(fresh, form)
    assert corpus.golds() == fresh.golds()


def test_new_words_can_be_said_and_are_no_words(corpus: Corpus, fresh: Corpus) -> None:
    known = SpellChecker(language="en")
    seen = "\n".join(texts(corpus, "base") + texts(corpus, "plausible")).lower()
    seen += "\n".join(query for queries in corpus.golds().values() for query in queries).lower()
    for word in foreign(fresh).values():
        assert re.fullmatch(r"([bcdfghjklmnpqrstvwxyz][aeiou]){3,5}[bcdfghjklmnpqrstvwxyz]?", word)
        assert word not in known
        assert word not in seen


def test_words_of_the_schema_are_refused(corpus: Corpus, fresh: Corpus) -> None:
    schemas = [f"CREATE TABLE {word}s (x)" for word in foreign(fresh).values()]
    drawn = foreign(with_fresh_words(corpus, 11, schemas))
    assert not set(drawn.values()) & set(foreign(fresh).values())


@pytest.mark.parametrize("seed", [-1, "7", 1.5, True])
def test_a_seed_is_a_whole_number(corpus: Corpus, seed: Any) -> None:
    with pytest.raises(OptionError, match="magnifico_seed"):
        with_fresh_words(corpus, seed, [])


def test_the_seed_of_all_benchmarks(corpus: Corpus) -> None:
    words = [
        list(foreign(with_fresh_words(corpus, None, [], fresh=seed)).values()) for seed in (7, 8)
    ]
    assert len({*words[0], *words[1]}) == 36
    with pytest.raises(OptionError, match="fresh is '7'"):
        with_fresh_words(corpus, None, [], fresh="7")  # type: ignore[arg-type]


def test_a_task_without_foreign_words_is_refused_under_it(kept_cache: Path) -> None:
    asked = {"magnifico_corpus": "mini", "magnifico_prompt": "desc", "fresh": 7}
    with pytest.raises(OptionError, match="fresh draws new foreign words, and a chosen MAGNIFICo"):
        load.dataset(**asked, magnifico_forms="plausible")
    drawn = load.dataset(**asked, magnifico_forms="foreign")["test"]
    old = load.dataset(**{**asked, "fresh": None}, magnifico_forms="foreign")["test"]
    for one, other in zip(drawn, old, strict=True):
        assert (one["question"] == other["question"]) == (one["form"] == "base")
        assert one["query"] == other["query"]
