"""Where a task's documents come from, carried by the dataset itself.

Hugging Face's ``DatasetInfo`` has the fields; every loading function of ours fills them
through :func:`describe`, and the signature reads them back.
"""

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datasets import DatasetDict, DatasetInfo

    from lm_eval_ext.data import DataFile


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


def describe_embedded(name: str, digest: str) -> "DatasetInfo":
    """Describes documents that ship in the package; ``digest`` is the SHA-256 of them."""
    from datasets import DatasetInfo

    return DatasetInfo(
        license="MIT",
        dataset_name=name,
        config_name="embedded",
        download_checksums={name: {"checksum": digest}},
    )


def of_dataset(dataset: "DatasetDict") -> dict[str, Any]:
    """Reads back ``source``, ``revision`` and ``sha256`` (of one file, or over all of them)."""
    info = next(iter(dataset.values())).info
    checksums = sorted(entry["checksum"] for entry in (info.download_checksums or {}).values())
    if len(checksums) == 1:
        combined = checksums[0]
    else:
        combined = hashlib.sha256("".join(checksums).encode()).hexdigest()
    return {"source": info.dataset_name, "revision": info.config_name, "sha256": combined}
