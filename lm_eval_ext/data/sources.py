"""The declared sources (``sources.yaml``): strictly validated, read once.

The environment variable ``LM_EVAL_EXT_SOURCES`` names a file that replaces the packaged one.
It is meant for tests and for private mirrors with files of their own.
"""

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Annotated, Any
from urllib.parse import quote, urljoin

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)

from lm_eval_ext.errors import DataError
from lm_eval_ext.text import one_line

_PACKAGED = Path(__file__).with_name("sources.yaml")


def _inside(path: str) -> str:
    """Refuses paths that would leave the data folder or mean different files elsewhere."""
    if "\\" in path or ".." in path.split("/") or str(PurePosixPath(path)) != path:
        raise ValueError("write a plain relative path with '/' and without '..'")
    if PurePosixPath(path).is_absolute() or len(PurePosixPath(path).parts) < 2:  # noqa: PLR2004
        raise ValueError("write a relative path with at least one folder")
    return path


Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]*$")]
Line = Annotated[str, StringConstraints(pattern=r"^\S.*$")]
RelativePath = Annotated[Line, AfterValidator(_inside)]


class _Strict(BaseModel):
    """No unknown keys, no conversions (a size in quotes is a mistake), no later changes."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class FileSpec(_Strict):
    """One file: where it lies in every copy of the data, and its exact content."""

    path: RelativePath
    url: Annotated[str, StringConstraints(pattern=r"^\S+$")]
    size: PositiveInt
    """In bytes."""
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Source(_Strict):
    """Files that share an origin, a revision, a licence and a citation."""

    title: Line
    homepage: Annotated[str, StringConstraints(pattern=r"^https?://\S+$")]
    revision: Line
    url: Annotated[str, StringConstraints(pattern=r"^https?://\S+/$")]
    licence: Line
    citation: Line
    terms: str | None = None
    files: Annotated[dict[Name, FileSpec], Field(min_length=1)]

    @property
    def size(self) -> int:
        """The sum of all files in bytes."""
        return sum(spec.size for spec in self.files.values())

    def url_of(self, spec: FileSpec, mirror: str | None = None) -> str:
        """Returns the URL to download a file from.

        Args:
            spec: One of this source's files.
            mirror: URL of a folder that is laid out like a local copy; replaces upstream.
        """
        if mirror:
            return f"{mirror.rstrip('/')}/{quote(spec.path)}"
        revision = quote(self.revision, safe="")
        return urljoin(self.url, spec.url).replace("{revision}", revision)


class _UniqueKeyLoader(yaml.SafeLoader):
    """Refuses a repeated key: PyYAML would silently drop the first file of that name."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
        keys = [key.value for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
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
    paths = [spec.path for source in declared.values() for spec in source.files.values()]
    for shared in paths:
        if paths.count(shared) > 1:
            raise DataError(one_line(f"{path}: two files have the path {shared!r}"))
    return MappingProxyType(declared)


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
        legal = ", ".join(files)
        message = f"data source {source!r} has no file {file!r}; its files are: {legal}"
        raise DataError(one_line(message))
    return files[file]
