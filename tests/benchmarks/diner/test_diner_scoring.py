"""Scores by hand, categories of generalization, tasks and their metrics."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from support import diner_own
from support.old_names import Old
from support.tasks import load_task

from lm_eval_ext.benchmarks.diner import load, mini, score
from lm_eval_ext.benchmarks.diner.glossary import KINDS, Glossary
from lm_eval_ext.benchmarks.diner.prompt import ASKED_KINDS
from lm_eval_ext.benchmarks.diner.records import CATEGORIES, Categories
from lm_eval_ext.benchmarks.diner.score import counts
from lm_eval_ext.errors import OptionError
from lm_eval_ext.harness.names import NONE, NOT_SCORABLE, STDERR

GLOSSARY = mini.glossary()
CASES = yaml.safe_load(Path(__file__).with_name("diner_cases.yaml").read_text("utf-8"))
# Words of the embedded glossary: food 番茄=西红柿 鸡蛋=蛋 土豆=马铃薯 牛肉 茄子 豆腐 鸡肉=鸡
# 鱼=鱼片 香菇=冬菇 粥 饭 鸡翅; action 炒=小炒 炖 烤 红烧; flavour 麻辣 糖醋.


def named(cases: Sequence[Mapping[str, Any]], *keys: str) -> list[Any]:
    """Return cases from the file as parameters whose ids are the texts under some keys."""
    return [pytest.param(case, id=" / ".join(case[key] for key in keys)) for case in cases]


@pytest.mark.parametrize("case", named(CASES["scores"], "gold", "prediction"))
def test_counts_of_hits_predicted_and_gold_components(case: Mapping[str, Any]) -> None:
    """Synonyms are one component; of what does not parse, the size is estimated by length."""
    predicted = Fraction(case["predicted"])
    counted = counts(case["gold"], case["prediction"], GLOSSARY)
    assert counted == (case["hits"], predicted, case["size"])
    row, *_ = score.name(case["gold"], case["prediction"], GLOSSARY)
    assert row["hits"] == case["hits"]
    assert row["predicted"] == float(predicted)
    assert row["gold"] == case["size"]


@pytest.mark.parametrize("case", named(CASES["kinds"], "gold", "prediction"))
def test_each_kind_of_components_is_counted(case: Mapping[str, Any]) -> None:
    """There is a row for each kind of the gold name's components."""
    _, *rows = score.name(case["gold"], case["prediction"], GLOSSARY)
    by_kind = {}
    for row in rows:
        by_kind[row["kind"]] = {key: row[key] for key in ("hits", "predicted", "gold")}
    assert by_kind == case["kinds"]


@pytest.mark.parametrize("prediction", CASES["names"])
def test_the_scores_of_a_name(prediction: str) -> None:
    """F1 knows synonyms, exact match does not; the authors' F1 is 0 for what does not parse."""
    expected = CASES["names"][prediction]
    row, *_ = score.name("番茄炒蛋", prediction, GLOSSARY)
    assert {metric: row[metric] for metric in expected} == expected


@pytest.mark.parametrize(
    ("answers", "f1", "f1_authors"),
    [
        # Three are right, and one flavour is too many: 6/7. Each answer's F1 is 1, 0 and 1.
        (["炒", "麻辣", "番茄、鸡蛋"], 2 / 3, 6 / 7),
        # It does not matter to them which question is answered: 番茄 counts, and once.
        (["炒", "番茄", "番茄"], 5 / 9, 0.8),
    ],
    ids=["a flavour too many", "the same answer twice"],
)
def test_the_authors_mean_takes_the_answers_about_components_together(
    answers: list[str], f1: float, f1_authors: float
) -> None:
    """Our F1 is a mean over questions, and theirs is of all answers at once."""
    row, *_ = score.components("番茄炒蛋", answers, GLOSSARY)
    assert row["f1"] == pytest.approx(f1)
    assert row["f1_authors"] == pytest.approx(f1_authors)


ANY = st.text(alphabet="番茄西红柿炒小鸡肉蛋鱼片饭粥红烧麻辣香菇排骨xy。 ", max_size=12)
GOLD = st.sampled_from([case["gold"] for case in CASES["scores"]])


@given(GOLD, ANY | GOLD)
def test_counts_keep_their_bounds(gold: str, prediction: str) -> None:
    """The gold name is right; hits are no more than either side; kinds add up to all."""
    assert counts(gold, gold, GLOSSARY).f1 == 1
    counted = counts(gold, prediction, GLOSSARY)
    assert 0 <= counted.hits <= min(counted.gold, counted.predicted)
    hits, gold_size = Fraction(0), Fraction(0)
    for kind in KINDS:
        of_kind = counts(gold, prediction, GLOSSARY, [kind])
        hits += of_kind.hits
        gold_size += of_kind.gold
    assert hits == counted.hits
    assert gold_size == counted.gold


