"""Included files are read once for an index, and the index is the one lm-eval makes."""

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import lm_eval
import pytest
from lm_eval.tasks import _yaml_loader
from lm_eval.tasks._index import TaskIndex
from lm_eval.tasks.manager import TaskManager

from lm_eval_ext import _autoload
from lm_eval_ext._autoload import tasks_folder
from lm_eval_ext.harness import includes
from lm_eval_ext.harness.includes import read_once


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Counts which task files are opened."""
    count: Counter[str] = Counter()
    path_open = Path.open

    def counting(self: Path, *args: Any, **kwargs: Any) -> Any:
        count[str(self)] += 1
        return path_open(self, *args, **kwargs)

    monkeypatch.setattr(Path, "open", counting)
    yield count


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """Writes task files, named by keyword, and gives their folder."""

    def write(**files: str) -> Path:
        for name, text in files.items():
            # What is included has another ending, so that it is no task by itself.
            path = tmp_path / (f"{name}.yaml" if text.startswith("task:") else name)
            path.write_text(text, encoding="utf-8")
        return tmp_path

    return write


def index(*folders: Path) -> dict[str, Any]:
    return TaskIndex.build(folders)


def test_the_index_is_lm_evals_own() -> None:
    """Over our tasks and a sixth of lm-eval's folders, which include files of files."""
    stock = sorted(
        path for path in (Path(lm_eval.__file__).parent / "tasks").iterdir() if path.is_dir()
    )
    folders = [Path(tasks_folder()), *stock[::6]]
    theirs = index(*folders)
    with read_once():
        ours = index(*folders)
    assert len(theirs) > 1000
    assert ours == theirs
    assert list(ours) == list(theirs), "in the same order"


def test_each_file_is_read_once(opened: Counter[str]) -> None:
    index(Path(tasks_folder()))
    assert max(opened.values()) > 20, "lm-eval's own way reads the shared ones for each task"
    files = set(opened)
    opened.clear()
    with read_once():
        index(Path(tasks_folder()))
    assert set(opened) == files
    assert set(opened.values()) == {1}


def test_lm_evals_manager_reads_them_once(opened: Counter[str]) -> None:
    """The hook is at work in this process, as in every one."""
    assert _autoload.is_active()
    TaskManager(include_defaults=False, include_path=_autoload.tasks_folder())
    tasks = {name: times for name, times in opened.items() if name.startswith(tasks_folder())}
    assert len(tasks) > 100
    assert set(tasks.values()) == {1}


def test_nothing_is_remembered_afterwards(folder: Callable[..., Path]) -> None:
    root = folder(a="task: a\ninclude: shared\n", shared="description: old\n")
    with read_once():
        assert index(root)["a"].cfg["description"] == "old"
        folder(shared="description: new\n")
        assert index(root)["a"].cfg["description"] == "old"
    with read_once():
        assert index(root)["a"].cfg["description"] == "new"
    folder(shared="description: newest\n")
    assert index(root)["a"].cfg["description"] == "newest"


def test_each_task_has_a_copy_of_its_own(folder: Callable[..., Path]) -> None:
    root = folder(
        a="task: a\ninclude: shared\n",
        b="task: b\ninclude: shared\n",
        shared="generation_kwargs: {until: [x]}\n",
    )
    with read_once():
        tasks = index(root)
    tasks["a"].cfg["generation_kwargs"]["until"].append("y")
    assert tasks["b"].cfg["generation_kwargs"] == {"until": ["x"]}


@pytest.mark.parametrize(
    "files",
    [
        {"a": "task: a\ninclude: one\n", "one": "include: two\n", "two": "include: one\n"},
        {"a": "task: a\ninclude: one\n", "one": "include: a.yaml\n"},
        {
            # Both of the included files include a third: a cycle to lm-eval.
            "a": "task: a\ninclude: [one, two]\n",
            "b": "task: b\ninclude: one\n",
            "c": "task: c\ninclude: two\n",
            "one": "include: three\nx: 1\n",
            "two": "include: three\nx: 2\n",
            "three": "y: 3\n",
        },
        {"a": "task: a\ninclude: missing\n", "b": "task: b\ninclude: missing\n"},
        {"a": "task: a\ninclude: one\n", "one": "[a, list]\n"},
        {"a": "task: a\ninclude: one\n", "one": "task_list: [{task: x}]\nf: !function m.f\n"},
    ],
)
def test_odd_files_fare_as_with_lm_eval(
    files: dict[str, str], folder: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    root = folder(**files)
    caplog.set_level("DEBUG", logger="lm_eval.tasks._index")
    theirs, said = index(root), [record.getMessage() for record in caplog.records]
    caplog.clear()
    with read_once():
        ours = index(root)
    assert ours == theirs
    assert [record.getMessage() for record in caplog.records] == said


def test_functions_are_resolved_as_ever(folder: Callable[..., Path]) -> None:
    """Only the index is remembered: a task that is built gets its functions."""
    root = folder(a="task: a\ninclude: one\n", one="f: !function os.path.join\n")
    import os

    with read_once():
        assert isinstance(index(root)["a"].cfg["f"], str)
        assert _yaml_loader.load_yaml(root / "a.yaml")["f"] is os.path.join


def test_two_threads_do_not_share_what_they_remember(folder: Callable[..., Path]) -> None:
    root = folder(a="task: a\ninclude: shared\n", shared="x: old\n")
    seen: list[str] = []
    with read_once():
        index(root)
        folder(shared="x: new\n")
        thread = threading.Thread(target=lambda: seen.append(index(root)["a"].cfg["x"]))
        thread.start()
        thread.join()
    assert seen == ["new"]


@pytest.mark.parametrize(
    "source",
    [
        "",
        "load_yaml = 3",
        "def load_yaml(path, cache): ...",
        "def load_yaml(path, *, resolve_func=False, recursive=True, _seen=None): ...",
        "def load_yaml(path, resolve_func=True, recursive=True, _seen=None): ...",
    ],
)
def test_an_unknown_loader_is_left_alone(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("lm_eval.tasks._yaml_loader")
    exec(source, module.__dict__)
    before = dict(vars(module))
    monkeypatch.setitem(sys.modules, "lm_eval.tasks._yaml_loader", module)
    with read_once():
        assert vars(module) == before


def test_it_is_taught_once() -> None:
    with read_once():
        first = _yaml_loader.load_yaml
    with read_once():
        assert _yaml_loader.load_yaml is first
    assert includes._read.get() is None
