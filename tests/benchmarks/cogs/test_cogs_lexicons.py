"""Published lexicons and variants byte for byte; fresh words; substitution in files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_ext.benchmarks.cogs import load, mini
from lm_eval_ext.benchmarks.cogs.lexicons import (
    FRESH,
    ITEMS,
    LEXICONS,
    OTHER_WORDS,
    SEEDS,
    replacements,
    substitute,
)
from lm_eval_ext.benchmarks.cogs.load import Style, read_rows, write_rows
from lm_eval_ext.errors import OptionError
from lm_eval_ext.lexicon import SHAPES
from lm_eval_ext.lexicon.words import is_english

VARIANTS = {
    "random_str_shorter": Style(lexicon="random_short"),
    "random_cvcv_str_shorter": Style(lexicon="cvcv_short"),
    "random_cvcv_str_shorter_space_prepended": Style(lexicon="cvcv_short", leading_space=True),
}


def test_published_variants_byte_for_byte(shared_data: Path, tmp_path: Path) -> None:
    """And their strings, which come from the seeds."""
    folders = sorted((shared_data / "cogs/variants").iterdir())
    assert {folder.name for folder in folders} == set(VARIANTS)
    out = tmp_path / "out.tsv"
    for folder in folders:
        style = VARIANTS[folder.name]
        drawn = "".join(f"{word}\n" for word in replacements(style.lexicon).values())
        assert (folder / "added_vocab.txt").read_bytes() == drawn.encode()
        published = list(folder.glob("*.tsv"))
        assert len(published) == 2
        for file in published:
            write_rows(out, read_rows(shared_data / "cogs" / file.name), style)
            assert out.read_bytes() == file.read_bytes(), file


def test_unmodified_is_the_file_itself(shared_data: Path, tmp_path: Path) -> None:
    source = shared_data / "cogs/test.tsv"
    write_rows(tmp_path / "x", read_rows(source), Style())
    assert (tmp_path / "x").read_bytes() == source.read_bytes()


@pytest.mark.parametrize("lexicon", LEXICONS)
def test_a_lexicon_has_one_word_per_item(lexicon: str) -> None:
    words = replacements(lexicon, **({"seed": 0} if lexicon == FRESH else {}))
    assert tuple(words) == ITEMS
    assert len(set(words.values())) == 21


WORDS = {"ship": "zorp", "shipped": "quux"}


@pytest.mark.parametrize(
    ("text", "leading_space", "expected"),
    [
        ("The ship shipped .", False, "The zorp quux ."),
        ("Ship ships shipment", False, "Ship ships shipment"),
        ("ship  ship\t ship", False, "zorp zorp zorp"),
        ("ship . agent ( x _ 1 )", True, " zorp . agent ( x _ 1 )"),
        ("The ship .", True, "The zorp ."),
        ("", True, ""),
        ("  ", False, ""),
    ],
)
def test_whole_tokens_are_replaced(text: str, leading_space: bool, expected: str) -> None:
    assert substitute(text, WORDS, leading_space=leading_space) == expected


def test_what_cannot_be_written_leaves_what_was_there(
    tmp_path: Path, cli: Callable[..., Any]
) -> None:
    source, target = tmp_path / "in.tsv", tmp_path / "out.tsv"
    source.write_text("a\tb\tc\nonly one column\n")
    target.write_text("what was there before")
    done = cli("cogs", "substitute", str(source), "-o", str(target))
    assert done.returncode == 1 and "in.tsv:2: not a sentence" in done.stderr
    assert target.read_text() == "what was there before"
    assert {path.name for path in tmp_path.iterdir()} == {"in.tsv", "out.tsv"}
    with pytest.raises(OptionError, match="cannot write"):
        write_rows(tmp_path / "no" / "folder", [("a", "b", "c")], Style())


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
        ({"lexicon": "random"}, "no COGS lexicon 'random'; use unmodified, random_long"),
        ({"lexicon": "tokens", "seed": 3}, "seed is only for the lexicon fresh"),
        ({"lexicon": FRESH}, "needs a seed, a whole number"),
        ({"lexicon": FRESH, "seed": 3, "shape": "round"}, "no shape 'round' of words; use random"),
        ({"lexicon": "cvcv_long", "shape": "cvcv_long"}, "shape is only for the lexicon fresh"),
    ],
)
def test_wrong_lexicons_seeds_and_shapes_are_one_clear_line(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        replacements(**arguments)


def test_mini_gets_the_first_words() -> None:
    whole = list(replacements(FRESH, seed=5, shape="cvcv_short").values())
    own = replacements(FRESH, seed=5, shape="cvcv_short", items=mini.items())
    assert list(own) == list(mini.items())
    assert list(own.values()) == whole[: len(own)]


def test_the_command_draws_the_words_of_the_tasks(
    real_data: Path, cli: Callable[..., Any], tmp_path: Path
) -> None:
    source = real_data / "cogs/train_exposure_examples.tsv"
    words = replacements(FRESH, seed=11)
    done = cli("cogs", "substitute", "--lexicon", "fresh", "--seed", "11",
               str(source), "-o", str(tmp_path / "o"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "o").read_text()
    assert words["hedgehog"] in text
    for item, word in words.items():
        assert (word in text.split()) == (item in source.read_text().split())
    small = {"cogs_split": "gen_small"}
    documents = load.dataset(cogs_lexicon=FRESH, cogs_seed=11, cogs_shape="cvcv_short", **small)[
        "test"
    ]
    unmodified = load.dataset(**small)["test"]
    hedgehogs = [i for i, text in enumerate(unmodified["sentence"]) if "hedgehog" in text.split()]
    assert len(hedgehogs) == 50
    sentences = documents.select(hedgehogs)["sentence"]
    assert all(words["hedgehog"] in text.split() for text in sentences)
    for more, said in ((["nope"], "no COGS lexicon"), (["fresh"], "needs a seed")):
        out = str(tmp_path / "p")
        done = cli("cogs", "substitute", str(source), "-o", out, "--lexicon", *more)
        assert done.returncode == 1 and said in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert not (tmp_path / "p").exists()
