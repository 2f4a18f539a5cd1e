"""COGS in context: the covers, choices, prompts, and their independence of limit and lexicon."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

from lm_eval_ext._autoload import tasks_folder
from lm_eval_ext.benchmarks.cogs import in_context, load, mini, score
from lm_eval_ext.benchmarks.cogs.lexicons import ITEMS, SEEDS, replacements
from lm_eval_ext.benchmarks.cogs.records import LEXICAL, kind_of
from lm_eval_ext.errors import OptionError
from lm_eval_ext.logical_forms import parse
from lm_eval_ext.runs.tasks import own_manager

pytestmark = pytest.mark.slow

SPLITS = ("id", "testlex", "gen")
LEXICONS = ("unmodified", *SEEDS, "fresh")


def task_of(name: str, k: int | None = None, seed: int | None = None, **metadata: Any) -> Any:
    """A task as lm-eval's evaluator prepares it."""
    manager = TaskManager(
        include_defaults=False, include_path=tasks_folder(), metadata=metadata or None
    )
    task = manager.load(name)["tasks"][name]
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


@pytest.mark.parametrize(
    ("sentence", "form", "shown"),
    [
        ("The owl slept .", "* owl ( x _ 1 ) ; sleep . agent ( x _ 2 , x _ 1 )",
         {"agent", "subject the"}),
        ("Ada fell .", "fall . theme ( x _ 1 , Ada )", {"theme", "subject name"}),
        ("A cup was lent to Ada .",
         "cup ( x _ 1 ) AND lend . theme ( x _ 3 , x _ 1 ) AND lend . recipient ( x _ 3 , Ada )",
         {"was theme recipient", "subject a", "recipient name"}),
        ("Ada lent Bo a cup .",
         "lend . agent ( x _ 1 , Ada ) AND lend . recipient ( x _ 1 , Bo ) "
         "AND lend . theme ( x _ 1 , x _ 4 ) AND cup ( x _ 4 )",
         {"agent recipient theme", "subject name", "recipient name", "theme a"}),
        ("Ada said that Bo saw a cup in a box on the mat .",
         "* mat ( x _ 11 ) ; say . agent ( x _ 1 , Ada ) AND say . ccomp ( x _ 1 , x _ 4 ) "
         "AND see . agent ( x _ 4 , Bo ) AND see . theme ( x _ 4 , x _ 6 ) AND cup ( x _ 6 ) "
         "AND cup . nmod . in ( x _ 6 , x _ 9 ) AND box ( x _ 9 ) "
         "AND box . nmod . on ( x _ 9 , x _ 11 )",
         {"agent ccomp", "agent theme", "subject name", "theme a", "theme modified", "nmod in",
          "nmod on", "nmod 1", "nmod 2", "ccomp 1"}),
        ("A cup on the mat fell .",
         "* mat ( x _ 4 ) ; cup ( x _ 1 ) AND cup . nmod . on ( x _ 1 , x _ 4 ) "
         "AND fall . theme ( x _ 5 , x _ 1 )",
         {"theme", "subject a", "subject modified", "nmod on", "nmod 1"}),
        ("Ada wished to sleep .",
         "wish . agent ( x _ 1 , Ada ) AND wish . xcomp ( x _ 1 , x _ 3 ) "
         "AND sleep . agent ( x _ 3 , Ada )",
         {"agent xcomp", "agent", "subject name"}),
        ("owl", "LAMBDA a . owl ( a )", set()),
        ("Ada", "Ada", set()),
    ],
)  # fmt: skip
def test_constructions_are_read_from_the_form(sentence: str, form: str, shown: set[str]) -> None:
    assert constructions(sentence, form) == shown


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
            assert not items & {*train[name].sentence.split(), *train[name].form.split()}
            said = set(why.removeprefix("covers ").removeprefix("again ").split(", "))
            assert said <= of[name]
            if not why.startswith("covers again"):
                assert said == left & of[name] != set()
                left -= said
        # With the exposure example, fourteen (the default of --num_fewshot) are enough.
        assert not left
        assert sum(not why.startswith("covers again") for why in cover.values()) <= 13


def test_the_exposure_example_comes_first() -> None:
    for split in SPLITS:
        task = task_of(f"cogs_mini_icl_{split}", k=3)
        train = {one.id: one for one in mini.examples("train")}
        samples = {one.id: one for one in mini.examples(split)}
        for doc in task.chosen.documents:
            sample = samples[doc["id"]]
            key = KEY_WORDS & {*sample.sentence.split(), *sample.form.split()}
            exposing = [
                name
                for name, one in train.items()
                if key & {*one.sentence.split(), *one.form.split()}
            ]
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


def test_every_lexicon_but_the_tokens_has_three_tasks() -> None:
    index = own_manager().task_index
    names = {name for name in index if name.startswith("cogs_") and "_icl_" in name}
    assert names == {
        *(f"cogs_icl_{lexicon}_{split}" for lexicon in LEXICONS for split in SPLITS),
        *(f"cogs_mini_icl_{split}" for split in SPLITS),
    }
    for name in names - {f"cogs_mini_icl_{split}" for split in SPLITS}:
        metadata = index[name].cfg["metadata"]
        assert name == f"cogs_icl_{metadata['cogs_lexicon']}_{metadata['cogs_split']}"


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


class Silent(LM):
    """A model that answers nothing. (lm-eval's own dummy model asks the hub for a tokenizer.)"""

    def generate_until(self, requests: list[Any], **_: Any) -> list[str]:
        return [""] * len(requests)

    loglikelihood = loglikelihood_rolling = generate_until


def test_number_and_seed_of_a_run_count() -> None:
    results = simple_evaluate(
        model=Silent(),
        tasks=["cogs_mini_icl_gen"],
        task_manager=TaskManager(include_defaults=False, include_path=tasks_folder()),
        limit=3,
        num_fewshot=2,
        fewshot_random_seed=99,
        bootstrap_iters=0,
    )
    assert results is not None
    expected = asked(task_of("cogs_mini_icl_gen", k=2, seed=99), limit=3)
    samples = results["samples"]["cogs_mini_icl_gen"]
    assert len(samples) == 3
    for sample in samples:
        prompt = sample["arguments"][0][0]
        assert prompt.count("Logical form:") == 3
        assert prompt == expected[sample["doc"]["id"]]
        assert len(sample["doc"]["why"]) == len(sample["doc"]["demonstrations"]) == 2
    assert results["n-samples"]["cogs_mini_icl_gen"] == {"original": 500, "effective": 3}
    signature = results["configs"]["cogs_mini_icl_gen"]["metadata"]["signature"]
    assert signature["seed"] == "99"
