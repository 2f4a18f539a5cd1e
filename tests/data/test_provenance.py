"""Provenance of documents that are made from several sources."""

import hashlib
from dataclasses import replace

from datasets import Dataset, DatasetDict, DatasetInfo
from server import NAMES, Server

from lm_eval_ext.data import require_all
from lm_eval_ext.harness import provenance


def read_back(info: DatasetInfo) -> dict[str, str]:
    dataset = Dataset.from_list([{"text": "x"}], info=info)
    return provenance.of_dataset(DatasetDict({"test": dataset}))


def test_sources_and_revisions_are_joined(server: Server) -> None:
    many, toy = require_all("many", NAMES[:3]), require_all("toy")
    revision = "ab" * 20
    toy = replace(toy, files=tuple(replace(file, revision=revision) for file in toy.files))
    joined = read_back(provenance.describe_many([many, toy]))
    digests = "".join(sorted((many.sha256, toy.sha256)))
    assert joined == {
        "source": "many+toy",
        "revision": f"{many.files[0].revision}+ababababa",
        "sha256": hashlib.sha256(digests.encode()).hexdigest(),
    }
    swapped = read_back(provenance.describe_many([toy, many]))
    assert swapped["sha256"] == joined["sha256"], "the order of sources says nothing"
    fewer = read_back(provenance.describe_many([many, require_all("toy", ["beta"])]))
    assert fewer["sha256"] != joined["sha256"]
    own = provenance.describe_many([], {"questions": "a" * 64})
    assert read_back(own) == {"source": "own questions", "revision": "own", "sha256": "a" * 64}
    assert read_back(provenance.describe_many([toy])) == {
        "source": "toy", "revision": revision, "sha256": toy.sha256
    }  # fmt: skip
