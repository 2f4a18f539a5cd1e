"""The declared data sources: ``sources.yaml`` and the manifests, validated and read once.

The files of a source with hundreds of them are in ``manifests/NAME.json`` beside ``sources.yaml``:
size and SHA-256 by path (manifests/README.md writes one).

The environment variable ``LM_EVAL_EXT_SOURCES`` names a file that replaces the packaged one,
for tests and for private mirrors with files of their own.
"""

import json
import os
from collections.abc import Mapping
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath
from typing import Annotated, Any
from urllib.parse import quote, urljoin

from pydantic import AfterValidator, Field, PositiveInt, TypeAdapter, model_validator

from lm_eval_ext.errors import DataError, nearest
from lm_eval_ext.reading import Exact, read_yaml
from lm_eval_ext.text import one_line

_PACKAGED = Path(__file__).with_name("sources.yaml")


def _check_inside(path: str) -> str:
    """Refuse paths that leave the data folder or mean different files on other systems."""
    if path.startswith("/") or ".." in PurePosixPath(path).parts or "\\" in path:
        raise ValueError("write a relative path with '/' and without '..'")
    return path


Line = Annotated[str, Field(pattern=r"^\S.*$")]
InnerPath = Annotated[Line, AfterValidator(_check_inside)]


class FileSpec(Exact):
    """One file: its path below the source's folder, and its exact content.

    Attributes:
        path: The path, which is the same in every copy of the data.
        url: The URL relative to the source's, where it is not the path.
        size: The size in bytes.
        sha256: The digest in hexadecimal digits.
    """

    path: Annotated[InnerPath, Field(pattern=r"[^/]$")]
    url: str = ""
    size: PositiveInt
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Source(Exact):
    """Files that share an origin, a revision, a licence and a citation.

    Attributes:
        title: The title in words.
        homepage: The address where people read about it.
        revision: The pinned version of the files.
        folder: The folder of the files, in every copy of the data.
        url: The URL of the folder upstream; "" where there is none.
        unavailable: Why the files cannot be downloaded; "" where there is a URL.
        licence: The licence of the files.
        cite: The key of the publication in ``citations.bib``.
        files: The files by short name; those of a manifest by path.
    """

    title: Line
    homepage: str = Field(pattern=r"^https?://\S+$")
    revision: Line
    folder: Annotated[InnerPath, Field(pattern=r"/$")]
    url: str = Field("", pattern=r"^(https?://\S+/)?$")
    unavailable: str = ""
    licence: Line
    cite: Line
    files: dict[str, FileSpec] = Field(min_length=1)

    @model_validator(mode="after")
    def _has_an_origin(self) -> "Source":
        if bool(self.url) == bool(self.unavailable):
            raise ValueError("write either 'url', or 'unavailable' with the reason")
        return self

    @property
    def size(self) -> int:
        """The sum of all files in bytes."""
        return sum(spec.size for spec in self.files.values())

    def url_of(self, spec: FileSpec, mirror: str = "") -> str:
        """Return the URL to download a file from, or "" if there is none.

        Args:
            spec: One of this source's files.
            mirror: URL of a folder with the layout of a local copy; replaces upstream.
        """
        if mirror:
            return f"{mirror.rstrip('/')}/{quote(self.folder + spec.path)}"
        if not self.url:
            return ""
        url = urljoin(self.url, spec.url or quote(spec.path))
        return url.replace("{revision}", quote(self.revision, safe=""))


_SOURCES = TypeAdapter(dict[str, Source])


def _with_manifests(folder: Path, content: Any) -> Any:
    """Return the content of ``sources.yaml`` with the files that manifests list."""
    for name, source in content.items():
        manifest = folder / f"{name}.json"
        if manifest.is_file():
            specs = json.loads(manifest.read_text(encoding="utf-8"))
            source["files"] = {path: {"path": path, **spec} for path, spec in specs.items()}
    return content


@lru_cache
def _load(path: Path) -> Mapping[str, Source]:
    return read_yaml(path, _SOURCES, partial(_with_manifests, path.with_name("manifests")))


def sources() -> Mapping[str, Source]:
    """Return all declared sources by name; the file is read once per process.

    Raises:
        DataError: The file cannot be read or does not follow the schema.
    """
    replaced = os.environ.get("LM_EVAL_EXT_SOURCES")
    return _load(Path(replaced).expanduser() if replaced else _PACKAGED)


def find_source(name: str) -> Source:
    """Return a source by name.

    Raises:
        DataError: There is no such source; the message names the legal ones.
    """
    if name not in sources():
        available = f"; the sources are: {', '.join(sources())}"
        hint = nearest(name, sources()) or available
        raise DataError(one_line(f"no data source {name!r}{hint}"))
    return sources()[name]
