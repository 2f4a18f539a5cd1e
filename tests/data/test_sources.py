"""The declarations: the packaged ones, and what the schema refuses."""

import hashlib
import subprocess
import sys
from collections import Counter
from pathlib import Path, PurePosixPath

import pytest
import server as fake

from lm_eval_ext.data import sources
from lm_eval_ext.errors import DataError

PACKAGED = Path(sys.modules["lm_eval_ext.data"].__path__[0]) / "manifests"
SHA = hashlib.sha256(b"").hexdigest()
HEADER = "path\tsize\tsha256"
ROW = f"a.txt\t5\t{SHA}"


@pytest.fixture
def declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = fake.write_sources(tmp_path, "http://127.0.0.1")
    monkeypatch.setenv("LM_EVAL_EXT_SOURCES", str(path))
    return path


def test_packaged_files_are_declared_once_and_pinned_to_a_commit() -> None:
    paths = Counter(spec.path for source in sources().values() for spec in source.files.values())
    assert set(paths.values()) == {1}
    named = {source.manifest for source in sources().values() if source.manifest}
    assert named == {path.name for path in PACKAGED.glob("*.tsv")}
    assert sources()["cogs_gen_2020"].url is None
    for name in ("lieder", "magnifico", "magnifico_mappings", "spider_databases", "cogs"):
        source = sources()[name]
        assert len(source.revision) == 40
        owner = source.homepage.removeprefix("https://github.com/")
        start = f"https://raw.githubusercontent.com/{owner}/{source.revision}"
        assert all(str(source.url_of(spec)).startswith(start) for spec in source.files.values())


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
        ("sha256: ", "sha256: X", "toy.files.alpha.sha256: String should match pattern"),
        ("path: toy/alpha", "path: /etc/alpha", "toy.files.alpha.path: Value error, write a rel"),
        ("path: toy/alpha", "path: a/../../a", "toy.files.alpha.path: Value error, write a rel"),
        ("path: toy/alpha", "path: a\\b/a", "toy.files.alpha.path: Value error, write a relative"),
        ("{revision}/", "{revision}", "toy.url: String should match pattern"),
        ("url: http:", "url: ftp:", "toy.url: String should match pattern"),
        ("licence: CC0", "licence: |\n    two\n    lines", "toy.licence: String should match"),
        ("alpha:", "Al pha:", "toy.files.Al pha"),
        ("    beta:", "    alpha:", "not valid YAML: the key 'alpha' is repeated"),
        ("toy:", "toy: [", "not valid YAML: "),
        ("toy:", "\udcfftoy:", "not valid YAML: "),
        ("toy:", "z: " + "[" * 98 + "]" * 98 + "\ntoy:", "z: Input should be an object"),
        ("toy:", "z: " + "[" * 10**5 + "]" * 10**5 + "\ntoy:", "not valid YAML: nested more than"),
        ("toy:", "z:\n  " + "- " * 10**5 + "a\ntoy:", "not valid YAML: nested more than 100"),
        ("url: http", "unavailable: lost\n  url: http", "toy: Value error, write 'unavailable'"),
        ("url: null", "url: http://x/", "lost: Value error, write 'unavailable', with the"),
        ("url: files/a", "# url: files/a", "toy: Value error, the file 'alpha' needs a url exac"),
        ("manifest: many.tsv", "manifest: ../many.tsv", "many.manifest: String should match"),
        ("  manifest: many.tsv\n", "", "many: Value error, write either 'files' (at least one), "),
        ("  manifest: many.tsv\n", "  files: {}\n", "many: Value error, write either 'files'"),
        ("folder: many/files/", "folder: ../files/", "many.folder: Value error, write a relative"),
    ],
)
def test_a_bad_declaration_names_file_and_key(
    declared: Path, old: str, new: str, message: str
) -> None:
    text = declared.read_text()
    assert old in text
    declared.write_bytes(text.replace(old, new, 1).encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError) as caught:
        sources()
    assert str(caught.value).startswith(f"{declared}: {message}")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read (No such file or directory)"),
        ("", "line 1 is not path size sha256, with tabs between"),
        (f"{HEADER}\n{ROW}\tmore\n", "line 2: too many values to unpack (expected 3)"),
        (f"{HEADER}\na\t0\t{SHA}\n", "line 2: size: Input should be greater than 0, got 0"),
        (f"{HEADER}\n{ROW}\nb\t5\t{SHA.upper()}\n", "line 3: sha256: String should match pat"),
        (f"{HEADER}\n../a\t5\t{SHA}\n", "line 2: path: Value error, write a relative path"),
        (f"{HEADER}\na\udcff\t5\t{SHA}\n", "line 2: 'utf-8' codec can't decode byte 0xff"),
    ],
)
def test_a_bad_manifest_names_file_and_line(declared: Path, text: str | None, message: str) -> None:
    manifest = declared.parent / "manifests/many.tsv"
    manifest.unlink()
    if text is not None:
        manifest.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError) as caught:
        sources()
    assert str(caught.value).startswith(f"{manifest}: {message}")
    assert str(caught.value).isprintable()


def test_the_script_writes_what_is_read(tmp_path: Path, declared: Path) -> None:
    copy = fake.write_copy(tmp_path / "copy") / "many/files"
    script = [sys.executable, "-m", "lm_eval_ext.data.manifest", str(copy)]
    every, some = (
        subprocess.run([*script, *patterns], capture_output=True, check=True).stdout.decode()
        for patterns in ((), ("part1/*", "k*/*"))
    )
    assert set(every.splitlines()) == {HEADER, *(fake.row(*one) for one in fake.MANY.items())}
    assert {line.split("\t")[0] for line in some.splitlines()[1:]} == {
        name for name in fake.MANY if name.startswith(("part1", "k"))
    }
    (declared.parent / "manifests/many.tsv").write_text(every, encoding="utf-8", newline="")
    assert set(sources()["many"].files) == set(fake.MANY)
