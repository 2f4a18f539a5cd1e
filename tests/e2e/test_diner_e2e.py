"""The DiNeR tasks through plain lm_eval: a tiny model, planted mistakes."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import legal
from support.asking import of_file
from support.tasks import load_task
from support.tiny import few_tokens

from lm_eval_ext.benchmarks.diner import mini
from lm_eval_ext.benchmarks.diner.prompt import ASKED_KINDS
from lm_eval_ext.harness.names import STDERR

# jieba's dictionary takes seconds to build; the kept cache has it.
pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("kept_cache")]

KINDS = ("name", "name_random", "cp", "icl", "icl_oracle", "components")
GLOSSARY = mini.glossary()

Answer = Callable[[dict[str, Any], int], str]


def requests(name: str) -> list[Any]:
    task = load_task(name)
    task.build_all_requests(rank=0, world_size=1)
    return list(task.instances)


def record(file: Path, answers: dict[str, Answer]) -> str:
    """Writes recorded answers to the requests of tasks; returns the model's arguments."""
    rows = [
        {"arguments": [request.args[0]], "response": answer(request.doc, request.idx)}
        for name, answer in answers.items()
        for request in requests(name)
    ]
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return f"path={file},conflict=first"


def gold_components(doc: dict[str, Any], question: int) -> str:
    """Alternately a list and a sentence, in traditional characters or not."""
    of_kind = GLOSSARY.as_dict()[ASKED_KINDS[question]]
    found = [word for word in GLOSSARY.words_in(doc["answer"]) or () if word in of_kind]
    if not found:
        return ("", "无", "没有。")[len(doc["answer"]) % 3]
    listed = "、".join(found)
    return listed if len(doc["instruction"]) % 2 else f"答案是：“{listed}”。"


def figures(done: Any, name: str) -> dict[str, Any]:
    """The metrics of a task, without their filter, and without errors and counts."""
    assert done.returncode == 0, done.stderr[-3000:]
    found = done.results()["results"][name].items()
    metrics = {key.partition(",")[0]: value for key, value in found if "," in key}
    return {key: value for key, value in metrics.items() if not key.endswith(STDERR)}


def test_all_of_mini_runs_with_a_tiny_model(
    lm_eval: Callable[..., Any], cli: Callable[..., Any], tiny_models: Path
) -> None:
    done = lm_eval("--tasks", "diner_mini", "--model", "hf", "--device", "cpu",
                   "--model_args", f"pretrained={tiny_models / 'gpt2'}", "--limit", "3",
                   "--gen_kwargs", few_tokens("gpt2"))  # fmt: skip
    for name in KINDS:
        task = f"diner_mini_{name}"
        assert set(figures(done, task)) >= {"micro_f1", "recipe_mean_f1", "recipe_exact_match"}
        assert len(done.samples(task)) == 3
        assert done.results()["n-samples"][task] == {"original": 24, "effective": 3}
    assert "jieba" not in done.stderr
    shown = cli("show", str(done.output), "--tasks", "diner_mini_name", "--signatures").stdout
    assert "micro_f1" in shown
    assert "|glossary:" in shown


def test_planted_mistakes_score_what_arithmetic_says(
    lm_eval: Callable[..., Any], tmp_path: Path
) -> None:
    """Of every dish with an odd number of characters, the first word alone is answered.

    Of components the foods are right, action and flavour always the same.
    """

    def planted(doc: dict[str, Any], _: int) -> str:
        name: str = doc["answer"]
        return (GLOSSARY.words_in(name) or ())[0] if len(name) % 2 else name

    def components(doc: dict[str, Any], question: int) -> str:
        return ("炒", "麻辣", gold_components(doc, question))[question]

    answers = {"diner_mini_name": planted, "diner_mini_components": components}
    model = record(tmp_path / "planted.jsonl", answers)
    done = lm_eval("--tasks", ",".join(answers), "--model", "recorded", "--model_args", model)
    found = figures(done, "diner_mini_name")
    golds = [request.doc["answer"] for request in requests("diner_mini_name")]
    parsed = [GLOSSARY.parse(gold) or () for gold in golds]
    sizes = [len(set(one)) for one in parsed]
    right = [1 if len(gold) % 2 else size for gold, size in zip(golds, sizes, strict=True)]
    odd = sum(len(gold) % 2 for gold in golds)
    assert 0 < odd < len(golds)
    assert found["micro_f1"] == pytest.approx(2 * sum(right) / (sum(right) + sum(sizes)))
    each = [2 * tp / (tp + size) for tp, size in zip(right, sizes, strict=True)]
    assert found["recipe_mean_f1"] == pytest.approx(sum(each) / len(each)) != found["micro_f1"]
    assert found["recipe_exact_match"] == pytest.approx(1 - odd / len(golds))
    assert legal.check_results(done.results()) > 10
    noted = done.results()["configs"]["diner_mini_name"]["metadata"]["intervals"]
    assert (noted["micro_f1,name"]["clusters"], noted["micro_f1,name"]["method"]) == (8, "wilson")

    found = figures(done, "diner_mini_components")
    fried = sum("炒" in {component.name for component in one} for one in parsed)
    cooked = sum("action" in {component.kind for component in one} for one in parsed)
    exact = {
        kind: of_file(done.output, "diner_mini_components", "recipe_exact_match", kind=kind)
        for kind in ("food", "action")
    }
    assert exact == {"food": 1.0, "action": pytest.approx(fried / len(golds))}
    assert found["micro_f1/action"] == pytest.approx(2 * fried / (len(golds) + cooked))


def test_earlier_answers_go_into_the_prompts_of_cp(
    lm_eval: Callable[..., Any], tmp_path: Path
) -> None:
    model = record(tmp_path / "gold.jsonl", {"diner_mini_components": gold_components})
    asked = lm_eval("--tasks", "diner_mini_components", "--model", "recorded", "--model_args",
                    model, "--limit", "10")  # fmt: skip
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
        words = GLOSSARY.words_in(sample["doc"]["answer"]) or ()
        assert all(word in text.partition("” ")[2] for word in words)
        assert text.endswith("。这个菜谱的菜名是什么？")
    metadata = done.results()["configs"]["diner_mini_cp"]["metadata"]
    assert len(metadata["not_scorable"]["no_component_answers"]) == 14
    assert len(metadata["signature"]["components"]) == 16
    assert str(tmp_path) not in json.dumps(metadata["signature"])
