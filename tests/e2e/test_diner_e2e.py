"""The DiNeR tasks through plain lm_eval: a tiny model, and answers that become prompts."""

# ruff: noqa: RUF001 (Chinese punctuation is what is meant)

import json
from pathlib import Path

import pytest
from support import logged
from support.commands import Command
from support.made_answers import MadeAnswers

from lm_eval_ext.benchmarks.diner import mini

# jieba's dictionary takes seconds to build; the kept cache has it.
pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("kept_cache")]


def test_earlier_answers_go_into_the_prompts_of_cp(lm_eval: Command, tmp_path: Path) -> None:
    """Every question about components is answered with the name, of which each takes a part."""
    task, model = "diner_mini_components", MadeAnswers(right=1.0)
    answered = logged.evaluate(tmp_path / "asked", model, [task], limit=10)["samples"][task]
    (log,) = (tmp_path / "asked").rglob(f"samples_{task}_*.jsonl")
    done = lm_eval("--tasks", "diner_mini_cp", "--model", "dummy", "--metadata",
                   json.dumps({"diner_components_file": str(log)}))  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    samples, glossary = done.samples("diner_mini_cp"), mini.glossary()
    assert len(samples) == 10
    assert {sample["doc"]["id"] for sample in answered} == {
        sample["doc"]["id"] for sample in samples
    }
    for sample in samples:
        text = sample["arguments"]["gen_args_0"]["arg_0"]
        words = glossary.words_in(sample["doc"]["answer"])
        assert words
        assert all(word in text.partition("” ")[2] for word in words)
        assert text.endswith("。这个菜谱的菜名是什么？")
    metadata = done.results()["configs"]["diner_mini_cp"]["metadata"]
    assert len(metadata["not_scorable"]["no_component_answers"]) == 14
    assert len(metadata["signature"]["components"]) == 16
    assert str(tmp_path) not in json.dumps(metadata["signature"])
