"""Project rules that no other tool checks."""

import ast
import sys
from fnmatch import fnmatch
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "lm_eval_ext"
MOST_LINES = 600


def test_modules_are_not_too_long() -> None:
    for path in PACKAGE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= MOST_LINES, path


RETIRED = {"asked", "found", "given", "got", "own", "said", "stuff", "thing", "told"}
"""Names that do not say what a thing is (CONTRIBUTING.md, Words)."""

PUBLIC = {"lm_eval_ext/training/recipe.py: asked", "lm_eval_ext/answers/turn.py: said"}
"""Names that other people's code may import, so that they stay."""


def names_in(path: Path) -> set[str]:
    """Return the names that a module gives to functions, classes, arguments and variables."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
    return names


def test_no_name_is_a_retired_word() -> None:
    retired = set()
    for folder in (PACKAGE, ROOT / "bench"):
        for path in folder.rglob("*.py"):
            for name in names_in(path) & RETIRED:
                retired.add(f"{path.relative_to(ROOT).as_posix()}: {name}")
    assert retired == PUBLIC


def test_a_retired_word_is_seen(tmp_path: Path) -> None:
    """It is seen as the name of a variable, an argument and a function."""
    path = tmp_path / "module.py"
    path.write_text("def told(asked):\n    found = asked\n    return found\n")
    assert names_in(path) == {"told", "asked", "found"}


INDIRECT = {"gguf", "lm-eval-ext", "pytz", "vl-convert-python"}
"""Distributions that transformers, duckdb and altair import late, and extras of extras."""


def test_imports_and_declared_dependencies_agree() -> None:
    """The package imports dependencies and extras for users; other folders may import any extra.

    A name that no installed distribution has is one of our own modules.
    """
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras: dict[str, list[str]] = dict(project["optional-dependencies"])
    users = extras.keys() - {"test", "lint", "docs", "dev"}
    owners, undeclared = packages_distributions(), set()
    unused = set[str]()
    for folder in ("lm_eval_ext", "tests", "bench", "docs", "examples"):
        allowed_extras = users if folder == "lm_eval_ext" else extras
        texts = [
            *project["dependencies"],
            *(text for key in allowed_extras for text in extras[key]),
        ]
        declared = {canonicalize_name(Requirement(text).name) for text in texts}
        imported = set[str]()
        for file in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    imported |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    imported.add(node.module.partition(".")[0])
        undeclared |= {
            (folder, name)
            for name in owners.keys() & imported - sys.stdlib_module_names - {"lm_eval_ext"}
            if not declared & {canonicalize_name(distribution) for distribution in owners[name]}
        }
        if folder == "lm_eval_ext":
            used = {
                canonicalize_name(distribution)
                for name in imported
                for distribution in owners.get(name, ())
            }
            unused = declared - used - INDIRECT
    assert not undeclared
    assert not unused


def test_no_folder_of_tests_is_passed_over(pytestconfig: pytest.Config) -> None:
    """pytest enters no folder that is called build or dist, and says nothing."""
    patterns = pytestconfig.getini("norecursedirs")
    files = (path.relative_to(ROOT) for path in (ROOT / "tests").rglob("test_*.py"))
    names = {name for file in files for name in file.parts[:-1]}
    assert names >= {"tests", "e2e"}
    assert not [name for name in names if any(fnmatch(name, pattern) for pattern in patterns)]
