"""Scores by hand, categories of generalization, tasks and their metrics."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path

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
FAMILIES = Path(__file__).with_name("diner_cases.yaml")
CASES = yaml.safe_load(FAMILIES.read_text("utf-8"))
# Words of the embedded glossary: food 番茄=西红柿 鸡蛋=蛋 土豆=马铃薯 牛肉 茄子 豆腐 鸡肉=鸡
# 鱼=鱼片 香菇=冬菇 粥 饭 鸡翅; action 炒=小炒 炖 烤 红烧; flavour 麻辣 糖醋.


@pytest.mark.parametrize(("gold", "prediction", "hits", "predicted", "size"), CASES["scores"])
def test_the_table(gold: str, prediction: str, hits: int, predicted: str, size: int) -> None:
    expected = hits, Fraction(predicted), size
    assert counts(gold, prediction, GLOSSARY) == expected
    (row, *_) = score.name(gold, prediction, GLOSSARY)
    assert (row["hits"], row["predicted"], row["gold"]) == (hits, float(expected[1]), size)


@pytest.mark.parametrize(("gold", "prediction", "expected"), CASES["kinds"])
def test_kinds(gold: str, prediction: str, expected: object) -> None:
    (_, *rows) = score.name(gold, prediction, GLOSSARY)
    found = {row["kind"]: [row["hits"], row["predicted"], row["gold"]] for row in rows}
    assert found == expected


@pytest.mark.parametrize("prediction", CASES["names"])
def test_the_scores_of_a_name(prediction: str) -> None:
    (scored, *_) = score.name("番茄炒蛋", prediction, GLOSSARY)
    names = ("exact_match", "f1", "f1_authors", "unparsed", "no_answer")
    assert [scored[name] for name in names] == CASES["names"][prediction]


def test_the_authors_mean_takes_the_answers_about_components_together() -> None:
    for answers, f1, authors in (
        # Three are right, and one flavour is too many: 6/7. Each answer's F1 is 1, 0 and 1.
        (["炒", "麻辣", "番茄、鸡蛋"], 2 / 3, 6 / 7),
        # It does not matter to them which question is answered: 番茄 counts, and once.
        (["炒", "番茄", "番茄"], 5 / 9, 0.8),
    ):
        (scored, *_) = score.components("番茄炒蛋", answers, GLOSSARY)
        assert (scored["f1"], scored["f1_authors"]) == pytest.approx((f1, authors))


ANY = st.text(alphabet="番茄西红柿炒小鸡肉蛋鱼片饭粥红烧麻辣香菇排骨xy。 ", max_size=12)


GOLD = st.sampled_from([gold for gold, *_ in CASES["scores"]])


@given(GOLD, ANY | GOLD)
def test_bounds(gold: str, prediction: str) -> None:
    assert counts(gold, gold, GLOSSARY).f1 == 1
    found = counts(gold, prediction, GLOSSARY)
    assert 0 <= found.hits <= min(found.gold, found.predicted)
    kinds = [counts(gold, prediction, GLOSSARY, [kind]) for kind in KINDS]
    assert sum(one.hits for one in kinds) == found.hits
    assert sum(one.gold for one in kinds) == found.gold


@pytest.mark.parametrize(("train", "name", "category"), CASES["categories"])
def test_categories(train: str, name: str, category: str | None) -> None:
    assert Categories(map(str.split, train.split(","))).of(name.split()) == category


def exhaustive(train: list[frozenset[str]], name: frozenset[str]) -> str | None:
    """The page's definitions, word by word, over all pairs and triples of names."""
    if not name or any(name <= known for known in train):
        return None
    if len(name) == 2 and set(map(frozenset, name)) <= set(train):
        return "CombTwo"
    for base, other in product(train, repeat=2):
        if len(base) >= 2 and base < name and len(name - base) == 1 and name - base <= other:
            return "AddOne"
    for size, category in ((2, "RecoTwo"), (3, "RecoThree")):
        if any(name <= frozenset().union(*some) for some in combinations(train, size)):
            return category
    return None


SETS = st.frozensets(st.sampled_from("abcdefgh"), min_size=1, max_size=5)


@settings(max_examples=500)
@given(st.lists(SETS, max_size=8), SETS)
def test_an_exhaustive_check_agrees(train: list[frozenset[str]], name: frozenset[str]) -> None:
    expected = exhaustive(train, name)
    assert Categories(train).of(name) == expected
    assert Categories([*reversed(train), *train]).of(sorted(name)) == expected
    assert expected is None or expected in CATEGORIES


OWN = Glossary(diner_own.GLOSSARY)


def asked(answers: Sequence[tuple[str, str, str]]) -> Old:
    """The figures of gold names, categories and answers (to each question, divided by |)."""
    scored = []
    for place, (gold, kind, answer) in enumerate(answers):
        document = {"answer": gold, "category": kind}
        rows = score.by_glossary(document, answer.split("|"), glossary=OWN)
        scored.append((f"{place}", f"{place}", (gold,), rows))
    return Old("diner", scored)


