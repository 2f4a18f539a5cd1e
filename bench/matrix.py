"""Installs the project's wheel and sdist into empty environments, and tries each of them.

Usage: python -m bench.matrix [--python 3.10 ...] [--versions lowest newest] [--from wheel sdist]

It needs ``uv`` (``pip install uv``), the interpreters, and the package index. PyTorch from the
index takes gigabytes; ``--with FILE`` installs a smaller build. A row of Markdown is printed for
each environment. The exit status is 1 if one of them fails, or has other scores than the first.
"""

import argparse
import itertools
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from email import message_from_bytes
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESPONSES = ROOT / "examples" / "demo" / "responses" / "qwen2.5-coder-0.5b-bare"
TASKS = ("lieder_mini", "magnifico_mini")
LIBRARIES = ("lm-eval", "transformers", "torch", "datasets", "pandas", "sqlglot")
RESOLUTIONS = {"lowest": "lowest-direct", "newest": "highest"}
"""uv's names for installing the lowest versions that pyproject.toml allows, or the newest."""


class CommandError(Exception):
    """A command of an environment failed; the message ends with what it printed."""


def run(*command: str | Path, folder: Path) -> str:
    """Return what a command prints.

    Raises:
        CommandError: Its exit status is not 0.
    """
    words = list(map(str, command))
    process = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if process.returncode != 0:
        last_lines = "\n".join((process.stdout + process.stderr).splitlines()[-15:])
        raise CommandError(f"{command[0]}: exit status {process.returncode}\n{last_lines}")
    return process.stdout


@dataclass(frozen=True)
class Environment:
    """An empty environment with the project in it.

    Attributes:
        folder: Where it lies.
        python: The interpreter, or its version.
        package: The wheel or sdist.
        requirements: What the package requires. They are named to uv again, because it takes the
            lowest versions only of what it is told to install.
        resolution: A key of :data:`RESOLUTIONS`.
        further: Requirements or files that are installed with it, such as another PyTorch.
    """

    folder: Path
    python: str
    package: Path
    requirements: Sequence[str]
    resolution: str
    further: Sequence[str]

    @property
    def scripts(self) -> Path:
        """The folder of its commands."""
        return self.folder / "venv" / "bin"

    def install(self) -> None:
        """Install the project with everything that it needs."""
        self.folder.mkdir()
        run("uv", "venv", "--quiet", "--python", self.python, "venv", folder=self.folder)
        options = ["--resolution", RESOLUTIONS[self.resolution]]
        options += ["--python", str(self.scripts / "python")]
        packages = [str(self.package), *self.requirements, *self.further]
        run("uv", "pip", "install", "--quiet", *options, *packages, folder=self.folder)

    def versions(self) -> dict[str, str]:
        """Return the installed versions of Python and of :data:`LIBRARIES`."""
        code = (
            "import json, platform; from importlib.metadata import version;"
            f"print(json.dumps([platform.python_version(), *map(version, {LIBRARIES})]))"
        )
        output = run(self.scripts / "python", "-c", code, folder=self.folder)
        return dict(zip(("Python", *LIBRARIES), json.loads(output), strict=True))

    def try_commands(self) -> None:
        """Run what a new user runs first: help, the list of tasks, a task with no model."""
        run(self.scripts / "lm-eval-ext", "--help", folder=self.folder)
        listed = run(self.scripts / "lm_eval", "ls", "subtasks", folder=self.folder)
        for task in TASKS:
            if task not in listed:
                raise CommandError(f"lm_eval does not list {task}")
        dummy = ("--tasks", "conceptual_mini", "--model", "dummy", "--limit", "2")
        run(self.scripts / "lm_eval", *dummy, folder=self.folder)

    def scores(self) -> dict[str, float]:
        """Return the first score of each task, from recorded responses of a real model."""
        output = self.folder / "results"
        model_args = f"path={RESPONSES},match=doc"
        run(
            self.scripts / "lm_eval", "--tasks", ",".join(TASKS), "--model", "recorded",
            "--model_args", model_args, "--output_path", output, folder=self.folder,
        )  # fmt: skip
        (file,) = output.rglob("results_*.json")
        results = json.loads(file.read_text(encoding="utf-8"))["results"]
        return {task: _first_score(results[task]) for task in TASKS}


