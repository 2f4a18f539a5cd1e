"""Models' files: read, with every key and value checked before anything runs.

The keys are lm-eval's own options and some of ours. lm-eval's come from its configuration class,
so a newer lm-eval brings its own.
"""

import functools
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

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

SUFFIXES = (".yaml", ".yml")

SET_BY_RUN = frozenset(
    ("config", "tasks", "limit", "samples", "output_path", "log_samples", "use_cache",
     "predict_only", "check_integrity", "cache_requests")
)  # fmt: skip
"""lm-eval's options that a run sets itself, or under which it would have no results."""


def _command(text: str) -> str:
    if text and not shlex.split(text):
        raise ValueError("it is empty")
    return text


def _batch_size(value: Any) -> Any:
    if isinstance(value, bool) or not re.fullmatch(r"auto|(auto:)?0*[1-9][0-9]*", str(value)):
        raise ValueError("it must be a number from 1, auto or auto:N")
    return value


def _type(value: str) -> str:
    if value not in (types := model_types()):
        raise ValueError(f"no such model type; use one of {', '.join(types)}")
    return value


def _pairs(value: Any) -> Any:
    pairs = isinstance(value, str) and all("=" in one for one in value.split(",") if one)
    if not pairs and not isinstance(value, dict):
        raise ValueError("it must be a mapping or key=value pairs")
    return value


_Quantity = BeforeValidator(lambda value: quantity(value) or value)


class Own(Exact):
    """Keys of ours, and lm-eval's that are checked further than by their types."""

    display_name: str = ""
    notes: str = ""
    launcher: Annotated[str, AfterValidator(_command)] = ""
    pretraining_tokens: Annotated[float, _Quantity, Field(ge=0)] = 0
    training_share: Annotated[float, Field(ge=0, le=1)] = 0
    did_not_learn: str = ""
    resources: dict[str, Any] = {}

    model: Annotated[str, AfterValidator(_type)]
    batch_size: Annotated[Any, AfterValidator(_batch_size)] = 1
    include_path: Annotated[DirectoryPath, Field(strict=False)] = Path()
    seed: Any = None


@functools.cache
def _schema() -> type[Own]:
    """All keys of a model's file: ours, and lm-eval's with the types of its configuration."""
    from typing import get_type_hints

    from lm_eval.config.evaluate_config import EvaluatorConfig

    def fact(key: str) -> Any:
        def check(value: Any) -> Any:
            if not model_facts.is_legal(key, value):
                raise ValueError(f"it must be {model_facts.KEYS[key]}")
            return value

        return Annotated[Any, AfterValidator(check)]

    known: dict[str, Any] = {key: (fact(key), None) for key in model_facts.KEYS}
    for key, hint in get_type_hints(EvaluatorConfig).items():
        if key not in SET_BY_RUN | Own.model_fields.keys():
            known[key] = (Annotated[Any, AfterValidator(_pairs)] if hint is dict else hint, None)
    return create_model("ModelFile", __base__=Own, **known)


@dataclass(frozen=True)
class ModelFile:
    """A model as its file describes it; ``name`` is that of its folder in the output."""

    path: Path
    text: str
    name: str
    settings: dict[str, Any]
    display_name: str
    launcher: str
    resources: dict[str, Any]


def read_model_files(paths: Sequence[Path]) -> list[ModelFile]:
    """Reads files, and of folders every ``.yaml`` in them, in alphabetical order.

    Raises:
        OptionError: If there is no such file, two have the same name, or one has a wrong key or
            value; file, line and the valid ones are named.
    """
    files = dict.fromkeys(file for path in paths for file in _files(path))
    models = [_read(file) for file in files]
    for what in ("name", "display_name"):
        known: dict[str, ModelFile] = {}
        for model in models:
            name = getattr(model, what).casefold()
            other = known.setdefault(name, model)
            if other is not model:
                raise OptionError(
                    f"{other.path} and {model.path} have the same {what}, {name!r}; change one"
                )
    return models


def lm_eval_config(settings: Mapping[str, Any]) -> Any:
    """lm-eval's ``EvaluatorConfig`` of these options: checked, texts parsed, defaults filled in.

    Raises:
        ValueError: If lm-eval does not accept a value, or two together.
    """
    from lm_eval.config.evaluate_config import EvaluatorConfig

    return EvaluatorConfig(**settings)._configure()


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
    from lm_eval.config.evaluate_config import EvaluatorConfig

    content = read_yaml(file, TypeAdapter(dict[str, Any]))
    for key in content.keys() & SET_BY_RUN:
        raise OptionError(f"{file}: {key} is set by the run; leave it out")
    own = checked(_schema(), content, str(file))
    options = {one.name for one in fields(EvaluatorConfig)}
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
        display_name=one_line(own.display_name or file.stem),
        launcher=own.launcher,
        resources=own.resources,
    )


@functools.cache
def model_types() -> tuple[str, ...]:
    """The values of ``model``: every model type that is registered."""
    from lm_eval_ext._autoload import install

    install()
    import lm_eval.models  # noqa: F401 (registers them)
    from lm_eval.api.registry import model_registry

    return tuple(sorted(model_registry.keys()))
