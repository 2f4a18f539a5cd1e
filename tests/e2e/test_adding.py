"""The benchmark that docs/adding.md goes through: its files as they stand on the page work."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PARAGRAPH = r"(?:(?!\n\n).)*?"
FILE = re.compile(
    rf"^`([\w/.]+)`{PARAGRAPH}:\n\n```(?:yaml|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
"""A file's name, and the block that follows its paragraph."""
SHARED = ("pyproject.toml", "lm_eval_ext", "tasks", "tests")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the checkout with the page's files in it, and items up to twenty."""
    for name in SHARED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    files = dict(FILE.findall((ROOT / "docs" / "adding.md").read_text(encoding="utf-8")))
    assert {Path(name).name for name in files} >= {
        "card.yaml",
        "load.py",
        "score.py",
        "plurals_mini.yaml",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (items,) = tmp_path.rglob("plurals/mini.yaml")
    content = yaml.safe_load(items.read_text(encoding="utf-8"))
    more = [{"noun": f"blif{n}", "plural": f"blif{n}s", "ending": "s"} for n in range(20)]
    content["items"] = (content["items"] + more)[:20]
    items.write_text(yaml.safe_dump(content), encoding="utf-8")
    return tmp_path


@pytest.mark.e2e
def test_the_example_of_the_page_passes_its_tests_and_ours(checkout: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider",
         "tests/benchmarks/plurals", "tests/test_tasks.py", "-k", "plurals"],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert int(re.findall(r"(\d+) passed", done.stdout)[0]) > 10
