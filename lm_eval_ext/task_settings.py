"""What the files of the tasks that ship tell lm-eval about answers and scores."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from lm_eval_ext.cards import TaskFileContent, card_of
from lm_eval_ext.reading import read_yaml
from lm_eval_ext.registry import BENCHMARKS


@dataclass(frozen=True)
class TaskSettings:
    """What the file of a task that ships tells lm-eval about its answers and scores.

    Attributes:
        output_type: The kind of request, by lm-eval's name.
        max_new_tokens: The most tokens that an answer has; 0 where nothing is generated.
        metrics: The task's metrics.
    """

    output_type: str
    max_new_tokens: int
    metrics: tuple[str, ...]


@cache
def task_settings(task: str) -> TaskSettings:
    """Return what the file of a task that ships says about its answers and scores.

    Raises:
        KeyError: No task that ships has the name.
    """
    card = card_of(task)
    if card is None:
        raise KeyError(task)
    content = _task_file(card.name)
    # A file of a single task has its keys at the top.
    keys = {**content, **content.get("tasks", {}).get(task, {})}
    metrics = []
    for metric in keys.get("metric_list", card.metrics):
        metrics.append(metric["metric"] if isinstance(metric, dict) else metric)
    max_new_tokens = 0
    if keys["output_type"] == "generate_until":
        max_new_tokens = keys["generation_kwargs"]["max_gen_toks"]
    return TaskSettings(keys["output_type"], max_new_tokens, tuple(metrics))


@cache
def _task_file(benchmark: str) -> TaskFileContent:
    """Return the content of a benchmark's task file."""
    return read_yaml(BENCHMARKS[benchmark].task_file, TypeAdapter(dict[str, Any]))
