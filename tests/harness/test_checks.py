"""Before the model: misspelt tasks and keys, tasks without data, options that are not legal."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lm_eval
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tasks import load_task

from lm_eval_ext.benchmarks.cogs import in_context
from lm_eval_ext.benchmarks.cogs import load as cogs
from lm_eval_ext.benchmarks.conceptual import load as conceptual
from lm_eval_ext.benchmarks.diner import load as diner
from lm_eval_ext.benchmarks.lieder import load as lieder
from lm_eval_ext.benchmarks.magnifico import load as magnifico
from lm_eval_ext.benchmarks.slog import load as slog
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness.preflight import check, check_run, explain_tasks
from lm_eval_ext.runs.tasks import our_task_manager, select

ROOT = Path(__file__).parents[2]
LOADERS = (cogs.dataset, cogs.pairs, in_context.dataset, conceptual.dataset, diner.dataset,
           lieder.documents, lieder.drawn, magnifico.dataset, slog.dataset)  # fmt: skip
LEGAL = [(load, key) for load in LOADERS for key in load.fields if key != "fresh"]

MISSPELT = [
    (cogs.dataset, "cgos_seed"), (conceptual.dataset, "concept_template"),
    (diner.dataset, "diner_menu"), (magnifico.dataset, "magnifico_data"),
]  # fmt: skip
FOREIGN_KEYS = [
    "max_length", "max_seq_lengths", "tokenizer", "pretrained", "version", "config_source",
    "num_fewshot", "note", "run_name", "description", "revision", "contamination_study",
    "conceptual", "cogs", "random_seed", "fewshot_seed", "data_dir", "prompt_template", "seed",
    "model_name", "dinner", "", "_", "_seed_", "dir_name", "lines_file", "concat_prompt",
]  # fmt: skip


MODEL_ARGUMENT = re.compile(r"^        (\w+)(?:: [^=\n]+)?(?: = .+)?,$", re.MULTILINE)
METADATA_KEY = re.compile(r"""kwargs\.(?:get|pop)\(\s*["'](\w+)""")


def keys_of_lm_eval() -> set[str]:
    """Return the arguments of lm-eval's models, and every key its tasks read from metadata."""
    folder = Path(str(lm_eval.__file__)).parent
    keys: set[str] = set()
    for file in (folder / "models").glob("*.py"):
        keys.update(MODEL_ARGUMENT.findall(file.read_text(encoding="utf-8")))
    for file in (folder / "tasks/ruler").glob("*.py"):
        keys.update(METADATA_KEY.findall(file.read_text(encoding="utf-8")))
    return keys


@pytest.mark.parametrize(("load", "key"), MISSPELT, ids=[key for _, key in MISSPELT])
def test_a_misspelt_key_of_a_benchmark_is_refused(load: Any, key: str) -> None:
    with pytest.raises(OptionError, match=f"unknown metadata key {key}.*keys of the chosen"):
        load.options({key: 1})


def test_keys_of_lm_eval_and_of_other_tasks_pass() -> None:
    keys = {*FOREIGN_KEYS, *keys_of_lm_eval()}
    assert {"trust_remote_code", "max_seq_lengths"} <= keys
    assert len(keys) > 120
    for load in LOADERS:
        assert load.options(dict.fromkeys(keys, 1)) == load.options({})


@given(st.sampled_from(LEGAL), st.integers(0, 40), st.sampled_from(["drop", "swap", "double"]))
def test_a_key_with_one_slip_of_the_finger_is_refused(legal: Any, at: int, slip: str) -> None:
    load, key = legal
    at %= len(key) - 1
    if slip == "drop":
        misspelt = key[:at] + key[at + 1 :]
    elif slip == "swap":
        misspelt = key[:at] + key[at + 1] + key[at] + key[at + 2 :]
    else:
        misspelt = key[: at + 1] + key[at:]
    if misspelt not in (key, "slog_from"):
        with pytest.raises(OptionError, match=rf"{misspelt}; did you mean [^?]*{key}"):
            load.options({misspelt: 1})


BOTH = "fresh and cogs_seed are both given; fresh is the seed of all benchmarks"
FOREIGN_TASK = {"task": "stock", "dataset_path": "x"}


@pytest.mark.parametrize(
    ("tasks", "metadata", "error"),
    [
        (["diner_mini_name"], {"fresh": 7}, "key fresh; keys of the chosen tasks are: diner_corp"),
        (["cogs_mini_fresh_gen", "diner_mini_name"], {"fresh": 7}, ""),
        (["lieder_fresh_base", "lieder_mini"], {"fresh": 7}, "those of lieder_mini are fixed"),
        (["cogs_mini_fresh_gen"], {"fresh": 7, "cogs_seed": 3}, BOTH),
        (["cogs_mini_fresh_gen"], {"fresh": -1}, "fresh is -1; use a whole number"),
        (["lieder_mini"], {"lieder_experiment": "bse"}, "lieder_experiment: Input should be"),
        (["lieder_mini"], {"cogs_seed": 7}, ""),
        (["lieder_mini", FOREIGN_TASK], {"cogs_seed": 7}, ""),
        (["magnifico_own_desc"], {}, "magnifico_own needs your own files"),
        (["lieder_mini", FOREIGN_TASK], {"lieder_sed": 7}, "unknown metadata key lieder_sed"),
        (["lieder_mini"], {"experiment": "x"}, "experiment; did you mean lieder_experiment"),
        # In context COGS asks without prefix and separator; the other tasks take both.
        (["cogs_mini_icl_gen"], {"cogs_separator": " =>"}, "unknown metadata key cogs_separator"),
        (["cogs_mini_id", "cogs_mini_icl_gen"], {"cogs_prefix": "Translate: "}, ""),
    ],
)
def test_the_keys_of_a_run(tasks: list[Any], metadata: dict[str, Any], error: str) -> None:
    manager = our_task_manager([], metadata)
    if error:
        with pytest.raises(OptionError, match=error):
            check(manager, tasks, metadata_keys=metadata)
    else:
        check(manager, tasks, metadata_keys=metadata)


def test_the_models_arguments_are_not_taken_for_metadata() -> None:
    """simple_evaluate merges model arguments into metadata: `seed` may be the model's there."""
    arguments = {"seed": 3, "experiment": "x"}
    config = SimpleNamespace(
        model="hf", tasks=["lieder_mini"], model_args=arguments, metadata=arguments
    )
    check_run(our_task_manager(), config)
    with pytest.raises(OptionError, match="did you mean lieder_experiment"):
        check_run(our_task_manager(), SimpleNamespace(**{**vars(config), "model_args": {}}))
    with pytest.raises(OptionError, match="did you mean lieder_experiment"):
        select("lieder_mini").check({"experiment": "base"}, ["experiment"])
    assert load_task("lieder_mini", **arguments)


@pytest.mark.parametrize("load", LOADERS, ids=lambda load: load.prefix)
def test_every_key_is_documented(load: Any) -> None:
    page = (ROOT / f"docs/benchmarks/{load.prefix[:-1]}.md").read_text(encoding="utf-8")
    for key in load.fields:
        assert re.search(rf"\b{key}\b", page), key


@pytest.mark.parametrize(
    ("metadata", "seed", "fresh"),
    [
        pytest.param({}, "0", None, id="no seed"),
        pytest.param({"fresh": 7}, "none", "7", id="the seed of all benchmarks"),
    ],
)
def test_the_seed_of_all_benchmarks_is_signed_only_where_the_user_gives_it(
    metadata: dict[str, Any], seed: str, fresh: str | None
) -> None:
    task = load_task("cogs_mini_fresh_testlex", **metadata)
    signature = task.dump_config()["metadata"]["signature"]
    assert signature["seed"] == seed
    assert signature.get("fresh") == fresh


def test_groups_are_opened_and_the_tasks_without_data_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(tmp_path))
    with pytest.raises(DataError) as caught:
        check(our_task_manager(), ["cogs_mini_id", {"group": "mine", "task": ["lieder"]}])
    assert "lieder/base: " in str(caught.value)
    assert str(caught.value).endswith("; or use lieder_mini, which can do without")


@pytest.mark.parametrize("name", ["magnifico_dsc", "lieder_min", "cog_mini_id", "dinner_icl"])
def test_a_misspelt_task_of_ours_gets_similar_names(name: str) -> None:
    with pytest.raises(OptionError, match=f"no task '{name}'; did you mean "):
        explain_tasks(ValueError(f"Tasks not found: {name}"))


UNKNOWN = ValueError("Tasks not found: helaswag, mmlu_x")


def test_unknown_tasks_of_others_are_left_to_lm_eval() -> None:
    explain_tasks(UNKNOWN, str(ROOT / "examples" / "plurals"))


def test_a_task_file_that_is_no_yaml_is_named(tmp_path: Path) -> None:
    """lm-eval passes over such a file."""
    (tmp_path / "mine.yaml").write_text("task: mine\n  class: x\n")
    with pytest.raises(DataError, match="not valid YAML"):
        explain_tasks(UNKNOWN, str(tmp_path))
