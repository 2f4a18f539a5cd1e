"""The declared sources (``sources.yaml``): strictly validated, read once.

The environment variable ``LM_EVAL_EXT_SOURCES`` names a file that replaces the packaged one.
It is meant for tests and for private mirrors with files of their own. Manifests lie in the
folder ``manifests`` beside it.
"""

import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import yaml
from pydantic import Field, TypeAdapter, ValidationError

from lm_eval_ext.data.declared import FileSpec, Name, Source
from lm_eval_ext.data.listing import read_manifest
from lm_eval_ext.errors import DataError
from lm_eval_ext.text import one_line

_PACKAGED = Path(__file__).with_name("sources.yaml")
_NAMES_SHOWN = 10


class _UniqueKeyLoader(yaml.SafeLoader):
    """Refuses a repeated key: PyYAML would silently drop the first file of that name."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
        if (key := _repeated(str(key.value) for key, _ in node.value)) is not None:
            raise yaml.YAMLError(f"the key {key!r} stands twice{node.start_mark}")
        return super().construct_mapping(node, deep=deep)


_SCHEMA = TypeAdapter(Annotated[dict[Name, Source], Field(min_length=1)])


@lru_cache
def _load(path: Path) -> Mapping[str, Source]:
    try:
        text = path.read_text(encoding="utf-8")
        declared = _SCHEMA.validate_python(yaml.load(text, _UniqueKeyLoader))
    except OSError as error:
        raise DataError(one_line(f"{path}: cannot be read ({error.strerror})")) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DataError(one_line(f"{path}: no legal YAML: {error}")) from error
    except ValidationError as error:
        raise DataError(one_line(f"{path}: {_first_problem(error)}")) from error
    for name, source in declared.items():
        if source.manifest and source.folder:
            files = _read_manifest(path.parent / "manifests" / source.manifest, source.folder)
            declared[name] = source.model_copy(update={"files": files})
    paths = (spec.path for source in declared.values() for spec in source.files.values())
    if (shared := _repeated(paths)) is not None:
        raise DataError(one_line(f"{path}: two files have the path {shared!r}"))
    return MappingProxyType(declared)


def _read_manifest(path: Path, folder: str) -> dict[str, FileSpec]:
    try:
        return read_manifest(path, folder)
    except OSError as error:
        raise DataError(one_line(f"{path}: cannot be read ({error.strerror})")) from error
    except ValidationError as error:
        raise DataError(one_line(f"{path}: {_first_problem(error)}")) from error
    except ValueError as error:  # also text that is no UTF-8
        raise DataError(one_line(f"{path}: no legal manifest: {error}")) from error


def _repeated(items: Iterable[str]) -> str | None:
    """Returns the first item that has been there before."""
    seen: set[str] = set()
    for item in items:
        if item in seen:
            return item
        seen.add(item)
    return None


def _first_problem(error: ValidationError) -> str:
    problems = error.errors(include_url=False)
    first = problems[0]
    key = ".".join(str(part) for part in first["loc"]) or "top level"
    if first["type"] == "extra_forbidden":
        message = "unknown key"
    elif first["type"] == "missing":
        message = "the key is missing"
    else:
        message = f"{first['msg']}, got {first['input']!r:.80}"
    more = f" (and {len(problems) - 1} more problems)" if len(problems) > 1 else ""
    return f"{key}: {message}{more}"


def sources() -> Mapping[str, Source]:
    """Returns all declared sources by name; the file is read once per process.

    Raises:
        DataError: The file cannot be read or does not follow the schema.
    """
    replaced = os.environ.get("LM_EVAL_EXT_SOURCES")
    return _load(Path(replaced).expanduser() if replaced else _PACKAGED)


def find_source(name: str) -> Source:
    """Returns a source by name.

    Raises:
        DataError: No such source; the message names the legal ones.
    """
    if name not in sources():
        legal = ", ".join(sources())
        raise DataError(one_line(f"no data source {name!r}; the sources are: {legal}"))
    return sources()[name]


def find_file(source: str, file: str) -> FileSpec:
    """Returns a file of a source by its short name.

    Raises:
        DataError: No such source or file; the message names the legal ones.
    """
    files = find_source(source).files
    if file not in files:
        legal = ", ".join(islice(files, _NAMES_SHOWN))
        if len(files) > _NAMES_SHOWN:
            legal += f", … ({len(files):,}; `lm-eval-ext data list --json` names them all)"
        message = f"data source {source!r} has no file {file!r}; its files are: {legal}"
        raise DataError(one_line(message))
    return files[file]
