"""The declarations: the packaged ones, and what the schema refuses."""

import hashlib
from collections import Counter
from pathlib import Path, PurePosixPath

import pytest
from support.file_server import write_sources

from lm_eval_ext.data import sources
from lm_eval_ext.errors import DataError


def declared_paths() -> list[str]:
    """Return the path of every packaged file, below the folder of all data."""
    paths: list[str] = []
    for source in sources().values():
        paths.extend(source.folder + spec.path for spec in source.files.values())
    return paths


def test_packaged_files_are_declared_once() -> None:
    repeated = {path for path, count in Counter(declared_paths()).items() if count > 1}
    assert repeated == set()


@pytest.mark.parametrize(
    "name", ["lieder", "magnifico", "magnifico_mappings", "spider_databases", "cogs"]
)
def test_packaged_files_are_pinned_to_a_commit(name: str) -> None:
    source = sources()[name]
    assert len(source.revision) == 40
    owner = source.homepage.removeprefix("https://github.com/")
    start = f"https://raw.githubusercontent.com/{owner}/{source.revision}"
    for spec in source.files.values():
        assert source.url_of(spec).startswith(start), spec.path


def test_a_source_that_cannot_be_fetched_has_no_url() -> None:
    assert sources()["cogs_gen_2020"].url == ""


NOT_SHARED = {
    "conceptual/openbookqa/OpenBookQA-V1-Sep2018.zip",
    "conceptual/hotpotqa/hotpot_dev_fullwiki_v1.json",
    "diner/tmcd_data.json",
}
"""Declared files that the folder of shared data lacks."""


def test_declared_sizes_and_hashes_are_those_of_the_local_copy(shared_data: Path) -> None:
    absent = set()
    different = {}
    for source in sources().values():
        for spec in source.files.values():
            path = source.folder + spec.path
            if not (shared_data / path).exists():
                absent.add(path)
                continue
            content = (shared_data / path).read_bytes()
            sha256 = hashlib.sha256(content).hexdigest()
            if (spec.size, spec.sha256) != (len(content), sha256):
                different[path] = (len(content), sha256)
    assert absent == NOT_SHARED
    assert different == {}


def is_read_by_magnifico(path: str) -> bool:
    """Return whether the benchmark reads a file; it reads no template of a dialogue."""
    return path.endswith(".tsv") or PurePosixPath(path).parts[1] != "dialogue_data_pos"


def test_manifests_have_what_magnifico_reads(shared_data: Path) -> None:
    folder = shared_data / "magnifico/magnifico_data"
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    needed = {path for path in files if is_read_by_magnifico(path)}
    texts = set(sources()["magnifico"].files)
    dialogues = set(sources()["magnifico_dialogues"].files)
    assert texts == {path for path in needed if path.endswith(".tsv")}
    assert texts | dialogues == needed
    assert len(files - needed) == 125, "one template per dialogue is left out"


def test_the_manifest_of_spider_has_every_database_and_script(shared_data: Path) -> None:
    folder = shared_data / "spider_databases"
    databases = {f"{path.name}/{path.name}.sqlite" for path in folder.iterdir() if path.is_dir()}
    scripts = {f"{path.parent.name}/{path.name}" for path in folder.glob("*/*.sql")}
    assert set(sources()["spider_databases"].files) == databases | scripts


WRONG_SOURCES = {
    "misspelt key": (
        "  licence: CC0",
        "  license: CC0",
        "toy.licence: the key is missing (and 1 more pro",
    ),
    "unknown key": ("  licence: CC0", "  licence: CC0\n  note: x", "toy.note: unknown key"),
    "size of 0": (
        "size: 44000",
        "size: 0",
        "toy.files.alpha.size: Input should be greater than 0, got 0",
    ),
    "size as a text": (
        "size: 44000",
        "size: '44000'",
        "toy.files.alpha.size: Input should be a valid integer",
    ),
    "no hash": (
        "sha256: ",
        "sha256: X",
        "toy.files.alpha.sha256: String should match pattern",
    ),
    "absolute path": (
        "path: alpha",
        "path: /etc/alpha",
        "toy.files.alpha.path: write a relative",
    ),
    "path out of the folder": (
        "path: alpha",
        "path: a/../../a",
        "toy.files.alpha.path: write a relative",
    ),
    "path with a backslash": (
        "path: alpha",
        "path: a\\b/a",
        "toy.files.alpha.path: write a relative",
    ),
    "folder out of the data": ("folder: toy/", "folder: ../toy/", "toy.folder: write a relative"),
    "URL without a slash": ("{revision}/", "{revision}", "toy.url: String should match pattern"),
    "licence of two lines": (
        "licence: CC0",
        "licence: |\n    two\n    lines",
        "toy.licence: String should match",
    ),
    "repeated key": (
        "    beta:",
        "    alpha:",
        "not valid YAML: the key 'alpha' is repeated",
    ),
    "open bracket": ("toy:", "toy: [", "not valid YAML: "),
    "no UTF-8": ("toy:", "\udcfftoy:", "not valid YAML: "),
    "nested list": (
        "toy:",
        "z: " + "[" * 98 + "]" * 98 + "\ntoy:",
        "z: Input should be an object",
    ),
    "nested too deep, in brackets": (
        "toy:",
        "z: " + "[" * 100_000 + "]" * 100_000 + "\ntoy:",
        "not valid YAML: nested more than",
    ),
    "nested too deep, in lines": (
        "toy:",
        "z:\n  " + "- " * 100_000 + "a\ntoy:",
        "not valid YAML: nested more than 100",
    ),
    "both a URL and a reason": (
        "url: http",
        "unavailable: lost\n  url: http",
        "toy: write either 'url', or",
    ),
    "neither a URL nor a reason": ("unavailable: ", "# ", "lost: write either 'url', or"),
}
"""A text of the file of sources, what replaces it, and the message about that."""

WRONG_MANIFESTS = {
    "negative size": (
        '{"size": ',
        '{"size": -',
        "many.files.part0/00.txt.size: Input should be greater than 0",
    ),
    "no JSON": ('{"size": ', "", "not valid YAML: "),
}
"""A text of the manifest of ``many``, what replaces it, and the message about that."""


def check_message_about(
    file: Path, text: str, replacement: str, declared: Path, message: str
) -> None:
    """Assert that an edited file of declarations is refused in one line that names its place."""
    content = file.read_text()
    assert text in content
    edited = content.replace(text, replacement, 1)
    file.write_bytes(edited.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError) as caught:
        sources()
    assert str(caught.value).startswith(f"{declared}: {message}")
    assert str(caught.value).isprintable()


@pytest.fixture
def declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of three made-up sources, beside the folder of manifests."""
    path = write_sources(tmp_path, "http://127.0.0.1")
    monkeypatch.setenv("LM_EVAL_EXT_SOURCES", str(path))
    return path


@pytest.mark.parametrize(
    ("text", "replacement", "message"), WRONG_SOURCES.values(), ids=WRONG_SOURCES
)
def test_a_bad_declaration_names_file_and_key(
    declared: Path, text: str, replacement: str, message: str
) -> None:
    check_message_about(declared, text, replacement, declared, message)


@pytest.mark.parametrize(
    ("text", "replacement", "message"), WRONG_MANIFESTS.values(), ids=WRONG_MANIFESTS
)
def test_a_bad_manifest_names_the_declaration_and_the_file(
    declared: Path, text: str, replacement: str, message: str
) -> None:
    manifest = declared.parent / "manifests/many.json"
    check_message_about(manifest, text, replacement, declared, message)
