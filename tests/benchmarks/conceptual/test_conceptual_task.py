"""The task: which samples are asked, with which demonstrations and prompts."""

from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st
from lm_eval.tasks import TaskManager

from lm_eval_ext._autoload import tasks_folder
from lm_eval_ext.benchmarks.conceptual import fewshot, load
from lm_eval_ext.benchmarks.conceptual.fewshot import TOO_FEW, TOO_LONG, Rules
from lm_eval_ext.benchmarks.conceptual.prompt import ALL, TEMPLATES, templates_of, with_facts
from lm_eval_ext.benchmarks.conceptual.records import Option, Sample
from lm_eval_ext.errors import DataError, OptionError


def mini(num_fewshot: int | None = None, seed: int | None = None, **metadata: Any) -> Any:
    """conceptual_mini as lm-eval's evaluator prepares it."""
    manager = TaskManager(
        include_defaults=False, include_path=tasks_folder(), metadata=metadata or None
    )
    task = manager.load("conceptual_mini")["tasks"]["conceptual_mini"]
    if num_fewshot is not None:
        task.set_config(key="num_fewshot", value=num_fewshot)
    if seed is not None:
        task.set_fewshot_seed(seed=seed)
    return task


def asked(task: Any, limit: int | None = None, **how: Any) -> dict[str, list[str]]:
    """The prompts of each document."""
    task.build_all_requests(limit=limit, rank=0, world_size=1, **how)
    prompts: dict[str, list[str]] = {}
    for instance in task.instances:
        prompts.setdefault(instance.doc["id"], []).append(instance.args[0])
    return prompts


def test_prompts_have_the_format_of_the_papers_appendix() -> None:
    task = mini()
    rows = {row["id"]: row for row in task.dataset["test"]}
    prompts = asked(task)
    for doc in task.eval_docs:
        for selection, prompt in zip(("random", "concept"), prompts[doc["id"]], strict=True):
            lines = [
                f"Input: {rows[shown]['input']} Prediction: {rows[shown]['answer']}"
                for shown in doc[f"{selection}_demonstrations"]
            ]
            assert prompt == "\n".join([*lines, f"Input: {doc['input']} Prediction:"])
            assert len(lines) == 3


def test_both_selections_ask_the_same_samples_and_the_others_are_named() -> None:
    task = mini()
    prompts = asked(task)
    assert {len(both) for both in prompts.values()} == {2}
    rows = {row["id"]: row for row in task.dataset["test"]}
    left_out = task.dump_config()["metadata"]["not_scorable"]
    assert left_out == {TOO_FEW: ["stretches-1", "stretches-2"]}
    assert prompts.keys() == rows.keys() - set(left_out[TOO_FEW])
    for doc in task.eval_docs:
        assert doc["id"] not in doc["random_demonstrations"] + doc["concept_demonstrations"]
        assert {rows[n]["concept"] for n in doc["concept_demonstrations"]} == {doc["concept"]}
        assert doc["concept_why"] == [f"shares: {doc['concept']}"] * 3
    shown = {n for doc in task.eval_docs for n in doc["random_demonstrations"]}
    assert shown & set(left_out[TOO_FEW]), "who is not asked may be shown"


def test_a_limit_changes_no_choice() -> None:
    everything, some = asked(mini()), asked(mini(), limit=5)
    assert len(some) == 5
    assert all(everything[name] == prompts for name, prompts in some.items())
    assert len({row["concept"] for row in mini().dataset["test"].select(range(12))}) > 3