@pytest.mark.parametrize("case", named(CASES["categories"], "train", "name"))
def test_a_name_has_the_category_by_which_training_names_combine(case: Mapping[str, Any]) -> None:
    """If they do not combine to it, it has none."""
    train = [name.split() for name in case["train"].split(",")]
    assert Categories(train).of(case["name"].split()) == case["category"]


def exhaustive(train: list[frozenset[str]], name: frozenset[str]) -> str | None:
    """Apply the page's definitions, word by word, to all pairs and triples of names."""
    if not name or any(name <= trained for trained in train):
        return None
    if len(name) == 2 and set(map(frozenset, name)) <= set(train):
        return "CombTwo"
    for base, source in product(train, repeat=2):
        added = name - base
        if len(base) >= 2 and base < name and len(added) == 1 and added <= source:
            return "AddOne"
    for size, category in ((2, "RecoTwo"), (3, "RecoThree")):
        for names in combinations(train, size):
            if name <= frozenset().union(*names):
                return category
    return None


SETS = st.frozensets(st.sampled_from("abcdefgh"), min_size=1, max_size=5)


@settings(max_examples=500)
@given(st.lists(SETS, max_size=8), SETS)
def test_an_exhaustive_check_agrees(train: list[frozenset[str]], name: frozenset[str]) -> None:
    """Whatever the sets are, and in whatever order."""
    expected = exhaustive(train, name)
    assert Categories(train).of(name) == expected
    assert Categories([*reversed(train), *train]).of(sorted(name)) == expected
    assert expected is None or expected in CATEGORIES


OWN_GLOSSARY = Glossary(diner_own.GLOSSARY)


def figures(answers: Sequence[tuple[str, str, str]]) -> Old:
    """Return the figures of gold names, categories and answers (to each question, divided by |)."""
    documents = []
    for number, (gold, category, answer) in enumerate(answers):
        doc = {"answer": gold, "category": category}
        rows = score.by_glossary(doc, answer.split("|"), glossary=OWN_GLOSSARY)
        documents.append((f"{number}", f"{number}", (gold,), rows))
    return Old("diner", documents)


def test_micro_and_mean_f1_differ_as_arithmetic_says() -> None:
    """The micro F1 divides sums of components, and the mean F1 is of names."""
    values = figures(
        [
            ("红烧土豆", "RecoTwo", "红烧洋芋"),  # a synonym: 2 right of 2 and 2, not the same name
            ("番茄鸡蛋面", "AddOne", "番茄面"),  # 2 right of 2 and 3
            ("炒牛肉", "RecoTwo", ""),  # 0 of 0 and 2
            ("麻辣豆腐", "RecoTwo", "麻辣豆腐"),  # 2 of 2 and 2
        ]
    )
    expected = {
        "micro_f1": 2 * 6 / (6 + 9),
        "mean_f1": (1 + 0.8 + 0 + 1) / 4,
        "exact_match": 1 / 4,
        "exact_match:RecoTwo": 1 / 3,
        "exact_match:AddOne": 0,
        "micro_f1:AddOne": 0.8,
        "micro_f1:RecoTwo": 2 * 4 / (4 + 6),
        # food: 1 of 1 and 1, 2 of 2 and 3, 0 of 0 and 1, 1 of 1 and 1
        "micro_f1:food": 2 * 4 / (4 + 6),
        # action: 红烧土豆 and 炒牛肉 alone; flavour: 麻辣豆腐 alone
        "micro_f1:action": 2 * 1 / (1 + 2),
        "micro_f1:flavour": 1,
        "unparsed": 0,
        "no_answer": 1 / 4,
    }
    assert {name: values[name] for name in expected} == pytest.approx(expected)


def test_figures_of_component_questions_are_what_counting_gives() -> None:
    """Each figure is one of three recipes with three questions."""
    assert ASKED_KINDS == ("action", "flavour", "food")
    values = figures(
        [
            ("红烧土豆", "", "红烧|无|洋芋"),  # all right
            ("番茄鸡蛋面", "", "炒||番茄、面"),  # one action too many, one food too few
            ("麻辣豆腐", "", "无|没有|豆腐，牛肉"),  # the flavour is missing, a food too many
        ]
    )
    expected = {
        "exact_match": 1 / 3,
        "exact_match:action": 2 / 3,
        "exact_match:flavour": 2 / 3,
        "exact_match:food": 1 / 3,
        "mean_f1": ((3 + 1.8 + 5 / 3) / 3) / 3,
        "mean_f1:action": (1 + 0 + 1) / 3,
        "mean_f1:flavour": (1 + 1 + 0) / 3,
        "mean_f1:food": (1 + 0.8 + 2 / 3) / 3,
        "micro_f1": 2 * 5 / (7 + 7),
        "micro_f1:action": 2 * 1 / (2 + 1),
        "micro_f1:flavour": 0,
        "micro_f1:food": 2 * 4 / (5 + 5),
    }
    assert {name: values[name] for name in expected} == pytest.approx(expected)


