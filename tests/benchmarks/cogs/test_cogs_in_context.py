"""COGS in context: the covers, choices, prompts, and their independence of limit and lexicon."""

from pathlib import Path
from typing import Any

import pytest
from support.tasks import load_task

from lm_eval_ext.benchmarks.cogs import in_context, load, mini
from lm_eval_ext.benchmarks.cogs.lexicons import ITEMS, replacements
from lm_eval_ext.benchmarks.cogs.records import LEXICAL, kind_of
from lm_eval_ext.errors import OptionError

pytestmark = pytest.mark.slow

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
    ten = in_context.covers()[corpus]
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
            assert [why == in_context.WHY for why in doc["why"]] == [bool(key), False, False]
            assert len(set(doc["demonstrations"])) == 3


def test_seed_and_number_decide_and_nothing_else() -> None:
    train = [f"train/{number}" for number in range(1, 2030)]

    def chosen(k: int, seed: int) -> list[str]:
        return list(in_context.choose(train, "mini", ["train/1120"], k=k, seed=seed))

    whole = chosen(40, 5)
    assert len(set(whole)) == 40 and whole[0] == "train/1120"
    assert [chosen(k, 5) for k in (1, 3, 17, 20)] == [whole[:k] for k in (1, 3, 17, 20)]
    assert chosen(14, 15) == chosen(14, 5), "one of ten covers"
    assert chosen(40, 15) != whole, "what is drawn beyond a cover"
    assert len({tuple(chosen(14, seed)) for seed in range(10)}) == 10
    assert sorted(chosen(len(train), 0)) == sorted(train)
    with pytest.raises(OptionError, match="2030 demonstrations per sample, but only 2029"):
        chosen(2030, 0)
    with pytest.raises(OptionError, match="--num_fewshot 1 or more"):
        asked(task_of(GEN, k=0))


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
            (row,) = in_context.process_results(doc, [answer])
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
