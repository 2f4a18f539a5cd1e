"""The task: which samples are asked, with which demonstrations and prompts; copying of labels."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from support.tasks import load_task

from lm_eval_ext.benchmarks.conceptual import score
from lm_eval_ext.benchmarks.conceptual.fewshot import TOO_FEW
from lm_eval_ext.benchmarks.conceptual.prompt import TEMPLATES, with_facts
from lm_eval_ext.benchmarks.conceptual.records import Option, Sample
from lm_eval_ext.benchmarks.conceptual.task import TOO_LONG
from lm_eval_ext.cards import cards
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.stats.measures import Question
from lm_eval_ext.stats.statistics import figure
from lm_eval_ext.stats.table import frame


def mini(num_fewshot: int | None = None, seed: int | None = None, **metadata: Any) -> Any:
    """conceptual_mini as lm-eval's evaluator prepares it."""
    task = load_task("conceptual_mini", **metadata)
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


def test_both_selections_ask_the_same_samples_in_the_papers_format() -> None:
    task = mini()
    prompts = asked(task)
    rows = {row["id"]: row for row in task.dataset["test"]}
    left_out = task.dump_config()["metadata"]["not_scorable"]
    assert left_out == {TOO_FEW: ["stretches-1", "stretches-2"]}
    assert prompts.keys() == rows.keys() - set(left_out[TOO_FEW])
    for doc in task.eval_docs:
        for selection, prompt in zip(("random", "concept"), prompts[doc["id"]], strict=True):
            shown = doc[f"{selection}_demonstrations"]
            assert len(shown) == 3 and doc["id"] not in shown
            lines = [f"Input: {rows[n]['input']} Prediction: {rows[n]['answer']}" for n in shown]
            assert prompt == "\n".join([*lines, f"Input: {doc['input']} Prediction:"])
        assert {rows[n]["concept"] for n in doc["concept_demonstrations"]} == {doc["concept"]}
        assert doc["concept_why"] == [f"shares: {doc['concept']}"] * 3
    shown = {n for doc in task.eval_docs for n in doc["random_demonstrations"]}
    assert shown & set(left_out[TOO_FEW]), "who is not asked may be shown"
    some = asked(mini(), limit=5)
    assert len(some) == 5
    assert all(prompts[name] == one for name, one in some.items()), "a limit changes no choice"


