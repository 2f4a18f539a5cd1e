"""Published counts, lexicons and variants; what is asked and refused; demonstrations."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tasks import load_task

from lm_eval_ext.benchmarks.cogs import demonstrations, in_context, load, mini
from lm_eval_ext.benchmarks.cogs.lexicons import (
    ITEMS,
    LEXICONS,
    OTHER_WORDS,
    SEEDS,
    replacements,
    substitute,
)
from lm_eval_ext.benchmarks.cogs.load import Style, read_rows, write_rows
from lm_eval_ext.benchmarks.cogs.records import LEXICAL, SPLITS, Example, kind_of
from lm_eval_ext.benchmarks.cogs.score import process_results
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.lexicon import SHAPES, is_english

pytestmark = pytest.mark.slow

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


WORDS = {"ship": "zorp", "shipped": "quux"}


@pytest.mark.parametrize(
    ("text", "leading_space", "expected"),
    [
        ("The ship shipped .", False, "The zorp quux ."),
        ("Ship ships shipment", False, "Ship ships shipment"),
        ("ship  ship\t ship", False, "zorp zorp zorp"),
        ("ship . agent ( x _ 1 )", True, " zorp . agent ( x _ 1 )"),
        ("The ship .", True, "The zorp ."),
        ("  ", True, ""),
    ],
)
def test_whole_tokens_are_replaced(text: str, leading_space: bool, expected: str) -> None:
    assert substitute(text, WORDS, leading_space=leading_space) == expected


@given(seed=st.integers(), shape=st.sampled_from(sorted(SHAPES)))
def test_fresh_words_are_new(seed: int, shape: str) -> None:
    words = replacements("fresh", seed=seed, shape=shape)
    drawn = list(words.values())
    assert tuple(words) == ITEMS
    assert len(set(drawn)) == 21
    assert not any(is_english(word) or word in OTHER_WORDS for word in drawn)
    own = replacements("fresh", seed=seed, shape=shape, items=mini.items())
    assert list(own.items()) == list(zip(mini.items(), drawn, strict=False)), "the first words"


def test_no_seed_gives_the_published_strings_again() -> None:
    for lexicon, seed in SEEDS.items():
        published = set(replacements(lexicon).values())
        assert len(published) == 21
        assert published.isdisjoint(replacements("fresh", seed=seed, shape=lexicon).values())


def test_every_word_of_the_dataset_is_refused(shared_data: Path) -> None:
    """Whatever of it is long enough to be drawn: the shortest drawn word has seven letters."""
    shortest = min(min(shape.lengths) for shape in SHAPES.values())
    files = (shared_data / "cogs").glob("*.tsv")
    words = {word for file in files for word in file.read_text().lower().split()}
    tried = {word for word in words if len(word) >= shortest and word.isalpha()}
    assert len(tried) > 200
    assert [word for word in tried - OTHER_WORDS if not is_english(word)] == []


FACTS = {"id": (3000, 1), "testlex": (12_000, 12), "gen": (21_000, 21), "gen_small": (1050, 21)}
"""Documents and types of each split (50 per type in the small part)."""


@pytest.mark.parametrize("split", SPLITS)
def test_the_splits_have_the_published_counts(real_data: Path, split: str) -> None:
    total, types = FACTS[split]
    examples, _ = load.examples("cogs", split)
    counts = Counter(example.type for example in examples)
    assert (len(counts), set(counts.values())) == (types, {total // types})
    assert len({one.id for one in examples}) == len({one.sentence for one in examples}) == total
    if split == "gen":
        assert sum(kind_of(example.type) == LEXICAL for example in examples) == 18_000
        for example in examples:
            items = sum(token in ITEMS for token in example.sentence.split())
            assert items == (kind_of(example.type) == LEXICAL), example


def test_the_papers_gen_is_computed_from_the_current_one(real_data: Path) -> None:
    today = read_rows(real_data / "cogs/gen.tsv")
    paper = read_rows(real_data / "cogs/gen.pre-2022-09.tsv")
    assert load.before_correction(today) == load.before_correction(paper) == paper
    changed = [line for line, old in zip(today, paper, strict=True) if line != old]
    assert Counter(type_ for _, _, type_ in changed) == {"obj_pp_to_subj_pp": 51}
    for wrong in (today[:-1], today[::-1]):
        with pytest.raises(DataError, match="cannot be computed: this gen file"):
            load.before_correction(wrong)
    loaded = [
        load.dataset.load({"cogs_split": "gen_small", **options})
        for options in ({"cogs_gen_revision": "2020"}, {"cogs_gen_revision": 2022}, {})
    ]
    old, new, default = (task.dataset["test"] for task in loaded)
    assert old["sentence"][:] == new["sentence"][:]
    assert old["form"][:] == default["form"][:] != new["form"][:], "the paper's is the default"
    old_checksum, new_checksum = (task.provenance.sha256 for task in loaded[:2])
    assert old_checksum == load.SHA256_2020 != new_checksum


PREFIX = "translate English to English: "
"""The authors' models were trained with this one (their run_translation.py)."""


