"""The recorded responses of real models that ship with the demonstration are still answers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.commands import Command

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "demo"

FIGURES = {
    ("qwen2.5-coder-0.5b-bare", "lieder_mini", "direct,none"): 0.6528,
    ("qwen2.5-coder-0.5b-bare", "discourse_entities_mini", "accuracy,none"): 0.5625,
    ("qwen2.5-coder-0.5b-bare", "magnifico_mini", "sql_execution_accuracy/base,query"): 0.2396,
    ("qwen2.5-coder-0.5b-bare", "magnifico_mini", "sql_execution_accuracy/novel,query"): 0.1181,
    ("qwen2.5-coder-1.5b-bare", "magnifico_mini", "sql_execution_accuracy/base,query"): 0.5208,
    ("qwen2.5-coder-1.5b-bare", "magnifico_mini", "sql_execution_accuracy/novel,query"): 0.3785,
}
"""Metrics of the recorded responses, as today's readers and suites score them."""


def responses() -> Iterator[Any]:
    """Yield each model file with a task that it has responses to."""
    for folder in sorted((EXAMPLE / "responses").iterdir()):
        for file in sorted(folder.glob("*.jsonl")):
            yield pytest.param(folder.name, file.stem, id=f"{folder.name}, {file.stem}")


@pytest.mark.parametrize(("model", "task"), list(responses()))
def test_every_recorded_response_is_scored(model: str, task: str, lm_eval: Command) -> None:
    """A recorded model is evaluated on each task, and has the figures of the run it is from."""
    settings = yaml.safe_load((EXAMPLE / f"{model}.yaml").read_text(encoding="utf-8"))
    arguments = {**settings["model_args"], "path": str(ROOT / settings["model_args"]["path"])}
    chat = ["--apply_chat_template"] if settings.get("apply_chat_template") else []
    words = ",".join(f"{key}={value}" for key, value in arguments.items())
    done = lm_eval("--tasks", task, "--model", "recorded", "--model_args", words, *chat)
    assert done.returncode == 0, done.stderr[-2000:]
    results = done.results()
    file = EXAMPLE / "responses" / model / f"{task}.jsonl"
    documents = {line.partition("}")[0] for line in file.read_text(encoding="utf-8").splitlines()}
    assert results["n-samples"][task]["effective"] == len(documents)
    for (of_model, of_task, metric), figure in FIGURES.items():
        if (of_model, of_task) == (model, task):
            assert results["results"][task][metric] == pytest.approx(figure, abs=1e-4)
