"""Files become documents with the published counts; a broken file gives a one-line error."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.benchmarks.cogs import load
from lm_eval_ext.benchmarks.cogs.lexicons import ITEMS, LEXICONS, replacements, substitute
from lm_eval_ext.benchmarks.cogs.records import (
    LEXICAL,
    SPLITS,
    STRUCTURAL,
    Example,
    kind_of,
)
from lm_eval_ext.data import sources
from lm_eval_ext.errors import DataError, OptionError

pytestmark = pytest.mark.slow

FACTS = {"id": (3000, 1), "testlex": (12_000, 12), "gen": (21_000, 21), "gen_small": (1050, 21)}
"""Documents and types of each split (50 per type in the small part)."""


@pytest.mark.parametrize("split", SPLITS)
def test_the_splits_have_the_published_counts(real_data: Path, split: str) -> None:
    total, types = FACTS[split]
    examples, _ = load.examples("cogs", split)
    counts = Counter(example.type for example in examples)
    assert sum(counts.values()) == total
    assert len(counts) == types
    assert set(counts.values()) == {total // types}
    assert len({example.id for example in examples}) == total
    assert len({example.sentence for example in examples}) == total
    if split == "gen":
        kinds = Counter(kind_of(example.type) for example in examples)
        assert kinds == {LEXICAL: 18_000, STRUCTURAL: 3000}
        for example in examples:
            items = [token for token in example.sentence.split() if token in ITEMS]
            assert len(items) == (kind_of(example.type) == LEXICAL), example


def test_the_papers_gen_is_computed_from_the_current_one(real_data: Path) -> None:
    today = load.read_rows(real_data / "cogs/gen.tsv")
    paper = load.read_rows(real_data / "cogs/gen.pre-2022-09.tsv")
    assert load.before_correction(today) == paper
    changed = [line for line, old in zip(today, paper, strict=True) if line != old]
    assert len(changed) == 51
    assert {type_ for _, _, type_ in changed} == {"obj_pp_to_subj_pp"}
    assert sources()["cogs_gen_2020"].files["gen"].sha256 == load.SHA256_2020
    assert load.before_correction(paper) == paper
    for wrong in (today[:-1], today[::-1], []):
        with pytest.raises(DataError, match="cannot be computed: this gen file"):
            load.before_correction(wrong)


def test_the_revision_chooses_the_logical_forms_and_is_described(real_data: Path) -> None:
    small = {"cogs_split": "gen_small"}
    old, new = (load.dataset(cogs_gen_revision=r, **small)["test"] for r in ("2020", 2022))
    assert old["sentence"][:] == new["sentence"][:]
    assert 0 < sum(a != b for a, b in zip(old["form"][:], new["form"][:], strict=True)) < 51
    (first,), (second,) = (d.info.download_checksums.values() for d in (old, new))
    assert first["checksum"] == load.SHA256_2020 != second["checksum"]
    assert load.dataset(**small)["test"]["form"][:] == old["form"][:], "the paper's is the default"


@pytest.mark.parametrize("lexicon", [name for name in LEXICONS if name != "fresh"])
def test_a_lexicon_changes_the_key_words_only(real_data: Path, lexicon: str) -> None:
    words = replacements(lexicon)
    examples, _ = load.examples("cogs", "gen_small")
    documents = load.dataset(cogs_lexicon=lexicon, cogs_split="gen_small")["test"]
    assert documents["id"][:] == [example.id for example in examples]
    assert documents["sentence"][:] == [substitute(one.sentence, words) for one in examples]
    assert documents["form"][:] == [substitute(one.form, words) for one in examples]


def test_pairs_hold_what_the_two_tasks_ask(real_data: Path) -> None:
    pairs = load.pairs(cogs_lexicon="tokens", cogs_split="gen_small")["test"]
    first, second = (
        load.dataset(cogs_lexicon=name, cogs_split="gen_small")["test"]
        for name in ("unmodified", "tokens")
    )
    for column, column_of_pairs in (("sentence", "context"), ("form", "form")):
        both = [list(two) for two in zip(first[column], second[column], strict=True)]
        assert list(pairs[column_of_pairs]) == both
    assert pairs["id"] == first["id"]


def test_separator_and_leading_space(real_data: Path) -> None:
    plain = load.dataset(cogs_lexicon="tokens", cogs_split="testlex")["test"]["sentence"][:]
    styled = load.dataset(
        cogs_lexicon="tokens", cogs_split="testlex", cogs_separator=" =>", cogs_leading_space=True
    )["test"]["sentence"][:]
    expected = [f"{' ' * text.startswith('[w_')}{text} =>" for text in plain]
    assert styled == expected
    assert sum(text.startswith(" ") for text in styled) > 100


def test_the_prefix_of_a_fine_tuned_model_precedes_every_sentence() -> None:
    """The authors' models were trained with this one (their run_translation.py)."""
    prefix = "translate English to English: "
    options = {"cogs_corpus": "mini", "cogs_split": "id", "cogs_lexicon": "tokens"}
    plain, pairs = load.dataset(**options)["test"], load.pairs(**options)["test"]
    found = load.dataset(**options, cogs_prefix=prefix)["test"]["sentence"]
    assert list(found) == [prefix + text for text in plain["sentence"]]
    found = load.pairs(**options, cogs_prefix=prefix)["test"]["context"]
    assert list(found) == [[prefix + text for text in two] for two in pairs["context"]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cogs_split": "dev"}, "cogs_split: Input should be 'id', 'testlex', 'gen' or"),
        ({"cogs_lexicon": "nope"}, "no COGS lexicon 'nope'"),
        ({"cogs_gen_revision": 2021}, "cogs_gen_revision: Input should be '2020' or '2022'"),
        ({"cogs_lexicon": "fresh"}, "needs a seed"),
        ({"cogs_separator": 3}, "cogs_separator: Input should be a valid string, got 3"),
        ({"cogs_leading_space": "yes"}, "cogs_leading_space: Input should be a valid boolean"),
        ({"cogs_seed": 0}, "seed is only for the lexicon fresh"),
        ({"cogs_lexicon": "tokens", "cogs_shape": "cvcv_long"}, "shape is only for the lexicon"),
        ({"cogs_leading_space": True}, "unmodified has no new words"),
        ({"cogs_lexikon": "tokens"}, "unknown metadata key cogs_lexikon"),
    ],
)
def test_wrong_options_are_one_clear_line(options: dict[str, Any], message: str) -> None:
    for load_it in (load.dataset, load.pairs):
        with pytest.raises(OptionError, match=message) as caught:
            load_it(**{"cogs_corpus": "mini", **options})
        assert "\n" not in str(caught.value)


def test_a_broken_file_is_one_clear_line(tmp_path: Path) -> None:
    file = tmp_path / "x.tsv"
    for text in ("a\tb\tc\na\tb\n", "a\tb\tc\na\tb\tc\td\n", "a\tb\tc\na\t\tc\n"):
        file.write_text(text)
        with pytest.raises(DataError, match=r"x\.tsv:2: not a sentence, a logical form and a"):
            load.read_rows(file)
    with pytest.raises(DataError, match="cannot be read"):
        load.read_rows(tmp_path / "absent.tsv")


def test_the_small_part_does_not_depend_on_the_order() -> None:
    examples = [Example(f"gen/{i}", f"sentence {i}", "f", f"type{i % 3}") for i in range(300)]
    forward = load.small(examples, per_type=7)
    backward = load.small(examples[::-1], per_type=7)
    assert forward == backward[::-1]
    assert Counter(example.type for example in forward) == {f"type{i}": 7 for i in range(3)}
    assert forward == [example for example in examples if example in forward]
    reworded = [Example(e.id, e.sentence.upper(), e.form, e.type) for e in examples]
    assert [e.id for e in load.small(reworded, per_type=7)] != [e.id for e in forward]
