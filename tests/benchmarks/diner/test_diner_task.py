"""Tasks and their metrics, compared with values computed by hand."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from support import diner_own
from support.old_names import Old
from support.tasks import load_task

from lm_eval_ext.benchmarks.diner import load, mini, score
from lm_eval_ext.benchmarks.diner.glossary import Glossary
from lm_eval_ext.benchmarks.diner.prompt import ASKED_KINDS
from lm_eval_ext.errors import OptionError
from lm_eval_ext.harness.names import NONE, NOT_SCORABLE, STDERR

GLOSSARY = Glossary(diner_own.GLOSSARY)


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
                score.by_glossary({"answer": gold, "category": kind}, given, glossary=GLOSSARY),
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
