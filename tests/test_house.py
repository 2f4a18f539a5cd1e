"""Project rules that no other tool checks."""

import subprocess
import sys
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

import pytest
from support.collected import COLLECTED

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "lm_eval_ext"
MOST_LINES = 500


def test_import_contracts_hold() -> None:
    """The import contracts of pyproject.toml."""
    tool = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([str(tool)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_no_two_test_files_share_a_name() -> None:
    """pytest would take one for the other, and drop it with an error."""
    special = {"conftest.py", "__init__.py"}
    names = Counter(path.name for path in (ROOT / "tests").rglob("*.py"))
    assert not {name for name, count in names.items() if count > 1} - special


def test_no_module_is_too_long() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in PACKAGE.rglob("*.py")}
    assert not {path for path, lines in lengths.items() if lines > MOST_LINES}


def test_every_module_has_a_docstring() -> None:
    for path in PACKAGE.rglob("*.py"):
        assert path.read_text().startswith(('"""', 'r"""')), path


def test_no_folder_of_tests_is_passed_over(pytestconfig: pytest.Config) -> None:
    """pytest enters no folder that is called build or dist, and says nothing."""
    patterns = pytestconfig.getini("norecursedirs")
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "tests").rglob("test_*.py")}
    names = {name for folder in folders for name in folder.parts}
    assert names >= {"tests", "e2e", "building"}
    assert not [name for name in names if any(fnmatch(name, pattern) for pattern in patterns)]


def test_every_test_file_is_collected(pytestconfig: pytest.Config) -> None:
    if [str(path) for path in pytestconfig.args] != pytestconfig.getini("testpaths"):
        pytest.skip("only a part of the tests was asked for")
    files = {path for path in (ROOT / "tests").rglob("*.py") if path.name.startswith("test_")}
    assert pytestconfig.stash[COLLECTED] == files
