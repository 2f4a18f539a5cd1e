"""Reads YAML files into validated records, and texts line by line."""

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
Checked = TypeVar("Checked", bound=BaseModel)

_Quick: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The loader of libyaml, if PyYAML has it: it takes a tenth of the time, in every command."""


DEEPEST = 100
"""Levels of a file; libyaml descends by recursion, and 100,000 levels end the process."""


class _Loader(_Quick):  # type: ignore[misc]
    """Refuses a repeated key, whose first value PyYAML would silently drop, and deep nesting."""

    level = 0

    def descend_resolver(self, *where: Any) -> None:
        self.level += 1
        if self.level > DEEPEST:
            raise yaml.YAMLError(f"nested more than {DEEPEST} levels deep")
        super().descend_resolver(*where)

    def ascend_resolver(self) -> None:
        self.level -= 1
        super().ascend_resolver()

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002
        keys = [str(key.value) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.YAMLError(f"the key {key!r} is repeated{node.start_mark}")
        found: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
        return found


_Loader.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))


def read_yaml(
    path: Path, model: TypeAdapter[T], part: Callable[[Any], Any] = lambda content: content
) -> T:
    """Reads a YAML file, or a part of it, as its model has it; functions are names.

    Raises:
        DataError: It cannot be read or is malformed; file, key and problem are named.
    """
    try:
        content = part(yaml.load(path.read_text(encoding="utf-8"), _Loader))
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
    """The content of a YAML file that lies beside a module, given by its ``__file__``."""
    return yaml.load((Path(module).parent / name).read_text(encoding="utf-8"), _Loader)


def lines_of(path: Path) -> Iterator[tuple[str, str]]:
    """Yields the lines of a file that are not blank, each after its place (file and line).

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


def checked(schema: type[Checked], content: Mapping[str, Any], place: str) -> Checked:
    """Content as its schema has it.

    Raises:
        OptionError: With the place, the key, and the nearest legal one.
    """
    try:
        return schema.model_validate(content)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        text = first_problem(error)
        if problem["type"] == "value_error" and isinstance(problem["input"], Mapping):  # long
            text = f"{'.'.join(map(str, problem['loc']))}: {problem['ctx']['error']}".lstrip(": ")
        if problem["type"] == "extra_forbidden":
            text += nearest(name := str(problem["loc"][-1]), _keys(schema) - {name})
        raise OptionError(f"{place}: {one_line(text, limit=600)}") from None


def _keys(schema: type[BaseModel]) -> set[str]:
    """The keys of a schema and of those within it."""
    whole = schema.model_json_schema()
    parts = (whole, *whole.get("$defs", {}).values())
    return {key for part in parts for key in part.get("properties", ())}
