"""Published counts, lexicons and variants; documents, refusals and demonstrations."""

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


def test_all_published_variants_are_tested(shared_data: Path) -> None:
    """The data have no variant that the next test does not know."""
    folders = (shared_data / "cogs/variants").iterdir()
    assert {folder.name for folder in folders} == set(VARIANTS)


@pytest.mark.parametrize("variant", VARIANTS)
def test_published_variants_come_out_byte_for_byte(
    shared_data: Path, tmp_path: Path, variant: str
) -> None:
    """Seeds give the published strings, and substitution the published files."""
    folder = shared_data / "cogs/variants" / variant
    style = VARIANTS[variant]
    strings = "\n".join(replacements(style.lexicon).values()) + "\n"
    assert (folder / "added_vocab.txt").read_bytes() == strings.encode()
    published_files = list(folder.glob("*.tsv"))
    assert len(published_files) == 2
    written = tmp_path / "out.tsv"
    for published in published_files:
        write_rows(written, read_rows(shared_data / "cogs" / published.name), style)
        assert written.read_bytes() == published.read_bytes(), published


NEW_WORDS = {"ship": "zorp", "shipped": "quux"}


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
    """Parts and capitals stay; a space leads only where a new word is the first."""
    assert substitute(text, NEW_WORDS, leading_space=leading_space) == expected


@given(seed=st.integers(), shape=st.sampled_from(sorted(SHAPES)))
def test_fresh_words_are_new(seed: int, shape: str) -> None:
    """No drawn word is English or in COGS, and fewer items get the first words of more."""
    words = replacements("fresh", seed=seed, shape=shape)
    drawn = list(words.values())
    assert tuple(words) == ITEMS
    assert len(set(drawn)) == 21
    for word in drawn:
        assert not is_english(word), word
        assert word not in OTHER_WORDS, word
    mini_words = replacements("fresh", seed=seed, shape=shape, items=mini.items())
    assert list(mini_words.items()) == list(zip(mini.items(), drawn, strict=False))


@pytest.mark.parametrize("lexicon", SEEDS)
def test_no_seed_gives_the_published_strings_again(lexicon: str) -> None:
    """Not even the seed that drew them."""
    published = set(replacements(lexicon).values())
    assert len(published) == 21
    fresh = replacements("fresh", seed=SEEDS[lexicon], shape=lexicon)
    assert published.isdisjoint(fresh.values())


def test_every_word_of_the_dataset_is_refused(shared_data: Path) -> None:
    """No word of COGS that is long enough to be drawn passes for a new one."""
    shortest = min(min(shape.lengths) for shape in SHAPES.values())
    long_words = set()
    for file in (shared_data / "cogs").glob("*.tsv"):
        for word in set(file.read_text().lower().split()):
            if len(word) >= shortest and word.isalpha():
                long_words.add(word)
    assert len(long_words) > 200
    for word in long_words - OTHER_WORDS:
        assert is_english(word), word


DOCUMENTS_AND_TYPES = {
    "id": (3000, 1),
    "testlex": (12_000, 12),
    "gen": (21_000, 21),
    "gen_small": (1050, 21),
}
"""Published size of each split (50 documents per type in the small part)."""


