"""Models' files: read, with every key and value checked before anything runs.

The keys are lm-eval's own options and some of ours. Names and types of options come from
lm-eval itself (its configuration class and its argument parser), so a newer lm-eval brings its
own.
"""

import argparse
import functools
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

from lm_eval_ext.errors import OptionError
from lm_eval_ext.results import about
from lm_eval_ext.results.files import UNLEARNED
from lm_eval_ext.text import one_line, quantity

OWN: Mapping[str, str] = MappingProxyType(
    {
        "display_name": "what tables call the model",
        "notes": "anything worth knowing",
        "launcher": "a command that starts several processes, such as accelerate launch",
        "pretraining_tokens": "how many tokens it was pretrained on, such as 100M or 0",
        "training_share": "the share of a training set that it was fine-tuned on, 0 to 1",
        UNLEARNED: "why training did not reach its gates; reports then leave the model out",
        "resources": "what a scheduler has to give: gpus, memory, time and the like",
        **about.KEYS,
    }
)
"""Keys of ours."""

QUANTITIES: Mapping[str, float] = MappingProxyType(
    {"pretraining_tokens": 1e18, "training_share": 1.0}
)
"""Keys of ours that are numbers from 0, with the largest; figures show them (docs/plots.md)."""

RESOURCES: Mapping[str, tuple[type, ...]] = MappingProxyType(
    {
        "gpus": (int,),
        "cpus": (int,),
        "memory": (str,),
        "time": (str, int),
        "partition": (str,),
        "account": (str,),
        "extra": (dict,),
    }
)
"""Keys of ``resources`` and their types."""

SET_BY_RUN = frozenset(
    ("config", "tasks", "limit", "samples", "output_path", "log_samples", "use_cache",
     "predict_only", "check_integrity", "cache_requests")
)  # fmt: skip
"""lm-eval's options that a run sets itself, or under which it would have no results."""


@dataclass(frozen=True)
class Option:
    """An lm-eval option: its type, and what converts it from text, if anything."""

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
        return f"{key} is set by the run; leave it out"
    known = ", ".join(sorted([*OWN, *options()]))
    return f"unknown key {one_line(str(key), limit=80)!r}; use one of {known}"


def problem_with_value(key: str, value: Any) -> str | None:
    """What is wrong with the value of a valid key, or None."""
    if key in OWN:
        return _problem_with_own(key, value)
    if key == "model":
        if value in model_types():
            return None
        return f"no model type {_shown(value)}; use one of {', '.join(model_types())}"
    if key == "batch_size" and not _is_batch_size(value):
        return f"batch_size must be a number from 1, auto or auto:N, not {_shown(value)}"
    if key == "include_path" and isinstance(value, str) and not Path(value).is_dir():
        return f"include_path must be an existing folder, not {_shown(value)}"
    option = options()[key]
    fits = _fits(option, value)
    return None if fits else f"{key} must be {_described(option.hint)}, not {_shown(value)}"


def _problem_with_own(key: str, value: Any) -> str | None:
    if key == "resources":
        return _problem_with_resources(value)
    if key in QUANTITIES:
        fits = (number := quantity(value)) is not None and 0 <= number <= QUANTITIES[key]
        return None if fits else f"{key} must be {OWN[key]}, not {_shown(value)}"
    if key in about.KEYS:
        return about.problem(key, value)
    if not isinstance(value, str):
        return f"{key} must be text, not {_shown(value)}"
    if key == "launcher" and not _is_command(value):
        return f"launcher must be a command with closed quotes, not {_shown(value)}"
    return None


def _problem_with_resources(value: Any) -> str | None:
    known = ", ".join(RESOURCES)
    if not isinstance(value, dict):
        return f"resources must be a mapping with keys of {known}, not {_shown(value)}"
    for key, one in value.items():
        if key not in RESOURCES:
            return f"resources: unknown key {_shown(key)}; use {known}"
        if isinstance(one, bool) or not isinstance(one, RESOURCES[key]):
            hint = " or ".join(_described(kind) for kind in RESOURCES[key])
            return f"resources: {key} must be {hint}, not {_shown(one)}"
        if isinstance(one, int) and one < 0:
            return f"resources: {key} must be 0 or more, not {one}"
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
    if not isinstance(value, str) or option.hint is bool:
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
        "str": "text",
        "float": "a number",
        "list": "a list",
        "NoneType": "null",
    }
    parts = getattr(hint, "__args__", None) or (hint,)
    return " or ".join(names.get(getattr(part, "__name__", ""), str(part)) for part in parts)