def test_seed_and_number_are_lm_evals() -> None:
    first, again, other = (asked(mini(seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert sum(first[name] != other[name] for name in first) > len(first) / 2
    for k, documents in ((1, 38), (2, 36), (5, 36)):
        prompts = asked(mini(num_fewshot=k))
        assert len(prompts) == documents
        assert {p.count("Input: ") for both in prompts.values() for p in both} == {k + 1}
    with pytest.raises(OptionError, match="--num_fewshot 1 or more"):
        asked(mini(num_fewshot=0))
    with pytest.raises(DataError, match="too_few_demonstrations: 38"):
        asked(mini(num_fewshot=6))


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


def test_long_contexts_are_left_out_of_both_and_counted() -> None:
    words = {
        name: max(len(set(prompt.replace("Input: ", "").split())) for prompt in both)
        for name, both in asked(mini()).items()
    }
    limit = sorted(words.values())[18]
    task = mini(conceptual_max_words=limit + 1)
    left_out = task.chosen.left_out[TOO_LONG]
    assert 0 < len(left_out) < 36
    assert {doc["id"] for doc in task.eval_docs} == words.keys() - set(left_out)
    assert {len(both) for both in asked(task).values()} == {2}


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
    assert answer and "\n" not in answer
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


def test_all_templates_ask_what_each_asks_alone() -> None:
    alone = [asked(mini(conceptual_template=name), 5) for name in ("options", "choose", "letter")]
    together = asked(mini(conceptual_template="all"), 5)
    assert together == {name: [p for one in alone for p in one[name]] for name in together}


def test_what_is_asked_is_signed() -> None:
    """Data, templates and demonstrations: each by a digest of its own."""

    def signed(**how: Any) -> dict[str, str]:
        parts: dict[str, str] = mini(**how).dump_config()["metadata"]["signature"]
        return parts

    plain = signed()
    assert plain["template"] == "options", "the default by name"
    for changed, differing in (
        (signed(), set()),
        (signed(seed=5), {"seed", "demonstrations"}),
        (signed(num_fewshot=2), {"demonstrations"}),
        (signed(conceptual_template="choose"), {"template", "inputs", "sha256"}),
        (signed(conceptual_bootstrap="independent"), {"bootstrap"}),
    ):
        assert {key for key in plain if plain[key] != changed[key]} == differing


def test_facts_stand_before_the_first_demonstration(monkeypatch: pytest.MonkeyPatch) -> None:
    task = mini()
    rows = [
        {**row, "facts": [f"fact of {row['id']}", "common fact."]} for row in task.dataset["test"]
    ]
    monkeypatch.setitem(task.dataset, "test", Dataset.from_list(rows))
    monkeypatch.setattr(task, "_rows", {row["id"]: row for row in rows})
    doc = task.eval_docs[0]
    for prompt, selection in zip(asked(task)[doc["id"]], ("random", "concept"), strict=True):
        shown = [*doc[f"{selection}_demonstrations"], doc["id"]]
        first, _, rest = prompt.partition("\n")
        assert first.count("common fact.") == 1, "each once"
        assert all(f"fact of {name}." in first for name in shown)
        assert rest.startswith("Input: ")
    assert with_facts([], "x") == "x"


Answering = Callable[[str, Sequence[str]], str]
"""From a template and the demonstrations' answers to a stand-in's answer."""

NEUTRAL = {"follows": "maybe", "true_or_false": "undecided", "relation": "neutral"}
STAND_INS: Mapping[str, Answering] = {
    "copy_last": lambda _, shown: score.stand_ins(shown)["copy_last"],
    "copy_majority": lambda _, shown: score.stand_ins(shown)["copy_majority"],
    "neutral": lambda template, _: NEUTRAL[template],
}


def scored(task: Any, answering: Answering) -> Any:
    """The table of a stand-in's answers to the task's own prompts."""
    prompts, found = asked(task), []
    for doc in task.eval_docs:
        own = prompts[doc["id"]]
        each = len(own) // len(doc["templates"])
        templates = [template for template in doc["templates"] for _ in range(each)]
        answers = [
            answering(template, [line.rpartition(": ")[2] for line in prompt.split("\n")[:-1]])
            for template, prompt in zip(templates, own, strict=True)
        ]
        rows = task.process_results(doc, answers)["rows"]
        found.append((doc["id"], doc["id"], (doc["concept"], doc["id"]), rows))
    return frame(found)


def value(table: Any, metric: str, of: str = "rouge_l", **where: str) -> float | None:
    question = cards()["conceptual"].question_of(metric)
    measure = question.measure.model_copy(update={"value": (of,)})
    filters = {**question.where, **{facet: (one,) for facet, one in where.items()}}
    return figure(table, Question(measure, filters)).value


# By hand from the demonstrations of the default seed; 106 of 282 are neutral.
COPIED = {"copy_last": (98, 141), "copy_majority": (97, 148), "neutral": (106, 106)}


@pytest.mark.slow
def test_gains_on_glue_are_what_arithmetic_predicts(real_data: Path) -> None:
    """A copier's whole gain comes from labels, and one who ignores them gains nothing."""
    task = load_task("conceptual_glue")
    assert len(task.eval_docs) == 282
    metrics = (
        "score/random", "score/concept", "gain", "score/same_labels", "gain_from_labels",
        "gain_from_concept",
    )  # fmt: skip
    for stand_in, (random, concept) in COPIED.items():
        documents = scored(task, STAND_INS[stand_in])
        gain = (concept - random) / 282
        expected = [random / 282, concept / 282, gain, concept / 282, gain, 0.0]
        for of in ("rouge_l", "accuracy"):
            assert [value(documents, one, of) for one in metrics] == pytest.approx(expected)
    # The copiers' scores are in every run; the card repeats them for the default seed.
    documents = scored(task, lambda *_: "something else")
    assert value(documents, "score/concept") == 0.0
    published = {one.label: one.figures for one in cards()["conceptual"].references}
    for stand_in in ("copy_last", "copy_majority"):
        shares = [value(documents, one, f"rouge_l_{stand_in}") for one in metrics[:2]]
        assert shares == pytest.approx([count / 282 for count in COPIED[stand_in]])
        for name, shown in published[f"{stand_in.replace('_', ' ')} (no model)"].items():
            own = cards()["conceptual"].question_of(name).measure.value[0]
            copied = value(documents, name, f"{own}_{stand_in}")
            assert copied is not None and shown == round(copied, 3), name
    assert value(documents, "score/random", "answer_share") == pytest.approx(300 / 846), "35.5 %"
    assert value(documents, "score/concept", "answer_share") == pytest.approx(417 / 846), "49.3 %"


@pytest.mark.slow
def test_the_control_has_the_labels_and_no_part_of_the_concept(real_data: Path) -> None:
    """And changes nothing about the paper's selections."""
    task = load_task("conceptual_glue")
    rows = {row["id"]: row for row in task.dataset["test"]}
    for doc in task.eval_docs:
        control, sharing = (
            [rows[name] for name in doc[f"{selection}_demonstrations"]]
            for selection in ("same_labels", "concept")
        )
        assert [row["answer"] for row in control] == [row["answer"] for row in sharing]
        shown = {part for row in control for part in row["concept"].split(";")}
        assert shown.isdisjoint(doc["concept"].split(";"))
        assert doc["id"] not in doc["same_labels_demonstrations"]
    without = load_task("conceptual_glue", conceptual_control="none")
    for column in ("id", "random_demonstrations", "concept_demonstrations"):
        assert task.eval_docs[column] == without.eval_docs[column]
    assert all(len(without.prompts(doc)) == 2 for doc in without.eval_docs)
    assert "score/same_labels" not in {entry["metric"] for entry in without.config.metric_list}


def test_letters_are_labels() -> None:
    letters = mini(conceptual_template="letter", conceptual_control="labels")
    answers = {row["id"]: row["answer"] for row in letters.dataset["test"]}
    for doc in letters.eval_docs:
        control = [answers[name] for name in doc["same_labels_demonstrations"]]
        assert control in ([answers[name] for name in doc["concept_demonstrations"]], [])


@pytest.mark.slow
def test_all_templates_are_asked_in_one_run_and_the_best_is_named(real_data: Path) -> None:
    """A stand-in that can answer one template only: that is the best, and the figures are its."""
    task = load_task("conceptual_glue", conceptual_template="all")

    def answering(template: str, shown: Sequence[str]) -> str:
        return STAND_INS["copy_majority"](template, shown) if template == "relation" else "?"

    documents = scored(task, answering)
    by_template = [value(documents, "score/concept", template=name) for name in NEUTRAL]
    assert by_template == pytest.approx([0.0, 0.0, 148 / 282])
    assert value(documents, "score/concept") == by_template[2]
    assert value(documents, "score/random", "accuracy") == pytest.approx(97 / 282)
    signed = task.dump_config()["metadata"]["signature"]
    assert signed["template"] == "best of follows+true_or_false+relation"