def _first_score(results: Mapping[str, object]) -> float:
    """Return the first figure of a task that is no standard error."""
    for name, value in results.items():
        if isinstance(value, float) and "stderr" not in name:
            return round(value, 6)
    raise CommandError(f"no score in {results}")


def build(folder: Path) -> dict[str, Path]:
    """Return the wheel and the sdist that are built from this checkout."""
    run("uv", "build", "--quiet", "--out-dir", folder, ROOT, folder=ROOT)
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


def requirements_of(wheel: Path) -> list[str]:
    """Return what a wheel requires, without its extras."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = message_from_bytes(archive.read(name))
    required = metadata.get_all("Requires-Dist", [])
    return [requirement for requirement in required if "extra ==" not in requirement]


def row(cells: Sequence[object]) -> str:
    """Return a row of a table in Markdown."""
    return "| " + " | ".join(map(str, cells)) + " |"


def show(line: str) -> None:
    """Print a line of the table at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def parse_arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--python",
        nargs="+",
        help="versions or interpreters",
        default=["3.10", "3.11", "3.12", "3.13"],
    )
    parser.add_argument("--versions", nargs="+", choices=RESOLUTIONS, default=["newest", "lowest"])
    parser.add_argument(
        "--from", nargs="+", dest="packages", choices=["wheel", "sdist"], default=["wheel"]
    )
    parser.add_argument(
        "--with", nargs="*", dest="further", default=[], help="requirements such as torch==2.13.0"
    )
    return parser.parse_args()


@dataclass(frozen=True)
class Trial:
    """A combination of the arguments, with the environment to try.

    Attributes:
        package: ``wheel`` or ``sdist``.
        environment: The environment, which is not installed yet.
    """

    package: str
    environment: Environment


def trials(arguments: argparse.Namespace, folder: Path) -> Iterator[Trial]:
    """Yield an environment for each combination; they lie in the folder."""
    packages = build(folder / "dist")
    requirements = requirements_of(packages["wheel"])
    combinations = itertools.product(arguments.python, arguments.versions, arguments.packages)
    for number, (python, resolution, package) in enumerate(combinations):
        environment = Environment(
            folder=folder / f"environment-{number}",
            python=python,
            package=packages[package],
            requirements=requirements,
            resolution=resolution,
            further=arguments.further,
        )
        yield Trial(package, environment)


def attempt(trial: Trial) -> dict[str, float] | None:
    """Install an environment, try it and show a row; return its scores, or None if it failed."""
    environment = trial.environment
    title = [trial.package, environment.resolution]
    try:
        environment.install()
        environment.try_commands()
        scores = environment.scores()
        versions = environment.versions()
    except CommandError as failure:
        show(row([*title, environment.python, "failed"]))
        sys.stderr.write(f"{failure}\n")
        return None
    finally:
        shutil.rmtree(environment.folder / "venv", ignore_errors=True)
    show(row([*title, *versions.values(), *scores.values()]))
    return scores


def main() -> int:
    """Try every environment; return the exit status."""
    arguments = parse_arguments()
    if shutil.which("uv") is None:
        sys.exit("uv is missing: pip install uv")
    header = ["from", "versions", "Python", *LIBRARIES, *TASKS]
    show(row(header))
    show(row(["---"] * len(header)))
    has_failed = False
    first_scores: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="lm-eval-ext-matrix-") as name:
        for trial in trials(arguments, Path(name)):
            scores = attempt(trial)
            if scores is None:
                has_failed = True
                continue
            first_scores = first_scores or scores
            if scores != first_scores:
                has_failed = True
                sys.stderr.write(f"scores differ from the first ones: {first_scores}\n")
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main())
