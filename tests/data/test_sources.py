"""The declarations: the packaged ones, and what the schema refuses."""

import hashlib
from pathlib import Path

import pytest
from pydantic import ValidationError
from support import upstream as up

from lm_eval_ext.data import sources
from lm_eval_ext.errors import DataError


@pytest.fixture
def declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = up.write_sources(tmp_path / "sources.yaml", "http://127.0.0.1")
    monkeypatch.setenv("LM_EVAL_EXT_SOURCES", str(path))
    return path


@pytest.fixture
def packaged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LM_EVAL_EXT_SOURCES", raising=False)


@pytest.mark.usefixtures("packaged")
def test_lieder_is_pinned() -> None:
    lieder = sources()["lieder"]
    assert list(lieder.files) == ["base", "diff", "two"]
    assert lieder.licence == "none stated"
    for name, spec in lieder.files.items():
        assert spec.path == f"lieder/stimuli/{name}_stimuli.jsonl"
        assert lieder.url_of(spec) == (
            "https://raw.githubusercontent.com/xiaomeng-zhu/LIEDER/"
            f"ab5f161feb0b15fd94dbd68e52497ccc033b52b6/stimuli/{name}_stimuli.jsonl"
        )


@pytest.mark.usefixtures("packaged")
def test_declared_sizes_and_hashes_are_those_of_the_local_copy(shared_data: Path) -> None:
    declared = {
        spec.path: (spec.size, spec.sha256)
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


def test_another_file_replaces_the_packaged_one(declared: Path) -> None:
    assert list(sources()) == ["toy"]
    assert sources() is sources()
    assert sources()["toy"].size == len(up.ALPHA) + len(up.BETA)


def test_declarations_do_not_change(declared: Path) -> None:
    with pytest.raises(ValidationError):
        sources()["toy"].licence = "mine"
    with pytest.raises(TypeError):
        sources()["other"] = sources()["toy"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("licence:", "license:", "toy.licence: the key is missing (and 1 more problems)"),
        ("licence: CC0", "licence: CC0\n  note: x", "toy.note: unknown key"),
        ("      size:", "      note: 3\n      size:", "toy.files.alpha.note: unknown key"),
        ("size: 44000", "size: '44000'", "toy.files.alpha.size: Input should be a valid integer"),
        ("size: 44000", "size: 0", "toy.files.alpha.size: Input should be greater than 0, got 0"),
        ("size: 44000", "size: true", "toy.files.alpha.size: Input should be a valid integer"),
        ("sha256: '", "sha256: 'X", "toy.files.alpha.sha256: String should match pattern"),
        ("toy/alpha.txt", "/etc/alpha.txt", "toy.files.alpha.path: Value error, write a relative"),
        ("toy/alpha.txt", "toy/../../a.txt", "toy.files.alpha.path: Value error, write a plain"),
        ("toy/alpha.txt", "alpha.txt", "toy.files.alpha.path: Value error, write a relative"),
        ("toy/alpha.txt", "toy/deep/beta.txt", "two files have the path 'toy/deep/beta.txt'"),
        ("{revision}/", "{revision}", "toy.url: String should match pattern"),
        ("url: http:", "url: ftp:", "toy.url: String should match pattern"),
        ("licence: CC0", "licence: |\n    two\n    lines", "toy.licence: String should match"),
        ("alpha:", "Al pha:", "toy.files.Al pha"),
        ("    beta:", "    alpha:", "not valid YAML: the key 'alpha' is repeated"),
        ("toy:", "toy: [", "not valid YAML: "),
    ],
)
def test_a_bad_declaration_names_file_and_key(
    declared: Path, old: str, new: str, message: str
) -> None:
    text = declared.read_text()
    assert old in text
    declared.write_text(text.replace(old, new, 1))

    with pytest.raises(DataError) as caught:
        sources()

    assert str(caught.value).startswith(f"{declared}: {message}")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "top level: Input should be a valid dictionary, got None"),
        (b"{}", "top level: Dictionary should have at least 1 item"),
        (b"a: \xff", "not valid YAML: "),
        (None, "cannot be read (No such file or directory)"),
    ],
)
def test_a_file_without_declarations(declared: Path, content: bytes | None, message: str) -> None:
    declared.unlink()
    if content is not None:
        declared.write_bytes(content)
    with pytest.raises(DataError) as caught:
        sources()
    assert str(caught.value).startswith(f"{declared}: {message}")
    assert str(caught.value).isprintable()
