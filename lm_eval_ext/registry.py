"""The benchmarks that ship, and where each of their parts lies.

This is the only list of them. What reads task files, recipes or figures, or shows samples, asks it,
and so needs to know no benchmark. A benchmark's own code is imported only when its view is needed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType

from lm_eval_ext.task_folder import tasks_folder

_PACKAGE = Path(__file__).parent
_DEMO_RECIPES = _PACKAGE / "demo" / "recipes"


@dataclass(frozen=True)
class Benchmark:
    """A benchmark that ships: a task file, and a package of code.

    Attributes:
        name: The name of the task file, of the package below ``lm_eval_ext.benchmarks``, and of the
            card; with an underscore it is the prefix of the loading functions' options.
        has_view: Whether its module ``view`` says how the page shows a sample
            (:mod:`lm_eval_ext.results.samples`).
        has_recipes: Whether its folder ``recipes`` has recipes of trainings
            (:mod:`lm_eval_ext.training`).
        has_recordings: Whether its module ``recordings`` converts what its authors recorded of
            models (:mod:`lm_eval_ext.data.recordings`).
    """

    name: str
    has_view: bool = False
    has_recipes: bool = False
    has_recordings: bool = False

    @property
    def task_file(self) -> Path:
        """The file with the card and the tasks."""
        return Path(tasks_folder()) / f"{self.name}.yaml"

    @property
    def folder(self) -> Path:
        """The folder of the code."""
        return _PACKAGE / "benchmarks" / self.name

    @property
    def figures_file(self) -> Path:
        """The file that declares figures (:mod:`lm_eval_ext.plots`)."""
        return self.folder / "plots.yaml"

    def view(self) -> ModuleType | None:
        """Import and return the module that shows samples; None if there is none."""
        if not self.has_view:
            return None
        return import_module(f"lm_eval_ext.benchmarks.{self.name}.view")

    def recordings(self) -> ModuleType | None:
        """Import and return the module that converts recordings; None if there is none."""
        if not self.has_recordings:
            return None
        return import_module(f"lm_eval_ext.benchmarks.{self.name}.recordings")


_ALL = (
    Benchmark("cogs", has_view=True, has_recipes=True),
    Benchmark("conceptual", has_view=True, has_recipes=True),
    Benchmark("diner", has_view=True, has_recipes=True),
    Benchmark("discourse_entities", has_view=True, has_recordings=True),
    Benchmark("lieder", has_view=True, has_recordings=True),
    Benchmark("magnifico", has_view=True, has_recordings=True),
    Benchmark("slog", has_view=True, has_recipes=True),
)

BENCHMARKS: Mapping[str, Benchmark] = {benchmark.name: benchmark for benchmark in _ALL}
"""All benchmarks that ship, by name, in alphabetical order."""


def recipe_files() -> dict[str, Path]:
    """Return the recipes of all benchmarks and of the demonstration, by name."""
    folders = [_DEMO_RECIPES]
    folders += [benchmark.folder / "recipes" for benchmark in _ALL if benchmark.has_recipes]
    files: list[Path] = []
    for folder in folders:
        files += folder.glob("*.yaml")
    return {file.stem: file for file in sorted(files)}
