"""The demonstration corpus: felicitous, reproducible, and without lieder_mini's discourses."""

import re
from itertools import islice

import pytest

from lm_eval_ext.benchmarks.lieder import mini
from lm_eval_ext.demo_model import corpus, lieder

TEXTS = list(corpus.sentences(0, 20_000))

NOUNS = {item.noun for item in corpus.lexicon().items}
PLURALS = {item.plural for item in corpus.lexicon().items}


def referent(text: str) -> str | None:
    """The noun that the second sentence is about, if it is about one."""
    match = re.fullmatch(r"[^.]*\. The (\w+) [^.]*\.", text)
    return match.group(1) if match else None


def test_a_seed_gives_its_texts_and_no_others() -> None:
    again = list(corpus.sentences(0, 2000))
    assert again == TEXTS[:2000]
    assert again != list(corpus.sentences(1, 2000))
    assert len(list(corpus.sentences(3, 17))) == 17


@pytest.mark.parametrize("seed", range(6))
def test_held_out_seeds_give_other_texts(seed: int) -> None:
    # random.Random(2) and random.Random(2 + 2**32) are the same sequence.
    held_out = set(corpus.sentences(seed + lieder.HELD_OUT_SEED_OFFSET, 500))
    assert len(held_out - set(corpus.sentences(seed, 2000))) > 300


def test_texts_come_as_they_are_asked_for() -> None:
    assert len(list(islice(corpus.sentences(0, 10**12), 3))) == 3


def test_no_discourse_of_lieder_mini_occurs() -> None:
    joined = "\n".join(TEXTS)
    for group in mini.groups():
        for sentence in group.sentences:
            assert sentence.context not in joined


def test_the_generator_itself_leaves_them_out(monkeypatch: pytest.MonkeyPatch) -> None:
    first = mini.groups()[0].sentences[0]
    drawn = iter([first.context + first.continuation, first.context + " So it is.", "Fine. Yes."])
    monkeypatch.setattr(corpus, "_text", lambda rng: next(drawn))
    assert list(corpus.sentences(0, 1)) == ["Fine. Yes."]


def test_every_word_of_lieder_mini_occurs() -> None:
    known = set(re.findall(r"\w+", "\n".join(TEXTS)))
    for group in mini.groups():
        for sentence in group.sentences:
            assert set(re.findall(r"\w+", sentence.context + sentence.continuation)) <= known


def test_what_does_not_exist_is_not_referred_to() -> None:
    denied = re.compile(
        r"likewise unable|equally unlikely|, nor |^\w+ was unable [^,]*\.|^\w+ \w+ no |"
        r"^\w+ (does|did) not [^,]*\. |^It is unlikely [^,]*\. "
    )
    texts = [text for text in TEXTS if denied.search(text)]
    assert len(texts) > 2000
    assert {referent(text) for text in texts} == {None}


def test_one_of_them_is_singular_and_two_are_plural() -> None:
    one = [t for t in TEXTS if ", whereas " in t or ", but it is " in t]
    assert {referent(t) for t in one} - {None} <= NOUNS
    two = [t for t in TEXTS if "likewise able" in t or "equally certain" in t or " also " in t]
    shareable = {item.noun for item in corpus.lexicon().items if item.shareable}
    assert {referent(t) for t in two} - {None} == PLURALS | shareable


def test_a_definite_refers_to_the_noun_of_its_context() -> None:
    for text in TEXTS:
        if noun := referent(text):
            assert f" {noun.removesuffix('s')}" in text.partition(".")[0]


def test_texts_are_english() -> None:
    for text in TEXTS:
        assert re.fullmatch(r"[A-Z][^.]*\. [A-Z][^.]*\.", text), text
        assert "  " not in text
        assert not re.search(r"\ba [aeiou]|\ban [^aeiou]", text), text
