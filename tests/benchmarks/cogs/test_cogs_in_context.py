"""COGS in context: constructions, choices, prompts, and their independence of order and limit."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

from lm_eval_ext._autoload import tasks_folder
from lm_eval_ext.benchmarks.cogs import in_context, load, mini, score
from lm_eval_ext.benchmarks.cogs.in_context import SAMPLE, TRAIN
from lm_eval_ext.benchmarks.cogs.lexicons import ITEMS, SEEDS, substitute
from lm_eval_ext.benchmarks.cogs.records import LEXICAL, Example, kind_of
from lm_eval_ext.errors import DataError, OptionError

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


def rows_of(**options: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What may be shown, and the samples."""
    loaded = in_context.dataset(**options)
    return loaded["train"].to_list(), loaded["test"].to_list()


TRAINING, SAMPLES = rows_of(cogs_corpus="mini")
KEY_WORDS = frozenset(mini.items())


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
    assert in_context.constructions(sentence, form) == shown


def test_structural_types_have_constructions_that_training_has_not() -> None:
    trained = {name for row in TRAINING for name in row["constructions"]}
    for row in SAMPLES:
        new = set(row["constructions"]) - trained
        assert bool(new) == (kind_of(row["type"]) != LEXICAL), row
    assert {"nmod 2", "ccomp 2", "was theme agent"} <= trained


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("cover", [TRAIN, SAMPLE])
def test_who_is_shown_what(split: str, cover: str) -> None:
    training, samples = rows_of(cogs_corpus="mini", cogs_split=split)
    chosen = in_context.choose(training, samples, cover=cover, k=6, seed=1)
    assert not chosen.not_enough
    example_of = {example.id: example for example in mini.examples("train")}
    sentence_of = {example.id: example.sentence for example in mini.examples(split)}
    held_out = {example.sentence for name in ("dev", *SPLITS) for example in mini.examples(name)}
    for sample in samples:
        choice = chosen.by_sample[sample["id"]]
        shown = [example_of[name] for name in choice.ids]
        assert len({example.sentence for example in shown}) == 6
        assert not held_out & {example.sentence for example in shown}
        keys = KEY_WORDS & set(sentence_of[sample["id"]].split())
        exposing = [e for e in example_of.values() if keys & set(e.sentence.split())]
        assert len(exposing) == len(keys)
        assert [e.id for e in shown[: len(exposing)]] == [e.id for e in exposing]
        whys = [one.why for one in choice.picked]
        assert whys[: len(keys)] == [f"required: {in_context.WHY}"] * len(keys)
        assert all(why.startswith("covers ") for why in whys[len(keys) :])
        if cover == SAMPLE:
            trained = {name for row in training for name in row["constructions"]}
            assert set(choice.uncovered) == set(sample["constructions"]) - trained
    if split != "id":
        assert sum(bool(sample["exposure"]) for sample in samples) > len(samples) / 2


def test_the_default_number_shows_every_construction_of_training() -> None:
    task = task_of("cogs_mini_icl_gen")
    assert not task.chosen.left_out
    assert all(doc["not_shown"] == [] for doc in task.chosen.documents)
    few = task_of("cogs_mini_icl_gen", k=1).chosen.documents
    assert all(doc["not_shown"] for doc in few)


def test_a_copy_of_the_sample_is_never_shown() -> None:
    """One in another case would be a copy, too."""
    sample = next(row for row in SAMPLES if not row["exposure"])
    copies = [{**sample, "id": f"train/copy{n}", "input": "x"} for n in range(20)]
    other = {**TRAINING[0], "constructions": []}
    chosen = in_context.choose([*copies, other], [sample], cover=SAMPLE, k=1, seed=0)
    assert chosen.by_sample[sample["id"]].ids == (other["id"],)
    shouted = Example("train/1", "THE OWL, SLEPT .", "Ada", "t")
    plain = Example("gen/1", "The owl slept .", "Ada", "t")
    keys = [in_context._row(one, {}, {})["copy_key"] for one in (shouted, plain)]
    assert keys[0] == keys[1]


@settings(max_examples=15)
@given(order=st.permutations(range(40)), limit=st.integers(1, 40))
def test_order_and_limit_change_no_choice(order: list[int], limit: int) -> None:
    everyone = in_context.choose(TRAINING, SAMPLES[:40], cover=TRAIN, k=3, seed=5).by_sample
    some = [SAMPLES[place] for place in order[:limit]]
    chosen = in_context.choose(TRAINING[::-1], some, cover=TRAIN, k=3, seed=5).by_sample
    assert chosen == {row["id"]: everyone[row["id"]] for row in some}


def test_a_limit_changes_no_prompt_and_the_seed_is_lm_evals() -> None:
    everyone = asked(task_of("cogs_mini_icl_gen", k=3))
    some = asked(task_of("cogs_mini_icl_gen", k=3), limit=7)
    assert len(some) == 7
    assert all(everyone[name] == prompt for name, prompt in some.items())
    assert asked(task_of("cogs_mini_icl_gen", k=3, seed=1234)) == everyone
    other = asked(task_of("cogs_mini_icl_gen", k=3, seed=1))
    assert sum(other[name] != prompt for name, prompt in everyone.items()) > len(everyone) / 2


@pytest.mark.slow
def test_another_hash_seed_gives_the_same_choices() -> None:
    program = (
        "from lm_eval_ext.benchmarks.cogs import in_context as c\n"
        "d = c.dataset(cogs_corpus='mini'); rows = list(d['test'])[:60]\n"
        "print(c.choose(list(d['train']), rows, cover='train', k=5, seed=3))\n"
    )
    there = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": "77"},
        capture_output=True, text=True, check=True, timeout=120,
    ).stdout  # fmt: skip
    here = in_context.choose(TRAINING, SAMPLES[:60], cover=TRAIN, k=5, seed=3)
    assert there.strip() == str(here)
    assert "required: " in there


