"""Kept results of real models have their figures, and no texts or paths."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import lm_eval_ext
from lm_eval_ext.cards import cards
from lm_eval_ext.harness.signature import result_signature

ROOT = Path(__file__).parents[1]
KEPT_RESULTS = ROOT / "docs" / "real_models"

sys.path.append(str(ROOT / "docs"))
import kept_results  # noqa: E402

MODEL_NAME = "a-model"

VALUE = re.compile(r"\.\d{3}\b|\d+\.\d(?= %)")
"""A share or a percentage, as the page and the cards write it."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of a model that answers COGS's mini task, as lm-eval writes them."""
    folder = tmp_path_factory.mktemp("results")
    documents = lm_eval_ext.load_documents("cogs_mini_gen")
    answers = [str(document["form"]) for document in documents]
    answers[::3] = ["no form"] * len(answers[::3])
    lm_eval_ext.score("cogs_mini_gen", documents, answers, output=str(folder), model=MODEL_NAME)
    return folder


@pytest.fixture(scope="module")
def content(results: Path) -> dict[str, Any]:
    """The results file."""
    (file,) = results.rglob("results_*.json")
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return content


def test_kept_results_have_the_values_and_intervals_of_the_whole_ones(
    results: Path, content: dict[str, Any], tmp_path: Path
) -> None:
    kept = kept_results.kept(content, MODEL_NAME)
    file = tmp_path / "results_2026-01-01T00-00-00.000000.json"
    file.write_text(json.dumps(kept), encoding="utf-8")
    of_kept = lm_eval_ext.load_results([str(file)]).to_dataframe()
    of_whole = lm_eval_ext.load_results([str(results)]).to_dataframe()
    figures = ["task", "metric", "value", "stderr", "low", "high", "signature", "scored", "total"]
    pd.testing.assert_frame_equal(of_kept[figures], of_whole[figures])


def test_kept_results_have_no_prompts_code_or_facts_of_the_machine(content: dict[str, Any]) -> None:
    kept = kept_results.kept(content, MODEL_NAME)
    assert "pretty_env_info" not in kept
    for config in kept["configs"].values():
        assert not {"doc_to_text", "description", "fewshot_config", "custom_dataset"} & set(config)


def test_kept_results_have_the_settings_by_which_runs_are_compared(content: dict[str, Any]) -> None:
    whole = {
        **content,
        "n-shot": dict.fromkeys(content["configs"], 3),
        "config": {**content["config"], "fewshot_seed": 1234},
        "fewshot_as_multiturn": True,
        "chat_template": "{{ messages }}",
        "chat_template_sha": "0123456789abcdef",
        "system_instruction": "Answer briefly.",
        "system_instruction_sha": "fedcba9876543210",
    }
    kept = kept_results.kept(whole, MODEL_NAME)
    for task in whole["configs"]:
        assert result_signature(kept, task) == result_signature(whole, task)


def test_kept_files_with_demonstrations_have_their_seed() -> None:
    files = sorted(KEPT_RESULTS.rglob("results_*.json"))
    assert files
    for file in files:
        kept = json.loads(file.read_text(encoding="utf-8"))
        for task in kept["configs"]:
            assert "fewshot-seed:None" not in result_signature(kept, task), f"{file.name}: {task}"


def test_the_models_of_the_page_are_those_of_the_kept_results() -> None:
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    models = set(lm_eval_ext.load_results([str(KEPT_RESULTS)]).to_dataframe()["model"])
    missing = [model for model in models if f"| {model} |" not in page]
    assert models
    assert not missing


def test_the_values_that_the_page_quotes_are_in_its_tables_or_published() -> None:
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    quoted = re.search(r"^## What one sees$(.*?)^## ", page, re.DOTALL | re.MULTILINE)
    assert quoted
    tables = "\n".join(line for line in page.splitlines() if line.startswith("|"))
    published = set()
    for reference in cards()["discourse_entities"].references:
        published |= {f"{value:.3f}".removeprefix("0") for value in reference.figures.values()}
    known = published | set(VALUE.findall(tables))
    values = set(VALUE.findall(quoted[1]))
    assert values
    assert not values - known


def test_kept_files_name_no_path_of_a_machine() -> None:
    files = [*KEPT_RESULTS.rglob("*.json"), *KEPT_RESULTS.rglob("*.yaml")]
    assert files
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert not re.findall(r"/(?:home|root|work|tmp|Users)/\S*", text), file.name
