"""The commands of the guide in docs/sql_score.md do what the page shows."""

import re
import shlex
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lm_eval_ext.cli.app import app

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("sql guide")]

ROOT = Path(__file__).resolve().parents[2]
SECTION = "## Ten predictions in two minutes"
BLOCK = re.compile(r"^```console\n\$ lm-eval-ext (.*?)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)


def stable_lines(screen: str) -> list[str]:
    """Lines that depend neither on the machine nor on the rows that a suite draws."""
    pattern = (
        r"accuracy: |on the original|  \w+ +\d|one table|join|subquery|row 3 of|gold: |see why"
    )
    return [line for line in screen.splitlines() if re.match(pattern, line)]


def test_the_guide_shows_what_its_commands_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten predictions are scored and one is explained, as on the page."""
    for file in (ROOT / "examples" / "sql_score").iterdir():
        shutil.copy(file, tmp_path)
    with closing(sqlite3.connect(tmp_path / "shop.sqlite")) as connection:
        connection.executescript((tmp_path / "shop.sql").read_text(encoding="utf-8"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LM_EVAL_EXT_CACHE", str(tmp_path / "cache"))
    page = (ROOT / "docs" / "sql_score.md").read_text(encoding="utf-8")
    section = page.partition(SECTION)[2].partition("\n## ")[0]
    blocks = BLOCK.findall(section)
    assert [command.split()[0] for command, _ in blocks] == ["sql-score", "sql"]
    for command, shown in blocks:
        result = CliRunner().invoke(app, shlex.split(command))
        assert result.exit_code == 0, command
        assert stable_lines(result.output) == stable_lines(shown), command
    assert "enough to show the difference:" in blocks[1][1]
