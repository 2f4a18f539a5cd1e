"""Refusals say in words what differs, and name the option that compares all the same."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.results_files import answered_rows, write_run

from lm_eval_ext.compare.command import run as compare
from lm_eval_ext.errors import DataError
from lm_eval_ext.results.query import ScoreQuery

TASK = "cogs_mini_gen"


def write(folder: Path, name: str, changes: dict[str, Any], prompt: str = "") -> None:
    """Write results of a model; ``changes`` are keys of the results file, by path with dots."""
    samples = [{**row, "prompt": row["prompt"] + prompt} for row in answered_rows(40, 30)]
    file = write_run(folder / name, name, TASK, samples)
    content = json.loads(file.read_text())
    for path, value in changes.items():
        *levels, last = path.split(".")
        target = content
        for level in levels:
            target = target[level]
        target[last] = value
    file.write_text(json.dumps(content))


GENERATION = f"configs.{TASK}.generation_kwargs"
VERSION = f"configs.{TASK}.metadata.signature.version"


@pytest.mark.parametrize(
    ("changes_of_a", "changes_of_b", "prompt", "words"),
    [
        pytest.param(
            {GENERATION: {"max_gen_toks": 256, "until": ["x"]}},
            {GENERATION: {"max_gen_toks": 128, "until": ["x"]}},
            "",
            "a: max_gen_toks 256; b: max_gen_toks 128.; to compare models .* --across-settings$",
            id="length of answers",
        ),
        pytest.param(
            {GENERATION: {"until": ["a", "b"]}},
            {GENERATION: {"until": []}},
            "",
            "a: until 'a', 'b'; b: until none.; to compare models .* --across-settings$",
            id="stop strings",
        ),
        pytest.param(
            {"chat_template": "t", "chat_template_sha": "abc"},
            {},
            "!",
            "prompts .*.a: chat template; b: no chat template.; .* --across-settings$",
            id="chat template",
        ),
        pytest.param(
            {"system_instruction_sha": "abc"},
            {},
            "",
            "a: system prompt; b: no system prompt.; to compare models .* --across-settings$",
            id="system prompt",
        ),
        pytest.param(
            {VERSION: "1.0"},
            {VERSION: "2.0"},
            "",
            "a: version of the task 1; b: version of the task 2.$",
            id="version",
        ),
        pytest.param(
            {f"n-shot.{TASK}": 3, "fewshot_as_multiturn": True, "config.fewshot_seed": 1},
            {f"n-shot.{TASK}": 0},
            "",
            "a: demonstrations 3, .*; b: demonstrations 0",
            id="demonstrations",
        ),
    ],
)
def test_a_refusal_names_the_setting_with_both_values(
    tmp_path: Path,
    changes_of_a: dict[str, Any],
    changes_of_b: dict[str, Any],
    prompt: str,
    words: str,
) -> None:
    write(tmp_path, "a", {"n-shot": {}, **changes_of_a}, prompt)
    write(tmp_path, "b", {"n-shot": {}, **changes_of_b})
    with pytest.raises(DataError, match=words) as caught:
        compare([tmp_path], ScoreQuery(), tasks=TASK)
    if "--across-settings" in words:
        text, refused = compare([tmp_path], ScoreQuery(), tasks=TASK, across_settings=True)
        assert "Exact match" in text
        assert not refused
    else:
        assert "--across-settings" not in str(caught.value)


def test_models_of_two_templates_are_named_together_beside_one_without(tmp_path: Path) -> None:
    """Each maker has a template of its own, so a digest would only part the models."""
    for name, template in (("a", ""), ("b", "one"), ("c", "two")):
        changes = {"chat_template": "t", "chat_template_sha": template} if template else {}
        write(tmp_path, name, {"n-shot": {}, **changes}, template)
    text, _ = compare([tmp_path], ScoreQuery(), tasks=TASK, across_settings=True)
    assert "(a: no chat template; b, c: chat template)" in " ".join(text.split())


def test_two_system_prompts_beside_a_model_without_one_are_told_apart(tmp_path: Path) -> None:
    for name, prompt in (("a", ""), ("b", "one"), ("c", "two")):
        changes = {"system_instruction_sha": prompt} if prompt else {}
        write(tmp_path, name, {"n-shot": {}, **changes}, prompt)
    text, _ = compare([tmp_path], ScoreQuery(), tasks=TASK, across_settings=True)
    shown = " ".join(text.split())
    assert "(a: no system prompt; b: system prompt one; c: system prompt two)" in shown
