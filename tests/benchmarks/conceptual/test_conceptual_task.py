"""The task: its samples, their demonstrations and prompts; copying of labels."""

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from support.asking import ask
from support.tasks import load_task

from lm_eval_ext.benchmarks.conceptual import score
from lm_eval_ext.benchmarks.conceptual.prompt import TEMPLATES
from lm_eval_ext.benchmarks.conceptual.records import Option, Sample
from lm_eval_ext.benchmarks.conceptual.task import TOO_LONG
from lm_eval_ext.cards import Card, cards
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness.names import TOO_FEW
from lm_eval_ext.stats.table import DocumentRows


def mini(num_fewshot: int = 3, seed: int = 1234, **metadata: Any) -> Any:
    """Return conceptual_mini as lm-eval's evaluator prepares it."""
    task = load_task("conceptual_mini", **metadata)
    task.set_config(key="num_fewshot", value=num_fewshot)
    task.set_fewshot_seed(seed=seed)
    return task


def prompts_of(task: Any, limit: int | None = None) -> dict[str, list[str]]:
    """Return the prompts of each document."""
    task.build_all_requests(limit=limit, rank=0, world_size=1)
    prompts: dict[str, list[str]] = defaultdict(list)
    for instance in task.instances:
        prompts[instance.doc["id"]].append(instance.args[0])
    return dict(prompts)


def test_both_selections_ask_the_same_samples_in_the_papers_format() -> None:
    """Each sample has a prompt with random demonstrations, and one with the same concept."""
    task = mini()
    prompts = prompts_of(task)
    rows = {row["id"]: row for row in task.dataset["test"]}
    for doc in task.eval_docs:
        assert len(prompts[doc["id"]]) == 2
        for selection, prompt in zip(("random", "concept"), prompts[doc["id"]], strict=True):
            shown = doc[f"{selection}_demonstrations"]
            assert len(shown) == 3
            assert doc["id"] not in shown
            lines = []
            for name in shown:
                lines.append(f"Input: {rows[name]['input']} Prediction: {rows[name]['answer']}")
            lines.append(f"Input: {doc['input']} Prediction:")
            assert prompt == "\n".join(lines)
        concepts = {rows[name]["concept"] for name in doc["concept_demonstrations"]}
        assert concepts == {doc["concept"]}
        assert doc["concept_why"] == [f"shares: {doc['concept']}"] * 3


def test_samples_with_too_few_companions_are_not_asked_but_may_be_shown() -> None:
    """The results file names them, and random demonstrations have some of them."""
    task = mini()
    prompts = prompts_of(task)
    excluded = task.dump_config()["metadata"]["not_scorable"]
    assert excluded == {TOO_FEW: ["stretches-1", "stretches-2"]}
    names = {row["id"] for row in task.dataset["test"]}
    assert prompts.keys() == names - set(excluded[TOO_FEW])
    shown = set()
    for doc in task.eval_docs:
        shown.update(doc["random_demonstrations"])
    assert shown & set(excluded[TOO_FEW])


def test_a_limit_changes_no_prompt() -> None:
    """The first five samples have the prompts that they have among all."""
    prompts = prompts_of(mini())
    limited = prompts_of(mini(), limit=5)
    assert len(limited) == 5
    assert limited == {name: prompts[name] for name in limited}


def test_the_seed_is_lm_evals() -> None:
    """The same seed gives the same prompts; another one changes most of them."""
    prompts = prompts_of(mini(seed=1))
    assert prompts == prompts_of(mini(seed=1))
    of_another_seed = prompts_of(mini(seed=2))
    changed = [name for name in prompts if prompts[name] != of_another_seed[name]]
    assert len(changed) > len(prompts) / 2


@pytest.mark.parametrize(("k", "documents"), [(1, 38), (2, 36), (5, 36)])
def test_the_number_of_demonstrations_is_lm_evals(k: int, documents: int) -> None:
    """Prompts show so many, and samples without so many companions are not asked."""
    prompts = prompts_of(mini(k))
    assert len(prompts) == documents
    for of_document in prompts.values():
        for prompt in of_document:
            assert prompt.count("Input: ") == k + 1


