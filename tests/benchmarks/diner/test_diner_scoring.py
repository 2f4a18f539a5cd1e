"""Scores by hand, categories of generalization, tasks and their metrics."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

import json
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import diner_own
from support.old_names import Old
from support.tasks import load_task

from lm_eval_ext.benchmarks.diner import load, mini, score
from lm_eval_ext.benchmarks.diner.glossary import KINDS, Glossary
from lm_eval_ext.benchmarks.diner.prompt import ASKED_KINDS
from lm_eval_ext.benchmarks.diner.records import CATEGORIES, Categories
from lm_eval_ext.benchmarks.diner.score import Counts, counts
from lm_eval_ext.errors import OptionError
from lm_eval_ext.harness.names import NONE, NOT_SCORABLE, STDERR

GLOSSARY = mini.glossary()
# Words of the embedded glossary: food 番茄=西红柿 鸡蛋=蛋 土豆=马铃薯 牛肉 茄子 豆腐 鸡肉=鸡
# 鱼=鱼片 香菇=冬菇 粥 饭 鸡翅; action 炒=小炒 炖 烤 红烧; flavour 麻辣 糖醋.
F = Fraction
CASES = [
    # Parsed: TP and both sizes are counted; F1 = 2 TP / (predicted + gold).
    ("红烧牛肉", "红烧牛肉", 2, F(2), 2, F(1)),  # 4/4
    ("红烧牛肉", "红烧茄子", 1, F(2), 2, F(1, 2)),  # 红烧; 2/4
    ("红烧牛肉", "糖醋鱼", 0, F(2), 2, F(0)),
    ("番茄炒蛋", "番茄", 1, F(1), 3, F(1, 2)),  # too few: 2/4
    ("番茄", "番茄炒蛋", 1, F(3), 1, F(1, 2)),  # too many: 2/4
    ("番茄炒蛋", "西红柿小炒鸡蛋", 3, F(3), 3, F(1)),  # three synonyms
    ("土豆炖牛肉", "牛肉炖马铃薯", 3, F(3), 3, F(1)),  # another order
    ("鱼", "鱼鱼片", 1, F(1), 1, F(1)),  # a class twice in the prediction: once
    ("鸡肉鸡饭", "鸡饭", 2, F(2), 2, F(1)),  # a class twice in the gold name: once
    ("鸡肉鸡饭", "鸡肉鸡饭", 2, F(2), 2, F(1)),
    # Empty: no component.
    ("红烧牛肉", "", 0, F(0), 2, F(0)),  # 0/2
    # Unparsed: predicted = n len(p) / sum of the gold words' lengths.
    ("红烧牛肉", "红烧牛排", 1, F(2), 2, F(1, 2)),  # 红烧; 2*4/(2+2) = 2; 2/4
    ("麻辣豆腐", "宫保虾仁", 0, F(2), 2, F(0)),  # 2*4/(2+2) = 2
    ("番茄炒蛋", "西红柿炒蛋花", 3, F(9, 2), 3, F(4, 5)),  # 3*6/(2+1+1) = 4.5; 6/7.5
    ("香菇鸡肉粥", "冬菇滑鸡粥", 3, F(3), 3, F(1)),  # all by synonyms; 3*5/(2+2+1) = 3; 6/6
    ("烤鸡翅", "roast wings", 0, F(22, 3), 2, F(0)),  # 2*11/(1+2)
    ("鱼", "这是一条鱼呀", 1, F(6), 1, F(2, 7)),  # 1*6/1 = 6; 2/7
    ("鸡肉鸡饭", "鸡块饭", 2, F(2), 2, F(1)),  # 鸡肉 by its first word: 2*3/(2+1) = 2; 4/4
    ("鸡鸡肉饭", "鸡块饭", 2, F(3), 2, F(4, 5)),  # 鸡 by its first word: 2*3/(1+1) = 3; 4/5
    # Unparsed and short: the estimate 2*5/(3+3) = 5/3 is below TP, so it is TP; 4/4.
    ("西红柿马铃薯", "番茄和土豆", 2, F(2), 2, F(1)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def test_the_table(case: tuple[str, str, int, Fraction, int, Fraction]) -> None:
    gold, prediction, tp, predicted, size, f1 = case
    found = counts(gold, prediction, GLOSSARY)
    assert found == Counts(tp, predicted, size)
    assert found.f1 == float(f1)
    (row, *_) = score.name(gold, prediction, GLOSSARY)
    assert (row["hits"], row["predicted"], row["gold"]) == (tp, float(predicted), size)


@pytest.mark.parametrize(
    ("gold", "prediction", "food", "action", "flavour"),
    [
        # A flavour too many is nobody's fault by kind: the gold name has none.
        ("红烧牛肉", "麻辣牛肉", (1, 1, 1), (0, 0, 1), None),
        # Unparsed, 4.5 estimated: two of three gold components are food (3), one action (1.5).
        ("番茄炒蛋", "西红柿炒蛋花", (2, 3, 2), (1, F(3, 2), 1), None),
        # Unparsed, 2*4/4 = 2 estimated, one for each kind.
        ("麻辣豆腐", "宫保豆腐", (1, 1, 1), None, (0, 1, 1)),
        # Unparsed, 5/3 estimated, all food, and raised to TP.
        ("西红柿马铃薯", "番茄和土豆", (2, 2, 2), None, None),
    ],
)
def test_kinds(gold: str, prediction: str, food: object, action: object, flavour: object) -> None:
    (_, *rows) = score.name(gold, prediction, GLOSSARY)
    found = {row["kind"]: (row["hits"], row["predicted"], row["gold"]) for row in rows}
    assert [found.get(kind) for kind in KINDS] == [food, action, flavour]
    for kind, shown in found.items():
        assert counts(gold, prediction, GLOSSARY, [str(kind)]) == shown


@pytest.mark.parametrize(
    ("prediction", "exact", "ours", "authors"),
    [
        ("番茄炒蛋", 1, 1.0, 1.0),
        # Exact match knows no synonyms.
        ("西红柿炒蛋", 0, 1.0, 1.0),
        ("番茄", 0, 0.5, 0.5),
        # All three components are found in what does not parse: 6/7.5, and for the authors nothing.
        ("西红柿炒蛋花", 0, 0.8, 0.0),
        ("", 0, 0.0, 0.0),
    ],
)
def test_a_name_has_three_scores(
    prediction: str, exact: float, ours: float, authors: float
) -> None:
    (scored, *_) = score.name("番茄炒蛋", prediction, GLOSSARY)
    assert (scored["exact_match"], scored["f1"], scored["f1_authors"]) == (exact, ours, authors)


def test_the_authors_mean_takes_the_answers_about_components_together() -> None:
    # Three are right, and one flavour is too many: 6/7. Each answer's F1 is 1, 0 and 1.
    (scored, *_) = score.components("番茄炒蛋", ["炒", "麻辣", "番茄、鸡蛋"], GLOSSARY)
    assert (scored["f1"], scored["f1_authors"]) == (2 / 3, 6 / 7)
    # It does not matter to them which question is answered: 番茄 counts, and once.
    (scored, *_) = score.components("番茄炒蛋", ["炒", "番茄", "番茄"], GLOSSARY)
    assert (scored["f1"], scored["f1_authors"]) == (pytest.approx(5 / 9), 0.8)


ANY = st.text(alphabet="番茄西红柿炒小鸡肉蛋鱼片饭粥红烧麻辣香菇排骨xy。 ", max_size=12)


GOLD = st.sampled_from([case[0] for case in CASES])


@given(GOLD, ANY | GOLD)
def test_bounds(gold: str, prediction: str) -> None:
    assert counts(gold, gold, GLOSSARY).f1 == 1
    found = counts(gold, prediction, GLOSSARY)
    assert 0 <= found.hits <= min(found.gold, found.predicted)
    kinds = [counts(gold, prediction, GLOSSARY, [kind]) for kind in KINDS]
    assert sum(one.hits for one in kinds) == found.hits
    assert sum(one.gold for one in kinds) == found.gold


@pytest.mark.parametrize(
    ("train", "name", "category"),
    [
        # The paper's table 2.
        (["beef", "bun"], "beef bun", "CombTwo"),
        (["noodles gravy", "steamed perch"], "steamed noodles gravy", "AddOne"),
        (["braised pork", "marinated brisket"], "braised brisket", "RecoTwo"),
        (
            ["spicy ricenoodle", "pork mushroom", "braised chicken"],
            "ricenoodle mushroom chicken",
            "RecoThree",
        ),
        # One single name and a part of another one recombine.
        (["beef", "steamed bun"], "beef bun", "RecoTwo"),
        (["beef", "bun", "steamed pork"], "beef bun steamed", "RecoThree"),
        # An added component may come from a single name, too.
        (["noodles gravy", "beef"], "beef noodles gravy", "AddOne"),
        # A whole name and two components of another one.
        (["noodles gravy", "steamed beef pork"], "steamed beef noodles gravy", "RecoTwo"),
        # Nothing new: the set, or more than it, is a training name.
        (["beef bun", "beef", "bun"], "bun beef", None),
        (["steamed beef bun", "beef", "bun"], "beef bun", None),
        (["beef"], "beef", None),
        # Unknown components, too many names.
        (["beef", "pork"], "beef bun", None),
        (["a x", "b x", "c x", "d x"], "a b c d", None),
        ([], "beef", None),
        (["beef"], "", None),
    ],
)
def test_categories(train: list[str], name: str, category: str | None) -> None:
    assert Categories(map(str.split, train)).of(name.split()) == category


def exhaustive(train: list[frozenset[str]], name: frozenset[str]) -> str | None:
    """The page's definitions, word by word, over all pairs and triples of names."""
    if not name or any(name <= known for known in train):
        return None
    singles = {next(iter(known)) for known in train if len(known) == 1}
    if len(name) == 2 and name <= singles:
        return "CombTwo"
    for base in train:
        for other in train:
            added = name - base
            if len(base) >= 2 and base < name and len(added) == 1 and added <= other:
                return "AddOne"
    for one, two in combinations(train, 2):
        if name <= one | two:
            return "RecoTwo"
    for one, two, three in combinations(train, 3):
        if name <= one | two | three:
            return "RecoThree"
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


