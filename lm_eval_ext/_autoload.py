"""Makes plain ``lm_eval`` see this package's tasks and models.

lm-eval 0.4.13 has no plugin mechanism, so a ``.pth`` file of ours calls :func:`install`
whenever Python starts (docs/discovery.md gives the reasons). That must cost nothing and break
nothing: only modules that Python has loaded anyway are used, nothing of lm-eval is imported (so
imports are inside functions), and nothing happens until lm-eval itself imports one of the modules
in ``_HOOKS``. Then:

* ``lm_eval.tasks._index``: our task folder is indexed after lm-eval's own and before the user's
  ``--include_path``, which still overrides it; a file with a card may hold several tasks
  (:mod:`lm_eval_ext.harness.task_files`);
* ``lm_eval.tasks._factory``: a task of such a file gets its name;
* ``lm_eval.models``: our model types are registered, by name, unimported;
* ``lm_eval.config.evaluate_config`` and ``lm_eval._cli.harness``: the data of our tasks are
  checked before the model is loaded, and our errors are one line instead of a traceback.

An lm-eval that reads our entry points has our folder and our models already; they are not added
again. ``LM_EVAL_EXT_AUTOLOAD=0`` switches all of it off.
"""

from __future__ import annotations

import os
import sys
from _frozen_importlib_external import PathFinder  # loaded, where importlib.machinery may not be

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

PROBLEM = "lm-eval-ext: this lm-eval cannot be extended at start-up"
"""The beginning of the line that says that a hook failed."""

SWITCH = "LM_EVAL_EXT_AUTOLOAD"
OFF = ("0", "false", "no", "off")
MODELS = {
    "recorded": "lm_eval_ext.models.recorded:RecordedLM",
    "hf-prefix": "lm_eval_ext.models.prefix.model:PrefixHFLM",
}
"""Model types by the name that ``--model`` takes, in the form of lm-eval's lazy registry."""


def install() -> None:
    """Start watching for lm-eval's imports; the second call does nothing."""
    if os.environ.get(SWITCH, "").strip().lower() in OFF or is_active():
        return
    sys.meta_path.insert(0, _Watcher())
    for name in _HOOKS:
        module = sys.modules.get(name)
        if module is not None:
            _run_hook(module)


def watch(name: str, hook: Callable[[ModuleType], None], remedy: str) -> None:
    """Run one more hook after a module of lm-eval's, or now if it is there; in this process.

    Args:
        name: The module.
        hook: Runs after the import, given the module.
        remedy: The advice in the message if the hook fails.
    """
    _HOOKS[name] = (hook, remedy)
    if is_active() and name in sys.modules:
        _run_hook(sys.modules[name])


def is_active() -> bool:
    """Return whether lm-eval's imports are being watched in this process."""
    # By attribute: after a reload of this module the class is another one.
    return any(getattr(finder, "lm_eval_ext_watcher", False) for finder in sys.meta_path)


class _Watcher:
    """A finder that finds lm-eval's modules as Python does, and runs a hook after their import."""

    lm_eval_ext_watcher = True

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, _: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in _HOOKS:
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return spec
        loader: Any = spec.loader
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            if module.__name__ == name:  # a zip's loader serves all of its modules
                _run_hook(module)

        # On the instance, so that everything else the loader can do (its source, its data, a
        # reload) stays as it was.
        loader.exec_module = exec_module
        return spec


def _run_hook(module: ModuleType) -> None:
    """Run a module's hook; if it fails, a message says what to do and lm-eval continues."""
    hook, _ = _HOOKS[module.__name__]
    try:
        hook(module)
    except Exception as error:  # noqa: BLE001 (an lm-eval that we don't know may fail in any way)
        _print_problem(module.__name__, error)


def _print_problem(name: str, error: Exception) -> None:
    """Print in one line which module's hook failed, and what to do."""
    problem = f"{name}: {type(error).__name__}: {error}".replace("\n", " ")
    _, remedy = _HOOKS[name]
    # Logging is not set up yet.
    print(f"{PROBLEM} ({problem}); {remedy}", file=sys.stderr)  # noqa: T201


