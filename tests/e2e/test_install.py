"""The package as users install it: wheel, uninstall, editable lm-eval, lm-eval's next release."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from support import small_lm_eval

pytestmark = [pytest.mark.e2e, pytest.mark.long]

ROOT = Path(__file__).resolve().parents[2]
PURELIB = Path(sysconfig.get_paths()["purelib"])


class Environment:
    """A virtual environment of its own that borrows this one's libraries.

    They are linked one by one. This project is left out, and so are start-up files, so its
    editable install here does not reach in.
    """

    def __init__(self, folder: Path, *, lm_eval: bool = True) -> None:
        """Args: where it goes; whether it has an lm-eval, with one of lm-eval's own tasks."""
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        self.python = folder / "bin" / "python"
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        self.site = folder / "lib" / version / "site-packages"
        borrowed = folder / "borrowed"
        borrowed.mkdir()
        for library in PURELIB.iterdir():
            ours = library.name.startswith("lm_eval_ext") or library.suffix == ".pth"
            about = library.name.startswith("lm_eval-") and not lm_eval
            if not (ours or about or library.name == "lm_eval"):
                (borrowed / library.name).symlink_to(library)
        if lm_eval:
            small_lm_eval.copy_to(borrowed)
        (self.site / "borrowed.pth").write_text(f"{borrowed}\n")

    def pip(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "pip", "--python", str(self.python), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr[-3000:]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.python), *arguments],
            # A checkout on the user's PYTHONPATH would be what is tested.
            env={**os.environ, "PYTHONPATH": ""},
            cwd=self.site.parent,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
         "--wheel-dir", str(folder), str(ROOT)],
        check=True, capture_output=True, timeout=300,
    )  # fmt: skip
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_package_and_the_start_up_file(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    files = (path for path in (ROOT / "lm_eval_ext").rglob("*") if path.is_file())
    package_files = {str(path.relative_to(ROOT)) for path in files if path.suffix != ".pyc"}
    assert names >= package_files | {"lm_eval_ext_autoload.pth"}
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {
        "lm_eval_ext", "lm_eval_ext_autoload.pth"
    }  # fmt: skip


def test_an_installed_wheel_is_seen_and_uninstalling_leaves_nothing(
    tmp_path: Path, wheel: Path
) -> None:
    """Half removed, it is silent."""
    environment = Environment(tmp_path / "venv")
    install = (*OFFLINE, str(wheel))

    def run(*arguments: str) -> str:
        done = environment.run(*arguments)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    before = {path.name for path in environment.site.iterdir()}
    environment.pip(*install)
    where = run("-c", "import lm_eval_ext; print(lm_eval_ext.__file__)")
    assert where.startswith(str(environment.site)), "the wheel is what is tested"
    listed = run("-m", "lm_eval", "ls", "subtasks")
    assert "lieder_mini" in listed
    assert "lieder_base" in listed
    limited = ("--tasks", "lieder_mini", "--model", "dummy", "--limit", "2")
    assert "direct/existence" in run("-m", "lm_eval", *limited)

    def start() -> tuple[str, str]:
        done = environment.run("-c", "print('quiet')")
        return done.stdout, done.stderr

    environment.pip("uninstall", "--yes", "lm-eval-ext")
    assert {path.name for path in environment.site.iterdir()} == before
    assert start() == ("quiet\n", "")
    environment.pip(*install)
    shutil.rmtree(environment.site / "lm_eval_ext")
    assert (environment.site / "lm_eval_ext_autoload.pth").exists()
    assert start() == ("quiet\n", "")


PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "lm_eval"
version = "0.4.13"
[tool.setuptools.packages.find]
include = ["lm_eval*"]
"""
OFFLINE = ("install", "--no-deps", "--no-index", "--no-build-isolation")


READS_ENTRY_POINTS = """
def _plugin_folders():
    from importlib.metadata import entry_points
    return [Path(ep.load().__path__[0]) for ep in entry_points(group="lm_eval.tasks")]
"""


def test_an_editable_lm_eval_and_its_next_release(tmp_path: Path, wheel: Path) -> None:
    """Emulates the merged and the open upstream change: entry points for models and tasks.

    First with our wheel, then with our checkout as an editable install.
    """
    editable = Environment(tmp_path / "venv", lm_eval=False)
    checkout = small_lm_eval.copy_to(tmp_path / "lm-evaluation-harness")
    (checkout / "pyproject.toml").write_text(PROJECT)
    editable.pip(*OFFLINE, "-e", str(checkout))
    editable.pip(*OFFLINE, str(wheel))
    where = editable.run("-c", "import lm_eval; print(lm_eval.__file__)").stdout
    assert where.startswith(str(checkout)), "the checkout is what is imported"
    listed = editable.run("-m", "lm_eval", "ls", "subtasks").stdout
    assert "lieder_mini" in listed
    assert small_lm_eval.ONLY_TASK in listed

    package = checkout / "lm_eval"
    manager = package / "tasks" / "manager.py"
    text = manager.read_text()
    anchor = "            all_paths.append(Path(__file__).parent)\n"
    assert anchor in text
    manager.write_text(
        text.replace(anchor, anchor + "            all_paths += _plugin_folders()\n")
        + READS_ENTRY_POINTS
    )
    models = package / "models" / "__init__.py"
    models.write_text(
        models.read_text()
        + "\nfrom importlib.metadata import entry_points\n"
        + "from lm_eval.api.registry import model_registry\n"
        + 'for _ep in {ep.name: ep for ep in entry_points(group="lm_eval.models")}.values():\n'
        + "    model_registry.register(_ep.name, target=_ep)\n"
    )
    _found_by_entry_points(editable)
    editable.pip(*OFFLINE, "-e", str(ROOT))
    where = editable.run("-c", "import lm_eval_ext; print(lm_eval_ext.__file__)").stdout
    assert where.startswith(str(ROOT)), "the checkout is what is tested"
    _found_by_entry_points(editable)


def _found_by_entry_points(environment: Environment) -> None:
    done = environment.run("-m", "lm_eval", "ls", "subtasks")
    assert done.returncode == 0, done.stderr[-3000:]
    assert "lieder_mini" in done.stdout
    assert "overrides existing" not in done.stderr, "indexed once, not twice"
    assert "lm-eval-ext" not in done.stderr
    code = (
        "import lm_eval.models; from lm_eval.api.registry import get_model, model_registry\n"
        "print(type(model_registry._objs['recorded']).__name__, get_model('recorded').__name__)"
    )
    done = environment.run("-c", code)
    assert done.stdout.split() == ["EntryPoint", "RecordedLM"], done.stderr[-3000:]