@pytest.mark.parametrize(
    "options",
    [
        *({"lexicon": name} for name in LEXICONS if name != "fresh"),
        {"lexicon": "fresh", "seed": 0},
        {"lexicon": "tokens", "prefix": PREFIX, "separator": " =>", "leading_space": True},
    ],
    ids=str,
)
def test_a_lexicon_changes_the_key_words_only(real_data: Path, options: dict[str, Any]) -> None:
    """In a task, and in one that asks each sentence without and with substitution."""
    given = {f"cogs_{name}": value for name, value in options.items()}
    documents = load.dataset(cogs_split="gen_small", **given)["test"].to_list()
    pairs = load.pairs(cogs_split="gen_small", **given)["test"].to_list()
    words = replacements(options["lexicon"], seed=options.get("seed"))
    before, behind = options.get("prefix", ""), options.get("separator", "")
    space = " " * options.get("leading_space", False)
    examples, _ = load.examples("cogs", "gen_small")
    for one, document, pair in zip(examples, documents, pairs, strict=True):
        assert document["id"] == pair["id"] == one.id
        new = space * (one.sentence.split()[0] in words) + substitute(one.sentence, words)
        texts = [f"{before}{text}{behind}" for text in (one.sentence, new)]
        forms = [one.form, substitute(one.form, words)]
        assert (pair["context"], pair["form"]) == (texts, forms)
        assert (document["sentence"], document["form"]) == (texts[1], forms[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "dev"}, "cogs_split: Input should be 'id', 'testlex', 'gen' or"),
        ({"lexicon": "nope"}, "no COGS lexicon 'nope'; use unmodified, random_long"),
        ({"gen_revision": 2021}, "cogs_gen_revision: Input should be '2020' or '2022'"),
        ({"lexicon": "fresh"}, "needs a seed, a whole number"),
        ({"lexicon": "fresh", "seed": 3, "shape": "round"}, "no shape 'round' of words; use rand"),
        ({"separator": 3}, "cogs_separator: Input should be a valid string, got 3"),
        ({"leading_space": "yes"}, "cogs_leading_space: Input should be a valid boolean"),
        ({"seed": 0}, "seed is only for the lexicon fresh"),
        ({"lexicon": "tokens", "shape": "cvcv_long"}, "shape is only for the lexicon fresh"),
        ({"leading_space": True}, "unmodified has no new words"),
        ({"lexikon": "tokens"}, "unknown metadata key cogs_lexikon"),
    ],
)
def test_wrong_options_are_one_clear_line(options: dict[str, Any], message: str) -> None:
    given = {f"cogs_{name}": value for name, value in options.items()}
    for load_it in (load.dataset, load.pairs):
        with pytest.raises(OptionError, match=message) as caught:
            load_it(**{"cogs_corpus": "mini", **given})
        assert "\n" not in str(caught.value)


def test_a_broken_file_is_one_clear_line(tmp_path: Path) -> None:
    file = tmp_path / "x.tsv"
    for line in ("a\tb", "a\tb\tc\td", "a\t\tc"):
        file.write_text(f"a\tb\tc\n{line}\n")
        with pytest.raises(DataError, match=r"x\.tsv:2: not a sentence, a logical form and a"):
            read_rows(file)
    with pytest.raises(DataError, match="cannot be read"):
        read_rows(tmp_path / "absent.tsv")