def test_where_nothing_was_asked_for_nothing_is_right() -> None:
    """Without gold components of a kind there is no micro F1, and an empty answer is right."""
    values = figures([("番茄面", "", "|无|番茄，面")])
    assert values["micro_f1:action"] == NONE
    assert values["micro_f1:flavour"] == NONE
    assert values["mean_f1:action"] == 1
    assert values["exact_match"] == 1
    assert values["micro_f1"] == 1


@pytest.mark.parametrize("prompt", ["name", "name_random", "cp", "icl", "icl_oracle"])
def test_gold_answers_reach_one(prompt: str) -> None:
    """All documents of a task are right if they are answered with the gold name."""
    task = load_task(f"diner_mini_{prompt}")
    for doc in task.eval_docs:
        row, *_ = task.process_results(doc, [doc["answer"]])["rows"]
        assert row["hits"] == row["predicted"] == row["gold"], doc["id"]
        assert row["f1"] == 1, doc["id"]
        assert row["exact_match"] == 1, doc["id"]


def test_in_context_prompts_hold_two_recipes_and_the_question() -> None:
    """A prompt shows recipes with their names, and the answer ends with the line."""
    task = load_task("diner_mini_icl_oracle")
    task.build_all_requests(limit=5, rank=0, world_size=1)
    for instance in task.instances:
        prompt, generation = instance.args
        expected = ""
        for name in instance.doc["demonstrations"]:
            recipe = task.resources.by_id[name]
            expected += f"“{recipe.instruction}” 这个菜谱的菜名是什么？ {recipe.name}\n\n"
        assert prompt == expected + instance.doc["input"]
        assert generation["until"] == ["\n"]


def load_own_task(folder: Path, content: dict[str, Any] | None = None) -> Any:
    """Write recipes of our own to a folder, and load the task about them."""
    written = diner_own.write(folder, "random", content)
    return load_task("diner_name_random", diner_dir=str(written))


def test_a_users_folder_signs_its_content_and_not_its_place(tmp_path: Path) -> None:
    """The same recipes elsewhere have the same signature, other recipes another checksum."""
    changed = diner_own.content()
    changed["test"]["names"][1] = "宫保鸡丁"
    signatures = {}
    for name, content in (("a", None), ("b", None), ("changed", changed)):
        metadata = load_own_task(tmp_path / name, content).dump_config()["metadata"]
        signatures[name] = metadata["signature"]
        assert str(tmp_path) not in str(signatures[name])
    assert signatures["a"] == signatures["b"]
    assert signatures["changed"]["sha256"] != signatures["a"]["sha256"]


def test_recipes_that_are_not_asked_are_named(tmp_path: Path) -> None:
    """The results file names the recipe whose gold name does not parse."""
    changed = diner_own.content()
    changed["test"]["names"][1] = "宫保鸡丁"
    task = load_own_task(tmp_path / "changed", changed)
    assert task.dump_config()["metadata"][NOT_SCORABLE] == {load.UNPARSED: ["test-1"]}
    assert len(task.eval_docs) == len(diner_own.TEST) - 1


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        # The gold name's help under the honest name; no selection at all was the oracle's, too.
        ("diner_mini_icl", "diner_demonstrations", "oracle"),
        ("diner_mini_icl", "diner_demonstrations", None),
        ("diner_mini_icl_oracle", "diner_demonstrations", "instruction"),
        ("diner_mini_name", "diner_demonstrations", "oracle"),
        # Prompts that the task does not have, or answers that it does not read.
        ("diner_mini_name", "diner_ask", "components"),
        ("diner_mini_components", "diner_ask", "name"),
        ("diner_mini_cp", "diner_ask", "name"),
        ("diner_mini_icl", "diner_ask", "cp"),
    ],
)
def test_no_task_is_another_one_under_its_name(name: str, option: str, value: str | None) -> None:
    """An option that would make a task another one is refused."""
    with pytest.raises(OptionError, match=f"{option} is {value!r}, but {name} has .* leave it out"):
        load_task(name, **{option: value})


@pytest.mark.parametrize("metric", ["micro_f1", "mean_f1"])
def test_errors_are_clustered_by_dish(metric: str) -> None:
    """Ten equal recipes of a dish say no more than one."""
    dishes = [
        ("炒牛肉", "", "炒牛肉"),
        ("炒面", "", "炒面"),
        ("红烧土豆", "", "炒面"),
        ("麻辣面", "", ""),
    ]
    assert figures(dishes[:1] * 9)[metric + STDERR] == NONE
    error = figures(dishes)[metric + STDERR]
    assert isinstance(error, float)
    assert error > 0
    assert figures(dishes * 10)[metric + STDERR] == pytest.approx(error, abs=1e-12)