def test_micro_and_mean_f1_differ_as_arithmetic_says() -> None:
    found = asked(
        [
            ("红烧土豆", "RecoTwo", "红烧洋芋"),  # a synonym: 2 right of 2 and 2, not the same name
            ("番茄鸡蛋面", "AddOne", "番茄面"),  # 2 right of 2 and 3
            ("炒牛肉", "RecoTwo", ""),  # 0 of 0 and 2
            ("麻辣豆腐", "RecoTwo", "麻辣豆腐"),  # 2 of 2 and 2
        ]
    )
    expected = {
        "micro_f1": 2 * 6 / (6 + 9), "mean_f1": (1 + 0.8 + 0 + 1) / 4, "exact_match": 1 / 4,
        "exact_match:RecoTwo": 1 / 3, "exact_match:AddOne": 0,
        "micro_f1:AddOne": 0.8, "micro_f1:RecoTwo": 2 * 4 / (4 + 6),
        # food: 1 of 1 and 1, 2 of 2 and 3, 0 of 0 and 1, 1 of 1 and 1
        "micro_f1:food": 2 * 4 / (4 + 6),
        # action: 红烧土豆 and 炒牛肉 alone; flavour: 麻辣豆腐 alone
        "micro_f1:action": 2 * 1 / (1 + 2), "micro_f1:flavour": 1,
        "unparsed": 0, "no_answer": 1 / 4,
    }  # fmt: skip
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_component_questions_by_hand() -> None:
    assert ASKED_KINDS == ("action", "flavour", "food")
    found = asked(
        [
            ("红烧土豆", "", "红烧|无|洋芋"),  # all right
            ("番茄鸡蛋面", "", "炒||番茄、面"),  # one action too many, one food too few
            ("麻辣豆腐", "", "无|没有|豆腐，牛肉"),  # the flavour is missing, a food too many
        ]
    )
    expected = {
        "exact_match": 1 / 3, "exact_match:action": 2 / 3, "exact_match:flavour": 2 / 3,
        "exact_match:food": 1 / 3, "mean_f1": ((3 + 1.8 + 5 / 3) / 3) / 3,
        "mean_f1:action": (1 + 0 + 1) / 3, "mean_f1:flavour": (1 + 1 + 0) / 3,
        "mean_f1:food": (1 + 0.8 + 2 / 3) / 3, "micro_f1": 2 * 5 / (7 + 7),
        "micro_f1:action": 2 * 1 / (2 + 1), "micro_f1:flavour": 0, "micro_f1:food": 2 * 4 / (5 + 5),
    }  # fmt: skip
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_where_nothing_was_asked_for_nothing_is_right() -> None:
    found = asked([("番茄面", "", "|无|番茄，面")])
    assert found["micro_f1:action"] == found["micro_f1:flavour"] == NONE
    assert found["mean_f1:action"] == found["exact_match"] == found["micro_f1"] == 1


@pytest.mark.parametrize("kind", ["name", "name_random", "cp", "icl", "icl_oracle"])
def test_gold_answers_reach_one(kind: str) -> None:
    loaded = load_task(f"diner_mini_{kind}")
    for doc in loaded.eval_docs:
        (row, *_) = loaded.process_results(doc, [doc["answer"]])["rows"]
        assert row["hits"] == row["predicted"] == row["gold"]
        assert row["f1"] == row["exact_match"] == 1


def test_in_context_prompts_hold_two_recipes_and_the_question() -> None:
    loaded = load_task("diner_mini_icl_oracle")
    loaded.build_all_requests(limit=5, rank=0, world_size=1)
    for instance in loaded.instances:
        text, generation = instance.args
        shown = (loaded.resources.by_id[name] for name in instance.doc["demonstrations"])
        turns = (f"“{one.instruction}” 这个菜谱的菜名是什么？ {one.name}\n\n" for one in shown)
        assert text == "".join(turns) + instance.doc["input"]
        assert generation["until"] == ["\n"]


def test_an_own_folder_signs_its_content_and_not_its_place(tmp_path: Path) -> None:
    """And names the recipes that are not asked."""
    changed = diner_own.content()
    changed["test"]["names"][1] = "宫保鸡丁"
    signed = []
    for name, content in (("a", None), ("b", None), ("c", changed)):
        folder = diner_own.write(tmp_path / name, "random", content)
        task = load_task("diner_name_random", diner_dir=str(folder))
        dumped = task.dump_config()["metadata"]
        signed.append(dumped["signature"])
        assert str(tmp_path) not in str(dumped["signature"])
    assert dumped[NOT_SCORABLE] == {load.UNPARSED: ["test-1"]}
    assert len(task.eval_docs) == len(diner_own.TEST) - 1
    assert signed[0] == signed[1]
    assert signed[2]["sha256"] != signed[0]["sha256"]


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
    with pytest.raises(OptionError, match=f"{option} is {value!r}, but {name} has .* leave it out"):
        load_task(name, **{option: value})


def test_errors_are_clustered_by_dish() -> None:
    dishes = [
        ("炒牛肉", "", "炒牛肉"),
        ("炒面", "", "炒面"),
        ("红烧土豆", "", "炒面"),
        ("麻辣面", "", ""),
    ]
    # Ten equal recipes of a dish say no more than one.
    for name in ("micro_f1", "mean_f1"):
        assert asked(dishes[:1] * 9)[name + STDERR] == NONE
        alone, tenfold = (asked(dishes * copies)[name + STDERR] for copies in (1, 10))
        assert alone == pytest.approx(tenfold, abs=1e-12) and alone > 0
