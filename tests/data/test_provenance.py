"""Provenance of documents that are made from several sources."""

import hashlib
from dataclasses import replace

from datasets import Dataset, DatasetDict, DatasetInfo
from server import NAMES, Server

from lm_eval_ext.data import DataFolder, require_all
from lm_eval_ext.harness import provenance


def read_back(info: DatasetInfo) -> dict[str, str]:
    dataset = Dataset.from_list([{"text": "x"}], info=info)
    return provenance.of_dataset(DatasetDict({"test": dataset}))


def test_sources_and_revisions_are_joined(server: Server) -> None:
    one, other = require_all("many", NAMES[:3]), require_all("toy")
    revision = "ab" * 20
    first = replace(other.files[0], revision=revision)
    folders = [one, replace(other, files=(first, *other.files[1:]))]

    def sha(folders: list[DataFolder]) -> str:
        return read_back(provenance.describe_many(folders))["sha256"]

    info = provenance.describe_many(folders)
    joined = "".join(sorted(folder.sha256 for folder in folders))
    assert read_back(info) == {
        "source": "many+toy",
        "revision": f"{one.files[0].revision}+ababababa",
        "sha256": hashlib.sha256(joined.encode()).hexdigest(),
    }
    assert sha([one, require_all("toy", ["beta"])]) != sha(folders)
    own = provenance.describe_many([], {"questions": "a" * 64})
    assert read_back(own) == {"source": "own questions", "revision": "own", "sha256": "a" * 64}
    assert read_back(provenance.describe_many(folders[1:])) == {
        "source": "toy", "revision": revision, "sha256": other.sha256
    }  # fmt: skip