def test_no_demonstrations_are_refused() -> None:
    """The error names lm-eval's option."""
    with pytest.raises(OptionError, match="--num_fewshot 1 or more"):
        prompts_of(mini(0))


def test_more_demonstrations_than_any_sample_has_are_refused() -> None:
    """The error says that all samples have too few."""
    with pytest.raises(DataError, match="too_few_demonstrations: 38"):
        prompts_of(mini(6))


def test_long_contexts_are_left_out_of_both_and_counted() -> None:
    """Samples with a prompt of too many different words are not asked, and are named."""
    longest: dict[str, int] = {}
    for name, prompts in prompts_of(mini()).items():
        for prompt in prompts:
            different_words = set(prompt.replace("Input: ", "").split())
            longest[name] = max(longest.get(name, 0), len(different_words))
    task = mini(conceptual_max_words=sorted(longest.values())[18] + 1)
    excluded = task.chosen.excluded[TOO_LONG]
    assert 0 < len(excluded) < 36
    remaining = prompts_of(task)
    assert remaining.keys() == longest.keys() - set(excluded)
    assert {len(prompts) for prompts in remaining.values()} == {2}


SAMPLES = {
    "glue": Sample("1", "It snows.", "contradiction", frozenset("x"), context="It does not snow."),
    "hotpotqa": Sample("2", "Who wrote it?", "Ada", frozenset("x"), context="T: Ada wrote it."),
}
CHOICE = Sample(
    "3",
    "What melts?",
    "ice",
    frozenset("x"),
    options=(Option("A", "iron"), Option("B", "ice")),
    answer_label="B",
)


def templates_of_datasets() -> list[tuple[str, str]]:
    pairs = []
    for dataset, templates in TEMPLATES.items():
        for name in templates:
            pairs.append((dataset, name))
    return pairs


@pytest.mark.parametrize(("dataset", "name"), templates_of_datasets())
def test_every_template_shows_everything_and_asks_for_one_line(dataset: str, name: str) -> None:
    """The text has context, question and options; the answer is a label only for ``letter``."""
    sample = SAMPLES.get(dataset, CHOICE)
    text, answer = TEMPLATES[dataset][name](sample)
    assert sample.context in text
    for option in sample.options:
        assert option.text in text
    assert sample.question.rstrip(".").lower() in text.lower()
    assert answer
    assert "\n" not in answer
    assert "Input:" not in text
    assert text == text.strip()
    assert (answer == "B") == (name == "letter")


@pytest.mark.parametrize("name", TEMPLATES["glue"])
def test_templates_of_glue_have_three_answers(name: str) -> None:
    """Each relation is worded differently."""
    answers = set()
    for relation in ("contradiction", "entailment", "neutral"):
        _, answer = TEMPLATES["glue"][name](replace(SAMPLES["glue"], answer=relation))
        answers.add(answer)
    assert len(answers) == 3


def test_all_templates_ask_what_each_asks_alone() -> None:
    """Under ``all``, a document has the prompts of the single templates, in their order."""
    expected: dict[str, list[str]] = defaultdict(list)
    for name in ("options", "choose", "letter"):
        for document, prompts in prompts_of(mini(conceptual_template=name), 5).items():
            expected[document].extend(prompts)
    assert prompts_of(mini(conceptual_template="all"), 5) == expected


def signature_of(**options: Any) -> dict[str, str]:
    """Return the signature of conceptual_mini under these options."""
    signature: dict[str, str] = mini(**options).dump_config()["metadata"]["signature"]
    return signature


