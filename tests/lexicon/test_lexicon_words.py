"""Random words have their shape and differ from each other and from excluded words."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_ext.lexicon import SHAPES, Shape, draw_words


@given(st.sampled_from(sorted(SHAPES)), st.integers(), st.integers(1, 40))
def test_words_have_their_shape(name: str, seed: int, count: int) -> None:
    shape = SHAPES[name]
    words = draw_words(shape, count, random.Random(seed))
    assert len(set(words)) == count
    for word in words:
        assert len(word) in shape.lengths
        assert word.isascii()
        assert word.islower()
        if shape.letters == "syllables":
            assert all((letter in "aeiou") == bool(i % 2) for i, letter in enumerate(word))
    assert words == draw_words(shape, count, random.Random(seed))


def test_taken_words_do_not_come_out() -> None:
    shape = SHAPES["cvcv_short"]
    first = draw_words(shape, 5, random.Random(3))
    again = draw_words(shape, 5, random.Random(3), taken=set(first[:2]))
    assert not set(again) & set(first[:2])
    assert again[:3] == first[2:5], "the stream goes on where a word was taken"


def test_an_exhausted_shape_says_so() -> None:
    with pytest.raises(ValueError, match=r"26 of 200 were found"):
        draw_words(Shape("any", range(1, 2)), 200, random.Random(0))
