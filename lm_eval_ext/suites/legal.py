"""What may stand in a model's file: lm-eval's own options, and what each takes.

Keys and types come from lm-eval itself (its configuration class and its argument parser), so
a newer lm-eval brings its own.
"""

import argparse
import functools
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lm_eval_ext.text import one_line

OWN: Mapping[str, str] = MappingProxyType(
    {
        "display_name": "what tables call the model",
        "notes": "anything worth knowing",
        "launcher": "a command that starts several processes, such as accelerate launch",
    }
)
"""Keys of ours, all of them texts."""

SET_BY_RUN = frozenset(
    ("config", "tasks", "limit", "samples", "output_path", "log_samples", "use_cache",
     "predict_only", "check_integrity", "cache_requests")
)  # fmt: skip
"""lm-eval's options that belong to a run, or would take its results away."""


@dataclass(frozen=True)
class Option:
    """One of lm-eval's options.

    Attributes:
        hint: The type of its field in lm-eval's configuration.
        parse: What its argument parser makes of text; None if it takes no text.
    """

    hint: Any
    parse: Any


@functools.cache
def options() -> Mapping[str, Option]:
    """lm-eval's options that a model's file may set, by name."""
    from typing import get_type_hints

    from lm_eval._cli.run import Run
    from lm_eval.config.evaluate_config import EvaluatorConfig

    parser = argparse.ArgumentParser()
    run = Run(parser.add_subparsers())
    parsers = {action.dest: action.type for action in run._parser._actions}
    return MappingProxyType(
        {
            name: Option(hint, parsers.get(name))
            for name, hint in get_type_hints(EvaluatorConfig).items()
            if name not in SET_BY_RUN
        }
    )


@functools.cache
def model_types() -> tuple[str, ...]:
    """The values of ``model``: every model type that is registered."""
    from lm_eval_ext._autoload import install

    install()
    import lm_eval.models  # noqa: F401 (registers them)
    from lm_eval.api.registry import model_registry

    return tuple(sorted(model_registry.keys()))


def problem_with_key(key: Any) -> str | None:
    """What is wrong with a key, or None."""
    if key in OWN or key in options():
        return None
    if key in SET_BY_RUN:
        return f"{key} is for the run to set; leave it out"
    legal = ", ".join(sorted([*OWN, *options()]))
    return f"unknown key {one_line(str(key), limit=80)!r}; legal are {legal}"


def problem_with_value(key: str, value: Any) -> str | None:
    """What is wrong with the value of a legal key, or None."""
    if key in OWN:
        return _problem_with_own(key, value)
    if key == "model":
        if value in model_types():
            return None
        return f"no model type {_shown(value)}; legal are {', '.join(model_types())}"
    if key == "batch_size" and not _is_batch_size(value):
        return f"batch_size must be a number from 1, auto or auto:N, not {_shown(value)}"
    if key == "include_path" and isinstance(value, str) and not Path(value).is_dir():
        return f"include_path must be a folder that is there, not {_shown(value)}"
    option = options()[key]
    fits = _fits(option, value)
    return None if fits else f"{key} must be {_described(option.hint)}, not {_shown(value)}"


def _problem_with_own(key: str, value: Any) -> str | None:
    if not isinstance(value, str):
        return f"{key} must be a text, not {_shown(value)}"
    if key == "launcher" and not _is_command(value):
        return f"launcher must be a command with its quotes closed, not {_shown(value)}"
    return None


def _fits(option: Option, value: Any) -> bool:
    from pydantic import ConfigDict, TypeAdapter, ValidationError

    strict = ConfigDict(strict=True)
    try:
        TypeAdapter(option.hint, config=strict).validate_python(value)
    except ValidationError:
        pass
    else:
        return True
    if not isinstance(value, str) or _is_flag(option.hint):
        return False
    if option.hint is dict:  # key=value pairs, as on the command line
        return all("=" in part for part in value.split(",") if part)
    if option.parse is None:
        return False
    try:
        option.parse(value)
    except (ValueError, TypeError, argparse.ArgumentTypeError):
        return False
    return True


def _is_flag(hint: Any) -> bool:
    return hint is bool


def _is_batch_size(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return re.fullmatch(r"auto|(auto:)?0*[1-9][0-9]*", str(value)) is not None


def _is_command(text: str) -> bool:
    try:
        return bool(shlex.split(text)) or not text
    except ValueError:
        return False


def _described(hint: Any) -> str:
    names = {
        "dict": "a mapping of names to values",
        "bool": "true or false",
        "int": "a whole number",
        "str": "a text",
        "float": "a number",
        "list": "a list",
        "NoneType": "null",
    }
    parts = getattr(hint, "__args__", None) or (hint,)
    return " or ".join(names.get(getattr(part, "__name__", ""), str(part)) for part in parts)


def _shown(value: Any) -> str:
    return one_line(repr(value), limit=80)
