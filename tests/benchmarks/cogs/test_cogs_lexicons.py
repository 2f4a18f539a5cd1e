"""Published lexicons and variants byte for byte; fresh words; substitution in files."""

import hashlib
import random
import re
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
    substitute_file,
)
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.lexicon import SHAPES
from lm_eval_ext.lexicon.words import is_english

VARIANTS = [
    ("random_str_shorter", "random_short", False),
    ("random_cvcv_str_shorter", "cvcv_short", False),
    ("random_cvcv_str_shorter_space_prepended", "cvcv_short", True),
]


def test_every_variant_at_hand_is_tried(shared_data: Path) -> None:
    assert {folder.name for folder in (shared_data / "cogs/variants").iterdir()} == {
        name for name, _, _ in VARIANTS
    }


@pytest.mark.parametrize(("folder", "lexicon", "leading_space"), VARIANTS)
def test_published_strings_come_from_the_seeds(
    shared_data: Path, folder: str, lexicon: str, leading_space: bool
) -> None:
    published = (shared_data / "cogs/variants" / folder / "added_vocab.txt").read_bytes()
    assert "".join(f"{word}\n" for word in replacements(lexicon).values()).encode() == published
    assert leading_space == folder.endswith("space_prepended")


@pytest.mark.parametrize(("folder", "lexicon", "leading_space"), VARIANTS)
def test_published_variants_byte_for_byte(
    shared_data: Path, tmp_path: Path, folder: str, lexicon: str, leading_space: bool
) -> None:
    compared = 0
    for published in (shared_data / "cogs/variants" / folder).glob("*.tsv"):
        out = tmp_path / published.name
        substitute_file(
            shared_data / "cogs" / published.name,
            out,
            replacements(lexicon),
            leading_space=leading_space,
        )
        assert (
            hashlib.sha256(out.read_bytes()).digest()
            == hashlib.sha256(published.read_bytes()).digest()
        )
        compared += 1
    assert compared == 2


def test_unmodified_is_the_file_itself(shared_data: Path, tmp_path: Path) -> None:
    source = shared_data / "cogs/test.tsv"
    assert substitute_file(source, tmp_path / "x", replacements("unmodified")) == 3000
    assert (tmp_path / "x").read_bytes() == source.read_bytes()


@pytest.mark.parametrize("lexicon", LEXICONS)
def test_a_lexicon_has_one_word_per_item(lexicon: str) -> None:
    seed, shape = (0, "random_long") if lexicon == FRESH else (None, None)
    words = replacements(lexicon, seed=seed, shape=shape)
    assert tuple(words) == ITEMS
    assert len(set(words.values())) == 21


def test_another_seed_draws_other_words() -> None:
    for lexicon, seed in SEEDS.items():
        assert replacements(lexicon, seed=seed) == replacements(lexicon)
        assert not set(replacements(lexicon, seed=seed + 1).values()) & set(
            replacements(lexicon).values()
        )


def test_what_only_the_authors_scripts_have() -> None:
    """Drawn here as they draw: a length, then a letter or a digit at a time."""
    rng = random.Random(9999)
    letters = ("bcdfghklmnprstvwz", "aeiou")
    short = [
        "".join(rng.choice(letters[place % 2]) for place in range(rng.choice(range(7, 15))))
        for _ in ITEMS
    ]
    assert list(replacements("cvcv_reduced_short").values()) == short
    assert short[0] == "hagenenu"
    assert replacements("cvcv_reduced_long")["hedgehog"] == "duwogifegicisesamakukepeduv"
    numbered = replacements("tokens_randn").values()
    assert all(re.fullmatch(r"\[w_[0-9]{150,159}\]", word) for word in numbered)
    assert len(set(numbered)) == 21
    rng = random.Random(555)
    first = "".join(str(rng.randint(0, 9)) for _ in range(rng.choice(range(150, 160))))
    assert next(iter(numbered)) == f"[w_{first}]"


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


@pytest.mark.parametrize(
    ("lexicon", "seed", "message"),
    [
        ("random", None, "no COGS lexicon 'random'; use unmodified, random_long"),
        ("tokens", 3, "has no random words"),
        ("unmodified", 3, "has no random words"),
    ],
)
def test_wrong_lexicons_are_one_clear_line(lexicon: str, seed: int | None, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        replacements(lexicon, seed=seed)


def test_a_broken_file_leaves_nothing(tmp_path: Path) -> None:
    source, target = tmp_path / "in.tsv", tmp_path / "out.tsv"
    source.write_text("a\tb\tc\nonly one column\n")
    target.write_text("what was there before")
    with pytest.raises(DataError, match=r"in\.tsv: line 2: 1 columns"):
        substitute_file(source, target, WORDS)
    assert target.read_text() == "what was there before"
    assert {path.name for path in tmp_path.iterdir()} == {"in.tsv", "out.tsv"}
    with pytest.raises(DataError, match="cannot be read"):
        substitute_file(tmp_path / "absent", target, WORDS)
    with pytest.raises(OptionError, match="cannot write"):
        substitute_file(source, tmp_path / "no" / "folder", WORDS)


def test_the_command(shared_data: Path, cli: Callable[..., Any], tmp_path: Path) -> None:
    source = shared_data / "cogs/train_exposure_examples.tsv"
    done = cli("cogs", "substitute", "--lexicon", "random_short", str(source), str(tmp_path / "o"))
    assert done.returncode == 0, done.stderr
    published = shared_data / "cogs/variants/random_str_shorter/train_exposure_examples.tsv"
    assert (tmp_path / "o").read_bytes() == published.read_bytes()
    done = cli("cogs", "substitute", "--lexicon", "nope", str(source), str(tmp_path / "p"))
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "p").exists()


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
def test_wrong_seeds_and_shapes_are_one_clear_line(arguments: dict[str, Any], message: str) -> None:
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
    words = load.words_of("cogs", FRESH, 11, "cvcv_short")
    done = cli("cogs", "substitute", "--lexicon", "fresh", "--seed", "11",
               str(source), str(tmp_path / "o"))  # fmt: skip
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
    done = cli("cogs", "substitute", "--lexicon", "fresh", str(source), str(tmp_path / "p"))
    assert done.returncode == 1
    assert "needs a seed" in done.stderr