def test_choices_are_kept_for_the_same_question_only() -> None:
    def chosen(training: Any = TRAINING, samples: Any = SAMPLES[:9], **how: Any) -> Any:
        return in_context.choose(training, samples, **{"cover": TRAIN, "k": 2, "seed": 0, **how})

    first = chosen()
    assert chosen() is first
    reworded = [{**row, "input": "in other words"} for row in SAMPLES[:9]]
    assert chosen(samples=reworded) is first
    others = [
        chosen(training=TRAINING[1:]), chosen(samples=SAMPLES[:8]), chosen(cover=SAMPLE),
        chosen(k=3), chosen(seed=1),
        chosen(samples=[{**row, "constructions": []} for row in SAMPLES[:9]]),
    ]  # fmt: skip
    assert all(other is not first for other in others)


def test_prompts_label_sentences_and_logical_forms() -> None:
    task = task_of("cogs_mini_icl_gen", k=2)
    text = {row["id"]: (row["input"], row["answer"]) for row in TRAINING}
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
    words = load.words_of("mini", "fresh", 3, "cvcv_short")
    before, after = asked(own), asked(others)
    for first, second in zip(own.eval_docs, others.eval_docs, strict=True):
        assert first["demonstrations"] == second["demonstrations"]
        prompt = after[second["id"]]
        assert not KEY_WORDS & set(prompt.split())
        replaced = [words.get(token, token) for token in before[first["id"]].split()]
        assert prompt.split() == replaced
    assert any(KEY_WORDS & set(prompt.split()) for prompt in before.values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cogs_cover": "test"}, "cogs_cover: no 'test'; use train or sample"),
        ({"cogs_separatr": " =>"}, "unknown metadata key cogs_separatr .nearest: cogs_separator"),
        ({"cogs_split": "dev"}, "cogs_split: no 'dev'"),
    ],
)
def test_wrong_options_are_one_clear_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        in_context.dataset(**{"cogs_corpus": "mini", **options})


def test_a_key_word_without_exposure_and_an_impossible_number_are_errors() -> None:
    train = mini.examples("train")
    without = [one for one in train if "walrus" not in one.sentence.split()]
    assert len(without) == len(train) - 1
    with pytest.raises(DataError, match="no training example has the key word walrus; fetch"):
        in_context.exposure_of(mini.items(), without)
    with pytest.raises(OptionError, match="--num_fewshot 1 or more"):
        asked(task_of("cogs_mini_icl_gen", k=0))
    more = len(train) + 1
    with pytest.raises(OptionError, match=f"{more} demonstrations per sample, but only"):
        asked(task_of("cogs_mini_icl_gen", k=more))


def test_every_lexicon_but_the_tokens_has_three_tasks() -> None:
    names = {path.stem for path in (Path(tasks_folder()) / "cogs").glob("*_icl_*.yaml")}
    assert names == {
        *(f"cogs_icl_{lexicon}_{split}" for lexicon in LEXICONS for split in SPLITS),
        *(f"cogs_mini_icl_{split}" for split in SPLITS),
    }
    for name in names - {f"cogs_mini_icl_{split}" for split in SPLITS}:
        text = (Path(tasks_folder()) / f"cogs/{name}.yaml").read_text(encoding="utf-8")
        facts = yaml.safe_load(text)
        metadata = facts["metadata"]
        assert name == facts["task"]
        assert name == f"cogs_icl_{metadata['cogs_lexicon']}_{metadata['cogs_split']}"


@pytest.mark.parametrize("split", SPLITS)
def test_real_samples_see_their_key_words_and_nothing_held_out(
    real_data: Path, split: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    every, info = load.examples("cogs", split)
    thinned = every[:: len(every) // 300]
    words = load.words_of("cogs", "cvcv_short", None, None)
    held_out = {substitute(example.sentence, words) for example in every}
    monkeypatch.setattr(load, "examples", lambda *_: (thinned, info))
    monkeypatch.setattr(in_context.dataset, "_kept", {})  # other tests want all samples
    training, some = rows_of(cogs_lexicon="cvcv_short", cogs_split=split)
    default = yaml.safe_load(
        (Path(tasks_folder()) / "cogs/_icl").read_text().replace("!function", "")
    )
    chosen = in_context.choose(training, some, cover=TRAIN, k=default["num_fewshot"], seed=1234)
    assert not chosen.not_enough
    row_of = {row["id"]: row for row in training}
    strings = set(words.values())
    (place,) = (real_data / "cogs").glob("train_exposure_examples.tsv")
    known = {line.split("\t")[0] for line in place.read_text().splitlines()}
    unmodified = {example.id: example.sentence for example in in_context._training_set("cogs")[0]}
    for sample in some:
        choice = chosen.by_sample[sample["id"]]
        shown = [row_of[name] for name in choice.ids]
        assert choice.uncovered == ()
        assert not held_out & {row["input"] for row in shown}
        for row in (sample, *shown):
            assert not set(ITEMS) & {*row["input"].split(), *row["answer"].split()}
        keys = strings & set(sample["input"].split())
        if split == "id":
            assert not keys
        elif split == "testlex" or kind_of(sample["type"]) == LEXICAL:
            assert len(keys) == 1
            assert unmodified[shown[0]["id"]] in known
            texts = {*shown[0]["input"].split(), *shown[0]["answer"].split()}
            assert strings & {*sample["input"].split(), *sample["answer"].split()} <= texts


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
    assert (signature["seed"], signature["cover"]) == ("99", TRAIN)
