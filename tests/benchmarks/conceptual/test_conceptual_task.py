"""The task: which samples are asked, with which demonstrations and prompts; copying of labels."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from support.asking import ask
from support.tasks import load_task

from lm_eval_ext.benchmarks.conceptual import score
from lm_eval_ext.benchmarks.conceptual.demonstrations import TOO_FEW
from lm_eval_ext.benchmarks.conceptual.prompt import TEMPLATES
from lm_eval_ext.benchmarks.conceptual.records import Option, Sample
from lm_eval_ext.benchmarks.conceptual.task import TOO_LONG
from lm_eval_ext.cards import Card, cards
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.stats.table import Scored


def mini(num_fewshot: int = 3, seed: int = 1234, **metadata: Any) -> Any:
    """conceptual_mini as lm-eval's evaluator prepares it."""
    task = load_task("conceptual_mini", **metadata)
    task.set_config(key="num_fewshot", value=num_fewshot)
    task.set_fewshot_seed(seed=seed)
    return task


def asked(task: Any, limit: int | None = None) -> dict[str, list[str]]:
    """The prompts of each document."""
    task.build_all_requests(limit=limit, rank=0, world_size=1)
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
    assert some == {name: prompts[name] for name in some} and len(some) == 5, "with a limit, too"


def test_seed_and_number_are_lm_evals() -> None:
    first, again, other = (asked(mini(seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert sum(first[name] != other[name] for name in first) > len(first) / 2
    for k, documents in ((1, 38), (2, 36), (5, 36)):
        prompts = asked(mini(k))
        assert len(prompts) == documents
        assert {p.count("Input: ") for both in prompts.values() for p in both} == {k + 1}
    with pytest.raises(OptionError, match="--num_fewshot 1 or more"):
        asked(mini(0))
    with pytest.raises(DataError, match="too_few_demonstrations: 38"):
        asked(mini(6))


def test_long_contexts_are_left_out_of_both_and_counted() -> None:
    words = {
        name: max(len(set(prompt.replace("Input: ", "").split())) for prompt in both)
        for name, both in asked(mini()).items()
    }
    task = mini(conceptual_max_words=sorted(words.values())[18] + 1)
    left_out = task.chosen.excluded[TOO_LONG]
    assert 0 < len(left_out) < 36
    prompts = asked(task)
    assert prompts.keys() == words.keys() - set(left_out)
    assert set(map(len, prompts.values())) == {2}


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
    sample, template = SAMPLES.get(dataset, CHOICE), TEMPLATES[dataset][name]
    text, answer = template(sample)
    for part in (sample.context, *(option.text for option in sample.options)):
        assert part in text
    assert sample.question.rstrip(".").lower() in text.lower()
    assert answer and "\n" not in answer
    assert "Input:" not in text
    assert text == text.strip()
    assert (answer == "B") == (name == "letter")
    if dataset == "glue":
        labels = (replace(sample, answer=label) for label in ("entailment", "neutral"))
        assert len({answer, *(template(one)[1] for one in labels)}) == 3


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
    for how, differing in (
        ({}, set()),
        ({"seed": 5}, {"seed", "demonstrations"}),
        ({"num_fewshot": 2}, {"demonstrations"}),
        ({"conceptual_template": "choose"}, {"template", "inputs", "sha256"}),
        ({"conceptual_bootstrap": "independent"}, {"bootstrap"}),
    ):
        changed = signed(**how)
        assert {key for key in plain if plain[key] != changed[key]} == differing
    # What the bootstrap draws goes with the results, for questions to their samples.
    written = mini(conceptual_bootstrap="independent").dump_config()["metadata"]["card"]
    measure = Card.model_validate_json(json.dumps(written)).question_of("gain_100x200").measure
    assert measure.seeds == {"random": 0, "concept": 1, "same_labels": 2}
    assert "card" not in mini().dump_config()["metadata"]


def test_facts_stand_before_the_first_demonstration(monkeypatch: pytest.MonkeyPatch) -> None:
    task = mini()
    rows = task.dataset["test"].to_list()
    for row in rows:
        row["facts"] = [f"fact of {row['id']}", "common fact."]
    monkeypatch.setitem(task.dataset, "test", Dataset.from_list(rows))
    monkeypatch.setattr(task, "_rows", {row["id"]: row for row in rows})
    doc = task.eval_docs[0]
    for prompt, selection in zip(asked(task)[doc["id"]], ("random", "concept"), strict=True):
        first, _, rest = prompt.partition("\n")
        assert first.count("common fact.") == 1, "each once"
        shown = [*doc[f"{selection}_demonstrations"], doc["id"]]
        assert all(f"fact of {name}." in first for name in shown)
        assert rest.startswith("Input: ")


NEUTRAL = {"follows": "maybe", "true_or_false": "undecided", "relation": "neutral"}


def majority(template: str, shown: Sequence[str]) -> str:
    return score.stand_ins(shown)["copy_majority"]


def scored(task: Any, answering: Callable[..., str]) -> list[Scored]:
    """What answers, from a template and the demonstrations' answers, the task's own prompts."""
    prompts, found = asked(task), []
    for doc in task.eval_docs:
        own = prompts[doc["id"]]
        each = len(own) // len(doc["templates"])
        answers = [
            answering(
                doc["templates"][place // each],
                [line.rpartition(": ")[2] for line in prompt.split("\n")[:-1]],
            )
            for place, prompt in enumerate(own)
        ]
        rows = task.process_results(doc, answers)["rows"]
        found.append((doc["id"], doc["id"], (doc["concept"], doc["id"]), rows))
    return found


def value(table: list[Scored], metric: str, of: str = "rouge_l", **where: str) -> float | None:
    return ask("conceptual", table, metric, value=of, **where).value


# By hand from the demonstrations of the default seed; 106 of 282 are neutral.
STAND_INS: dict[str, Any] = {
    "copy_last": (lambda _, shown: shown[-1], 98, 141),
    "copy_majority": (majority, 97, 148),
    "neutral": (lambda template, _: NEUTRAL[template], 106, 106),
}
METRICS = (
    "score/random", "score/concept", "gain", "score/same_labels", "gain_from_labels",
    "gain_from_concept",
)  # fmt: skip


@pytest.mark.slow
def test_gains_on_glue_are_what_arithmetic_predicts(real_data: Path) -> None:
    """A copier's whole gain comes from labels, and one who ignores them gains nothing."""
    task = load_task("conceptual_glue")
    assert len(task.eval_docs) == 282
    published = {one.label: one.figures for one in cards()["conceptual"].references}
    for stand_in, (answering, random, concept) in STAND_INS.items():
        table = scored(task, answering)
        gain = concept - random
        expected = np.array([random, concept, gain, concept, gain, 0]) / 282
        for of in ("rouge_l", "accuracy"):
            assert [value(table, one, of) for one in METRICS] == pytest.approx(expected)
        # The copiers' scores are in every run; the card repeats them for the default seed.
        if stand_in != "neutral":
            shares = [value(table, one, f"rouge_l_{stand_in}") for one in METRICS[:2]]
            assert shares == pytest.approx(expected[:2])
            for name, shown in published[f"{stand_in.replace('_', ' ')} (no model)"].items():
                assert shown == round(ask("conceptual", table, name).value or 0, 3), name
    for metric, shown in (("score/random", 300), ("score/concept", 417)):
        assert value(table, metric, "answer_share") == pytest.approx(shown / 846)


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


@pytest.mark.slow
def test_all_templates_are_asked_in_one_run_and_the_best_is_named(real_data: Path) -> None:
    """A stand-in that can answer one template only: that is the best, and the figures are its."""
    task = load_task("conceptual_glue", conceptual_template="all")

    def answering(template: str, shown: Sequence[str]) -> str:
        return majority(template, shown) if template == "relation" else "?"

    table = scored(task, answering)
    by_template = [value(table, "score/concept", template=name) for name in NEUTRAL]
    assert by_template == pytest.approx([0.0, 0.0, 148 / 282])
    assert value(table, "score/concept") == by_template[2]
    assert value(table, "score/random", "accuracy") == pytest.approx(97 / 282)
    signed = task.dump_config()["metadata"]["signature"]
    assert signed["template"] == "best of follows+true_or_false+relation"
