"""OpenBookQA and HotpotQA from the Hugging Face hub, at pinned revisions.

An alternative for users who have the hub's copies already; the ``datasets`` library fetches and
caches them. GLUE diagnostics and WorldTree are read from their original files only.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lm_eval_ext.data import local_copy
from lm_eval_ext.errors import DataError, OptionError

if TYPE_CHECKING:
    from datasets import DatasetInfo


@dataclass(frozen=True)
class Hub:
    """A dataset on the hub; ``revision`` is a commit, and ``splits`` are read in this order."""

    path: str
    config: str
    revision: str
    splits: tuple[str, ...]


OPENBOOKQA = Hub(
    "allenai/openbookqa", "additional", "388097ea7776314e93a529163e0fea805b8a6454",
    ("validation", "test"),
)  # fmt: skip
HOTPOTQA = Hub(
    "hotpotqa/hotpot_qa", "fullwiki", "1908d6afbbead072334abe2965f91bd2709910ab", ("validation",)
)


def rows(hub: Hub) -> list[tuple[str, Mapping[str, Any]]]:
    """Loads the rows of a dataset, each after its place (for messages).

    Raises:
        OptionError: ``LM_EVAL_EXT_DATA`` restricts data to a local copy.
        DataError: The dataset is unavailable.
    """
    import datasets

    if (copy := local_copy()) is not None:
        raise OptionError(
            f"conceptual_from=hub, but LM_EVAL_EXT_DATA is {copy}, so that only local files are "
            "read; unset LM_EVAL_EXT_DATA, or leave conceptual_from out"
        )
    found: list[tuple[str, Mapping[str, Any]]] = []
    for split in hub.splits:
        try:
            loaded = datasets.load_dataset(hub.path, hub.config, split=split, revision=hub.revision)
        except (OSError, ValueError, RuntimeError) as error:
            first = str(error).partition("\n")[0]
            raise DataError(
                f"{hub.path} at {hub.revision[:10]} cannot be loaded from the hub ({first}); check "
                "the network, or leave conceptual_from out to use the files"
            ) from error
        found += [(f"{hub.path}, {split}, row {n}", row) for n, row in enumerate(loaded)]
    return found


def describe(hub: Hub, found: list[tuple[str, Mapping[str, Any]]]) -> "DatasetInfo":
    """The provenance of documents that were read from these rows."""
    from datasets import DatasetInfo

    digest = hashlib.sha256()
    for _, row in found:
        digest.update(json.dumps(row, sort_keys=True, default=str).encode())
    return DatasetInfo(
        homepage=f"https://huggingface.co/datasets/{hub.path}",
        dataset_name=hub.path,
        config_name=hub.revision,
        download_checksums={hub.config: {"checksum": digest.hexdigest()}},
    )


def as_in_files(place: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Converts a row of HotpotQA to its files' format: pairs instead of parallel lists.

    Raises:
        DataError: The row is not in the hub's format.
    """
    try:
        context = row["context"]
        pairs = list(zip(context["title"], context["sentences"], strict=True))
        return {**row, "_id": row["id"], "context": pairs}
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{place}: not a question of HotpotQA ({error!r})") from None