@pytest.fixture(scope="module", autouse=True)
def _one_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LM_EVAL_EXT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def asked(answers: Sequence[tuple[str, str, Sequence[str]]]) -> Old:
    """The figures of gold names, categories and answers."""
    return Old(
        "diner",
        (
            (
                str(place), str(place), (gold,),
                score.by_glossary({"answer": gold, "category": kind}, given, glossary=OWN),
            )
            for place, (gold, kind, given) in enumerate(answers)
        ),
    )  # fmt: skip


def names(answers: Sequence[tuple[str, str, str]]) -> Old:
    return asked([(gold, kind, [given]) for gold, kind, given in answers])


def test_micro_and_mean_f1_differ_as_arithmetic_says() -> None:
    found = names(
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


def test_a_name_that_does_not_parse_is_estimated() -> None:
    # 牛肉 stands in it; 4 characters, gold words of 1.5 on average: 8 / 3 components.
    found = names([("炒牛肉", "RecoTwo", "宫保牛肉"), ("炒牛肉", "RecoTwo", "炒牛肉")])
    assert found["micro_f1"] == pytest.approx(2 * 3 / (8 / 3 + 2 + 4))
    assert found["unparsed"] == 1 / 2


def components(answers: Sequence[tuple[str, list[str]]]) -> Old:
    return asked([(gold, "", given) for gold, given in answers])


def test_component_questions_by_hand() -> None:
    assert ASKED_KINDS == ("action", "flavour", "food")
    found = components(
        [
            ("红烧土豆", ["红烧", "无", "洋芋"]),  # all right
            ("番茄鸡蛋面", ["炒", "", "番茄、面"]),  # one action too many, one food too few
            ("麻辣豆腐", ["无", "没有", "豆腐，牛肉"]),  # the flavour is missing, a food too many
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
    found = components([("番茄面", ["", "无", "番茄，面"])])
    assert found["micro_f1:action"] == found["micro_f1:flavour"] == NONE
    assert found["mean_f1:action"] == found["exact_match"] == found["micro_f1"] == 1


def gold_components(name: str, glossary: Glossary) -> list[str]:
    found = zip(glossary.words_in(name) or (), glossary.parse(name) or (), strict=True)
    by_kind: dict[str, list[str]] = {kind: [] for kind in ASKED_KINDS}
    for word, component in found:
        by_kind[component.kind].append(word)
    return ["、".join(words) or "无" for words in by_kind.values()]


@pytest.mark.parametrize("kind", ["name", "name_random", "components", "cp", "icl", "icl_oracle"])
def test_gold_answers_reach_one(kind: str) -> None:
    loaded = load_task(f"diner_mini_{kind}")
    for doc in loaded.eval_docs:
        right = (
            gold_components(doc["answer"], mini.glossary())
            if kind == "components"
            else [doc["answer"]]
        )
        for row in loaded.process_results(doc, right)["rows"]:
            assert row["hits"] == row["predicted"] == row["gold"]
            assert {row.get(name, 1) for name in ("f1", "f1_authors", "exact_match")} == {1}
            assert {row.get(name, 0) for name in ("unparsed", "no_answer")} == {0}


def test_in_context_prompts_hold_two_recipes_and_the_question() -> None:
    loaded = load_task("diner_mini_icl_oracle")
    loaded.build_all_requests(limit=5, rank=0, world_size=1)
    for instance in loaded.instances:
        text, generation = instance.args
        assert text.count("这个菜谱的菜名是什么？") == 3
        assert text.endswith(instance.doc["input"])
        assert generation["until"] == ["\n"]
        for name in instance.doc["demonstrations"]:
            recipe = loaded.split.by_id[name]
            assert f"“{recipe.instruction}” 这个菜谱的菜名是什么？ {recipe.name}\n\n" in text


def test_an_own_folder_signs_its_content_and_not_its_place(tmp_path: Path) -> None:
    """And names the recipes that are not asked."""
    changed = diner_own.content()
    changed["test"]["names"][1] = "宫保鸡丁"
    signed = []
    for name, content in (("a", None), ("b", None), ("c", changed)):
        folder = diner_own.write(tmp_path / name, "random", content)
        dumped = load_task("diner_name_random", diner_dir=str(folder)).dump_config()["metadata"]
        signed.append(dumped["signature"])
    assert dumped[NOT_SCORABLE] == {load.UNPARSED: ["test-1"]}
    assert signed[0] == signed[1]
    assert str(tmp_path) not in json.dumps(signed)
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
    one_dish = names([("炒牛肉", "RecoTwo", "炒牛肉"), ("炒牛肉", "RecoTwo", "炒面")])
    assert one_dish["micro_f1" + STDERR] == one_dish["mean_f1" + STDERR] == NONE
    answers = [("炒牛肉", "炒牛肉"), ("炒面", "炒面"), ("红烧土豆", "炒面"), ("麻辣面", "")]
    dishes = [(gold, "RecoTwo", given) for gold, given in answers]
    alone, tenfold = names(dishes), names(dishes * 10)
    # Ten equal recipes of a dish say no more than one.
    assert alone["micro_f1" + STDERR] > 0
    assert alone["micro_f1" + STDERR] == pytest.approx(tenfold["micro_f1" + STDERR], abs=1e-12)