@pytest.mark.parametrize("split", SPLITS)
def test_the_splits_have_the_published_counts(real_data: Path, split: str) -> None:
    """All types of a split have the same number of documents, and no sentence comes twice."""
    total, types = DOCUMENTS_AND_TYPES[split]
    examples, _ = load.examples("cogs", split)
    counts = Counter(example.type for example in examples)
    assert len(counts) == types
    assert set(counts.values()) == {total // types}
    assert len({example.id for example in examples}) == total
    assert len({example.sentence for example in examples}) == total


def test_exactly_the_lexical_types_of_gen_have_a_key_word(real_data: Path) -> None:
    """18,000 sentences have one key word each; the 3,000 of structural types have none."""
    examples, _ = load.examples("cogs", "gen")
    kinds: Counter[str] = Counter()
    for example in examples:
        kind = kind_of(example.type)
        kinds[kind] += 1
        key_words = sum(token in ITEMS for token in example.sentence.split())
        assert key_words == int(kind == LEXICAL), example
    assert kinds[LEXICAL] == 18_000


def test_the_papers_gen_is_computed_from_the_current_one(real_data: Path) -> None:
    """Undoing the correction of 2022 gives the paper's file, in which 51 lines differ."""
    current = read_rows(real_data / "cogs/gen.tsv")
    paper = read_rows(real_data / "cogs/gen.pre-2022-09.tsv")
    assert load.before_correction(current) == paper
    assert load.before_correction(paper) == paper
    changed_types: Counter[str] = Counter()
    for row, old_row in zip(current, paper, strict=True):
        if row != old_row:
            changed_types[row[2]] += 1
    assert changed_types == {"obj_pp_to_subj_pp": 51}
    for damaged in (current[:-1], current[::-1]):
        with pytest.raises(DataError, match="cannot be computed: this gen file"):
            load.before_correction(damaged)


def test_the_papers_gen_is_the_default(real_data: Path) -> None:
    """Both revisions have the same sentences; forms and checksums differ."""

    def load_gen(**options: Any) -> Any:
        return load.dataset.load({"cogs_split": "gen_small", **options})

    old = load_gen(cogs_gen_revision="2020")
    new = load_gen(cogs_gen_revision=2022)
    old_docs = old.dataset["test"]
    new_docs = new.dataset["test"]
    assert old_docs["sentence"][:] == new_docs["sentence"][:]
    assert old_docs["form"][:] == load_gen().dataset["test"]["form"][:]
    assert old_docs["form"][:] != new_docs["form"][:]
    assert old.provenance.sha256 == load.SHA256_2020
    assert new.provenance.sha256 != load.SHA256_2020


PREFIX = "translate English to English: "
"""The prefix of the authors' models (their run_translation.py)."""


def as_metadata(options: dict[str, Any]) -> dict[str, Any]:
    """Return options as the keys of a task's metadata."""
    return {f"cogs_{name}": value for name, value in options.items()}


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
    """So it is in a task, and in one that has each sentence without and with substitution."""
    metadata = as_metadata(options)
    documents = load.dataset(cogs_split="gen_small", **metadata)["test"].to_list()
    pairs = load.pairs(cogs_split="gen_small", **metadata)["test"].to_list()
    words = replacements(options["lexicon"], seed=options.get("seed"))
    prefix = options.get("prefix", "")
    separator = options.get("separator", "")
    examples, _ = load.examples("cogs", "gen_small")
    for example, document, pair in zip(examples, documents, pairs, strict=True):
        assert document["id"] == pair["id"] == example.id
        sentence = substitute(example.sentence, words)
        if options.get("leading_space") and example.sentence.split()[0] in words:
            sentence = f" {sentence}"
        original_prompt = f"{prefix}{example.sentence}{separator}"
        prompt = f"{prefix}{sentence}{separator}"
        form = substitute(example.form, words)
        assert pair["context"] == [original_prompt, prompt]
        assert pair["form"] == [example.form, form]
        assert document["sentence"] == prompt
        assert document["form"] == form


@pytest.mark.parametrize("loader", [load.dataset, load.pairs], ids=["dataset", "pairs"])
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
    ids=str,
)
def test_wrong_options_are_one_clear_line(
    loader: Any, options: dict[str, Any], message: str
) -> None:
    """The error names the option, its value and the legal values."""
    with pytest.raises(OptionError, match=message) as caught:
        loader(**{"cogs_corpus": "mini", **as_metadata(options)})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("line", ["a\tb", "a\tb\tc\td", "a\t\tc"], ids=repr)
def test_a_broken_file_is_one_clear_line(tmp_path: Path, line: str) -> None:
    """The error names the file and the line, where a column lacks, is empty, or is too many."""
    file = tmp_path / "x.tsv"
    file.write_text(f"a\tb\tc\n{line}\n")
    with pytest.raises(DataError, match=r"x\.tsv:2: not a sentence, a logical form and a"):
        read_rows(file)


def test_an_absent_file_is_one_clear_line(tmp_path: Path) -> None:
    """The error says that the file cannot be read."""
    with pytest.raises(DataError, match="cannot be read"):
        read_rows(tmp_path / "absent.tsv")


def test_the_command_draws_the_words_of_the_tasks(
    real_data: Path, cli: Callable[..., Any], tmp_path: Path
) -> None:
    """``cogs substitute`` writes what the task asks; an error is one line, and writes nothing."""
    source = real_data / "cogs/train_exposure_examples.tsv"
    broken = tmp_path / "broken.tsv"
    broken.write_text("a\tb\tc\nonly one column\n")
    out = tmp_path / "out"

    def run_substitute(file: Path, *options: str) -> Any:
        return cli("cogs", "substitute", str(file), "-o", str(out), "--lexicon", *options)

    for file, lexicon, message in (
        (source, "fresh", "needs a seed"),
        (broken, "tokens", "broken.tsv:2: not a sentence"),
    ):
        failed = run_substitute(file, lexicon)
        assert failed.returncode == 1, lexicon
        assert message in failed.stderr, lexicon
        assert len(failed.stderr.splitlines()) == 1, lexicon
        assert not out.exists(), lexicon
    assert run_substitute(source, "fresh", "--seed", "11").returncode == 0
    expected = tmp_path / "expected"
    write_rows(expected, read_rows(source), Style(lexicon="fresh", seed=11))
    assert out.read_bytes() == expected.read_bytes()
    assert out.read_bytes() != source.read_bytes()


