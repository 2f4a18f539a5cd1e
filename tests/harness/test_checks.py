"""Before the model: misspelt tasks and keys, tasks without data, options that are not legal."""

import re
from collections.abc import Mapping
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
from lm_eval_ext.harness.loading import Loader
from lm_eval_ext.harness.preflight import check, check_run, explain_tasks
from lm_eval_ext.runs.tasks import our_task_manager, select

ROOT = Path(__file__).parents[2]
LOADERS = (cogs.dataset, cogs.pairs, in_context.dataset, conceptual.dataset, diner.dataset,
           lieder.documents, lieder.drawn, magnifico.dataset, slog.dataset)  # fmt: skip
LEGAL_KEYS = [(load, key) for load in LOADERS for key in load.fields if key != "fresh"]

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
def test_a_misspelt_key_of_a_benchmark_is_refused(load: Loader[Any], key: str) -> None:
    with pytest.raises(OptionError, match=f"unknown metadata key {key}.*keys of the chosen"):
        load.options({key: 1})


def test_keys_of_lm_eval_and_of_other_tasks_pass() -> None:
    keys = {*FOREIGN_KEYS, *keys_of_lm_eval()}
    assert {"trust_remote_code", "max_seq_lengths"} <= keys
    assert len(keys) > 120
    for load in LOADERS:
        assert load.options(dict.fromkeys(keys, 1)) == load.options({})


@given(st.sampled_from(LEGAL_KEYS), st.integers(0, 40), st.sampled_from(["drop", "swap", "double"]))
def test_a_key_with_a_slip_of_the_finger_is_refused(
    legal_key: tuple[Loader[Any], str], number: int, slip: str
) -> None:
    load, key = legal_key
    position = number % (len(key) - 1)
    if slip == "drop":
        misspelt = key[:position] + key[position + 1 :]
    elif slip == "swap":
        misspelt = key[:position] + key[position + 1] + key[position] + key[position + 2 :]
    else:
        misspelt = key[: position + 1] + key[position:]
    if misspelt not in (key, "slog_from"):
        with pytest.raises(OptionError, match=rf"{misspelt}; did you mean [^?]*{key}"):
            load.options({misspelt: 1})


FOREIGN_TASK = {"task": "stock", "dataset_path": "x"}


@pytest.mark.parametrize(
    ("tasks", "metadata"),
    [
        pytest.param(
            ["cogs_mini_fresh_gen", "diner_mini_name"],
            {"fresh": 7},
            id="a seed that one of two tasks knows",
        ),
        pytest.param(["lieder_mini"], {"cogs_seed": 7}, id="a key of another benchmark"),
        pytest.param(
            ["lieder_mini", FOREIGN_TASK],
            {"cogs_seed": 7},
            id="a key of another benchmark beside a foreign task",
        ),
        # In context COGS asks without prefix and separator; the other tasks take both.
        pytest.param(
            ["cogs_mini_id", "cogs_mini_icl_gen"],
            {"cogs_prefix": "Translate: "},
            id="a prefix that one of two tasks takes",
        ),
    ],
)
def test_keys_that_a_task_of_ours_knows_are_legal(
    tasks: list[str | dict[str, str]], metadata: dict[str, object]
) -> None:
    check(our_task_manager([], metadata), tasks, metadata_keys=metadata)


@pytest.mark.parametrize(
    ("tasks", "metadata", "error"),
    [
        pytest.param(
            ["diner_mini_name"],
            {"fresh": 7},
            "key fresh; keys of the chosen tasks are: diner_corp",
            id="a seed for a task without a draw",
        ),
        pytest.param(
            ["lieder_fresh_base", "lieder_mini"],
            {"fresh": 7},
            "those of lieder_mini are fixed",
            id="a seed for fixed documents",
        ),
        pytest.param(
            ["cogs_mini_fresh_gen"],
            {"fresh": 7, "cogs_seed": 3},
            "fresh and cogs_seed are both given; fresh is the seed of all benchmarks",
            id="two seeds",
        ),
        pytest.param(
            ["cogs_mini_fresh_gen"],
            {"fresh": -1},
            "fresh is -1; use a whole number",
            id="a negative seed",
        ),
        pytest.param(
            ["lieder_mini"],
            {"lieder_experiment": "bse"},
            "lieder_experiment: Input should be",
            id="a misspelt value",
        ),
        pytest.param(
            ["magnifico_own_desc"], {}, "magnifico_own needs your own files", id="no files"
        ),
        pytest.param(
            ["lieder_mini", FOREIGN_TASK],
            {"lieder_sed": 7},
            "unknown metadata key lieder_sed",
            id="a misspelt key beside a foreign task",
        ),
        pytest.param(
            ["lieder_mini"],
            {"experiment": "x"},
            "experiment; did you mean lieder_experiment",
            id="a key without its prefix",
        ),
        pytest.param(
            ["cogs_mini_icl_gen"],
            {"cogs_separator": " =>"},
            "unknown metadata key cogs_separator",
            id="a separator in context",
        ),
    ],
)
def test_illegal_keys_and_values_are_named(
    tasks: list[str | dict[str, str]], metadata: dict[str, object], error: str
) -> None:
    with pytest.raises(OptionError, match=error):
        check(our_task_manager([], metadata), tasks, metadata_keys=metadata)


LIKE_METADATA: dict[str, object] = {"seed": 3, "experiment": "x"}
"""Arguments of a model that might be misspelt metadata."""


def run_config(model_args: Mapping[str, object]) -> SimpleNamespace:
    """Return lm-eval's configuration of a run of LIEDER with metadata that look misspelt."""
    return SimpleNamespace(
        model="hf", tasks=["lieder_mini"], model_args=model_args, metadata=LIKE_METADATA
    )


def test_the_models_arguments_are_not_taken_for_metadata() -> None:
    """simple_evaluate merges model arguments into metadata: `seed` may be the model's there."""
    check_run(our_task_manager(), run_config(LIKE_METADATA))
    assert load_task("lieder_mini", **LIKE_METADATA)


def test_misspelt_metadata_are_refused_by_lm_eval_and_by_run() -> None:
    with pytest.raises(OptionError, match="did you mean lieder_experiment"):
        check_run(our_task_manager(), run_config({}))
    with pytest.raises(OptionError, match="did you mean lieder_experiment"):
        select("lieder_mini").check({"experiment": "base"}, ["experiment"])


@pytest.mark.parametrize("load", LOADERS, ids=lambda load: load.prefix)
def test_every_key_is_documented(load: Loader[Any]) -> None:
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
    metadata: dict[str, object], seed: str, fresh: str | None
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


UNKNOWN_TASKS = ValueError("Tasks not found: helaswag, mmlu_x")


def test_unknown_tasks_of_others_are_left_to_lm_eval() -> None:
    explain_tasks(UNKNOWN_TASKS, str(ROOT / "examples" / "plurals"))


def test_a_task_file_that_is_no_yaml_is_named(tmp_path: Path) -> None:
    """lm-eval passes over such a file."""
    (tmp_path / "mine.yaml").write_text("task: mine\n  class: x\n")
    with pytest.raises(DataError, match="not valid YAML"):
        explain_tasks(UNKNOWN_TASKS, str(tmp_path))
