"""Tasks and their metrics, compared with values computed by hand."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from lm_eval.tasks import TaskManager
from support import diner_own
from support.old_names import Old

from lm_eval_ext._autoload import tasks_folder
from lm_eval_ext.benchmarks.diner import load, mini, score
from lm_eval_ext.benchmarks.diner.files import REPORT
from lm_eval_ext.benchmarks.diner.glossary import Glossary
from lm_eval_ext.benchmarks.diner.prompt import ASKED_KINDS
from lm_eval_ext.harness.names import NONE, NOT_SCORABLE, STDERR
from lm_eval_ext.stats.intervals import mean_estimate

GLOSSARY = Glossary.of(diner_own.GLOSSARY)


@pytest.fixture(scope="module", autouse=True)
def _one_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LM_EVAL_EXT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def task(name: str, **metadata: Any) -> Any:
    manager = TaskManager(
        include_defaults=False, include_path=tasks_folder(), metadata=metadata or None
    )
    return manager.load(name)["tasks"][name]


def names(answers: Sequence[tuple[str, str, str]]) -> Old:
    return Old(
        "diner",
        (
            (
                str(place), str(place), (gold,),
                score.by_glossary(
                    {"answer": gold, "category": kind}, [given], glossary=GLOSSARY, asks_name=True
                ),
            )
            for place, (gold, kind, given) in enumerate(answers)
        ),
    )  # fmt: skip


def test_micro_and_mean_f1_differ_as_arithmetic_says() -> None:
    found = names(
        [
            ("红烧土豆", "RecoTwo", "红烧洋芋"),  # a synonym: 2 right of 2 and 2, not the same name
            ("番茄鸡蛋面", "AddOne", "番茄面"),  # 2 right of 2 and 3
            ("炒牛肉", "RecoTwo", ""),  # 0 of 0 and 2
            ("麻辣豆腐", "RecoTwo", "麻辣豆腐"),  # 2 of 2 and 2
        ]
    )
    assert found["micro_f1"] == pytest.approx(2 * 6 / (6 + 9))
    assert found["mean_f1"] == pytest.approx((1 + 0.8 + 0 + 1) / 4)
    assert found["exact_match"] == 1 / 4
    assert found["exact_match:RecoTwo"] == 1 / 3
    assert found["exact_match:AddOne"] == 0
    assert found["micro_f1:AddOne"] == pytest.approx(0.8)
    assert found["micro_f1:RecoTwo"] == pytest.approx(2 * 4 / (4 + 6))
    # food: 1 of 1 and 1, 2 of 2 and 3, 0 of 0 and 1, 1 of 1 and 1
    assert found["micro_f1:food"] == pytest.approx(2 * 4 / (4 + 6))
    # action: 红烧土豆 and 炒牛肉 alone; flavour: 麻辣豆腐 alone
    assert found["micro_f1:action"] == pytest.approx(2 * 1 / (1 + 2))
    assert found["micro_f1:flavour"] == 1
    assert (found["unparsed"], found["no_answer"]) == (0, 1 / 4)


def test_a_name_that_does_not_parse_is_estimated() -> None:
    # 牛肉 stands in it; 4 characters, gold words of 1.5 on average: 8 / 3 components.
    found = names([("炒牛肉", "RecoTwo", "宫保牛肉"), ("炒牛肉", "RecoTwo", "炒牛肉")])
    assert found["micro_f1"] == pytest.approx(2 * 3 / (8 / 3 + 2 + 4))
    assert found["unparsed"] == 1 / 2


def test_errors_are_clustered_by_dish() -> None:
    one_dish = names([("炒牛肉", "RecoTwo", "炒牛肉"), ("炒牛肉", "RecoTwo", "炒面")])
    assert one_dish["micro_f1" + STDERR] == NONE
    assert one_dish["mean_f1" + STDERR] == NONE
    dishes = [("炒牛肉", "炒牛肉"), ("炒面", "炒面"), ("红烧土豆", "炒面"), ("麻辣面", "")]
    several = names([(gold, "RecoTwo", given) for gold, given in dishes])
    assert several["micro_f1" + STDERR] > 0
    values = [(score.counts(gold, given, GLOSSARY).f1, gold) for gold, given in dishes]
    expected = mean_estimate(values)
    assert expected and several["mean_f1" + STDERR] == expected.stderr


def test_a_category_without_documents_has_no_figure() -> None:
    found = names([("炒牛肉", "RecoTwo", "炒牛肉")])
    assert set(found.table["category"]) == {"RecoTwo"}
    assert "flavour" not in set(found.table["kind"])


def components(answers: Sequence[tuple[str, list[str]]]) -> Old:
    return Old(
        "diner",
        (
            (str(place), str(place), (gold,), score.components(gold, given, GLOSSARY))
            for place, (gold, given) in enumerate(answers)
        ),
    )


def test_component_questions_by_hand() -> None:
    assert ASKED_KINDS == ("action", "flavour", "food")
    found = components(
        [
            ("红烧土豆", ["红烧", "无", "洋芋"]),  # all right
            ("番茄鸡蛋面", ["炒", "", "番茄、面"]),  # one action too many, one food too few
            ("麻辣豆腐", ["无", "没有", "豆腐，牛肉"]),  # the flavour is missing, a food too many
        ]
    )
    assert found["exact_match"] == 1 / 3
    assert found["exact_match:action"] == 2 / 3
    assert found["exact_match:flavour"] == 2 / 3
    assert found["exact_match:food"] == 1 / 3
    assert found["mean_f1:action"] == pytest.approx((1 + 0 + 1) / 3)
    assert found["mean_f1:flavour"] == pytest.approx((1 + 1 + 0) / 3)
    assert found["mean_f1:food"] == pytest.approx((1 + 0.8 + 2 / 3) / 3)
    assert found["mean_f1"] == pytest.approx(((3 + 1.8 + 5 / 3) / 3) / 3)
    assert found["micro_f1:action"] == pytest.approx(2 * 1 / (2 + 1))
    assert found["micro_f1:flavour"] == pytest.approx(0)
    assert found["micro_f1:food"] == pytest.approx(2 * 4 / (5 + 5))
    assert found["micro_f1"] == pytest.approx(2 * 5 / (7 + 7))


def test_where_nothing_was_asked_for_nothing_is_right() -> None:
    found = components([("番茄面", ["", "无", "番茄，面"])])
    assert found["micro_f1:action"] == found["micro_f1:flavour"] == NONE
    assert found["mean_f1:action"] == found["exact_match"] == found["micro_f1"] == 1


def gold_components(name: str, glossary: Glossary) -> list[str]:
    words = glossary.words_in(name) or ()
    by_kind: dict[str, list[str]] = {kind: [] for kind in ASKED_KINDS}
    for word in words:
        component = glossary.component(word)
        assert component is not None
        by_kind[component.kind].append(word)
    return ["、".join(by_kind[kind]) or "无" for kind in ASKED_KINDS]


@pytest.mark.parametrize("kind", ["name", "name_random", "components", "cp", "icl", "icl_oracle"])
def test_gold_answers_reach_one(kind: str) -> None:
    loaded = task(f"diner_mini_{kind}")
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
    loaded = task("diner_mini_icl_oracle")
    loaded.build_all_requests(limit=5, rank=0, world_size=1)
    for instance in loaded.instances:
        text, generation = instance.args
        assert text.count("这个菜谱的菜名是什么？") == 3
        assert text.endswith(instance.doc["input"])
        assert generation["until"] == ["\n"]
        for name in instance.doc["demonstrations"]:
            recipe = loaded.split.by_id[name]
            assert f"“{recipe.instruction}” 这个菜谱的菜名是什么？ {recipe.name}\n\n" in text


def test_after_a_chat_template_only_the_turns_end_stops() -> None:
    def template(turns: list[dict[str, str]], **_: Any) -> str:
        return "".join(f"<{turn['role']}>{turn['content']}" for turn in turns)

    for kind in ("name", "components", "cp", "icl"):
        loaded = task(f"diner_mini_{kind}")
        loaded.build_all_requests(
            limit=1, rank=0, world_size=1, apply_chat_template=True,
            fewshot_as_multiturn=True, chat_template=template,
        )  # fmt: skip
        assert all(instance.args[1]["until"] == [] for instance in loaded.instances)
        assert all(instance.args[0].startswith("<user>“") for instance in loaded.instances)
        assert loaded.instances[0].args[0].count("<assistant>") == (2 if kind == "icl" else 0)


def test_the_number_and_seed_of_demonstrations_are_lm_evals() -> None:
    loaded = task("diner_mini_icl")
    loaded.set_config("num_fewshot", 3)
    loaded.set_fewshot_seed(7)
    assert {len(doc["demonstrations"]) for doc in loaded.test_docs()} == {3}
    assert loaded.dump_config()["metadata"]["signature"]["seed"] == "7"


def test_an_own_folder_signs_its_content_and_not_its_place(tmp_path: Path) -> None:
    folders = [diner_own.write(tmp_path / name, "random") for name in "ab"]
    signed = []
    for folder in folders:
        loaded = task("diner_name_random", diner_dir=str(folder))
        assert len(loaded.eval_docs) == len(diner_own.TEST)
        signed.append(loaded.dump_config()["metadata"]["signature"])
    assert signed[0] == signed[1]
    assert str(tmp_path) not in json.dumps(signed)
    changed = diner_own.content()
    changed["test"]["instructions"][0] += "撒葱花。"
    other = diner_own.write(tmp_path / "c", "random", changed)
    own = task("diner_name_random", diner_dir=str(other)).dump_config()["metadata"]["signature"]
    assert own["sha256"] != signed[0]["sha256"]


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (
            '{"options": {"divergence": 0.8, "proportion": 1.0}}',
            {"divergence": "0.8", "share": "1"},
        ),
        ('{"options": {"divergence": "x", "proportion": 1.0}}', {}),
        ("[1", {}),
        (None, {}),
    ],
)
def test_a_built_split_signs_its_divergence_and_share(
    tmp_path: Path, report: str | None, expected: dict[str, str]
) -> None:
    folder = diner_own.write(tmp_path)
    if report is not None:
        (folder / REPORT).write_text(report)
    own = task("diner_name_tmcd", diner_dir=str(folder)).dump_config()["metadata"]["signature"]
    assert {key: own[key] for key in ("divergence", "share") if key in own} == expected


def test_recipes_that_are_not_asked_are_named_in_the_results(tmp_path: Path) -> None:
    changed = diner_own.content()
    changed["test"]["names"][1] = "宫保鸡丁"
    folder = diner_own.write(tmp_path, changed=changed)
    for name in ("diner_name_tmcd", "diner_icl"):
        dumped = task(name, diner_dir=str(folder)).dump_config()
        assert dumped["metadata"][NOT_SCORABLE] == {load.UNPARSED: ["test-1"]}
