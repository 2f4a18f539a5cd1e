"""Rules of the house that no other tool holds."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "lm_eval_ext"
MOST_LINES = 400


def test_rooms_keep_their_distance() -> None:
    """The import contracts of pyproject.toml."""
    tool = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([str(tool)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_no_two_test_files_share_a_name() -> None:
    """pytest would take one for the other, and drop it with an error."""
    special = {"conftest.py", "__init__.py"}
    names = Counter(path.name for path in (ROOT / "tests").rglob("*.py"))
    assert not {name for name, count in names.items() if count > 1} - special


def test_no_file_needs_scrolling_for_minutes() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in PACKAGE.rglob("*.py")}
    assert not {path for path, lines in lengths.items() if lines > MOST_LINES}


def test_every_room_says_what_it_is() -> None:
    for path in PACKAGE.rglob("*.py"):
        assert path.read_text().startswith(('"""', 'r"""')), path
