"""Reading models' files: every key and value is checked before anything runs."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_ext.errors import OptionError
from lm_eval_ext.suites.legal import OWN, problem_with_key, problem_with_value
from lm_eval_ext.text import one_line

SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class ModelFile:
    """A model as its file describes it.

    Attributes:
        path: The file.
        text: Its content, as it stands.
        name: Of the model's folder in the output: the file's name without its ending.
        display_name: What tables call it.
        launcher: What starts the process, or "".
        settings: lm-eval's options.
    """

    path: Path
    text: str
    name: str
    display_name: str
    launcher: str
    settings: dict[str, Any]


def read_model_files(paths: Sequence[Path]) -> list[ModelFile]:
    """Reads files, and of folders every ``.yaml`` in them, in alphabetical order.

    Raises:
        OptionError: If there is no such file, two have one name, or one has a wrong key or
            value; file, line and legal set are named.
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
            raise OptionError(f"no .yaml file in {path}; one per model is wanted")
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
        raise OptionError(f"{file}:{line}: no YAML ({one_line(str(error.problem))})") from None
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise OptionError(f"{file}: cannot be read ({one_line(str(error), limit=200)})") from None
    if not isinstance(node, yaml.MappingNode) or not isinstance(content, dict):
        raise OptionError(f"{file}:1: a mapping is wanted, such as `model: hf`")
    seen = set()
    for key_node, value_node in node.value:
        place = f"{file}:{key_node.start_mark.line + 1}"
        key = key_node.value
        problem = problem_with_key(key)
        if problem is None and key in seen:
            problem = f"{key} stands here for the second time"
        if problem is None:
            place = f"{file}:{value_node.start_mark.line + 1}"
            problem = problem_with_value(key, content.get(key))
        if problem:
            raise OptionError(f"{place}: {problem}")
        seen.add(key)
    if "model" not in seen:
        raise OptionError(f"{file}:1: no model; name a model type, such as `model: hf`")
    _check_together(file, content)
    return ModelFile(
        path=file,
        text=text,
        name=file.stem,
        display_name=one_line(content.get("display_name") or file.stem),
        launcher=content.get("launcher") or "",
        settings={key: value for key, value in content.items() if key not in OWN},
    )


def _check_together(file: Path, content: dict[str, Any]) -> None:
    """lm-eval's own checks of options against each other."""
    from lm_eval.config.evaluate_config import EvaluatorConfig

    settings = {key: value for key, value in content.items() if key not in OWN}
    try:
        EvaluatorConfig(**settings, tasks=["any"])._parse_dict_args()._validate_arguments()
    except (ValueError, TypeError) as error:
        raise OptionError(f"{file}: {one_line(str(error), limit=300)}") from None