def test_the_command_draws_the_words_of_the_tasks(
    real_data: Path, cli: Callable[..., Any], tmp_path: Path
) -> None:
    source = real_data / "cogs/train_exposure_examples.tsv"
    broken, out, expected = (tmp_path / name for name in ("broken.tsv", "out", "expected"))
    broken.write_text("a\tb\tc\nonly one column\n")

    def substituted(file: Path, *options: str) -> Any:
        return cli("cogs", "substitute", str(file), "-o", str(out), "--lexicon", *options)

    for file, lexicon, message in (
        (source, "fresh", "needs a seed"),
        (broken, "tokens", "broken.tsv:2: not a sentence"),
    ):
        done = substituted(file, lexicon)
        assert done.returncode == 1 and message in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert not out.exists()
    assert substituted(source, "fresh", "--seed", "11").returncode == 0
    write_rows(expected, read_rows(source), Style(lexicon="fresh", seed=11))
    assert out.read_bytes() == expected.read_bytes() != source.read_bytes()


def test_the_small_part_does_not_depend_on_the_order() -> None:
    examples = [Example(f"gen/{i}", f"sentence {i}", "f", f"type{i % 3}") for i in range(300)]
    chosen = load.small(examples, per_type=7)
    assert Counter(one.type for one in chosen) == {f"type{i}": 7 for i in range(3)}
    assert chosen == [one for one in examples if one in chosen]
    assert chosen == load.small(examples[::-1], per_type=7)[::-1]
    assert chosen != load.small([one._replace(sentence=one.id) for one in examples], per_type=7)


GEN = "cogs_mini_icl_gen"
KEY_WORDS = frozenset(mini.items())


def task_of(name: str, k: int, seed: int = 1234, **metadata: Any) -> Any:
    """A task as lm-eval's evaluator prepares it."""
    task = load_task(name, **metadata)
    task.set_config(key="num_fewshot", value=k)
    task.set_fewshot_seed(seed=seed)
    return task


def asked(task: Any, limit: int | None = None) -> dict[str, str]:
    """The prompt of each document."""
    task.build_all_requests(limit=limit, rank=0, world_size=1)
    return {instance.doc["id"]: instance.args[0] for instance in task.instances}


def words_of(one: Any) -> set[str]:
    return {*one.sentence.split(), *one.form.split()}


@pytest.mark.parametrize(("corpus", "constructions"), [("mini", 25), ("cogs", 33)])
def test_every_cover_has_all_constructions_and_no_key_word(
    corpus: str, constructions: int, request: pytest.FixtureRequest
) -> None:
    if corpus == "cogs":
        request.getfixturevalue("real_data")
    train = {one.id: one for one in load.examples(corpus, "train")[0]}
    items = KEY_WORDS if corpus == "mini" else set(ITEMS)
    ten = demonstrations.covers()[corpus]
    assert len({tuple(cover) for cover in ten}) == len(ten) == 10
    for cover in ten:
        assert len(cover) == 16
        assert not any(items & words_of(train[name]) for name in cover)
        new = [why.removeprefix("covers ") for why in cover.values() if "again" not in why]
        # With the exposure example, fourteen (the default of --num_fewshot) are enough.
        assert len(new) <= 13
        found = [construction for why in new for construction in why.split(", ")]
        assert len(found) == len(set(found)) == constructions


def test_the_exposure_example_comes_first() -> None:
    key_of = {one.id: KEY_WORDS & words_of(one) for one in mini.examples("train")}
    for split in ("id", "testlex", "gen"):
        samples = {one.id: one for one in mini.examples(split)}
        for doc in task_of(f"cogs_mini_icl_{split}", k=3).chosen.documents:
            sample = samples[doc["id"]]
            key = KEY_WORDS & words_of(sample)
            exposing = [name for name, shown in key_of.items() if key & shown]
            assert len(exposing) == bool(key) == (split != "id" and kind_of(sample.type) == LEXICAL)
            assert doc["demonstrations"][: len(exposing)] == exposing
            assert [why == demonstrations.WHY for why in doc["why"]] == [bool(key), False, False]
            assert len(set(doc["demonstrations"])) == 3