def test_the_small_part_does_not_depend_on_the_order() -> None:
    """The choice depends on the examples' sentences only; they stay in order."""
    examples = []
    for number in range(300):
        type_ = f"type{number % 3}"
        examples.append(Example(f"gen/{number}", f"sentence {number}", "f", type_))
    chosen = load.small(examples, per_type=7)
    assert Counter(example.type for example in chosen) == {"type0": 7, "type1": 7, "type2": 7}
    assert chosen == [example for example in examples if example in chosen]
    assert chosen == load.small(examples[::-1], per_type=7)[::-1]
    with_other_sentences = [example._replace(sentence=example.id) for example in examples]
    assert chosen != load.small(with_other_sentences, per_type=7)


GEN = "cogs_mini_icl_gen"
KEY_WORDS = frozenset(mini.items())


def prepared_task(name: str, k: int, seed: int = 1234, **metadata: Any) -> Any:
    """Return a task as lm-eval's evaluator prepares it."""
    task = load_task(name, **metadata)
    task.set_config(key="num_fewshot", value=k)
    task.set_fewshot_seed(seed=seed)
    return task


def prompts_of(task: Any, limit: int | None = None) -> dict[str, str]:
    """Return the prompt of each document."""
    task.build_all_requests(limit=limit, rank=0, world_size=1)
    return {instance.doc["id"]: instance.args[0] for instance in task.instances}


def words_of(example: Example) -> set[str]:
    """Return the words of a sentence and of its form."""
    return {*example.sentence.split(), *example.form.split()}


@pytest.mark.parametrize(("corpus", "constructions"), [("mini", 25), ("cogs", 33)])
def test_every_cover_has_all_constructions_and_no_key_word(
    corpus: str, constructions: int, request: pytest.FixtureRequest
) -> None:
    """Each of ten covers has 16 demonstrations, which introduce each construction once."""
    if corpus == "cogs":
        request.getfixturevalue("real_data")
    train = {example.id: example for example in load.examples(corpus, "train")[0]}
    key_words = KEY_WORDS if corpus == "mini" else set(ITEMS)
    covers = demonstrations.covers()[corpus]
    assert len(covers) == 10
    assert len({tuple(cover) for cover in covers}) == 10
    for cover in covers:
        assert len(cover) == 16
        covered = []
        covering_examples = 0
        for name, reason in cover.items():
            assert not key_words & words_of(train[name]), name
            if "again" not in reason:
                covering_examples += 1
                covered.extend(reason.removeprefix("covers ").split(", "))
        # With the exposure example, fourteen (the default of --num_fewshot) are enough.
        assert covering_examples <= 13
        assert len(covered) == constructions
        assert len(set(covered)) == constructions


@pytest.mark.parametrize("split", ["id", "testlex", "gen"])
def test_the_exposure_example_comes_first(split: str) -> None:
    """A sample with a key word begins with the example that exposes it; others have none."""
    key_words_shown = {}
    for example in mini.examples("train"):
        key_words_shown[example.id] = KEY_WORDS & words_of(example)
    samples = {example.id: example for example in mini.examples(split)}
    for doc in prepared_task(f"cogs_mini_icl_{split}", k=3).chosen.documents:
        sample = samples[doc["id"]]
        key_words = KEY_WORDS & words_of(sample)
        exposing = [name for name, shown in key_words_shown.items() if key_words & shown]
        is_exposed = bool(key_words)
        assert is_exposed == (split != "id" and kind_of(sample.type) == LEXICAL), sample
        assert len(exposing) == int(is_exposed), sample
        assert doc["demonstrations"][: len(exposing)] == exposing, sample
        assert (doc["why"][0] == demonstrations.WHY) == is_exposed, sample
        assert demonstrations.WHY not in doc["why"][1:], sample
        assert len(doc["why"]) == len(set(doc["demonstrations"])) == 3, sample


TRAIN_NAMES = [f"train/{number}" for number in range(1, 2030)]


def choose(k: int, seed: int) -> list[str]:
    """Choose demonstrations of mini for a sample with an exposure example."""
    return list(demonstrations.choose(TRAIN_NAMES, "mini", ["train/1120"], k=k, seed=seed))


