"""COGS in context: the covers, choices, prompts, and their independence of limit and lexicon."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from support.tasks import load_task

from lm_eval_ext.benchmarks.cogs import in_context, load, mini, score
from lm_eval_ext.benchmarks.cogs.lexicons import ITEMS, replacements
from lm_eval_ext.benchmarks.cogs.records import LEXICAL, kind_of
from lm_eval_ext.errors import OptionError
from lm_eval_ext.logical_forms import parse

pytestmark = pytest.mark.slow

SPLITS = ("id", "testlex", "gen")


def task_of(name: str, k: int | None = None, seed: int | None = None, **metadata: Any) -> Any:
    """A task as lm-eval's evaluator prepares it."""
    task = load_task(name, **metadata)
    if k is not None:
        task.set_config(key="num_fewshot", value=k)
    if seed is not None:
        task.set_fewshot_seed(seed=seed)
    return task


def asked(task: Any, limit: int | None = None) -> dict[str, str]:
    """The prompt of each document."""
    task.build_all_requests(limit=limit, rank=0, world_size=1)
    prompts = {instance.doc["id"]: instance.args[0] for instance in task.instances}
    assert len(prompts) == len(task.instances)
    return prompts


KEY_WORDS = frozenset(mini.items())


def words_of(one: Any) -> set[str]:
    return {*one.sentence.split(), *one.form.split()}


def constructions(sentence: str, form: str) -> set[str]:  # noqa: PLR0912
    """What docs/benchmarks/cogs.md calls constructions, read from the logical form."""
    read = parse(form)
    if read.name is not None or read.binders:
        return set()
    found: set[str] = set()
    tokens = sentence.split()
    articles: dict[str, str] = {}
    inner: dict[str, dict[str, str]] = {"nmod": {}, "ccomp": {}}
    frames: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for atom in read.atoms:
        _, *role = atom.predicate.split(" . ")
        if not role:
            articles[atom.terms[0]] = "the" if atom.definite else "a"
        elif role[0] == "nmod":
            inner["nmod"][atom.terms[0]] = atom.terms[1]
            found.add(f"nmod {role[1]}")
        else:
            frames[atom.terms[0]].append((role[0], atom.terms[1]))
            if role[0] == "ccomp":
                inner["ccomp"][atom.terms[0]] = atom.terms[1]
    for verb, arguments in frames.items():
        passive = tokens[int(verb.removeprefix("x _ ")) - 1] == "was"
        found.add("was " * passive + " ".join(role for role, _ in arguments))
        for number, (role, term) in enumerate(arguments):
            if term not in frames:
                slot = role if number else "subject"
                found.add(f"{slot} {articles.get(term, 'name')}")
                if term in inner["nmod"]:
                    found.add(f"{slot} modified")
    for what, below in inner.items():
        for outer in below:
            level, term = 0, outer
            while term in below:
                level, term = level + 1, below[term]
                found.add(f"{what} {level}")
    return found


