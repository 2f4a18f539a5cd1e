"""Makes plain ``lm_eval`` see this package's tasks and models.

lm-eval 0.4.13 has no plugin mechanism, so a ``.pth`` file of ours calls :func:`install`
whenever Python starts (docs/discovery.md gives the reasons). That must cost nothing and break
nothing: only modules that Python has loaded anyway are used, nothing of lm-eval is imported (so
imports are inside functions), and nothing happens until lm-eval itself imports one of the modules
in ``_HOOKS``. Then:

* ``lm_eval.tasks.manager``: our task folder is indexed, before the user's
  ``--include_path``, which still overrides it;
* ``lm_eval.tasks._index`` and ``lm_eval.tasks._factory``: a file with a card may hold several
  tasks (:mod:`lm_eval_ext.harness.declared`);
* ``lm_eval.models``: our model types are registered, by name, unimported;
* ``lm_eval.config.evaluate_config`` and ``lm_eval._cli.harness``: the data of our tasks are
  checked before the model is loaded, and our errors are one line instead of a traceback.

An lm-eval that reads the entry points ``lm_eval.tasks`` and ``lm_eval.models`` finds us by
itself, and the first two hooks do nothing. ``LM_EVAL_EXT_AUTOLOAD=0`` switches all of it off.
"""

from __future__ import annotations

import os
import sys
from _thread import get_ident as _thread_id  # built in, where threading would be an import

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

SWITCH = "LM_EVAL_EXT_AUTOLOAD"
OFF = ("0", "false", "no", "off")
MODELS = {
    "recorded": "lm_eval_ext.models.recorded:RecordedLM",
    "hf-prefix": "lm_eval_ext.models.prefix.model:PrefixHFLM",
}
"""Model types by the name that ``--model`` takes, in the form of lm-eval's lazy registry."""


def install() -> None:
    """Starts watching for lm-eval's imports; the second call does nothing."""
    if os.environ.get(SWITCH, "").strip().lower() in OFF or is_active():
        return
    sys.meta_path.insert(0, _Watcher())
    for name in _HOOKS:
        module = sys.modules.get(name)
        if module is not None:
            _run_hook(module)


def watch(name: str, hook: Callable[[ModuleType], None], remedy: str) -> None:
    """Runs one more hook after a module of lm-eval's, or now if it is there; in this process."""
    _HOOKS[name] = (hook, remedy)
    if is_active() and name in sys.modules:
        _run_hook(sys.modules[name])


def is_active() -> bool:
    """Whether lm-eval's imports are being watched in this process."""
    # By attribute: after a reload of this module the class is another one.
    return any(getattr(finder, "lm_eval_ext_watcher", False) for finder in sys.meta_path)


def tasks_folder() -> str:
    """The folder of our task files: in an installed wheel, or the checkout's ``tasks``."""
    package = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 (no pathlib: start-up time)
    installed = os.path.join(package, "tasks")  # noqa: PTH118
    checkout = os.path.join(os.path.dirname(package), "tasks")  # noqa: PTH118, PTH120
    return installed if os.path.isdir(installed) else checkout  # noqa: PTH112


class _Watcher:
    """A finder that finds nothing itself: it runs a hook after lm-eval's module is imported."""

    lm_eval_ext_watcher = True

    def __init__(self) -> None:
        self._looking: set[tuple[int, str]] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        here = (_thread_id(), name)
        if name not in _HOOKS or here in self._looking:
            return None
        self._looking.add(here)  # another finder may ask all finders, this one too
        try:
            for finder in sys.meta_path:
                find = None if finder is self else getattr(finder, "find_spec", None)
                spec: ModuleSpec | None = find(name, path, target) if find else None
                if spec is not None:
                    _run_hook_after(spec)
                    return spec
        finally:
            self._looking.discard(here)
        return None


def _run_hook_after(spec: ModuleSpec) -> None:
    loader: Any = spec.loader
    execute = getattr(loader, "exec_module", None)
    if execute is None:
        return

    def exec_module(module: ModuleType) -> None:
        execute(module)
        if module.__name__ == spec.name:  # a zip's loader serves all of its modules
            _run_hook(module)

    try:
        # On the instance, so that everything else the loader can do (its source, its data,
        # a reload) stays as it was.
        loader.exec_module = exec_module
    except Exception as error:  # noqa: BLE001 (loaders may be of any class)
        _say(spec.name, error)


