"""Before the model: tasks without data, misspelt tasks and keys."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lm_eval_ext.errors import DataError, LmEvalExtError, OptionError
from lm_eval_ext.harness.preflight import check, check_run, explain_tasks
from lm_eval_ext.runs.tasks import own_manager

FIVE = ["lieder_mini", "cogs_mini_id", "magnifico_desc", "lieder", "conceptual_mini"]


@pytest.fixture
def no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(tmp_path))


def test_tasks_without_data_are_named_together(no_data: None) -> None:
    with pytest.raises(DataError) as caught:
        check(own_manager(), FIVE)
    message = str(caught.value)
    assert "4 of 7 tasks cannot be loaded" in message
    for part in ("magnifico_desc", "lieder_base", "use magnifico_mini, lieder_mini"):
        assert part in message
    assert "data fetch" not in message, "LM_EVAL_EXT_DATA forbids it"


def test_a_source_that_cannot_be_fetched_is_tried_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LM_EVAL_EXT_DATA", raising=False)
    monkeypatch.setenv("LM_EVAL_EXT_CACHE", str(tmp_path))
    tried = []

    def nothing(*args: Any, **_: Any) -> None:
        tried.append(args)
        raise DataError("no network")

    monkeypatch.setattr("lm_eval_ext.data.require_all", nothing)
    with pytest.raises(DataError) as caught:
        check(own_manager(), ["magnifico_desc", "magnifico_desc_foreign"])
    assert "lm-eval-ext data fetch magnifico" in str(caught.value)
    assert "magnifico_mini" in str(caught.value)
    assert len(tried) == 1


def config(**changes: Any) -> Any:
    settings = {"model": "dummy", "model_args": {}, "metadata": {}, "num_fewshot": None}
    return SimpleNamespace(**{**settings, "tasks": ["lieder_mini"], **changes})


NO_DEMONSTRATIONS = "is asked with demonstrations: give --num_fewshot 1 or more, or leave it out"


@pytest.mark.parametrize(
    ("task", "changes", "message"),
    [
        ("conceptual_mini", {"num_fewshot": 0}, f"conceptual_mini {NO_DEMONSTRATIONS}"),
        ("cogs_mini_icl_gen", {"num_fewshot": 0}, f"cogs_mini_icl_gen {NO_DEMONSTRATIONS}"),
        ("diner_mini_icl", {"num_fewshot": 0}, f"diner_mini_icl {NO_DEMONSTRATIONS}"),
        ("diner_name_random", {}, "the authors' random split is not published"),
        ("magnifico_own_desc", {}, "magnifico_own needs your own files"),
    ],
)
def test_what_cannot_be_asked_so_is_refused(
    task: str, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(LmEvalExtError) as caught:
        check_run(own_manager(), config(tasks=[task], **changes))
    assert str(caught.value).startswith(message)


def test_the_models_arguments_are_not_taken_for_metadata() -> None:
    arguments = {"seed": 3, "experiment": "x", "max_length": 7}
    check_run(own_manager(), config(model_args=arguments, metadata=dict(arguments)))
    with pytest.raises(OptionError, match="nearest: lieder_experiment"):
        check_run(own_manager(), config(metadata={"experiment": "x"}))


@pytest.mark.parametrize("name", ["magnifico_dsc", "lieder_min", "cog_mini_id", "dinner_icl"])
def test_a_misspelt_task_of_ours_gets_similar_names(name: str) -> None:
    with pytest.raises(OptionError, match=f"no task '{name}'; did you mean "):
        explain_tasks(ValueError(f"Tasks not found: {name}"))


@pytest.mark.parametrize("text", ["Tasks not found: helaswag, mmlu_x", "another error: lieder_min"])
def test_what_is_not_ours_keeps_lm_evals_error(text: str) -> None:
    explain_tasks(ValueError(text))
