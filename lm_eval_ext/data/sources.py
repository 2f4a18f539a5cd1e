"""The declared data sources: ``sources.yaml`` and the manifests, validated and read once.

A source with too many files for ``sources.yaml`` has a manifest: a table in the folder
``manifests`` with a header and the columns path, size (bytes) and SHA-256, separated by tabs
and sorted by path. A path is relative to the source's ``url`` and, in every copy of the data, to
its ``folder``. :mod:`lm_eval_ext.data.manifest` writes them.

The environment variable ``LM_EVAL_EXT_SOURCES`` names a file that replaces the packaged one,
for tests and for private mirrors with files of their own; its manifests are in the folder
``manifests`` beside it.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from pathlib import Path
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
    model_validator,
)

from lm_eval_ext.errors import DataError, first_problem
from lm_eval_ext.text import one_line

HEADER = "path\tsize\tsha256"
"""The first line of a manifest."""

_PACKAGED = Path(__file__).with_name("sources.yaml")
_NAMES_SHOWN = 10


def _inside(path: str) -> str:
    """Refuses paths that leave the data folder or mean different files on other systems."""
    parts = path.split("/")
    if "\\" in path or ".." in parts or "." in parts or "" in parts[1:]:
        raise ValueError("write a plain relative path with '/' and without '..'")
    if parts[0] == "" or len(parts) < 2:  # noqa: PLR2004
        raise ValueError("write a relative path with at least one folder")
    return path


def _folder(path: str) -> str:
    """Refuses what is not a prefix of a legal path."""
    _inside(f"{path}file")
    return path


Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]*$")]
Line = Annotated[str, StringConstraints(pattern=r"^\S.*$")]
RelativePath = Annotated[Line, AfterValidator(_inside)]
Folder = Annotated[str, StringConstraints(pattern=r"^\S.*/$"), AfterValidator(_folder)]
ManifestName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]*\.tsv$")]


class _Strict(BaseModel):
    """No unknown keys, no conversions (a size in quotes is a mistake), no later changes."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class FileSpec(_Strict):
    """One file: its place in every copy of the data, and its exact content."""

    path: RelativePath
    url: Annotated[str, StringConstraints(pattern=r"^\S+$")] | None = None
    """Relative to the source's; None where the source cannot be downloaded."""
    size: PositiveInt
    """In bytes."""
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Source(_Strict):
    """Files that share an origin, a revision, a licence and a citation.

    The files are listed in ``sources.yaml``, or, if there are many, in a manifest: then
    ``files`` is filled from it, and a file's short name is its path below ``folder``.
    """

    title: Line
    homepage: Annotated[str, StringConstraints(pattern=r"^https?://\S+$")]
    revision: Line
    url: Annotated[str, StringConstraints(pattern=r"^https?://\S+/$")] | None
    unavailable: Line | None = None
    """Why the files cannot be downloaded; given if and only if ``url`` is None."""
    licence: Line
    citation: Line
    terms: str | None = None
    manifest: ManifestName | None = None
    folder: Folder | None = None
    files: dict[Name, FileSpec] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> "Source":
        if bool(self.files) == bool(self.manifest):
            raise ValueError("write either 'files' (at least one) or 'manifest'")
        if (self.manifest is None) != (self.folder is None):
            raise ValueError("'manifest' and 'folder' go together")
        if (self.url is None) != (self.unavailable is not None):
            raise ValueError("write 'unavailable', with the reason, if and only if 'url' is null")
        for name, spec in self.files.items():
            if (spec.url is None) != (self.url is None):
                raise ValueError(f"the file {name!r} needs a url exactly if the source has one")
        return self

    @property
    def size(self) -> int:
        """The sum of all files in bytes."""
        return sum(spec.size for spec in self.files.values())

    def url_of(self, spec: FileSpec, mirror: str | None = None) -> str | None:
        """Returns the URL to download a file from, or None if there is none.

        Args:
            spec: One of this source's files.
            mirror: URL of a folder with the layout of a local copy; replaces upstream.
        """
        if mirror:
            return f"{mirror.rstrip('/')}/{quote(spec.path)}"
        if self.url is None or spec.url is None:
            return None
        revision = quote(self.revision, safe="")
        return urljoin(self.url, spec.url).replace("{revision}", revision)