def test_seed_and_number_decide_and_nothing_else() -> None:
    """Fewer demonstrations are the first of more; ten covers go round, and the rest is drawn."""
    forty = choose(40, 5)
    assert len(set(forty)) == 40
    assert forty[0] == "train/1120"
    for k in (1, 3, 17, 20):
        assert choose(k, 5) == forty[:k]
    assert choose(14, 15) == choose(14, 5), "seeds that differ by ten have the same cover"
    assert choose(40, 15) != forty, "what follows a cover is drawn"
    assert len({tuple(choose(14, seed)) for seed in range(10)}) == 10
    assert sorted(choose(len(TRAIN_NAMES), 0)) == sorted(TRAIN_NAMES)


def test_more_demonstrations_than_there_are_is_refused() -> None:
    """The error says how many there are."""
    with pytest.raises(OptionError, match="2030 demonstrations per sample, but only 2029"):
        choose(2030, 0)


@pytest.mark.parametrize("k", [0, -1])
def test_no_demonstrations_are_refused(k: int) -> None:
    """The error names lm-eval's option."""
    with pytest.raises(OptionError, match="--num_fewshot 1 or more"):
        prompts_of(prepared_task(GEN, k=k))


def test_prompts_label_sentences_and_forms() -> None:
    """A prompt shows its demonstrations and ends with the label of the form; answers are scored."""
    task = prepared_task(GEN, k=3)
    prompts = prompts_of(task)
    train = {example.id: example for example in mini.examples("train")}
    for doc in task.eval_docs:
        expected = ""
        for name in doc["demonstrations"]:
            example = train[name]
            expected += f"Sentence: {example.sentence}\nLogical form: {example.form}\n\n"
        expected += f"Sentence: {doc['input']}\nLogical form:"
        assert prompts[doc["id"]] == expected
        for answer, exact_match in ((f" {doc['answer']} ", 1.0), ("no form", 0.0)):
            (row,) = process_results(doc, [answer])
            assert row["exact_match"] == exact_match
            assert row["type"] == doc["type"]
    assert task.instances[0].args[1]["until"] == ["\n"]


def test_a_limit_changes_no_prompt_and_the_seed_is_lm_evals() -> None:
    """With a limit, the prompts are some of all; with another seed, all are others."""
    prompts = prompts_of(prepared_task(GEN, k=3))
    limited = prompts_of(prepared_task(GEN, k=3), limit=7)
    assert len(limited) == 7
    assert limited.items() <= prompts.items()
    other_seed = prompts_of(prepared_task(GEN, k=3, seed=1))
    assert other_seed.keys() == prompts.keys()
    assert not other_seed.items() & prompts.items()


def test_a_substituted_lexicon_leaves_no_key_word_and_no_choice_changed() -> None:
    """Prompts with fresh words are the original ones with their key words replaced."""
    fresh: dict[str, Any] = {
        "cogs_lexicon": "fresh",
        "cogs_seed": 3,
        "cogs_shape": "cvcv_short",
    }
    words = replacements("fresh", seed=3, items=mini.items())
    original_prompts = prompts_of(prepared_task(GEN, k=4))
    fresh_prompts = prompts_of(prepared_task(GEN, k=4, **fresh))
    assert original_prompts.keys() == fresh_prompts.keys()
    prompts_with_key_words = 0
    for name, prompt in original_prompts.items():
        tokens = prompt.split()
        assert fresh_prompts[name].split() == [words.get(token, token) for token in tokens]
        prompts_with_key_words += not KEY_WORDS.isdisjoint(tokens)
    assert prompts_with_key_words > 0


def test_real_samples_see_their_key_words(real_data: Path) -> None:
    """The strings are in the exposure example, in all types of Gen, and the items nowhere."""
    dataset = in_context.dataset(cogs_lexicon="cvcv_short", cogs_split="gen_small")
    train = {row["id"]: row for row in dataset["train"].to_list()}
    published = real_data / "cogs/variants/random_cvcv_str_shorter/train_exposure_examples.tsv"
    exposure_sentences = set()
    for line in published.read_text().splitlines():
        sentence, *_ = line.split("\t")
        exposure_sentences.add(sentence)
    strings = set(replacements("cvcv_short").values())
    for row in dataset["test"].to_list():
        words = {*row["input"].split(), *row["answer"].split()}
        key_strings = strings & words
        assert words.isdisjoint(ITEMS)
        is_exposed = bool(key_strings)
        assert is_exposed == (kind_of(row["type"]) == LEXICAL)
        assert len(row["exposure"]) == int(is_exposed)
        for name in row["exposure"]:
            exposure = train[name]
            assert exposure["input"] in exposure_sentences
            assert key_strings <= {*exposure["input"].split(), *exposure["answer"].split()}