def _shown(value: Any) -> str:
    return one_line(repr(value), limit=80)


SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class ModelFile:
    """A model as its file describes it; ``name`` is that of its folder in the output."""

    path: Path
    text: str
    name: str
    display_name: str
    launcher: str
    resources: dict[str, Any]
    settings: dict[str, Any]


def read_model_files(paths: Sequence[Path]) -> list[ModelFile]:
    """Reads files, and of folders every ``.yaml`` in them, in alphabetical order.

    Raises:
        OptionError: If there is no such file, two have the same name, or one has a wrong key or
            value; file, line and the valid ones are named.
    """
    files = list(dict.fromkeys(file for path in paths for file in _files(path)))
    if not files:
        raise OptionError("--models names no file")
    models = [_read(file) for file in files]
    for what in ("name", "display_name"):
        counts = Counter(getattr(model, what).casefold() for model in models)
        for twice in (name for name, count in counts.items() if count > 1):
            same = [str(m.path) for m in models if getattr(m, what).casefold() == twice]
            remedy = "rename one" if what == "name" else "change one display_name"
            raise OptionError(f"{' and '.join(same)} are both called {twice!r}; {remedy}")
    return models


def _files(path: Path) -> Iterable[Path]:
    if path.is_dir():
        found = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES)
        if not found:
            raise OptionError(f"no .yaml file in {path}; it needs one per model")
        return found
    if not path.is_file():
        raise OptionError(f"no file or folder {path}; --models takes one YAML file per model")
    return [path]


def _read(file: Path) -> ModelFile:
    import yaml

    try:
        text = file.read_text(encoding="utf-8")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        content = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise OptionError(f"{file}:{line}: not YAML ({one_line(str(error.problem))})") from None
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise OptionError(f"{file}: cannot be read ({one_line(str(error), limit=200)})") from None
    if not isinstance(node, yaml.MappingNode) or not isinstance(content, dict):
        raise OptionError(f"{file}:1: must be a mapping, such as `model: hf`")
    seen = set()
    for key_node, value_node in node.value:
        place = f"{file}:{key_node.start_mark.line + 1}"
        key = key_node.value
        problem = problem_with_key(key)
        if problem is None and key in seen:
            problem = f"{key} is given a second time"
        if problem is None:
            place = f"{file}:{value_node.start_mark.line + 1}"
            problem = problem_with_value(key, content.get(key))
        if problem:
            raise OptionError(f"{place}: {problem}")
        seen.add(key)
    if "model" not in seen:
        raise OptionError(f"{file}:1: no model; name a model type, such as `model: hf`")
    settings = {key: value for key, value in content.items() if key not in OWN}
    try:
        lm_eval_config(settings)
    except (ValueError, TypeError) as error:
        raise OptionError(f"{file}: {one_line(str(error), limit=300)}") from None
    return ModelFile(
        path=file,
        text=text,
        name=file.stem,
        display_name=one_line(content.get("display_name") or file.stem),
        launcher=content.get("launcher") or "",
        resources=content.get("resources") or {},
        settings=settings,
    )


def lm_eval_config(settings: Mapping[str, Any]) -> Any:
    """lm-eval's ``EvaluatorConfig`` of these options: checked, texts parsed, defaults filled in.

    Raises:
        ValueError: If lm-eval does not accept a value, or two together.
        TypeError: Likewise.
    """
    import yaml
    from lm_eval.config.evaluate_config import EvaluatorConfig

    with TemporaryDirectory() as folder:
        file = Path(folder) / "model.yaml"  # from_config takes nothing but a file
        file.write_text(yaml.safe_dump(dict(settings)), encoding="utf-8")
        return EvaluatorConfig.from_config(file)