class _UniqueKeyLoader(yaml.SafeLoader):
    """Refuses a repeated key: PyYAML would silently drop the first file of that name."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
        if (key := _repeated(str(key.value) for key, _ in node.value)) is not None:
            raise yaml.YAMLError(f"the key {key!r} is repeated{node.start_mark}")
        return super().construct_mapping(node, deep=deep)


_SOURCES = TypeAdapter(Annotated[dict[Name, Source], Field(min_length=1)])
_FILES = TypeAdapter(dict[str, FileSpec])


@lru_cache
def _load(path: Path) -> Mapping[str, Source]:
    with _one_line_errors(path, "YAML"):
        text = path.read_text(encoding="utf-8")
        declared = _SOURCES.validate_python(yaml.load(text, _UniqueKeyLoader))
    for name, source in declared.items():
        if source.manifest and source.folder:
            manifest = path.parent / "manifests" / source.manifest
            with _one_line_errors(manifest, "as a manifest"):
                files = read_manifest(manifest, source.folder)
            declared[name] = source.model_copy(update={"files": files})
    paths = (spec.path for source in declared.values() for spec in source.files.values())
    if (shared := _repeated(paths)) is not None:
        raise DataError(one_line(f"{path}: two files have the path {shared!r}"))
    return MappingProxyType(declared)


def read_manifest(path: Path, folder: str) -> dict[str, FileSpec]:
    """Reads a manifest; a file's name is its path below the folder.

    Args:
        path: The manifest.
        folder: What precedes each path in a copy of the data, such as ``mine/texts/``.

    Raises:
        ValueError: It is not such a table; the message names the line. A value that breaks a
            rule of :class:`FileSpec` is a ``pydantic.ValidationError``.
        OSError: It cannot be read.
    """
    header, *lines = path.read_bytes().decode("utf-8").split("\n")
    if header != HEADER:
        raise ValueError("line 1 is not the header 'path size sha256', with tabs between")
    if len(lines) < 2 or lines.pop() != "":  # noqa: PLR2004
        raise ValueError("no files, or the last line has no line break")
    rows: dict[str, dict[str, object]] = {}
    before = ""
    for number, line in enumerate(lines, start=2):
        try:
            name, size, sha256 = line.split("\t")
        except ValueError:
            count = line.count("\t") + 1
            raise ValueError(f"line {number} has {count} columns instead of 3") from None
        if name <= before:
            raise ValueError(f"line {number}: {name!r} is repeated or not in sorted order")
        if not (size.isascii() and size.isdigit()) or str(int(size)) != size:
            raise ValueError(f"line {number}: the size is {size!r}")
        rows[name] = {
            "path": f"{folder}{name}", "url": quote(name), "size": int(size), "sha256": sha256,
        }  # fmt: skip
        before = name
    return _FILES.validate_python(rows)


@contextmanager
def _one_line_errors(path: Path, kind: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(one_line(f"{path}: cannot be read ({error.strerror})")) from error
    except ValidationError as error:
        raise DataError(one_line(f"{path}: {first_problem(error)}")) from error
    except (yaml.YAMLError, ValueError) as error:  # also text that is not UTF-8
        raise DataError(one_line(f"{path}: not valid {kind}: {error}")) from error


def _repeated(items: Iterable[str]) -> str | None:
    """Returns the first item that occurs a second time."""
    seen: set[str] = set()
    for item in items:
        if item in seen:
            return item
        seen.add(item)
    return None


def sources() -> Mapping[str, Source]:
    """Returns all declared sources by name; the file is read once per process.

    Raises:
        DataError: The file cannot be read or does not follow the schema.
    """
    replaced = os.environ.get("LM_EVAL_EXT_SOURCES")
    return _load(Path(replaced).expanduser() if replaced else _PACKAGED)


def find_source(name: str) -> Source:
    """Returns a source by name; the DataError of an unknown one names the legal ones."""
    if name not in sources():
        legal = ", ".join(sources())
        raise DataError(one_line(f"no data source {name!r}; the sources are: {legal}"))
    return sources()[name]


def find_file(source: str, file: str) -> FileSpec:
    """Returns a file of a source by its short name; raises as :func:`find_source`."""
    files = find_source(source).files
    if file not in files:
        legal = ", ".join(islice(files, _NAMES_SHOWN))
        if len(files) > _NAMES_SHOWN:
            legal += f", … ({len(files):,}; `lm-eval-ext data list --json` names them all)"
        message = f"data source {source!r} has no file {file!r}; its files are: {legal}"
        raise DataError(one_line(message))
    return files[file]
