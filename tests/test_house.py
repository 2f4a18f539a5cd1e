"""Project rules that no other tool checks."""

import ast
import sys
from collections.abc import Iterable, Set
from fnmatch import fnmatch
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "lm_eval_ext"
MAX_LINES = 600


def test_modules_are_not_too_long() -> None:
    for path in PACKAGE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= MAX_LINES, path


RETIRED = {
    "among", "asked", "behind", "few", "found", "given", "got", "here", "it", "less", "loosely",
    "made", "much", "ones", "others", "own", "places", "said", "some", "stuff", "that", "them",
    "there", "these", "thing", "things", "this", "those", "told", "usual", "wanted", "what",
    "which", "whose",
}  # fmt: skip
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
    for folder in (PACKAGE, ROOT / "bench", ROOT / "tests"):
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


Dependencies = dict[str, list[str]]
"""Requirements as pyproject.toml has them, by the name of an extra; "" for those of all users."""

DEVELOPERS = {"test", "lint", "docs", "dev"}
"""Extras that users do not install."""


@pytest.fixture(scope="module")
def dependencies() -> Dependencies:
    """The project's dependencies and those of its extras."""
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras: Dependencies = dict(project["optional-dependencies"])
    return {"": project["dependencies"], **extras}


def distributions(requirements: Iterable[str]) -> set[str]:
    """Return the canonical names of the distributions that are required."""
    return {canonicalize_name(Requirement(text).name) for text in requirements}


def imported_modules(folder: Path) -> set[str]:
    """Return the top-level modules that the files of a folder import."""
    modules: set[str] = set()
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules.add(node.module.partition(".")[0])
    return modules


def undeclared_modules(folder: Path, declared: Set[str]) -> set[str]:
    """Return the modules of installed distributions that are imported and not declared.

    A name that no installed distribution has is one of our own modules.
    """
    owners = packages_distributions()
    foreign = imported_modules(folder) - sys.stdlib_module_names - {"lm_eval_ext"}
    undeclared = set()
    for module in owners.keys() & foreign:
        owner_names = {canonicalize_name(owner) for owner in owners[module]}
        if not declared & owner_names:
            undeclared.add(module)
    return undeclared


def test_the_package_imports_dependencies_and_extras_of_users(dependencies: Dependencies) -> None:
    of_users = [dependencies[extra] for extra in dependencies.keys() - DEVELOPERS]
    assert undeclared_modules(PACKAGE, distributions(chain(*of_users))) == set()


@pytest.mark.parametrize("folder", ["tests", "bench", "docs", "examples"])
def test_other_folders_import_declared_distributions(
    folder: str, dependencies: Dependencies
) -> None:
    declared = distributions(chain(*dependencies.values()))
    assert undeclared_modules(ROOT / folder, declared) == set()


def test_every_dependency_of_users_is_imported(dependencies: Dependencies) -> None:
    of_users = [dependencies[extra] for extra in dependencies.keys() - DEVELOPERS]
    owners = packages_distributions()
    imported: set[str] = set()
    for module in imported_modules(PACKAGE):
        imported.update(canonicalize_name(owner) for owner in owners.get(module, ()))
    assert distributions(chain(*of_users)) - imported - INDIRECT == set()


def test_no_folder_of_tests_is_passed_over(pytestconfig: pytest.Config) -> None:
    """pytest enters no folder that is called build or dist, and says nothing."""
    patterns = pytestconfig.getini("norecursedirs")
    folders: set[str] = set()
    for file in (ROOT / "tests").rglob("test_*.py"):
        folders.update(file.relative_to(ROOT).parts[:-1])
    assert folders >= {"tests", "e2e"}
    for folder in folders:
        for pattern in patterns:
            assert not fnmatch(folder, pattern), f"{folder} is passed over by {pattern}"
