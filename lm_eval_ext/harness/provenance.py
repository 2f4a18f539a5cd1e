"""Where a task's documents come from: sources with revisions and checksums, for signatures."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lm_eval_ext.atomic import sha256_of_text

if TYPE_CHECKING:
    from lm_eval_ext.data import DataFile, DataFolder

_COMMIT = re.compile(r"[0-9a-f]{40}")
_COMMIT_DIGITS = 9
"""Digits of a commit that a signature shows where documents come from several sources."""

EMBEDDED = "embedded"
"""The revision of documents that ship in the package or are drawn by it."""

USERS_OWN = "own"
"""The revision of a user's own files."""


@dataclass(frozen=True)
class Provenance:
    """The sources of a task's documents.

    Attributes:
        revisions: The revision of each source: a commit, :data:`EMBEDDED` or :data:`USERS_OWN`.
        checksums: The SHA-256 (hexadecimal) of each file, folder or text, by its name.
    """

    revisions: Mapping[str, str]
    checksums: Mapping[str, str]

    @property
    def source(self) -> str:
        """The names of all sources, joined by ``+``."""
        return "+".join(self.revisions)

    @property
    def revision(self) -> str:
        """The revisions of all sources, joined by ``+``; of several, commits have nine digits."""
        revisions = list(self.revisions.values())
        if len(revisions) > 1:
            revisions = [_shortened(revision) for revision in revisions]
        return "+".join(revisions)

    @property
    def sha256(self) -> str:
        """The checksum of the only file, or one over the checksums of all files."""
        checksums = sorted(self.checksums.values())
        if len(checksums) == 1:
            return checksums[0]
        return sha256_of_text("".join(checksums))

    def joined(self, further: "Provenance") -> "Provenance":
        """Return the provenance of documents that were also made from further sources."""
        return Provenance(
            {**self.revisions, **further.revisions}, {**self.checksums, **further.checksums}
        )


NOTHING = Provenance({}, {})
"""The provenance of documents without a source, to be joined with others."""


def _shortened(revision: str) -> str:
    if _COMMIT.fullmatch(revision):
        return revision[:_COMMIT_DIGITS]
    return revision


def describe(files: Iterable["DataFile"]) -> Provenance:
    """Return the provenance of documents that were read from files with different names."""
    files = list(files)
    revisions = {file.source: file.revision for file in files}
    checksums = {file.name: file.sha256 for file in files}
    return Provenance(revisions, checksums)


def describe_sources(
    folders: Collection["DataFolder"], user_checksums: Mapping[str, str] | None = None
) -> Provenance:
    """Return the provenance of documents from several sources, such as texts and databases.

    Args:
        folders: Declared sources; the checksum of each is the one over its files.
        user_checksums: The SHA-256 of each of the user's own files, by its content
            (``examples``).
    """
    revisions = {}
    checksums = {}
    for folder in folders:
        first_file = folder.files[0]
        revisions[first_file.source] = first_file.revision
        checksums[first_file.source] = folder.sha256
    for content, checksum in (user_checksums or {}).items():
        revisions[f"own {content}"] = USERS_OWN
        checksums[f"own {content}"] = checksum
    return Provenance(revisions, checksums)


def describe_embedded(name: str, sha256: str) -> Provenance:
    """Return the provenance of documents that ship in the package, with their SHA-256."""
    return Provenance({name: EMBEDDED}, {name: sha256})
