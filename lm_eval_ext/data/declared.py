"""What is declared of a data source: the models that ``sources.yaml`` must follow."""

from typing import Annotated
from urllib.parse import quote, urljoin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    StringConstraints,
    model_validator,
)


def _inside(path: str) -> str:
    """Refuses paths that would leave the data folder or mean different files elsewhere."""
    parts = path.split("/")
    if "\\" in path or ".." in parts or "." in parts or "" in parts[1:]:
        raise ValueError("write a plain relative path with '/' and without '..'")
    if parts[0] == "" or len(parts) < 2:  # noqa: PLR2004
        raise ValueError("write a relative path with at least one folder")
    return path


def _folder(path: str) -> str:
    """Refuses what is no prefix of a legal path."""
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
    """One file: where it lies in every copy of the data, and its exact content."""

    path: RelativePath
    url: Annotated[str, StringConstraints(pattern=r"^\S+$")] | None = None
    """Relative to the source's; None where the source cannot be downloaded."""
    size: PositiveInt
    """In bytes."""
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Source(_Strict):
    """Files that share an origin, a revision, a licence and a citation.

    The files stand in ``sources.yaml``, or, where they are many, in a manifest: then
    ``files`` is filled from it, and a file's short name is its path below ``folder``.
    """

    title: Line
    homepage: Annotated[str, StringConstraints(pattern=r"^https?://\S+$")]
    revision: Line
    url: Annotated[str, StringConstraints(pattern=r"^https?://\S+/$")] | None
    unavailable: Line | None = None
    """Why the files cannot be downloaded; stands exactly where ``url`` is None."""
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
            mirror: URL of a folder that is laid out like a local copy; replaces upstream.
        """
        if mirror:
            return f"{mirror.rstrip('/')}/{quote(spec.path)}"
        if self.url is None or spec.url is None:
            return None
        revision = quote(self.revision, safe="")
        return urljoin(self.url, spec.url).replace("{revision}", revision)
