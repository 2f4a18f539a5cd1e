"""The declared data sources: ``sources.yaml`` and the manifests, validated and read once.

A source with too many files for ``sources.yaml`` has a manifest: a table in the folder
``manifests`` with a header and the columns path, size (bytes) and SHA-256, separated by tabs.
A path is relative to the source's ``url`` and, in every copy of the data, to its ``folder``.
:mod:`lm_eval_ext.data.manifest` writes them.

The environment variable ``LM_EVAL_EXT_SOURCES`` names a file that replaces the packaged one,
for tests and for private mirrors with files of their own; its manifests are in the folder
``manifests`` beside it.
"""

import csv
import os
from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Annotated
from urllib.parse import quote, urljoin

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

from lm_eval_ext.errors import DataError, first_problem, nearest
from lm_eval_ext.reading import read_yaml
from lm_eval_ext.text import one_line

HEADER = ("path", "size", "sha256")
"""The first line of a manifest."""

_PACKAGED = Path(__file__).with_name("sources.yaml")
_NAMES_SHOWN = 10


def _inside(path: str) -> str:
    """Refuses paths that leave the data folder or mean different files on other systems."""
    pure = PurePosixPath(path)
    plain = str(pure) == path.removesuffix("/") and not pure.is_absolute()
    if not plain or ".." in pure.parts or "\\" in path or "/" not in path:
        raise ValueError("write a relative path with at least one folder, '/', and without '..'")
    return path


Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]*$")]
Line = Annotated[str, StringConstraints(pattern=r"^\S.*$")]
Inside = Annotated[Line, AfterValidator(_inside)]


class _Strict(BaseModel):
    """No unknown keys, no conversions (a size in quotes is a mistake), no later changes."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class FileSpec(_Strict):
    """One file: its place in every copy of the data, and its exact content."""

    path: Annotated[Inside, StringConstraints(pattern=r"[^/]$")]
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
    manifest: Annotated[str, StringConstraints(pattern=r"^[a-z0-9_-]+\.tsv$")] | None = None
    folder: Annotated[Inside, StringConstraints(pattern=r"/$")] | None = None
    files: dict[Name, FileSpec] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> "Source":
        if bool(self.files) == bool(self.manifest) or bool(self.manifest) != bool(self.folder):
            raise ValueError("write either 'files' (at least one), or 'manifest' and 'folder'")
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


_SOURCES = TypeAdapter(Annotated[dict[Name, Source], Field(min_length=1)])


@lru_cache
def _load(path: Path) -> Mapping[str, Source]:
    declared = read_yaml(path, _SOURCES)
    for name, source in declared.items():
        if source.manifest and source.folder:
            files = _manifest(path.parent / "manifests" / source.manifest, source.folder)
            declared[name] = source.model_copy(update={"files": files})
    return declared


def _manifest(path: Path, folder: str) -> dict[str, FileSpec]:
    """Reads a manifest; a file's name is its path below the folder."""
    files: dict[str, FileSpec] = {}
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            rows = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
            if next(rows, None) != [*HEADER]:
                raise DataError(f"{path}: line 1 is not {' '.join(HEADER)}, with tabs between")
            for name, size, sha256 in rows:
                files[name] = FileSpec(
                    path=folder + name, url=quote(name), size=int(size), sha256=sha256
                )
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
    except ValidationError as error:
        problem = f"line {len(files) + 2}: {first_problem(error)}"
    except ValueError as error:  # also text that is not UTF-8
        problem = f"line {len(files) + 2}: {error}"
    else:
        return files
    raise DataError(one_line(f"{path}: {problem}"))


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
        some = ", ".join(islice(files, _NAMES_SHOWN))
        hint = nearest(file, files) or f"; its files are: {some}"
        raise DataError(one_line(f"data source {source!r} has no file {file!r}{hint}"))
    return files[file]
