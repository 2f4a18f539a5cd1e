"""Provenance of documents that are made from several sources."""

import hashlib
from dataclasses import replace

import pytest
from datasets import Dataset, DatasetDict, DatasetInfo
from many_files import Server

from lm_eval_ext.data import DataFolder, require_all
from lm_eval_ext.harness import provenance


@pytest.fixture
def folders(many: Server) -> list[DataFolder]:
    one = require_all("many", "part1")
    other = require_all("many", "part2")
    first = replace(
        other.files[0], source="more", revision="v2", licence="CC BY 4.0", citation="Somebody."
    )
    return [one, replace(other, source="more", revision="v2", files=(first, *other.files[1:]))]


def read_back(info: DatasetInfo) -> dict[str, str]:
    return provenance.of_dataset(
        DatasetDict({"test": Dataset.from_list([{"text": "x"}], info=info)})
    )


def test_sources_and_revisions_are_joined(folders: list[DataFolder]) -> None:
    info = provenance.describe_many(folders)
    assert read_back(info) == {
        "source": "many+more",
        "revision": "123456789+v2",
        "sha256": hashlib.sha256(
            "".join(sorted(folder.sha256 for folder in folders)).encode()
        ).hexdigest(),
    }
    assert info.license == "many: CC0; more: CC BY 4.0"
    assert info.citation == "Nobody. 2000. Many.\nSomebody."
    assert info.homepage == "https://example.org/many"


def test_another_file_is_another_checksum(folders: list[DataFolder]) -> None:
    before = read_back(provenance.describe_many(folders))["sha256"]
    folders[1] = replace(folders[1], sha256=folders[0].sha256)
    assert read_back(provenance.describe_many(folders))["sha256"] != before


def test_one_folder_keeps_its_whole_revision(folders: list[DataFolder]) -> None:
    assert read_back(provenance.describe_many(folders[:1])) == {
        "source": "many",
        "revision": folders[0].revision,
        "sha256": folders[0].sha256,
    }
