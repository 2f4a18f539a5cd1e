"""The check of a release: what a wheel or an sdist lacks, or should not have, is a problem."""

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from bench import release
from lm_eval_ext import __version__


def write_release(folder: Path, wheel_names: list[str], sdist_names: list[str]) -> None:
    """Write a wheel and an sdist of empty files."""
    with zipfile.ZipFile(folder / f"lm_eval_ext-{__version__}-py3-none-any.whl", "w") as wheel:
        for name in wheel_names:
            wheel.writestr(name, "")
    with tarfile.open(folder / f"lm_eval_ext-{__version__}.tar.gz", "w:gz") as sdist:
        for name in sdist_names:
            sdist.addfile(tarfile.TarInfo(f"lm_eval_ext-{__version__}/{name}"), io.BytesIO())


def test_a_complete_release_has_no_problem(tmp_path: Path) -> None:
    """Our own folder of results is part of the package."""
    wheel_names = [*release.WHEEL_NEEDS, "lm_eval_ext/results/files.py"]
    write_release(tmp_path, wheel_names, list(release.SDIST_NEEDS))
    assert list(release.content_problems(tmp_path)) == []


@pytest.mark.parametrize("name", release.WHEEL_NEEDS)
def test_a_file_that_a_wheel_lacks_is_named(tmp_path: Path, name: str) -> None:
    wheel_names = [needed for needed in release.WHEEL_NEEDS if needed != name]
    write_release(tmp_path, wheel_names, list(release.SDIST_NEEDS))
    (problem,) = release.content_problems(tmp_path)
    assert problem.endswith(f"lacks {name}")


@pytest.mark.parametrize(
    "name",
    [
        "results/samples.jsonl",
        "shared/data/dev.json",
        ".demo/smollm2/config.json",
        "lm_eval_ext/__pycache__/text.cpython-311.pyc",
        "model.gguf",
    ],
)
def test_a_file_that_does_not_belong_into_an_sdist_is_named(tmp_path: Path, name: str) -> None:
    write_release(tmp_path, list(release.WHEEL_NEEDS), [*release.SDIST_NEEDS, name])
    (problem,) = release.content_problems(tmp_path)
    assert problem.endswith(f"has {name}")


def test_package_citation_and_changelog_have_one_version() -> None:
    """The package, the citation and the newest heading of the changelog have one version."""
    assert list(release.version_problems()) == []


def test_a_folder_without_a_release_is_one_line(tmp_path: Path) -> None:
    (problem,) = release.content_problems(tmp_path)
    assert "expected one wheel and one sdist" in problem
