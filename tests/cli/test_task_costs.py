"""The list of tasks says which models can answer a task, and roughly how long that takes."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from lm_eval_ext.cards import our_tasks
from lm_eval_ext.cli.app import app
from lm_eval_ext.cli.task_list import (
    GPU_FACTOR,
    LOGPROBS_PER_S,
    NEW_TOKENS_PER_S,
    WIDTH,
    cost,
    duration,
    matching,
)
from lm_eval_ext.task_settings import task_settings


def listing(*words: str) -> str:
    """Return the output of ``lm-eval-ext tasks``."""
    result = CliRunner().invoke(app, ["tasks", *words])
    assert result.exit_code == 0, result.exception
    return result.output


def row_of(task: str) -> Any:
    """Return the JSON of one task."""
    (row,) = json.loads(listing(task, "--json"))
    return row


@pytest.mark.parametrize(
    ("benchmark", "kind"),
    [
        ("lieder", "models: those that return log-probabilities of given texts"),
        ("discourse_entities", "models: those that return log-probabilities of given texts"),
        ("magnifico", "models: any that write answers"),
        ("cogs", "models: any that write answers"),
        ("conceptual", "models: any that write answers"),
        ("diner", "models: any that write answers"),
        ("slog", "models: any that write answers"),
    ],
)
def test_the_list_of_a_benchmark_says_which_models_can_answer(benchmark: str, kind: str) -> None:
    output = " ".join(listing(benchmark).split())
    assert kind in output
    assert ("not APIs for chat only" in output) == ("log-probabilities of given" in kind)


def test_every_task_has_a_line_about_its_cost() -> None:
    output = listing("*")
    for row in matching("*"):
        assert f"    {cost(row)}\n" in output, row.task
        assert len(f"    {cost(row)}") <= WIDTH, row.task


@pytest.mark.parametrize("task", our_tasks())
def test_what_a_task_costs_follows_from_its_settings_and_size(task: str) -> None:
    (row,) = [row for row in matching(task) if row.task == task]
    settings = task_settings(task)
    assert row.output_type == settings.output_type
    assert row.max_new_tokens == settings.max_new_tokens
    if row.requests == 0:
        assert row.cpu_minutes is None
    elif settings.output_type == "loglikelihood":
        assert row.cpu_minutes == pytest.approx(row.requests / LOGPROBS_PER_S / 60)
    else:
        tokens = row.requests * settings.max_new_tokens
        assert row.cpu_minutes == pytest.approx(tokens / NEW_TOKENS_PER_S / 60)


def test_json_has_the_cost() -> None:
    row = row_of("magnifico_desc")
    assert row["output_type"] == "generate_until"
    assert row["max_new_tokens"] == 128
    assert row["cpu_minutes"] == pytest.approx(4156 * 128 / 50 / 60)


def test_only_the_overview_lacks_models_and_times() -> None:
    assert "models: " not in listing()
    assert "Times are rough" not in listing()
    assert f"GPU: an estimate, {GPU_FACTOR} times" in " ".join(listing("lieder").split())


@pytest.mark.parametrize(
    ("minutes", "words"),
    [
        (0.4, "under 1 minute"),
        (1.2, "1 minute"),
        (119, "119 minutes"),
        (150, "2 hours"),
        (3000, "2 days"),
    ],
)
def test_a_time_has_one_rough_unit(minutes: float, words: str) -> None:
    assert duration(minutes) == words