@pytest.mark.parametrize("corpus", ["mini", "cogs"])
def test_every_cover_has_all_constructions_and_no_key_word(
    corpus: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if corpus == "cogs":
        monkeypatch.setenv("LM_EVAL_EXT_DATA", str(request.getfixturevalue("shared_data")))
    train = {one.id: one for one in load.examples(corpus, "train")[0]}
    of = {name: constructions(one.sentence, one.form) for name, one in train.items()}
    every = set().union(*of.values())
    assert len(every) == {"mini": 25, "cogs": 33}[corpus]
    items = set(mini.items() if corpus == "mini" else ITEMS)
    ten = in_context.covers()[corpus]
    assert len({tuple(cover) for cover in ten}) == len(ten) == 10
    for cover in ten:
        left = set(every)
        assert len(cover) == 16
        for name, why in cover.items():
            assert not items & words_of(train[name])
            said = set(why.removeprefix("covers ").removeprefix("again ").split(", "))
            assert said <= of[name]
            if not why.startswith("covers again"):
                assert said == left & of[name] != set()
                left -= said
        # With the exposure example, fourteen (the default of --num_fewshot) are enough.
        assert not left
        assert sum(not why.startswith("covers again") for why in cover.values()) <= 13


def test_the_exposure_example_comes_first() -> None:
    key_of = {one.id: KEY_WORDS & words_of(one) for one in mini.examples("train")}
    for split in SPLITS:
        samples = {one.id: one for one in mini.examples(split)}
        for doc in task_of(f"cogs_mini_icl_{split}", k=3).chosen.documents:
            sample = samples[doc["id"]]
            key = KEY_WORDS & words_of(sample)
            exposing = [name for name, shown in key_of.items() if key & shown]
            assert len(exposing) == bool(key) == (split != "id" and kind_of(sample.type) == LEXICAL)
            assert doc["demonstrations"][: len(exposing)] == exposing
            assert (doc["why"][0] == in_context.WHY) == bool(exposing)
            assert all(why.startswith("covers ") for why in doc["why"][len(exposing) :])
            assert len(set(doc["demonstrations"])) == len(doc["why"]) == 3


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
        asked(task_of("cogs_mini_icl_gen", k=0))


def test_a_limit_changes_no_prompt_and_the_seed_is_lm_evals() -> None:
    everyone = asked(task_of("cogs_mini_icl_gen", k=3))
    some = asked(task_of("cogs_mini_icl_gen", k=3), limit=7)
    assert len(some) == 7
    assert all(everyone[name] == prompt for name, prompt in some.items())
    assert asked(task_of("cogs_mini_icl_gen", k=3, seed=1234)) == everyone
    other = asked(task_of("cogs_mini_icl_gen", k=3, seed=1))
    assert all(other[name] != prompt for name, prompt in everyone.items())


def test_prompts_label_sentences_and_logical_forms() -> None:
    task = task_of("cogs_mini_icl_gen", k=2)
    text = {one.id: (one.sentence, one.form) for one in mini.examples("train")}
    prompts = asked(task, limit=20)
    assert len(prompts) == 20
    for doc in (doc for doc in task.eval_docs if doc["id"] in prompts):
        turns = [
            f"Sentence: {sentence}\nLogical form: {form}\n\n"
            for sentence, form in (text[name] for name in doc["demonstrations"])
        ]
        assert prompts[doc["id"]] == f"{''.join(turns)}Sentence: {doc['input']}\nLogical form:"
    assert task.instances[0].args[1]["until"] == ["\n"]


def test_answers_are_scored_as_in_the_other_tasks() -> None:
    plain = load.dataset(cogs_corpus="mini")["test"]
    by_id = {doc["id"]: doc for doc in plain}
    for doc in list(task_of("cogs_mini_icl_gen", k=1).chosen.documents)[::25]:
        assert doc["answer"] == by_id[doc["id"]]["form"]
        for answer in (f" {doc['answer']} ", "no form"):
            scored = in_context.process_results(doc, [answer])
            assert scored == score.process_results(by_id[doc["id"]], [answer])
            assert scored[0]["exact_match"] == (answer != "no form")


def test_a_substituted_lexicon_leaves_no_key_word_and_no_choice_changed() -> None:
    name = "cogs_mini_icl_gen"
    fresh: dict[str, Any] = {"cogs_lexicon": "fresh", "cogs_shape": "cvcv_short"}
    own, others = task_of(name, k=4), task_of(name, k=4, cogs_seed=3, **fresh)
    words = replacements("fresh", seed=3, items=mini.items())
    before, after = asked(own), asked(others)
    for first, second in zip(own.eval_docs, others.eval_docs, strict=True):
        assert first["demonstrations"] == second["demonstrations"]
        prompt = after[second["id"]]
        assert not KEY_WORDS & set(prompt.split())
        replaced = [words.get(token, token) for token in before[first["id"]].split()]
        assert prompt.split() == replaced
    assert any(KEY_WORDS & set(prompt.split()) for prompt in before.values())


def test_real_samples_see_their_key_words(
    shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every type of Gen; the strings stand in the exposure example, the items nowhere."""
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(shared_data))
    loaded = in_context.dataset(cogs_lexicon="cvcv_short", cogs_split="gen_small")
    lines = (shared_data / "cogs" / "train_exposure_examples.tsv").read_text().splitlines()
    train = {row["id"]: row for row in loaded["train"].to_list()}
    strings = replacements("cvcv_short")
    known = {
        " ".join(strings.get(token, token) for token in line.split("\t")[0].split())
        for line in lines
    }
    for row in loaded["test"].to_list():
        assert not set(ITEMS) & {*row["input"].split(), *row["answer"].split()}
        assert len(row["exposure"]) == (kind_of(row["type"]) == LEXICAL)
        for name in row["exposure"]:
            shown = train[name]
            assert shown["input"] in known
            texts = {*shown["input"].split(), *shown["answer"].split()}
            keys = set(strings.values()) & {*row["input"].split(), *row["answer"].split()}
            assert keys and keys <= texts