def _wrap(owner: Any, name: str, around: Callable[..., Any]) -> None:
    """Make ``owner.name(...)`` call ``around(original, ...)``; a second time does nothing."""
    original = getattr(owner, name)
    if hasattr(original, "lm_eval_ext"):
        return

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return around(original, *args, **kwargs)

    wrapped.lm_eval_ext = True  # type: ignore[attr-defined]
    if isinstance(vars(owner)[name], staticmethod):
        setattr(owner, name, staticmethod(wrapped))
    else:
        setattr(owner, name, wrapped)


def _index_tasks(index: ModuleType) -> None:
    """Add our folder to the index, and read files that hold several tasks."""
    from importlib import import_module
    from pathlib import Path  # as lm-eval has, by now

    from lm_eval_ext.task_folder import tasks_folder

    our_folder = Path(tasks_folder())

    def build(original: Any, paths: Any, **options: Any) -> Any:
        folders = [Path(path) for path in paths]
        # Read at each call, since tests move it.
        lm_eval_folder = Path(index.__file__ or "").parent
        if lm_eval_folder in folders and our_folder not in folders:
            folders.insert(folders.index(lm_eval_folder) + 1, our_folder)
        return original(folders, **options)

    def process_cfg(original: Any, cfg: dict[str, Any], path: Any, entries: Any) -> None:
        if "card" not in cfg:
            original(cfg, path, entries)
            return
        task_files = import_module("lm_eval_ext.harness.task_files")
        for variant in task_files.expand_variants(cfg):
            # lm-eval would read the whole file again for a group.
            variant_path = None if "group" in variant else path
            original(variant, variant_path, entries)

    _wrap(index.TaskIndex, "process_cfg", process_cfg)
    _wrap(index.TaskIndex, "build", build)


def _name_tasks(factory: ModuleType) -> None:
    """Tell a task its name, which a file with several tasks has for each."""

    def load(original: Any, self: Any, entry: Any, overrides: Any = None) -> Any:
        keys = {}
        if entry.cfg and "card" in entry.cfg:
            keys["task"] = entry.cfg["task"]
        keys.update(overrides or {})
        return original(self, entry, keys)

    _wrap(factory.TaskFactory, "_load_full_config", load)


def _add_models(_: ModuleType) -> None:
    """Register our model types by string, unless lm-eval has found them by itself."""
    from lm_eval.api.registry import model_registry

    for name, target in MODELS.items():
        if name not in model_registry:
            model_registry.register(name, target=target)


def _check_before_model(evaluate_config: ModuleType) -> None:
    """Check our tasks' keys and data once the command line has selected tasks."""

    def check(function: str, *args: Any) -> None:
        from importlib import import_module

        users_error = import_module("lm_eval_ext.errors").LmEvalExtError
        try:
            getattr(import_module("lm_eval_ext.harness.preflight"), function)(*args)
        except users_error:
            raise
        except Exception as error:  # noqa: BLE001 (a bug in the check must not stop a run)
            _print_problem(evaluate_config.__name__, error)

    def process_tasks(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            manager = original(self, *args, **kwargs)
        except ValueError as error:
            check("explain_tasks", error, self.include_path)
            raise
        check("check_run", manager, self)
        return manager

    _wrap(evaluate_config.EvaluatorConfig, "process_tasks", process_tasks)


def _guard_command_line(harness: ModuleType) -> None:
    """End the command line with one line and exit status 1 on our errors."""

    def execute(original: Any, self: Any, args: Any) -> None:
        from importlib import import_module

        with import_module("lm_eval_ext.errors").one_line_errors():
            original(self, args)

    _wrap(harness.HarnessCLI, "execute", execute)


_HOOKS: dict[str, tuple[Callable[[ModuleType], None], str]] = {
    "lm_eval.tasks._index": (_index_tasks, "our tasks are not found"),
    "lm_eval.tasks._factory": (_name_tasks, "our tasks cannot be loaded"),
    "lm_eval.models": (_add_models, "its own model types still work, ours do not"),
    "lm_eval.config.evaluate_config": (
        _check_before_model,
        "missing data are noticed only after the model is loaded; check: lm-eval-ext data verify",
    ),
    "lm_eval._cli.harness": (_guard_command_line, "errors will come with a traceback"),
}
"""The hook of each module of lm-eval's that is watched, and the remedy if it fails."""
