"""Files and folders that are complete or absent."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lm_eval_ext.atomic import atomic_folder, atomic_path, atomic_text
from lm_eval_ext.errors import OptionError


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with atomic_text(path) as file:
        file.write("half")
        assert not path.exists()
    assert path.read_text() == "half"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", [".", "/", "missing/a.txt"])
def test_a_path_where_no_file_can_be_is_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OptionError, match="cannot write") as caught, atomic_text(Path(name)):
        pass
    assert "\n" not in str(caught.value)


def test_no_folder_has_the_name_of_the_root() -> None:
    with pytest.raises(OptionError, match="cannot write /"), atomic_folder(Path("/")):
        pass


def test_others_may_write_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    path.write_bytes(b"old")
    with atomic_path(path) as partial, closing(sqlite3.connect(partial)) as connection:
        connection.execute("CREATE TABLE t (x)")
        assert path.read_bytes() == b"old"
    assert path.read_bytes().startswith(b"SQLite format 3")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("present", [False, True], ids=["absent", "empty"])
def test_a_folder_appears_when_it_is_complete(tmp_path: Path, present: bool) -> None:
    path = tmp_path / "new" / "folder"
    if present:
        path.mkdir(parents=True)
    with atomic_folder(path) as partial:
        (partial / "a.txt").write_text("half")
        assert not (path / "a.txt").exists()
    assert [p.name for p in path.iterdir()] == ["a.txt"]
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_with_files_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "a.txt").write_text("years of work")
    with (
        pytest.raises(OptionError, match=r"cannot write .*thesis: Directory not empty"),
        atomic_folder(tmp_path / "thesis") as partial,
    ):
        (partial / "a.txt").write_text("other")
    assert [str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")] == ["thesis", "thesis/a.txt"]
    assert (tmp_path / "thesis" / "a.txt").read_text() == "years of work"


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt(), ValueError("no")])
def test_an_error_leaves_nothing(tmp_path: Path, error: BaseException) -> None:
    seen = OptionError if isinstance(error, OSError) else type(error)
    with pytest.raises(seen), atomic_text(tmp_path / "a.txt") as file:
        file.write("half")
        raise error
    with pytest.raises(seen), atomic_folder(tmp_path / "folder") as partial:
        (partial / "a.txt").write_text("half")
        raise error
    assert list(tmp_path.iterdir()) == []
