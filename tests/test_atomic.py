"""Files that are whole or not there."""

from pathlib import Path

import pytest

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.errors import OptionError


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with atomic_text(path) as file:
        file.write("half")
        assert not path.exists()
    assert path.read_text() == "half"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", [".", "/", "missing/a.txt"])
def test_where_no_file_can_be_is_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OptionError, match="cannot write") as caught, atomic_text(Path(name)):
        pass
    assert "\n" not in str(caught.value)
