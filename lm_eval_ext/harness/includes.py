"""Reads each included file only once while lm-eval builds its index.

lm-eval 0.4.13 reads an included file again for every file that includes it, which takes half of the
time for its index of 14,000 tasks. The hook in :mod:`lm_eval_ext._autoload` builds the index inside
:func:`read_once`, so that with our tasks in it the index costs less than without.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from copy import deepcopy
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any

_Read = dict[str, tuple[dict[str, Any], set[Path]]]

_read: ContextVar[_Read | None] = ContextVar("lm_eval_ext_included_files", default=None)
"""Each included file's content, and the files it includes; None outside of read_once."""

_NAMED = inspect.Parameter.KEYWORD_ONLY
PARAMETERS = [
    ("path", inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty),
    ("resolve_func", _NAMED, True),
    ("recursive", _NAMED, True),
    ("_seen", _NAMED, None),
]
"""Of the ``load_yaml`` that is replaced; one with other parameters is left alone."""


@contextmanager
def read_once() -> Iterator[None]:
    """Caches the included files that lm-eval reads, until the block ends.

    Configurations are equal to those that lm-eval reads itself, each a separate copy, and files
    that fail to load fail in the same way. Only files that are read without their functions, as for
    an index, are cached.
    """
    with suppress(ImportError, AttributeError, TypeError, ValueError):
        # A newer lm-eval may have another loader.
        _cache_includes(import_module("lm_eval.tasks._yaml_loader"))
    before = _read.set({})
    try:
        yield
    finally:
        _read.reset(before)


def _cache_includes(loader: Any) -> None:
    """Replaces the module's ``load_yaml``, which calls itself for the files that are included."""
    original: Callable[..., dict[str, Any]] = loader.load_yaml
    if getattr(original, "lm_eval_ext", False):
        return
    parameters = inspect.signature(original).parameters.values()
    if [(one.name, one.kind, one.default) for one in parameters] != PARAMETERS:
        return

    @wraps(original)
    def load_yaml(
        path: str | Path,
        *,
        resolve_func: bool = True,
        recursive: bool = True,
        _seen: set[Path] | None = None,
    ) -> dict[str, Any]:
        known = _read.get()
        if known is None or resolve_func or not recursive or not isinstance(_seen, set):
            return original(path, resolve_func=resolve_func, recursive=recursive, _seen=_seen)
        found = known.get(str(path))
        if found is None:
            before = set(_seen)
            config = original(path, resolve_func=False, _seen=_seen)
            known[str(path)] = deepcopy(config), _seen - before
            return config
        config, files = found
        if not files.isdisjoint(_seen):  # lm-eval reports a file that is included twice
            return original(path, resolve_func=False, _seen=_seen)
        _seen |= files
        return deepcopy(config)

    load_yaml.lm_eval_ext = True  # type: ignore[attr-defined]
    loader.load_yaml = load_yaml