@pytest.mark.parametrize(
    ("options", "differing"),
    [
        ({}, set()),
        ({"seed": 5}, {"seed", "demonstrations"}),
        ({"num_fewshot": 2}, {"demonstrations"}),
        ({"conceptual_template": "choose"}, {"template", "inputs", "sha256"}),
        ({"conceptual_bootstrap": "independent"}, {"bootstrap"}),
    ],
    ids=["default", "seed", "number", "template", "bootstrap"],
)
def test_prompts_are_signed(options: dict[str, Any], differing: set[str]) -> None:
    """Data, templates and demonstrations each have a part of the signature; so has the default."""
    default = signature_of()
    assert default["template"] == "options"
    changed = signature_of(**options)
    assert {key for key in default if default[key] != changed[key]} == differing


def test_the_results_card_has_the_bootstraps_seeds() -> None:
    """A card goes with the results, for questions to their samples, if it is not the usual one."""
    metadata = mini(conceptual_bootstrap="independent").dump_config()["metadata"]
    card = Card.model_validate_json(json.dumps(metadata["card"]))
    measure = card.question_of("gain_100x200").measure
    assert measure.seeds == {"random": 0, "concept": 1, "same_labels": 2}
    assert "card" not in mini().dump_config()["metadata"]


def test_facts_stand_before_the_first_demonstration(monkeypatch: pytest.MonkeyPatch) -> None:
    """The facts of the sample and its demonstrations come first, each once."""
    task = mini()
    rows = task.dataset["test"].to_list()
    for row in rows:
        row["facts"] = [f"fact of {row['id']}", "common fact."]
    monkeypatch.setitem(task.dataset, "test", Dataset.from_list(rows))
    monkeypatch.setattr(task, "_rows", {row["id"]: row for row in rows})
    doc = task.eval_docs[0]
    prompts = prompts_of(task)[doc["id"]]
    for prompt, selection in zip(prompts, ("random", "concept"), strict=True):
        facts, _, remaining_prompt = prompt.partition("\n")
        assert facts.count("common fact.") == 1
        for name in [*doc[f"{selection}_demonstrations"], doc["id"]]:
            assert f"fact of {name}." in facts
        assert remaining_prompt.startswith("Input: ")


NEUTRAL = {"follows": "maybe", "true_or_false": "undecided", "relation": "neutral"}
"""How each template of GLUE words the neutral relation."""

AnswerRule = Callable[[str, Sequence[str]], str]
"""Answers from a template's name and the answers that a prompt shows."""


def copy_last(template: str, shown: Sequence[str]) -> str:
    return shown[-1]


def copy_majority(template: str, shown: Sequence[str]) -> str:
    return score.stand_ins(shown)["copy_majority"]


def always_neutral(template: str, shown: Sequence[str]) -> str:
    return NEUTRAL[template]


def majority_of_one_template(template: str, shown: Sequence[str]) -> str:
    return copy_majority(template, shown) if template == "relation" else "?"


def shown_answers(prompt: str) -> list[str]:
    """Return the answers of a prompt's demonstrations."""
    demonstrations = prompt.split("\n")[:-1]
    return [line.rpartition(": ")[2] for line in demonstrations]


def scored(task: Any, answer_rule: AnswerRule) -> list[DocumentRows]:
    """Answer the task's own prompts by a rule, and score the answers."""
    prompts = prompts_of(task)
    documents: list[DocumentRows] = []
    for doc in task.eval_docs:
        of_document = prompts[doc["id"]]
        prompts_per_template = len(of_document) // len(doc["templates"])
        answers = []
        for number, prompt in enumerate(of_document):
            template = doc["templates"][number // prompts_per_template]
            answers.append(answer_rule(template, shown_answers(prompt)))
        rows = task.process_results(doc, answers)["rows"]
        documents.append((doc["id"], doc["id"], (doc["concept"], doc["id"]), rows))
    return documents


def value(
    table: list[DocumentRows], metric: str, of: str = "rouge_l", **where: str
) -> float | None:
    """Return a metric of scored documents, computed from one of their scores."""
    figure: float | None = ask("conceptual", table, metric, value=of, **where).value
    return figure


# Counted by hand from the demonstrations of the default seed; 106 of 282 samples are neutral.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer_rule", "random", "concept"),
    [(copy_last, 98, 141), (copy_majority, 97, 148), (always_neutral, 106, 106)],
)
def test_gains_on_glue_are_what_arithmetic_predicts(
    real_data: Path, answer_rule: AnswerRule, random: int, concept: int
) -> None:
    """A copier's whole gain comes from labels, and a model that ignores them gains nothing."""
    task = load_task("conceptual_glue")
    assert len(task.eval_docs) == 282
    table = scored(task, answer_rule)
    gain = concept - random
    expected = {
        "score/random": random / 282,
        "score/concept": concept / 282,
        "gain": gain / 282,
        "score/same_labels": concept / 282,
        "gain_from_labels": gain / 282,
        "gain_from_concept": 0.0,
    }
    for of in ("rouge_l", "accuracy"):
        figures = {metric: value(table, metric, of) for metric in expected}
        assert figures == pytest.approx(expected), of
    for metric, shown in (("score/random", 300), ("score/concept", 417)):
        assert value(table, metric, "answer_share") == pytest.approx(shown / 846)


