"""Checks the files of a release, and lists what is left to do before it.

Usage: python -m bench.release DIST_FOLDER        (``make release-check`` builds it)

The exit status is 1 if versions differ, or if the wheel or the sdist lacks a file or has one that
does not belong there. The tag, the date and the public address are only listed.
"""

import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import yaml

from lm_eval_ext import __version__

ROOT = Path(__file__).resolve().parents[1]

WHEEL_NEEDS = (
    "lm_eval_ext/__init__.py",
    "lm_eval_ext/tasks/lieder.yaml",
    "lm_eval_ext/benchmarks/magnifico/mini/suites.json",
    "lm_eval_ext/benchmarks/magnifico/populated.LICENSE.md",
    "lm_eval_ext_autoload.pth",
)
"""Files without which an installed package does not work, or breaks a licence."""

SDIST_NEEDS = ("LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "tasks/lieder.yaml")

UNWANTED = re.compile(
    r"\A(?:results|shared|site|dist)/|(?:\A|/)(?:\.demo|\.venv|__pycache__)/|\.(?:pyc|gguf)\Z"
)
"""Files that other commands make, data of others, and compiled code."""


def changelog_heading() -> tuple[str, str]:
    """Return the version and the date of the newest heading of the changelog."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    heading = re.search(r"^## (\S+) \(([^)]+)\)$", text, re.MULTILINE)
    if heading is None:
        sys.exit("CHANGELOG.md: no heading such as '## 0.1.0 (unreleased)'")
    return heading[1], heading[2]


def version_problems() -> Iterator[str]:
    """Yield a line for each version that is not the package's."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    versions = {"CITATION.cff": str(citation["version"]), "CHANGELOG.md": changelog_heading()[0]}
    for file, version in versions.items():
        if version != __version__:
            yield f"{file} has version {version}, the package {__version__}"


def content_problems(folder: Path) -> Iterator[str]:
    """Yield a line for each file that a wheel or sdist lacks, or should not have."""
    wheels = list(folder.glob("*.whl"))
    sdists = list(folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sdists) != 1:
        yield f"{folder}: expected one wheel and one sdist; run make release-check"
        return
    with zipfile.ZipFile(wheels[0]) as wheel:
        wheel_names = wheel.namelist()
    with tarfile.open(sdists[0]) as sdist:
        sdist_names = [name.partition("/")[2] for name in sdist.getnames()]
    contents = ((wheels[0], wheel_names, WHEEL_NEEDS), (sdists[0], sdist_names, SDIST_NEEDS))
    for file, names, needs in contents:
        if file.name.removeprefix(f"lm_eval_ext-{__version__}")[:2] not in ("-p", ".t"):
            yield f"{file.name} is not of version {__version__}"
        for name in needs:
            if name not in names:
                yield f"{file.name} lacks {name}"
        for name in names:
            if UNWANTED.search(name):
                yield f"{file.name} has {name}"


def left_to_do() -> Iterator[str]:
    """Yield what only the person who releases can do."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    if changelog_heading()[1] == "unreleased":
        yield "CHANGELOG.md: replace 'unreleased' by the date"
    if "date-released" not in citation:
        yield "CITATION.cff: add date-released"
    if "[project.urls]" not in project:
        yield "pyproject.toml, CITATION.cff, docs/faq.md: add the public address"
    yield f'git tag -a v{__version__} -m "lm-eval-ext {__version__}"'


def main() -> int:
    """Print problems and what is left to do; return the exit status."""
    if len(sys.argv) != 2:  # noqa: PLR2004
        sys.exit("usage: python -m bench.release DIST_FOLDER")
    problems = [*version_problems(), *content_problems(Path(sys.argv[1]))]
    for problem in problems:
        sys.stdout.write(f"problem: {problem}\n")
    if not problems:
        sys.stdout.write(f"version {__version__}: wheel, sdist, changelog and citation agree\n")
    for task in left_to_do():
        sys.stdout.write(f"left to do: {task}\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
