"""Models' files: read, with every key and value checked before anything runs.

The keys are lm-eval's own options and some of ours. lm-eval's come from its configuration class,
so a newer lm-eval brings its own.
"""

import functools
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
    create_model,
)

from lm_eval_ext.errors import OptionError
from lm_eval_ext.results import about
from lm_eval_ext.text import one_line, quantity

SUFFIXES = (".yaml", ".yml")

SET_BY_RUN = frozenset(
    ("config", "tasks", "limit", "samples", "output_path", "log_samples", "use_cache",
     "predict_only", "check_integrity", "cache_requests")
)  # fmt: skip
"""lm-eval's options that a run sets itself, or under which it would have no results."""

STRICT = ConfigDict(extra="forbid", strict=True)
_BATCH_SIZE = re.compile(r"auto|(auto:)?0*[1-9][0-9]*")


def _command(text: str) -> str:
    if text and not shlex.split(text):
        raise ValueError("it is empty")
    return text


def _number(value: Any) -> float:
    found = quantity(value)
    if found is None or found < 0:
        raise ValueError("it must be a number from 0, such as 350M or 0.5")
    return found


class Resources(BaseModel):
    """What a scheduler has to give; ``time`` is in minutes."""

    model_config = STRICT
    gpus: NonNegativeInt = 0
    cpus: NonNegativeInt = 0
    memory: str = ""
    time: PositiveInt = 24 * 60
    partition: str = ""
    account: str = ""
    extra: dict[str, Any] = {}


class Own(BaseModel):
    """Keys of ours; :mod:`lm_eval_ext.results.about` has those that describe the model."""

    model_config = ConfigDict(extra="allow", strict=True)
    display_name: str = ""
    notes: str = ""
    launcher: Annotated[str, AfterValidator(_command)] = ""
    pretraining_tokens: Annotated[Any, AfterValidator(_number)] = 0
    training_share: Annotated[Any, AfterValidator(_number), Field(le=1)] = 0
    did_not_learn: str = ""
    resources: Resources = Resources()


@dataclass(frozen=True)
class ModelFile:
    """A model as its file describes it; ``name`` is that of its folder in the output."""

    path: Path
    text: str
    name: str
    settings: dict[str, Any]
    display_name: str
    launcher: str
    resources: Resources


def read_model_files(paths: Sequence[Path]) -> list[ModelFile]:
    """Reads files, and of folders every ``.yaml`` in them, in alphabetical order.

    Raises:
        OptionError: If there is no such file, two have the same name, or one has a wrong key or
            value; file, line and the valid ones are named.
    """
    files = list(dict.fromkeys(file for path in paths for file in _files(path)))
    models = [_read(file) for file in files]
    for what in ("name", "display_name"):
        counts = Counter(getattr(model, what).casefold() for model in models)
        for twice in (name for name, count in counts.items() if count > 1):
            same = [str(m.path) for m in models if getattr(m, what).casefold() == twice]
            remedy = "rename one" if what == "name" else "change one display_name"
            raise OptionError(f"{' and '.join(same)} are both called {twice!r}; {remedy}")
    return models


@functools.cache
def own_keys() -> frozenset[str]:
    """The keys that are no options of lm-eval."""
    return frozenset({*Own.model_fields, *about.KEYS})


def lm_eval_config(settings: Mapping[str, Any]) -> Any:
    """lm-eval's ``EvaluatorConfig`` of these options: checked, texts parsed, defaults filled in.

    Raises:
        ValueError: If lm-eval does not accept a value, or two together.
    """
    import yaml
    from lm_eval.config.evaluate_config import EvaluatorConfig

    with TemporaryDirectory() as folder:
        file = Path(folder) / "model.yaml"  # from_config takes nothing but a file
        file.write_text(yaml.safe_dump(dict(settings)), encoding="utf-8")
        return EvaluatorConfig.from_config(file)


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
    lines: dict[str, int] = {}
    for key, _ in node.value:
        line = key.start_mark.line + 1
        if key.value in lines:
            raise OptionError(f"{file}:{line}: {key.value} is given a second time")
        lines[key.value] = line
    settings = {key: value for key, value in content.items() if key not in own_keys()}
    for key, problem in _problems(lines, content, settings):
        raise OptionError(f"{file}:{lines.get(key, 1)}: {problem}")
    own = Own.model_validate(content)
    return ModelFile(
        path=file,
        text=text,
        name=file.stem,
        settings=settings,
        display_name=one_line(own.display_name or file.stem),
        launcher=own.launcher,
        resources=own.resources,
    )


def _problems(
    keys: Iterable[str], content: Mapping[str, Any], settings: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yields keys, each with what is wrong with it."""
    from lm_eval.config.evaluate_config import EvaluatorConfig

    known = {*own_keys(), *(one.name for one in fields(EvaluatorConfig))} - SET_BY_RUN
    for key in keys:
        if key in SET_BY_RUN:
            yield key, f"{key} is set by the run; leave it out"
        elif key not in known:
            yield key, f"unknown key {_shown(key)}; use one of {', '.join(sorted(known))}"
    types, model = model_types(), content.get("model")
    if model not in types:
        said = f"no model type {_shown(model)}" if model else "no model"
        yield "model", f"{said}; use one of {', '.join(types)}"
    size = content.get("batch_size", 1)
    if isinstance(size, bool) or not _BATCH_SIZE.fullmatch(str(size)):
        yield (
            "batch_size",
            f"batch_size must be a number from 1, auto or auto:N, not {_shown(size)}",
        )
    path = content.get("include_path")
    if isinstance(path, str) and not Path(path).is_dir():
        yield "include_path", f"include_path must be an existing folder, not {_shown(path)}"
    for key in content.keys() & about.KEYS.keys():
        if problem := about.problem(key, content[key]):
            yield key, problem
    yield from _wrong_types(content, settings)


def _wrong_types(
    content: Mapping[str, Any], settings: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    from typing import get_type_hints

    from lm_eval.config.evaluate_config import EvaluatorConfig

    hints = get_type_hints(EvaluatorConfig)
    for key, value in settings.items():
        pairs = isinstance(value, str) and all("=" in one for one in value.split(",") if one)
        if hints.get(key) is dict and not (isinstance(value, dict) or pairs):
            yield key, f"{key} must be a mapping or key=value pairs, not {_shown(value)}"
    try:
        Own.model_validate(content)
        config = asdict(lm_eval_config(settings))  # texts are parsed by lm-eval
        given = {key: config[key] for key in settings if key != "batch_size"}
        types_of: dict[str, Any] = {key: (hints[key], ...) for key in given}
        create_model("Options", __config__=STRICT, **types_of).model_validate(given)
    except ValidationError as error:
        for one in error.errors():
            where = [str(part) for part in one["loc"]]
            said = one["msg"].removeprefix("Value error, ")
            if one["type"] == "extra_forbidden":
                said = f"unknown key; use one of {', '.join(Resources.model_fields)}"
            yield where[0], one_line(f"{'.'.join(where)}: {said}, not {_shown(one['input'])}")
    except (ValueError, TypeError) as error:
        yield "", one_line(str(error), limit=300)


@functools.cache
def model_types() -> tuple[str, ...]:
    """The values of ``model``: every model type that is registered."""
    from lm_eval_ext._autoload import install

    install()
    import lm_eval.models  # noqa: F401 (registers them)
    from lm_eval.api.registry import model_registry

    return tuple(sorted(model_registry.keys()))


def _shown(value: Any) -> str:
    return one_line(repr(value), limit=80)
