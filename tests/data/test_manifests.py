"""Manifests: the packaged ones, errors of the reader, and output of the script."""

import hashlib
import subprocess
import sys
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

import many_files
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from lm_eval_ext.data import sources
from lm_eval_ext.data.manifest import manifest_lines
from lm_eval_ext.data.sources import HEADER, RelativePath, read_manifest
from lm_eval_ext.errors import DataError

PACKAGED = Path(sys.modules["lm_eval_ext.data"].__path__[0]) / "manifests"
SHA = hashlib.sha256(b"").hexdigest()
ROW = f"a.txt\t5\t{SHA}"


def commit_urls(name: str) -> set[str]:
    source = sources()[name]
    return {
        str(source.url_of(spec)).rpartition(source.revision)[0] for spec in source.files.values()
    }


@pytest.mark.parametrize(
    "name", ["magnifico", "magnifico_mappings", "spider_databases", "cogs", "cogs_exposure"]
)
def test_packaged_sources_are_pinned_to_a_commit(name: str) -> None:
    source = sources()[name]
    assert len(source.revision) == 40
    owner = source.homepage.removeprefix("https://github.com/")
    assert commit_urls(name) == {f"https://raw.githubusercontent.com/{owner}/"}


def test_every_packaged_manifest_belongs_to_a_source() -> None:
    named = {source.manifest for source in sources().values() if source.manifest}
    assert named == {path.name for path in PACKAGED.glob("*.tsv")}


def test_magnifico_has_what_the_benchmark_reads(shared_data: Path) -> None:
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


def test_every_database_has_its_file_and_its_script(shared_data: Path) -> None:
    folder = shared_data / "spider_databases"
    files = sources()["spider_databases"].files
    databases = [path.name for path in folder.iterdir() if path.is_dir()]
    assert {f"{name}/{name}.sqlite" for name in databases} <= set(files)
    scripts = {f"{path.parent.name}/{path.name}" for path in folder.glob("*/*.sql")}
    assert scripts <= set(files)
    assert len(files) == len(databases) + len(scripts)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1 is not the header"),
        ("path size sha256\n", "line 1 is not the header"),
        (f"{HEADER}\r\n{ROW}\r\n", "line 1 is not the header"),
        (f"{HEADER}\n", "no files, or the last line has no line break"),
        (f"{HEADER}\n{ROW}", "no files, or the last line has no line break"),
        (f"{HEADER}\n{ROW}\n\n", "line 3 has 1 columns instead of 3"),
        (f"{HEADER}\n{ROW}\tmore\n", "line 2 has 4 columns instead of 3"),
        (f"{HEADER}\n{ROW}\n{ROW}\n", "line 3: 'a.txt' is repeated"),
        (f"{HEADER}\nb\t5\t{SHA}\n{ROW}\n", "line 3: 'a.txt' is repeated or not in sorted"),
        (f"{HEADER}\na\t5.0\t{SHA}\n", "line 2: the size is '5.0'"),
        (f"{HEADER}\na\t05\t{SHA}\n", "line 2: the size is '05'"),
        (f"{HEADER}\na\t+5\t{SHA}\n", "line 2: the size is '+5'"),
        (f"{HEADER}\na\t\u0665\t{SHA}\n", "line 2: the size is '\u0665'"),
        (f"{HEADER}\na\t0\t{SHA}\n", "a.size: Input should be greater than 0, got 0"),
        (f"{HEADER}\na\t5\t{SHA.upper()}\n", "a.sha256: String should match pattern"),
        (f"{HEADER}\na\t5\t{SHA[1:]}\n", "a.sha256: String should match pattern"),
        (f"{HEADER}\n../a\t5\t{SHA}\n", "../a.path: Value error, write a plain relative path"),
        (f"{HEADER}\n/a\t5\t{SHA}\n", "/a.path: Value error, write a plain relative path"),
        (f"{HEADER}\na\\b\t5\t{SHA}\n", "a\\b.path: Value error, write a plain relative path"),
        (f"{HEADER}\na/\t5\t{SHA}\n", "a/.path: Value error, write a plain relative path"),
        (f"{HEADER}\na\udcff\t5\t{SHA}\n", "'utf-8' codec can't decode byte 0xff"),
    ],
)
def test_a_bad_manifest_names_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    declared = many_files.write_sources(tmp_path, "http://127.0.0.1")
    monkeypatch.setenv("LM_EVAL_EXT_SOURCES", str(declared))
    manifest = tmp_path / "manifests/many.tsv"
    manifest.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError) as caught:
        sources()
    shown = str(caught.value).replace("not valid as a manifest: ", "")
    assert shown.startswith(f"{manifest}: {message}")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("manifest: many.tsv", "manifest: other.tsv", "other.tsv: cannot be read (No such file"),
        ("manifest: many.tsv", "manifest: ../many.tsv", "many.manifest: String should match"),
        ("  manifest: many.tsv\n", "", "many: Value error, write either 'files' (at least one) or"),
        ("  manifest: many.tsv\n", "  files: {}\n", "many: Value error, write either 'files' (at"),
        (
            "  manifest: many.tsv\n",
            "  manifest: many.tsv\n"
            f"  files: {{a: {{path: a/b, url: b, size: 1, sha256: {SHA}}}}}\n",
            "many: Value error, write either 'files' (at least one) or 'manifest'",
        ),
        ("  folder: many/files/\n", "", "many: Value error, 'manifest' and 'folder' go together"),
        ("folder: many/files/", "folder: many/files", "many.folder: String should match pattern"),
        ("folder: many/files/", "folder: ../files/", "many.folder: Value error, write a plain"),
        ("folder: many/files/", "folder: /files/", "many.folder: Value error, write a relative"),
        ("url: http", "unavailable: lost\n  url: http", "many: Value error, write 'unavailable'"),
        ("url: http", "url: null\n  # http", "many: Value error, write 'unavailable'"),
        ("  citation", "  ? [a, b]\n  : x\n  citation", "many.yaml: not valid YAML: "),
        ("  citation", "  note: x\n  citation", "many.note: unknown key"),
    ],
)
def test_a_bad_declaration_names_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, message: str
) -> None:
    declared = many_files.write_sources(tmp_path, "http://127.0.0.1")
    text = declared.read_text()
    assert old in text
    declared.write_text(text.replace(old, new, 1))
    monkeypatch.setenv("LM_EVAL_EXT_SOURCES", str(declared))
    with pytest.raises(DataError) as caught:
        sources()
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path))


