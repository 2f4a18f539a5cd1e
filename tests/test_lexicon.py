"""New words have their shape; one seed gives the same everywhere, and no word of two seeds."""

import hashlib
import random
import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_ext import lexicon
from lm_eval_ext.benchmarks.cogs.lexicons import replacements
from lm_eval_ext.errors import OptionError
from lm_eval_ext.lexicon import CONSONANTS, SHAPES, VOWELS, WORDLIKE, Shape, draw_words

ALL = {**SHAPES, "wordlike": WORDLIKE}
SHORT = SHAPES["cvcv_short"]


def has_shape(word: str, shape: Shape) -> bool:
    syllables = all((letter in VOWELS) == bool(i % 2) for i, letter in enumerate(word))
    plain = len(word) in shape.lengths and word.isascii() and word.islower()
    return plain and (syllables or shape.letters == "any")


def seed_of(word: str) -> int:
    """The seed that a word belongs to, from its letters alone."""
    syllables = has_shape(word, Shape("syllables", range(30)))
    number, count = 0, 1
    for position, letter in enumerate(word):
        choices = (VOWELS if position % 2 else CONSONANTS) if syllables else string.ascii_lowercase
        number, count = number * len(choices) + choices.index(letter), count * len(choices)
    return number * pow(2**61 - 1, -1, count) % count % 1_000_003


@given(st.sampled_from(sorted(ALL)), st.integers(0, 999_999))
def test_a_word_tells_its_seed(name: str, seed: int) -> None:
    """So two seeds cannot share one, whatever they are drawn for."""
    drawn = [
        lexicon.fresh_words(ALL[name], 21, seed, use=name, refused=lambda word: False)
        for _ in range(2)
    ]
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) == 21
    assert {seed_of(word) for word in drawn[0]} == {seed}
    assert all(has_shape(word, ALL[name]) for word in drawn[0])


@given(st.sampled_from(sorted(SHAPES)), st.integers(), st.integers(1, 40))
def test_words_have_their_shape(name: str, seed: int, count: int) -> None:
    words = draw_words(SHAPES[name], count, random.Random(seed))
    assert len(set(words)) == count
    assert all(has_shape(word, SHAPES[name]) for word in words)
    assert words == draw_words(SHAPES[name], count, random.Random(seed))


def test_letters_leave_words_of_syllables_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of so few words are drawn: 26² less 105, and none twice over 7 seeds."""
    monkeypatch.setattr(lexicon, "CELLS", 7)
    shape = Shape("any", range(2, 3))
    all_words = set[str]()
    for seed in range(7):
        words = {lexicon._draw_fresh(seed, shape, random.Random(draw)) for draw in range(2000)}
        assert words.isdisjoint(all_words), seed
        all_words |= words
    assert len(all_words) > 540
    for word in all_words:
        assert not lexicon.is_of_syllables(word), word


def test_the_same_seed_gives_the_same_words() -> None:
    words: list[str] = []
    for shape in SHAPES:
        words += replacements("fresh", shape=shape, fresh=7).values()
    drawn = replacements("fresh", shape="cvcv_short", seed=7).values()
    for listed, digest in ((words, "e4e153b7dbbc412a"), (drawn, "807efc52472dddee")):
        assert hashlib.sha256(" ".join(listed).encode()).hexdigest()[:16] == digest
    assert set(words).isdisjoint(drawn)


def test_published_words_are_refused_under_a_seed() -> None:
    for name in ("unmodified", "tokens", "cvcv_short"):
        with pytest.raises(OptionError, match="fresh is only for the lexicon fresh; the words of"):
            replacements(name, fresh=7)


@pytest.mark.parametrize("seed", ["7", -1, 1_000_000, 7.0, True, None])
def test_a_value_that_is_no_seed_is_refused(seed: object) -> None:
    with pytest.raises(OptionError, match=re.escape(f"fresh is {seed!r}; use a whole number from")):
        lexicon.check_seed(seed)


def test_taken_words_do_not_come_out_and_an_exhausted_shape_says_so() -> None:
    words = draw_words(SHORT, 5, random.Random(3))
    again = draw_words(SHORT, 5, random.Random(3), taken=set(words[:2]))
    assert not set(again) & set(words[:2])
    assert again[:3] == words[2:5], "the stream goes on where a word was taken"
    with pytest.raises(ValueError, match=r"26 of 200 were found"):
        draw_words(Shape("any", range(1, 2)), 200, random.Random(0))
