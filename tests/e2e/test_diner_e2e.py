"""The DiNeR tasks through plain lm_eval: tiny models, gold answers, planted mistakes."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import diner_own, legal
from support.asking import of_file
from support.tasks import load_task
from support.tiny import few_tokens

from lm_eval_ext.benchmarks.diner import mini
from lm_eval_ext.benchmarks.diner.prompt import ASKED_KINDS
from lm_eval_ext.harness.metrics import STDERR

# jieba's dictionary takes seconds to build; the kept cache has it.
pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("kept_cache")]

NAME_TASKS = ("name", "name_random", "cp", "icl", "icl_oracle")
KINDS = (*NAME_TASKS, "components")


def requests(name: str) -> list[Any]:
    task = load_task(name)
    task.build_all_requests(rank=0, world_size=1)
    return list(task.instances)


def record(file: Path, answers: dict[str, Callable[[dict[str, Any], int], str]]) -> Path:
    """Writes recorded answers to the requests of tasks."""
    rows = [
        {"arguments": [request.args[0]], "response": answer(request.doc, request.idx)}
        for name, answer in answers.items()
        for request in requests(name)
    ]
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return file


def words(name: str) -> tuple[str, ...]:
    found = mini.glossary().words_in(name)
    assert found
    return found


def gold_components(doc: dict[str, Any], question: int) -> str:
    """Alternately a list and a sentence, in traditional characters or not."""
    glossary = mini.glossary()
    found = [
        word for word in words(doc["answer"]) if word in glossary.as_dict()[ASKED_KINDS[question]]
    ]
    if not found:
        return ("", "无", "没有。")[len(doc["answer"]) % 3]
    listed = "、".join(found)
    return listed if len(doc["instruction"]) % 2 else f"答案是：“{listed}”。"


def gold_name(doc: dict[str, Any], _: int) -> str:
    return (doc["answer"], f"这个菜谱的菜名是“{doc['answer']}”。", f"菜名：{doc['answer']}\n")[
        len(doc["instruction"]) % 3
    ]


def gold_lines(doc: dict[str, Any], _: int) -> str:
    asked = [gold_components(doc, question) for question in range(3)]
    return f"{asked[0]}\n味道：{asked[1]}\n主料或形式：{asked[2]}\n菜名：{doc['answer']}"


def figures(done: Any, name: str) -> dict[str, Any]:
    """The metrics of a task, without their filter, and without errors and counts."""
    assert done.returncode == 0, done.stderr[-3000:]
    metrics = {
        key.partition(",")[0]: value
        for key, value in done.results()["results"][name].items()
        if "," in key
    }
    return {key: value for key, value in metrics.items() if not key.endswith(STDERR)}


def test_all_of_mini_runs_with_a_tiny_model(
    lm_eval: Callable[..., Any], cli: Callable[..., Any], tiny_models: Path
) -> None:
    done = lm_eval("--tasks", "diner_mini", "--model", "hf", "--device", "cpu",
                   "--model_args", f"pretrained={tiny_models / 'gpt2'}", "--limit", "3",
                   "--gen_kwargs", few_tokens("gpt2"))  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert "jieba" not in done.stderr
    for name in KINDS:
        task = f"diner_mini_{name}"
        assert len(done.samples(task)) == 3
        assert done.results()["n-samples"][task] == {"original": 24, "effective": 3}
        assert set(figures(done, task)) >= {"micro_f1", "recipe_mean_f1", "recipe_exact_match"}
    shown = cli("show", str(done.output), "--tasks", "diner_mini_name")
    assert shown.returncode == 0, shown.stderr
    assert "micro_f1" in shown.stdout
    assert "|glossary:" in cli("show", str(done.output), "--signatures").stdout


def test_gold_answers_reach_one_everywhere(lm_eval: Callable[..., Any], tmp_path: Path) -> None:
    answers = {f"diner_mini_{name}": gold_name for name in NAME_TASKS}
    answers |= {"diner_mini_cp": gold_lines, "diner_mini_components": gold_components}
    file = record(tmp_path / "gold.jsonl", answers)
    done = lm_eval("--tasks", "diner_mini", "--model", "recorded", "--model_args",
                   f"path={file},conflict=first")  # fmt: skip
    for name in KINDS:
        found = figures(done, f"diner_mini_{name}")
        assert found.pop("recipe_unparsed", 0) == found.pop("recipe_no_answer", 0) == 0
        assert found
        assert set(found.values()) == {1.0}, name
    (sample, *_) = (row for row in done.samples("diner_mini_name") if "“" in row["resps"][0][0])
    assert sample["filtered_resps"] == [sample["doc"]["answer"]]


def test_planted_mistakes_score_what_arithmetic_says(
    lm_eval: Callable[..., Any], tmp_path: Path
) -> None:
    """Of every dish with an odd number of characters, the first word alone is answered."""

    def planted(doc: dict[str, Any], _: int) -> str:
        name: str = doc["answer"]
        return words(name)[0] if len(name) % 2 else name

    def components(doc: dict[str, Any], question: int) -> str:
        """The right foods, and for action and flavour always the same."""
        return ("炒", "麻辣", gold_components(doc, question))[question]

    file = record(
        tmp_path / "planted.jsonl",
        {"diner_mini_name": planted, "diner_mini_components": components},
    )
    done = lm_eval("--tasks", "diner_mini_name,diner_mini_components", "--model", "recorded",
                   "--model_args", f"path={file}")  # fmt: skip
    found = figures(done, "diner_mini_name")
    golds = [request.doc["answer"] for request in requests("diner_mini_name")]
    sizes = [len(set(mini.glossary().parse(gold) or ())) for gold in golds]
    right = [1 if len(gold) % 2 else size for gold, size in zip(golds, sizes, strict=True)]
    assert 0 < sum(len(gold) % 2 for gold in golds) < len(golds)
    assert found["micro_f1"] == pytest.approx(2 * sum(right) / (sum(right) + sum(sizes)))
    each = [2 * tp / (tp + size) for tp, size in zip(right, sizes, strict=True)]
    assert found["recipe_mean_f1"] == pytest.approx(sum(each) / len(each))
    assert found["recipe_mean_f1"] != found["micro_f1"]
    exact = sum(not len(gold) % 2 for gold in golds) / len(golds)
    assert found["recipe_exact_match"] == pytest.approx(exact)
    assert legal.check_results(done.results()) > 10
    noted = done.results()["configs"]["diner_mini_name"]["metadata"]["intervals"]
    assert (noted["micro_f1,name"]["clusters"], noted["micro_f1,name"]["method"]) == (8, "wilson")

    found = figures(done, "diner_mini_components")
    fried = sum("炒" in {c.name for c in mini.glossary().parse(gold) or ()} for gold in golds)
    cooked = sum("action" in {c.kind for c in mini.glossary().parse(gold) or ()} for gold in golds)
    exact = {
        kind: of_file(done.output, "diner_mini_components", "recipe_exact_match", kind=kind)
        for kind in ("food", "action")
    }
    assert exact == {"food": 1.0, "action": pytest.approx(fried / len(golds))}
    assert found["micro_f1/action"] == pytest.approx(2 * fried / (len(golds) + cooked))


def test_earlier_answers_go_into_the_prompts_of_cp(
    lm_eval: Callable[..., Any], tmp_path: Path
) -> None:
    file = record(tmp_path / "gold.jsonl", {"diner_mini_components": gold_components})
    asked = lm_eval("--tasks", "diner_mini_components", "--model", "recorded", "--model_args",
                    f"path={file}", "--limit", "10")  # fmt: skip
    assert asked.returncode == 0, asked.stderr[-3000:]
    (log,) = asked.output.rglob("samples_diner_mini_components_*.jsonl")
    done = lm_eval("--tasks", "diner_mini_cp", "--model", "dummy", "--metadata",
                   json.dumps({"diner_components_file": str(log)}),
                   output=tmp_path / "second")  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    samples = done.samples("diner_mini_cp")
    assert len(samples) == 10
    earlier = {row["doc"]["id"] for row in asked.samples("diner_mini_components")}
    assert earlier == {sample["doc"]["id"] for sample in samples}
    for sample in samples:
        text = sample["arguments"]["gen_args_0"]["arg_0"]
        for word in words(sample["doc"]["answer"]):
            assert word in text.partition("” ")[2]
        assert text.endswith("。这个菜谱的菜名是什么？")
    metadata = done.results()["configs"]["diner_mini_cp"]["metadata"]
    assert len(metadata["not_scorable"]["no_component_answers"]) == 14
    assert len(metadata["signature"]["components"]) == 16
    assert str(tmp_path) not in json.dumps(metadata["signature"])


def test_own_files_of_the_published_format(lm_eval: Callable[..., Any], tmp_path: Path) -> None:
    folder = diner_own.write(tmp_path / "built")
    diner_own.write(folder, "random")
    tasks = ["diner_name_tmcd", "diner_name_random", "diner_components", "diner_icl"]
    done = lm_eval("--tasks", ",".join(tasks), "--model", "dummy", "--metadata",
                   json.dumps({"diner_dir": str(folder)}))  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    for name, documents in zip(tasks, (5, 5, 5, 4), strict=True):
        assert len(done.samples(name)) == documents, name