def _run_hook(module: ModuleType) -> None:
    """Runs a module's hook; if it fails, a message says what to do and lm-eval continues."""
    try:
        _HOOKS[module.__name__][0](module)
    except Exception as error:  # noqa: BLE001 (an lm-eval that we don't know may fail in any way)
        _say(module.__name__, error)


def _say(name: str, error: Exception) -> None:
    problem = f"{name}: {type(error).__name__}: {error}".replace("\n", " ")
    remedy = _HOOKS[name][1].format(tasks=tasks_folder())
    print(  # noqa: T201 (logging is not set up yet)
        f"lm-eval-ext: this lm-eval cannot be extended at start-up ({problem}); {remedy}",
        file=sys.stderr,
    )


def _add_tasks(manager: ModuleType) -> None:
    """Wraps ``TaskManager.__init__`` so that the default index includes our folder."""
    original = manager.TaskManager.__init__
    if getattr(original, "lm_eval_ext", False):
        return
    if "include_path" not in original.__code__.co_varnames:
        raise TypeError("TaskManager takes no include_path")
    if not os.path.isdir(tasks_folder()):  # noqa: PTH112
        raise FileNotFoundError(f"no folder {tasks_folder()}: the package lies in an archive")
    upstream_finds_us = _mentions_entry_points(manager, "lm_eval.tasks")

    def __init__(  # noqa: N807 (it takes the place of one)
        self: Any,
        verbosity: str | None = None,
        include_path: Any = None,
        include_defaults: bool = True,  # noqa: FBT001, FBT002 (upstream's signature)
        metadata: Any = None,
        **others: Any,
    ) -> None:
        def build(path: Any) -> None:
            original(
                self,
                verbosity,
                include_path=path,
                include_defaults=include_defaults,
                metadata=metadata,
                **others,
            )

        if not include_defaults:
            build(include_path)
            return
        if upstream_finds_us:
            build(include_path)
            if any(_is_ours(entry) for entry in self.task_index.values()):
                return
            # It reads entry points but not ours (an editable install has no tasks inside the
            # package): go on as with a release that reads none.
        users = include_path if isinstance(include_path, (list, tuple)) else [include_path]
        build([tasks_folder(), *(path for path in users if path)])
        self.include_path = include_path

    __init__.lm_eval_ext = True  # type: ignore[attr-defined]
    __init__.__doc__ = original.__doc__
    __init__.__wrapped__ = original  # type: ignore[attr-defined]
    manager.TaskManager.__init__ = __init__


def _index_several(index: ModuleType) -> None:
    """Wraps the reading of a task file, so that one with a card may hold several tasks."""
    original = index.TaskIndex.process_cfg
    if getattr(original, "lm_eval_ext", False):
        return

    def process_cfg(cfg: dict[str, Any], path: Any, index_: dict[str, Any]) -> None:
        if "card" not in cfg:
            original(cfg, path, index_)
            return
        from importlib import import_module

        for one in import_module("lm_eval_ext.harness.declared").expanded(cfg, path):
            # Of a group, lm-eval would read the whole file again.
            original(one, None if "group" in one else path, index_)

    process_cfg.lm_eval_ext = True  # type: ignore[attr-defined]
    index.TaskIndex.process_cfg = staticmethod(process_cfg)


def _build_one_of_several(factory: ModuleType) -> None:
    """Wraps the reading of a task that is built, for the same files."""
    original = factory.TaskFactory._load_full_config
    if getattr(original, "lm_eval_ext", False):
        return

    def _load_full_config(self: Any, entry: Any, overrides: Any = None) -> dict[str, Any]:
        path = entry.yaml_path
        if path is None or "card" not in (entry.cfg or {}):
            return dict(original(self, entry, overrides))
        from importlib import import_module

        own = import_module("lm_eval_ext.harness.declared").config_of(path, entry.name)
        read = type(entry)(entry.name, entry.kind, None, own, entry.tags)
        found: dict[str, Any] = original(self, read, overrides)
        found["metadata"]["config_source"] = str(path)
        return found

    _load_full_config.lm_eval_ext = True  # type: ignore[attr-defined]
    factory.TaskFactory._load_full_config = _load_full_config


