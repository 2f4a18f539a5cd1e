"""Label copying on GLUE: the stand-ins, the control, and gains that arithmetic predicts."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lm_eval.tasks import TaskManager
from support.old_names import Old

from lm_eval_ext._autoload import tasks_folder
from lm_eval_ext.benchmarks.conceptual import copying
from lm_eval_ext.cards import cards
from lm_eval_ext.errors import OptionError
from lm_eval_ext.stats.measures import Question
from lm_eval_ext.stats.statistics import figure

pytestmark = pytest.mark.slow

Answering = Callable[[str, Sequence[str]], str]
"""From a template and the demonstrations' answers to a stand-in's answer."""

NEUTRAL = {"follows": "maybe", "true_or_false": "undecided", "relation": "neutral"}
STAND_INS: Mapping[str, Answering] = {
    "copy_last": lambda _, shown: copying.stand_ins(shown)["copy_last"],
    "copy_majority": lambda _, shown: copying.stand_ins(shown)["copy_majority"],
    "neutral": lambda template, _: NEUTRAL[template],
}


def task(name: str, **metadata: Any) -> Any:
    manager = TaskManager(
        include_defaults=False, include_path=tasks_folder(), metadata=metadata or None
    )
    return manager.load(name)["tasks"][name]


def figures(asked: Any, answering: Answering) -> Old:
    """What comes of a stand-in's answers to the task's own prompts, by the metrics' old names."""
    asked.build_all_requests(rank=0, world_size=1)
    prompts: dict[str, list[str]] = {}
    for instance in asked.instances:
        prompts.setdefault(instance.doc["id"], []).append(instance.args[0])
    scored = []
    for doc in asked.eval_docs:
        own = prompts[doc["id"]]
        names = [
            name for name in doc["templates"] for _ in range(len(own) // len(doc["templates"]))
        ]
        answers = [
            answering(name, [line.rpartition(": ")[2] for line in prompt.split("\n")[:-1]])
            for name, prompt in zip(names, own, strict=True)
        ]
        rows = asked.process_results(doc, answers)["rows"]
        scored.append((doc["id"], doc["id"], (doc["concept"], doc["id"]), rows))
    return Old("conceptual", scored)


VIEWS = ("random", "concept", "gain", "same_labels", "gain_from_labels", "gain_from_concept")


@pytest.mark.parametrize(
    ("stand_in", "random", "concept"),
    # By hand from the demonstrations of the default seed; 106 of 282 are neutral.
    [("copy_last", 98, 141), ("copy_majority", 97, 148), ("neutral", 106, 106)],
)
def test_gains_of_stand_ins_are_what_arithmetic_predicts(
    stand_in: str, random: int, concept: int, real_data: Path
) -> None:
    """A copier's whole gain comes from labels, and one who ignores them gains nothing."""
    found = figures(task("conceptual_glue"), STAND_INS[stand_in])
    gain = (concept - random) / 282
    expected = (random / 282, concept / 282, gain, concept / 282, gain, 0.0)
    for score in ("rouge_l", "accuracy"):
        assert [found[f"{view}/{score}"] for view in VIEWS] == pytest.approx(expected)


def test_every_result_has_the_stand_ins_scores(real_data: Path) -> None:
    """Whatever the model answers; the card repeats them for the default seed."""
    asked = task("conceptual_glue")
    found = figures(asked, lambda *_: "something else")
    assert found["concept/rouge_l"] == 0.0
    published = {one.label: one.figures for one in cards()["conceptual"].references}
    for stand_in, random, concept in (("copy_last", 98, 141), ("copy_majority", 97, 148)):
        for score in ("rouge_l", "accuracy"):
            name = f"{score}_{stand_in}"
            assert found[f"random/{name}"] == pytest.approx(random / 282)
            assert found[f"concept/{name}"] == pytest.approx(concept / 282)
            assert found[f"gain_from_concept/{name}"] == 0.0
        for name, value in published[f"{stand_in.replace('_', ' ')} (no model)"].items():
            question = cards()["conceptual"].question_of(name)
            own = question.measure.value[0]
            measure = question.measure.model_copy(update={"value": (f"{own}_{stand_in}",)})
            copied = figure(found.table, Question(measure, question.where)).value
            assert copied is not None and value == round(copied, 3), name
    assert found["random/answer_share"] == pytest.approx(300 / 846), "35.5 %"
    assert found["concept/answer_share"] == pytest.approx(417 / 846), "49.3 %"


def test_the_control_has_the_labels_and_no_part_of_the_concept(real_data: Path) -> None:
    asked = task("conceptual_glue")
    rows = {row["id"]: row for row in asked.dataset["test"]}
    assert len(asked.eval_docs) == 282
    for doc in asked.eval_docs:
        control, sharing = (
            [rows[name] for name in doc[f"{selection}_demonstrations"]]
            for selection in ("same_labels", "concept")
        )
        assert [row["answer"] for row in control] == [row["answer"] for row in sharing]
        shown = {part for row in control for part in row["concept"].split(";")}
        assert shown.isdisjoint(doc["concept"].split(";"))
        assert doc["id"] not in doc["same_labels_demonstrations"]
    other = task("conceptual_glue")
    other.set_fewshot_seed(seed=7)
    again = task("conceptual_glue")
    again.set_fewshot_seed(seed=7)
    column = "same_labels_demonstrations"
    assert other.eval_docs[column] == again.eval_docs[column] != asked.eval_docs[column]


def test_the_control_changes_nothing_about_the_papers_arms(real_data: Path) -> None:
    with_control, without = (
        task("conceptual_glue"),
        task("conceptual_glue", conceptual_control="none"),
    )
    for column in ("id", "random_demonstrations", "concept_demonstrations"):
        assert with_control.eval_docs[column] == without.eval_docs[column]
    assert all(len(without.prompts(doc)) == 2 for doc in without.eval_docs)
    assert "score/same_labels" not in {entry["metric"] for entry in without.config.metric_list}


def test_letters_are_labels_and_texts_are_not() -> None:
    letters = task("conceptual_mini", conceptual_template="letter", conceptual_control="labels")
    rows = {row["id"]: row for row in letters.dataset["test"]}
    for doc in letters.eval_docs:
        control, sharing = (
            [rows[name]["answer"] for name in doc[f"{selection}_demonstrations"]]
            for selection in ("same_labels", "concept")
        )
        assert control in (sharing, [])
    with pytest.raises(
        OptionError, match="the answers of mini under the template options are free"
    ):
        task("conceptual_mini", conceptual_control="labels")


@pytest.mark.parametrize(
    ("shown", "last", "majority"),
    [("a", "a", "a"), ("aab", "b", "a"), ("aba", "a", "a"), ("abc", "c", "c"), ("abba", "a", "a")],
)
def test_copying(shown: str, last: str, majority: str) -> None:
    assert copying.stand_ins(shown) == {"copy_last": last, "copy_majority": majority}


@given(shown=st.lists(st.sampled_from(["ice", "iron", "tea"]), min_size=1, max_size=6))
def test_copiers_are_right_only_if_the_answer_is_shown(shown: list[str]) -> None:
    scores = copying.scores("ice", shown)
    assert scores["answer_shown"] == float("ice" in shown)
    assert scores["answer_share"] * len(shown) == pytest.approx(shown.count("ice"))
    assert scores["accuracy_copy_last"] == float(shown[-1] == "ice")
    assert (
        max(scores["accuracy_copy_last"], scores["accuracy_copy_majority"])
        <= scores["answer_shown"]
    )


def test_all_templates_are_asked_in_one_run_and_the_best_is_named(real_data: Path) -> None:
    """A stand-in that can answer one template only: that is the best, and the figures are its."""
    asked = task("conceptual_glue", conceptual_template="all")

    def answering(template: str, shown: Sequence[str]) -> str:
        return STAND_INS["copy_majority"](template, shown) if template == "relation" else "?"

    found = figures(asked, answering)
    by_template = [found[f"concept/rouge_l@{name}"] for name in NEUTRAL]
    assert by_template.index(max(by_template)) == 2
    assert found["concept/rouge_l"] == found["concept/rouge_l@relation"] == pytest.approx(148 / 282)
    assert found["random/accuracy"] == pytest.approx(97 / 282)
    assert found["concept/rouge_l@follows"] == 0.0
    signed = asked.dump_config()["metadata"]["signature"]
    assert signed["template"] == "best of follows+true_or_false+relation"


def test_all_templates_ask_what_each_asks_alone() -> None:
    def prompts(**metadata: Any) -> dict[str, list[str]]:
        asked = task("conceptual_mini", **metadata)
        asked.build_all_requests(rank=0, world_size=1, limit=5)
        found: dict[str, list[str]] = {}
        for instance in asked.instances:
            found.setdefault(instance.doc["id"], []).append(instance.args[0])
        return found

    together = prompts(conceptual_template="all")
    alone = [prompts(conceptual_template=name) for name in ("options", "choose", "letter")]
    assert together == {name: [p for one in alone for p in one[name]] for name in together}


def test_what_is_asked_is_signed() -> None:
    """Data, templates and demonstrations: each by a digest of its own."""

    def signed(seed: int = 1234, k: int = 3, **metadata: Any) -> dict[str, str]:
        asked = task("conceptual_mini", **metadata)
        asked.set_config(key="num_fewshot", value=k)
        asked.set_fewshot_seed(seed=seed)
        parts: dict[str, str] = asked.dump_config()["metadata"]["signature"]
        return parts

    plain = signed()
    assert plain["template"] == "options", "the default by name"
    for changed, differing in (
        (signed(), set()),
        (signed(seed=5), {"seed", "demonstrations"}),
        (signed(k=2), {"demonstrations"}),
        (signed(conceptual_template="choose"), {"template", "inputs", "sha256"}),
        (signed(conceptual_bootstrap="independent"), {"bootstrap"}),
    ):
        assert {key for key in plain if plain[key] != changed[key]} == differing
