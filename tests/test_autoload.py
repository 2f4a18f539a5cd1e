"""The start-up hook by itself: cheap, silent, idempotent, and without side effects."""

import importlib
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from lm_eval_ext import _autoload
from lm_eval_ext.cards import cards
from lm_eval_ext.cli.task_list import write_plain
from lm_eval_ext.task_folder import tasks_folder


def python(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run code in a new Python with further environment variables."""
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **env}, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip


def test_a_python_that_never_imports_lm_eval_is_left_alone() -> None:
    completed = python("import sys; print([m for m in sys.modules if m.startswith('lm_eval.')])")
    assert completed.stdout.strip() == "[]"
    assert completed.stderr == ""


def test_the_hook_uses_only_what_python_has_loaded_anyway() -> None:
    code = (
        "import sys\n"
        "for name in ('__future__', 'lm_eval_ext', 'lm_eval_ext._autoload'):\n"
        "    sys.modules.pop(name, None)  # the start-up file has imported them already\n"
        "before = set(sys.modules); import lm_eval_ext._autoload\n"
        "print(sorted(set(sys.modules) - before))"
    )
    completed = python(code, LM_EVAL_EXT_AUTOLOAD="0")
    assert completed.stdout.strip() == "['__future__', 'lm_eval_ext', 'lm_eval_ext._autoload']"


@pytest.mark.parametrize(
    ("word", "active"), [("", "True"), ("1", "True"), ("0", "False"), ("OFF ", "False")]
)
def test_the_switch_turns_the_hook_off(word: str, active: str) -> None:
    code = "from lm_eval_ext._autoload import is_active; print(is_active())"
    assert python(code, LM_EVAL_EXT_AUTOLOAD=word).stdout.strip() == active


def test_models_are_registered_once_and_copies_of_the_module_do_not_fight() -> None:
    code = (
        "import importlib, sys; import lm_eval_ext._autoload as first\n"
        "watchers = list(sys.meta_path); importlib.reload(first).install()\n"
        "del sys.modules['lm_eval_ext._autoload']; import lm_eval_ext._autoload as second\n"
        "second.install(); print(sys.meta_path == watchers)\n"
        "sys.meta_path.append(second._Watcher()); import lm_eval.models\n"
        "from lm_eval.api.registry import model_registry\n"
        "print(model_registry._objs['recorded'], 'hf' in model_registry)"
    )
    completed = python(code)
    expected = ["True", "lm_eval_ext.models.recorded:RecordedLM", "True"]
    assert completed.stdout.split() == expected, completed.stderr[-2000:]


def test_python_m_runs_lm_eval_where_start_up_files_are_not_read() -> None:
    command = [sys.executable, "-m", "lm_eval_ext", "--help"]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert "Language Model Evaluation Harness" in completed.stdout, completed.stderr[-2000:]


@pytest.fixture
def index_module(tmp_path: Path) -> ModuleType:
    """A module like ``lm_eval.tasks._index`` whose index is the list of the folders."""

    class TaskIndex:
        @staticmethod
        def build(paths: list[Path], *, resolve_includes: bool = True) -> list[Path]:
            return [*paths] if resolve_includes else []

        process_cfg = None

    module = ModuleType("lm_eval.tasks._index")
    module.__file__ = str(tmp_path / "_index.py")
    module.TaskIndex = TaskIndex  # type: ignore[attr-defined]
    return module


@pytest.mark.parametrize(
    ("folders", "indexed"),
    [
        pytest.param(["lm-eval's"], ["lm-eval's", "ours"], id="lm-eval alone"),
        pytest.param(["lm-eval's", "mine"], ["lm-eval's", "ours", "mine"], id="a user's folder"),
        pytest.param(
            ["lm-eval's", "ours", "mine"],
            ["lm-eval's", "ours", "mine"],
            id="lm-eval has read our entry point",
        ),
        pytest.param(
            ["lm-eval's", "mine", "ours"], ["lm-eval's", "mine", "ours"], id="--include_path"
        ),
        pytest.param(["mine"], ["mine"], id="include_defaults=False"),
        pytest.param([], [], id="nothing"),
    ],
)
def test_our_folder_comes_after_lm_evals_and_before_the_users(
    index_module: ModuleType, tmp_path: Path, folders: list[str], indexed: list[str]
) -> None:
    _autoload._run_hook(index_module)
    paths = {"lm-eval's": tmp_path, "ours": Path(tasks_folder()), "mine": Path("mine")}
    index = index_module.TaskIndex().build([paths[name] for name in folders])
    assert index == [paths[name] for name in indexed]


def test_folders_may_be_texts(index_module: ModuleType, tmp_path: Path) -> None:
    _autoload._run_hook(index_module)
    index = index_module.TaskIndex().build([str(tmp_path), "mine"])
    assert index == [tmp_path, Path(tasks_folder()), Path("mine")]


def test_options_of_lm_evals_index_are_passed_on(index_module: ModuleType, tmp_path: Path) -> None:
    _autoload._run_hook(index_module)
    assert index_module.TaskIndex.build([tmp_path], resolve_includes=False) == []


def test_a_file_that_includes_ours_needs_no_hook(tmp_path: Path) -> None:
    """Plain lm-eval, where the start-up file is not read: one file for each task."""
    write_plain(tmp_path / "plain")
    with (tmp_path / "plain/cogs_mini_icl_id.yaml").open("a") as file:
        file.write("num_fewshot: 3\nmetadata: {version: mine}\n")
    code = (
        "from lm_eval.tasks import TaskManager\n"
        f"manager = TaskManager(include_defaults=False, include_path={str(tmp_path / 'plain')!r})\n"
        "print(len(manager.all_subtasks), len(manager.all_groups))\n"
        "for name, task in manager.load(['lieder_mini', 'cogs_mini_icl_id'])['tasks'].items():\n"
        "    signed = task.dump_config()['metadata']['signature']\n"
        "    print(name, type(task).__name__, signed['version'], signed['prompt'], end=' ')\n"
        "    print(task.config.num_fewshot)"
    )
    completed = python(code, LM_EVAL_EXT_AUTOLOAD="0")
    tasks = sum(len(card.tasks) for card in cards().values())
    groups = sum(len(card.groups) for card in cards().values())
    assert completed.stdout.splitlines() == [
        f"{tasks} {groups}",
        "lieder_mini GroupedLoglikelihoodTask 1.2 running-text 0",
        "cogs_mini_icl_id InContextTask mine sentence-and-logical-form 3",
    ], completed.stderr[-2000:]


@pytest.mark.parametrize("name", sorted(_autoload._HOOKS.keys() - {"lm_eval.models"}))
def test_every_hook_fails_soft(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A hook of a module that has changed prints one line."""
    module = ModuleType(name)
    module.__file__ = "/nowhere/x.py"
    _autoload._run_hook(module)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("lm-eval-ext: ")
    assert name in line


def test_a_watched_module_keeps_its_loaders_methods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """lm-eval's modules can still be inspected and reloaded."""
    (tmp_path / "watched_module.py").write_text("COUNT = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    hooked: list[str] = []

    def hook(module: ModuleType) -> None:
        hooked.append(module.__name__)

    monkeypatch.setitem(_autoload._HOOKS, "watched_module", (hook, ""))
    module = importlib.import_module("watched_module")
    assert hooked == ["watched_module"]
    assert module.__loader__.get_source("watched_module") == "COUNT = 1\n"  # type: ignore[union-attr]
    importlib.reload(module)
    assert hooked == ["watched_module", "watched_module"]
    del sys.modules["watched_module"]
