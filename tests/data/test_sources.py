"""The declarations: the packaged ones, and what the schema refuses."""

import hashlib
from collections import Counter
from pathlib import Path, PurePosixPath

import pytest
import server as fake

from lm_eval_ext.data import sources
from lm_eval_ext.errors import DataError


def test_packaged_files_are_declared_once_and_pinned_to_a_commit() -> None:
    declared = [(one, spec) for one in sources().values() for spec in one.files.values()]
    paths = Counter(one.folder + spec.path for one, spec in declared)
    assert set(paths.values()) == {1}
    assert sources()["cogs_gen_2020"].url == ""
    for name in ("lieder", "magnifico", "magnifico_mappings", "spider_databases", "cogs"):
        source = sources()[name]
        assert len(source.revision) == 40
        owner = source.homepage.removeprefix("https://github.com/")
        start = f"https://raw.githubusercontent.com/{owner}/{source.revision}"
        assert all(source.url_of(spec).startswith(start) for spec in source.files.values())


def test_declared_sizes_and_hashes_are_those_of_the_local_copy(shared_data: Path) -> None:
    declared = {
        source.folder + spec.path: (spec.size, spec.sha256)
        for source in sources().values()
        for spec in source.files.values()
    }
    absent = {path for path in declared if not (shared_data / path).exists()}
    assert absent == {
        "conceptual/openbookqa/OpenBookQA-V1-Sep2018.zip",
        "conceptual/hotpotqa/hotpot_dev_fullwiki_v1.json",
        "diner/tmcd_data.json",
    }
    contents = {path: (shared_data / path).read_bytes() for path in declared.keys() - absent}
    assert {path: declared[path] for path in contents} == {
        path: (len(content), hashlib.sha256(content).hexdigest())
        for path, content in contents.items()
    }


def test_manifests_have_what_the_benchmark_reads(shared_data: Path) -> None:
    folder = shared_data / "magnifico/magnifico_data"
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    wanted = {
        name
        for name in there
        if name.endswith(".tsv") or PurePosixPath(name).parts[1] != "dialogue_data_pos"
    }
    texts, dialogues = (set(sources()[n].files) for n in ("magnifico", "magnifico_dialogues"))
    assert texts == {name for name in wanted if name.endswith(".tsv")}
    assert texts | dialogues == wanted
    assert len(there - wanted) == 125, "one template per dialogue is left out"
    folder = shared_data / "spider_databases"
    databases = {f"{path.name}/{path.name}.sqlite" for path in folder.iterdir() if path.is_dir()}
    scripts = {f"{path.parent.name}/{path.name}" for path in folder.glob("*/*.sql")}
    assert set(sources()["spider_databases"].files) == databases | scripts


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  licence: CC0", "  license: CC0", "toy.licence: the key is missing (and 1 more pro"),
        ("  licence: CC0", "  licence: CC0\n  note: x", "toy.note: unknown key"),
        ("size: 44000", "size: 0", "toy.files.alpha.size: Input should be greater than 0, got 0"),
        ("size: 44000", "size: '44000'", "toy.files.alpha.size: Input should be a valid integer"),
        ("sha256: ", "sha256: X", "toy.files.alpha.sha256: String should match pattern"),
        ("path: alpha", "path: /etc/alpha", "toy.files.alpha.path: write a relative"),
        ("path: alpha", "path: a/../../a", "toy.files.alpha.path: write a relative"),
        ("path: alpha", "path: a\\b/a", "toy.files.alpha.path: write a relative"),
        ("folder: toy/", "folder: ../toy/", "toy.folder: write a relative"),
        ("{revision}/", "{revision}", "toy.url: String should match pattern"),
        ("licence: CC0", "licence: |\n    two\n    lines", "toy.licence: String should match"),
        ("    beta:", "    alpha:", "not valid YAML: the key 'alpha' is repeated"),
        ("toy:", "toy: [", "not valid YAML: "),
        ("toy:", "\udcfftoy:", "not valid YAML: "),
        ("toy:", "z: " + "[" * 98 + "]" * 98 + "\ntoy:", "z: Input should be an object"),
        ("toy:", "z: " + "[" * 10**5 + "]" * 10**5 + "\ntoy:", "not valid YAML: nested more than"),
        ("toy:", "z:\n  " + "- " * 10**5 + "a\ntoy:", "not valid YAML: nested more than 100"),
        ("url: http", "unavailable: lost\n  url: http", "toy: write either 'url', or"),
        ("unavailable: ", "# ", "lost: write either 'url', or"),
        ('{"size": ', '{"size": -', "many.files.part0/00.txt.size: Input should be greater than 0"),
        ('{"size": ', "", "not valid YAML: "),
    ],
)
def test_a_bad_declaration_names_file_and_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, message: str
) -> None:
    declared = fake.write_sources(tmp_path, "http://127.0.0.1")
    monkeypatch.setenv("LM_EVAL_EXT_SOURCES", str(declared))
    file = tmp_path / "manifests/many.json" if old[0] == "{" and "size" in old else declared
    text = file.read_text()
    assert old in text
    file.write_bytes(text.replace(old, new, 1).encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError) as caught:
        sources()
    assert str(caught.value).startswith(f"{declared}: {message}")
    assert str(caught.value).isprintable()
