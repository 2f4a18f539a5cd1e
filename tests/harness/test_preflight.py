"""Before the model: tasks without data, misspelt tasks, models and their arguments."""

import logging
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lm_eval._cli.harness import HarnessCLI

from lm_eval_ext import _autoload
from lm_eval_ext.errors import DataError, LmEvalExtError, OptionError
from lm_eval_ext.harness import model_arguments
from lm_eval_ext.harness.preflight import SKIP, check, check_run
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
    for part in ("magnifico_desc", "lieder_base", "use magnifico_mini, lieder_mini", SKIP):
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


def test_what_lacks_data_is_left_out_if_asked(
    no_data: None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        left = check(own_manager(), FIVE, skip=True)
    assert left == ["lieder_mini", "cogs_mini_id", "conceptual_mini"]
    assert "magnifico_desc, lieder_base, lieder_diff, lieder_two: left out" in caplog.text
    with pytest.raises(DataError, match="3 of 3 tasks"):
        check(own_manager(), ["lieder"], skip=True)


def config(**changes: Any) -> Any:
    settings = {"model": "dummy", "model_args": {}, "metadata": {}, "num_fewshot": None}
    return SimpleNamespace(**{**settings, "tasks": ["lieder_mini"], **changes})


def test_a_group_that_loses_a_task_becomes_the_others(
    no_data: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mixed.yaml").write_text("group: mixed\ntask: [lieder_mini, lieder_base]\n")
    monkeypatch.setenv(SKIP, "1")
    asked = config(tasks=["mixed"])
    check_run(own_manager([str(tmp_path)]), asked)
    assert asked.tasks == ["lieder_mini"]


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


def test_wrong_models_are_refused_and_right_ones_pass(tmp_path: Path) -> None:
    wrong = [
        ("recordd", {}, "no model type 'recordd'; similar: recorded"),
        ("hf", {"pretrained": str(tmp_path / "none")}, "no such folder"),
        ("hf-prefix", {"pretrained": "x/y", "peft": "./none"}, "peft=./none: no such folder"),
        ("vllm", {"pretrained": "../none"}, "no such folder"),
    ]
    right = [
        ("dummy", {}), ("hf", {"pretrained": "gpt2"}), ("hf", {"pretrained": "owner/model"}),
        ("hf", {"pretrained": str(tmp_path)}), ("hf", {"pretrained": "models/mine"}),
        ("local-completions", {"pretrained": "/on/the/server"}), (SimpleNamespace(), {}),
    ]  # fmt: skip
    for model, arguments, message in wrong:
        with pytest.raises(OptionError) as caught:
            model_arguments.check_names(model, arguments)
        assert message in str(caught.value)
    for kind, arguments in right:
        model_arguments.check_names(kind, arguments)


def test_misspelt_arguments_are_refused_and_what_goes_to_transformers_passes() -> None:
    misspelt = {
        "pretained": "pretrained", "pretrianed": "pretrained", "max_lenght": "max_length",
        "trust_remotecode": "trust_remote_code", "add_bos_tokens": "add_bos_token",
    }  # fmt: skip
    passes = [
        "pretrained", "dtype", "revision", "parallelize", "attn_implementation", "load_in_8bit",
        "load_in_4bit", "torch_dtype", "device_map", "low_cpu_mem_usage", "bnb_4bit_quant_type",
        "bnb_4bit_compute_dtype", "variant", "cache_dir", "token", "use_safetensors", "max_memory",
        "offload_state_dict", "quantization_config", "code_revision", "local_files_only",
        "force_download", "ignore_mismatched_sizes", "weights_only", "config", "state_dict",
        "tp_plan", "output_loading_info", "key_mapping", "enable_thinking", "use_kernels",
    ]  # fmt: skip
    caught = {}
    for key in misspelt:
        with pytest.raises(OptionError) as error:
            model_arguments.check_spelling("hf", {key: "x"})
        caught[key] = str(error.value).rpartition("nearest: ")[2]
    assert caught == misspelt
    for key in passes:
        model_arguments.check_spelling("hf", {key: "x"})


@pytest.mark.parametrize("name", ["magnifico_dsc", "lieder_min", "cog_mini_id", "dinner_icl"])
def test_a_misspelt_task_of_ours_gets_similar_names(name: str) -> None:
    with pytest.raises(OptionError, match=f"no task '{name}' .similar: "):
        model_arguments.explain_tasks(ValueError(f"Tasks not found: {name}"))


@pytest.mark.parametrize("text", ["Tasks not found: helaswag, mmlu_x", "another error: lieder_min"])
def test_what_is_not_ours_keeps_lm_evals_error(text: str) -> None:
    model_arguments.explain_tasks(ValueError(text))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--metadata", '{"a": 1'], '--metadata is no valid JSON: {"a": 1; write names'),
        (["--model_args", "{'a': 1}"], "--model_args is no valid JSON: {'a': 1}; write"),
        (["--metadata={a: 1}"], "an argument is no valid JSON: {a: 1}; write names"),
    ],
)
def test_broken_json_is_one_line(
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _autoload._guard_command_line(sys.modules[HarnessCLI.__module__])
    monkeypatch.setattr(sys, "argv", ["lm_eval", "--tasks", "lieder_mini", *arguments])
    with pytest.raises(SystemExit) as caught:
        HarnessCLI().parse_args()
    (line,) = capsys.readouterr().err.splitlines()
    assert caught.value.code == 1
    assert line.startswith("lm-eval-ext: error: ")
    assert message in line
