"""Reads models' files and checks every key and value before anything runs.

The keys are lm-eval's own options and some of ours. lm-eval's come from its configuration class,
so a newer lm-eval brings its own.
"""

import functools
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import (
    AfterValidator,
    BeforeValidator,
    DirectoryPath,
    Field,
    TypeAdapter,
    create_model,
)

from lm_eval_ext.errors import OptionError
from lm_eval_ext.reading import Exact, checked, read_yaml
from lm_eval_ext.results import model_facts
from lm_eval_ext.text import one_line, quantity

if TYPE_CHECKING:
    from lm_eval.config.evaluate_config import EvaluatorConfig

Settings: TypeAlias = Mapping[str, Any]
"""lm-eval's options, as a model's file has them."""

Resources: TypeAlias = dict[str, Any]
"""What a job needs, as the parameters of submitit."""

SUFFIXES = (".yaml", ".yml")

SET_BY_RUN = frozenset(
    ("config", "tasks", "limit", "samples", "output_path", "log_samples", "use_cache",
     "predict_only", "check_integrity", "cache_requests")
)  # fmt: skip
"""lm-eval's options that a run sets itself, or under which it would have no results."""

_BATCH_SIZE = re.compile(r"auto|(auto:)?0*[1-9][0-9]*")


def _check_command(text: str) -> str:
    if text and not shlex.split(text):
        raise ValueError("it is empty")
    return text


def _check_batch_size(value: object) -> object:
    if isinstance(value, bool) or not _BATCH_SIZE.fullmatch(str(value)):
        raise ValueError("it must be a number from 1, auto or auto:N")
    return value


def _check_model_type(name: str) -> str:
    legal_types = model_types()
    if name not in legal_types:
        raise ValueError(f"no such model type; use one of {', '.join(legal_types)}")
    return name


def _check_mapping(value: object) -> object:
    """Check an option that lm-eval takes as a mapping, or as ``key=value`` pairs."""
    is_mapping = isinstance(value, dict)
    if isinstance(value, str):
        is_mapping = all("=" in pair for pair in value.split(",") if pair)
    if not is_mapping:
        raise ValueError("it must be a mapping or key=value pairs")
    return value


def _parse_quantity(value: object) -> object:
    """Return a text such as 7B as a number; any other value is left to pydantic."""
    return quantity(value) or value


class _CheckedKeys(Exact):
    """Keys of ours, and lm-eval's that are checked further than by their types."""

    display_name: str = ""
    notes: str = ""
    launcher: Annotated[str, AfterValidator(_check_command)] = ""
    pretraining_tokens: Annotated[float, BeforeValidator(_parse_quantity), Field(ge=0)] = 0
    training_share: Annotated[float, Field(ge=0, le=1)] = 0
    did_not_learn: str = ""
    resources: Resources = {}

    model: Annotated[str, AfterValidator(_check_model_type)]
    batch_size: Annotated[object, AfterValidator(_check_batch_size)] = 1
    include_path: Annotated[DirectoryPath, Field(strict=False)] = Path()
    seed: object = None


@functools.cache
def _schema() -> type[_CheckedKeys]:
    """Return all keys of a model's file: ours, and lm-eval's with the types it declares."""
    from typing import get_type_hints

    from lm_eval.config.evaluate_config import EvaluatorConfig

    definitions: dict[str, Any] = {}
    for key in model_facts.KEYS:
        definitions[key] = (Annotated[object, AfterValidator(_fact_check(key))], None)
    for key, hint in get_type_hints(EvaluatorConfig).items():
        if key in SET_BY_RUN or key in _CheckedKeys.model_fields:
            continue
        if hint is dict:
            hint = Annotated[object, AfterValidator(_check_mapping)]  # noqa: PLW2901
        definitions[key] = (hint, None)
    return create_model("ModelFile", __base__=_CheckedKeys, **definitions)


def _fact_check(key: str) -> Callable[[object], object]:
    """Return a function that checks a value of one of the facts about a model."""

    def check(value: object) -> object:
        if not model_facts.is_legal(key, value):
            raise ValueError(f"it must be {model_facts.KEYS[key]}")
        return value

    return check


@dataclass(frozen=True)
class ModelFile:
    """A model as its file describes it.

    Attributes:
        path: The file.
        text: Its content.
        name: The name of the model's folder in the output.
        settings: lm-eval's options.
        display_name: The name that readers see.
        launcher: A command that starts the evaluation; "" for none.
        resources: What a job needs, in the words of submitit.
    """

    path: Path
    text: str
    name: str
    settings: Settings
    display_name: str
    launcher: str
    resources: Resources


def read_model_files(paths: Sequence[Path]) -> list[ModelFile]:
    """Read files, and of folders every ``.yaml`` in them, in alphabetical order.

    Raises:
        OptionError: A file does not exist, two have the same name, or one has a wrong key or
            value; the line has the file, the key and the legal values.
    """
    files: dict[Path, None] = {}
    for path in paths:
        files.update(dict.fromkeys(_files(path)))
    models = [_read_model_file(file) for file in files]
    for attribute in ("name", "display_name"):
        models_by_name: dict[str, ModelFile] = {}
        for model in models:
            name = getattr(model, attribute).casefold()
            namesake = models_by_name.setdefault(name, model)
            if namesake is not model:
                raise OptionError(
                    f"{namesake.path} and {model.path} have the same {attribute}, {name!r}; "
                    "change one"
                )
    return models


def lm_eval_config(settings: Settings) -> "EvaluatorConfig":
    """Return lm-eval's configuration of a run: checked, texts parsed, defaults filled in.

    Raises:
        ValueError: lm-eval does not accept a value, or two together.
    """
    from lm_eval.config.evaluate_config import EvaluatorConfig

    return EvaluatorConfig(**settings)._configure()


def _files(path: Path) -> list[Path]:
    """Return the models' files at a path of ``--models``."""
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES)
        if not files:
            raise OptionError(f"no .yaml file in {path}; it needs one per model")
        return files
    if not path.is_file():
        raise OptionError(f"no file or folder {path}; --models takes one YAML file per model")
    return [path]


def _read_model_file(file: Path) -> ModelFile:
    """Read and check a model's file."""
    from lm_eval.config.evaluate_config import EvaluatorConfig

    content = read_yaml(file, TypeAdapter(dict[str, Any]))
    forbidden_keys = content.keys() & SET_BY_RUN
    if forbidden_keys:
        raise OptionError(f"{file}: {min(forbidden_keys)} is set by the run; leave it out")
    keys = checked(_schema(), content, str(file))
    options = {field.name for field in fields(EvaluatorConfig)}
    settings = {key: value for key, value in content.items() if key in options}
    try:
        lm_eval_config(settings)
    except (ValueError, TypeError) as error:
        raise OptionError(f"{file}: {one_line(str(error), limit=300)}") from None
    return ModelFile(
        path=file,
        text=file.read_text(encoding="utf-8"),
        name=file.stem,
        settings=settings,
        display_name=one_line(keys.display_name or file.stem),
        launcher=keys.launcher,
        resources=keys.resources,
    )


@functools.cache
def model_types() -> tuple[str, ...]:
    """Return the values of ``model``: every model type that is registered."""
    from lm_eval_ext._autoload import install

    install()
    import lm_eval.models  # noqa: F401 (registers them)
    from lm_eval.api.registry import model_registry

    return tuple(sorted(model_registry.keys()))
