"""The datasets as the Hugging Face hub has them, at pinned revisions.

Another way to the same questions, for those who have the hub's copies already: its own library
fetches and caches them. GLUE's diagnostics and WorldTree come from their files only.
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
    """A dataset on the hub.

    Attributes:
        path: Its name.
        config: Its configuration.
        revision: The commit (fact sheet, "Pins that are known").
        splits: The splits that are used, in this order.
    """

    path: str
    config: str
    revision: str
    splits: tuple[str, ...]


OPENBOOKQA = Hub(
    "allenai/openbookqa",
    "additional",
    "388097ea7776314e93a529163e0fea805b8a6454",
    ("validation", "test"),
)
HOTPOTQA = Hub(
    "hotpotqa/hotpot_qa",
    "fullwiki",
    "1908d6afbbead072334abe2965f91bd2709910ab",
    ("validation",),
)


def rows(hub: Hub) -> list[tuple[str, Mapping[str, Any]]]:
    """Loads the rows of a dataset, with places for messages.

    Raises:
        OptionError: Data are to come from a local copy only.
        DataError: The dataset is not to be had.
    """
    import datasets

    if (copy := local_copy()) is not None:
        raise OptionError(
            f"conceptual_from=hub, but LM_EVAL_EXT_DATA is {copy}, from which alone data are to "
            "come; unset it, or leave conceptual_from out"
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
    """Describes documents that were read from these rows."""
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
    """A row of HotpotQA in the form of its files: pairs instead of parallel lists.

    Raises:
        DataError: It is not of the hub's form.
    """
    try:
        context = row["context"]
        pairs = list(zip(context["title"], context["sentences"], strict=True))
        return {**row, "_id": row["id"], "context": pairs}
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{place}: no question of HotpotQA ({error!r})") from None