def test_two_sources_cannot_share_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declared = many_files.write_sources(tmp_path, "http://127.0.0.1")
    text = declared.read_text()
    declared.write_text(text + text.replace("many:\n", "again:\n", 1))
    monkeypatch.setenv("LM_EVAL_EXT_SOURCES", str(declared))
    with pytest.raises(DataError, match=r"two files have the path 'many/files/a b\.txt'"):
        sources()


@given(st.text(alphabet="a./\\é ", max_size=12).filter(lambda path: path[:1].strip()))
def test_legal_paths_are_those_that_mean_one_place(path: str) -> None:
    pure = PurePosixPath(path)
    legal = (
        str(pure) == path
        and not pure.is_absolute()
        and ".." not in pure.parts
        and "\\" not in path
        and len(pure.parts) > 1
    )
    try:
        accepted = TypeAdapter(RelativePath).validate_python(path) == path
    except ValidationError:
        accepted = False
    assert accepted is legal


@given(
    st.dictionaries(
        st.text(alphabet="ab é#%:", min_size=1, max_size=6).map(lambda name: f"d/x{name}x"),
        st.binary(min_size=1, max_size=9),
        min_size=1,
        max_size=5,
    )
)
def test_what_the_script_writes_is_what_the_reader_reads(
    tmp_path_factory: pytest.TempPathFactory, contents: dict[str, bytes]
) -> None:
    folder = tmp_path_factory.mktemp("files")
    (folder / "d").mkdir()
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    manifest = folder / "manifest.tsv"
    lines = list(manifest_lines(folder))
    manifest.write_bytes("\n".join([*lines, ""]).encode())
    read = read_manifest(manifest, "mine/")
    assert {
        name: (spec.path, unquote(str(spec.url)), spec.size, spec.sha256)
        for name, spec in read.items()
    } == {
        name: (f"mine/{name}", name, len(content), hashlib.sha256(content).hexdigest())
        for name, content in contents.items()
    }


def test_the_script_prints_the_files_that_are_chosen(tmp_path: Path) -> None:
    copy = many_files.write_copy(tmp_path) / many_files.FOLDER
    (copy / ".hidden").write_text("no")
    expected = many_files.write_manifest(tmp_path / "m" / "all.tsv", many_files.CONTENTS)

    def printed(*patterns: str) -> bytes:
        command = [sys.executable, "-m", "lm_eval_ext.data.manifest", str(copy), *patterns]
        done = subprocess.run(command, capture_output=True, check=True, timeout=60)
        assert done.stderr == b""
        return done.stdout

    assert printed() == expected.read_bytes()
    part = {name: c for name, c in many_files.CONTENTS.items() if name.startswith(("part1/", "k"))}
    chosen = many_files.write_manifest(tmp_path / "m" / "part.tsv", part)
    assert printed("part1/*", "k*") == chosen.read_bytes()


def test_reading_manifests_is_no_work_of_the_import(tmp_path: Path) -> None:
    code = (
        "import sys; sys.addaudithook(lambda event, arguments: "
        "event == 'open' and str(arguments[0]).endswith(('.tsv', 'sources.yaml')) and "
        "print(arguments[0]))\nimport lm_eval_ext.data\nprint('imported')\n"
        "lm_eval_ext.data.sources()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    first, *opened = done.stdout.splitlines()
    assert first == "imported"
    assert len(opened) == 1 + len(list(PACKAGED.glob("*.tsv")))