def test_the_seed_is_lm_evals_few_shot_seed() -> None:
    first, again, other = (asked(mini(seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert sum(first[name] != other[name] for name in first) > len(first) / 2
    assert mini(seed=7).dump_config()["metadata"]["signature"]["seed"] == "7"
    assert asked(mini()) == asked(mini(seed=1234))


@pytest.mark.parametrize(("k", "documents_asked"), [(1, 38), (2, 36), (5, 36)])
def test_k_is_lm_evals_number_of_few_shot_examples(k: int, documents_asked: int) -> None:
    prompts = asked(mini(num_fewshot=k))
    assert len(prompts) == documents_asked
    assert {p.count("Input: ") for both in prompts.values() for p in both} == {k + 1}


def test_requests_that_lm_eval_keeps_are_those_of_the_same_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """lm-eval's own key knows neither the seed nor a task's metadata."""
    monkeypatch.setattr("lm_eval.caching.cache.PATH", str(tmp_path))
    first, again = (asked(mini(seed=1), cache_requests=True) for _ in range(2))
    assert first == again == asked(mini(seed=1))
    assert len(list(tmp_path.iterdir())) == 1, "the second run reads what the first one kept"
    assert asked(mini(seed=2), cache_requests=True) == asked(mini(seed=2)) != first
    letter = mini(seed=1, conceptual_template="letter")
    assert asked(letter, cache_requests=True) == asked(letter) != first


def test_no_demonstrations_and_too_many_are_refused() -> None:
    with pytest.raises(OptionError, match="--num_fewshot 1 or more"):
        asked(mini(num_fewshot=0))
    with pytest.raises(DataError, match="too_few_demonstrations: 38"):
        asked(mini(num_fewshot=6))


def test_a_chat_has_a_turn_for_each_input_and_each_answer() -> None:
    def template(messages: list[dict[str, str]], add_generation_prompt: bool) -> str:
        assert add_generation_prompt
        return "".join(f"<{m['role']}>{m['content']}" for m in messages)

    task = mini()
    prompts = asked(
        task, apply_chat_template=True, fewshot_as_multiturn=True, chat_template=template,
        system_instruction="Be brief.",
    )  # fmt: skip
    doc = task.eval_docs[0]
    for prompt in prompts[doc["id"]]:
        assert prompt.startswith("<system>Be brief.<user>Input: ")
        assert prompt.count("<user>") == 4
        assert prompt.count(" Prediction:<assistant>") == 3
        assert prompt.endswith(f"<user>Input: {doc['input']} Prediction:")
    assert all(instance.args[1]["until"] == [] for instance in task.instances)
    asked(task)
    assert all(instance.args[1]["until"] == ["\n"] for instance in task.instances)
    # As --gen_kwargs does.
    task.set_config(key="generation_kwargs", value={"until": "!"}, update=True)
    for chat in (True, False):
        asked(task, apply_chat_template=chat, chat_template=template if chat else None)
        assert all(instance.args[1]["until"] == "!" for instance in task.instances)


def test_long_contexts_are_left_out_of_both_and_counted() -> None:
    whole = mini()
    words = {
        name: max(len(set(prompt.replace("Input: ", "").split())) for prompt in both)
        for name, both in asked(whole).items()
    }
    limit = sorted(words.values())[18]
    task = mini(conceptual_max_words=limit + 1)
    left_out = task.chosen.left_out[TOO_LONG]
    assert 0 < len(left_out) < 36
    assert {doc["id"] for doc in task.eval_docs} == words.keys() - set(left_out)
    assert min(words[name] for name in left_out) > limit - 4
    assert {len(both) for both in asked(task).values()} == {2}


ROWS = list(load.dataset(conceptual_dataset="mini")["test"])


@settings(max_examples=20)
@given(order=st.permutations(range(len(ROWS))))
@pytest.mark.parametrize("by_overlap", [False, True])
def test_permuting_documents_changes_nothing(by_overlap: bool, order: list[int]) -> None:
    rules = Rules(by_overlap, 0)
    chosen, left_out = fewshot.choose(ROWS, rules, 3, 5)
    permuted = fewshot.choose([ROWS[place] for place in order], rules, 3, 5)
    assert permuted == (chosen, left_out)


SAMPLES = {
    "glue": Sample("1", "It snows.", "contradiction", frozenset("x"), context="It does not snow."),
    "hotpotqa": Sample("2", "Who wrote it?", "Ada", frozenset("x"), context="T: Ada wrote it."),
}
CHOICE = Sample(
    "3", "What melts?", "ice", frozenset("x"),
    options=(Option("A", "iron"), Option("B", "ice")), answer_label="B",
)  # fmt: skip


@pytest.mark.parametrize(
    ("dataset", "name"), [(data, name) for data, found in TEMPLATES.items() for name in found]
)
def test_every_template_shows_everything_and_asks_for_one_line(dataset: str, name: str) -> None:
    sample = SAMPLES.get(dataset, CHOICE)
    text, answer = TEMPLATES[dataset][name](sample)
    for part in (sample.context, *(option.text for option in sample.options)):
        assert part in text
    assert sample.question.rstrip(".").lower() in text.lower()
    assert answer
    assert "\n" not in answer
    assert "Input:" not in text
    assert text == text.strip()


def test_the_answers_of_a_template_differ_by_label() -> None:
    for name, template in TEMPLATES["glue"].items():
        answers = {
            template(Sample("1", "q", label, frozenset(), context="c"))[1]
            for label in ("entailment", "neutral", "contradiction")
        }
        assert len(answers) == 3, name
    assert TEMPLATES["mini"]["letter"](CHOICE)[1] == "B"
    assert templates_of("glue", None) == {"follows": TEMPLATES["glue"]["follows"]}
    assert templates_of("glue", ALL) is TEMPLATES["glue"]


def test_a_template_is_named_by_metadata_and_signed() -> None:
    task = mini(conceptual_template="letter")
    assert {row["answer"] for row in task.dataset["test"]} == set("ABCD")
    own, plain = (t.dump_config()["metadata"]["signature"] for t in (task, mini()))
    assert {key for key in own if own[key] != plain[key]} == {"template", "inputs", "sha256"}
    assert (own["template"], plain["template"]) == ("letter", "options")


def test_facts_stand_before_the_first_demonstration(monkeypatch: pytest.MonkeyPatch) -> None:
    task = mini()
    rows = [{**row, "facts": [f"fact of {row['id']}", "common fact."]} for row in ROWS]
    task.dataset["test"] = Dataset.from_list(rows)
    monkeypatch.setattr(task, "_rows", {row["id"]: row for row in rows})
    try:
        doc = task.eval_docs[0]
        for prompt, selection in zip(asked(task)[doc["id"]], ("random", "concept"), strict=True):
            shown = [*doc[f"{selection}_demonstrations"], doc["id"]]
            first, _, rest = prompt.partition("\n")
            assert first.count("common fact.") == 1, "each once"
            assert all(f"fact of {name}." in first for name in shown)
            assert rest.startswith("Input: ")
    finally:
        task.dataset["test"] = Dataset.from_list(ROWS)
    assert with_facts([], "x") == "x"


def test_predict_only_scores_nothing() -> None:
    """lm-eval then takes metrics and scoring function away."""
    task = mini()
    task.override_metric(metric_name="bypass")
    assert list(task.process_results(task.eval_docs[0], ["a", "b"])) == ["bypass"]
