"""The start-up hook by itself: cheap, silent, idempotent, and without side effects."""

import importlib
import importlib.machinery
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from lm_eval_ext import _autoload


def python(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    import os

    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = (
        "import sys; import lm_eval_ext, lm_eval_ext._autoload\n"
        "heavy = {'torch', 'transformers', 'datasets', 'lm_eval', 'numpy', 'pydantic', 'yaml'}\n"
        "print(sorted(heavy & {name.partition('.')[0] for name in sys.modules}))"
    )
    done = python(code)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_a_python_that_never_imports_lm_eval_is_left_alone() -> None:
    done = python("import sys; print([m for m in sys.modules if m.startswith('lm_eval.')])")
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_the_hook_uses_only_what_python_has_loaded_anyway() -> None:
    code = (
        "import sys\n"
        "for name in ('__future__', 'lm_eval_ext', 'lm_eval_ext._autoload'):\n"
        "    sys.modules.pop(name, None)  # the start-up file has imported them already\n"
        "before = set(sys.modules); import lm_eval_ext._autoload\n"
        "print(sorted(set(sys.modules) - before))"
    )
    done = python(code, LM_EVAL_EXT_AUTOLOAD="0")
    assert done.stdout.strip() == "['__future__', 'lm_eval_ext', 'lm_eval_ext._autoload']"


def test_the_switch_turns_it_off() -> None:
    ours = "lm_eval_ext._autoload"
    code = f"import sys; print(any(type(f).__module__ == {ours!r} for f in sys.meta_path))"
    assert python(code).stdout.strip() == "True"
    assert python(code, LM_EVAL_EXT_AUTOLOAD="1").stdout.strip() == "True"
    for word in ("0", "false", "No", "OFF "):
        assert python(code, LM_EVAL_EXT_AUTOLOAD=word).stdout.strip() == "False", word


def test_installing_twice_is_installing_once() -> None:
    before = list(sys.meta_path)
    _autoload.install()
    assert sys.meta_path == before


class FakeManager:
    """Stands in for lm-eval's ``TaskManager``; remembers what it was asked to index."""

    plugin_paths: tuple[str, ...] = ()

    def __init__(
        self,
        verbosity: str | None = None,
        include_path: Any = None,
        include_defaults: bool = True,
        metadata: Any = None,
    ) -> None:
        self.include_path = include_path
        self.paths = (
            [str(p) for p in (include_path or [])]
            if isinstance(include_path, list)
            else include_path
        )
        found = [*self.plugin_paths, *(self.paths or [])] if include_defaults else []
        self.task_index = {p: SimpleNamespace(yaml_path=Path(p) / "x.yaml") for p in found}
        self.metadata = metadata


def test_a_second_copy_of_the_module_does_not_fight_the_first() -> None:
    code = (
        "import importlib, sys; import lm_eval_ext._autoload as first\n"
        "importlib.reload(first).install(); del sys.modules['lm_eval_ext._autoload']\n"
        "import lm_eval_ext._autoload as second; second.install()\n"
        "sys.meta_path.append(second._Watcher()); import lm_eval.models\n"
        "from lm_eval.api.registry import model_registry; print('recorded' in model_registry)"
    )
    done = python(code)
    assert done.stdout.strip() == "True", done.stderr[-2000:]


def test_a_finder_that_asks_all_finders_does_not_recurse() -> None:
    code = (
        "import sys\n"
        "class Nosy:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'lm_eval.models':\n"
        "            for finder in sys.meta_path:\n"
        "                if finder is not self:\n"
        "                    spec = finder.find_spec(name, path, target)\n"
        "                    if spec: return spec\n"
        "sys.meta_path.insert(0, Nosy()); import lm_eval.models\n"
        "from lm_eval.api.registry import model_registry; print('recorded' in model_registry)"
    )
    done = python(code)
    assert done.stdout.strip() == "True", done.stderr[-2000:]


def test_a_loader_that_cannot_be_watched_gets_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    class Sealed:
        __slots__ = ()

        def exec_module(self, module: ModuleType) -> None:
            """Does nothing."""

    spec = importlib.machinery.ModuleSpec("lm_eval.models", Sealed())  # type: ignore[arg-type]
    _autoload._run_hook_after(spec)
    (line,) = capsys.readouterr().err.splitlines()
    assert "lm_eval.models" in line


def test_python_m_runs_lm_eval_where_start_up_files_are_not_read() -> None:
    command = [sys.executable, "-m", "lm_eval_ext", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert "Language Model Evaluation Harness" in done.stdout, done.stderr[-2000:]


@pytest.fixture
def manager_module(tmp_path: Path) -> Iterator[Callable[..., ModuleType]]:
    """Makes a module like ``lm_eval.tasks.manager``, in a folder with this source."""

    def make(source: str = "", plugin_paths: tuple[str, ...] = ()) -> ModuleType:
        folder = tmp_path / "tasks"
        folder.mkdir()
        (folder / "manager.py").write_text(source)
        module = ModuleType("lm_eval.tasks.manager")
        module.__file__ = str(folder / "manager.py")
        module.TaskManager = type(  # type: ignore[attr-defined]
            "TaskManager",
            (FakeManager,),
            {"__init__": FakeManager.__init__, "plugin_paths": plugin_paths},
        )
        return module

    yield make


def test_our_folder_comes_before_the_users(manager_module: Callable[..., ModuleType]) -> None:
    module = manager_module()
    _autoload._run_hook(module)
    ours = _autoload.tasks_folder()
    for given, indexed in (
        (None, [ours]),
        ("mine", [ours, "mine"]),
        (["a", Path("b")], [ours, "a", "b"]),
    ):
        manager = module.TaskManager(include_path=given, metadata={"k": 1})
        assert manager.paths == indexed
        assert manager.include_path == given, "what the user gave stays what the user gave"
        assert manager.metadata == {"k": 1}
    assert module.TaskManager("INFO", "mine").paths == [ours, "mine"], "positional arguments too"
    assert module.TaskManager(include_path=["a"], include_defaults=False).paths == ["a"]
    assert module.TaskManager(include_defaults=False).paths is None


def test_wrapping_happens_once(manager_module: Callable[..., ModuleType]) -> None:
    module = manager_module()
    _autoload._run_hook(module)
    wrapped = module.TaskManager.__init__
    _autoload._run_hook(module)
    assert module.TaskManager.__init__ is wrapped


NEXT_RELEASE = (
    'from importlib.metadata import entry_points\nPLUGINS = entry_points(group="lm_eval.tasks")\n'
)


def test_it_stands_down_where_lm_eval_finds_us(manager_module: Callable[..., ModuleType]) -> None:
    module = manager_module(NEXT_RELEASE, plugin_paths=(_autoload.tasks_folder(),))
    _autoload._run_hook(module)
    assert module.TaskManager().paths is None
    assert module.TaskManager(include_path=["mine"]).paths == ["mine"]


def test_a_comment_about_entry_points_is_no_support_for_them(
    manager_module: Callable[..., ModuleType],
) -> None:
    comment = '# entry_points(group="lm_eval.tasks") is not supported yet\n'
    module = manager_module(comment + "def entry_points(): ...\n")
    _autoload._run_hook(module)
    assert module.TaskManager().paths == [_autoload.tasks_folder()]


def test_it_steps_in_where_lm_eval_reads_entry_points_but_not_ours(
    manager_module: Callable[..., ModuleType],
) -> None:
    module = manager_module(NEXT_RELEASE, plugin_paths=("/another/plugin",))
    _autoload._run_hook(module)
    assert module.TaskManager(include_path=["mine"]).paths == [_autoload.tasks_folder(), "mine"]


def test_an_unknown_lm_eval_gets_one_line_and_goes_on(
    manager_module: Callable[..., ModuleType], capsys: pytest.CaptureFixture[str]
) -> None:
    module = manager_module()

    class Renamed:
        def __init__(self, folders: Any = None) -> None:
            self.folders = folders

    module.TaskManager = Renamed  # type: ignore[attr-defined]
    _autoload._run_hook(module)
    assert module.TaskManager(["x"]).folders == ["x"]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("lm-eval-ext: ")
    assert f"add --include_path {_autoload.tasks_folder()}" in line


def test_every_hook_fails_soft(capsys: pytest.CaptureFixture[str]) -> None:
    for name in _autoload._HOOKS:
        module = ModuleType(name)
        module.__file__ = "/nowhere/x.py"
        _autoload._run_hook(module)
        (line,) = capsys.readouterr().err.splitlines()
        assert name in line


def test_a_loader_keeps_what_else_it_can_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """lm-eval's modules can still be inspected and reloaded."""
    (tmp_path / "watched_module.py").write_text("COUNT = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    ran: list[str] = []
    monkeypatch.setitem(_autoload._HOOKS, "watched_module", (lambda m: ran.append(m.__name__), ""))
    module = importlib.import_module("watched_module")
    assert ran == ["watched_module"]
    assert module.__loader__.get_source("watched_module") == "COUNT = 1\n"  # type: ignore[union-attr]
    importlib.reload(module)
    assert ran == ["watched_module"] * 2
    del sys.modules["watched_module"]


def test_models_are_registered_once_and_by_name() -> None:
    code = (
        "import lm_eval.models\n"
        "from lm_eval.api.registry import model_registry\n"
        "print(model_registry._objs['recorded'], 'hf' in model_registry)"
    )
    done = python(code)
    assert done.stdout.split() == ["lm_eval_ext.models.recorded:RecordedLM", "True"], done.stderr
