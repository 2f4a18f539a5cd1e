"""The DiNeR tasks through plain lm_eval: a tiny model, and answers that become prompts."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.tasks import load_task

from lm_eval_ext.benchmarks.diner import mini
from lm_eval_ext.benchmarks.diner.prompt import ASKED_KINDS

# jieba's dictionary takes seconds to build; the kept cache has it.
pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("kept_cache")]


def test_earlier_answers_go_into_the_prompts_of_cp(
    lm_eval: Callable[..., Any], tmp_path: Path
) -> None:
    """All components are answered right; the names that were asked are made of them."""
    glossary = mini.glossary()

    def words(name: str, kind: str = "") -> list[str]:
        legal = glossary.as_dict()[kind] if kind else name
        return [word for word in glossary.words_in(name) or () if word in legal]

    task = load_task("diner_mini_components")
    task.build_all_requests(rank=0, world_size=1)
    rows = [
        {
            "arguments": [one.args[0]],
            "response": f"答案是：“{'、'.join(words(one.doc['answer'], ASKED_KINDS[one.idx]))}”。",
        }
        for one in task.instances
    ]
    file = tmp_path / "gold.jsonl"
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    asked = lm_eval("--tasks", "diner_mini_components", "--model", "recorded", "--model_args",
                    f"path={file}", "--limit", "10")  # fmt: skip
    assert asked.returncode == 0, asked.stderr[-3000:]
    scores = asked.results()["results"]["diner_mini_components"]
    assert {scores[key] for key in scores if key.startswith("micro_f1,")} == {1}
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
        assert all(word in text.partition("” ")[2] for word in words(sample["doc"]["answer"]))
        assert text.endswith("。这个菜谱的菜名是什么？")
    metadata = done.results()["configs"]["diner_mini_cp"]["metadata"]
    assert len(metadata["not_scorable"]["no_component_answers"]) == 14
    assert len(metadata["signature"]["components"]) == 16
    assert str(tmp_path) not in json.dumps(metadata["signature"])
