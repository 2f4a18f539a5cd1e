"""One seed for all: the same bytes everywhere, and no word of two seeds."""

import hashlib
import random
import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_ext.benchmarks.cogs.lexicons import replacements
from lm_eval_ext.errors import OptionError
from lm_eval_ext.lexicon import SHAPES, WORDLIKE, Shape, fresh
from lm_eval_ext.lexicon.words import CONSONANTS, VOWELS

ALL = {**SHAPES, "wordlike": WORDLIKE}


def seed_of(word: str) -> int:
    """The seed that a word belongs to, from its letters alone."""
    syllables = fresh.is_of_syllables(word)
    number, count = 0, 1
    for place, letter in enumerate(word):
        choices = (VOWELS if place % 2 else CONSONANTS) if syllables else string.ascii_lowercase
        number, count = number * len(choices) + choices.index(letter), count * len(choices)
    return number * pow(2**61 - 1, -1, count) % count % 1_000_003


def drawn(name: str, seed: int, count: int = 21) -> list[str]:
    return fresh.fresh_words(ALL[name], count, seed, use=name, refused=lambda word: False)


@given(st.sampled_from(sorted(ALL)), st.integers(0, 999_999))
def test_a_word_tells_its_seed(name: str, seed: int) -> None:
    """So two seeds cannot share one, whatever they are drawn for."""
    words = drawn(name, seed)
    assert len(set(words)) == 21
    for word in words:
        assert seed_of(word) == seed
        assert len(word) in ALL[name].lengths
        assert fresh.is_of_syllables(word) == (ALL[name].letters == "syllables")
    assert words == drawn(name, seed)


def test_letters_leave_words_of_syllables_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a space so small that all words come: 26² less 105, and none twice over 7 seeds."""
    monkeypatch.setattr(fresh, "CELLS", 7)
    shape = Shape("any", range(2, 3))
    found = [
        {fresh._draw(seed, shape, random.Random(place)) for place in range(2000)}
        for seed in range(7)
    ]
    together = set().union(*found)
    assert sum(map(len, found)) == len(together)
    assert not [word for word in together if fresh.is_of_syllables(word)]
    assert len(together) > 540


def test_the_same_seed_gives_the_same_words() -> None:
    words = [
        word for shape in SHAPES for word in replacements("fresh", shape=shape, fresh=7).values()
    ]
    digest = hashlib.sha256(" ".join(words).encode()).hexdigest()
    assert digest[:16] == "e4e153b7dbbc412a"
    assert set(words).isdisjoint(replacements("fresh", shape="cvcv_short", seed=7).values())


@pytest.mark.parametrize("lexicon", ["unmodified", "tokens", "cvcv_short"])
def test_published_words_are_refused_under_a_seed(lexicon: str) -> None:
    with pytest.raises(OptionError, match="fresh is only for the lexicon fresh; the words of"):
        replacements(lexicon, fresh=7)


@pytest.mark.parametrize("seed", ["7", -1, 1_000_000, 7.0, True, None])
def test_what_is_no_seed(seed: object) -> None:
    with pytest.raises(OptionError, match=re.escape(f"fresh is {seed!r}; use a whole number from")):
        fresh.check_seed(seed)
