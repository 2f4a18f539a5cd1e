"""Where a task's documents come from, carried by the dataset itself.

Hugging Face's ``DatasetInfo`` has the fields. Our loading functions fill them through
:func:`describe` and the like, and the signature reads them back. ``datasets`` is imported in the
functions, since it takes a second and ``lm-eval-ext data`` does without.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from datasets import DatasetDict, DatasetInfo

    from lm_eval_ext.data import DataFile, DataFolder

_COMMIT = re.compile(r"[0-9a-f]{40}")
_DIGITS = 9


def describe(files: Iterable["DataFile"]) -> "DatasetInfo":
    """Describes documents that were read from these files of one source."""
    from datasets import DatasetInfo

    files = list(files)
    first = files[0]
    return DatasetInfo(
        citation=first.citation,
        homepage=first.homepage,
        license=first.licence,
        dataset_name=first.source,
        config_name=first.revision,
        download_checksums={
            file.name: {"num_bytes": file.size, "checksum": file.sha256} for file in files
        },
    )


def describe_many(
    folders: Iterable["DataFolder"], own: Mapping[str, str] | None = None
) -> "DatasetInfo":
    """Describes documents that were read from several sources, such as texts and databases.

    Source and revision are those of all, joined by ``+`` in the order given, commits with
    nine digits if there are several; the checksum of each is the one over its files.

    Args:
        folders: Declared sources.
        own: The user's own files: what they are, and the SHA-256 of them.
    """
    from datasets import DatasetInfo

    folders, own = list(folders), dict(own or {})
    first = [folder.files[0] for folder in folders]
    return DatasetInfo(
        citation="\n".join(dict.fromkeys(file.citation for file in first)),
        homepage=" ".join(dict.fromkeys(file.homepage for file in first)),
        license="; ".join(f"{file.source}: {file.licence}" for file in first),
        dataset_name="+".join([*(file.source for file in first), *(f"own {what}" for what in own)]),
        config_name="+".join(
            [
                *(
                    _abbreviated(file.revision) if len(first) > 1 else file.revision
                    for file in first
                ),
                *("own" for _ in own),
            ]
        ),
        download_checksums={
            folder.files[0].source: {
                "num_bytes": sum(file.size for file in folder.files),
                "checksum": folder.sha256,
            }
            for folder in folders
        }
        | {f"own {what}": {"checksum": checksum} for what, checksum in own.items()},
    )


def _abbreviated(revision: str) -> str:
    return revision[:_DIGITS] if _COMMIT.fullmatch(revision) else revision


class Loaded(NamedTuple):
    """What a loading function returns where the documents do not say where they are from."""

    documents: Iterable[Mapping[str, Any]]
    info: "DatasetInfo"


def of_documents(found: "Loaded | Iterable[Mapping[str, Any]]", name: str) -> "DatasetDict":
    """The split ``test`` of documents; those without a description are embedded, and hashed."""
    from datasets import Dataset, DatasetDict

    info = found.info if isinstance(found, Loaded) else None
    rows = list(found.documents if isinstance(found, Loaded) else found)
    if info is None:
        text = "\n".join(json.dumps(row, sort_keys=True, ensure_ascii=False) for row in rows)
        info = describe_embedded(name, hashlib.sha256(text.encode()).hexdigest())
    return DatasetDict({"test": Dataset.from_list(rows, info=info)})


def describe_embedded(name: str, digest: str) -> "DatasetInfo":
    """Describes documents that ship in the package; ``digest`` is the SHA-256 of them."""
    from datasets import DatasetInfo

    return DatasetInfo(
        dataset_name=name,
        config_name="embedded",
        download_checksums={name: {"checksum": digest}},
    )


def with_left_out(info: "DatasetInfo", ids: Mapping[str, list[str]]) -> "DatasetInfo":
    """A description that names, by cause, the examples that are not among the documents."""
    described = info.copy()
    described.description = json.dumps(ids)
    return described


def left_out(dataset: "DatasetDict") -> dict[str, list[str]]:
    """Reads the ids that :func:`with_left_out` recorded; none from other descriptions."""
    text = next(iter(dataset.values())).info.description
    try:
        named = json.loads(text or "{}")
    except ValueError:
        return {}
    return named if isinstance(named, dict) else {}


def of_dataset(dataset: "DatasetDict") -> dict[str, Any]:
    """Reads back ``source``, ``revision`` and ``sha256`` (of one file, or over all of them)."""
    info = next(iter(dataset.values())).info
    checksums = sorted(entry["checksum"] for entry in (info.download_checksums or {}).values())
    if len(checksums) == 1:
        combined = checksums[0]
    else:
        combined = hashlib.sha256("".join(checksums).encode()).hexdigest()
    return {"source": info.dataset_name, "revision": info.config_name, "sha256": combined}