def _is_ours(entry: Any) -> bool:
    path = str(getattr(entry, "yaml_path", None) or "")
    return path.startswith((tasks_folder() + os.sep, os.path.realpath(tasks_folder()) + os.sep))


def _add_models(models: ModuleType) -> None:
    """Registers our model types by string, unless lm-eval reads entry points itself."""
    from lm_eval.api import registry

    if _mentions_entry_points(registry, "lm_eval.models") or _mentions_entry_points(
        models, "lm_eval.models"
    ):
        return
    for name, target in MODELS.items():
        if name not in registry.model_registry:
            registry.model_registry.register(name, target=target)


def _mentions_entry_points(module: ModuleType, group: str) -> bool:
    """Whether the module's folder holds the entry-point group's name as a whole string.

    Reading the source beats comparing versions: the plugin support is merged upstream but in
    no release yet, so which version brings it is not known.
    """
    folder = os.path.dirname(module.__file__ or "")  # noqa: PTH120
    for name in os.listdir(folder):  # noqa: PTH208
        if name.endswith(".py"):
            with open(os.path.join(folder, name), encoding="utf-8") as source:  # noqa: PTH118, PTH123
                text = source.read()
            if (f'"{group}"' in text or f"'{group}'" in text) and _reads(text, group):
                return True
    return False


def _reads(source: str, group: str) -> bool:
    """Whether code, not a comment, holds the group's name and a call of ``entry_points``."""
    import ast

    nodes = list(ast.walk(ast.parse(source)))
    calls = {
        getattr(node.func, "attr", getattr(node.func, "id", ""))
        for node in nodes
        if isinstance(node, ast.Call)
    }
    names = {node.value for node in nodes if isinstance(node, ast.Constant)}
    return "entry_points" in calls and group in names


def _check_before_model(evaluate_config: ModuleType) -> None:
    """Wraps the command line's task selection: our tasks' keys and data are checked after it."""
    original = evaluate_config.EvaluatorConfig.process_tasks
    if getattr(original, "lm_eval_ext", False):
        return

    def check(function: str, *args: Any) -> None:
        from importlib import import_module

        users_error = import_module("lm_eval_ext.errors").LmEvalExtError
        try:
            getattr(import_module("lm_eval_ext.harness.preflight"), function)(*args)
        except users_error:
            raise
        except Exception as error:  # noqa: BLE001 (a bug in the check must not stop a run)
            _say(evaluate_config.__name__, error)

    def process_tasks(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            manager = original(self, *args, **kwargs)
        except ValueError as error:
            check("explain_tasks", error)
            raise
        check("check_run", manager, self)
        return manager

    process_tasks.lm_eval_ext = True  # type: ignore[attr-defined]
    evaluate_config.EvaluatorConfig.process_tasks = process_tasks


def _guard_command_line(harness: ModuleType) -> None:
    """Wraps the command line itself: one-line errors with exit status 1."""
    original = harness.HarnessCLI.execute
    if getattr(original, "lm_eval_ext", False):
        return

    def execute(self: Any, args: Any) -> None:
        from importlib import import_module

        with import_module("lm_eval_ext.errors").one_line_errors():
            original(self, args)

    execute.lm_eval_ext = True  # type: ignore[attr-defined]
    harness.HarnessCLI.execute = execute


_HOOKS: dict[str, tuple[Callable[[ModuleType], None], str]] = {
    "lm_eval.tasks.manager": (_add_tasks, "add --include_path {tasks} to your command"),
    "lm_eval.tasks._index": (_index_several, "files with several tasks are not read"),
    "lm_eval.tasks._factory": (_build_one_of_several, "files with several tasks are not read"),
    "lm_eval.models": (_add_models, "its own model types still work, ours do not"),
    "lm_eval.config.evaluate_config": (
        _check_before_model,
        "missing data are noticed only after the model is loaded; check: lm-eval-ext data verify",
    ),
    "lm_eval._cli.harness": (_guard_command_line, "errors will come with a traceback"),
}
"""For each module of lm-eval's that is watched: what runs after it, and what to do if it fails."""
