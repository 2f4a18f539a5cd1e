"""Words drawn from a seed: new, different, and the same wherever they are used."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_ext.benchmarks.cogs import load, mini
from lm_eval_ext.benchmarks.cogs.lexicons import FRESH, ITEMS, OTHER_WORDS, SEEDS, replacements
from lm_eval_ext.errors import OptionError
from lm_eval_ext.lexicon import SHAPES
from lm_eval_ext.lexicon.words import is_english


@given(seed=st.integers(), shape=st.sampled_from(sorted(SHAPES)))
def test_fresh_words_are_new_and_of_their_shape(seed: int, shape: str) -> None:
    words = list(replacements(FRESH, seed=seed, shape=shape).values())
    assert len(set(words)) == len(ITEMS)
    assert replacements(FRESH, seed=seed, shape=shape) == dict(zip(ITEMS, words, strict=True))
    for word in words:
        assert len(word) in SHAPES[shape].lengths
        assert word.isascii()
        assert word.islower()
        assert not is_english(word)
        assert word not in OTHER_WORDS
        if SHAPES[shape].letters == "syllables":
            assert all((letter in "aeiou") == bool(i % 2) for i, letter in enumerate(word))


def test_no_seed_gives_the_published_strings_again() -> None:
    for lexicon, seed in SEEDS.items():
        fresh = replacements(FRESH, seed=seed, shape=lexicon)
        assert not set(fresh.values()) & set(replacements(lexicon).values())


def test_a_refused_word_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = list(replacements(FRESH, seed=3, shape="cvcv_short").values())
    monkeypatch.setattr(
        "lm_eval_ext.lexicon.words.is_english", lambda word: word in (drawn[0], drawn[5])
    )
    again = list(replacements(FRESH, seed=3, shape="cvcv_short").values())
    assert not {drawn[0], drawn[5]} & set(again)
    assert again[0] == drawn[1]


def test_every_word_of_the_dataset_is_refused(shared_data: Path) -> None:
    """Whatever of it is long enough to be drawn: the shortest drawn word has seven letters."""
    shortest = min(min(shape.lengths) for shape in SHAPES.values())
    tried = 0
    for file in (shared_data / "cogs").glob("*.tsv"):
        for line in file.read_text().splitlines():
            for word in {token.lower() for text in line.split("\t")[:2] for token in text.split()}:
                if len(word) >= shortest and word.isalpha():
                    tried += 1
                    assert is_english(word) or word in OTHER_WORDS, word
    assert tried > 10_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lexicon": FRESH}, "needs a seed, a whole number, not None"),
        ({"lexicon": FRESH, "seed": "3", "shape": "cvcv_long"}, "not '3'"),
        ({"lexicon": FRESH, "seed": True, "shape": "cvcv_long"}, "not True"),
        ({"lexicon": FRESH, "seed": 3, "shape": "round"}, "no shape 'round' of words; use random"),
        ({"lexicon": FRESH, "seed": 3}, "no shape None"),
        ({"lexicon": "cvcv_long", "shape": "cvcv_long"}, "only fresh takes a shape"),
    ],
)
def test_wrong_options_are_one_clear_line(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        replacements(**arguments)


def test_mini_gets_the_first_words() -> None:
    whole = list(replacements(FRESH, seed=5, shape="cvcv_short").values())
    own = replacements(FRESH, seed=5, shape="cvcv_short", items=mini.items())
    assert list(own) == list(mini.items())
    assert list(own.values()) == whole[: len(own)]


def test_the_command_gives_the_words_of_the_tasks(
    real_data: Path, cli: Callable[..., Any], tmp_path: Path
) -> None:
    source = real_data / "cogs/train_exposure_examples.tsv"
    words = load.words_of("cogs", FRESH, 11, "cvcv_short")
    done = cli("cogs", "substitute", "--lexicon", "fresh", "--seed", "11",
               str(source), str(tmp_path / "o"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "o").read_text()
    assert words["hedgehog"] in text
    for item, word in words.items():
        assert (word in text.split()) == (item in source.read_text().split())
    documents = load.dataset(cogs_lexicon=FRESH, cogs_seed=11, cogs_shape="cvcv_short")["test"]
    unmodified = load.dataset()["test"]
    hedgehogs = [i for i, text in enumerate(unmodified["sentence"]) if "hedgehog" in text.split()]
    assert len(hedgehogs) == 1000
    sentences = documents.select(hedgehogs)["sentence"]
    assert all(words["hedgehog"] in text.split() for text in sentences)
    done = cli("cogs", "substitute", "--lexicon", "fresh", str(source), str(tmp_path / "p"))
    assert done.returncode == 1
    assert "needs a seed" in done.stderr