def test_seed_and_number_decide_and_nothing_else() -> None:
    train = [f"train/{number}" for number in range(1, 2030)]

    def chosen(k: int, seed: int) -> list[str]:
        return list(demonstrations.choose(train, "mini", ["train/1120"], k=k, seed=seed))

    whole = chosen(40, 5)
    assert len(set(whole)) == 40 and whole[0] == "train/1120"
    assert [chosen(k, 5) for k in (1, 3, 17, 20)] == [whole[:k] for k in (1, 3, 17, 20)]
    assert chosen(14, 15) == chosen(14, 5), "one of ten covers"
    assert chosen(40, 15) != whole, "what is drawn beyond a cover"
    assert len({tuple(chosen(14, seed)) for seed in range(10)}) == 10
    assert sorted(chosen(len(train), 0)) == sorted(train)
    with pytest.raises(OptionError, match="2030 demonstrations per sample, but only 2029"):
        chosen(2030, 0)
    for none in (0, -1):
        with pytest.raises(OptionError, match="--num_fewshot 1 or more"):
            asked(task_of(GEN, k=none))


def test_a_limit_changes_no_prompt_and_the_seed_is_lm_evals() -> None:
    """Prompts label sentences and logical forms."""
    task = task_of(GEN, k=3)
    everyone = asked(task)
    text = {one.id: f"{one.sentence}\nLogical form: {one.form}" for one in mini.examples("train")}
    for doc in task.eval_docs:
        turns = [f"Sentence: {text[name]}\n\n" for name in doc["demonstrations"]]
        expected = f"{''.join(turns)}Sentence: {doc['input']}\nLogical form:"
        assert everyone[doc["id"]] == expected
        for answer, right in ((f" {doc['answer']} ", 1.0), ("no form", 0.0)):
            (row,) = process_results(doc, [answer])
            assert (row["exact_match"], row["type"]) == (right, doc["type"])
    assert task.instances[0].args[1]["until"] == ["\n"]
    some = asked(task_of(GEN, k=3), limit=7)
    assert len(some) == 7
    assert some.items() <= everyone.items()
    other = asked(task_of(GEN, k=3, seed=1))
    assert other.keys() == everyone.keys()
    assert not other.items() & everyone.items()


def test_a_substituted_lexicon_leaves_no_key_word_and_no_choice_changed() -> None:
    fresh = {"cogs_lexicon": "fresh", "cogs_seed": 3, "cogs_shape": "cvcv_short"}
    words = replacements("fresh", seed=3, items=mini.items())
    before, after = asked(task_of(GEN, k=4)), asked(task_of(GEN, k=4, **fresh))
    assert before.keys() == after.keys()
    for name, prompt in before.items():
        assert after[name].split() == [words.get(token, token) for token in prompt.split()]
    assert any(KEY_WORDS & set(prompt.split()) for prompt in before.values())


def test_real_samples_see_their_key_words(real_data: Path) -> None:
    """Of every type of Gen; the strings stand in the exposure example, the items nowhere."""
    loaded = in_context.dataset(cogs_lexicon="cvcv_short", cogs_split="gen_small")
    train = {row["id"]: row for row in loaded["train"].to_list()}
    published = real_data / "cogs/variants/random_cvcv_str_shorter/train_exposure_examples.tsv"
    known = {line.split("\t")[0] for line in published.read_text().splitlines()}
    strings = set(replacements("cvcv_short").values())
    for row in loaded["test"].to_list():
        words = {*row["input"].split(), *row["answer"].split()}
        keys = strings & words
        assert words.isdisjoint(ITEMS)
        assert len(row["exposure"]) == bool(keys) == (kind_of(row["type"]) == LEXICAL)
        for shown in map(train.__getitem__, row["exposure"]):
            assert shown["input"] in known
            assert keys <= {*shown["input"].split(), *shown["answer"].split()}
