"""Getting WorldTree's archive, for which no checksum is published.

It is verified against itself: size and SHA-256 are noted beside it at the first download, and
a later look that finds something else is an error. Everything else that is downloaded has a
declared checksum (:mod:`lm_eval_ext.data`).
"""

import json
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.data import cache_dir, local_copy
from lm_eval_ext.data.folders import mirror_url
from lm_eval_ext.errors import DataError

NAME = "WorldtreeExplanationCorpusV2.1_Feb2020"
URL = f"https://cognitiveai.org/dist/{NAME}.zip"
FOLDER = "conceptual/worldtree"
"""Where the archive lies in a local copy, in the cache's data, and on a mirror."""

TERMS = f"""\
WorldTree 2.1 holds questions from the AI2 Mercury dataset, whose licence allows non-commercial
use only and no redistribution. The archive's own licence files say more; by going on you accept
them. It is fetched from {URL}.
"""
CITATION = (
    "Zhengnan Xie et al. 2020. WorldTree V2: A Corpus of Science-Domain Structured Explanations "
    "and Inference Patterns supporting Multi-Hop Inference. LREC 2020"
)
_TIMEOUT_S = 60.0


Folder: TypeAlias = Path | zipfile.Path
"""A folder on disk, or one in an archive."""


@dataclass(frozen=True)
class Archive:
    """WorldTree at hand.

    Attributes:
        content: Its top folder.
        sha256: Of the archive; of all files, where it lies unpacked.
    """

    content: Folder
    sha256: str


def at_hand() -> bool:
    """Whether WorldTree lies where it is looked for; reads nothing of it."""
    place = (local_copy() or cache_dir() / "data") / FOLDER
    return (place / f"{NAME}.zip").is_file() or (place / NAME).is_dir()


def get() -> Archive:
    """Finds the archive, packed or unpacked, in the local copy or the cache; else fetches it.

    Raises:
        DataError: It is not to be had, or not what it was at the first download.
    """
    copy = local_copy()
    place = (copy or cache_dir() / "data") / FOLDER
    packed, unpacked = place / f"{NAME}.zip", place / NAME
    if packed.is_file():
        _compare(packed, copied=copy is not None)
    elif unpacked.is_dir():
        return Archive(unpacked, _digest_of_folder(unpacked))
    elif copy is not None:
        raise DataError(
            f"{packed}: missing (LM_EVAL_EXT_DATA is {copy}); put the archive there, from {URL}, "
            "or unset LM_EVAL_EXT_DATA so that it is downloaded"
        )
    else:
        _download(packed)
    try:
        content = zipfile.Path(packed, f"{NAME}/")
        if not content.exists():
            raise DataError(f"{packed}: there is no folder {NAME} in it; delete it and run again")
    except (OSError, zipfile.BadZipFile):
        raise DataError(f"{packed}: no zip archive; delete it and run again") from None
    return Archive(content, _sha256(packed))


def _note_of(packed: Path) -> Path:
    return packed.with_name(f"{packed.name}.first-seen.json")


def _compare(packed: Path, *, copied: bool) -> None:
    """Holds an archive against what was noted; in a local copy there may be no note.

    In the cache there is none where a download was stopped before it, or the archive was put
    there by hand: then this is the first look.
    """
    note = _note_of(packed)
    if not note.is_file():
        if not copied:
            _write_note(packed)
        return
    try:
        seen = json.loads(note.read_text(encoding="utf-8"))
    except ValueError:
        raise DataError(f"{note}: no JSON; delete it to accept the archive as it is") from None
    if _description(packed) != seen:
        raise DataError(
            f"{packed}: its checksum is not the one noted when it was first downloaded "
            f"({note.name}); delete both files to fetch and accept a new one"
        )


def _download(packed: Path) -> None:
    """Downloads the archive, whole or not at all, and notes what it is."""
    import pooch

    sys.stderr.write(f"worldtree: WorldTree 2.1\n{TERMS}")
    mirror = mirror_url()
    url = f"{mirror.rstrip('/')}/{FOLDER}/{packed.name}" if mirror else URL
    try:
        packed.parent.mkdir(parents=True, exist_ok=True)
        downloader = pooch.HTTPDownloader(timeout=_TIMEOUT_S, progressbar=sys.stderr.isatty())
        # pooch writes to a temporary file and renames it.
        pooch.retrieve(
            url, known_hash=None, fname=packed.name, path=packed.parent, downloader=downloader
        )
    except (OSError, ValueError) as error:
        raise DataError(
            f"worldtree: {url}: {type(error).__name__}; check the network, or put the archive "
            f"into {packed.parent}"
        ) from error
    _write_note(packed)


def _write_note(packed: Path) -> None:
    with atomic_text(_note_of(packed)) as note:
        json.dump(_description(packed), note)


def _description(packed: Path) -> dict[str, int | str]:
    return {"size": packed.stat().st_size, "sha256": _sha256(packed)}


def _sha256(path: Path) -> str:
    import pooch

    return str(pooch.file_hash(str(path), alg="sha256"))


def _digest_of_folder(folder: Path) -> str:
    import hashlib

    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*.tsv") if path.is_file()):
        digest.update(f"{_sha256(path)}  {path.relative_to(folder).as_posix()}\n".encode())
    return digest.hexdigest()
