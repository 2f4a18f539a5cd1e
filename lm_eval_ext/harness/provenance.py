"""Where a task's documents come from, carried by the dataset itself.

Hugging Face's ``DatasetInfo`` has the fields. Our loading functions fill them through
:func:`describe` and the like, and the signature reads them back. ``datasets`` is imported in the
functions, since it takes a second and ``lm-eval-ext data`` does without.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from lm_eval_ext.atomic import sha256_of_text

if TYPE_CHECKING:
    from datasets import DatasetDict, DatasetInfo

    from lm_eval_ext.data import DataFile, DataFolder

_COMMIT = re.compile(r"[0-9a-f]{40}")
_DIGITS = 9


def describe(files: Iterable["DataFile"]) -> "DatasetInfo":
    """Describes documents that were read from these files, each with another name."""
    files = list(files)
    checksums = {file.name: file.sha256 for file in files}
    return _info({file.source: file.revision for file in files}, checksums)


def describe_many(
    folders: Collection["DataFolder"], own: Mapping[str, str] | None = None
) -> "DatasetInfo":
    """Describes documents that were read from several sources, such as texts and databases.

    The checksum of each is the one over its files.

    Args:
        folders: Declared sources.
        own: The user's own files: what they are, and the SHA-256 of them.
    """
    revisions = {one.files[0].source: one.files[0].revision for one in folders}
    checksums = dict(zip(revisions, (folder.sha256 for folder in folders), strict=True))
    users = {f"own {what}": checksum for what, checksum in (own or {}).items()}
    return _info(revisions | dict.fromkeys(users, "own"), checksums | users)


def describe_embedded(name: str, digest: str) -> "DatasetInfo":
    """Describes documents that ship in the package; ``digest`` is the SHA-256 of them."""
    return _info({name: "embedded"}, {name: digest})


def _info(revisions: Mapping[str, str], checksums: Mapping[str, str]) -> "DatasetInfo":
    """Sources and revisions are joined by ``+``; of several, commits have nine digits."""
    from datasets import DatasetInfo

    most = _DIGITS if len(revisions) > 1 else None
    short = (one[:most] if _COMMIT.fullmatch(one) else one for one in revisions.values())
    return DatasetInfo(
        dataset_name="+".join(revisions),
        config_name="+".join(short),
        download_checksums={name: {"checksum": one} for name, one in checksums.items()},
    )


class Loaded(NamedTuple):
    """What a loading function returns where the documents do not say where they are from.

    Attributes:
        documents: With the same keys.
        info: Their source; None if they are embedded, for example drawn: then they are hashed.
        left_out: By cause, the ids of the examples that are not among them.
        train: Demonstrations, the split ``train``.
    """

    documents: Iterable[Mapping[str, Any]]
    info: "DatasetInfo | None" = None
    left_out: Mapping[str, Collection[str]] = MappingProxyType({})
    train: Iterable[Mapping[str, Any]] = ()


def of_documents(found: "Loaded | Iterable[Mapping[str, Any]]", name: str) -> "DatasetDict":
    """The splits of documents; those without a description are embedded, and hashed."""
    from datasets import Dataset, DatasetDict

    loaded = found if isinstance(found, Loaded) else Loaded(found)
    rows, train = list(loaded.documents), list(loaded.train)
    info = loaded.info and loaded.info.copy()
    if info is None:
        lines = (json.dumps(row, sort_keys=True, ensure_ascii=False) for row in rows + train)
        info = describe_embedded(name, sha256_of_text("\n".join(lines)))
    info.description = json.dumps(dict(loaded.left_out))
    splits = {"test": Dataset.from_list(rows, info=info)}
    if train:
        splits["train"] = Dataset.from_list(train)
    return DatasetDict(splits)


def left_out(dataset: "DatasetDict") -> dict[str, list[str]]:
    """By cause, the ids of the examples that are not among the documents."""
    named: dict[str, list[str]] = json.loads(dataset["test"].info.description or "{}")
    return named


def of_dataset(dataset: "DatasetDict") -> dict[str, Any]:
    """Reads back ``source``, ``revision`` and ``sha256`` (of one file, or over all of them)."""
    info = dataset["test"].info
    checksums = sorted(entry["checksum"] for entry in (info.download_checksums or {}).values())
    combined = sha256_of_text("".join(checksums))
    sha256 = checksums[0] if len(checksums) == 1 else combined
    return {"source": info.dataset_name, "revision": info.config_name, "sha256": sha256}
