"""Reads YAML files, the only place that does, and texts line by line."""

import json
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from lm_eval_ext.errors import DataError, OptionError, first_problem, nearest
from lm_eval_ext.text import one_line

T = TypeVar("T")
SchemaT = TypeVar("SchemaT", bound=BaseModel)

_FastLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The loader of libyaml, if PyYAML has it: it takes a tenth of the time, in every command."""

DEEPEST = 100
"""Levels of a file; libyaml descends by recursion, and 100,000 levels end the process."""

_MAX_PROBLEM_CHARACTERS = 600


class _Loader(_FastLoader):  # type: ignore[misc]
    """Refuses a repeated key, whose first value PyYAML would silently drop, and deep nesting."""

    level = 0

    def descend_resolver(self, *position: object) -> None:
        self.level += 1
        if self.level > DEEPEST:
            raise yaml.YAMLError(f"nested more than {DEEPEST} levels deep")
        super().descend_resolver(*position)

    def ascend_resolver(self) -> None:
        self.level -= 1
        super().ascend_resolver()

    def construct_mapping(
        self,
        node: yaml.MappingNode,
        deep: bool = False,  # noqa: FBT001, FBT002 (PyYAML's signature)
    ) -> dict[Hashable, object]:
        seen = set()
        for key_node, _ in node.value:
            key = str(key_node.value)
            if key in seen:
                raise yaml.YAMLError(f"the key {key!r} is repeated{node.start_mark}")
            seen.add(key)
        mapping: dict[Hashable, object] = super().construct_mapping(node, deep=deep)
        return mapping


def _function_name(loader: _Loader, node: yaml.ScalarNode) -> object:
    return loader.construct_scalar(node)


_Loader.add_constructor("!function", _function_name)


def _load_yaml(path: Path) -> Any:
    """Return the content of a YAML file; lm-eval's ``!function`` gives the function's name."""
    return yaml.load(path.read_text(encoding="utf-8"), _Loader)


def _unchanged(content: Any) -> Any:
    return content


def read_yaml(path: Path, model: TypeAdapter[T], select: Callable[[Any], object] = _unchanged) -> T:
    """Read a YAML file, or a part of it, as its model has it.

    Args:
        path: The file.
        model: The model of the content, or of the part.
        select: Returns the part, given the content.

    Raises:
        DataError: The file cannot be read or is malformed; file, key and problem are named.
    """
    try:
        content = select(_load_yaml(path))
        # Through JSON, where a strict model takes a list for a tuple.
        return model.validate_json(json.dumps(content, default=str))
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
    except ValidationError as error:
        problem = "the file is empty" if content is None else first_problem(error)
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError) as error:
        problem = f"not valid YAML: {error}"  # also not UTF-8
    raise DataError(one_line(f"{path}: {problem}").replace('"<unicode string>", ', ""))


@cache
def embedded(module: str, name: str) -> Any:
    """Return the content of a YAML file that ships.

    Args:
        module: The ``__file__`` of the module that it lies beside.
        name: Its path from there.
    """
    return _load_yaml(Path(module).parent / name)


def lines_of(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines of a file that are not blank, each after its position (file and line).

    Raises:
        DataError: The file cannot be read, or is not in UTF-8.
    """
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield f"{path}:{number}", line.rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({one_line(str(error), limit=200)})") from None


class Strict(BaseModel):
    """A record that refuses undeclared keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Exact(Strict, strict=True):
    """A record that converts nothing either: a number in quotes is a mistake."""


def checked(schema: type[SchemaT], content: Mapping[str, Any], location: str) -> SchemaT:
    """Return content as its schema has it.

    Args:
        schema: The model.
        content: The keys with their values.
        location: Where the content is from, for the error.

    Raises:
        OptionError: A key or a value is not legal; the line has the location, the key, and the
            nearest legal one.
    """
    try:
        return schema.model_validate(content)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        text = first_problem(error)
        # The input would be the whole content.
        if problem["type"] == "value_error" and isinstance(problem["input"], Mapping):
            key = ".".join(map(str, problem["loc"]))
            text = f"{key}: {problem['ctx']['error']}".lstrip(": ")
        if problem["type"] == "extra_forbidden":
            name = str(problem["loc"][-1])
            text += nearest(name, _keys(schema) - {name})
        line = one_line(text, limit=_MAX_PROBLEM_CHARACTERS)
        raise OptionError(f"{location}: {line}") from None


def _keys(schema: type[BaseModel]) -> set[str]:
    """Return the keys of a schema and of those within it."""
    top_level = schema.model_json_schema()
    schemas = [top_level, *top_level.get("$defs", {}).values()]
    keys: set[str] = set()
    for content in schemas:
        keys.update(content.get("properties", ()))
    return keys