@pytest.mark.slow
@pytest.mark.parametrize("answer_rule", [copy_last, copy_majority])
def test_the_copiers_scores_are_in_every_run_and_on_the_card(
    real_data: Path, answer_rule: AnswerRule
) -> None:
    """All rows have them, whatever the model answers; the card has them for the default seed."""
    copier = answer_rule.__name__
    table = scored(load_task("conceptual_glue"), answer_rule)
    for metric in ("score/random", "score/concept"):
        copied = value(table, metric, f"rouge_l_{copier}")
        assert copied == pytest.approx(value(table, metric))
    label = f"{copier.replace('_', ' ')} (no model)"
    references = cards()["conceptual"].references
    (reference,) = [reference for reference in references if reference.label == label]
    for metric, published in reference.figures.items():
        assert published == round(ask("conceptual", table, metric).value or 0, 3), metric


@pytest.mark.slow
def test_the_control_has_the_labels_and_no_part_of_the_concept(real_data: Path) -> None:
    """Its demonstrations have the answers of those with the same concept, in their order."""
    task = load_task("conceptual_glue")
    rows = {row["id"]: row for row in task.dataset["test"]}
    for doc in task.eval_docs:
        control = doc["same_labels_demonstrations"]
        assert doc["id"] not in control
        for name, sharing in zip(control, doc["concept_demonstrations"], strict=True):
            assert rows[name]["answer"] == rows[sharing]["answer"], doc["id"]
            concepts = set(rows[name]["concept"].split(";"))
            assert concepts.isdisjoint(doc["concept"].split(";")), doc["id"]


@pytest.mark.slow
def test_without_a_control_the_papers_selections_are_the_same(real_data: Path) -> None:
    """The option takes away the control's prompts and metric, and nothing else."""
    task = load_task("conceptual_glue")
    without = load_task("conceptual_glue", conceptual_control="none")
    for column in ("id", "random_demonstrations", "concept_demonstrations"):
        assert task.eval_docs[column] == without.eval_docs[column], column
    for doc in without.eval_docs:
        assert len(without.prompts(doc)) == 2, doc["id"]
    assert "score/same_labels" not in {entry["metric"] for entry in without.config.metric_list}


@pytest.mark.slow
def test_all_templates_are_asked_in_one_run_and_the_best_is_named(real_data: Path) -> None:
    """If a model can answer one template only, that is the best, and the figures are its."""
    task = load_task("conceptual_glue", conceptual_template="all")
    table = scored(task, majority_of_one_template)
    concept_scores = {name: value(table, "score/concept", template=name) for name in NEUTRAL}
    expected = {"follows": 0.0, "true_or_false": 0.0, "relation": 148 / 282}
    assert concept_scores == pytest.approx(expected)
    assert value(table, "score/concept") == concept_scores["relation"]
    assert value(table, "score/random", "accuracy") == pytest.approx(97 / 282)
    signature = task.dump_config()["metadata"]["signature"]
    assert signature["template"] == "best of follows+true_or_false+relation"
